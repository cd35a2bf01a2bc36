/*
 * Checks keys and passes each call to the backend; calls that both backends implement alike are
 * here.
 */
#include "common/base/limits.h"
#include "common/blob/backend.h"

/* ---- keys ----------------------------------------------------------------------------------- */

static bool segment_is_good(const char *s, size_t n)
{
    static const char good[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    bool dots = (n == 1 || n == 2) && s[0] == '.' && s[n - 1] == '.';
    return n > 0 && !dots && strspn(s, good) >= n;
}

bool df_blob_path_is_good(const char *path)
{
    for (const char *s = path;; s++) {
        size_t n = strcspn(s, "/");
        if (!segment_is_good(s, n))
            return false;
        s += n;
        if (!*s)
            return true;
    }
}

bool df_blob_key_is_good(const char *key)
{
    return strlen(key) <= DF_LIMIT_BLOB_KEY && df_blob_path_is_good(key);
}

static int check_key(const char *key, struct df_err *err)
{
    return df_blob_key_is_good(key) ? 0
                                    : df_fail(err, DF_ERR_USER, "\"%s\" is not a blob key", key);
}

int df_blob_fail_gap(const char *key, int64_t size, int64_t offset, struct df_err *err)
{
    return df_fail_reason(err, DF_ERR_CONFLICT, "Gap", "%s has %lld bytes, not %lld", key,
                          (long long)size, (long long)offset);
}

int df_blob_fail_absent(const char *key, struct df_err *err)
{
    return df_fail(err, DF_ERR_NOT_FOUND, "there is no blob %s", key);
}

/* ---- calls to the backend -------------------------------------------------------------------- */

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

static int put(struct df_blob *b, const char *key, struct df_blob_content content,
               enum df_blob_how how, struct df_err *err)
{
    return check_key(key, err) < 0 ? -1 : b->ops->put(b, key, &content, how, err);
}

int df_blob_put(struct df_blob *b, const char *key, const void *bytes, size_t n, struct df_err *err)
{
    return put(b, key, (struct df_blob_content){bytes, n, NULL}, DF_BLOB_REPLACE, err);
}

int df_blob_create(struct df_blob *b, const char *key, const void *bytes, size_t n,
                   struct df_err *err)
{
    return put(b, key, (struct df_blob_content){bytes, n, NULL}, DF_BLOB_CREATE, err);
}

int df_blob_put_file(struct df_blob *b, const char *key, const char *path, struct df_err *err)
{
    return put(b, key, (struct df_blob_content){.path = path}, DF_BLOB_REPLACE, err);
}

int df_blob_sync(struct df_blob *b, const char *key, struct df_err *err)
{
    if (check_key(key, err) < 0)
        return -1;
    return b->ops->sync ? b->ops->sync(b, key, err) : 0;
}

int df_blob_get(struct df_blob *b, const char *key, struct df_buf *out, struct df_err *err)
{
    size_t room = out->max - out->len;
    int64_t size = 0;
    if (df_blob_read_at(b, key, 0, out, &size, err) < 0)
        return -1;
    if ((uint64_t)size > room)
        return df_fail(err, DF_ERR_LIMIT, "blob %s has %lld bytes, more than %zu", key,
                       (long long)size, room);
    return 0;
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
    return check_key(key, err) < 0 ? -1 : b->ops->get(b, key, offset, out, ret_size, err);
}

int df_blob_delete(struct df_blob *b, const char *key, struct df_err *err)
{
    return check_key(key, err) < 0 ? -1 : b->ops->remove(b, key, err);
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

int df_blob_each(struct df_blob *b, const char *prefix, df_blob_visit visit, void *arg,
                 struct df_err *err)
{
    if (*prefix && check_key(prefix, err) < 0)
        return -1;
    return b->ops->each(b, prefix, visit, arg, err);
}

int df_blob_delete_all(struct df_blob *b, const char *prefix, struct df_err *err)
{
    DF_STRS struct df_strs keys = {0};
    if (check_key(prefix, err) < 0)
        return -1;
    if (b->ops->remove_all)
        return b->ops->remove_all(b, prefix, err);
    if (df_blob_list(b, prefix, &keys, err) < 0)
        return -1;
    for (size_t i = 0; i < keys.len; i++)
        if (b->ops->remove(b, keys.items[i], err) < 0)
            return df_err_wrap(err, "remove blobs %s", prefix);
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
