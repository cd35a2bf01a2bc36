/*
 * The verbs of the API as functions, one request each; then getters for metadata.
 */
#include "common/kube/client.h"

const struct df_kube_resource df_kube_jobs = {"batch", "v1", "jobs"};
const struct df_kube_resource df_kube_pods = {"", "v1", "pods"};
const struct df_kube_resource df_kube_events = {"", "v1", "events"};
const struct df_kube_resource df_kube_secrets = {"", "v1", "secrets"};
const struct df_kube_resource df_kube_config_maps = {"", "v1", "configmaps"};
const struct df_kube_resource df_kube_leases = {"coordination.k8s.io", "v1", "leases"};

/* Half of an answer to a write, and no writer reads it. */
static const char *const not_of_answers[] = {".metadata." DF_KUBE_MANAGED, NULL};

static int need_name(const struct df_kube_at *at, const char *verb, struct df_err *err)
{
    return at->name ? 0
                    : df_fail(err, DF_ERR_USER, "%s %s: needs a name", verb, at->resource->plural);
}

static int create_object(struct df_kube *k, const struct df_kube_at *at, const cJSON *object,
                         const char *query, cJSON **ret, struct df_err *err)
{
    /* The object contains the name; only a sub-resource (an eviction, a token) needs it in the
     * path. */
    struct df_kube_at to = *at;
    to.name = at->subresource ? at->name : NULL;
    struct df_kube_request r = {.verb = "create",
                                .method = "POST",
                                .at = &to,
                                .body = object,
                                .query = query,
                                .without = not_of_answers};
    return df_kube_request_json(k, &r, ret, err);
}

int df_kube_create(struct df_kube *k, const struct df_kube_at *at, const cJSON *object, cJSON **ret,
                   struct df_err *err)
{
    return create_object(k, at, object, "fieldValidation=Strict", ret, err);
}

int df_kube_dry_run(struct df_kube *k, const struct df_kube_at *at, const cJSON *object,
                    struct df_err *err)
{
    return create_object(k, at, object, "fieldValidation=Strict&dryRun=All", NULL, err);
}

int df_kube_get(struct df_kube *k, const struct df_kube_at *at, cJSON **ret, struct df_err *err)
{
    struct df_kube_request r = {.verb = "get", .method = "GET", .at = at};
    return need_name(at, r.verb, err) < 0 ? -1 : df_kube_request_json(k, &r, ret, err);
}

int df_kube_update(struct df_kube *k, const struct df_kube_at *at, const cJSON *object, cJSON **ret,
                   struct df_err *err)
{
    struct df_kube_request r = {
        .verb = "update", .method = "PUT", .at = at, .body = object, .without = not_of_answers};
    return need_name(at, r.verb, err) < 0 ? -1 : df_kube_request_json(k, &r, ret, err);
}

int df_kube_patch(struct df_kube *k, const struct df_kube_at *at, const struct df_kube_patch *patch,
                  cJSON **ret, struct df_err *err)
{
    static const char *const types[] = {
        [DF_KUBE_PATCH_MERGE] = "application/merge-patch+json",
        [DF_KUBE_PATCH_STRATEGIC] = "application/strategic-merge-patch+json",
        [DF_KUBE_PATCH_JSON] = "application/json-patch+json",
        [DF_KUBE_PATCH_APPLY] = "application/apply-patch+yaml", /* JSON is YAML */
    };
    DF_BUF struct df_buf query = DF_BUF_INIT(DF_LIMIT_URL);
    df_kube_query(&query, "fieldManager", patch->manager);
    df_kube_query(&query, "force",
                  patch->type == DF_KUBE_PATCH_APPLY && patch->force ? "true" : NULL);
    df_kube_query(&query, "dryRun", patch->dry_run ? "All" : NULL);
    if (need_name(at, "patch", err) < 0 || df_buf_check(&query, err) < 0)
        return -1;
    struct df_kube_request r = {.verb = "patch",
                                .method = "PATCH",
                                .at = at,
                                .body = patch->body,
                                .content_type = types[patch->type],
                                .query = df_buf_str(&query),
                                .without = not_of_answers};
    return df_kube_request_json(k, &r, ret, err);
}

static int add_preconditions(cJSON *body, const struct df_kube_delete_options *o,
                             struct df_err *err)
{
    if (!o->uid && !o->resource_version)
        return 0;
    cJSON *p = df_json_object_at(body, "preconditions");
    return df_json_put(p, err, DF_STR("uid", o->uid),
                       DF_STR("resourceVersion", o->resource_version));
}

int df_kube_delete(struct df_kube *k, const struct df_kube_at *at,
                   const struct df_kube_delete_options *o, struct df_err *err)
{
    /* Without a name the request would delete the whole collection. */
    if (need_name(at, "delete", err) < 0)
        return -1;
    DF_JSON cJSON *body =
        df_json_object(DF_STR("apiVersion", "v1"), DF_STR("kind", "DeleteOptions"));
    if (df_check_alloc(body, err) < 0 || add_preconditions(body, o, err) < 0 ||
        df_json_add_str(body, "propagationPolicy", o->propagation, err) < 0)
        return -1;
    if (o->grace_seconds >= 0 &&
        df_json_add_num(body, "gracePeriodSeconds", (double)o->grace_seconds, err) < 0)
        return -1;
    struct df_kube_request r = {.verb = "delete", .method = "DELETE", .at = at, .body = body};
    return df_kube_request_json(k, &r, NULL, err);
}

int df_kube_get_raw(struct df_kube *k, const char *path, cJSON **ret, struct df_err *err)
{
    struct df_kube_request r = {.verb = "get", .method = "GET", .path = path};
    return df_kube_request_json(k, &r, ret, err);
}

struct text {
    df_kube_text take;
    void *arg;
    struct df_err why; /* how take() failed */
};

static int on_text(void *arg, const char *bytes, size_t n)
{
    struct text *t = arg;
    return t->take(t->arg, bytes, n, &t->why);
}

int df_kube_get_text(struct df_kube *k, const struct df_kube_at *at, const char *query,
                     df_kube_text take, void *arg, struct df_err *err)
{
    struct text t = {.take = take, .arg = arg};
    const struct df_kube_request r = {.verb = "get",
                                      .method = "GET",
                                      .at = at,
                                      .query = query,
                                      .accept = "text/plain",
                                      .timeout_ms = -1,
                                      .idle_timeout_ms = 10000,
                                      .on_data = on_text,
                                      .arg = &t};
    DF_HTTP_RESPONSE struct df_http_response res = {0};
    if (df_kube_request(k, &r, &res, err) < 0)
        return -1;
    return res.stopped ? df_err_pass(err, &t.why) : 0;
}

int df_kube_time(struct df_kube *k, int64_t *ret_real_us, struct df_err *err)
{
    struct df_kube_request r = {.verb = "get", .method = "GET", .path = "/version"};
    DF_HTTP_RESPONSE struct df_http_response res = {0};
    if (df_kube_request(k, &r, &res, err) < 0)
        return -1;
    if (df_http_time(&res, ret_real_us) < 0)
        return df_fail(err, DF_ERR_SYSTEM, "%s does not tell its time", df_kube_server(k));
    return 0;
}

/* ---- metadata -------------------------------------------------------------------------------- */

const char *df_kube_name(const cJSON *object)
{
    return df_json_str(object, "metadata.name");
}

const char *df_kube_uid(const cJSON *object)
{
    return df_json_str(object, "metadata.uid");
}

const char *df_kube_version(const cJSON *object)
{
    return df_json_str(object, "metadata.resourceVersion");
}

static const char *in_map(const cJSON *object, const char *map, const char *key)
{
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(df_json_at(object, map), key));
}

const char *df_kube_label(const cJSON *object, const char *key)
{
    return in_map(object, "metadata.labels", key);
}

const char *df_kube_annotation(const cJSON *object, const char *key)
{
    return in_map(object, "metadata.annotations", key);
}

bool df_kube_is_deleted(const cJSON *object)
{
    return df_json_at(object, "metadata.deletionTimestamp") != NULL;
}

int df_kube_disown_fields(cJSON *metadata, struct df_err *err)
{
    return df_json_append(df_json_array_at(metadata, "managedFields"), cJSON_CreateObject(), err);
}
