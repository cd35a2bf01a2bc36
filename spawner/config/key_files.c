#include "spawner/config/key_files.h"

#include "common/base/fs.h"

#define WAY_OUT                                                                                    \
    "bring it back: without it the service does not start, and what it sealed cannot be read"

int df_config_key_file(const char *path, unsigned char ret[DF_KEY_LEN], struct df_err *err)
{
    DF_CLEANUP(df_buf_wipe) struct df_buf text = DF_BUF_INIT(DF_KEY_TEXT + 1);
    struct df_err why = {0};
    int result = df_fs_read(path, &text, &why);
    if (result < 0 && why.cls != DF_ERR_LIMIT)
        return df_fail(err, why.cls, "blobs.keyFiles: %s; " WAY_OUT, why.message);
    if (result < 0 || df_key_parse(df_buf_str(&text), text.len, ret) < 0)
        return df_fail(err, DF_ERR_USER, "blobs.keyFiles: %s must hold " DF_KEY_WORDS "; " WAY_OUT,
                       path);
    return 0;
}

int df_config_check_key_files(const struct df_config *c, struct df_err *err)
{
    unsigned char key[DF_KEY_LEN] = {0};
    int result = 0;
    for (size_t i = 0; i < c->blob_key_files.len && result == 0; i++)
        result = df_config_key_file(c->blob_key_files.items[i], key, err);
    explicit_bzero(key, sizeof(key));
    return result;
}
