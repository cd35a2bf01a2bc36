/*
 * log.h - the program's own log on stderr: one JSON object per line, or text for people.
 *
 * Only top-level code logs (main, workers, request loop); library code returns errors.
 * Each line has ts (RFC 3339, microseconds), level, component, msg and the context of the thread
 * (run, step). Values that come from outside are escaped, so that no input can forge a line; the
 * message of a text line has its quotes and backslashes as they are.
 * Never pass a secret. Thread rule: any thread; a line is written in one write(2).
 */
#ifndef DF_BASE_LOG_H
#define DF_BASE_LOG_H

#include "common/base/err.h"

enum df_log_level { DF_LOG_DEBUG, DF_LOG_INFO, DF_LOG_WARN, DF_LOG_ERROR };

/* Sets level, format and the component name (borrowed). Before any thread starts. */
void df_log_setup(enum df_log_level level, bool json, const char *component);

/* The same for a program that people tell by LOG_LEVEL (default info) and LOG_FORMAT (text, json;
 * default: as json says). Class USER for other words, with the variable's name: the default is set
 * instead of such a word, and what is right is set as well, so that the fault can be told. */
int df_log_setup_environment(bool json, const char *component, struct df_err *err) DF_MUST_CHECK;
/* Writes to this descriptor, which stays the caller's, instead of stderr. Before any thread starts.
 */
void df_log_to(int fd);

/* "debug", "info", "warn" or "error"; class USER for other words. */
int df_log_level_parse(const char *word, enum df_log_level *ret, struct df_err *err) DF_MUST_CHECK;

/* Sets the run and step that this thread works on (copied); NULL: none. */
void df_log_context(const char *run, const char *step);

/* For a program that is one action of a trace: each JSON line has action, trace_id and span_id as
 * well. All copied; NULL or "": left out. df_log_action() and the trace: before any thread
 * starts. */
void df_log_action(const char *action);
void df_log_trace(const char *trace, const char *span);
/* What of the action this thread works on: `component` names it instead of the program, and span_id
 * is this one. Both copied; NULL: the program's name, the span of df_log_trace(). */
void df_log_component(const char *name, const char *span);

void df_log(enum df_log_level level, const char *fmt, ...) DF_PRINTF(2, 3);

/* Writes msg with the level error, without the heap and without a lock, for fatal.h. msg: printable
 * ASCII without quotes and backslashes, at most 2 KiB. */
void df_log_fatal(const char *msg);

/* For a line that would repeat as long as something is out of order: it is written once, and then
 * once a minute with the number of lines that were left out. All zero before. */
struct df_log_gate {
    int64_t next_us;  /* atomic; monotonic */
    unsigned skipped; /* atomic */
};
/* True if the line is to be written now; *ret_skipped: how many were left out before it. now_us:
 * df_mono_us(). Thread rule: any thread. */
bool df_log_gate_passes(struct df_log_gate *g, int64_t now_us, unsigned *ret_skipped);

#define df_debug(...) df_log(DF_LOG_DEBUG, __VA_ARGS__)
#define df_info(...) df_log(DF_LOG_INFO, __VA_ARGS__)
#define df_warn(...) df_log(DF_LOG_WARN, __VA_ARGS__)
#define df_error(...) df_log(DF_LOG_ERROR, __VA_ARGS__)

#endif
