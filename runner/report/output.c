/*
 * Two inputs (text and events) become two outputs (log and events), both redacted. All text passes
 * one redactor, because a secret may span two pieces; events are redacted one by one (events.c),
 * and lines of a provisioner together (held.c).
 */
#include "runner/report/output.h"

#include <errno.h>
#include <stdarg.h>

#include "common/base/fs.h"
#include "common/base/limits.h"
#include "runner/report/events.h"
#include "runner/report/held.h"

enum { PIECE = 64 * 1024, NOTE_MAX = 16 * 1024 };

struct df_output {
    struct df_masks *masks;
    struct df_report *report;
    int echo_fd;
    struct df_redact *text; /* redactor of the log, in order */
    struct df_held *held;   /* events that are not decided */
    bool mid_line;
    bool is_muted;
    bool spool_failed;   /* reported once */
    struct df_buf clean; /* scratch; emptied before each use */
    struct df_buf line;  /* incomplete line of the event stream */
    bool long_line;      /* too long: its start was already passed on as text */
    bool render;         /* also as text */
    bool destroys;       /* the plan that is applied destroys */
    struct df_output_summary summary;
};

static int show_event(void *arg, cJSON *event, const char *line, size_t n, struct df_err *err);

/* With the current masks. */
static int make_redactors(struct df_output *o, struct df_err *err)
{
    df_redact_free(o->text);
    df_held_free(o->held);
    o->text = NULL;
    o->held = NULL;
    return df_redact_new(df_masks_set(o->masks), &o->text, err) < 0
               ? -1
               : df_held_new(df_masks_set(o->masks), show_event, o, &o->held, err);
}

int df_output_new(struct df_masks *masks, struct df_report *report, int echo_fd,
                  struct df_output **ret, struct df_err *err)
{
    struct df_output *o = calloc(1, sizeof *o);
    if (!o)
        return df_fail_oom(err);
    o->masks = masks;
    o->report = report;
    o->echo_fd = echo_fd;
    o->clean = DF_BUF_INIT(4 * DF_LIMIT_EVENT_LINE);
    o->line = DF_BUF_INIT(DF_LIMIT_EVENT_LINE);
    if (make_redactors(o, err) < 0) {
        df_output_free(o);
        return -1;
    }
    *ret = o;
    return 0;
}

void df_output_free(struct df_output *o)
{
    if (!o)
        return;
    df_redact_free(o->text);
    df_held_free(o->held);
    df_buf_wipe(&o->line); /* not redacted yet */
    df_buf_free(&o->clean);
    free(o);
}

/* --- masks ----------------------------------------------------------------------------------- */

static int renew(struct df_output *o, struct df_err *err)
{
    bool changed = false;
    if (df_masks_renew(o->masks, &changed, err) < 0)
        return -1;
    if (!changed)
        return 0;
    return df_redact_widen(&o->text, df_masks_set(o->masks), err) < 0
               ? -1
               : df_held_widen(o->held, df_masks_set(o->masks), err);
}

int df_output_renew(struct df_output *o, int *ret_next_ms, struct df_err *err)
{
    *ret_next_ms = df_masks_may_change(o->masks) ? DF_MASKS_RENEW_MS : -1;
    return renew(o, err);
}

/* --- text ------------------------------------------------------------------------------------ */

/* The copy on stdout is optional: once stdout is closed, the report continues without it. */
static void echo(struct df_output *o, const char *bytes, size_t n)
{
    if (o->echo_fd >= 0 && df_fs_write_all(o->echo_fd, bytes, n, NULL) < 0)
        o->echo_fd = -1;
}

static void note_spool_failed(struct df_output *o, const struct df_err *why)
{
    if (o->spool_failed)
        return;
    o->spool_failed = true;
    char line[NOTE_MAX];
    int n = snprintf(line, sizeof line, "dayfly: some of the log is lost: %s\n", why->message);
    echo(o, line, (size_t)n);
}

static void deliver_log(struct df_output *o)
{
    struct df_err why = {0};
    if (df_report_log(o->report, df_buf_str(&o->clean), o->clean.len, &why) < 0)
        note_spool_failed(o, &why);
    echo(o, df_buf_str(&o->clean), o->clean.len);
}

static int add_text(struct df_output *o, const char *bytes, size_t n, struct df_err *err)
{
    while (n && !o->is_muted) {
        size_t piece = n < PIECE ? n : PIECE;
        df_buf_clear(&o->clean);
        if (df_redact_feed(o->text, bytes, piece, &o->clean, err) < 0)
            return -1;
        deliver_log(o);
        o->mid_line = bytes[piece - 1] != '\n';
        bytes += piece;
        n -= piece;
    }
    return 0;
}

int df_output_text(struct df_output *o, const char *bytes, size_t n, struct df_err *err)
{
    return renew(o, err) < 0 ? -1 : add_text(o, bytes, n, err);
}

int df_output_note(struct df_output *o, const char *fmt, ...)
{
    DF_BUF struct df_buf b = DF_BUF_INIT(NOTE_MAX);
    char text[NOTE_MAX - 16];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (df_buf_addf(&b, "%s%s\n", o->mid_line ? "\n" : "", text) < 0)
        return -1;
    return df_output_text(o, b.data, b.len, NULL);
}

/* --- events ---------------------------------------------------------------------------------- */

/* Of one that is not a provisioner's line the strings are redacted: rendered, their lines may stand
 * apart. */
static int render_event(struct df_output *o, const cJSON *event, struct df_err *err)
{
    DF_BUF struct df_buf text = DF_BUF_INIT(4 * DF_LIMIT_EVENT_LINE);
    if (!o->render)
        return 0;
    return df_event_render(event, o->destroys, &text, err) < 0
               ? -1
               : add_text(o, df_buf_str(&text), text.len, err);
}

static int show_event(void *arg, cJSON *event, const char *line, size_t n, struct df_err *err)
{
    struct df_output *o = arg;
    struct df_err why = {0};
    df_buf_clear(&o->clean);
    if (df_event_redact(event, line, n, df_masks_set(o->masks), &o->clean, err) < 0)
        return -1;
    if (df_buf_addc(&o->clean, '\n') == 0 &&
        df_report_event(o->report, o->clean.data, o->clean.len, &why) < 0)
        note_spool_failed(o, &why);
    return 0;
}

/* Takes over the event, whose line is in o->line. */
static int take_event(struct df_output *o, cJSON **event, struct df_err *err)
{
    if (df_event_count(*event, df_masks_set(o->masks), &o->summary, err) < 0)
        return -1;
    if (df_event_is_progress(*event))
        return render_event(o, *event, err) < 0
                   ? -1
                   : df_held_add(o->held, DF_TAKE(*event), o->line.data, o->line.len, err);
    return df_held_end(o->held, err) < 0 ||
                   show_event(o, *event, o->line.data, o->line.len, err) < 0
               ? -1
               : render_event(o, *event, err);
}

/* One whole line is in o->line, without its newline. */
static int take_line(struct df_output *o, struct df_err *err)
{
    DF_JSON cJSON *event = NULL;
    int result = 0;
    if (!o->long_line && df_event_parse(df_buf_str(&o->line), o->line.len, &event))
        result = take_event(o, &event, err);
    else if (df_buf_addc(&o->line, '\n') == 0)
        result = add_text(o, o->line.data, o->line.len, err);
    df_buf_clear(&o->line);
    o->long_line = false;
    return result;
}

/* A line that is too long for an event counts as text; its parts are passed on as they arrive. */
static int take_part(struct df_output *o, const char *bytes, size_t n, struct df_err *err)
{
    if (!o->long_line && o->line.len + n < o->line.max)
        return df_buf_add(&o->line, bytes, n) < 0 ? df_buf_check(&o->line, err) : 0;
    o->long_line = true;
    if (add_text(o, df_buf_str(&o->line), o->line.len, err) < 0)
        return -1;
    df_buf_clear(&o->line);
    return add_text(o, bytes, n, err);
}

int df_output_events(struct df_output *o, const char *bytes, size_t n, bool render,
                     struct df_err *err)
{
    o->render = render;
    const char *end = bytes + n;
    if (renew(o, err) < 0)
        return -1;
    while (bytes < end) {
        const char *newline = memchr(bytes, '\n', (size_t)(end - bytes));
        if (take_part(o, bytes, (size_t)((newline ? newline : end) - bytes), err) < 0)
            return -1;
        if (!newline)
            break;
        if (take_line(o, err) < 0)
            return -1;
        bytes = newline + 1;
    }
    return 0;
}

int df_output_flush(struct df_output *o, struct df_err *err)
{
    if (renew(o, err) < 0)
        return -1;
    if (o->line.len && take_line(o, err) < 0)
        return -1;
    o->long_line = false;
    if (df_held_end(o->held, err) < 0)
        return -1;
    df_buf_clear(&o->clean);
    if (df_redact_finish(o->text, &o->clean, err) < 0)
        return -1;
    deliver_log(o);
    return 0;
}

int df_output_end_line(struct df_output *o, struct df_err *err)
{
    return o->mid_line ? df_output_text(o, "\n", 1, err) : 0;
}

int df_output_hide(struct df_output *o, const struct df_strs *values, struct df_err *err)
{
    return df_output_flush(o, err) < 0 || df_masks_replace(o->masks, values, err) < 0
               ? -1
               : make_redactors(o, err);
}

int df_output_hide_also(struct df_output *o, const char *value, struct df_err *err)
{
    return df_masks_add_value(o->masks, value, err) < 0 ? -1 : renew(o, err);
}

void df_output_destroys(struct df_output *o)
{
    o->destroys = true;
}

void df_output_mute(struct df_output *o, bool is_muted)
{
    o->is_muted = is_muted;
}

const struct df_output_summary *df_output_summary(const struct df_output *o)
{
    return &o->summary;
}

void df_output_expect_changes(struct df_output *o)
{
    struct df_output_summary *s = &o->summary;
    s->seen = true;
    if (df_changes_total(&s->changes) == 0 && !s->output_changes && !s->reads)
        s->changes.of[DF_CHANGES_OTHER] = 1;
}

void df_output_moved(struct df_output *o, int64_t count)
{
    o->summary.changes.of[DF_CHANGES_MOVE] = count;
}

void df_output_reset(struct df_output *o)
{
    o->summary = (struct df_output_summary){0};
}
