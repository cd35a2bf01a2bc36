/*
 * The routes of executors: read, create, replace, patch. Their rules are in requests/.
 */
#include "spawner/api/handlers.h"
#include "spawner/api/idempotency.h"
#include "spawner/api/pages.h"
#include "spawner/requests/holdings.h"
#include "spawner/requests/secrets.h"

#define PATCH_TRIES 32 /* each attempt reads the executor again */

int df_list_executors(struct df_request *req, struct df_response *res, struct df_err *err)
{
    return df_respond_page(req, res, DF_KIND_EXECUTOR, NULL, false, err);
}

static int get_executor(const struct df_request *req, cJSON **ret, struct df_err *err)
{
    return df_store_get(req->s->store, DF_KIND_EXECUTOR, req->params[0], ret, err);
}

int df_get_executor(struct df_request *req, struct df_response *res, struct df_err *err)
{
    DF_JSON cJSON *executor = NULL;
    if (get_executor(req, &executor, err) < 0)
        return -1;
    return df_respond_document(req, res, 200, executor, err);
}

/* True if the resources in the state forbid a deletion that the documents allow. */
static bool has_resources(const struct df_request *req, const cJSON *executor)
{
    struct df_err ignored;
    return df_holdings_check_delete(req->s, executor, req->caller.role, NULL, &ignored) < 0;
}

int df_get_executor_actions(struct df_request *req, struct df_response *res, struct df_err *err)
{
    DF_JSON cJSON *executor = NULL, *list = cJSON_CreateArray();
    if (!list)
        return df_fail_oom(err);
    if (get_executor(req, &executor, err) < 0)
        return -1;
    const char *words[9] = {0};
    df_executor_actions(executor, req->caller.role, words);
    for (size_t i = 0; words[i]; i++)
        if (!(df_streq(words[i], "delete") && has_resources(req, executor)) &&
            df_json_append_str(list, words[i], err) < 0)
            return -1;
    return df_respond_list(res, DF_TAKE(list), NULL, err);
}

/* ---- create ---- */

static int create_executor(struct df_request *req, const cJSON *marks, cJSON **ret,
                           struct df_err *err)
{
    const struct df_document_request request = {req->json, marks, req->caller.role,
                                                req->caller.name};
    return df_request_create_executor(req->s, &request, ret, err) < 0
               ? -1
               : df_request_warn_of_secrets(req->s, *ret, err);
}

int df_create_executor(struct df_request *req, struct df_response *res, struct df_err *err)
{
    const char *name = df_json_str(req->json, "metadata.name");
    (void)snprintf(res->audit_name, sizeof(res->audit_name), "%s", name ? name : "");
    return df_create_once(req, res, DF_KIND_EXECUTOR, create_executor, err);
}

/* ---- change ---- */

/* Checks If-Match against the document; without the header every change is allowed. */
static int check_match(const struct df_request *req, const cJSON *old, struct df_err *err)
{
    const char *wanted = df_request_header(req, "If-Match");
    if (!wanted || df_etag_listed(wanted, old))
        return 0;
    return df_fail_reason(err, DF_ERR_CONFLICT, "PreconditionFailed",
                          "%s was changed meanwhile (it is at version %s): read it again",
                          req->params[0], df_json_str(old, "metadata.resourceVersion"));
}

/* Stores doc, as the client sent it, as the next version of old. */
static int change_executor(struct df_request *req, cJSON *doc, const cJSON *old, cJSON **ret,
                           struct df_err *err)
{
    const char *name = df_json_str(doc, "metadata.name");
    bool confirmed = false; /* an admin may confirm the change to another source */
    if (name && !df_streq(name, req->params[0]))
        return df_fail_reason(err, DF_ERR_USER, "InvalidDocument",
                              "metadata.name: is %.64s, the path says %s", name, req->params[0]);
    if (df_request_flag(req, "confirmSourceChange", &confirmed, err) < 0)
        return -1;
    return df_request_change_executor(req->s, doc, old, req->caller.role, confirmed, ret, err) < 0
               ? -1
               : df_request_warn_of_secrets(req->s, *ret, err);
}

static int replace_executor(struct df_request *req, cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *old = NULL;
    if (get_executor(req, &old, err) < 0 || check_match(req, old, err) < 0)
        return -1;
    const char *version = df_json_str(req->json, "metadata.resourceVersion");
    if (!version && !df_request_header(req, "If-Match"))
        return df_fail_reason(err, DF_ERR_USER, "PreconditionRequired",
                              "send If-Match with the ETag that you read, or "
                              "metadata.resourceVersion: a blind replace could undo a change of "
                              "somebody else");
    if (version && !df_streq(version, df_json_str(old, "metadata.resourceVersion")))
        return df_fail_reason(err, DF_ERR_CONFLICT, "Conflict",
                              "metadata.resourceVersion: %s was changed meanwhile: read it again",
                              req->params[0]);
    return change_executor(req, req->json, old, ret, err);
}

int df_replace_executor(struct df_request *req, struct df_response *res, struct df_err *err)
{
    DF_JSON cJSON *changed = NULL;
    if (replace_executor(req, &changed, err) < 0)
        return -1;
    return df_respond_document(req, res, 200, changed, err);
}

/* Returns the part of a document that a client may set. */
static cJSON *client_part(const cJSON *old)
{
    static const char *const members[] = {"name", "namespace", "labels", "annotations"};
    DF_JSON cJSON *doc = cJSON_Duplicate(old, true);
    cJSON *metadata = cJSON_DetachItemFromObjectCaseSensitive(doc, "metadata");
    cJSON_DeleteItemFromObjectCaseSensitive(doc, "status");
    cJSON *kept = doc ? df_json_object_at(doc, "metadata") : NULL;
    bool failed = !kept;
    for (size_t i = 0; !failed && i < DF_ARRAY_SIZE(members); i++) {
        cJSON *m = cJSON_DetachItemFromObjectCaseSensitive(metadata, members[i]);
        failed = m && df_json_add(kept, members[i], m, NULL) < 0;
    }
    cJSON_Delete(metadata);
    return failed ? NULL : DF_TAKE(doc);
}

static int patch_once(struct df_request *req, cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *old = NULL;
    if (get_executor(req, &old, err) < 0 || check_match(req, old, err) < 0)
        return -1;
    DF_JSON cJSON *doc = client_part(old);
    if (!doc)
        return df_fail_oom(err);
    if (df_json_merge_patch(&doc, req->json, err) < 0)
        return -1;
    return change_executor(req, doc, old, ret, err);
}

static int patch_executor(struct df_request *req, cJSON **ret, struct df_err *err)
{
    if (!req->json)
        return df_fail(err, DF_ERR_USER, "a body with the merge patch is required");
    for (int i = 1;; i++) {
        if (patch_once(req, ret, err) == 0)
            return 0;
        bool raced = err->cls == DF_ERR_CONFLICT && df_streq(err->reason, "Conflict");
        if (!raced || i == PATCH_TRIES || df_request_header(req, "If-Match"))
            return -1;
    }
}

int df_patch_executor(struct df_request *req, struct df_response *res, struct df_err *err)
{
    DF_JSON cJSON *changed = NULL;
    if (patch_executor(req, &changed, err) < 0)
        return -1;
    return df_respond_document(req, res, 200, changed, err);
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
    if (get_executor(req, &old, err) < 0 || check_match(req, old, err) < 0 ||
        df_request_delete_executor(req->s, req->params[0], req->caller.role, forget ? &what : NULL,
                                   req->caller.name, err) < 0)
        return -1;
    df_respond_nothing(res);
    return 0;
}
