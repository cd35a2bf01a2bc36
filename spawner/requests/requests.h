/*
 * requests.h - what can be asked for, whoever asks: the REST API, custom resources. Each call
 * checks, makes it durable and answers; the control loop does the work afterwards. Who asked is
 * written into the audit trail by the caller, also when it is refused. Thread rule: any thread.
 */
#ifndef DF_REQUESTS_H
#define DF_REQUESTS_H

#include "spawner/requests/holdings.h"
#include "spawner/spawner.h"

/* ---- runs ---- */

/* Creates a run of an executor: numbers it and copies what the executor says, which is nothing
 * secret. ret may be NULL. */
struct df_run_request {
    const cJSON *body;  /* {action, variables, arguments, autoApprove}, secrets (steps/sealed.h) */
    const cJSON *marks; /* {labels, annotations} of the service's own, or NULL */
    enum df_role role;  /* of who asks */
    const char *actor;
};
int df_request_create_run(struct df_spawner *s, const char *executor,
                          const struct df_run_request *request, cJSON **ret,
                          struct df_err *err) DF_MUST_CHECK;
/* Gives a new run its number: counts its executor up, which must be in a state that allows it.
 * *ret_executor: as it is then. */
int df_request_number_run(struct df_spawner *s, const cJSON *run, enum df_role role,
                          cJSON **ret_executor, int64_t *ret_number,
                          struct df_err *err) DF_MUST_CHECK;
/* Sets the run's decision. CONFLICT WrongState when it does not wait for one; the same verdict
 * twice is success. */
int df_request_decide(struct df_spawner *s, const char *run, bool approve, enum df_role role,
                      const char *actor, cJSON **ret, struct df_err *err) DF_MUST_CHECK;
/* Asks for the end of a run. A final run: CONFLICT WrongState. Twice is success. */
int df_request_cancel_run(struct df_spawner *s, const char *run, enum df_role role,
                          const char *actor, const char *why, cJSON **ret,
                          struct df_err *err) DF_MUST_CHECK;

/* ---- executors ---- */

/* Stores a new executor. doc: as a client sent it (NULL: nothing); it is changed. marks: {labels,
 * annotations} as above. */
int df_request_create_executor(struct df_spawner *s, cJSON *doc, const cJSON *marks,
                               const char *actor, cJSON **ret, struct df_err *err) DF_MUST_CHECK;
/* Makes doc, as a client sent it, the next version of old, which was just read. confirmed: another
 * source is meant (model.h). CONFLICT Conflict: old is not the newest any more. */
int df_request_change_executor(struct df_spawner *s, cJSON *doc, const cJSON *old,
                               enum df_role role, bool confirmed, cJSON **ret,
                               struct df_err *err) DF_MUST_CHECK;
/* Removes an executor with its runs, steps, logs, plans and managed state. CONFLICT while its state
 * forbids it or holds resources (df_holdings_check_delete), or runs are unfinished. forget: NULL,
 * or its resources are left behind on purpose. What cannot be removed at once the control loop
 * removes later. */
int df_request_delete_executor(struct df_spawner *s, const char *name, enum df_role role,
                               const struct df_forget *forget, const char *actor,
                               struct df_err *err) DF_MUST_CHECK;

/* ---- workflows: TaskActions that stand alone ---- */

/* Stores one. doc: as a client sent it (NULL: nothing); it is changed. marks: as above. USER when
 * there is no engine for it. */
int df_request_create_workflow(struct df_spawner *s, cJSON *doc, const cJSON *marks,
                               const char *actor, cJSON **ret, struct df_err *err) DF_MUST_CHECK;
/* Asks for its end. A final one, or a step of a run: CONFLICT WrongState. Twice is success. */
int df_request_cancel_workflow(struct df_spawner *s, const char *name, const char *actor,
                               const char *why, cJSON **ret, struct df_err *err) DF_MUST_CHECK;
/* Removes it and what its engine keeps of it. One that has not ended, or a step of a run: CONFLICT
 * WrongState. */
int df_request_delete_workflow(struct df_spawner *s, const char *name,
                               struct df_err *err) DF_MUST_CHECK;

/* Gives an admitted workflow its labels and its first status. */
int df_new_workflow(struct df_spawner *s, cJSON *doc, const char *actor,
                    struct df_err *err) DF_MUST_CHECK;

#endif
