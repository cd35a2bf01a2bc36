/*
 * probe.c - starts the probe: the Job of a step whose runner executes no step but reports what it
 * finds. Read df_check_start() at the end, then make_probe(), read_probe() and evaluate().
 */
#include <time.h>

#include "common/base/clock.h"
#include "spawner/doctor/checks.h"
#include "spawner/engine/job/job.h"
#include "spawner/engine/job/job_object.h"
#include "spawner/engine/job/job_snapshot.h"
#include "spawner/engine/placement/placement.h"
#include "spawner/steps/step_document.h"

enum { POLL_MS = 250, LIFE_SECONDS = 60 };

/* ---- its Job ---- */

/* The member `tools` of a step document, without its index, because a probe downloads nothing. */
static int tools_text(const struct df_doctor_context *p, char **ret, struct df_err *err)
{
    DF_JSON cJSON *tools = NULL;
    if (df_step_tools(&p->config, true, &tools, err) < 0)
        return -1;
    cJSON_DeleteItemFromObjectCaseSensitive(tools, "index");
    return df_check_alloc(*ret = df_json_print(tools), err);
}

static int add_words(cJSON *args, const char *a, const char *b, struct df_err *err)
{
    return df_json_append_str(args, a, err) < 0 ? -1 : df_json_append_str(args, b, err);
}

/* Replaces the argument "step" by "probe", keeps the other arguments, and adds the tools and the
 * plugin cache. */
static int set_arguments(const struct df_doctor_context *p, cJSON *container, struct df_err *err)
{
    cJSON *args = df_json_array_at(container, "args");
    const cJSON *placement = p->config.kube_placement;
    const char *cache = df_placement_plugin_cache(placement);
    DF_FREE char *tools = NULL;
    if (df_json_bool(df_json_at(placement, "pluginCache"), "readOnly", false))
        cache = NULL;
    if (!args)
        return df_fail_oom(err);
    if (!df_streq(cJSON_GetStringValue(args->child), "step"))
        return df_fail(err, DF_ERR_USER,
                       "placement.podTemplate: the container " DF_JOB_CONTAINER
                       " must keep its args, otherwise it executes no step");
    if (!cJSON_ReplaceItemInArray(args, 0, cJSON_CreateString("probe")))
        return df_fail_oom(err);
    if (tools_text(p, &tools, err) < 0 || add_words(args, "--tools", tools, err) < 0)
        return -1;
    return cache ? add_words(args, "--plugin-cache", cache, err) : 0;
}

static cJSON *runner_of(const cJSON *job)
{
    cJSON *c;
    cJSON_ArrayForEach (c, df_json_at(job, "spec.template.spec.containers"))
        if (df_streq(df_json_str(c, "name"), DF_JOB_CONTAINER))
            return c;
    DF_BUG("a Job without its container");
}

/* In the handoff, because a runner that does not know this member ignores it, and so reports the
 * rest. */
static int set_leader(struct df_doctor_context *p, cJSON *job, struct df_err *err)
{
    cJSON *pod = df_json_object_at(df_json_object_at(job, "spec"), "template");
    cJSON *notes = df_json_object_at(df_json_object_at(pod, "metadata"), "annotations");
    const char *text = df_kube_annotation(pod, DF_JOB_HANDOFF);
    DF_FREE char *leader = NULL, *with_leader = NULL;
    DF_JSON cJSON *handoff = NULL;
    if (df_find_leader(p, &leader, err) < 0)
        return -1;
    if (!leader || !text) /* without a handoff the pod reaches no spawner */
        return 0;
    if (df_json_parse(text, strlen(text), &handoff, err) < 0 ||
        df_json_add_str(handoff, "leader", leader, err) < 0)
        return -1;
    with_leader = df_json_print(handoff);
    return df_json_put(notes, err, DF_STR_ALLOC(DF_JOB_HANDOFF, with_leader));
}

/* Its deadline and its TTL end and remove it soon, also if doctor is interrupted. */
static int make_probe(struct df_doctor_context *p, const char *name, cJSON **ret,
                      struct df_err *err)
{
    DF_JSON cJSON *job = NULL;
    struct df_job_options o = df_job_options_of(p);
    int64_t deadline = p->config.timeout_pending_s + LIFE_SECONDS;
    o.ttl_seconds = LIFE_SECONDS;
    if (df_make_step_job(p, &o, name, &job, err) < 0 || set_arguments(p, runner_of(job), err) < 0 ||
        set_leader(p, job, err) < 0)
        return -1;
    cJSON *spec = df_json_object_at(job, "spec");
    if (df_json_set(spec, "activeDeadlineSeconds", cJSON_CreateNumber((double)deadline), err) < 0)
        return -1;
    *ret = DF_TAKE(job);
    return 0;
}

/* ---- wait for its report ---- */

/* What the API server has of the probe now. Owned. */
struct probe_objects {
    cJSON *job, *pods, *events;
};

static void free_objects(struct probe_objects *s)
{
    cJSON_Delete(s->job);
    cJSON_Delete(s->pods);
    cJSON_Delete(s->events);
}

static int keep(void *arg, const cJSON *object, struct df_err *err)
{
    return df_json_append(arg, cJSON_Duplicate(object, true), err);
}

static int collect(const struct df_doctor_context *p, const struct df_kube_resource *resource,
                   const struct df_kube_select *select, cJSON *to, struct df_err *err)
{
    const struct df_kube_at at = {.resource = resource, .name_space = p->name_space};
    const struct df_kube_sink sink = {.item = keep, .arg = to};
    return df_kube_list(p->kube, &at, select, 0, &sink, err);
}

static int collect_events(const struct df_doctor_context *p, const cJSON *object, cJSON *to,
                          struct df_err *err)
{
    char field[100];
    const char *uid = df_kube_uid(object);
    if (!uid)
        return 0;
    (void)snprintf(field, sizeof(field), "involvedObject.uid=%s", uid);
    const struct df_kube_select select = {.fields = field};
    return collect(p, &df_kube_events, &select, to, err);
}

static int read_probe(const struct df_doctor_context *p, const char *name,
                      struct probe_objects *ret, struct df_err *err)
{
    DF_CLEANUP(free_objects)
    struct probe_objects s = {.pods = cJSON_CreateArray(), .events = cJSON_CreateArray()};
    char label[100];
    (void)snprintf(label, sizeof(label), DF_LABEL_STEP_UID "=%s", p->uid);
    const struct df_kube_select select = {.labels = label};
    if (df_check_alloc(s.pods, err) < 0 || df_check_alloc(s.events, err) < 0 ||
        df_job_read(p->kube, p->name_space, name, &s.job, err) < 0 ||
        collect(p, &df_kube_pods, &select, s.pods, err) < 0 ||
        collect_events(p, s.job, s.events, err) < 0 ||
        collect_events(p, s.pods->child, s.events, err) < 0)
        return -1;
    *ret = s;
    s = (struct probe_objects){0};
    return 0;
}

/* True for a cause that may end while doctor waits: a node is added, a volume is attached. */
static bool may_resolve(const struct df_pod_diagnosis *v)
{
    return !v->reason[0] || df_streq(v->reason, "Unschedulable") ||
           df_streq(v->reason, "NodeFailed") || df_streq(v->reason, "VolumeFailed");
}

static const char *termination_message(const cJSON *pod)
{
    const cJSON *status;
    cJSON_ArrayForEach (status, df_json_at(pod, "status.containerStatuses"))
        if (df_streq(df_json_str(status, "name"), DF_JOB_CONTAINER))
            return df_json_str(status, "state.terminated.message");
    return NULL;
}

/* True if the pod has ended with a report, which is then stored in p. */
static bool read_report(struct df_doctor_context *p, const cJSON *pod)
{
    const char *text = termination_message(pod);
    DF_JSON cJSON *report = NULL;
    if (!text || df_json_parse(text, strlen(text), &report, NULL) < 0 ||
        !df_streq(df_json_str(report, "probe"), "dayfly"))
        return false;
    p->probe = DF_TAKE(report);
    p->probed_to_us = df_real_us();
    p->has |= DF_HAS_PROBE;
    return true;
}

static int fail_without_report(const struct df_doctor_context *p, const struct df_pod_diagnosis *v,
                               struct df_err *err)
{
    const char *image = df_json_str(runner_of(p->job), "image");
    return df_fail(err, DF_ERR_USER,
                   "the image %s is not a runner of this version: its container reported "
                   "nothing (%s): set kubernetes.image to dayfly-runner of version " DF_VERSION,
                   image, v->message[0] ? v->message : "it ended without an error");
}

/* Returns 0 with the report, -1 with the cause of its absence, 1 to wait. */
static int evaluate(struct df_doctor_context *p, const struct probe_objects *s, bool is_late,
                    struct df_err *err)
{
    const cJSON *pod = s->pods->child;
    const struct df_pod_view view = {.job = s->job,
                                     .pod = pod,
                                     .events = s->events,
                                     .container = DF_JOB_CONTAINER,
                                     .was_created = true,
                                     .now_us = df_real_us()};
    if (read_report(p, pod))
        return 0;
    const struct df_pod_diagnosis v = df_pod_diagnose(&view);
    if (v.phase == DF_ENGINE_ENDED && !v.never_started)
        return fail_without_report(p, &v, err);
    if (v.phase == DF_ENGINE_ENDED || is_late || !may_resolve(&v))
        return df_fail(err, DF_ERR_USER, "%s",
                       v.message[0] ? v.message
                                    : "the probe's pod did not end within timeouts.pending: check "
                                      "its image, or raise timeouts.pending");
    return 1;
}

static int await(struct df_doctor_context *p, const char *name, struct df_err *err)
{
    static const struct timespec pause = {.tv_nsec = POLL_MS * 1000000L};
    int64_t end_ms = df_mono_ms() + p->config.timeout_pending_s * 1000;
    for (;;) {
        DF_CLEANUP(free_objects) struct probe_objects s = {0};
        if (read_probe(p, name, &s, err) < 0)
            return -1;
        int result = evaluate(p, &s, df_mono_ms() > end_ms, err);
        if (result <= 0)
            return result;
        (void)nanosleep(&pause, NULL);
    }
}

static void remove_probe(struct df_doctor_context *p, const char *name)
{
    const struct df_kube_at at = {
        .resource = &df_kube_jobs, .name_space = p->name_space, .name = name};
    struct df_kube_delete_options o = DF_KUBE_DELETE_OPTIONS;
    struct df_err why = {0};
    o.propagation = "Background";
    if (df_kube_delete(p->kube, &at, &o, &why) < 0 && why.cls != DF_ERR_NOT_FOUND)
        df_finding(p, DF_LEVEL_WARN, "the Job %s of the probe is left behind: %s", name,
                   why.message);
}

int df_check_start(struct df_doctor_context *p, struct df_err *err)
{
    const struct df_kube_at at = {.resource = &df_kube_jobs, .name_space = p->name_space};
    DF_FREE char *name = df_strf("dayfly-doctor-%.8s", p->uid);
    DF_JSON cJSON *job = NULL;
    if (!name)
        return df_fail_oom(err);
    p->probed_from_us = df_real_us();
    if (make_probe(p, name, &job, err) < 0 || df_kube_create(p->kube, &at, job, NULL, err) < 0)
        return -1;
    int result = await(p, name, err);
    remove_probe(p, name);
    if (result == 0)
        df_finding(p, DF_LEVEL_OK, "a pod of the runner's image starts and ends");
    return result;
}
