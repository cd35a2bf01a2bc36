/*
 * view.h - a run as a person sees it: the log as it comes, a line for each turn of events, and on a
 * terminal one line at the bottom that says what is going on and for how long.
 *
 * A pipe gets the same lines without colours and without the last one. Thread rule: main thread.
 */
#ifndef DF_CLI_VIEW_H
#define DF_CLI_VIEW_H

#include "common/json/json.h"
#include "spawner/cli/paint.h"

struct df_view {
    int fd;        /* -1: nobody is looking */
    bool terminal; /* foreign text is made safe for it */
    bool live;     /* keeps a status line: a terminal that can erase one */
    bool color;    /* of our lines, and the tool's in what it logs */
    bool torn;     /* the line of the log began in an earlier piece */
    struct df_paint paint;
    char note[1024]; /* the last line of a runner's own in the log ("dayfly: ..."), its beginning */
    struct df_buf line; /* the end of the log, while its newline is still to come */
    char status[160];   /* "plan: running", or "" */
    int64_t since_us;   /* monotonic: when that began */
    unsigned frame;     /* of the spinner */
    bool drawn;         /* the status line is on the screen */
};

enum df_tone { DF_TONE_PLAIN, DF_TONE_STRONG, DF_TONE_GOOD, DF_TONE_BAD, DF_TONE_DIM };

/* terminal: fd is one. A terminal without cursor movements (TERM=dumb) gets no status line. */
void df_view_init(struct df_view *v, int fd, bool terminal, bool color);
void df_view_free(struct df_view *v);

/* The next n bytes of the log. */
void df_view_log(struct df_view *v, const char *text, size_t n);

/* A line of our own, on a line of its own. */
void df_view_say(struct df_view *v, enum df_tone tone, const char *fmt, ...) DF_PRINTF(3, 4);

/* What stands in the status line from now on. The clock starts again when the text changes. */
void df_view_status(struct df_view *v, const char *fmt, ...) DF_PRINTF(2, 3);
/* Nothing is under way: no status line. */
void df_view_idle(struct df_view *v);
/* Draws the status line anew. Call it every DF_VIEW_TICK_MS while live. */
#define DF_VIEW_TICK_MS 100
void df_view_tick(struct df_view *v);

/* A question that stays open at the end of the output. */
void df_view_ask(struct df_view *v, const char *question);

#endif
