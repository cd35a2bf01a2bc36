/* The bucket, what home remembers of it, moving from one place to another, opening. */
#include "spawner/open_blobs.h"

#include <errno.h>
#include <fcntl.h>

#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/blob/azblob.h"
#include "common/blob/gcs.h"
#include "common/blob/s3.h"
#include "spawner/blob_keys.h"

#define MARK "location"

static int open_home(const struct df_blob_places *p, struct df_blob **ret, struct df_err *err)
{
    const struct df_blob_kube_options kube = {p->kube, p->name_space, p->directory};
    return p->config->in_cluster ? df_blob_kube_open(&kube, ret, err)
                                 : df_blob_open(p->directory, ret, err);
}

/* ---- the bucket ------------------------------------------------------------------------------ */

/* location: "s3://bucket/prefix", "gs://..." or "azblob://account/container/prefix". */
static int new_driver(const struct df_config *c, const char *location, struct df_bucket **ret,
                      struct df_err *err)
{
    const char *name = strstr(location, "://") + strlen("://"), *slash = strchr(name, '/');
    DF_FREE char *bucket = strndup(name, slash ? (size_t)(slash - name) : strlen(name));
    const char *prefix = slash ? slash + 1 : NULL;
    if (!bucket)
        return df_fail_oom(err);
    const struct df_s3_options s3 = {.bucket = bucket,
                                     .prefix = prefix,
                                     .region = c->s3_region,
                                     .endpoint = c->s3_endpoint,
                                     .ca_file = c->s3_ca_file,
                                     .path_style = c->s3_path_style};
    const struct df_gcs_options gcs = {.bucket = bucket,
                                       .prefix = prefix,
                                       .endpoint = c->gcs_endpoint,
                                       .ca_file = c->gcs_ca_file,
                                       .anonymous = c->gcs_anonymous};
    const struct df_azblob_options azblob = {.account = bucket,
                                             .place = prefix,
                                             .endpoint = c->azblob_endpoint,
                                             .ca_file = c->azblob_ca_file};
    return df_starts_with(location, "gs:")       ? df_gcs_bucket_new(&gcs, ret, err)
           : df_starts_with(location, "azblob:") ? df_azblob_bucket_new(&azblob, ret, err)
                                                 : df_s3_bucket_new(&s3, ret, err);
}

static int open_bucket(const struct df_blob_places *p, const char *location, struct df_blob **ret,
                       struct df_err *err)
{
    DF_KEYRING keys = {0};
    const struct df_blob_bucket_options o = {.keys = &keys, .directory = p->directory};
    struct df_bucket *driver = NULL;
    if (df_blob_keys(p->config, p->vault, &keys, err) < 0)
        return -1;
    if (new_driver(p->config, location, &driver, err) < 0 ||
        df_blob_bucket_open(driver, &o, ret, err) < 0)
        return df_err_wrap(err, "blobs.location");
    return 0;
}

/* ---- what home remembers --------------------------------------------------------------------- */

/* *mark is empty where none is. */
static int read_mark(struct df_blob *home, struct df_buf *mark, struct df_err *err)
{
    struct df_err why = {0};
    if (df_blob_get(home, MARK, mark, &why) == 0 || why.cls == DF_ERR_NOT_FOUND)
        return 0;
    return df_err_pass(err, &why);
}

static int check_home_is_empty(struct df_blob *home, const char *location, struct df_err *err)
{
    DF_STRS struct df_strs keys = {0};
    if (df_blob_list(home, "", &keys, err) < 0)
        return -1;
    return !keys.len ? 0
                     : df_fail(err, DF_ERR_USER,
                               "blobs.location: %s was not used before, and %zu states, plans and "
                               "logs lie where they were: blobs.move: true takes them there",
                               location, keys.len);
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

static int copy_bytes(int in, int out, struct df_err *err)
{
    char piece[64 * DF_KIB];
    for (;;) {
        ssize_t n = read(in, piece, sizeof(piece));
        if (n == 0)
            return 0;
        if (n < 0 && errno != EINTR)
            return df_fail_errno(err, errno, "read");
        if (n > 0 && df_fs_write_all(out, piece, (size_t)n, err) < 0)
            return -1;
    }
}

static int copy_blob(struct df_blob *from, struct df_blob *to, const char *key, struct df_err *err)
{
    DF_CLOSE int in = -1;
    DF_CLOSE int out = -1;
    DF_FREE char *path = df_fs_join(df_blob_tmp_dir(to), "moved");
    if (!path)
        return df_fail_oom(err);
    if (df_blob_open_read(from, key, &in, NULL, err) < 0)
        return -1;
    out = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (out < 0)
        return df_fail_errno(err, errno, "create %s", path);
    return copy_bytes(in, out, err) < 0 ? -1 : df_blob_put_file(to, key, path, err);
}

/* What was copied stays at the old place: nobody need trust the new one to have it. */
static int copy_all(struct df_blob *from, const char *old, struct df_blob *to, const char *location,
                    struct df_err *err)
{
    DF_STRS struct df_strs keys = {0};
    if (df_blob_list(from, "", &keys, err) < 0)
        return -1;
    df_info("blobs: %zu go from %s to %s", keys.len, old, location);
    for (size_t i = 0; i < keys.len; i++) {
        if (!df_streq(keys.items[i], MARK) && copy_blob(from, to, keys.items[i], err) < 0)
            return df_err_wrap(err, "blobs.move: %s to %s", keys.items[i], location);
        if ((i + 1) % 1000 == 0)
            df_info("blobs: %zu of %zu are there", i + 1, keys.len);
    }
    df_info("blobs: all are in %s; %s still has its copies", location, old);
    return 0;
}

/* Only where nobody else can write to the old place meanwhile. */
static int move_blobs(const struct df_blob_places *p, struct df_blob *home, const char *mark,
                      struct df_blob *to, struct df_err *err)
{
    DF_BLOB struct df_blob *from = NULL;
    if (p->config->in_cluster)
        return df_fail(err, DF_ERR_USER,
                       "blobs.move: is for store: sqlite; replicas in a cluster could write to the "
                       "old place meanwhile");
    if (*mark && open_bucket(p, mark, &from, err) < 0)
        return -1;
    return copy_all(from ? from : home, *mark ? mark : p->directory, to, p->config->blob_location,
                    err);
}

/* ---- opening --------------------------------------------------------------------------------- */

/* The name of a bucket is written down when it can be used, and has everything. */
static int settle(const struct df_blob_places *p, struct df_blob *home, struct df_blob *bucket,
                  struct df_err *err)
{
    const char *location = p->config->blob_location;
    DF_BUF struct df_buf mark = DF_BUF_INIT(DF_LIMIT_BUCKET_NAME);
    if (read_mark(home, &mark, err) < 0)
        return -1;
    const char *before = df_buf_str(&mark);
    bool moves = location && p->config->blob_move && !df_streq(before, location);
    if (moves ? move_blobs(p, home, before, bucket, err) < 0
              : check_mark(home, before, location, err) < 0)
        return -1;
    return location && !df_streq(before, location)
               ? df_blob_put(home, MARK, location, strlen(location), err)
               : 0;
}

int df_open_blobs(const struct df_blob_places *p, struct df_blob **ret, struct df_err *err)
{
    const char *location = p->config->blob_location;
    DF_BLOB struct df_blob *bucket = NULL;
    DF_BLOB struct df_blob *home = NULL;
    if (location && open_bucket(p, location, &bucket, err) < 0)
        return -1;
    if (open_home(p, &home, err) < 0 || settle(p, home, bucket, err) < 0)
        return -1;
    *ret = bucket ? DF_TAKE(bucket) : DF_TAKE(home);
    return 0;
}
