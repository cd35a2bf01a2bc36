/* dayfly secret ...: values go in by a file, a pipe or a prompt, and never come out again. */
#include <termios.h>

#include "common/base/fs.h"
#include "spawner/cli/commands.h"
#include "spawner/cli/text.h"

#define CTRL_C 3
#define CTRL_D 4

/* One line from the terminal without showing it. Signals are off meanwhile, so that Ctrl-C cannot
 * leave a terminal behind that shows nothing. */
static int read_hidden(const char *prompt, struct df_buf *out, struct df_err *err)
{
    struct termios shown, hidden;
    if (tcgetattr(STDIN_FILENO, &shown) < 0)
        return df_fail(err, DF_ERR_SYSTEM, "cannot hide what is typed; use --from-file");
    hidden = shown;
    hidden.c_lflag &= ~(tcflag_t)(ECHO | ISIG | ICANON);
    (void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &hidden);
    df_text_write(STDERR_FILENO, prompt, strlen(prompt));
    unsigned char c = 0;
    while (read(STDIN_FILENO, &c, 1) == 1 && c != '\n' && c != CTRL_C && c != CTRL_D) {
        if (c != shown.c_cc[VERASE] && c != '\b')
            (void)df_buf_add(out, &c, 1);
        else if (out->len)
            out->data[--out->len] = '\0';
    }
    (void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &shown);
    df_text_write(STDERR_FILENO, "\n", 1);
    return c == CTRL_C ? df_fail(err, DF_ERR_USER, "interrupted; nothing was set") : 0;
}

static int read_prompt(const char *name, const char *key, struct df_buf *out, struct df_err *err)
{
    DF_FREE char *prompt = df_strf("Value of %s/%s (not shown): ", name, key);
    return prompt ? read_hidden(prompt, out, err) : df_fail_oom(err);
}

/* `echo value | dayfly secret set` means the value without echo's newline. */
static void drop_newline(struct df_buf *b)
{
    if (b->len && b->data[b->len - 1] == '\n')
        b->data[--b->len] = '\0';
    if (b->len && b->data[b->len - 1] == '\r')
        b->data[--b->len] = '\0';
}

static int read_value(const struct df_cli *cli, const char *name, const char *key,
                      struct df_buf *out, struct df_err *err)
{
    const char *file = df_arg(&cli->args, "from-file");
    if (file && !df_streq(file, "-")) {
        if (df_fs_read(file, out, err) < 0) {
            err->cls = DF_ERR_USER;
            return df_err_wrap(err, "--from-file");
        }
        return 0;
    }
    if (cli->in_tty && !file)
        return read_prompt(name, key, out, err);
    if (df_fs_read_fd(STDIN_FILENO, out, err) < 0)
        return df_err_wrap(err, "standard input");
    drop_newline(out);
    return 0;
}

static int put_value(struct df_cli *cli, const char *name, const char *key,
                     const struct df_buf *value, struct df_err *err)
{
    if (!value->len)
        return df_fail(err, DF_ERR_USER, "the value is empty; nothing was set");
    DF_FREE char *path = df_path("secrets", name, key, NULL);
    if (!path)
        return df_fail_oom(err);
    if (df_cli_connect(cli, err) < 0 ||
        df_client_put_bytes(cli->client, path, df_buf_str(value), value->len, err) < 0)
        return -1;
    DF_FREE char *line = df_strf("secret/%s key %s set\n", name, key);
    return line ? df_cli_print(line, err) : df_fail_oom(err);
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
    DF_FREE char *path = df_path("secrets", name, key, NULL);
    if (!path)
        return df_fail_oom(err);
    if (df_cli_call(cli, "DELETE", path, NULL, NULL, err) < 0)
        return -1;
    DF_FREE char *line =
        df_strf("secret/%s%s%s deleted\n", name, key ? " key " : "", key ? key : "");
    return line ? df_cli_print(line, err) : df_fail_oom(err);
}
