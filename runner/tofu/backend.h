/*
 * backend.h - refuses a module that keeps its state elsewhere than in the executor's storage.
 *
 * dayfly's override file would silently win over its `backend` or `cloud` block, a state file
 * beside it or a workspace other than the default one, and the first plan would create everything a
 * second time. Thread rule: one thread.
 */
#ifndef DF_RUNNER_BACKEND_H
#define DF_RUNNER_BACKEND_H

#include "common/hcl/hcl.h"
#include "common/json/json.h"

struct df_backend_request {
    const cJSON *step;      /* the step document */
    const char *module_dir; /* the checkout */
    const char
        *origin_dir; /* df_source_result.origin_dir, with states that are not copied; or NULL */
    enum df_hcl_tool tool;
};

/* ret_note: a line for the log if the document allows an override and there is one; else "". Class
 * USER, reason BackendInModule with the block or workspace, its file and the ways out; reason
 * BackendMissing for state.type module without a backend that outlives the step. */
int df_backend_check(const struct df_backend_request *q, char ret_note[512],
                     struct df_err *err) DF_MUST_CHECK;

#endif
