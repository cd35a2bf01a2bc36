#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/yaml/yaml.h"
#include "spawner/config/config.h"

static int open_private(const char *path, int *ret, struct df_err *err)
{
    DF_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0)
        return df_fail_errno(err, errno, "open");
    if (st.st_mode & 077)
        return df_fail(err, DF_ERR_USER, "others may read it: chmod 600 is needed");
    *ret = DF_TAKE_FD(fd);
    return 0;
}

static int check_hosts(const cJSON *hosts, struct df_err *err)
{
    if (!cJSON_IsObject(hosts))
        return df_fail(err, DF_ERR_USER, "must be a list of \"host: token\"");
    for (const cJSON *h = hosts->child; h; h = h->next)
        if (!cJSON_IsString(h) || !*h->valuestring)
            return df_fail(err, DF_ERR_USER, "the token of \"%.100s\" must be a string", h->string);
    return 0;
}

static int read_hosts(const char *path, cJSON **ret, struct df_err *err)
{
    DF_CLOSE int fd = -1;
    struct df_buf text = DF_BUF_INIT(DF_LIMIT_DOCUMENT);
    cJSON *hosts = NULL;
    int result = open_private(path, &fd, err);
    if (result == 0)
        result = df_fs_read_fd(fd, &text, err);
    if (result == 0)
        result = df_yaml_parse(df_buf_str(&text), text.len, &hosts, NULL, err);
    if (result == 0)
        result = check_hosts(hosts, err);
    df_buf_wipe(&text);
    if (result < 0) {
        df_json_wipe(hosts);
        return df_err_wrap(err, "providers.credentialsFile %s", path);
    }
    *ret = hosts;
    return 0;
}

int df_config_credentials(const struct df_config *c, cJSON **ret, struct df_err *err)
{
    if (c->registry_credentials_file)
        return read_hosts(c->registry_credentials_file, ret, err);
    cJSON *none = cJSON_CreateObject();
    if (!none)
        return df_fail_oom(err);
    *ret = none;
    return 0;
}
