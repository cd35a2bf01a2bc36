#include "spawner/identity/local_token.h"

#include <errno.h>
#include <unistd.h>

#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/crypto/crypto.h"

static char *token_path(const char *data_directory)
{
    return df_fs_join(data_directory, "token");
}

/* *ret NULL: there is no token that only this user can know. */
static int read_private(const char *path, char **ret, struct df_err *err)
{
    DF_CLEANUP(df_buf_wipe) struct df_buf text = DF_BUF_INIT(DF_LIMIT_TOKEN);
    struct df_err why = {0};
    *ret = NULL;
    if (df_fs_read_private(path, &text, &why) < 0) {
        bool is_none = df_streq(why.reason, "NotPrivate") || why.os_errno == ENOENT ||
                       why.os_errno == EACCES || why.os_errno == ENOTDIR;
        return is_none ? 0 : df_err_pass(err, &why);
    }
    size_t n = strcspn(df_buf_str(&text), "\r\n");
    if (n < 2 * DF_KEY_LEN) /* cut by a full disk, or written by hand */
        return 0;
    return df_check_alloc(*ret = strndup(df_buf_str(&text), n), err);
}

int df_local_token_read(const char *data_directory, char **ret, struct df_err *err)
{
    DF_FREE char *path = token_path(data_directory);
    return path ? read_private(path, ret, err) : df_fail_oom(err);
}

int df_local_token_make(const char *data_directory, char **ret, struct df_err *err)
{
    DF_FREE char *path = token_path(data_directory);
    char text[DF_KEY_TEXT + 1];
    if (df_check_alloc(path, err) < 0 || read_private(path, ret, err) < 0)
        return -1;
    if (*ret)
        return 0;
    if (df_key_make(text, err) < 0)
        return -1;
    int result = df_fs_replace(path, text, strlen(text), 0600, err);
    explicit_bzero(text, sizeof(text));
    return result < 0 ? -1 : read_private(path, ret, err);
}

int df_local_token_remove(const char *data_directory, struct df_err *err)
{
    DF_FREE char *path = token_path(data_directory);
    if (!path)
        return df_fail_oom(err);
    return unlink(path) < 0 && errno != ENOENT ? df_fail_errno(err, errno, "remove %s", path) : 0;
}
