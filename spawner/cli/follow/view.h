/*
 * view.h - prints the output of a followed run: the log, lines about its progress, and on a
 * terminal a status line at the bottom.
 *
 * A pipe gets the same lines without colours and without the status line. Thread rule: main thread.
 */
#ifndef DF_CLI_VIEW_H
#define DF_CLI_VIEW_H

#include "common/json/json.h"
#include "spawner/cli/follow/paint.h"

struct df_view {
    int fd;        /* -1: no output */
    bool terminal; /* fd is a terminal: text is made safe for it */
    bool live;     /* has a status line: the terminal can erase it */
    bool color;    /* colours for dayfly's lines and for the log */
    bool torn;     /* the line of the log began in an earlier part */
    struct df_paint paint;
    char note[1024];    /* the beginning of the runner's last line in the log ("dayfly: ...") */
    struct df_buf line; /* an incomplete line of the log */
    char status[160];   /* "plan: running", or "" */
    int64_t since_us;   /* monotonic: since when the status has this text */
    unsigned frame;     /* of the spinner */
    bool drawn;         /* the status line is on the screen */
};

enum df_tone { DF_TONE_PLAIN, DF_TONE_STRONG, DF_TONE_GOOD, DF_TONE_BAD, DF_TONE_DIM };

/* terminal: fd is one. A terminal that cannot erase a line (TERM=dumb) gets no status line. */
void df_view_init(struct df_view *v, int fd, bool terminal, bool color);
void df_view_free(struct df_view *v);

/* Prints the next n bytes of the log. */
void df_view_log(struct df_view *v, const char *text, size_t n);
/* The same for a piece of a followed log: {"text", "bytes" (base64), if the text does not say
 * them}. Returns whether it has any. */
bool df_view_piece(struct df_view *v, const cJSON *piece);

/* Prints a line about the progress; ends an incomplete line of the log first. */
void df_view_say(struct df_view *v, enum df_tone tone, const char *fmt, ...) DF_PRINTF(3, 4);

/* Sets the text of the status line. Its clock starts anew when the text changes. */
void df_view_status(struct df_view *v, const char *fmt, ...) DF_PRINTF(2, 3);
/* Removes the status line. */
void df_view_idle(struct df_view *v);
/* Redraws the status line. Call it every DF_VIEW_TICK_MS while live. */
#define DF_VIEW_TICK_MS 100
void df_view_tick(struct df_view *v);

/* Prints a question without a newline at its end. */
void df_view_ask(struct df_view *v, const char *question);

#endif
