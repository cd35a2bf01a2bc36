#include "spawner/api/documents.h"

#include "spawner/api/handlers.h"
#include "spawner/api/pages.h"

#define PATCH_TRIES 32 /* each attempt reads the document again */

/* What a kind has no function for, no route asks for. */
static const struct df_document_verbs verbs[DF_KIND_COUNT] = {
    [DF_KIND_EXECUTOR] = {df_make_executor, df_change_executor},
    [DF_KIND_TASK_ACTION] = {df_make_workflow, NULL},
};

int df_list_documents(struct df_request *req, struct df_response *res, struct df_err *err)
{
    enum df_kind kind = req->route->of;
    return df_respond_page(req, res, kind, NULL, df_kind_row(kind)->newest_first, err);
}

static int get_document(const struct df_request *req, cJSON **ret, struct df_err *err)
{
    return df_store_get(req->s->store, req->route->of, req->params[0], ret, err);
}

int df_get_document(struct df_request *req, struct df_response *res, struct df_err *err)
{
    DF_JSON cJSON *doc = NULL;
    if (get_document(req, &doc, err) < 0)
        return -1;
    return df_respond_document(req, res, 200, doc, err);
}

int df_create_document(struct df_request *req, struct df_response *res, struct df_err *err)
{
    const char *name = df_json_str(req->json, "metadata.name");
    (void)snprintf(res->audit_name, sizeof(res->audit_name), "%s", name ? name : "");
    return df_create_once(req, res, req->route->of, verbs[req->route->of].create, err);
}

/* ---- change ---- */

static int change(struct df_request *req, struct df_response *res, cJSON *doc, const cJSON *old,
                  cJSON **ret, struct df_err *err)
{
    const char *name = df_json_str(doc, "metadata.name");
    if (name && !df_streq(name, req->params[0]))
        return df_fail_reason(err, DF_ERR_USER, "InvalidDocument",
                              "metadata.name: is %.64s, the path says %s", name, req->params[0]);
    return verbs[req->route->of].change(req, res, doc, old, ret, err);
}

static int replace(struct df_request *req, struct df_response *res, cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *old = NULL;
    if (get_document(req, &old, err) < 0 || df_request_check_match(req, old, err) < 0)
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
    return change(req, res, req->json, old, ret, err);
}

int df_put_document(struct df_request *req, struct df_response *res, struct df_err *err)
{
    DF_JSON cJSON *changed = NULL;
    if (replace(req, res, &changed, err) < 0)
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
    cJSON *kept = df_json_object_at(doc, "metadata");
    bool failed = !kept;
    for (size_t i = 0; !failed && i < DF_ARRAY_SIZE(members); i++) {
        cJSON *m = cJSON_DetachItemFromObjectCaseSensitive(metadata, members[i]);
        failed = m && df_json_add(kept, members[i], m, NULL) < 0;
    }
    cJSON_Delete(metadata);
    return failed ? NULL : DF_TAKE(doc);
}

static int patch_once(struct df_request *req, struct df_response *res, cJSON **ret,
                      struct df_err *err)
{
    DF_JSON cJSON *old = NULL;
    if (get_document(req, &old, err) < 0 || df_request_check_match(req, old, err) < 0)
        return -1;
    DF_JSON cJSON *doc = client_part(old);
    if (df_check_alloc(doc, err) < 0 || df_json_merge_patch(&doc, req->json, err) < 0)
        return -1;
    return change(req, res, doc, old, ret, err);
}

static int patch(struct df_request *req, struct df_response *res, cJSON **ret, struct df_err *err)
{
    if (!req->json)
        return df_fail(err, DF_ERR_USER, "a body with the merge patch is required");
    for (int i = 1;; i++) {
        if (patch_once(req, res, ret, err) == 0)
            return 0;
        bool raced = err->cls == DF_ERR_CONFLICT && df_streq(err->reason, "Conflict");
        if (!raced || i == PATCH_TRIES || df_request_header(req, "If-Match"))
            return -1;
    }
}

int df_patch_document(struct df_request *req, struct df_response *res, struct df_err *err)
{
    DF_JSON cJSON *changed = NULL;
    if (patch(req, res, &changed, err) < 0)
        return -1;
    return df_respond_document(req, res, 200, changed, err);
}
