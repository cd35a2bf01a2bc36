#include "runner/platform/rights.h"

#include "runner/platform/credentials.h"

static const struct df_kube_resource reviews = {"authorization.k8s.io", "v1",
                                                "selfsubjectaccessreviews"};

struct right {
    const char *group, *resource, *name_space; /* name_space NULL: of the cluster */
    const char *name;                          /* NULL: of all of them */
    const char *const *verbs;                  /* up to NULL */
};

static int ask(struct df_platform *p, const struct right *r, const char *verb, bool *ret,
               struct df_err *err)
{
    const struct df_kube_at at = {.resource = &reviews, .stop = df_stop_flag(p->stop)};
    DF_JSON cJSON *answer = NULL;
    cJSON *attributes = df_json_object(DF_STR("group", r->group), DF_STR("resource", r->resource),
                                       DF_STR("verb", verb), DF_STR("namespace", r->name_space),
                                       DF_STR("name", r->name));
    DF_JSON cJSON *review = df_json_object(
        DF_STR("apiVersion", "authorization.k8s.io/v1"), DF_STR("kind", "SelfSubjectAccessReview"),
        DF_ITEM("spec", df_json_object(DF_ITEM("resourceAttributes", attributes))));
    if (df_check_alloc(review, err) < 0 || df_kube_create(p->kube, &at, review, &answer, err) < 0)
        return -1;
    *ret = df_json_bool(answer, "status.allowed", false);
    return 0;
}

static int add_missing(struct df_platform *p, const struct right *r, struct df_buf *missing,
                       struct df_err *err)
{
    for (const char *const *verb = r->verbs; *verb; verb++) {
        bool allowed;
        if (ask(p, r, *verb, &allowed, err) < 0)
            return -1;
        if (!allowed)
            (void)df_buf_addf(missing, "%s%s %s%s%s%s%s in %s", missing->len ? ", " : "", *verb,
                              r->resource, *r->group ? "." : "", r->group, r->name ? " " : "",
                              r->name ? r->name : "",
                              r->name_space ? r->name_space : "the cluster");
    }
    return 0;
}

#define VERBS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* A server-side apply is a patch; of what is not there it needs the right to create as well. */
static int check_deploy(struct df_platform *p, struct df_buf *missing, struct df_err *err)
{
    const struct df_platform_input *in = p->in;
    DF_FREE char *login = df_credentials_repository_name(in);
    const struct right applications = {"argoproj.io", "applications", in->argocd_namespace, NULL,
                                       VERBS("get", "list", "watch", "create", "patch")};
    const struct right namespaces = {"", "namespaces", NULL, NULL, VERBS("get", "create", "patch")};
    const struct right secret = {"", "secrets", in->argocd_namespace, login,
                                 VERBS("get", "create", "patch")};
    if (df_check_alloc(login, err) < 0 || add_missing(p, &applications, missing, err) < 0 ||
        (in->registry_file && add_missing(p, &namespaces, missing, err) < 0))
        return -1;
    return df_credentials_has_repository(in) ? add_missing(p, &secret, missing, err) : 0;
}

/* Of the Secret by which Argo CD reads the repository: only one that is there will be deleted. */
static int check_login(struct df_platform *p, struct df_buf *missing, struct df_err *err)
{
    DF_FREE char *name = df_credentials_repository_name(p->in);
    struct right secret = {"", "secrets", p->in->argocd_namespace, name, VERBS("get")};
    size_t before = missing->len;
    bool is_there = false;
    if (df_check_alloc(name, err) < 0 || add_missing(p, &secret, missing, err) < 0)
        return -1;
    if (missing->len == before && df_credentials_find(p, &is_there, err) < 0)
        return -1;
    secret.verbs = VERBS("delete");
    return is_there ? add_missing(p, &secret, missing, err) : 0;
}

static int check_teardown(struct df_platform *p, struct df_buf *missing, struct df_err *err)
{
    const struct df_platform_input *in = p->in;
    bool is_whole = in->scope.kind == DF_SCOPE_PLATFORM;
    const struct right rights[] = {
        {"argoproj.io", "applications", in->argocd_namespace, NULL,
         VERBS("get", "list", "watch", "patch", "delete")},
        {"", "persistentvolumes", NULL, NULL, VERBS("get", "list", "patch")},
        {"", "persistentvolumeclaims", NULL, NULL, VERBS("get", "list", "patch", "delete")},
        {"apps", "statefulsets", NULL, NULL, VERBS("get", "list")},
        {"", "namespaces", NULL, NULL, is_whole ? VERBS("get", "delete") : VERBS("get")},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(rights); i++) {
        if (add_missing(p, &rights[i], missing, err) < 0)
            return -1;
    }
    return is_whole ? check_login(p, missing, err) : 0;
}

int df_rights_check(struct df_platform *p, struct df_err *err)
{
    DF_BUF struct df_buf missing = DF_BUF_INIT(4 * DF_KIB);
    int failed = p->in->action == DF_PLATFORM_DEPLOY ? check_deploy(p, &missing, err)
                                                     : check_teardown(p, &missing, err);
    if (failed)
        return -1;
    return missing.len ? df_fail_reason(err, DF_ERR_DENIED, "Forbidden",
                                        "the account of the kubeconfig lacks rights: %s",
                                        df_buf_str(&missing))
                       : 0;
}
