/*
 * What is special about the routes of executors (documents.c). Their rules are in requests/.
 */
#include "spawner/api/documents.h"
#include "spawner/api/handlers.h"
#include "spawner/http/rights.h"
#include "spawner/model/access.h"
#include "spawner/requests/holdings.h"
#include "spawner/requests/secrets.h"

#define AUDIT_DETAIL_MAX (16 * DF_KIB)

static int get_executor(const struct df_request *req, cJSON **ret, struct df_err *err)
{
    return df_store_get(req->s->store, DF_KIND_EXECUTOR, req->params[0], ret, err);
}

/* True if the resources in the state forbid a deletion that the documents allow. */
static bool has_resources(const struct df_request *req, const cJSON *executor)
{
    struct df_err ignored;
    return df_holdings_check_delete(req->s, executor, req->verbs, NULL, &ignored) < 0;
}

int df_get_executor_actions(struct df_request *req, struct df_response *res, struct df_err *err)
{
    DF_JSON cJSON *executor = NULL, *list = cJSON_CreateArray();
    if (df_check_alloc(list, err) < 0 || get_executor(req, &executor, err) < 0)
        return -1;
    const char *words[9] = {0};
    df_executor_actions(executor, req->verbs, words);
    for (size_t i = 0; words[i]; i++)
        if (!(df_streq(words[i], "delete") && has_resources(req, executor)) &&
            df_json_append_str(list, words[i], err) < 0)
            return -1;
    return df_respond_list(res, DF_TAKE(list), NULL, err);
}

/* ---- create ---- */

/* Needs the role write on what it will be: on all executors, or by its name and labels. */
int df_make_executor(struct df_request *req, const cJSON *marks, cJSON **ret, struct df_err *err)
{
    const struct df_document_request request = {req->json, marks, req->caller.role,
                                                req->caller.name};
    const char *name = df_json_str(req->json, "metadata.name");
    df_verbs verbs =
        df_granted_on(&req->caller.granted, req->caller.name, name ? name : "", req->json);
    if (df_verbs_require(verbs, DF_VERBS_WRITE, "creating an executor", name, err) < 0)
        return -1;
    return df_request_create_executor(req->s, &request, ret, err) < 0
               ? df_rights_refuse(req, err)
               : df_request_warn_of_secrets(req->s, *ret, err);
}

/* ---- change ---- */

/* "...; ... and 3 more": an entry of the audit trail has room for so much. */
static char *join(const cJSON *said)
{
    DF_BUF struct df_buf out = DF_BUF_INIT(2 * AUDIT_DETAIL_MAX);
    int left = cJSON_GetArraySize(said);
    const cJSON *one;
    cJSON_ArrayForEach (one, said) {
        if (out.len + strlen(one->valuestring) > AUDIT_DETAIL_MAX)
            break;
        (void)df_buf_addf(&out, "%s%s", out.len ? "; " : "", one->valuestring);
        left--;
    }
    if (left)
        (void)df_buf_addf(&out, " and %d more grants", left);
    return df_buf_take(&out);
}

/* Says in the answer and in the audit trail who gains and who loses by the change. */
static int tell_grants(const struct df_request *req, struct df_response *res, const cJSON *old,
                       cJSON *doc, struct df_err *err)
{
    DF_JSON cJSON *said = cJSON_CreateArray();
    if (df_check_alloc(said, err) < 0 ||
        df_access_changes(req->s->config->grants, old, doc, NULL, said, err) < 0)
        return -1;
    if (!said->child)
        return 0;
    if (df_check_alloc(res->audit_detail = join(said), err) < 0)
        return -1;
    return df_json_add(doc, "warnings", DF_TAKE(said), err);
}

int df_change_executor(struct df_request *req, struct df_response *res, cJSON *doc,
                       const cJSON *old, cJSON **ret, struct df_err *err)
{
    bool confirmed = false; /* an admin may confirm the change to another source */
    if (df_request_flag(req, "confirmSourceChange", &confirmed, err) < 0)
        return -1;
    const struct df_document_request request = {
        .doc = doc, .role = req->caller.role, .actor = req->caller.name, .verbs = req->verbs};
    if (df_request_change_executor(req->s, &request, old, confirmed, ret, err) < 0)
        return df_rights_refuse(req, err);
    return tell_grants(req, res, old, *ret, err) < 0
               ? -1
               : df_request_warn_of_secrets(req->s, *ret, err);
}

int df_delete_executor(struct df_request *req, struct df_response *res, struct df_err *err)
{
    DF_JSON cJSON *old = NULL;
    bool forget = false;
    struct df_forget what = {.state_version = -1};
    if (df_request_flag(req, "forget", &forget, err) < 0 ||
        df_request_flag(req, "abandon", &what.abandon, err) < 0 ||
        df_request_number(req, "stateVersion", 0, INT32_MAX, &what.state_version, err) < 0)
        return -1;
    forget = forget || what.abandon;
    res->audit = what.abandon ? "abandon" : forget ? "forget" : NULL;
    if (get_executor(req, &old, err) < 0 || df_request_check_match(req, old, err) < 0 ||
        df_request_delete_executor(req->s, req->params[0], req->verbs, forget ? &what : NULL,
                                   req->caller.name, err) < 0)
        return -1;
    df_respond_nothing(res);
    return 0;
}
