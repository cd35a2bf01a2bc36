/*
 * runner_environment.h - variables of a pod's container that would change how the runner itself
 * works: what it loads, whom it believes, which hosts it speaks to. A placement sets the
 * environment of the runner, which holds tokens and, for another system, secrets of that. Thread
 * rule: pure functions, any thread.
 */
#ifndef DF_RUNNER_ENVIRONMENT_H
#define DF_RUNNER_ENVIRONMENT_H

#include "common/base/util.h"

enum df_environment_author {
    DF_SET_BY_DOCUMENT,  /* a placement, whoever wrote it */
    DF_SET_BY_WORKSPACE, /* a workspace of another system: whoever may edit its variables */
};

/* Why the variable is refused, for a message: "it changes which code the runner loads". NULL: it is
 * not. What a document may not set, a workspace may not set either. Names are compared without
 * regard to capitals, as some programs read them. */
const char *df_runner_variable_refused(const char *name, enum df_environment_author author);

#endif
