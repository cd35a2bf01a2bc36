/* dayfly secret set, allow, list, delete: a value is read from a file, a pipe or a prompt, and is
 * never printed. */
#include "spawner/cli/commands.h"
#include "spawner/cli/value.h"

static int read_value(const struct df_cli *cli, const char *name, const char *key,
                      struct df_buf *out, struct df_err *err)
{
    const char *file = df_arg(&cli->args, "from-file");
    DF_FREE char *prompt = df_strf("Value of %s/%s (not shown): ", name, key);
    if (!prompt)
        return df_fail_oom(err);
    if (df_value_read(cli, prompt, file, out, err) == 0)
        return 0;
    return file && !df_streq(file, "-") ? df_err_wrap(err, "--from-file") : -1;
}

/* The path of a secret or its key (NULL: none) with the options that all changes share; the caller
 * frees. NULL if out of memory. */
static char *path_of(const struct df_cli *cli, const char *name, const char *key)
{
    const char *executors = df_arg(&cli->args, "executor");
    const char *force = df_arg_given(&cli->args, "force") ? "true" : "false";
    DF_FREE char *path = df_path("secrets", name, key, NULL);
    DF_FREE char *escaped = df_url_escape(executors ? executors : "");
    if (!path || !escaped)
        return NULL;
    return executors ? df_strf("%s?force=%s&executors=%s", path, force, escaped)
                     : df_strf("%s?force=%s", path, force);
}

static int put_value(struct df_cli *cli, const char *name, const char *key,
                     const struct df_buf *value, struct df_err *err)
{
    if (!value->len)
        return df_fail(err, DF_ERR_USER, "the value is empty; nothing was set");
    DF_FREE char *path = path_of(cli, name, key);
    if (df_check_alloc(path, err) < 0 || df_cli_connect(cli, err) < 0 ||
        df_client_put_bytes(cli->client, path, df_buf_str(value), value->len, err) < 0)
        return -1;
    return df_cli_printf(err, "secret/%s key %s set\n", name, key);
}

int df_cmd_secret_set(struct df_cli *cli, struct df_err *err)
{
    const char *name = NULL, *key = df_cli_word(cli, 1);
    if (df_cli_name(cli, 0, "secret", &name, err) < 0)
        return -1;
    if (cli->args.word_count > 2 || strchr(key, '='))
        return df_fail(err, DF_ERR_USER,
                       "a value on the command line is seen by everybody on this machine (ps) and "
                       "kept by the shell; give it on standard input, with --from-file or at the "
                       "prompt");
    struct df_buf value = DF_BUF_INIT(DF_LIMIT_SECRET_VALUE);
    int result = read_value(cli, name, key, &value, err);
    if (result == 0)
        result = put_value(cli, name, key, &value, err);
    df_buf_wipe(&value);
    return result;
}

int df_cmd_secret_allow(struct df_cli *cli, struct df_err *err)
{
    const char *name = NULL, *executors = df_arg(&cli->args, "executor");
    if (df_cli_name(cli, 0, "secret", &name, err) < 0)
        return -1;
    if (!executors)
        return df_fail(err, DF_ERR_USER,
                       "name the executors that may use the secret: --executor a,b, or "
                       "--executor '*' for every one");
    DF_FREE char *path = path_of(cli, name, NULL);
    if (df_cli_call(cli, "PUT", path, NULL, NULL, err) < 0)
        return -1;
    return df_cli_printf(err, "secret/%s is for %s\n", name,
                         df_streq(executors, "*") ? "every executor" : executors);
}

int df_cmd_secret_list(struct df_cli *cli, struct df_err *err)
{
    char kind[] = "secrets", *words[] = {kind, NULL};
    cli->args.words = words;
    cli->args.word_count = 1;
    return df_cmd_get(cli, err);
}

int df_cmd_secret_delete(struct df_cli *cli, struct df_err *err)
{
    const char *name = NULL, *key = df_cli_word(cli, 1);
    if (df_cli_name(cli, 0, "secret", &name, err) < 0)
        return -1;
    DF_FREE char *path = path_of(cli, name, key);
    if (df_cli_call(cli, "DELETE", path, NULL, NULL, err) < 0)
        return -1;
    return df_cli_printf(err, "secret/%s%s%s deleted\n", name, key ? " key " : "", key ? key : "");
}
