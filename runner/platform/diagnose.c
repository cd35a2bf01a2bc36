/*
 * Why a component is not healthy: what was not applied, then its workloads that are not ready, with
 * their pods, the pods' last lines and the events of both. Only what belongs to the Application is
 * told: others may have the same namespace. What cannot be read is left out.
 */
#include "runner/platform/diagnose.h"

#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/http/http.h"
#include "runner/platform/applications.h"
#include "runner/platform/checks.h"
#include "runner/platform/workload.h"

enum { MOST_LOGS = 3, LOG_LINES = 10, MOST_EVENTS = 5000 };

struct diagnosis {
    struct df_platform *platform;
    struct df_component *component;
    struct df_strs names; /* of workloads that are not ready */
    int logs, events;     /* that were read */
    bool lacks_image;     /* a pod waits for an image that cannot be pulled */
};

/* Ends a list early: a namespace may have thousands of events. */
static bool is_full(const struct diagnosis *d)
{
    return cJSON_GetArraySize(d->component->diagnostics) >= DF_LIMIT_PLATFORM_DIAGNOSTICS;
}

/* ---- what was not applied ---- */

/* What an operation says of a hook that failed, and of an object that became Degraded while later
 * ones waited for it: not which, and not why. */
#define ONE_FAILED "synchronization tasks completed unsuccessfully"

static void name_task(struct df_component *c, const cJSON *r)
{
    size_t n = strlen(c->message);
    (void)snprintf(c->message + n, sizeof(c->message) - n, "; %s %s failed: %.200s",
                   df_json_text(r, "kind"), df_json_text(r, "name"), df_json_text(r, "message"));
}

static int tell_refused(struct diagnosis *d, const cJSON *app, struct df_err *err)
{
    const cJSON *r;
    cJSON_ArrayForEach (r, df_json_at(app, "status.operationState.syncResult.resources")) {
        const char *phase = df_json_text(r, "hookPhase");
        if (df_streq(df_json_str(r, "status"), "SyncFailed")) {
            if (df_component_tell(d->component,
                                  df_strf("%s %s was not applied: %.300s", df_json_text(r, "kind"),
                                          df_json_text(r, "name"), df_json_text(r, "message")),
                                  err) < 0)
                return -1;
        } else if (strstr(d->component->message, ONE_FAILED) &&
                   (df_streq(phase, "Failed") || df_streq(phase, "Error"))) {
            name_task(d->component, r);
        }
    }
    return 0;
}

/* ---- pods ---- */

static int take_text(void *arg, const char *bytes, size_t n, struct df_err *err)
{
    (void)err;
    return df_buf_add(arg, bytes, n);
}

static int tell_log(struct diagnosis *d, const cJSON *pod, const char *container,
                    struct df_err *err)
{
    const struct df_kube_at at = {.resource = &df_kube_pods,
                                  .name_space = df_json_str(pod, "metadata.namespace"),
                                  .name = df_kube_name(pod),
                                  .subresource = "log",
                                  .stop = df_stop_flag(d->platform->stop)};
    DF_BUF struct df_buf text = DF_BUF_INIT(64 * DF_KIB);
    DF_BUF struct df_buf query = DF_BUF_INIT(DF_LIMIT_URL);
    (void)df_buf_addf(&query, "tailLines=%d&container=", LOG_LINES);
    df_url_add_escaped(&query, container);
    if (df_buf_check(&query, err) < 0)
        return -1;
    if (d->logs++ >= MOST_LOGS ||
        df_kube_get_text(d->platform->kube, &at, df_buf_str(&query), take_text, &text, NULL) < 0 ||
        !text.len)
        return 0;
    return df_component_tell(
        d->component, df_strf("last lines of pod %s: %.800s", at.name, df_buf_str(&text)), err);
}

static bool is_of_image(const char *reason)
{
    return df_streq(reason, "ErrImagePull") || df_streq(reason, "ImagePullBackOff");
}

static int on_pod(void *arg, const cJSON *pod, struct df_err *err)
{
    struct diagnosis *d = arg;
    const cJSON *c;
    if (is_full(d))
        return df_fail(err, DF_ERR_LIMIT, "there is room for no more lines");
    if (df_check_pod(d->component, pod, err) < 0)
        return -1;
    cJSON_ArrayForEach (c, df_json_at(pod, "status.containerStatuses")) {
        d->lacks_image |= is_of_image(df_json_str(c, "state.waiting.reason"));
        bool has_run = df_json_int(c, "restartCount", 0) > 0 || df_json_at(c, "state.running");
        if (has_run && !df_json_bool(c, "ready", false) &&
            tell_log(d, pod, df_json_text(c, "name"), err) < 0)
            return -1;
    }
    return 0;
}

static int tell_pods(struct diagnosis *d, const cJSON *live, struct df_err *err)
{
    const struct df_kube_at at = {.resource = &df_kube_pods,
                                  .name_space = df_json_str(live, "metadata.namespace"),
                                  .stop = df_stop_flag(d->platform->stop)};
    const struct df_kube_sink sink = {.item = on_pod, .arg = d};
    DF_BUF struct df_buf labels = DF_BUF_INIT(DF_LIMIT_URL);
    if (df_workload_selector(live, &labels, err) < 0)
        return -1;
    const struct df_kube_select of_workload = {.labels = df_buf_str(&labels)};
    return labels.len ? df_kube_list(d->platform->kube, &at, &of_workload, 0, &sink, err) : 0;
}

/* ---- workloads ---- */

static int read_resource(struct diagnosis *d, const cJSON *r, cJSON **ret, struct df_err *err)
{
    const char *group = df_json_text(r, "group");
    DF_FREE char *version = df_strf("%s%s%s", group, *group ? "/" : "", df_json_text(r, "version"));
    struct df_object_place place;
    DF_JSON cJSON *object = df_json_object(
        DF_STR_ALLOC("apiVersion", version), DF_STR("kind", df_json_str(r, "kind")),
        DF_ITEM("metadata", df_json_object(DF_STR("name", df_json_str(r, "name")),
                                           DF_STR("namespace", df_json_str(r, "namespace")))));
    if (df_check_alloc(object, err) < 0 ||
        df_object_place(&d->platform->objects, object, NULL, &place, err) < 0)
        return -1;
    const struct df_kube_at at = df_object_at(&place);
    return df_object_read(&d->platform->objects, &at, ret, err);
}

/* Argo CD does not store the health of single resources (since 3.0): workloads are looked at. */
static int tell_workload(struct diagnosis *d, const cJSON *r, struct df_err *err)
{
    DF_JSON cJSON *live = NULL;
    char why[256];
    if (read_resource(d, r, &live, err) < 0)
        return -1;
    if (!live || df_workload_is_ready(live, -1, why, sizeof why))
        return 0;
    if (df_component_tell(
            d->component,
            df_strf("%s %s: %s", df_json_text(r, "kind"), df_json_text(r, "name"), why), err) < 0 ||
        df_strs_add(&d->names, df_json_text(r, "name")) < 0)
        return -1;
    return tell_pods(d, live, err);
}

/* ---- events ---- */

/* A pod is named after its workload. */
static bool is_about(const struct diagnosis *d, const char *name)
{
    for (size_t i = 0; i < d->names.len; i++) {
        size_t n = strlen(d->names.items[i]);
        if (!strncmp(name, d->names.items[i], n) && (!name[n] || name[n] == '-'))
            return true;
    }
    return false;
}

static int on_event(void *arg, const cJSON *event, struct df_err *err)
{
    struct diagnosis *d = arg;
    if (is_full(d) || ++d->events > MOST_EVENTS)
        return df_fail(err, DF_ERR_LIMIT, "there are more events than are looked at");
    if (!is_about(d, df_json_text(event, "involvedObject.name")))
        return 0;
    return df_component_tell(d->component,
                             df_strf("event of %s %s: %s: %.300s",
                                     df_json_text(event, "involvedObject.kind"),
                                     df_json_text(event, "involvedObject.name"),
                                     df_json_text(event, "reason"), df_json_text(event, "message")),
                             err);
}

static int tell_events(struct diagnosis *d, struct df_err *err)
{
    const struct df_kube_at at = {.resource = &df_kube_events,
                                  .name_space = d->component->node->name_space,
                                  .stop = df_stop_flag(d->platform->stop)};
    const struct df_kube_select warnings = {.fields = "type=Warning"};
    const struct df_kube_sink sink = {.item = on_event, .arg = d};
    return d->names.len && at.name_space
               ? df_kube_list(d->platform->kube, &at, &warnings, 0, &sink, err)
               : 0;
}

static int tell(struct diagnosis *d, struct df_err *err)
{
    const struct df_kube_at at = df_applications_at(d->platform, d->component->node->name);
    DF_JSON cJSON *app = NULL;
    const cJSON *r;
    if (df_kube_get(d->platform->kube, &at, &app, err) < 0 || tell_refused(d, app, err) < 0)
        return -1;
    cJSON_ArrayForEach (r, df_json_at(app, "status.resources")) {
        if (df_workload_is_kind(df_json_str(r, "kind")) && tell_workload(d, r, err) < 0)
            return -1;
    }
    return tell_events(d, err);
}

static bool is_of_health(const char *cause)
{
    return df_streq(cause, "HealthTimeout") || df_streq(cause, "Degraded") ||
           df_streq(cause, "WorkloadNotReady");
}

void df_diagnose(struct df_platform *p, struct df_component *c)
{
    struct diagnosis d = {.platform = p, .component = c};
    struct df_err why = {0};
    if (tell(&d, &why) < 0 && why.cls != DF_ERR_NOT_FOUND)
        df_debug("the diagnosis is not whole: %s", why.message);
    df_strs_free(&d.names);
    if (d.lacks_image && is_of_health(c->cause))
        df_copy(c->cause, sizeof(c->cause), "ImagePullFailed");
}
