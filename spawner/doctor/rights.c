/*
 * rights.c - checks of rights in the cluster: the spawner must have every right that it uses, and
 * the pods of steps must have no dangerous one. Read df_check_rights() and
 * df_check_runner_rights().
 */
#include "spawner/doctor/checks.h"
#include "spawner/model/model.h"

static const struct df_kube_resource self_reviews = {"authorization.k8s.io", "v1",
                                                     "selfsubjectaccessreviews"};
static const struct df_kube_resource reviews = {"authorization.k8s.io", "v1",
                                                "subjectaccessreviews"};
static const struct df_kube_resource self_subjects = {"authentication.k8s.io", "v1",
                                                      "selfsubjectreviews"};

struct right {
    const char *group, *resource, *subresource; /* subresource may be NULL */
    const char *verb;
    const char *name; /* the only object; NULL: any */
};

/* Who may do something, and where. */
struct scope {
    const char *account;    /* a service account; NULL: the account of the present credentials */
    const char *account_at; /* its namespace */
    const char *name_space; /* of the objects */
};

static int make_review(const struct scope *scope, const struct right *w, cJSON **ret,
                       struct df_err *err)
{
    DF_JSON cJSON *review = cJSON_CreateObject();
    cJSON *spec = df_json_object_at(review, "spec");
    cJSON *attributes = df_json_object_at(spec, "resourceAttributes");
    if (df_json_put(attributes, err, DF_STR("namespace", scope->name_space),
                    DF_STR("group", w->group), DF_STR("resource", w->resource),
                    DF_STR("subresource", w->subresource), DF_STR("verb", w->verb),
                    DF_STR("name", w->name)) < 0)
        return -1;
    if (scope->account) {
        DF_FREE char *user =
            df_strf("system:serviceaccount:%s:%s", scope->account_at, scope->account);
        DF_FREE char *group = df_strf("system:serviceaccounts:%s", scope->account_at);
        cJSON *groups = df_json_array_at(spec, "groups");
        if (!user || !group || df_json_add_str(spec, "user", user, err) < 0 ||
            df_json_append_str(groups, group, err) < 0 ||
            df_json_append_str(groups, "system:serviceaccounts", err) < 0 ||
            df_json_append_str(groups, "system:authenticated", err) < 0)
            return df_fail_oom(err);
    }
    *ret = DF_TAKE(review);
    return 0;
}

/* *ret: true if the account may do this. */
static int may(const struct df_doctor_context *p, const struct right *w, const struct scope *scope,
               bool *ret, struct df_err *err)
{
    DF_JSON cJSON *review = NULL, *answer = NULL;
    const struct df_kube_at at = {.resource = scope->account ? &reviews : &self_reviews};
    if (make_review(scope, w, &review, err) < 0 ||
        df_kube_create(p->kube, &at, review, &answer, err) < 0)
        return -1;
    *ret = df_json_bool(df_json_at(answer, "status"), "allowed", false);
    return 0;
}

/* Appends "executors.dayfly.dev/status". */
static void add_resource(struct df_buf *to, const char *group, const char *resource,
                         const char *subresource)
{
    (void)df_buf_addf(to, "%s%s%s%s%s", resource, *group ? "." : "", group, subresource ? "/" : "",
                      subresource ? subresource : "");
}

/* ---- the rights of the spawner ---- */

static bool has_pods(const struct df_config *c)
{
    return c->runs_pods;
}

/* Events are about Jobs, or about TaskActions if these are custom resources. */
static bool posts_on_jobs(const struct df_config *c)
{
    return has_pods(c) && !c->in_cluster;
}

static bool posts_on_tasks(const struct df_config *c)
{
    return has_pods(c) && c->in_cluster;
}

static bool has_pipelines(const struct df_config *c)
{
    return c->runs_pipelines;
}

static bool hands_over(const struct df_config *c)
{
    return c->asks_awx;
}

static bool stores_documents(const struct df_config *c)
{
    return c->in_cluster;
}

static bool elects(const struct df_config *c)
{
    return c->elects;
}

static bool shares_authority(const struct df_config *c)
{
    return c->tls_secret != NULL;
}

#define EACH_KIND NULL /* as a resource: every kind that is a custom resource */
#define DOCUMENT_VERBS                                                                             \
    {                                                                                              \
        "get", "list", "watch", "create", "update", "patch", "delete"                              \
    }

/* The rights of the Roles in rbac/: a test compares both. */
static const struct required_right {
    bool (*needed)(const struct df_config *c);
    const char *group, *resource, *subresource;
    const char *verbs[8];
    const char *spare; /* what is missing without it, if steps run all the same; or NULL */
} required_rights[] = {
    {has_pods, "batch", "jobs", NULL, {"get", "list", "watch", "create", "delete"}, NULL},
    {has_pods, "", "pods", NULL, {"list", "watch"}, NULL},
    {has_pods,
     "",
     "pods",
     NULL,
     {"delete"},
     "a pod that never claims its step stays for its grace period"},
    {has_pods, "", "pods", "log", {"get"}, "workflows have no log"},
    {has_pods, "", "events", NULL, {"list", "watch"}, NULL},
    {has_pods, "", "persistentvolumeclaims", NULL, {"get"}, "an optional plugin cache is not used"},
    {has_pods, "", "namespaces", NULL, {"get"}, "its Pod Security Standard is not known"},
    {has_pipelines,
     "tekton.dev",
     "pipelineruns",
     NULL,
     {"get", "list", "watch", "create", "patch", "delete"},
     NULL},
    {has_pipelines, "tekton.dev", "taskruns", NULL, {"list", "watch"}, NULL},
    {hands_over, "", "secrets", NULL, {"get"}, NULL},
    {hands_over, "", "configmaps", NULL, {"get"}, NULL},
    {posts_on_jobs, "events.k8s.io", "events", NULL, {"create"}, "steps leave no Events"},
    {posts_on_tasks, "events.k8s.io", "events", NULL, {"create"}, "steps leave no Events"},
    {stores_documents, DF_API_GROUP, EACH_KIND, NULL, DOCUMENT_VERBS, NULL},
    {stores_documents, DF_API_GROUP, EACH_KIND, "status", {"update"}, NULL},
    {stores_documents,
     DF_API_GROUP,
     "audittrails",
     NULL,
     {"get", "list", "create", "update", "delete"},
     NULL},
    {stores_documents, "", "secrets", NULL, {"get", "list", "create", "update", "delete"}, NULL},
    {stores_documents, "", "configmaps", NULL, {"get", "list", "create", "delete"}, NULL},
    {shares_authority, "", "secrets", NULL, {"get", "update"}, NULL},
    {elects,
     "coordination.k8s.io",
     "leases",
     NULL,
     {"get", "list", "watch", "create", "update"},
     NULL},
};

/* Jobs and what belongs to them are in the namespace of steps, all else in that of the service. */
static const char *place_of(const struct df_doctor_context *p, const struct required_right *r)
{
    bool is_of_steps = r->needed == has_pods || r->needed == has_pipelines ||
                       r->needed == hands_over || r->needed == posts_on_jobs;
    return is_of_steps ? p->name_space : p->service_ns;
}

/* Appends the verbs that the account lacks: "get, list". */
static int list_missing(const struct df_doctor_context *p, const struct required_right *r,
                        struct df_buf *missing, struct df_err *err)
{
    const struct scope scope = {p->account, p->service_ns, place_of(p, r)};
    struct right w = {.group = r->group, .resource = r->resource, .subresource = r->subresource};
    bool allowed = false;
    if (r->needed == shares_authority)
        w.name = p->config.tls_secret;
    for (size_t v = 0; v < DF_ARRAY_SIZE(r->verbs) && r->verbs[v]; v++) {
        w.verb = r->verbs[v];
        if (may(p, &w, &scope, &allowed, err) < 0)
            return -1;
        if (!allowed)
            (void)df_buf_addf(missing, "%s%s", missing->len ? ", " : "", w.verb);
    }
    return 0;
}

static int check_required(struct df_doctor_context *p, const struct required_right *r,
                          const char *subject, struct df_err *err)
{
    DF_BUF struct df_buf missing = DF_BUF_INIT(200), what = DF_BUF_INIT(200);
    if (list_missing(p, r, &missing, err) < 0)
        return -1;
    if (!missing.len)
        return 0;
    add_resource(&what, r->group, r->resource, r->subresource);
    df_finding(p, r->spare ? DF_LEVEL_WARN : DF_LEVEL_FAIL,
               "%s may not %s %s in the namespace %s%s%s: grant it the Role of rbac/", subject,
               df_buf_str(&missing), df_buf_str(&what), place_of(p, r), r->spare ? "; " : "",
               r->spare ? r->spare : "");
    return 0;
}

static int check_each_kind(struct df_doctor_context *p, const struct required_right *r,
                           const char *subject, struct df_err *err)
{
    struct required_right one = *r;
    for (int kind = 0; kind < DF_KIND_COUNT; kind++) {
        one.resource = df_kind_plural((enum df_kind)kind);
        if (df_kind_row((enum df_kind)kind)->is_custom_resource &&
            check_required(p, &one, subject, err) < 0)
            return -1;
    }
    return 0;
}

/* The name of the account whose rights are checked, for messages. */
static char *name_subject(const struct df_doctor_context *p)
{
    DF_JSON cJSON *empty = cJSON_CreateObject(), *answer = NULL;
    const struct df_kube_at at = {.resource = &self_subjects};
    if (p->account)
        return df_strf("the service account %s", p->account);
    if (!empty || df_kube_create(p->kube, &at, empty, &answer, NULL) < 0)
        return strdup("this account");
    const char *name = df_json_str(answer, "status.userInfo.username");
    return strdup(name ? name : "this account");
}

int df_check_rights(struct df_doctor_context *p, struct df_err *err)
{
    size_t before = p->counts[DF_LEVEL_FAIL] + p->counts[DF_LEVEL_WARN];
    DF_FREE char *subject = name_subject(p);
    if (!subject)
        return df_fail_oom(err);
    for (size_t i = 0; i < DF_ARRAY_SIZE(required_rights); i++) {
        const struct required_right *r = &required_rights[i];
        if (r->needed(&p->config) &&
            (r->resource ? check_required : check_each_kind)(p, r, subject, err) < 0)
            return -1;
    }
    if (p->counts[DF_LEVEL_FAIL] + p->counts[DF_LEVEL_WARN] == before)
        df_finding(p, DF_LEVEL_OK, "%s may do all that the spawner does in the namespace %s%s%s",
                   subject, p->service_ns, p->config.kube_step_space ? ", and for steps in " : "",
                   p->config.kube_step_space ? p->name_space : "");
    return 0;
}

/* ---- the rights of the pods of steps ---- */

/* With any of these rights a module could reach what does not belong to it. */
static const struct right dangerous_rights[] = {
    {"", "secrets", NULL, "get", NULL},
    {"", "secrets", NULL, "list", NULL},
    {"", "pods", NULL, "create", NULL},
    {"", "pods", "exec", "create", NULL},
    {"", "serviceaccounts", "token", "create", NULL},
    {"batch", "jobs", NULL, "create", NULL},
    {"batch", "jobs", NULL, "delete", NULL},
    {"rbac.authorization.k8s.io", "rolebindings", NULL, "create", NULL},
    {DF_API_GROUP, "executors", NULL, "update", NULL},
};

static int check_runner(struct df_doctor_context *p, const char *account, const char *of,
                        struct df_err *err)
{
    DF_BUF struct df_buf held = DF_BUF_INIT(4 * DF_KIB);
    const struct scope scope = {account, p->name_space, p->name_space};
    for (size_t i = 0; i < DF_ARRAY_SIZE(dangerous_rights); i++) {
        bool allowed = false;
        if (may(p, &dangerous_rights[i], &scope, &allowed, err) < 0)
            return -1;
        if (!allowed)
            continue;
        (void)df_buf_addf(&held, "%s%s ", held.len ? ", " : "", dangerous_rights[i].verb);
        add_resource(&held, dangerous_rights[i].group, dangerous_rights[i].resource,
                     dangerous_rights[i].subresource);
    }
    if (held.len)
        df_finding(p, DF_LEVEL_FAIL,
                   "the service account %s, as which modules run, may %s: remove these rights, or "
                   "set serviceAccountName in %s to one without any",
                   account, df_buf_str(&held), of);
    else
        df_finding(p, DF_LEVEL_OK, "the service account %s of steps has no dangerous rights",
                   account);
    return 0;
}

int df_check_runner_rights(struct df_doctor_context *p, struct df_err *err)
{
    DF_STRS struct df_strs checked = {0};
    const cJSON *job;
    cJSON_ArrayForEach (job, p->jobs) {
        const char *account = df_json_str(job, "spec.template.spec.serviceAccountName");
        struct df_err why = {0};
        account = account ? account : "default";
        if (!df_strs_add_new(&checked, account) || check_runner(p, account, job->string, &why) == 0)
            continue;
        if (why.cls == DF_ERR_DENIED) {
            df_finding(p, DF_LEVEL_WARN,
                       "these credentials may not query the rights of the service account %s: "
                       "run doctor once as a user who may create subjectaccessreviews",
                       account);
            return 0;
        }
        return df_err_pass(err, &why);
    }
    return df_strs_check(&checked, err);
}
