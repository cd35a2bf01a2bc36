#include "spawner/cli/value.h"

#include <termios.h>

#include "common/base/fs.h"
#include "spawner/cli/text.h"

#define CTRL_C 3
#define CTRL_D 4

/* Reads one line from the terminal without echo. Signals are disabled meanwhile, so that Ctrl-C
 * cannot end the process before the echo is restored. */
static int read_hidden(const char *prompt, struct df_buf *out, struct df_err *err)
{
    struct termios shown, hidden;
    if (tcgetattr(STDIN_FILENO, &shown) < 0)
        return df_fail(err, DF_ERR_SYSTEM,
                       "cannot hide what is typed; give the value as a file or on standard input");
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

/* Removes a final newline: `echo value | dayfly ...` means the value without it. */
static void drop_newline(struct df_buf *b)
{
    if (b->len && b->data[b->len - 1] == '\n')
        b->data[--b->len] = '\0';
    if (b->len && b->data[b->len - 1] == '\r')
        b->data[--b->len] = '\0';
}

int df_value_read(const struct df_cli *cli, const char *prompt, const char *file,
                  struct df_buf *out, struct df_err *err)
{
    if (file && !df_streq(file, "-")) {
        if (df_fs_read(file, out, err) == 0)
            return 0;
        err->cls = DF_ERR_USER;
        return -1;
    }
    if (cli->in_tty && !file)
        return read_hidden(prompt, out, err);
    if (df_fs_read_fd(STDIN_FILENO, out, err) < 0)
        return df_err_wrap(err, "standard input");
    drop_newline(out);
    return 0;
}
