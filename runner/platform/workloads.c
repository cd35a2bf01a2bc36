/*
 * The workloads of a critical component, as the API server has them, not as Argo CD sums them up:
 * how many replicas are ready, and what their pods say of restarts and of their last end.
 */
#include "runner/platform/checks.h"
#include "runner/platform/lists.h"
#include "runner/platform/workload.h"

/* ---- pods ---- */

/* What is out of the ordinary about a container; nothing is added otherwise. */
static int tell_container(struct df_component *c, const char *pod, const cJSON *status,
                          struct df_err *err)
{
    const char *name = df_json_text(status, "name");
    const cJSON *waits = df_json_at(status, "state.waiting");
    const cJSON *last = df_json_at(status, "lastState.terminated");
    int64_t restarts = df_json_int(status, "restartCount", 0);
    if (waits &&
        df_component_tell(c,
                          df_strf("pod %s: container %s waits: %s: %.200s", pod, name,
                                  df_json_text(waits, "reason"), df_json_text(waits, "message")),
                          err) < 0)
        return -1;
    if (restarts > 0 &&
        df_component_tell(
            c,
            df_strf("pod %s: container %s: %lld restarts; it ended last with code %lld (%s): "
                    "%.200s",
                    pod, name, (long long)restarts, (long long)df_json_int(last, "exitCode", 0),
                    df_json_text(last, "reason"), df_json_text(last, "message")),
            err) < 0)
        return -1;
    return 0;
}

int df_check_pod(struct df_component *c, const cJSON *pod, struct df_err *err)
{
    static const char *const lists[] = {"status.initContainerStatuses", "status.containerStatuses"};
    const char *name = df_kube_name(pod);
    const cJSON *one;
    for (size_t i = 0; i < DF_ARRAY_SIZE(lists); i++) {
        cJSON_ArrayForEach (one, df_json_at(pod, lists[i])) {
            if (tell_container(c, name, one, err) < 0)
                return -1;
        }
    }
    cJSON_ArrayForEach (one, df_json_at(pod, "status.conditions")) {
        if (df_streq(df_json_str(one, "type"), "PodScheduled") &&
            df_streq(df_json_str(one, "status"), "False") &&
            df_component_tell(
                c,
                df_strf("pod %s: it is not scheduled: %.200s", name, df_json_text(one, "message")),
                err) < 0)
            return -1;
    }
    return 0;
}

/* Who may not list pods is told the rest. */
static int tell_pods(struct df_platform *p, struct df_component *c, const cJSON *workload,
                     struct df_err *err)
{
    const struct df_kube_at at = {.resource = &df_kube_pods,
                                  .name_space = df_json_str(workload, "metadata.namespace"),
                                  .stop = df_stop_flag(p->stop)};
    DF_BUF struct df_buf labels = DF_BUF_INIT(DF_LIMIT_URL);
    DF_JSON cJSON *pods = NULL;
    const cJSON *pod;
    struct df_err why = {0};
    if (df_workload_selector(workload, &labels, err) < 0)
        return -1;
    if (!labels.len) /* would be every pod of the namespace */
        return 0;
    if (df_list_objects(p, &at, df_buf_str(&labels), &pods, &why) < 0)
        return why.cls == DF_ERR_DENIED ? df_component_tell(c, strdup(why.message), err)
                                        : df_err_pass(err, &why);
    cJSON_ArrayForEach (pod, pods) {
        if (df_check_pod(c, pod, err) < 0)
            return -1;
    }
    return 0;
}

/* ---- resources ---- */

/* ignoreResources has them as KIND/NAME. */
static bool is_ignored(const struct df_platform *p, const struct df_component *c,
                       const cJSON *entry)
{
    const cJSON *ignored = df_platform_criterion(p, c->node->name, "ignoreResources");
    DF_FREE char *key = df_strf("%s/%s", df_json_text(entry, "kind"), df_json_text(entry, "name"));
    return df_json_has_string(ignored, key);
}

/* *ret NULL: it is not there, or may not be read: *ret_why says which. */
static int read_entry(struct df_platform *p, const cJSON *entry, cJSON **ret,
                      struct df_err *ret_why, struct df_err *err)
{
    const char *group = df_json_text(entry, "group"), *version = df_json_text(entry, "version");
    DF_FREE char *api_version = df_strf("%s%s%s", group, *group ? "/" : "", version);
    const struct df_kind *kind;
    *ret = NULL;
    if (df_check_alloc(api_version, err) < 0)
        return -1;
    if (df_kinds_find(&p->objects.kinds, p->kube, api_version, df_json_text(entry, "kind"), &kind,
                      ret_why) == 0) {
        const struct df_kube_resource resource = df_kind_resource(kind);
        const struct df_kube_at at = {.resource = &resource,
                                      .name_space = df_json_str(entry, "namespace"),
                                      .name = df_json_text(entry, "name"),
                                      .stop = df_stop_flag(p->stop)};
        if (df_kube_get(p->kube, &at, ret, ret_why) == 0)
            return 0;
    }
    return df_kind_is_absent(ret_why) || ret_why->cls == DF_ERR_DENIED ? 0
                                                                       : df_err_pass(err, ret_why);
}

static bool is_ready(const struct df_platform *p, const struct df_component *c,
                     const cJSON *workload, char *words, size_t size)
{
    const cJSON *minimum = df_platform_criterion(p, c->node->name, "minReadyReplicas");
    return df_workload_is_ready(workload, minimum ? (int64_t)minimum->valuedouble : -1, words,
                                size);
}

/* By its own conditions, as most operators write them. */
static bool says_no(const cJSON *object)
{
    const cJSON *condition;
    cJSON_ArrayForEach (condition, df_json_at(object, "status.conditions")) {
        const char *type = df_json_str(condition, "type");
        if ((df_streq(type, "Ready") || df_streq(type, "Available")) &&
            df_streq(df_json_str(condition, "status"), "False"))
            return true;
    }
    return false;
}

/* Of the core group only a pod says how it is; Secrets and the like are not to be read. */
static bool has_conditions(const cJSON *entry)
{
    return *df_json_text(entry, "group") || df_streq(df_json_str(entry, "kind"), "Pod");
}

enum judgement { IS_BAD, IS_WELL, IS_EXCUSED };

static enum judgement judge_workload(const struct df_platform *p, const struct df_component *c,
                                     const cJSON *workload)
{
    char words[256];
    if (df_workload_is_ready(workload, -1, words, sizeof(words)))
        return IS_WELL;
    return is_ready(p, c, workload, words, sizeof(words)) ? IS_EXCUSED : IS_BAD;
}

static int judge(struct df_platform *p, const struct df_component *c, const cJSON *entry,
                 enum judgement *ret, struct df_err *err)
{
    const char *health = df_json_str(entry, "health.status");
    bool is_workload = df_workload_is_kind(df_json_str(entry, "kind"));
    DF_JSON cJSON *object = NULL;
    struct df_err why = {0};
    if (is_ignored(p, c, entry)) {
        *ret = IS_EXCUSED;
        return 0;
    }
    *ret = !health || df_platform_allows_health(p, c->node->name, health) ? IS_WELL : IS_BAD;
    if (!is_workload && (health || !has_conditions(entry)))
        return 0;
    if (read_entry(p, entry, &object, &why, err) < 0)
        return -1;
    *ret = IS_BAD;
    if (object && is_workload)
        *ret = judge_workload(p, c, object);
    else if (object && !says_no(object))
        *ret = IS_WELL;
    return 0;
}

int df_check_resources(struct df_platform *p, const struct df_component *c, const cJSON *app,
                       bool *ret, struct df_err *err)
{
    const cJSON *entry;
    bool excuses = df_platform_criterion(p, c->node->name, "minReadyReplicas") ||
                   df_platform_criterion(p, c->node->name, "ignoreResources");
    *ret = false;
    if (!excuses)
        return 0;
    cJSON_ArrayForEach (entry, df_json_at(app, "status.resources")) {
        enum judgement found;
        if (judge(p, c, entry, &found, err) < 0)
            return -1;
        if (found == IS_BAD) {
            *ret = false;
            return 0;
        }
        *ret |= found == IS_EXCUSED;
    }
    return 0;
}

/* ---- workloads ---- */

/* The first failure is the component's: Argo CD's own word, or this one. */
static void fail(struct df_component *c, const char *cause, const cJSON *entry, const char *words)
{
    if (c->state != DF_COMPONENT_FAILED)
        df_component_fail(c, cause, "%s %s: %s", df_json_str(entry, "kind"),
                          df_json_text(entry, "name"), words);
}

static int check(struct df_platform *p, struct df_component *c, const cJSON *entry,
                 struct df_err *err)
{
    DF_JSON cJSON *workload = NULL;
    struct df_err why = {0};
    char words[256];
    if (read_entry(p, entry, &workload, &why, err) < 0)
        return -1;
    if (!workload) {
        fail(c, why.cls == DF_ERR_DENIED ? "Forbidden" : "Missing", entry, why.message);
        return 0;
    }
    if (!is_ready(p, c, workload, words, sizeof(words)))
        fail(c, "WorkloadNotReady", entry, words);
    if (df_component_tell(
            c,
            df_strf("%s %s: %s", df_json_text(entry, "kind"), df_json_text(entry, "name"), words),
            err) < 0)
        return -1;
    return tell_pods(p, c, workload, err);
}

int df_check_workloads(struct df_platform *p, struct df_component *c, const cJSON *app,
                       struct df_err *err)
{
    const cJSON *entry;
    cJSON_ArrayForEach (entry, df_json_at(app, "status.resources")) {
        if (df_workload_is_kind(df_json_str(entry, "kind")) && !is_ignored(p, c, entry) &&
            check(p, c, entry, err) < 0)
            return -1;
    }
    return 0;
}
