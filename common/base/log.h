/*
 * log.h - the program's own log on stderr: one JSON object per line, or text for people.
 *
 * Only top-level code logs (main, workers, request loop); library code returns errors.
 * Each line has ts (RFC 3339, microseconds), level, component, msg and the context of the thread
 * (run, step). Values that come from outside are escaped, so that no input can forge a line.
 * Never pass a secret. Thread rule: any thread; a line is written in one write(2).
 */
#ifndef DF_BASE_LOG_H
#define DF_BASE_LOG_H

#include "common/base/err.h"

enum df_log_level { DF_LOG_DEBUG, DF_LOG_INFO, DF_LOG_WARN, DF_LOG_ERROR };

/* Sets level, format and the component name (borrowed). Before any thread starts. */
void df_log_setup(enum df_log_level level, bool json, const char *component);

/* "debug", "info", "warn" or "error"; class USER for other words. */
int df_log_level_parse(const char *word, enum df_log_level *ret, struct df_err *err) DF_MUST_CHECK;

/* Sets the run and step that this thread works on (copied); NULL: none. */
void df_log_context(const char *run, const char *step);

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
