/*
 * tool_run.c - df_tool_run() repeats a command that failed while it read the state: it has changed
 * nothing yet (ended_reading()). Then the failures: what the tool printed becomes an error for
 * people, masked and without colours.
 */
#include "runner/tool_run.h"

#include <poll.h>

#include "common/base/backoff.h"
#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "runner/torn.h"
#include "runner/work.h"

/* The tool itself waits for a spawner that restarts. These tries are for a spawner that dies again
 * while it sends the state. */
enum { TRIES_MAX = 5, PAUSE_MIN_MS = 1000, PAUSE_MAX_MS = 4000 };

#define ERRORS_MAX DF_MIB

static void read_text(const char *text, struct df_failure *ret)
{
    df_failure_from_text(text, ret);
    if (!*ret->summary)
        df_failure_from_last_line(text, ret);
}

/* True if the command ended while it read the state. events: it printed events, which show its
 * errors and whether it worked on a resource. What it reads without a lock may be no state yet. */
static bool ended_reading(const struct df_context *c, bool events, const struct df_buf *tail,
                          const struct df_command_end *end)
{
    const struct df_output_summary *s = df_output_summary(c->output);
    struct df_failure f = {.summary = ""};
    if (end->code != 1 || end->stopped || end->lost)
        return false;
    if (events)
        df_failure_from_events(s, &f);
    else if (tail)
        read_text(df_buf_str(tail), &f);
    if (df_torn_text(c, f.summary) || df_torn_text(c, f.detail))
        return true;
    bool is_alone = !events || (s->errors == 1 && !s->begun);
    return is_alone && df_failure_is_broken_read(&f);
}

/* False: the step must stop. */
static bool pause_before(const struct df_context *c, int failures)
{
    struct pollfd stop = {.fd = df_stop_fd(c->stop), .events = POLLIN};
    (void)df_output_note(c->output, "dayfly: the answer with the state broke off before the "
                                    "command began its work; it is run again");
    (void)poll(&stop, 1, (int)df_backoff_pause(PAUSE_MIN_MS, PAUSE_MAX_MS, failures));
    return df_stop_cause(c->stop) == DF_STOP_NONE;
}

int df_tool_run(struct df_context *c, const struct df_strs *args, enum df_command_events events,
                bool is_brief, struct df_buf *tail, int *ret_code, struct df_err *err)
{
    struct df_commander commander = c->commander;
    struct df_command_end end;
    commander.is_brief = is_brief;
    for (int tries = 1;; tries++) {
        df_output_reset(c->output);
        if (tail)
            df_buf_clear(tail);
        if (df_command_run(&commander, args, events, tail, &end, err) < 0)
            return -1;
        *ret_code = end.code;
        if (tries == TRIES_MAX || !ended_reading(c, events != DF_EVENTS_NONE, tail, &end) ||
            !pause_before(c, tries))
            return 0;
    }
}

/* ---- failures ---- */

/* Removes ESC [ ... m, in place. */
static void remove_colours(char *text)
{
    char *to = text;
    for (const char *p = text; *p;) {
        size_t n = p[0] == '\x1b' && p[1] == '[' ? 2 + strspn(p + 2, "0123456789;") : 0;
        if (n && p[n] == 'm')
            p += n + 1;
        else
            *to++ = *p++;
    }
    *to = '\0';
}

/* What people may see of the text: masked, without colours. */
static const char *clean_text(const struct df_context *c, const char *text, struct df_buf *out)
{
    if (df_redact_string(df_masks_set(c->masks), text, out, NULL) < 0)
        return "";
    if (out->data)
        remove_colours(out->data);
    return df_buf_str(out);
}

void df_tool_read_failure(const struct df_context *c, const char *text, struct df_failure *ret)
{
    DF_BUF struct df_buf clean = DF_BUF_INIT(2 * strlen(text) + 1);
    df_failure_from_text(clean_text(c, text, &clean), ret);
}

/* "2026-01-01 10:00:00.123 +0000 UTC" as RFC 3339; false for another form. */
static bool to_time(const char *text, char out[DF_TIME_LEN])
{
    char copy[64];
    int64_t us;
    size_t n = strcspn(text, "+");
    (void)snprintf(copy, sizeof copy, "%.*sZ", (int)(n ? n - 1 : 0), text);
    char *blank = strchr(copy, ' ');
    if (!blank || !df_starts_with(text + n, "+0000 UTC"))
        return false;
    *blank = 'T';
    if (df_time_parse(copy, &us, NULL) < 0)
        return false;
    (void)df_time_format(us, out);
    return true;
}

static int note_holder(struct df_context *c, const struct df_failure_holder *h, struct df_err *err)
{
    char created[DF_TIME_LEN];
    DF_BUF struct df_buf who = DF_BUF_INIT(DF_KIB);
    if (!*h->who || !to_time(h->created, created))
        return 0;
    cJSON *lock = df_json_object_at(c->result, "lock");
    if (df_check_alloc(lock, err) < 0 ||
        df_redact_string(df_masks_set(c->masks), h->who, &who, err) < 0)
        return -1;
    return df_json_add_str(lock, "who", df_buf_str(&who), err) < 0
               ? -1
               : df_json_add_str(lock, "created", created, err);
}

int df_tool_failed(struct df_context *c, const struct df_failure *f, const char *words,
                   const char *fallback, struct df_err *err)
{
    char name[DF_TOOL_COMMAND_TEXT];
    struct df_failure_holder holder;
    struct df_err why = {0};
    (void)df_failure_explain(f, df_tool_command_name(&c->tool, words, name), fallback,
                             c->work->failure_advice, err);
    if (!df_streq(err->reason, "StateLocked"))
        return -1;
    df_failure_holder(f, &holder);
    if (note_holder(c, &holder, &why) < 0)
        df_warn("the holder of the lock is not in the result: %s", why.message);
    return -1;
}

int df_tool_failed_aside(struct df_context *c, const char *errors, const char *words,
                         const char *fallback, struct df_err *err)
{
    DF_BUF struct df_buf text = DF_BUF_INIT(ERRORS_MAX);
    DF_BUF struct df_buf clean = DF_BUF_INIT(2 * ERRORS_MAX + 1);
    struct df_failure f;
    (void)!df_fs_read_plain(errors, &text, NULL);
    read_text(clean_text(c, df_buf_str(&text), &clean), &f);
    if (df_output_text(c->output, df_buf_str(&text), text.len, NULL) == 0)
        c->logged = f;
    return df_tool_failed(c, &f, words, fallback, err);
}
