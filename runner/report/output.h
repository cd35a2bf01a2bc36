/*
 * output.h - redacts what tofu prints and passes it to the report (log and events) and to the
 * runner's stdout.
 *
 * Text and events are two streams, because newer versions of tofu write both at once
 * (`-json-into`, see tofu/tool.h). Other tools write events alone (`-json`), which are then also
 * rendered as text: the @message of an event; of a diagnostic severity, summary, address, place and
 * detail. Lines of any length need bounded memory; a line of the event stream over
 * DF_LIMIT_EVENT_LINE counts as text.
 * Thread rule: one thread.
 */
#ifndef DF_OUTPUT_H
#define DF_OUTPUT_H

#include "common/changes/changes.h"
#include "runner/report/masks.h"
#include "runner/report/report.h"

struct df_output; /* opaque */

/* masks and report are borrowed. echo_fd gets a copy of the redacted text; -1: no copy. */
int df_output_new(struct df_masks *masks, struct df_report *report, int echo_fd,
                  struct df_output **ret, struct df_err *err) DF_MUST_CHECK;
void df_output_free(struct df_output *o);
/* Masks these values from now on, instead of those before (df_masks_replace()). To be called
 * between commands. */
int df_output_hide(struct df_output *o, const struct df_strs *values,
                   struct df_err *err) DF_MUST_CHECK;
/* Masks this value, too, from now until the step's end: one that is made while the step runs. */
int df_output_hide_also(struct df_output *o, const char *value, struct df_err *err) DF_MUST_CHECK;
/* Reads again what may have changed (df_masks_renew()), also in the middle of the output. The
 * functions below begin with it: to be called before a process starts, and while it says nothing.
 * Returns how long that may be, in ms; -1: forever. */
int df_output_renew(struct df_output *o, int *ret_next_ms, struct df_err *err) DF_MUST_CHECK;

/* Bytes of text for people. */
int df_output_text(struct df_output *o, const char *bytes, size_t n,
                   struct df_err *err) DF_MUST_CHECK;
/* Bytes of the event stream. render: also as text, because the tool prints none. */
int df_output_events(struct df_output *o, const char *bytes, size_t n, bool render,
                     struct df_err *err) DF_MUST_CHECK;
/* A line of dayfly's own, for people ("dayfly: ..."). */
int df_output_note(struct df_output *o, const char *fmt, ...) DF_PRINTF(2, 3);
/* Ends a line that the last text left open. */
int df_output_end_line(struct df_output *o, struct df_err *err) DF_MUST_CHECK;
/* The events are those of an apply whose plan destroys: rendered, its end reads so. */
void df_output_destroys(struct df_output *o);
/* Drops all text from now on, or no longer. To be called between commands. */
void df_output_mute(struct df_output *o, bool is_muted);
/* Writes out the bytes that were held back: an incomplete line, or the possible start of a secret.
 * To be called at the end of a command. */
int df_output_flush(struct df_output *o, struct df_err *err) DF_MUST_CHECK;

/* Figures and first error from the events so far. Strings are redacted. */
struct df_output_summary {
    bool seen; /* a change_summary event came */
    struct df_changes changes;
    bool output_changes;    /* an `outputs` event with an action other than noop */
    bool reads;             /* a data source is read in the apply */
    bool begun;             /* an event of a resource came: it was read or changed */
    int applied;            /* resources whose apply completed */
    int begun_changes;      /* resources whose change was begun, */
    int ended_changes;      /* and whose change completed or failed */
    int errors;             /* diagnostics of severity error */
    char first_error[1024]; /* summary and address of the first one, or "" */
    char first_place[256];  /* "main.tf:12", or "" */
    char first_detail[2048];
};
const struct df_output_summary *df_output_summary(const struct df_output *o);
/* The tool has said that there are changes: if no event told of one, one of another kind counts. */
void df_output_expect_changes(struct df_output *o);
/* The command has moved as many objects, of which no event told. */
void df_output_moved(struct df_output *o, int64_t count);
/* Forgets the summary, before the next command. */
void df_output_reset(struct df_output *o);

#endif
