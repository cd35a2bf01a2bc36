#include "common/blob/driver.h"

#include <errno.h>

#include "common/base/fs.h"
#include "common/blob/backend.h"

int df_driver_check_prefix(const char *prefix, struct df_err *err)
{
    if (df_blob_key_is_good(prefix))
        return 0;
    return df_fail(err, DF_ERR_USER,
                   "\"%s\" is not a prefix: segments of A-Z a-z 0-9 . _ - with / between them",
                   prefix);
}

int df_driver_check_endpoint(const char *endpoint, struct df_err *err)
{
    if (df_str_empty(endpoint))
        return 0;
    if (strpbrk(endpoint, "?#@")) /* it is not shown: it may hold a signature or a password */
        return df_fail(err, DF_ERR_USER,
                       "an endpoint is https://host[:port], with neither a user nor a query: "
                       "credentials come from the environment (docs/configuration.md)");
    if (df_starts_with(endpoint, "https://") || df_starts_with(endpoint, "http://"))
        return 0;
    return df_fail(err, DF_ERR_USER,
                   "\"%s\" is not an endpoint, which begins with https:// or http://: "
                   "https://host[:port]",
                   endpoint);
}

int df_driver_at(bool names_keys, const char *key, struct df_err *err)
{
    return names_keys ? df_err_wrap(err, "%s", key) : -1;
}

const char *df_driver_own_name(const char *name, const char *prefix)
{
    bool is_ours = df_blob_path_is_good(name) && df_starts_with(name, prefix);
    return is_ours ? name + strlen(prefix) : NULL;
}

int df_driver_set_version(const struct df_bucket *b, const char *name, const char *etag,
                          struct df_bucket_version *ret, struct df_err *err)
{
    if (!*etag || strlen(etag) >= sizeof(ret->text))
        return df_fail(err, DF_ERR_SYSTEM, "get %s of %s: \"%s\" is not an ETag", name, b->place,
                       etag);
    (void)snprintf(ret->text, sizeof(ret->text), "%s", etag);
    return 0;
}

int df_driver_file_begin(struct df_driver_file *f, int fd, int64_t max, struct df_err *err)
{
    *f = (struct df_driver_file){.fd = fd, .left = max};
    return ftruncate(fd, 0) < 0 || lseek(fd, 0, SEEK_SET) < 0
               ? df_fail_errno(err, errno, "empty the file of an object")
               : 0;
}

int df_driver_file_take(void *arg, const char *bytes, size_t n)
{
    struct df_driver_file *f = arg;
    if ((int64_t)n > f->left)
        return df_fail(&f->err, DF_ERR_LIMIT, "the object is too large");
    f->left -= (int64_t)n;
    return df_fs_write_all(f->fd, bytes, n, &f->err);
}

int df_driver_file_end(const struct df_driver_file *f, struct df_err *err)
{
    return f->err.cls ? df_err_pass(err, &f->err) : 0;
}

enum df_err_class df_driver_class_of(int status)
{
    switch (status) {
    case 401:
    case 403:
        return DF_ERR_DENIED;
    case 412:
        return DF_ERR_CONFLICT;
    case 429:
        return DF_ERR_RETRY;
    default:
        return status < 400 ? DF_ERR_USER : status < 500 ? DF_ERR_SYSTEM : DF_ERR_RETRY;
    }
}
