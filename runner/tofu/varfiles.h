/*
 * varfiles.h - the variable files for the tool, in their order.
 *
 * Files of the source (`variableFiles`, and -var-file in `arguments`) are named relative to the
 * module and must lie in the source; so must those of -target-file and -exclude-file. A later file
 * wins:
 *   1. the executor's files   2. all `variables`            3. the run's files
 *   4. `sealed.files`         5. the run's `variables`      6. `sealed.variables`
 * If 1, 3 and 4 name no file, only 6 is listed: the tool reads the `variables` in the module's
 * directory (workspace.h) by itself.
 * Thread rule: one thread.
 */
#ifndef DF_VARFILES_H
#define DF_VARFILES_H

#include "common/base/strs.h"
#include "common/json/json.h"

struct df_varfiles {
    struct df_strs files;     /* "-var-file=...", or -var=...; for every command that takes
                               * them (command.h) */
    struct df_strs arguments; /* of the step, without -var-file */
};

struct df_varfiles_request {
    const cJSON *step;      /* the step document */
    const char *checkout;   /* the source */
    const char *module_dir; /* the module within it, where the tool runs */
    const char *secret_dir; /* for variables as files */
};

/* Reasons: SourceRefused for a path that leads out of the source, PlanFailed for a file that does
 * not exist. */
int df_varfiles_collect(const struct df_varfiles_request *q, struct df_varfiles *ret,
                        struct df_err *err) DF_MUST_CHECK;
void df_varfiles_free(struct df_varfiles *v);

#endif
