/* The bucket, what home remembers of it, moving from one place to another, opening. */
#include "spawner/service/open_blobs.h"

#include <errno.h>
#include <fcntl.h>

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "spawner/config/blob_bucket.h"
#include "spawner/service/blob_keys.h"
#include "spawner/service/hold_lease.h"

/* Keys of home. */
#define MARK "location"
#define INSTALLATION "installation"

enum { ID_BYTES = 16 };

static int open_home(const struct df_blob_places *p, struct df_blob **ret, struct df_err *err)
{
    const struct df_blob_kube_options kube = {p->kube, p->name_space, p->directory};
    return p->config->in_cluster ? df_blob_kube_open(&kube, ret, err)
                                 : df_blob_open(p->directory, ret, err);
}

/* ---- the bucket ------------------------------------------------------------------------------ */

/* owner: NULL: to read what is there. */
static int open_bucket(const struct df_blob_places *p, const char *location, const char *owner,
                       struct df_blob **ret, struct df_err *err)
{
    DF_KEYRING keys = {0};
    const struct df_blob_bucket_options o = {.keys = &keys,
                                             .directory = p->directory,
                                             .owner = owner,
                                             .former = p->config->blob_take_over};
    struct df_bucket *driver = NULL;
    if (df_blob_keys(p->config, p->vault, &keys, err) < 0)
        return -1;
    if (df_config_bucket(p->config, location, &driver, err) < 0)
        return -1;
    return df_blob_bucket_open(driver, &o, ret, err) < 0 ? df_err_wrap(err, "blobs.location") : 0;
}

/* ---- what home remembers --------------------------------------------------------------------- */

/* *ret is empty where nothing is. */
static int read_note(struct df_blob *home, const char *key, struct df_buf *ret, struct df_err *err)
{
    struct df_err why = {0};
    if (df_blob_get(home, key, ret, &why) == 0 || why.cls == DF_ERR_NOT_FOUND)
        return 0;
    return df_err_pass(err, &why);
}

/* Appends the id of this installation, which is made with the first bucket. Of several replicas one
 * makes it. It is not in a backup: what is restored is another installation until it takes over. */
static int find_installation(struct df_blob *home, struct df_buf *ret, struct df_err *err)
{
    char id[2 * ID_BYTES + 1];
    struct df_err why = {0};
    if (read_note(home, INSTALLATION, ret, err) < 0)
        return -1;
    if (ret->len)
        return 0;
    if (df_random_hex(id, ID_BYTES, err) < 0)
        return -1;
    if (df_blob_create(home, INSTALLATION, id, strlen(id), &why) == 0)
        return df_buf_adds(ret, id) < 0 ? df_buf_check(ret, err) : 0;
    return why.cls == DF_ERR_CONFLICT ? df_blob_get(home, INSTALLATION, ret, err)
                                      : df_err_pass(err, &why);
}

/* Home's own notes are not what lies there. */
static bool is_note(const char *key)
{
    return df_streq(key, MARK) || df_streq(key, INSTALLATION);
}

static int check_home_is_empty(struct df_blob *home, const char *location, struct df_err *err)
{
    DF_STRS struct df_strs keys = {0};
    size_t count = 0;
    if (df_blob_list(home, "", &keys, err) < 0)
        return -1;
    for (size_t i = 0; i < keys.len; i++)
        count += !is_note(keys.items[i]);
    return !count ? 0
                  : df_fail(err, DF_ERR_USER,
                            "blobs.location: %s was not used before, and states, plans and logs "
                            "(%zu) lie where they were: blobs.move: true takes them there",
                            location, count);
}

/* mark: what home remembers, or "". */
static int check_mark(struct df_blob *home, const char *mark, const char *location,
                      struct df_err *err)
{
    if (!location && *mark)
        return df_fail(err, DF_ERR_USER,
                       "blobs.location: is not set, and states, plans and logs are in %s: set it "
                       "to that",
                       mark);
    if (location && *mark && !df_streq(mark, location))
        return df_fail(err, DF_ERR_USER,
                       "blobs.location: %s is not where states, plans and logs are, which is %s: "
                       "blobs.move: true takes them to the new place",
                       location, mark);
    return location && !*mark ? check_home_is_empty(home, location, err) : 0;
}

/* ---- moving ---------------------------------------------------------------------------------- */

static int copy_blob(struct df_blob *from, struct df_blob *to, const char *key, struct df_err *err)
{
    DF_CLOSE int in = -1;
    DF_CLOSE int out = -1;
    DF_FREE char *path = df_fs_join(df_blob_tmp_dir(to), "moved");
    if (df_check_alloc(path, err) < 0 || df_blob_open_read(from, key, &in, NULL, err) < 0)
        return -1;
    out = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (out < 0)
        return df_fail_errno(err, errno, "create %s", path);
    return df_fs_copy(in, out, NULL, err) < 0 ? -1 : df_blob_put_file(to, key, path, err);
}

struct move {
    const struct df_blob_places *places;
    struct df_blob *home, *to;
    struct df_lease_hold *hold; /* NULL: nobody else can write */
};

/* What was copied stays at the old place: nobody need trust the new one to have it. */
static int copy_all(const struct move *m, struct df_blob *from, const char *old, struct df_err *err)
{
    const char *location = m->places->config->blob_location;
    DF_STRS struct df_strs keys = {0};
    if (df_blob_list(from, "", &keys, err) < 0)
        return -1;
    df_info("blobs: %zu go from %s to %s", keys.len, old, location);
    for (size_t i = 0; i < keys.len; i++) {
        if (m->hold && df_lease_hold_check(m->hold, err) < 0)
            return -1;
        if (!is_note(keys.items[i]) && copy_blob(from, m->to, keys.items[i], err) < 0)
            return df_err_wrap(err, "blobs.move: %s to %s", keys.items[i], location);
        if ((i + 1) % 1000 == 0)
            df_info("blobs: %zu of %zu are there", i + 1, keys.len);
    }
    df_info("blobs: all are in %s; %s still has its copies", location, old);
    return 0;
}

static int note_place(const struct df_config *c, struct df_blob *home, struct df_err *err)
{
    return df_blob_put(home, MARK, c->blob_location, strlen(c->blob_location), err);
}

/* Another replica may have moved them while this one waited. */
static int move_alone(const struct move *m, struct df_err *err)
{
    const struct df_blob_places *p = m->places;
    DF_BUF struct df_buf mark = DF_BUF_INIT(DF_LIMIT_BUCKET_NAME);
    DF_BLOB struct df_blob *from = NULL;
    if (read_note(m->home, MARK, &mark, err) < 0)
        return -1;
    if (df_streq(df_buf_str(&mark), p->config->blob_location))
        return 0;
    if (mark.len && open_bucket(p, df_buf_str(&mark), NULL, &from, err) < 0)
        return -1;
    const char *home_name = p->config->in_cluster ? "the cluster" : p->directory;
    return copy_all(m, from ? from : m->home, mark.len ? df_buf_str(&mark) : home_name, err) < 0
               ? -1
               : note_place(p->config, m->home, err);
}

/* Only where nobody else can write to the old place meanwhile: a replica that leads. */
static int move_blobs(const struct df_blob_places *p, struct df_blob *home, struct df_blob *to,
                      struct df_err *err)
{
    struct move m = {p, home, to, NULL};
    const struct df_lease_hold_options o = {.config = p->config,
                                            .name_space = p->name_space,
                                            .own = p->lease_kube,
                                            .fenced = p->kube,
                                            .what = "blobs.move"};
    if (p->lease_kube && df_lease_hold_begin(&o, &m.hold, err) < 0)
        return -1;
    int result = move_alone(&m, err);
    df_lease_hold_end(m.hold);
    return result;
}

/* ---- opening --------------------------------------------------------------------------------- */

/* before: what home remembers. The name of a bucket is written down when it can be used, and has
 * everything. */
static int use_bucket(const struct df_blob_places *p, struct df_blob *home, const char *before,
                      struct df_blob **ret, struct df_err *err)
{
    const char *location = p->config->blob_location;
    DF_BUF struct df_buf id = DF_BUF_INIT(DF_KIB);
    DF_BLOB struct df_blob *bucket = NULL;
    bool is_new = !df_streq(before, location);
    if (find_installation(home, &id, err) < 0 ||
        open_bucket(p, location, df_buf_str(&id), &bucket, err) < 0)
        return -1;
    if (is_new && (p->config->blob_move ? move_blobs(p, home, bucket, err)
                                        : note_place(p->config, home, err)) < 0)
        return -1;
    *ret = DF_TAKE(bucket);
    return 0;
}

int df_open_blobs(const struct df_blob_places *p, struct df_blob **ret, struct df_blob **ret_home,
                  struct df_err *err)
{
    const char *location = p->config->blob_location;
    DF_BUF struct df_buf mark = DF_BUF_INIT(DF_LIMIT_BUCKET_NAME);
    DF_BLOB struct df_blob *home = NULL;
    if (open_home(p, &home, err) < 0 || read_note(home, MARK, &mark, err) < 0)
        return -1;
    bool moves = location && p->config->blob_move;
    if (!moves && check_mark(home, df_buf_str(&mark), location, err) < 0)
        return -1;
    if (location && use_bucket(p, home, df_buf_str(&mark), ret, err) < 0)
        return -1;
    *(location ? ret_home : ret) = DF_TAKE(home);
    return 0;
}

int df_blobs_check_place(const struct df_config *config, struct df_blob *home, struct df_err *err)
{
    const char *location = config->blob_location ? config->blob_location : "";
    DF_BUF struct df_buf mark = DF_BUF_INIT(DF_LIMIT_BUCKET_NAME);
    if (read_note(home, MARK, &mark, err) < 0)
        return -1;
    return df_streq(df_buf_str(&mark), location)
               ? 0
               : df_fail(err, DF_ERR_USER,
                         "states, plans and logs were moved to %s: set blobs.location to that",
                         df_buf_str(&mark));
}
