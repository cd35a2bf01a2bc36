/*
 * What the cluster itself says of its rules: results of policies, constraints of Gatekeeper, and
 * the Pod Security labels of the components' namespaces. What is not installed, or may not be read,
 * is "not assessed".
 */
#include "runner/platform/checks.h"
#include "runner/platform/lists.h"

#define CONSTRAINTS "constraints.gatekeeper.sh"

/* What came of a reader that may fail because there is nothing to read, or no right to. */
static int settle(cJSON **assessed, const struct df_err *why, cJSON **ret, struct df_err *err)
{
    if (!why->cls)
        *ret = DF_TAKE(*assessed);
    else if (df_kind_is_absent(why) || why->cls == DF_ERR_DENIED)
        *ret = df_json_object(
            DF_STR("status", "not assessed"),
            DF_STR("why", why->cls == DF_ERR_DENIED ? why->message : "it is not installed"));
    else
        return df_err_pass(err, why);
    return df_check_alloc(*ret, err);
}

/* Adds an offending object, or counts it if there are too many. Takes the object. */
static int add_offender(cJSON *to, cJSON *offender, struct df_err *err)
{
    DF_JSON cJSON *owned = offender;
    cJSON *objects = df_json_array_at(to, "objects");
    if (cJSON_GetArraySize(objects) < DF_LIMIT_PLATFORM_OFFENDERS)
        return df_json_append(objects, DF_TAKE(owned), err);
    return df_json_set(to, "notShown",
                       cJSON_CreateNumber((double)df_json_int(to, "notShown", 0) + 1), err);
}

static int count(cJSON *to, const char *key, int64_t n, struct df_err *err)
{
    return df_json_set(to, key, cJSON_CreateNumber((double)(df_json_int(to, key, 0) + n)), err);
}

/* ---- results of policies ---- */

static const char *const results[] = {"pass", "fail", "warn", "error", "skip"};

static bool is_known(const char *word)
{
    for (size_t i = 0; i < DF_ARRAY_SIZE(results); i++) {
        if (df_streq(results[i], word))
            return true;
    }
    return false;
}

static int begin_reports(void *arg, const char *version, struct df_err *err)
{
    cJSON *to = arg;
    (void)version;
    for (size_t i = 0; i < DF_ARRAY_SIZE(results); i++) {
        if (df_json_set(to, results[i], cJSON_CreateNumber(0), err) < 0)
            return -1;
    }
    cJSON_DeleteItemFromObjectCaseSensitive(to, "notShown");
    return df_json_set(to, "objects", cJSON_CreateArray(), err);
}

static int add_offenders(cJSON *to, const cJSON *report, const cJSON *result, struct df_err *err)
{
    const cJSON *named = df_json_at(result, "resources"), *scope = df_json_at(report, "scope");
    const cJSON *object = named && named->child ? named->child : scope;
    do {
        cJSON *offender = df_json_object(DF_STR("policy", df_json_str(result, "policy")),
                                         DF_STR("rule", df_json_str(result, "rule")),
                                         DF_STR("result", df_json_str(result, "result")),
                                         DF_STR("kind", df_json_str(object, "kind")),
                                         DF_STR("namespace", df_json_str(object, "namespace")),
                                         DF_STR("name", df_json_str(object, "name")),
                                         DF_STR("message", df_json_str(result, "message")));
        if (add_offender(to, offender, err) < 0)
            return -1;
        object = object && object != scope ? object->next : NULL;
    } while (object);
    return 0;
}

static int take_report(void *arg, const cJSON *report, struct df_err *err)
{
    cJSON *to = arg;
    const cJSON *list = df_json_at(report, "results"), *result;
    for (size_t i = 0; !list && i < DF_ARRAY_SIZE(results); i++) {
        if (count(to, results[i], df_json_int(df_json_at(report, "summary"), results[i], 0), err) <
            0)
            return -1;
    }
    cJSON_ArrayForEach (result, list) {
        const char *word = df_json_str(result, "result");
        if (is_known(word) && count(to, word, 1, err) < 0)
            return -1;
        if (!df_streq(word, "pass") && !df_streq(word, "skip") &&
            add_offenders(to, report, result, err) < 0)
            return -1;
    }
    return 0;
}

static int assess_reports(struct df_platform *p, const char *plural, cJSON **ret,
                          struct df_err *err)
{
    static const char *const without[] = {".items.metadata", NULL};
    const struct df_kube_resource resource = {"wgpolicyk8s.io", "v1alpha2", plural};
    const struct df_kube_at at = {.resource = &resource, .stop = df_stop_flag(p->stop)};
    DF_JSON cJSON *assessed = df_json_object(DF_STR("status", "assessed"));
    const struct df_kube_sink sink = {
        .begin = begin_reports, .item = take_report, .arg = assessed, .without = without};
    struct df_err why = {0};
    if (df_check_alloc(assessed, err) < 0)
        return -1;
    (void)!df_kube_list(p->kube, &at, NULL, 0, &sink, &why);
    return settle(&assessed, &why, ret, err);
}

/* ---- Gatekeeper ---- */

static int add_constraint(cJSON *to, const char *kind, const cJSON *constraint, struct df_err *err)
{
    const cJSON *violation, *total = df_json_at(constraint, "status.totalViolations");
    if (!total) /* Gatekeeper has not audited it yet */
        return count(to, "notAudited", 1, err);
    if (count(to, "violations", (int64_t)total->valuedouble, err) < 0)
        return -1;
    cJSON_ArrayForEach (violation, df_json_at(constraint, "status.violations")) {
        cJSON *offender =
            df_json_object(DF_STR("constraint", kind), DF_STR("policy", df_kube_name(constraint)),
                           DF_STR("result", df_json_str(violation, "enforcementAction")),
                           DF_STR("kind", df_json_str(violation, "kind")),
                           DF_STR("namespace", df_json_str(violation, "namespace")),
                           DF_STR("name", df_json_str(violation, "name")),
                           DF_STR("message", df_json_str(violation, "message")));
        if (add_offender(to, offender, err) < 0)
            return -1;
    }
    return 0;
}

static int add_constraints(struct df_platform *p, cJSON *to, const cJSON *kind, struct df_err *err)
{
    const struct df_kube_resource resource = {CONSTRAINTS, "v1beta1", df_json_str(kind, "name")};
    const struct df_kube_at at = {.resource = &resource, .stop = df_stop_flag(p->stop)};
    DF_JSON cJSON *constraints = NULL;
    const cJSON *one;
    if (df_list_objects(p, &at, NULL, &constraints, err) < 0)
        return -1;
    cJSON_ArrayForEach (one, constraints) {
        if (count(to, "constraints", 1, err) < 0 ||
            add_constraint(to, df_json_str(kind, "kind"), one, err) < 0)
            return -1;
    }
    return 0;
}

static int read_gatekeeper(struct df_platform *p, cJSON *to, struct df_err *err)
{
    DF_JSON cJSON *kinds = NULL;
    const cJSON *kind;
    if (df_list_resources(p, CONSTRAINTS "/v1beta1", &kinds, err) < 0)
        return -1;
    cJSON_ArrayForEach (kind, kinds) {
        if (add_constraints(p, to, kind, err) < 0)
            return -1;
    }
    return 0;
}

static int assess_gatekeeper(struct df_platform *p, cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *assessed =
        df_json_object(DF_STR("status", "assessed"), DF_NUM("constraints", 0),
                       DF_NUM("violations", 0), DF_ITEM("objects", cJSON_CreateArray()));
    struct df_err why = {0};
    if (df_check_alloc(assessed, err) < 0)
        return -1;
    (void)!read_gatekeeper(p, assessed, &why);
    return settle(&assessed, &why, ret, err);
}

/* ---- Pod Security ---- */

static cJSON *levels_of(const char *name, const cJSON *object)
{
    static const char label[] = "pod-security.kubernetes.io/";
    static const char *const modes[] = {"enforce", "audit", "warn"};
    cJSON *levels = df_json_object(DF_STR("namespace", name));
    for (size_t i = 0; levels && i < DF_ARRAY_SIZE(modes); i++) {
        char key[sizeof(label) + 8];
        (void)snprintf(key, sizeof(key), "%s%s", label, modes[i]);
        const char *level = df_kube_label(object, key);
        (void)df_json_add_str(levels, modes[i], level ? level : "not set", NULL);
    }
    return levels;
}

struct levels {
    struct df_strs names; /* of the components' namespaces */
    cJSON *found;         /* owned object: namespace -> levels */
};

static int note_levels(void *arg, const cJSON *object, struct df_err *err)
{
    struct levels *l = arg;
    const char *name = df_kube_name(object);
    return name && df_strs_has(&l->names, name)
               ? df_json_set(l->found, name, levels_of(name, object), err)
               : 0;
}

/* One list: a platform has hundreds of namespaces, and a request for each would take longer. */
static int list_levels(struct df_platform *p, struct levels *l, cJSON *to, struct df_err *err)
{
    const struct df_kube_at at = {
        .resource = &df_namespaces, .stop = df_stop_flag(p->stop), .metadata_only = true};
    const struct df_kube_select all = {0};
    const struct df_kube_sink sink = {.item = note_levels, .arg = l};
    if (df_list_namespaces(p, &l->names, err) < 0 || df_check_alloc(l->found, err) < 0 ||
        df_kube_list(p->kube, &at, &all, 0, &sink, err) < 0)
        return -1;
    for (size_t i = 0; i < l->names.len; i++) {
        cJSON *one = cJSON_DetachItemFromObjectCaseSensitive(l->found, l->names.items[i]);
        if (one && df_json_append(to, one, err) < 0)
            return -1;
    }
    return 0;
}

static int read_levels(struct df_platform *p, cJSON *to, struct df_err *err)
{
    struct levels l = {.found = cJSON_CreateObject()};
    int result = list_levels(p, &l, to, err);
    df_strs_free(&l.names);
    cJSON_Delete(l.found);
    return result;
}

static int assess_levels(struct df_platform *p, cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *list = cJSON_CreateArray(), *assessed = NULL;
    struct df_err why = {0};
    if (df_check_alloc(list, err) < 0)
        return -1;
    (void)!read_levels(p, list, &why);
    assessed = df_json_object(DF_STR("status", "assessed"), DF_ITEM("namespaces", DF_TAKE(list)));
    if (df_check_alloc(assessed, err) < 0)
        return -1;
    return settle(&assessed, &why, ret, err);
}

int df_check_compliance(struct df_platform *p, struct df_err *err)
{
    DF_JSON cJSON *reports = NULL, *of_cluster = NULL, *gatekeeper = NULL, *levels = NULL;
    if (assess_reports(p, "policyreports", &reports, err) < 0 ||
        assess_reports(p, "clusterpolicyreports", &of_cluster, err) < 0 ||
        assess_gatekeeper(p, &gatekeeper, err) < 0 || assess_levels(p, &levels, err) < 0)
        return -1;
    p->compliance = df_json_object(DF_ITEM("policyReports", DF_TAKE(reports)),
                                   DF_ITEM("clusterPolicyReports", DF_TAKE(of_cluster)),
                                   DF_ITEM("gatekeeper", DF_TAKE(gatekeeper)),
                                   DF_ITEM("podSecurity", DF_TAKE(levels)));
    return df_check_alloc(p->compliance, err);
}
