/*
 * A component as Argo CD's Application: the object that is applied, the patches that ask for
 * something, and the parts of the status that an action waits for.
 */
#include "runner/platform/application.h"

#include "common/base/clock.h"

const struct df_kube_resource df_applications = {"argoproj.io", "v1alpha1", "applications"};

#define REFRESH "argocd.argoproj.io/refresh" /* taken away when the comparison is made */
#define SETTLE_US (5 * INT64_C(1000000))
#define IN_CLUSTER "https://kubernetes.default.svc"

/* ---- what is written ---- */

static cJSON *helm_of(const cJSON *values)
{
    return df_json_object(DF_ITEM("valuesObject", cJSON_Duplicate(values, true)));
}

static cJSON *source_of(const struct df_platform_input *in, const struct df_node *node)
{
    const cJSON *chart = node->chart, *values = df_json_at(chart, "values");
    if (!chart)
        return df_json_object(DF_STR("repoURL", in->git_repository), DF_STR("path", node->path),
                              DF_STR("targetRevision", in->git_revision));
    cJSON *source = df_json_object(DF_STR("repoURL", df_json_str(chart, "repoURL")),
                                   DF_STR("chart", df_json_str(chart, "name")),
                                   DF_STR("targetRevision", df_json_str(chart, "version")));
    if (values && df_json_add(source, "helm", helm_of(values), NULL) < 0) {
        cJSON_Delete(source);
        return NULL;
    }
    return source;
}

static cJSON *options(void)
{
    static const char *const words[] = {"CreateNamespace=true", "ServerSideApply=true"};
    return cJSON_CreateStringArray(words, DF_ARRAY_SIZE(words));
}

static cJSON *spec_of(const struct df_platform_input *in, const struct df_node *node)
{
    cJSON *policy = df_json_object(DF_ITEM("syncOptions", options()));
    return df_json_object(
        DF_STR("project", "default"), DF_ITEM("source", source_of(in, node)),
        DF_ITEM("destination", df_json_object(DF_STR("server", IN_CLUSTER),
                                              DF_STR("namespace", node->name_space))),
        DF_ITEM("syncPolicy", policy));
}

int df_application_make(const struct df_platform_input *in, const struct df_node *node, cJSON **ret,
                        struct df_err *err)
{
    /* By itself Argo CD does not know what the API server adds to a StatefulSet's templates of
     * claims: the component would be OutOfSync for ever. */
    cJSON *annotations =
        df_json_object(DF_STR("argocd.argoproj.io/compare-options", "ServerSideDiff=true"));
    cJSON *labels =
        df_json_object(DF_STR(DF_LABEL_ENVIRONMENT, in->name), DF_STR(DF_LABEL_STACK, node->stack),
                       DF_STR(DF_LABEL_TIER, in->environment));
    cJSON *metadata =
        df_json_object(DF_STR("name", node->name), DF_STR("namespace", in->argocd_namespace),
                       DF_ITEM("labels", labels), DF_ITEM("annotations", annotations));
    *ret =
        df_json_object(DF_STR("apiVersion", "argoproj.io/v1alpha1"), DF_STR("kind", "Application"),
                       DF_ITEM("metadata", metadata), DF_ITEM("spec", spec_of(in, node)));
    return df_check_alloc(*ret, err);
}

bool df_application_is_ours(const struct df_platform_input *in, const cJSON *app)
{
    return df_streq(df_kube_label(app, DF_LABEL_ENVIRONMENT), in->name);
}

static cJSON *name_and_value(const char *name, const char *value)
{
    return df_json_object(DF_STR("name", name), DF_STR("value", value));
}

static cJSON *info_of(const char *trace, const char *span)
{
    cJSON *info = cJSON_CreateArray();
    if (df_json_append(info, name_and_value(DF_TRACE_ANNOTATION, trace), NULL) < 0 ||
        df_json_append(info, name_and_value(DF_SPAN_ANNOTATION, span), NULL) < 0) {
        cJSON_Delete(info);
        return NULL;
    }
    return info;
}

int df_application_sync_patch(const char *trace, const char *span, const char *revision,
                              cJSON **ret, struct df_err *err)
{
    /* What is no longer in the repository keeps an Application OutOfSync until it is pruned. */
    cJSON *sync = df_json_object(DF_BOOL("prune", true), DF_ITEM("syncOptions", options()),
                                 DF_STR("revision", revision));
    cJSON *operation =
        df_json_object(DF_ITEM("initiatedBy", df_json_object(DF_STR("username", "dayfly"))),
                       DF_ITEM("info", info_of(trace, span)), DF_ITEM("sync", sync));
    cJSON *annotations =
        df_json_object(DF_STR(DF_TRACE_ANNOTATION, trace), DF_STR(DF_SPAN_ANNOTATION, span));
    *ret = df_json_object(DF_ITEM("metadata", df_json_object(DF_ITEM("annotations", annotations))),
                          DF_ITEM("operation", operation));
    return df_check_alloc(*ret, err);
}

int df_application_refresh_patch(bool is_hard, cJSON **ret, struct df_err *err)
{
    cJSON *annotations = df_json_object(DF_STR(REFRESH, is_hard ? "hard" : "normal"));
    *ret = df_json_object(DF_ITEM("metadata", df_json_object(DF_ITEM("annotations", annotations))));
    return df_check_alloc(*ret, err);
}

/* ---- what the status says ---- */

/* Argo CD leaves out what is empty: both sides may lack a member. */
static bool is_same_source(const cJSON *app)
{
    const cJSON *compared = df_json_at(app, "status.sync.comparedTo");
    return compared &&
           df_json_equal(df_json_at(compared, "source"), df_json_at(app, "spec.source")) &&
           df_json_equal(df_json_at(compared, "destination"), df_json_at(app, "spec.destination"));
}

/* True if the last operation brought the revision that the status is about. */
static bool is_brought(const cJSON *app)
{
    const cJSON *operation = df_json_at(app, "status.operationState");
    return df_streq(df_json_str(operation, "phase"), "Succeeded") &&
           df_streq(df_json_str(operation, "syncResult.revision"),
                    df_json_str(app, "status.sync.revision"));
}

/* Both times have the precision of a second. What Argo CD knows of the cluster is a moment behind
 * what it wrote itself: right behind an operation it may miss the objects of that. */
static bool is_before_end(const cJSON *app)
{
    int64_t compared = 0, ended = 0;
    const char *end = df_json_str(app, "status.operationState.finishedAt");
    if (!end || df_time_parse(end, &ended, NULL) < 0)
        return false;
    if (df_time_parse(df_json_text(app, "status.reconciledAt"), &compared, NULL) < 0)
        return true;
    return compared <= ended + (is_brought(app) ? SETTLE_US : 0);
}

/* The first one whose type ends so. */
static void read_condition(const cJSON *app, const char *suffix, const char **ret_type,
                           const char **ret_message)
{
    const cJSON *condition;
    cJSON_ArrayForEach (condition, df_json_at(app, "status.conditions")) {
        const char *type = df_json_text(condition, "type");
        if (!df_ends_with(type, suffix))
            continue;
        *ret_type = type;
        *ret_message = df_json_text(condition, "message");
        return;
    }
}

static const char *span_of(const cJSON *app)
{
    const cJSON *info;
    cJSON_ArrayForEach (info, df_json_at(app, "status.operationState.operation.info")) {
        if (df_streq(df_json_str(info, "name"), DF_SPAN_ANNOTATION))
            return df_json_text(info, "value");
    }
    return "";
}

struct df_application_view df_application_view(const cJSON *app)
{
    struct df_application_view v = {.sync = df_json_text(app, "status.sync.status"),
                                    .health = df_json_text(app, "status.health.status"),
                                    .health_message = df_json_text(app, "status.health.message"),
                                    .revision = df_json_text(app, "status.sync.revision"),
                                    .is_current = is_same_source(app),
                                    .condition = "",
                                    .condition_type = "",
                                    .warning = "",
                                    .warning_type = "",
                                    .phase = df_json_text(app, "status.operationState.phase"),
                                    .message = df_json_text(app, "status.operationState.message"),
                                    .span = span_of(app),
                                    .is_requested = df_json_at(app, "operation") != NULL,
                                    .is_refreshing = df_kube_annotation(app, REFRESH) != NULL,
                                    .is_before_end = is_before_end(app)};
    read_condition(app, "Error", &v.condition_type, &v.condition);
    read_condition(app, "Warning", &v.warning_type, &v.warning);
    return v;
}

bool df_application_has_objects(const cJSON *app)
{
    return cJSON_GetArraySize(df_json_at(app, "status.resources")) > 0;
}

bool df_application_is_behind(const struct df_application_view *v, const char *commit)
{
    return commit && !df_streq(v->revision, commit);
}

/* kustomize fetches bases of other repositories, which may be away for a moment. */
static bool is_of_remote_base(const char *message)
{
    static const char *const words[] = {"git fetch", "dial tcp", "i/o timeout",
                                        "deadline exceeded"};
    for (size_t i = 0; strstr(message, "kustomize build") && i < DF_ARRAY_SIZE(words); i++) {
        if (strstr(message, words[i]))
            return true;
    }
    return false;
}

/* Of a repository that was reached: `chart "web" version "2.0.0" not found in https://...`. */
static bool lacks_chart(const char *message)
{
    return strstr(message, "helm pull") && strstr(message, "\" not found in ");
}

const char *df_application_lasting_cause(const char *message)
{
    static const struct {
        const char *needle, *cause;
    } known[] = {
        {"failed to execute helm template", "ComparisonError"},
        {"kustomize build", "ComparisonError"},
        {"version matching constraint not found", "RevisionNotFound"},
        {"not our ref", "RevisionNotFound"},
        {"app path does not exist", "PathNotFound"},
        {"exceeded quota", "QuotaExceeded"},
        {"is forbidden", "Forbidden"},
        {"is not permitted", "Forbidden"},
        {"denied the request", "SyncFailed"}, /* a policy */
        {"is invalid:", "SyncFailed"},
        {"unable to resolve", "RevisionNotFound"},
        {"error validating data", "SyncFailed"},
        {"Failed to unmarshal", "SyncFailed"},
        {"field not declared in schema", "SyncFailed"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(known); i++) {
        if (strstr(message, known[i].needle))
            return is_of_remote_base(message) ? NULL : known[i].cause;
    }
    return lacks_chart(message) ? "RevisionNotFound" : NULL;
}

/* Bytes of s up to n that end with a whole character. */
static size_t whole(const char *s, size_t n)
{
    while (n && ((unsigned char)s[n] & 0xc0) == 0x80)
        n--;
    return n;
}

void df_application_explain(char *to, size_t size, const char *what, const char *why)
{
    size_t len = strlen(why), used = strlen(what) + sizeof(": ");
    size_t room = size > used ? size - used : 0;
    if (len <= room) {
        (void)snprintf(to, size, "%s%s%s", what, len ? ": " : "", why);
        return;
    }
    static const char gap[] = " ... ";
    size_t head = whole(why, room / 4), rest = room - head;
    size_t tail = rest > strlen(gap) ? rest - strlen(gap) : 0;
    while (tail && ((unsigned char)why[len - tail] & 0xc0) == 0x80)
        tail--;
    (void)snprintf(to, size, "%s: %.*s%s%s", what, (int)head, why, gap, why + len - tail);
}

/* ---- objects that Argo CD made ---- */

bool df_application_is_another(const char *name, const cJSON *object)
{
    const char *tracking = df_kube_annotation(object, DF_ARGO_TRACKING);
    size_t n = strlen(name);
    return tracking && (strcspn(tracking, ":") != n || strncmp(tracking, name, n) != 0);
}

/* options: "Prune=false, Delete=false". */
static bool has_option(const char *options, const char *option)
{
    size_t n = strlen(option);
    for (const char *s = options; s && *s; s += strcspn(s, ","), s += *s == ',') {
        s += strspn(s, " \t");
        size_t len = strcspn(s, ",");
        while (len && strchr(" \t", s[len - 1]))
            len--;
        if (len == n && !strncmp(s, option, n))
            return true;
    }
    return false;
}

bool df_application_keeps(const cJSON *object)
{
    return has_option(df_kube_annotation(object, "argocd.argoproj.io/sync-options"),
                      "Delete=false") ||
           has_option(df_kube_annotation(object, "helm.sh/resource-policy"), "keep");
}
