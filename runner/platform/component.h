/*
 * component.h - what an action found out about one component: filled by the actions, read by the
 * report and the metrics. Thread rule: main thread.
 */
#ifndef DF_PLATFORM_COMPONENT_H
#define DF_PLATFORM_COMPONENT_H

#include "runner/platform/dag.h"

enum df_component_state {
    DF_COMPONENT_PENDING,
    DF_COMPONENT_RUNNING,
    DF_COMPONENT_DONE,     /* healthy; for a teardown: gone */
    DF_COMPONENT_DEGRADED, /* there, but not as it should be: OutOfSync, or not healthy */
    DF_COMPONENT_FAILED,
    DF_COMPONENT_SKIPPED, /* something that it depends on failed */
};
#define DF_COMPONENT_STATES 6
/* "Pending", ...; never NULL. */
const char *df_component_state_name(enum df_component_state state);

struct df_component {
    const struct df_node *node; /* borrowed */
    enum df_component_state state;
    char sync[24], health[24]; /* Argo CD's words ("OutOfSync", "Degraded"); "": not known */
    char revision[65];         /* the commit that is deployed; "": not known */
    char cause[48];            /* the reason word of a failure ("SyncFailed"), or "" */
    char message[512];         /* one sentence, or "" */
    char warning[400]; /* "NoObjects: ...": nothing failed, but this is hardly meant; or "" */
    bool changed;      /* something was written for it (in a dry run: would be) */
    int retries;
    int64_t started_us, ended_us; /* real; 0: not yet */
    int64_t waited_us;            /* of that, waiting for Argo CD */
    cJSON *diagnostics;           /* owned array of strings: events, last lines; or NULL */
    struct df_span_id {
        char hex[17];
    } span;
    struct {
        const char *what; /* "sync", static; NULL: it waits for nothing */
        int64_t since_us; /* real */
        struct df_span_id span;
    } wait;
};
/* Of what it holds; it stays the caller's. */
void df_component_free(struct df_component *c);

/* Ends it as failed, now. cause: the reason word; the message is cut to its room. */
void df_component_fail(struct df_component *c, const char *cause, const char *fmt, ...)
    DF_PRINTF(3, 4);

/* Notes a warning, unless there is one already, or the text is "". cause: its reason word. */
void df_component_warn(struct df_component *c, const char *cause, const char *text);

/* Adds a line to its diagnostics, which it takes over; NULL counts as out of memory. Beyond
 * DF_LIMIT_PLATFORM_DIAGNOSTICS lines are left out: there may be hundreds of pods. */
int df_component_tell(struct df_component *c, char *line, struct df_err *err) DF_MUST_CHECK;

/* Exit codes of the actions. */
enum df_result {
    DF_RESULT_SUCCESS = 0,
    DF_RESULT_FAILURE = 1,
    DF_RESULT_PARTIAL = 2,
    DF_RESULT_INVALID = 3,
    DF_RESULT_TIMEOUT = 4
};
/* "success", "failure", "partial", "invalid", "timeout". */
const char *df_result_name(enum df_result result);

#endif
