#include "spawner/api/handlers.h"
#include "spawner/api/idempotency.h"
#include "spawner/api/pages.h"
#include "spawner/http/rights.h"
#include "spawner/model/labels.h"
#include "spawner/model/state_command.h"

static int list_of_executor(struct df_request *req, struct df_response *res, enum df_kind kind,
                            struct df_err *err)
{
    DF_JSON cJSON *executor = NULL;
    char label[128];
    if (df_store_get(req->s->store, DF_KIND_EXECUTOR, req->params[0], &executor, err) < 0)
        return -1;
    (void)snprintf(label, sizeof(label), DF_LABEL_EXECUTOR "=%s", req->params[0]);
    return df_respond_page(req, res, kind, label, true, err);
}

int df_list_executor_runs(struct df_request *req, struct df_response *res, struct df_err *err)
{
    return list_of_executor(req, res, DF_KIND_RUN, err);
}

int df_list_executor_revisions(struct df_request *req, struct df_response *res, struct df_err *err)
{
    return list_of_executor(req, res, DF_KIND_REVISION, err);
}

/* Other code or another tool works with the executor's credentials: a plan executes both. */
static int check_overrides(const struct df_request *req, struct df_err *err)
{
    if (!df_json_at(req->json, "source") && !df_json_at(req->json, "runtime"))
        return 0;
    return df_verbs_require(req->verbs, DF_VERB_APPLY, "a run with another source or runtime",
                            req->params[0], err);
}

static int create_run(struct df_request *req, const cJSON *marks, cJSON **ret, struct df_err *err)
{
    const struct df_run_request request = {
        req->json, marks, {req->verbs, req->caller.role}, req->caller.name};
    return check_overrides(req, err) < 0 ||
                   df_request_create_run(req->s, req->params[0], &request, ret, err) < 0
               ? df_rights_refuse(req, err)
               : 0;
}

int df_create_run(struct df_request *req, struct df_response *res, struct df_err *err)
{
    if (!req->json)
        return df_fail(err, DF_ERR_USER, "a body with the action is required");
    const cJSON *command = df_json_at(req->json, "command");
    const char *name = cJSON_GetStringValue(cJSON_GetArrayItem(command, 0));
    if (df_streq(name, "force-unlock"))
        res->audit = "force-unlock"; /* the same words as for a managed state */
    else if (df_streq(name, DF_COMMAND_ROLLBACK))
        res->audit = "rollback";
    return df_create_once(req, res, DF_KIND_RUN, create_run, err);
}

int df_recreate_executor(struct df_request *req, struct df_response *res, struct df_err *err)
{
    if (!req->json && !(req->json = cJSON_CreateObject()))
        return df_fail_oom(err);
    if (df_json_at(req->json, "action"))
        return df_fail_reason(err, DF_ERR_USER, "InvalidDocument", "action: is always provision");
    if (df_json_add_str(req->json, "action", df_action_name(DF_ACTION_PROVISION), err) < 0)
        return -1;
    return df_create_once(req, res, DF_KIND_RUN, create_run, err);
}

/* A member of the body that people write; *ret NULL: there is none. Borrowed. */
static int get_text(const struct df_request *req, const char *name, const char **ret,
                    struct df_err *err)
{
    const cJSON *text = df_json_at(req->json, name);
    if (text && !cJSON_IsString(text))
        return df_fail_reason(err, DF_ERR_USER, "InvalidDocument", "%s: must be a string", name);
    if (text && strlen(text->valuestring) > DF_LIMIT_REASON)
        return df_fail_reason(err, DF_ERR_USER, "InvalidDocument", "%s: is longer than %d bytes",
                              name, DF_LIMIT_REASON);
    *ret = cJSON_GetStringValue(text);
    return 0;
}

static int decide_run(struct df_request *req, struct df_response *res, bool approve,
                      struct df_err *err)
{
    static const char *const members[] = {"reason", "plan", NULL};
    struct df_decision d = {.approves = approve,
                            .verbs = req->verbs,
                            .actor = req->caller.name,
                            .role = req->caller.role,
                            .groups = req->caller.groups};
    DF_JSON cJSON *run = NULL;
    if (df_request_members(req, members, err) < 0 || get_text(req, "reason", &d.reason, err) < 0 ||
        get_text(req, "plan", &d.plan, err) < 0 ||
        df_request_decide(req->s, req->params[0], &d, &run, err) < 0)
        return -1;
    return df_respond_document(req, res, 200, run, err);
}

int df_approve_run(struct df_request *req, struct df_response *res, struct df_err *err)
{
    return decide_run(req, res, true, err);
}

int df_discard_run(struct df_request *req, struct df_response *res, struct df_err *err)
{
    return decide_run(req, res, false, err);
}

int df_request_reason(const struct df_request *req, const char **ret, struct df_err *err)
{
    static const char *const members[] = {"reason", NULL};
    return df_request_members(req, members, err) < 0 ? -1 : get_text(req, "reason", ret, err);
}

int df_cancel_run(struct df_request *req, struct df_response *res, struct df_err *err)
{
    DF_JSON cJSON *run = NULL;
    const char *reason = NULL;
    if (df_request_reason(req, &reason, err) < 0 ||
        df_request_cancel_run(req->s, req->params[0], req->verbs, req->caller.name, reason, &run,
                              err) < 0)
        return -1;
    return df_respond_document(req, res, 200, run, err);
}
