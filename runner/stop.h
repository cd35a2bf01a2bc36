/*
 * stop.h - why a step must end before its work is done, noticed at once wherever the pipeline is.
 *
 * SIGTERM, SIGINT and SIGHUP to the runner, the spawner's word that the step is over, and the
 * step's time limit. The first cause counts; it sets a flag for calls that poll one, and makes a
 * descriptor readable for poll(2). One small thread waits for all three. Thread rule: made and
 * freed by the main thread; the rest may be called by any.
 */
#ifndef DF_STOP_H
#define DF_STOP_H

#include "common/base/err.h"

enum df_stop_cause {
    DF_STOP_NONE,
    DF_STOP_SIGNAL, /* somebody ends the runner */
    DF_STOP_OVER,   /* the spawner says that the step is cancelled or over */
    DF_STOP_TIMEOUT
};

struct df_stop; /* opaque */

/* Blocks the three signals, so that one that comes before df_stop_new() is not lost: as the first
 * process of a container this one ignores what it does not wait for. */
void df_stop_block(void);

/* Blocks the three signals for the whole process: call it before any thread exists. over_fd: see
 * df_report_over_fd(); or -1. */
int df_stop_new(int over_fd, struct df_stop **ret, struct df_err *err) DF_MUST_CHECK;
void df_stop_free(struct df_stop *s); /* NULL is fine */

/* The time limit, from now. */
void df_stop_after(struct df_stop *s, int64_t ms);

enum df_stop_cause df_stop_cause(const struct df_stop *s);
/* Lives as long as s. */
const volatile bool *df_stop_flag(const struct df_stop *s);
/* Becomes and stays readable; do not read or close it. */
int df_stop_fd(const struct df_stop *s);

#endif
