/*
 * output.h - what tofu prints, on its way out: split into lines, JSON events told from text,
 * rendered for people, redacted, and handed to the report (log and events) and to our own stdout.
 *
 * Text and events are two streams because tofu >= 1.11 writes both at once (`-json-into`); other
 * tools write events alone (`-json`), which are then also rendered as text: one line an event from
 * its @message, diagnostics with severity, summary, address, place and detail. Lines of any length
 * pass in bounded memory; a line over DF_LIMIT_EVENT_LINE in the event stream is treated as text.
 * Thread rule: one thread.
 */
#ifndef DF_OUTPUT_H
#define DF_OUTPUT_H

#include "common/redact/redact.h"
#include "runner/report/report.h"

struct df_output; /* opaque */

/* set and report are borrowed; echo_fd: the same clean text goes there too, or -1. */
int df_output_new(const struct df_redact_set *set, struct df_report *report, int echo_fd,
                  struct df_output **ret, struct df_err *err) DF_MUST_CHECK;
void df_output_free(struct df_output *o);

/* Bytes of text as a person reads it. */
int df_output_text(struct df_output *o, const char *bytes, size_t n,
                   struct df_err *err) DF_MUST_CHECK;
/* Bytes of the event stream. render: also show them as text (the tool prints nothing else). */
int df_output_events(struct df_output *o, const char *bytes, size_t n, bool render,
                     struct df_err *err) DF_MUST_CHECK;
/* A line of our own ("dayfly: fetching source ..."). */
int df_output_note(struct df_output *o, const char *fmt, ...) DF_PRINTF(2, 3);
/* A command has ended: whatever is held back goes out. */
int df_output_flush(struct df_output *o, struct df_err *err) DF_MUST_CHECK;

/* What the events said so far. Strings are redacted. */
struct df_output_summary {
    bool seen; /* a change_summary event came */
    int add, change, destroy, import;
    bool output_changes;    /* an `outputs` event with an action other than noop */
    int applied;            /* resources whose apply completed: "something changed" */
    int errors;             /* diagnostics of severity error */
    char first_error[1024]; /* summary and address of the first one, or "" */
    char first_place[256];  /* where it is ("main.tf:12"), or "" */
    char first_detail[2048];
};
const struct df_output_summary *df_output_summary(const struct df_output *o);
/* Forgets the summary, before the next command. */
void df_output_reset(struct df_output *o);

#endif
