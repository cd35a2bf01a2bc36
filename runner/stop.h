/*
 * stop.h - informs every stage at once that the step must end early, and why.
 *
 * The causes are SIGTERM, SIGINT and SIGHUP to the runner, the spawner's answer that the step is
 * over, and the step's time limit. The first cause sets a flag, for calls that poll one, and makes
 * a descriptor readable, for poll(2). One thread waits for all causes. Thread rule: the main thread
 * creates and frees it; any thread may call the rest.
 */
#ifndef DF_STOP_H
#define DF_STOP_H

#include "common/base/err.h"

enum df_stop_cause {
    DF_STOP_NONE,
    DF_STOP_SIGNAL, /* SIGTERM, SIGINT or SIGHUP */
    DF_STOP_OVER,   /* the spawner answered that the step is canceled or over */
    DF_STOP_TIMEOUT
};

struct df_stop; /* opaque */

/* Blocks the three signals early, so that none is lost before df_stop_new(): the first process of a
 * container ignores signals that it neither handles nor blocks. */
void df_stop_block(void);

/* Blocks the three signals for the whole process: call it before any thread exists. over_fd: see
 * df_report_over_fd(); or -1. */
int df_stop_new(int over_fd, struct df_stop **ret, struct df_err *err) DF_MUST_CHECK;
void df_stop_free(struct df_stop *s); /* NULL is fine */

/* For another step in this process: another over_fd, no time limit, and no cause but a signal,
 * which counts for every step. *s and what was asked of it stay valid. */
int df_stop_renew(struct df_stop *s, int over_fd, struct df_err *err) DF_MUST_CHECK;

/* Sets the time limit, from now. */
void df_stop_after(struct df_stop *s, int64_t ms);

/* Stops the step; the first cause stays. Any thread. */
void df_stop_now(struct df_stop *s, enum df_stop_cause cause);

enum df_stop_cause df_stop_cause(const struct df_stop *s);
/* Valid as long as s. */
const volatile bool *df_stop_flag(const struct df_stop *s);
/* Becomes readable with the first cause and stays so; do not read or close it. */
int df_stop_fd(const struct df_stop *s);

#endif
