#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/blob/home.h"

/* ---- keys ----------------------------------------------------------------------------------- */

static bool segment_is_good(const char *s, size_t n)
{
    static const char good[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    bool dots = (n == 1 || n == 2) && s[0] == '.' && s[n - 1] == '.';
    return n > 0 && !dots && strspn(s, good) >= n;
}

bool df_blob_key_is_good(const char *key)
{
    if (strlen(key) > DF_LIMIT_BLOB_KEY)
        return false;
    for (const char *s = key;; s++) {
        size_t n = strcspn(s, "/");
        if (!segment_is_good(s, n))
            return false;
        s += n;
        if (!*s)
            return true;
    }
}

static int check_key(const char *key, struct df_err *err)
{
    return df_blob_key_is_good(key) ? 0 : df_fail(err, DF_ERR_USER, "\"%s\" is no blob key", key);
}

int df_blob_fail_gap(const char *key, int64_t size, int64_t offset, struct df_err *err)
{
    return df_fail_reason(err, DF_ERR_CONFLICT, "Gap", "%s has %lld bytes, not %lld", key,
                          (long long)size, (long long)offset);
}

/* ---- whichever home it is ------------------------------------------------------------------- */

void df_blob_close(struct df_blob *b)
{
    if (!b)
        return;
    free(DF_TAKE(b->tmp));
    b->ops->close(b);
}

const char *df_blob_tmp_dir(const struct df_blob *b)
{
    return b->tmp;
}

int df_blob_put(struct df_blob *b, const char *key, const void *bytes, size_t n, struct df_err *err)
{
    return check_key(key, err) < 0 ? -1 : b->ops->put(b, key, bytes, n, err);
}

int df_blob_create(struct df_blob *b, const char *key, const void *bytes, size_t n,
                   struct df_err *err)
{
    return check_key(key, err) < 0 ? -1 : b->ops->create(b, key, bytes, n, err);
}

int df_blob_put_file(struct df_blob *b, const char *key, const char *path, struct df_err *err)
{
    return check_key(key, err) < 0 ? -1 : b->ops->put_file(b, key, path, err);
}

int df_blob_stage_file(struct df_blob *b, const char *key, const char *path, struct df_err *err)
{
    return check_key(key, err) < 0 ? -1 : b->ops->stage_file(b, key, path, err);
}

int df_blob_sync(struct df_blob *b, const char *key, struct df_err *err)
{
    return check_key(key, err) < 0 ? -1 : b->ops->sync(b, key, err);
}

int df_blob_get(struct df_blob *b, const char *key, struct df_buf *out, struct df_err *err)
{
    DF_CLOSE int fd = -1;
    if (df_blob_open_read(b, key, &fd, NULL, err) < 0)
        return -1;
    return df_fs_read_fd(fd, out, err) < 0 ? df_err_wrap(err, "blob %s", key) : 0;
}

int df_blob_open_read(struct df_blob *b, const char *key, int *ret_fd, int64_t *ret_size,
                      struct df_err *err)
{
    int64_t size = 0;
    if (check_key(key, err) < 0 || b->ops->open_read(b, key, ret_fd, &size, err) < 0)
        return -1;
    if (ret_size)
        *ret_size = size;
    return 0;
}

int df_blob_read_at(struct df_blob *b, const char *key, int64_t offset, struct df_buf *out,
                    int64_t *ret_size, struct df_err *err)
{
    return check_key(key, err) < 0 ? -1 : b->ops->read_at(b, key, offset, out, ret_size, err);
}

int df_blob_delete(struct df_blob *b, const char *key, struct df_err *err)
{
    return check_key(key, err) < 0 ? -1 : b->ops->remove(b, key, err);
}

int df_blob_delete_all(struct df_blob *b, const char *prefix, struct df_err *err)
{
    return check_key(prefix, err) < 0 ? -1 : b->ops->remove_all(b, prefix, err);
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int df_blob_list(struct df_blob *b, const char *prefix, struct df_strs *out, struct df_err *err)
{
    if ((*prefix && check_key(prefix, err) < 0) || b->ops->list(b, prefix, out, err) < 0 ||
        df_strs_check(out, err) < 0)
        return -1;
    if (out->len)
        qsort(out->items, out->len, sizeof(*out->items), by_bytes);
    return 0;
}

int df_blob_append(struct df_blob *b, const char *key, int64_t offset, const void *bytes, size_t n,
                   int64_t *ret_size, struct df_err *err)
{
    return check_key(key, err) < 0 ? -1 : b->ops->append(b, key, offset, bytes, n, ret_size, err);
}

int df_blob_size(struct df_blob *b, const char *key, int64_t *ret_size, struct df_err *err)
{
    return check_key(key, err) < 0 ? -1 : b->ops->size(b, key, ret_size, err);
}
