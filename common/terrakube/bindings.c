#include "common/terrakube/bindings.h"

#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>

#include "common/base/fs.h"
#include "common/base/strs.h"
#include "common/crypto/truststore.h"

/* The names in a directory, in order, without those that begin with a dot: a mounted Secret has its
 * files twice, once below "..data". */
static int list(const char *path, struct df_strs *ret, struct df_err *err)
{
    struct dirent **entries = NULL;
    int n = scandir(path, &entries, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        if (entries[i]->d_name[0] != '.')
            (void)df_strs_add(ret, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    if (n < 0 && errno != ENOENT && errno != ENOTDIR)
        return df_fail_errno(err, errno, "read the bindings in %s", path);
    return df_strs_check(ret, err);
}

/* Is the binding in this directory one of authorities? */
static bool has_authorities(const char *directory)
{
    DF_BUF struct df_buf type = DF_BUF_INIT(DF_KIB);
    DF_FREE char *path = df_fs_join(directory, "type");
    if (!path || df_fs_read(path, &type, NULL) < 0)
        return false;
    size_t n = strcspn(df_buf_str(&type), "\r\n \t");
    return n == strlen("ca-certificates") && df_starts_with(df_buf_str(&type), "ca-certificates");
}

static int add_file(const char *path, struct df_buf *out, struct df_err *err)
{
    DF_BUF struct df_buf content = DF_BUF_INIT(DF_LIMIT_TRUST);
    struct df_err why = {0};
    struct stat st;
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return 0;
    if (df_fs_read(path, &content, err) < 0)
        return -1;
    if (df_truststore_read(df_buf_str(&content), content.len, NULL, out, &why) == 0)
        return 0;
    return why.cls == DF_ERR_USER
               ? df_fail_reason(err, DF_ERR_USER, "SettingInvalid",
                                "the binding %s has type ca-certificates and must be PEM: %s", path,
                                why.message)
               : df_err_pass(err, &why);
}

static int add_binding(const char *directory, struct df_buf *out, struct df_err *err)
{
    DF_STRS struct df_strs names = {0};
    if (!has_authorities(directory))
        return 0;
    if (list(directory, &names, err) < 0)
        return -1;
    for (size_t i = 0; i < names.len; i++) {
        if (df_streq(names.items[i], "type") || df_streq(names.items[i], "provider"))
            continue;
        DF_FREE char *path = df_fs_join(directory, names.items[i]);
        if (df_check_alloc(path, err) < 0 || add_file(path, out, err) < 0)
            return -1;
    }
    return 0;
}

int df_terrakube_bindings_read(const char *root, struct df_buf *out, struct df_err *err)
{
    DF_STRS struct df_strs names = {0};
    if (list(root, &names, err) < 0)
        return -1;
    for (size_t i = 0; i < names.len; i++) {
        DF_FREE char *directory = df_fs_join(root, names.items[i]);
        if (df_check_alloc(directory, err) < 0 || add_binding(directory, out, err) < 0)
            return -1;
    }
    return 0;
}
