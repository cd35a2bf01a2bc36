#include "spawner/api/handlers.h"
#include "spawner/api/idempotency.h"
#include "spawner/api/pages.h"
#include "spawner/api/reserved.h"
#include "spawner/api/server.h"
#include "spawner/control/new_docs.h"

#define PATCH_TRIES 8

int df_list_executors(struct df_request *req, struct df_response *res, struct df_err *err)
{
    return df_respond_page(req, res, DF_KIND_EXECUTOR, NULL, false, err);
}

static int get(const struct df_request *req, cJSON **ret, struct df_err *err)
{
    return df_store_get(req->s->store, DF_KIND_EXECUTOR, req->params[0], ret, err);
}

int df_get_executor(struct df_request *req, struct df_response *res, struct df_err *err)
{
    DF_JSON cJSON *executor = NULL;
    if (get(req, &executor, err) < 0)
        return -1;
    return df_respond_document(req, res, 200, executor, err);
}

int df_get_executor_actions(struct df_request *req, struct df_response *res, struct df_err *err)
{
    DF_JSON cJSON *executor = NULL, *list = cJSON_CreateArray();
    if (!list)
        return df_fail_oom(err);
    if (get(req, &executor, err) < 0)
        return -1;
    const char *words[9] = {0};
    df_executor_actions(executor, req->caller.role, words);
    for (size_t i = 0; words[i]; i++)
        if (df_json_append_str(list, words[i], err) < 0)
            return -1;
    return df_respond_list(res, DF_TAKE(list), NULL, err);
}

/* ---- what is checked ---- */

static int check_document(const struct df_request *req, cJSON *doc, const cJSON *old,
                          struct df_err *err)
{
    if (!doc)
        return df_fail(err, DF_ERR_USER, "a body with the executor is required");
    if (df_model_admit(DF_KIND_EXECUTOR, doc, old, err) < 0)
        return -1;
    cJSON *metadata = df_json_object_at(doc, "metadata");
    const cJSON *before = df_json_at(old, "metadata");
    if (!metadata)
        return df_fail_oom(err);
    if (df_keep_reserved(metadata, before, "labels", err) < 0 ||
        df_keep_reserved(metadata, before, "annotations", err) < 0)
        return -1;
    return df_control_check_storage(req->s, doc, err);
}

/* ---- create ---- */

static int create(struct df_request *req, struct df_response *res, cJSON **ret, struct df_err *err)
{
    struct df_idempotency key;
    if (df_idempotency_find(req, DF_KIND_EXECUTOR, &key, ret, err) < 0)
        return -1;
    res->replayed = *ret != NULL;
    if (res->replayed)
        return 0;
    if (check_document(req, req->json, NULL, err) < 0 ||
        df_idempotency_mark(&key, df_json_object_at(req->json, "metadata"), err) < 0 ||
        df_new_executor_status(req->json, req->caller.name, err) < 0)
        return -1;
    return df_store_create(req->s->store, DF_KIND_EXECUTOR, req->json, ret, err);
}

int df_create_executor(struct df_request *req, struct df_response *res, struct df_err *err)
{
    DF_JSON cJSON *made = NULL;
    const char *name = df_json_str(req->json, "metadata.name");
    (void)snprintf(res->audit_name, sizeof(res->audit_name), "%s", name ? name : "");
    (void)pthread_mutex_lock(&req->api->creating);
    int result = create(req, res, &made, err);
    (void)pthread_mutex_unlock(&req->api->creating);
    return result < 0 ? -1 : df_respond_created(req, res, DF_KIND_EXECUTOR, made, err);
}

/* ---- change ---- */

/* Does If-Match allow a change of this document? Without the header: yes. */
static int check_match(const struct df_request *req, const cJSON *old, struct df_err *err)
{
    const char *wanted = df_request_header(req, "If-Match");
    if (!wanted || df_etag_listed(wanted, old))
        return 0;
    return df_fail_reason(err, DF_ERR_CONFLICT, "PreconditionFailed",
                          "%s was changed meanwhile (it is at version %s): read it again",
                          req->params[0], df_json_str(old, "metadata.resourceVersion"));
}

/* Puts the old document's server-side parts under the new spec, labels and annotations. */
static int carry_over(cJSON *doc, const cJSON *old, struct df_err *err)
{
    cJSON *metadata = cJSON_Duplicate(df_json_at(old, "metadata"), true);
    cJSON *status = cJSON_Duplicate(df_json_at(old, "status"), true);
    cJSON *sent = cJSON_DetachItemFromObjectCaseSensitive(doc, "metadata");
    int failed = !metadata || !status || !sent;
    static const char *const maps[] = {"labels", "annotations"};
    for (size_t i = 0; !failed && i < DF_ARRAY_SIZE(maps); i++) {
        cJSON *map = cJSON_DetachItemFromObjectCaseSensitive(sent, maps[i]);
        cJSON_DeleteItemFromObjectCaseSensitive(metadata, maps[i]);
        failed = map && df_json_add(metadata, maps[i], map, err) < 0;
    }
    cJSON_Delete(sent);
    if (df_json_add(doc, "metadata", metadata, err) < 0 ||
        df_json_add(doc, "status", status, err) < 0 || failed)
        return df_fail_oom(err);
    return 0;
}

static int raise_revision(cJSON *doc, const cJSON *old, struct df_err *err)
{
    if (df_json_equal(df_json_at(doc, "spec"), df_json_at(old, "spec")))
        return 0;
    cJSON *status = df_json_object_at(doc, "status");
    double next = df_json_num(old, "status.revision", 0) + 1;
    return status ? df_json_set(status, "revision", cJSON_CreateNumber(next), err)
                  : df_fail_oom(err);
}

/* Makes doc, which a client wants, the next version of old. */
static int change(struct df_request *req, cJSON *doc, const cJSON *old, cJSON **ret,
                  struct df_err *err)
{
    const char *name = df_json_str(doc, "metadata.name");
    if (name && !df_streq(name, req->params[0]))
        return df_fail_reason(err, DF_ERR_USER, "InvalidDocument",
                              "metadata.name: is %.64s, the path says %s", name, req->params[0]);
    if (df_executor_check_edit(old, req->caller.role, err) < 0 ||
        check_document(req, doc, old, err) < 0 || carry_over(doc, old, err) < 0 ||
        raise_revision(doc, old, err) < 0)
        return -1;
    return df_store_update(req->s->store, DF_KIND_EXECUTOR, doc, ret, err);
}

static int replace(struct df_request *req, cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *old = NULL;
    if (get(req, &old, err) < 0 || check_match(req, old, err) < 0)
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
    return change(req, req->json, old, ret, err);
}

int df_replace_executor(struct df_request *req, struct df_response *res, struct df_err *err)
{
    DF_JSON cJSON *changed = NULL;
    (void)pthread_mutex_lock(&req->api->creating);
    int result = replace(req, &changed, err);
    (void)pthread_mutex_unlock(&req->api->creating);
    return result < 0 ? -1 : df_respond_document(req, res, 200, changed, err);
}

/* The part of a document that a client may send. */
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
    if (get(req, &old, err) < 0 || check_match(req, old, err) < 0)
        return -1;
    DF_JSON cJSON *doc = client_part(old);
    if (!doc)
        return df_fail_oom(err);
    if (df_json_merge_patch(&doc, req->json, err) < 0)
        return -1;
    return change(req, doc, old, ret, err);
}

static int patch(struct df_request *req, cJSON **ret, struct df_err *err)
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
    (void)pthread_mutex_lock(&req->api->creating);
    int result = patch(req, &changed, err);
    (void)pthread_mutex_unlock(&req->api->creating);
    return result < 0 ? -1 : df_respond_document(req, res, 200, changed, err);
}

int df_delete_executor(struct df_request *req, struct df_response *res, struct df_err *err)
{
    DF_JSON cJSON *old = NULL;
    if (get(req, &old, err) < 0 || check_match(req, old, err) < 0 ||
        df_control_delete_executor(req->s, req->params[0], req->caller.role, req->caller.name,
                                   err) < 0)
        return -1;
    df_respond_nothing(res);
    return 0;
}
