/*
 * handlers.h - the handlers of the routes; one file per resource. openapi.yaml has the contract of
 * each; request.h has the rules for handlers.
 */
#ifndef DF_API_HANDLERS_H
#define DF_API_HANDLERS_H

#include "spawner/http/request.h"
#include "spawner/requests/requests.h"

#define DF_HANDLER(name)                                                                           \
    int name(struct df_request *req, struct df_response *res, struct df_err *err)

/* system.c */
DF_HANDLER(df_get_livez);
DF_HANDLER(df_get_readyz);
DF_HANDLER(df_get_metrics);
DF_HANDLER(df_get_openapi);
DF_HANDLER(df_get_version);
DF_HANDLER(df_list_engines);

/* access.c */
DF_HANDLER(df_get_access);

/* who.c */
DF_HANDLER(df_get_login);
DF_HANDLER(df_get_whoami);

/* backup.c */
DF_HANDLER(df_get_backup);

/* retention.c */
DF_HANDLER(df_collect_garbage);
DF_HANDLER(df_get_storage);

/* admission.c */
int df_gate_review(struct df_request *req, struct df_err *err);
DF_HANDLER(df_review_admission);

/* documents.c */
DF_HANDLER(df_list_documents);
DF_HANDLER(df_create_document);
DF_HANDLER(df_get_document);
DF_HANDLER(df_put_document);
DF_HANDLER(df_patch_document);

/* executors.c */
DF_HANDLER(df_delete_executor);
DF_HANDLER(df_get_executor_actions);

/* runs.c */
DF_HANDLER(df_list_executor_runs);
DF_HANDLER(df_list_executor_revisions);
DF_HANDLER(df_create_run);
DF_HANDLER(df_recreate_executor);
DF_HANDLER(df_approve_run);
DF_HANDLER(df_discard_run);
DF_HANDLER(df_cancel_run);

/* state_history.c */
DF_HANDLER(df_get_outputs);
DF_HANDLER(df_get_run_outputs);
DF_HANDLER(df_list_state_versions);
DF_HANDLER(df_get_state_version);
DF_HANDLER(df_rollback_state);
DF_HANDLER(df_push_state);
DF_HANDLER(df_get_state_lock);
DF_HANDLER(df_force_unlock_state);
DF_HANDLER(df_forget_former_state);
DF_HANDLER(df_list_errored_states);
DF_HANDLER(df_get_errored_state);
DF_HANDLER(df_discard_errored_state);
DF_HANDLER(df_push_errored_state);

/* state.c (tofu's http backend) */
DF_HANDLER(df_get_state);
DF_HANDLER(df_put_state);
DF_HANDLER(df_delete_state);
DF_HANDLER(df_lock_state);
DF_HANDLER(df_unlock_state);
DF_HANDLER(df_get_step_state);
DF_HANDLER(df_put_step_state);
DF_HANDLER(df_delete_step_state);
DF_HANDLER(df_lock_step_state);
DF_HANDLER(df_unlock_step_state);

/* run_log.c, run_watch.c */
DF_HANDLER(df_get_run_log);
DF_HANDLER(df_get_run_events);
DF_HANDLER(df_get_taskaction_log);
DF_HANDLER(df_watch_run);

/* taskactions.c */
DF_HANDLER(df_cancel_taskaction);
DF_HANDLER(df_delete_taskaction);

/* states.c */
DF_HANDLER(df_list_states);
DF_HANDLER(df_get_state_of);
DF_HANDLER(df_watch_transitions);

/* integrations.c */
DF_HANDLER(df_list_integrations);
DF_HANDLER(df_create_integration);
DF_HANDLER(df_get_integration);
DF_HANDLER(df_replace_integration);
DF_HANDLER(df_delete_integration);
DF_HANDLER(df_test_integration);

/* secrets.c */
DF_HANDLER(df_list_secrets);
DF_HANDLER(df_put_secret);
DF_HANDLER(df_allow_secret);
DF_HANDLER(df_delete_secret);

/* tokens.c */
DF_HANDLER(df_list_tokens);
DF_HANDLER(df_create_token);
DF_HANDLER(df_revoke_token);

/* audit.c */
DF_HANDLER(df_list_audit);
DF_HANDLER(df_verify_audit);

/* steps.c */
DF_HANDLER(df_claim_step);
DF_HANDLER(df_get_step_stream);
DF_HANDLER(df_append_step_stream);
DF_HANDLER(df_report_step_progress);
DF_HANDLER(df_report_step_result);
DF_HANDLER(df_get_step_plan);
DF_HANDLER(df_put_step_plan);
DF_HANDLER(df_get_step_errored_state);
DF_HANDLER(df_put_step_errored_state);
DF_HANDLER(df_put_step_outputs);
DF_HANDLER(df_get_step_shown);
DF_HANDLER(df_put_step_shown);

/* runners.c */
int df_gate_runner(struct df_request *req, struct df_err *err);
DF_HANDLER(df_claim_for_runner);

/* providers.c */
int df_gate_providers(struct df_request *req, struct df_err *err);
DF_HANDLER(df_get_provider_file);

/* Gates (route.h): whether the token may claim the step, is its step token, is the one of a step
 * that has not ended; whether the state password is the step's, and may write. */
int df_gate_claim(struct df_request *req, struct df_err *err);
/* After requests of runners that use the storage: what fails is what the step waits for. Aside: the
 * step goes on without it. */
void df_after_storage(const struct df_request *req, int64_t began_us, const struct df_err *why);
void df_after_storage_aside(const struct df_request *req, int64_t began_us,
                            const struct df_err *why);
int df_gate_step(struct df_request *req, struct df_err *err);
int df_gate_live_step(struct df_request *req, struct df_err *err);
int df_gate_step_state(struct df_request *req, struct df_err *err);
int df_gate_step_state_write(struct df_request *req, struct df_err *err);

/* runs.c: returns the optional member `reason` of a cancel request, or NULL. Borrowed. */
int df_request_reason(const struct df_request *req, const char **ret,
                      struct df_err *err) DF_MUST_CHECK;

#undef DF_HANDLER

#endif
