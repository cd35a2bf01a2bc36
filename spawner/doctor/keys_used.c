/*
 * keys_used.c - counts what each key of blobs.keyFiles sealed in the bucket, so that one that
 * sealed nothing any more can go. It reads the head of each blob, which names its key: a check to
 * be asked for.
 */
#include "common/base/limits.h"
#include "common/crypto/keyring.h"
#include "spawner/config/blob_bucket.h"
#include "spawner/config/key_files.h"
#include "spawner/doctor/checks.h"

#define HEADS "heads/"

struct tally {
    struct df_bucket *bucket;
    const struct df_keyring *keys;
    size_t counts[DF_LIMIT_KEYRING]; /* by key of the ring */
    size_t others;                   /* sealed with none of them */
    size_t all;
};

static void close_bucket(struct df_bucket **b)
{
    if (*b)
        (*b)->ops->close(*b);
}

/* A blob that was removed, also since it was listed, needs no key: its object is empty or gone. */
static int count_head(void *arg, const char *name, int64_t size, int64_t made_us,
                      struct df_err *err)
{
    struct tally *t = arg;
    DF_BUF struct df_buf head = DF_BUF_INIT(DF_LIMIT_BUCKET_OBJECT);
    struct df_bucket_version version;
    struct df_err why = {0};
    (void)size, (void)made_us;
    if (t->bucket->ops->get(t->bucket, name, &head, &version, &why) < 0)
        return why.cls == DF_ERR_NOT_FOUND ? 0 : df_err_pass(err, &why);
    if (!head.len)
        return 0;
    size_t key = df_keyring_find(t->keys, df_buf_str(&head), head.len);
    t->all++;
    if (key < t->keys->len)
        t->counts[key]++;
    else
        t->others++;
    return 0;
}

static int count_all(struct tally *t, struct df_err *err)
{
    const struct df_bucket_sink sink = {count_head, t};
    DF_FREE char *after = NULL;
    do {
        if (t->bucket->ops->list(t->bucket, HEADS, &after, &sink, err) < 0)
            return -1;
    } while (after);
    return 0;
}

static int read_keys(const struct df_strs *files, struct df_keyring *ret, struct df_err *err)
{
    unsigned char key[DF_KEY_LEN] = {0};
    int result = 0;
    for (size_t i = 0; i < files->len && result == 0; i++) {
        result = df_config_key_file(files->items[i], key, err);
        if (result == 0)
            result = df_keyring_add(ret, key, err);
    }
    explicit_bzero(key, sizeof(key));
    return result;
}

static void report(struct df_doctor_context *p, const struct tally *t)
{
    bool is_first = !p->config.blob_key_command.len; /* else that of the command seals */
    for (size_t i = 0; i < t->keys->len; i++, is_first = false)
        df_finding(p, DF_LEVEL_OK, "%s sealed %zu of %zu blobs%s",
                   p->config.blob_key_files.items[i], t->counts[i], t->all,
                   is_first           ? ", and seals what comes"
                   : t->counts[i] > 0 ? ": it must stay"
                                      : ": it may go");
    df_finding(p, DF_LEVEL_OK,
               "%zu of %zu blobs are sealed with other keys: those of blobs.keyCommand, the "
               "instance's own, or one that is missing",
               t->others, t->all);
}

int df_check_keys_used(struct df_doctor_context *p, struct df_err *err)
{
    const char *location = p->config.blob_location;
    DF_CLEANUP(close_bucket) struct df_bucket *b = NULL;
    DF_KEYRING keys = {0};
    if (!location)
        return df_fail(err, DF_ERR_USER, "blobs.location is not set: only buckets have such keys");
    if (read_keys(&p->config.blob_key_files, &keys, err) < 0)
        return -1;
    if (df_config_bucket(&p->config, location, &b, err) < 0)
        return df_err_wrap(err, "blobs.location");
    struct tally t = {.bucket = b, .keys = &keys};
    if (count_all(&t, err) < 0)
        return df_err_wrap(err, "blobs.location: %s", location);
    report(p, &t);
    return 0;
}
