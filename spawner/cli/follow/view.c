/*
 * The output of a followed run: log lines, lines about its progress, and on a terminal a status
 * line at the bottom, which is erased before anything else is written. The functions build text
 * with add_... and write it once with put().
 */
#include "spawner/cli/follow/view.h"

#include <stdarg.h>
#include <sys/ioctl.h>

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/crypto/crypto.h"
#include "spawner/cli/text.h"

#define LINE_MAX_BYTES (64 * DF_KIB) /* a longer line is shown in pieces */
#define ERASE_LINE "\r\x1b[K"

static const char *const tones[] = {"", "\x1b[1m", "\x1b[32m", "\x1b[31m", "\x1b[2m"};

void df_view_init(struct df_view *v, int fd, bool terminal, bool color)
{
    *v = (struct df_view){.fd = fd,
                          .terminal = terminal,
                          .live = terminal && !df_streq(getenv("TERM"), "dumb"),
                          .color = color,
                          .line = DF_BUF_INIT(LINE_MAX_BYTES)};
}

static void put(const struct df_view *v, const struct df_buf *b)
{
    if (v->fd >= 0 && b->len)
        df_text_write(v->fd, b->data, b->len);
}

static void add_erase(struct df_view *v, struct df_buf *out)
{
    if (v->drawn)
        (void)df_buf_adds(out, ERASE_LINE);
    v->drawn = false;
}

static size_t terminal_width(const struct df_view *v)
{
    struct winsize w = {0};
    return ioctl(v->fd, TIOCGWINSZ, &w) == 0 && w.ws_col > 0 ? w.ws_col : 80;
}

/* Appends the status line, cut to the width of the terminal: a wrapped line could not be erased. */
static void add_status(struct df_view *v, struct df_buf *out)
{
    if (!v->live || !v->status[0])
        return;
    char took[DF_SHORT_TEXT], text[sizeof(v->status) + DF_SHORT_TEXT + 8];
    (void)snprintf(text, sizeof(text), "%c %s  %s", "|/-\\"[v->frame % 4], v -> status,
                   df_text_duration(df_mono_us() - v->since_us, took));
    (void)df_buf_addf(out, "%s%.*s%s", v->color ? tones[DF_TONE_DIM] : "",
                      (int)terminal_width(v) - 1, text, v->color ? "\x1b[0m" : "");
    v->drawn = true;
}

void df_view_tick(struct df_view *v)
{
    DF_BUF struct df_buf out = DF_BUF_INIT(LINE_MAX_BYTES);
    v->frame++;
    add_erase(v, &out);
    add_status(v, &out);
    put(v, &out);
}

static void add_line(struct df_view *v, struct df_buf *out)
{
    const char *text = df_buf_str(&v->line);
    size_t n = v->line.len;
    bool torn = v->torn;
    v->torn = n && text[n - 1] != '\n';
    if (!torn && df_starts_with(text, "dayfly: "))
        (void)snprintf(v->note, sizeof(v->note), "%.*s", (int)strcspn(text, "\n"), text);
    if (!v->terminal) {
        (void)df_buf_add(out, text, n);
        return;
    }
    DF_BUF struct df_buf safe = DF_BUF_INIT(2 * LINE_MAX_BYTES);
    df_text_safe(&safe, text, n);
    if (v->color && !torn && !v->torn)
        df_paint_line(&v->paint, df_buf_str(&safe), safe.len, out);
    else
        (void)df_buf_add(out, df_buf_str(&safe), safe.len);
}

/* Adds whole lines to out, and keeps an incomplete line until its newline arrives. */
static void add_log(struct df_view *v, const char *text, size_t n, struct df_buf *out)
{
    while (n) {
        const char *newline = memchr(text, '\n', n);
        size_t take = newline ? (size_t)(newline - text) + 1 : n;
        size_t room = v->line.max - v->line.len;
        take = take > room ? room : take;
        (void)df_buf_add(&v->line, text, take);
        bool whole = v->line.len && v->line.data[v->line.len - 1] == '\n';
        if (whole || v->line.len == v->line.max) {
            add_line(v, out);
            df_buf_clear(&v->line);
        }
        text += take;
        n -= take;
    }
}

void df_view_log(struct df_view *v, const char *text, size_t n)
{
    if (v->fd < 0)
        return;
    DF_BUF struct df_buf out = DF_BUF_INIT(DF_LIMIT_SSE_EVENT * 2);
    add_erase(v, &out);
    add_log(v, text, n, &out);
    add_status(v, &out);
    put(v, &out);
}

bool df_view_piece(struct df_view *v, const cJSON *piece)
{
    const char *text = df_json_str(piece, "text"), *bytes = df_json_str(piece, "bytes");
    DF_BUF struct df_buf exact = DF_BUF_INIT(DF_LIMIT_SSE_EVENT);
    if (!text)
        return false;
    if (!bytes || df_base64_decode(bytes, strlen(bytes), false, &exact, NULL) < 0) {
        df_buf_clear(&exact);
        (void)df_json_add_bytes(&exact, text);
    }
    df_view_log(v, df_buf_str(&exact), exact.len);
    return exact.len > 0;
}

static void finish_line(struct df_view *v, struct df_buf *out)
{
    if (!v->line.len)
        return;
    add_line(v, out);
    (void)df_buf_addc(out, '\n');
    df_buf_clear(&v->line);
    v->torn = false;
}

void df_view_say(struct df_view *v, enum df_tone tone, const char *fmt, ...)
{
    DF_BUF struct df_buf out = DF_BUF_INIT(2 * LINE_MAX_BYTES);
    char text[2048];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    add_erase(v, &out);
    finish_line(v, &out);
    bool painted = v->color && tone != DF_TONE_PLAIN;
    (void)df_buf_adds(&out, painted ? tones[tone] : "");
    df_text_safe(&out, text, strlen(text));
    (void)df_buf_addf(&out, "%s\n", painted ? "\x1b[0m" : "");
    add_status(v, &out);
    put(v, &out);
}

static void set_status(struct df_view *v, const char *text)
{
    if (df_streq(text, v->status))
        return;
    (void)snprintf(v->status, sizeof(v->status), "%s", text);
    v->since_us = df_mono_us();
    DF_BUF struct df_buf out = DF_BUF_INIT(LINE_MAX_BYTES);
    add_erase(v, &out);
    add_status(v, &out);
    put(v, &out);
}

void df_view_status(struct df_view *v, const char *fmt, ...)
{
    char text[sizeof(v->status)];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    set_status(v, text);
}

void df_view_idle(struct df_view *v)
{
    set_status(v, "");
}

void df_view_ask(struct df_view *v, const char *question)
{
    df_view_idle(v);
    DF_BUF struct df_buf out = DF_BUF_INIT(2 * LINE_MAX_BYTES);
    finish_line(v, &out);
    (void)df_buf_addf(&out, "%s%s%s ", v->color ? tones[DF_TONE_STRONG] : "", question,
                      v->color ? "\x1b[0m" : "");
    put(v, &out);
}

void df_view_free(struct df_view *v)
{
    DF_BUF struct df_buf out = DF_BUF_INIT(2 * LINE_MAX_BYTES);
    add_erase(v, &out);
    finish_line(v, &out);
    put(v, &out);
    df_buf_free(&v->line);
}
