/*
 * routes.c - the table of all routes. A row says who may call the route, which body and query it
 * takes, and what the audit trail says of it. spawner/http checks caller, query and body before it
 * calls the handler; the gate of a route checks the token of a step.
 */
#include "spawner/api/routes.h"

#include "common/base/limits.h"
#include "spawner/api/handlers.h"

/* A row: method, path, who may, handler; then everything that differs from "no body, no query, not
 * audited". */
#define ROUTE(m, path, who, function, ...)                                                         \
    {                                                                                              \
        .method = (m), .pattern = (path), who, .handler = (function), ##__VA_ARGS__                \
    }
/* Who may: what belongs to no executor wants a role, what is about one wants verbs on it. */
#define ANYONE .access = DF_ACCESS_ANYONE
#define CALLER .access = DF_ACCESS_CALLER
#define READ .access = DF_ACCESS_READ
#define WRITE .access = DF_ACCESS_WRITE
#define ADMIN .access = DF_ACCESS_ADMIN
#define STEP .access = DF_ACCESS_STEP
#define MAY_ALL(needed, kind)                                                                      \
    .access = DF_ACCESS_EXECUTOR, .verbs = DF_VERB_VIEW | (needed), .of = DF_KIND_##kind
#define MAY(verb, kind) MAY_ALL(DF_VERB_##verb, kind)
#define BODY(what, most) .body = DF_BODY_##what, .body_max = (most)
#define JSON BODY(JSON, DF_LIMIT_HTTP_BODY)
#define DOCUMENT BODY(DOCUMENT, DF_LIMIT_HTTP_BODY)
#define PATCH BODY(PATCH, DF_LIMIT_HTTP_BODY)
#define AUDIT(verb, what) .audit = (verb), .kind = (what)
#define BASIC .basic = true
#define GATE(function) .gate = (function)
#define WAITS .waits = true
#define STORES .after = df_after_storage
#define STORES_ASIDE .after = df_after_storage_aside
/* Reads that any replica serves from its cache while none leads. */
#define ANY_REPLICA .any_replica = true
#define LIST "limit cursor namePrefix label order"
/* The kind of documents of a route that is the same for every kind (documents.h). */
#define OF(which) .of = DF_KIND_##which

static const struct df_route routes[] = {
    ROUTE("GET", "/livez", ANYONE, df_get_livez),
    ROUTE("GET", "/readyz", ANYONE, df_get_readyz, .query = "verbose"),
    ROUTE("GET", "/metrics", ANYONE, df_get_metrics),
    ROUTE("GET", "/openapi.yaml", ANYONE, df_get_openapi),
    ROUTE("GET", "/v1/version", ANYONE, df_get_version),
    ROUTE("GET", "/v1/login", ANYONE, df_get_login),
    ROUTE("GET", "/v1/access", ADMIN, df_get_access, .query = "of"),
    ROUTE("GET", "/v1/whoami", CALLER, df_get_whoami, ANY_REPLICA),
    ROUTE("GET", "/v1/engines", READ, df_list_engines, ANY_REPLICA),

    ROUTE("POST", "/v1/admission/{role}", ANYONE, df_review_admission, BODY(JSON, DF_LIMIT_REVIEW),
          GATE(df_gate_review), .query = "timeout"),

    ROUTE("GET", "/v1/executors", CALLER, df_list_documents, OF(EXECUTOR),
          .query = LIST " state status creator", ANY_REPLICA),
    /* Only the document says what it will be (df_make_executor()). */
    ROUTE("POST", "/v1/executors", CALLER, df_create_document, OF(EXECUTOR), DOCUMENT,
          AUDIT("create", "Executor")),
    ROUTE("GET", "/v1/executors/{name}", MAY(VIEW, EXECUTOR), df_get_document, ANY_REPLICA),
    ROUTE("PUT", "/v1/executors/{name}", MAY(EDIT, EXECUTOR), df_put_document, DOCUMENT,
          .query = "confirmSourceChange", AUDIT("update", "Executor")),
    ROUTE("PATCH", "/v1/executors/{name}", MAY(EDIT, EXECUTOR), df_patch_document, PATCH,
          .query = "confirmSourceChange", AUDIT("update", "Executor")),
    ROUTE("DELETE", "/v1/executors/{name}", MAY_ALL(DF_VERBS_WRITE, EXECUTOR), df_delete_executor,
          .query = "forget abandon stateVersion", AUDIT("delete", "Executor")),
    ROUTE("GET", "/v1/executors/{name}/actions", MAY(VIEW, EXECUTOR), df_get_executor_actions),
    ROUTE("GET", "/v1/executors/{name}/access", MAY(GRANT, EXECUTOR), df_get_access, .query = "of"),
    ROUTE("POST", "/v1/executors/{name}/recreate", MAY(APPLY, EXECUTOR), df_recreate_executor, JSON,
          AUDIT("recreate", "Executor")),
    ROUTE("GET", "/v1/executors/{name}/runs", MAY(VIEW, EXECUTOR), df_list_executor_runs,
          .query = "limit cursor label order phase creator", ANY_REPLICA),
    /* The verb is that of its action (df_action_verb()). */
    ROUTE("POST", "/v1/executors/{name}/runs", MAY(VIEW, EXECUTOR), df_create_run, DOCUMENT,
          AUDIT("create", "Run")),
    ROUTE("GET", "/v1/executors/{name}/revisions", MAY(VIEW, EXECUTOR), df_list_executor_revisions,
          .query = "limit cursor order", ANY_REPLICA),
    ROUTE("GET", "/v1/executors/{name}/outputs", MAY(VIEW, EXECUTOR), df_get_outputs,
          .query = "showSensitive", .kind = "Outputs"),

    ROUTE("GET", "/v1/executors/{name}/state", MAY(STATE, EXECUTOR), df_get_state,
          AUDIT("read", "State"), BASIC),
    ROUTE("POST", "/v1/executors/{name}/state", MAY_ALL(DF_VERBS_TOOL, EXECUTOR), df_put_state,
          BODY(FILE, DF_LIMIT_STATE), .query = "ID", AUDIT("write", "State"), BASIC),
    ROUTE("DELETE", "/v1/executors/{name}/state", MAY(STATE_WRITE, EXECUTOR), df_delete_state,
          .query = "ID", AUDIT("delete", "State"), BASIC),
    ROUTE("LOCK", "/v1/executors/{name}/state", MAY_ALL(DF_VERBS_TOOL, EXECUTOR), df_lock_state,
          BODY(BYTES, DF_LIMIT_LOCK_INFO), AUDIT("lock", "State"), BASIC),
    ROUTE("UNLOCK", "/v1/executors/{name}/state", MAY_ALL(DF_VERBS_TOOL, EXECUTOR), df_unlock_state,
          BODY(BYTES, DF_LIMIT_LOCK_INFO), AUDIT("unlock", "State"), BASIC),
    ROUTE("GET", "/v1/executors/{name}/state/versions", MAY(VIEW, EXECUTOR),
          df_list_state_versions),
    ROUTE("GET", "/v1/executors/{name}/state/versions/{version}", MAY(STATE, EXECUTOR),
          df_get_state_version, AUDIT("read", "State")),
    ROUTE("POST", "/v1/executors/{name}/state/rollback", MAY(STATE_WRITE, EXECUTOR),
          df_rollback_state, JSON, AUDIT("rollback", "State")),
    ROUTE("POST", "/v1/executors/{name}/state/push", MAY_ALL(DF_VERBS_TOOL, EXECUTOR),
          df_push_state, BODY(FILE, DF_LIMIT_STATE), .query = "replace", AUDIT("push", "State")),
    ROUTE("GET", "/v1/executors/{name}/state/lock", MAY(VIEW, EXECUTOR), df_get_state_lock),
    ROUTE("DELETE", "/v1/executors/{name}/state/lock", MAY(STATE_WRITE, EXECUTOR),
          df_force_unlock_state, AUDIT("force-unlock", "State")),
    ROUTE("DELETE", "/v1/executors/{name}/state/former", MAY(STATE_WRITE, EXECUTOR),
          df_forget_former_state, AUDIT("confirm-move", "State")),
    ROUTE("GET", "/v1/executors/{name}/state/errored", MAY(VIEW, EXECUTOR), df_list_errored_states),
    ROUTE("GET", "/v1/executors/{name}/state/errored/{step}", MAY(STATE, EXECUTOR),
          df_get_errored_state, AUDIT("read", "State")),
    ROUTE("DELETE", "/v1/executors/{name}/state/errored/{step}", MAY(STATE_WRITE, EXECUTOR),
          df_discard_errored_state, AUDIT("discard-errored", "State")),
    ROUTE("POST", "/v1/executors/{name}/state/errored/{step}/push", MAY(STATE_WRITE, EXECUTOR),
          df_push_errored_state, AUDIT("push-errored", "State")),

    ROUTE("GET", "/v1/runs", CALLER, df_list_documents, OF(RUN), .query = LIST " phase creator",
          ANY_REPLICA),
    ROUTE("GET", "/v1/runs/{name}", MAY(VIEW, RUN), df_get_document, ANY_REPLICA),
    ROUTE("POST", "/v1/runs/{name}/approve", MAY(APPROVE, RUN), df_approve_run, JSON,
          AUDIT("approve", "Run")),
    ROUTE("POST", "/v1/runs/{name}/discard", MAY(APPROVE, RUN), df_discard_run, JSON,
          AUDIT("discard", "Run")),
    ROUTE("POST", "/v1/runs/{name}/cancel", MAY(CANCEL, RUN), df_cancel_run, JSON,
          AUDIT("cancel", "Run")),
    ROUTE("GET", "/v1/runs/{name}/outputs", MAY(VIEW, RUN), df_get_run_outputs,
          .query = "showSensitive", .kind = "Outputs"),
    ROUTE("GET", "/v1/runs/{name}/log", MAY(VIEW, RUN), df_get_run_log, .query = "follow step"),
    ROUTE("GET", "/v1/runs/{name}/events", MAY(VIEW, RUN), df_get_run_events,
          .query = "follow step"),
    ROUTE("GET", "/v1/runs/{name}/watch", MAY(VIEW, RUN), df_watch_run),

    ROUTE("GET", "/v1/revisions", CALLER, df_list_documents, OF(REVISION), .query = LIST,
          ANY_REPLICA),
    ROUTE("GET", "/v1/revisions/{name}", MAY(VIEW, REVISION), df_get_document, ANY_REPLICA),

    ROUTE("GET", "/v1/taskactions", CALLER, df_list_documents, OF(TASK_ACTION), .query = LIST,
          ANY_REPLICA),
    ROUTE("POST", "/v1/taskactions", WRITE, df_create_document, OF(TASK_ACTION), DOCUMENT,
          AUDIT("create", "TaskAction")),
    ROUTE("GET", "/v1/taskactions/{name}", MAY(VIEW, TASK_ACTION), df_get_document, ANY_REPLICA),
    ROUTE("GET", "/v1/taskactions/{name}/log", MAY(VIEW, TASK_ACTION), df_get_taskaction_log,
          .query = "follow"),
    ROUTE("DELETE", "/v1/taskactions/{name}", WRITE, df_delete_taskaction,
          AUDIT("delete", "TaskAction")),
    ROUTE("POST", "/v1/taskactions/{name}/cancel", WRITE, df_cancel_taskaction, JSON,
          AUDIT("cancel", "TaskAction")),

    ROUTE("GET", "/v1/states", CALLER, df_list_states, .query = LIST),
    ROUTE("GET", "/v1/states/{name}", MAY(VIEW, TASK_ACTION), df_get_state_of),
    ROUTE("GET", "/v1/transitions", CALLER, df_watch_transitions),

    ROUTE("GET", "/v1/integrations", READ, df_list_integrations),
    ROUTE("POST", "/v1/integrations", WRITE, df_create_integration, DOCUMENT,
          AUDIT("create", "Integration")),
    ROUTE("GET", "/v1/integrations/{name}", READ, df_get_integration),
    ROUTE("PUT", "/v1/integrations/{name}", WRITE, df_replace_integration, DOCUMENT,
          AUDIT("update", "Integration")),
    ROUTE("DELETE", "/v1/integrations/{name}", WRITE, df_delete_integration,
          AUDIT("delete", "Integration")),
    ROUTE("POST", "/v1/integrations/{name}/test", WRITE, df_test_integration,
          AUDIT("test", "Integration")),

    ROUTE("GET", "/v1/secrets", READ, df_list_secrets),
    ROUTE("PUT", "/v1/secrets/{name}", WRITE, df_allow_secret, .query = "executors force",
          AUDIT("allow", "Secret")),
    ROUTE("PUT", "/v1/secrets/{name}/{key}", WRITE, df_put_secret,
          BODY(BYTES, DF_LIMIT_SECRET_VALUE), .query = "executors force",
          AUDIT("update", "Secret")),
    ROUTE("DELETE", "/v1/secrets/{name}/{key}", WRITE, df_delete_secret, .query = "force",
          AUDIT("delete", "Secret")),
    ROUTE("DELETE", "/v1/secrets/{name}", WRITE, df_delete_secret, .query = "force",
          AUDIT("delete", "Secret")),

    /* Everybody's own; those of others are for admins. */
    ROUTE("GET", "/v1/tokens", CALLER, df_list_tokens, .query = "of"),
    ROUTE("POST", "/v1/tokens", CALLER, df_create_token, JSON, AUDIT("create", "Token")),
    ROUTE("DELETE", "/v1/tokens", CALLER, df_revoke_token, .query = "of", AUDIT("revoke", "Token")),
    ROUTE("DELETE", "/v1/tokens/{name}", CALLER, df_revoke_token, .query = "of",
          AUDIT("revoke", "Token")),

    ROUTE("POST", "/v1/gc", ADMIN, df_collect_garbage, .query = "dryRun orphans",
          AUDIT("remove", "Retention")),
    ROUTE("GET", "/v1/storage", READ, df_get_storage, .query = "executor"),
    ROUTE("GET", "/v1/backup", ADMIN, df_get_backup, .query = "key", AUDIT("read", "Backup")),
    ROUTE("GET", "/v1/audit", ADMIN, df_list_audit,
          .query = "limit cursor name actor action kind outcome since until"),
    ROUTE("GET", "/v1/audit/verify", ADMIN, df_verify_audit),

    ROUTE("POST", "/v1/runners/{id}/claim", STEP, df_claim_for_runner,
          BODY(JSON, DF_LIMIT_STEP_REPORT), GATE(df_gate_runner), WAITS),

    ROUTE("POST", "/v1/steps/{uid}/claim", STEP, df_claim_step, BODY(JSON, DF_LIMIT_STEP_REPORT),
          GATE(df_gate_claim)),
    ROUTE("GET", "/v1/steps/{uid}/streams/{stream}", STEP, df_get_step_stream, GATE(df_gate_step),
          STORES_ASIDE),
    ROUTE("POST", "/v1/steps/{uid}/streams/{stream}", STEP, df_append_step_stream,
          BODY(BYTES, DF_LIMIT_STREAM_FRAME), .query = "offset", GATE(df_gate_live_step),
          STORES_ASIDE),
    ROUTE("POST", "/v1/steps/{uid}/progress", STEP, df_report_step_progress,
          BODY(JSON, DF_LIMIT_STEP_REPORT), GATE(df_gate_step)),
    ROUTE("POST", "/v1/steps/{uid}/result", STEP, df_report_step_result,
          BODY(JSON, DF_LIMIT_STEP_REPORT), GATE(df_gate_step), STORES),
    ROUTE("GET", "/v1/steps/{uid}/artifacts/plan", STEP, df_get_step_plan, GATE(df_gate_step),
          STORES),
    ROUTE("PUT", "/v1/steps/{uid}/artifacts/plan", STEP, df_put_step_plan,
          BODY(FILE, DF_LIMIT_BUNDLE), GATE(df_gate_live_step), STORES),
    ROUTE("GET", "/v1/steps/{uid}/artifacts/errored-state", STEP, df_get_step_errored_state,
          GATE(df_gate_step), STORES),
    ROUTE("PUT", "/v1/steps/{uid}/artifacts/errored-state", STEP, df_put_step_errored_state,
          BODY(FILE, DF_LIMIT_STATE), GATE(df_gate_live_step), STORES),
    ROUTE("PUT", "/v1/steps/{uid}/artifacts/outputs", STEP, df_put_step_outputs,
          BODY(FILE, DF_LIMIT_OUTPUTS), GATE(df_gate_live_step), STORES_ASIDE),
    ROUTE("GET", "/v1/steps/{uid}/artifacts/shown", STEP, df_get_step_shown,
          GATE(df_gate_live_step), STORES_ASIDE),
    ROUTE("PUT", "/v1/steps/{uid}/artifacts/shown", STEP, df_put_step_shown,
          BODY(FILE, DF_LIMIT_OUTPUTS), GATE(df_gate_live_step), STORES_ASIDE),
    ROUTE("GET", "/v1/steps/{uid}/providers/{token}/{hostname}/{namespace}/{type}/{file}", STEP,
          df_get_provider_file, GATE(df_gate_providers), .token_in_path = true),
    ROUTE("GET", "/v1/steps/{uid}/state", STEP, df_get_step_state, GATE(df_gate_step_state), BASIC,
          STORES),
    ROUTE("POST", "/v1/steps/{uid}/state", STEP, df_put_step_state, BODY(FILE, DF_LIMIT_STATE),
          STORES, .query = "ID", GATE(df_gate_step_state_write), BASIC),
    ROUTE("DELETE", "/v1/steps/{uid}/state", STEP, df_delete_step_state, .query = "ID",
          GATE(df_gate_step_state), BASIC, STORES),
    ROUTE("LOCK", "/v1/steps/{uid}/state", STEP, df_lock_step_state,
          BODY(BYTES, DF_LIMIT_LOCK_INFO), GATE(df_gate_step_state), BASIC, STORES),
    ROUTE("UNLOCK", "/v1/steps/{uid}/state", STEP, df_unlock_step_state,
          BODY(BYTES, DF_LIMIT_LOCK_INFO), GATE(df_gate_step_state), BASIC, STORES),
};

const struct df_route_table df_routes = {routes, DF_ARRAY_SIZE(routes)};
