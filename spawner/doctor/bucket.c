/*
 * bucket.c - reads the keys of blobs.keyFiles; puts, reads, lists and removes one small object
 * where blobs.location says, with the credentials that doctor's environment offers, as the service
 * would.
 */
#include "common/base/clock.h"
#include "spawner/config/blob_bucket.h"
#include "spawner/config/key_files.h"
#include "spawner/doctor/checks.h"

#define UNREACHED                                                                                  \
    ": doctor must reach it as the service does: network, endpoint and credentials in the "        \
    "environment"
#define WORDS "written by dayfly doctor, which removes it\n"

static void close_bucket(struct df_bucket **b)
{
    if (*b)
        (*b)->ops->close(*b);
}

static int read_back(struct df_bucket *b, const char *name, struct df_err *err)
{
    DF_BUF struct df_buf content = DF_BUF_INIT(DF_KIB);
    struct df_bucket_version version;
    if (b->ops->get(b, name, &content, &version, err) < 0)
        return -1;
    return df_streq(df_buf_str(&content), WORDS)
               ? 0
               : df_fail(err, DF_ERR_SYSTEM, "GET %s: gives back something else than was put",
                         name);
}

static int count_item(void *arg, const char *name, int64_t size, int64_t made_us,
                      struct df_err *err)
{
    size_t *count = arg;
    (void)name, (void)size, (void)made_us, (void)err;
    ++*count;
    return 0;
}

static int list(struct df_bucket *b, const char *name, struct df_err *err)
{
    size_t count = 0;
    const struct df_bucket_sink sink = {count_item, &count};
    DF_FREE char *after = NULL;
    if (b->ops->list(b, name, &after, &sink, err) < 0)
        return -1;
    return count ? 0 : df_fail(err, DF_ERR_SYSTEM, "a list does not have %s, which was put", name);
}

/* What was put is removed, whatever failed in between. */
static int try_object(struct df_bucket *b, struct df_err *err)
{
    const struct df_bucket_version none = {""};
    char name[32], dice[17];
    struct df_err why = {0};
    if (df_random_hex(dice, 8, err) < 0)
        return -1;
    (void)snprintf(name, sizeof(name), "probe/%s", dice);
    if (b->ops->put(b, name, WORDS, strlen(WORDS), &none, err) < 0)
        return -1;
    int result = read_back(b, name, err) < 0 || list(b, name, err) < 0 ? -1 : 0;
    if (b->ops->remove(b, name, NULL, &why) < 0 && why.cls != DF_ERR_NOT_FOUND && result == 0)
        return df_err_pass(err, &why);
    return result;
}

int df_check_bucket_keys(struct df_doctor_context *p, struct df_err *err)
{
    const struct df_strs *files = &p->config.blob_key_files;
    if (!files->len)
        return 0;
    if (df_config_check_key_files(&p->config, err) < 0)
        return -1;
    df_finding(p, DF_LEVEL_OK, "blobs.keyFiles has %zu key%s; %s seals", files->len,
               files->len == 1 ? "" : "s",
               p->config.blob_key_command.len ? "that of blobs.keyCommand" : "the first one");
    return 0;
}

int df_check_bucket(struct df_doctor_context *p, struct df_err *err)
{
    const char *location = p->config.blob_location;
    DF_CLEANUP(close_bucket) struct df_bucket *b = NULL;
    struct df_err why = {0};
    if (!location)
        return 0;
    if (df_config_bucket(&p->config, location, &b, err) < 0)
        return -1;
    if (try_object(b, &why) < 0)
        return df_fail(err, why.cls, "blobs.location: %s: %s%s", location, why.message,
                       why.cls == DF_ERR_RETRY ? UNREACHED : "");
    df_finding(p, DF_LEVEL_OK, "%s takes, gives back, lists and removes an object", location);
    return 0;
}
