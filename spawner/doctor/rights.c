/*
 * Who may do what: the spawner all that it does, the pods of steps nothing.
 */
#include "spawner/doctor/patient.h"

static const struct df_kube_resource self_reviews = {"authorization.k8s.io", "v1",
                                                     "selfsubjectaccessreviews"};
static const struct df_kube_resource reviews = {"authorization.k8s.io", "v1",
                                                "subjectaccessreviews"};
static const struct df_kube_resource who_am_i = {"authentication.k8s.io", "v1",
                                                 "selfsubjectreviews"};

struct power {
    const char *group, *resource, *subresource; /* the last may be NULL */
    const char *verb;
};

static int make_review(const struct df_patient *p, const struct power *w, const char *account,
                       cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *review = cJSON_CreateObject();
    cJSON *spec = df_json_object_at(review, "spec");
    cJSON *attributes = spec ? df_json_object_at(spec, "resourceAttributes") : NULL;
    if (!attributes)
        return df_fail_oom(err);
    if (df_json_add_str(attributes, "namespace", p->name_space, err) < 0 ||
        df_json_add_str(attributes, "group", w->group, err) < 0 ||
        df_json_add_str(attributes, "resource", w->resource, err) < 0 ||
        df_json_add_str(attributes, "subresource", w->subresource, err) < 0 ||
        df_json_add_str(attributes, "verb", w->verb, err) < 0)
        return -1;
    if (account) {
        DF_FREE char *user = df_strf("system:serviceaccount:%s:%s", p->name_space, account);
        DF_FREE char *group = df_strf("system:serviceaccounts:%s", p->name_space);
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

/* account: of the namespace; NULL: who asks. */
static int may(const struct df_patient *p, const struct power *w, const char *account, bool *ret,
               struct df_err *err)
{
    DF_JSON cJSON *review = NULL, *answer = NULL;
    const struct df_kube_at at = {.resource = account ? &reviews : &self_reviews};
    if (make_review(p, w, account, &review, err) < 0 ||
        df_kube_create(p->kube, &at, review, &answer, err) < 0)
        return -1;
    *ret = df_json_bool(df_json_at(answer, "status"), "allowed", false);
    return 0;
}

/* "delete jobs.batch" */
static void add_power(struct df_buf *list, const struct power *w)
{
    (void)df_buf_addf(list, "%s%s %s%s%s%s%s", list->len ? ", " : "", w->verb, w->resource,
                      *w->group ? "." : "", w->group, w->subresource ? "/" : "",
                      w->subresource ? w->subresource : "");
}

/* ---- the spawner's ---- */

static bool always(const struct df_config *c)
{
    (void)c;
    return true;
}

static bool hands_over(const struct df_config *c)
{
    return df_streq(c->kube_claim, "secret");
}

static bool elects(const struct df_config *c)
{
    return c->elects;
}

/* Those of rbac/, which a test compares with what the service does. */
static const struct {
    bool (*needed)(const struct df_config *c);
    const char *group, *resource, *subresource;
    const char *verbs[8];
} wanted[] = {
    {always, "batch", "jobs", NULL, {"get", "list", "watch", "create", "delete"}},
    {always, "", "pods", NULL, {"list", "watch"}},
    {always, "", "events", NULL, {"list", "watch"}},
    {always, "", "persistentvolumeclaims", NULL, {"get"}},
    {hands_over, "", "secrets", NULL, {"create", "delete"}},
    {hands_over, "batch", "jobs", NULL, {"patch"}},
    {elects, "coordination.k8s.io", "leases", NULL, {"get", "create", "update"}},
};

static int add_missing(const struct df_patient *p, size_t i, struct df_buf *missing,
                       struct df_err *err)
{
    struct power w = {wanted[i].group, wanted[i].resource, wanted[i].subresource, NULL};
    bool allowed = false;
    for (size_t v = 0; v < DF_ARRAY_SIZE(wanted[i].verbs) && wanted[i].verbs[v]; v++) {
        w.verb = wanted[i].verbs[v];
        if (may(p, &w, p->account, &allowed, err) < 0)
            return -1;
        if (!allowed)
            add_power(missing, &w);
    }
    return 0;
}

/* Whose rights these are, for people. */
static char *name_subject(const struct df_patient *p)
{
    DF_JSON cJSON *empty = cJSON_CreateObject(), *answer = NULL;
    const struct df_kube_at at = {.resource = &who_am_i};
    if (p->account)
        return df_strf("the service account %s", p->account);
    if (!empty || df_kube_create(p->kube, &at, empty, &answer, NULL) < 0)
        return strdup("who asks");
    const char *name = df_json_str(answer, "status.userInfo.username");
    return strdup(name ? name : "who asks");
}

int df_look_rights(struct df_patient *p, struct df_err *err)
{
    DF_BUF struct df_buf missing = DF_BUF_INIT(4 * DF_KIB);
    DF_FREE char *subject = name_subject(p);
    if (!subject)
        return df_fail_oom(err);
    for (size_t i = 0; i < DF_ARRAY_SIZE(wanted); i++)
        if (wanted[i].needed(&p->config) && add_missing(p, i, &missing, err) < 0)
            return -1;
    if (missing.len)
        return df_fail(err, DF_ERR_DENIED,
                       "%s may not %s in the namespace %s: grant it the Role of rbac/", subject,
                       df_buf_str(&missing), p->name_space);
    df_find(p, DF_LEVEL_OK, "%s may do all that the spawner does in the namespace %s", subject,
            p->name_space);
    return 0;
}

/* ---- the runner's ---- */

/* With each of these a module could come to what is not its own. */
static const struct power dangers[] = {
    {"", "secrets", NULL, "get"},
    {"", "secrets", NULL, "list"},
    {"", "pods", NULL, "create"},
    {"", "pods", "exec", "create"},
    {"", "serviceaccounts", "token", "create"},
    {"batch", "jobs", NULL, "create"},
    {"batch", "jobs", NULL, "delete"},
    {"rbac.authorization.k8s.io", "rolebindings", NULL, "create"},
    {"dayfly.dev", "executors", NULL, "update"},
};

int df_look_runner_rights(struct df_patient *p, struct df_err *err)
{
    const char *account = df_json_str(p->job, "spec.template.spec.serviceAccountName");
    DF_BUF struct df_buf held = DF_BUF_INIT(4 * DF_KIB);
    account = account ? account : "default";
    for (size_t i = 0; i < DF_ARRAY_SIZE(dangers); i++) {
        struct df_err why = {0};
        bool allowed = false;
        if (may(p, &dangers[i], account, &allowed, &why) < 0) {
            if (why.cls == DF_ERR_DENIED) {
                df_find(p, DF_LEVEL_WARN,
                        "what the service account %s may do cannot be asked with these rights: "
                        "run this once as somebody who may create subjectaccessreviews",
                        account);
                return 0;
            }
            *err = why;
            return -1;
        }
        if (allowed)
            add_power(&held, &dangers[i]);
    }
    if (held.len)
        return df_fail(err, DF_ERR_USER,
                       "the service account %s, by which modules run, may %s: take the rights "
                       "away, or set placement.serviceAccountName to one without any",
                       account, df_buf_str(&held));
    df_find(p, DF_LEVEL_OK, "the service account %s of steps has no dangerous rights", account);
    return 0;
}
