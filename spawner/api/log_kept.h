/* log_kept.h - is the log that somebody asks for still there? */
#ifndef DF_API_LOG_KEPT_H
#define DF_API_LOG_KEPT_H

#include "spawner/spawner.h"

/* Some steps of a run, or a TaskAction alone: those of these names from first on, before end. */
struct df_log_steps {
    const char *owner; /* name of the run or TaskAction */
    const cJSON *run;  /* the run; NULL: a TaskAction */
    const char (*names)[64];
    size_t first, end;
};

/* To be asked before an answer begins, because nothing can be told behind its head. Fails as the
 * storage does if that does not answer; with RETRY LogNotStored if these steps had logs and the
 * storage has taken none yet; with NOT_FOUND LogRemoved if none is stored any more. The events of a
 * step go with its log. Any thread. */
int df_log_check_kept(struct df_spawner *s, const struct df_log_steps *steps,
                      struct df_err *err) DF_MUST_CHECK;

#endif
