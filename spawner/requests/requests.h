/*
 * requests.h - the requests that clients can make, through the REST API or with custom resources.
 * Each function checks the request, makes it durable and returns; the control loop does the work
 * afterwards. The caller writes the audit entry, also for a refused request. Thread rule: any
 * thread.
 */
#ifndef DF_REQUESTS_H
#define DF_REQUESTS_H

#include "spawner/requests/allowed.h"
#include "spawner/requests/holdings.h"
#include "spawner/spawner.h"

/* ---- runs ---- */

/* Creates a run of an executor: gives it a number and copies the executor's spec, which contains no
 * secrets. ret may be NULL. */
struct df_run_request {
    const cJSON *body;  /* {action, variables, arguments, autoApprove}, secrets (steps/sealed.h) */
    const cJSON *marks; /* labels and annotations of the service, or NULL */
    struct df_rights rights; /* of the caller */
    const char *actor;
};
int df_request_create_run(struct df_spawner *s, const char *executor,
                          const struct df_run_request *request, cJSON **ret,
                          struct df_err *err) DF_MUST_CHECK;
/* Creates the run that takes the place of one whose plan cannot be applied any more, with the same
 * secrets, for the same person. ret_name: its name. A repeated call finds it. */
int df_request_run_again(struct df_spawner *s, const cJSON *run, char ret_name[64],
                         struct df_err *err) DF_MUST_CHECK;
/* Takes the next number for a new run from its executor, whose state must allow the run. secrets:
 * of the request; or NULL. *ret_executor: the updated executor. */
int df_request_number_run(struct df_spawner *s, const cJSON *run, const cJSON *secrets,
                          const struct df_rights *rights, cJSON **ret_executor, int64_t *ret_number,
                          struct df_err *err) DF_MUST_CHECK;
/* What a person says about a run that waits for approval. */
struct df_decision {
    bool approves;  /* else the run is discarded */
    df_verbs verbs; /* on its executor */
    const char *actor;
    const char *reason;  /* or NULL */
    const char *plan;    /* status.planDigest of what was looked at; NULL: not said */
    enum df_role role;   /* on all executors: policies are of the service */
    const cJSON *groups; /* of the caller, as grants name them; NULL: not known */
};
/* Notes the decision, which decides at once unless more approvals are required
 * (model/approval.h). CONFLICT WrongState if the run does not wait for one, PlanChanged if its plan
 * is another one. Repeating the same verdict is success. */
int df_request_decide(struct df_spawner *s, const char *run, const struct df_decision *d,
                      cJSON **ret, struct df_err *err) DF_MUST_CHECK;
/* May this caller decide so about the run? DENIED, perhaps with the reason SelfApproval,
 * UnknownApprover or NotApprover; USER without a reason where one is needed (model/policy.h).
 * *ret_required: how many people have to. */
int df_request_check_decision(struct df_spawner *s, const cJSON *run, const struct df_decision *d,
                              int64_t *ret_required, struct df_err *err) DF_MUST_CHECK;
/* Adds an approval to status.decisions, in a df_store_modify(). *ret_decides: it is the last one
 * that is required, or was there already and is. */
int df_request_add_approval(cJSON *run, const struct df_decision *d, int64_t required,
                            bool *ret_decides, struct df_err *err) DF_MUST_CHECK;
/* Cancels a run. CONFLICT WrongState if it is final. Repeating it is success. */
int df_request_cancel_run(struct df_spawner *s, const char *run, df_verbs verbs, const char *actor,
                          const char *why, cJSON **ret, struct df_err *err) DF_MUST_CHECK;

/* ---- executors ---- */

/* A document that a client sent. */
struct df_document_request {
    cJSON *doc;         /* NULL: none, which is an error; it is changed */
    const cJSON *marks; /* as above */
    enum df_role role;  /* of the caller */
    const char *actor;
    df_verbs verbs; /* of the caller, on what is changed */
};

/* Stores a new executor. DENIED SecretNotAllowed as in secrets.h, IntegrationNotAllowed as in
 * integrations.h; USER PlacementDenied as in allowed.h. */
int df_request_create_executor(struct df_spawner *s, const struct df_document_request *request,
                               cJSON **ret, struct df_err *err) DF_MUST_CHECK;
/* Stores the request's doc as the next version of old, which was just read, and another spec as the
 * next revision. confirmed: the change to another source is intended (model.h). A change of labels
 * that leads to other grants or policies, and looser rules of approval, need the verb grant. DENIED
 * SecretNotAllowed as in secrets.h.
 * CONFLICT Conflict: old is not the newest version any more. */
int df_request_change_executor(struct df_spawner *s, const struct df_document_request *request,
                               const cJSON *old, bool confirmed, cJSON **ret,
                               struct df_err *err) DF_MUST_CHECK;
/* Removes an executor with its runs, steps, logs, plans and managed state. CONFLICT if its state
 * forbids that or has resources (df_holdings_check_delete), or runs are unfinished. forget: NULL,
 * or the resources are left behind on purpose. The control loop removes later what cannot be
 * removed now. */
int df_request_delete_executor(struct df_spawner *s, const char *name, df_verbs verbs,
                               const struct df_forget *forget, const char *actor,
                               struct df_err *err) DF_MUST_CHECK;
/* Its first half: the same refusals, and the mark with which the deletion is sure. *ret: the marked
 * executor, which the caller deletes, and then removes with df_purge_executor(). */
int df_request_mark_executor(struct df_spawner *s, const char *name, df_verbs verbs,
                             const struct df_forget *forget, const char *actor, cJSON **ret,
                             struct df_err *err) DF_MUST_CHECK;

/* ---- workflows, and other TaskActions without a run ---- */

/* Stores a workflow. USER if no engine can execute it. */
int df_request_create_workflow(struct df_spawner *s, const struct df_document_request *request,
                               cJSON **ret, struct df_err *err) DF_MUST_CHECK;
/* Cancels a workflow. CONFLICT WrongState if it is final or is a step of a run. Repeating it is
 * success. */
int df_request_cancel_workflow(struct df_spawner *s, const char *name, const char *actor,
                               const char *why, cJSON **ret, struct df_err *err) DF_MUST_CHECK;
/* Removes a workflow and what its engine keeps of it. CONFLICT WrongState if it has not ended or is
 * a step of a run. */
int df_request_delete_workflow(struct df_spawner *s, const char *name,
                               struct df_err *err) DF_MUST_CHECK;

/* Sets the labels and the first status of a validated workflow. */
int df_new_workflow(struct df_spawner *s, cJSON *doc, const char *actor,
                    struct df_err *err) DF_MUST_CHECK;

#endif
