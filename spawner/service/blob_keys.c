#include "spawner/service/blob_keys.h"

#include "common/process/process.h"
#include "spawner/config/key_files.h"

static int add_key(struct df_keyring *r, const unsigned char key[DF_KEY_LEN],
                   const char *config_key, struct df_err *err)
{
    return df_keyring_add(r, key, err) < 0 ? df_err_wrap(err, "%s", config_key) : 0;
}

/* ---- files ---- */

static int add_key_file(struct df_keyring *r, const char *path, struct df_err *err)
{
    unsigned char key[DF_KEY_LEN];
    if (df_config_key_file(path, key, err) < 0)
        return -1;
    int result = add_key(r, key, "blobs.keyFiles", err);
    explicit_bzero(key, sizeof(key));
    return result;
}

/* ---- the command ---- */

static int fail_command(const struct df_strs *command, int code, const struct df_buf *tail,
                        struct df_err *err)
{
    const char *text = df_buf_str(tail);
    return df_fail(err, DF_ERR_SYSTEM, "blobs.keyCommand: %s ended with exit code %d%s%.*s",
                   command->items[0], code, *text ? ": " : "", (int)strcspn(text, "\n"), text);
}

/* It has the service's own environment, where a client of a KMS finds its credentials. */
static int run_command(const struct df_strs *command, struct df_buf *out, struct df_err *err)
{
    DF_BUF struct df_buf tail = DF_BUF_INIT(4 * DF_KIB);
    const char *argv[DF_LIMIT_KEY_COMMAND + 1] = {0};
    int code = 0;
    if (command->len > DF_LIMIT_KEY_COMMAND)
        return df_fail(err, DF_ERR_USER, "blobs.keyCommand: has more than %d words",
                       DF_LIMIT_KEY_COMMAND);
    for (size_t i = 0; i < command->len; i++)
        argv[i] = command->items[i];
    const struct df_process_options o = DF_PROCESS_OPTIONS(argv, (const char *const *)environ);
    if (df_process_run(&o, DF_TIMEOUT_KEY_COMMAND_MS, out, &tail, &code, err) < 0)
        return df_err_wrap(err, "blobs.keyCommand");
    return code ? fail_command(command, code, &tail, err) : 0;
}

/* A key a line. */
static int add_lines(struct df_keyring *r, const struct df_strs *command, const char *text,
                     struct df_err *err)
{
    unsigned char key[DF_KEY_LEN];
    int result = 0;
    do {
        const char *end = strchr(text, '\n');
        size_t n = end ? (size_t)(end + 1 - text) : strlen(text);
        if (df_key_parse(text, n, key) < 0)
            result = df_fail(err, DF_ERR_USER, "blobs.keyCommand: %s must print " DF_KEY_WORDS,
                             command->items[0]);
        else
            result = add_key(r, key, "blobs.keyCommand", err);
        text += n;
    } while (result == 0 && *text);
    explicit_bzero(key, sizeof(key));
    return result;
}

static int add_key_command(struct df_keyring *r, const struct df_strs *command, struct df_err *err)
{
    DF_CLEANUP(df_buf_wipe)
    struct df_buf out = DF_BUF_INIT(DF_LIMIT_KEYRING * (DF_KEY_TEXT + 1));
    if (!command->len)
        return 0;
    return run_command(command, &out, err) < 0 ? -1 : add_lines(r, command, df_buf_str(&out), err);
}

/* ---- all of them ---- */

/* The instance's own key stands last: what it sealed before there were others can be read. */
int df_blob_keys(const struct df_config *config, struct df_vault *vault, struct df_keyring *ret,
                 struct df_err *err)
{
    const struct df_strs *files = &config->blob_key_files;
    unsigned char own[DF_KEY_LEN];
    if (add_key_command(ret, &config->blob_key_command, err) < 0)
        return -1;
    for (size_t i = 0; i < files->len; i++)
        if (add_key_file(ret, files->items[i], err) < 0)
            return -1;
    if (df_vault_key(vault, "blobs", own, err) < 0)
        return -1;
    int result = df_keyring_add(ret, own, err);
    explicit_bzero(own, sizeof(own));
    return result;
}
