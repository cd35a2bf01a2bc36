/*
 * The watch caches of Jobs, pods and Events, and the snapshot of one step in them. In this order:
 * what the caches keep of an object, index keys, notifications, start and stop of the caches, the
 * snapshot.
 */
#include "spawner/engine/job/job_snapshot.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "spawner/engine/job/job_fields.h"
#include "spawner/engine/job/job_object.h"
#include "spawner/engine/job/workflow_job.h"

#define JOB_NAME_LABEL "batch.kubernetes.io/job-name"

/* In the first START_MS after the start a caller waits up to WAIT_MS for the first lists: ten
 * thousand steps that retry again and again cost more than the three lists. */
enum { START_MS = 10000, WAIT_MS = 1000 };

struct df_job_watch {
    struct df_job_watch_options o;
    int64_t lists_wait_until_ms; /* of the monotonic clock */
    struct df_kube_cache *jobs, *pods, *events;
};

/* ---- what the caches keep of an object ---- */

/* Copies the members with these names (a list that ends with NULL), if they exist. */
static int copy_members(cJSON *to, const cJSON *from, const char *const *names)
{
    for (; *names; names++) {
        const cJSON *item = cJSON_GetObjectItemCaseSensitive(from, *names);
        if (item && df_json_set(to, *names, cJSON_Duplicate(item, true), NULL) < 0)
            return -1;
    }
    return 0;
}

static int copy_below(cJSON *to, const cJSON *from, const char *member, const char *const *names)
{
    cJSON *below = df_json_object_at(to, member);
    return below ? copy_members(below, cJSON_GetObjectItemCaseSensitive(from, member), names) : -1;
}

static const char *const of_metadata[] = {"name",
                                          "namespace",
                                          "uid",
                                          "resourceVersion",
                                          "creationTimestamp",
                                          "deletionTimestamp",
                                          "deletionGracePeriodSeconds",
                                          "labels",
                                          "ownerReferences",
                                          NULL};

/* Members that make up most of the text and are not needed: the parser skips them. */
static const char *const not_of_jobs[] = {DF_KUBE_MANAGED, "template", NULL};
static const char *const not_of_pods[] = {DF_KUBE_MANAGED, "volumes",         "volumeMounts",
                                          "env",           "securityContext", NULL};

static cJSON *keep_job(void *arg, const cJSON *object)
{
    static const char *const of_spec[] = {"suspend", NULL};
    static const char *const of_status[] = {"conditions", "failed", "active", "succeeded", NULL};
    (void)arg;
    cJSON *kept = cJSON_CreateObject();
    if (kept && copy_below(kept, object, "metadata", of_metadata) == 0 &&
        copy_below(kept, object, "spec", of_spec) == 0 &&
        copy_below(kept, object, "status", of_status) == 0)
        return kept;
    cJSON_Delete(kept);
    return NULL;
}

/* The names of the containers in the spec: a container may be missing in the status. */
static int copy_container_names(cJSON *to, const cJSON *pod)
{
    cJSON *names = df_json_array_at(df_json_object_at(to, "spec"), "containers");
    const cJSON *container;
    cJSON_ArrayForEach (container, df_json_at(pod, "spec.containers")) {
        cJSON *name = cJSON_CreateObject();
        if (df_json_append(names, name, NULL) < 0 ||
            df_json_add_str(name, "name", df_json_str(container, "name"), NULL) < 0)
            return -1;
    }
    return 0;
}

static cJSON *keep_pod(void *arg, const cJSON *object)
{
    static const char *const of_spec[] = {"nodeName", NULL};
    static const char *const of_status[] = {
        "phase", "reason", "message", "conditions", "containerStatuses", "initContainerStatuses",
        NULL};
    (void)arg;
    cJSON *kept = cJSON_CreateObject();
    if (kept && copy_below(kept, object, "metadata", of_metadata) == 0 &&
        copy_below(kept, object, "spec", of_spec) == 0 && copy_container_names(kept, object) == 0 &&
        copy_below(kept, object, "status", of_status) == 0)
        return kept;
    cJSON_Delete(kept);
    return NULL;
}

/* Field selectors have no "or", so the filter has two parts: this one drops the Events of every
 * healthy pod, wants_event() drops the rest. */
#define EVENT_SELECTOR                                                                             \
    "reason!=Scheduled,reason!=Pulling,reason!=Pulled,reason!=Created,reason!=Started,"            \
    "reason!=Killing,reason!=Completed,reportingComponent!=" DF_EVENTS_REPORTER

/* Keeps warnings, and the creations of pods of workflows: the status of a Job does not count pods
 * that were replaced. Creations for other Jobs are dropped, because there are thousands. */
static bool wants_event(void *arg, const cJSON *event)
{
    const char *about = df_json_str(event, "involvedObject.name");
    (void)arg;
    return df_streq(df_json_str(event, "type"), "Warning") ||
           (df_streq(df_json_str(event, "reason"), "SuccessfulCreate") && about &&
            df_starts_with(about, DF_WORKFLOW_PREFIX));
}

static cJSON *keep_event(void *arg, const cJSON *object)
{
    static const char *const members[] = {"reason",        "message",   "count",
                                          "lastTimestamp", "eventTime", NULL};
    static const char *const of_object[] = {"kind", "name", "uid", NULL};
    (void)arg;
    cJSON *kept = cJSON_CreateObject();
    if (kept && copy_below(kept, object, "metadata", of_metadata) == 0 &&
        copy_below(kept, object, "involvedObject", of_object) == 0 &&
        copy_members(kept, object, members) == 0)
        return kept;
    cJSON_Delete(kept);
    return NULL;
}

/* ---- index keys ---- */

static int add_key(struct df_kube_keys *to, const char *word, struct df_err *err)
{
    if (word)
        (void)df_strs_add(&to->words, word);
    return df_strs_check(&to->words, err);
}

static int keys_of_owned(void *arg, const cJSON *object, struct df_kube_keys *ret,
                         struct df_err *err)
{
    (void)arg;
    ret->digest = df_kube_content_hash(object);
    return add_key(ret, df_kube_label(object, DF_LABEL_STEP_UID), err);
}

static int keys_of_event(void *arg, const cJSON *object, struct df_kube_keys *ret,
                         struct df_err *err)
{
    (void)arg;
    return add_key(ret, df_json_str(object, "involvedObject.name"), err);
}

/* ---- notifications ---- */

static void notify_job(const struct df_job_watch *w, const char *job_name)
{
    if (w->o.notify && job_name)
        w->o.notify(w->o.notify_arg, job_name);
}

static void on_job(void *arg, const struct df_kube_change *change)
{
    if (!change->is_noop)
        notify_job(arg, change->name);
}

/* The name of a pod is that of its Job, cut to 57 characters, a dash and five characters. For a
 * longer name nobody is notified here: the change of the Job itself notifies. */
static void notify_by_pod_name(const struct df_job_watch *w, const char *pod)
{
    const char *dash = strrchr(pod, '-');
    DF_FREE char *job = dash ? strndup(pod, (size_t)(dash - pod)) : NULL;
    notify_job(w, job);
}

static void on_pod(void *arg, const struct df_kube_change *change)
{
    const struct df_job_watch *w = arg;
    if (change->is_noop)
        return;
    if (change->object)
        notify_job(w, df_kube_label(change->object, JOB_NAME_LABEL));
    else
        notify_by_pod_name(w, change->name);
}

static void on_event(void *arg, const struct df_kube_change *change)
{
    const struct df_job_watch *w = arg;
    const char *about = df_json_str(change->object, "involvedObject.name"); /* NULL: it expired */
    const char *kind = df_json_str(change->object, "involvedObject.kind");
    if (df_streq(kind, "Job"))
        notify_job(w, about);
    else if (df_streq(kind, "Pod") && about)
        notify_by_pod_name(w, about);
}

static void on_failure(void *arg, const struct df_err *err)
{
    (void)arg;
    df_warn("cannot watch the cluster, retrying: %s", err->message);
}

/* ---- the watches ---- */

static int start_caches(struct df_job_watch *w, struct df_err *err)
{
    const struct df_kube_cache_options jobs = {
        .resource = &df_kube_jobs,
        .name_space = w->o.name_space,
        .select = {.labels = DF_MADE_SELECTOR},
        .keep = keep_job,
        .keys = keys_of_owned,
        .changed = on_job,
        .failed = on_failure,
        .arg = w,
        .watch = {.fields = df_job_fields, .without = not_of_jobs}};
    struct df_kube_cache_options pods = jobs, events = jobs;
    pods.watch.fields = df_pod_fields;
    pods.watch.without = not_of_pods;
    pods.resource = &df_kube_pods;
    pods.keep = keep_pod;
    pods.changed = on_pod;
    events.resource = &df_kube_events;
    events.watch.fields = NULL;
    events.watch.without = NULL;
    events.select = (struct df_kube_select){.fields = EVENT_SELECTOR};
    events.wants = wants_event;
    events.keep = keep_event;
    events.keys = keys_of_event;
    events.changed = on_event;
    if (df_kube_cache_start(w->o.kube, &jobs, &w->jobs, err) < 0 ||
        df_kube_cache_start(w->o.kube, &pods, &w->pods, err) < 0)
        return -1;
    return df_kube_cache_start(w->o.kube, &events, &w->events, err);
}

int df_job_watch_start(const struct df_job_watch_options *o, struct df_job_watch **ret,
                       struct df_err *err)
{
    struct df_job_watch *w = calloc(1, sizeof(*w));
    if (!w)
        return df_fail_oom(err);
    w->o = *o;
    w->lists_wait_until_ms = df_mono_ms() + START_MS;
    if (start_caches(w, err) < 0) {
        df_job_watch_stop(w);
        return -1;
    }
    *ret = w;
    return 0;
}

void df_job_watch_stop(struct df_job_watch *w)
{
    if (!w)
        return;
    df_kube_cache_stop(w->events);
    df_kube_cache_stop(w->pods);
    df_kube_cache_stop(w->jobs);
    free(w);
}

/* ---- one step ---- */

void df_job_snapshot_free(struct df_job_snapshot *v)
{
    df_shared_drop(v->job);
    df_shared_drop(v->pod);
    cJSON_Delete(v->events);
    *v = (struct df_job_snapshot){0};
}

int64_t df_job_snapshot_made_us(const struct df_job_snapshot *v)
{
    const char *made = df_json_str(v->job, "metadata.creationTimestamp");
    int64_t at_us = 0;
    return made && df_time_parse(made, &at_us, NULL) == 0 ? at_us : 0;
}

int64_t df_job_snapshot_now_us(const struct df_job_snapshot *v)
{
    return df_real_us() + v->ahead_us;
}

int df_job_read(struct df_kube *k, const char *name_space, const char *name, cJSON **ret,
                struct df_err *err)
{
    return df_workflow_read(k, &df_workflow_job, name_space, name, ret, err);
}

/* *ret: a reference; NULL: it is absent. */
static int read_job(struct df_job_watch *w, const char *name, const cJSON **ret, struct df_err *err)
{
    cJSON *job = NULL;
    if (df_job_read(w->o.kube, w->o.name_space, name, &job, err) < 0)
        return -1;
    *ret = df_shared_new(job);
    return *ret || !job ? 0 : df_fail_oom(err);
}

static int find_job(struct df_job_watch *w, const char *name, const struct df_engine_step *step,
                    struct df_job_snapshot *v, struct df_err *err)
{
    DF_SHARED const cJSON *job = NULL;
    if (df_kube_cache_find(w->jobs, w->o.name_space, name, &job, err) < 0)
        return -1;
    if (!job && step->was_created && read_job(w, name, &job, err) < 0)
        return -1;
    v->is_other = job && !df_streq(df_kube_label(job, DF_LABEL_STEP_UID), step->uid);
    v->job = v->is_other ? NULL : DF_TAKE(job);
    return 0;
}

struct choice {
    const char *holder; /* as in struct df_engine_runner.pod */
    const cJSON *pod;   /* shared */
};

static bool is_holder(const struct choice *c, const cJSON *pod)
{
    return c->holder &&
           (df_streq(df_kube_uid(pod), c->holder) || df_streq(df_kube_name(pod), c->holder));
}

/* Prefers the pod that claimed the step, then the newer one. A second pod cannot claim the step and
 * ends soon; its end is not the end of the step. */
static bool is_better_pod(const struct choice *c, const cJSON *pod)
{
    if (!c->pod || is_holder(c, c->pod) != is_holder(c, pod))
        return !c->pod || is_holder(c, pod);
    const char *old = df_json_str(c->pod, "metadata.creationTimestamp");
    const char *made = df_json_str(pod, "metadata.creationTimestamp");
    return !old || !made || strcmp(made, old) >= 0; /* RFC 3339 in UTC sorts as text */
}

static int choose_cached_pod(void *arg, const cJSON *pod, struct df_err *err)
{
    struct choice *c = arg;
    (void)err;
    if (is_better_pod(c, pod)) {
        df_shared_drop(c->pod);
        c->pod = df_shared_add(pod);
    }
    return 0;
}

static int choose_listed_pod(void *arg, cJSON **pod, struct df_err *err)
{
    DF_SHARED const cJSON *shared = df_shared_new(DF_TAKE(*pod));
    return shared ? choose_cached_pod(arg, shared, err) : df_fail_oom(err);
}

/* Asks the API server: the cache may lag behind. */
static int list_pods(struct df_job_watch *w, const struct df_engine_step *step,
                     struct choice *choice, struct df_err *err)
{
    DF_FREE char *labels = df_strf("%s=%s", DF_LABEL_STEP_UID, step->uid);
    if (!labels)
        return df_fail_oom(err);
    const struct df_kube_at at = {.resource = &df_kube_pods, .name_space = w->o.name_space};
    const struct df_kube_select select = {.labels = labels};
    const struct df_kube_sink sink = {.take = choose_listed_pod, .arg = choice};
    return df_kube_list(w->o.kube, &at, &select, 0, &sink, err);
}

static int take_pod(void *arg, cJSON **pod, struct df_err *err)
{
    const cJSON **ret = arg;
    df_shared_drop(*ret);
    return df_check_alloc(*ret = df_shared_new(DF_TAKE(*pod)), err);
}

/* Lists instead of a GET, because the spawner's Role has no other use for that right. */
static int read_pod(struct df_job_watch *w, const char *name, const cJSON **ret, struct df_err *err)
{
    const struct df_kube_at at = {.resource = &df_kube_pods, .name_space = w->o.name_space};
    DF_FREE char *fields = df_strf("metadata.name=%s", name);
    if (!fields)
        return df_fail_oom(err);
    const struct df_kube_select select = {.fields = fields};
    const struct df_kube_sink sink = {.take = take_pod, .arg = ret};
    return df_kube_list(w->o.kube, &at, &select, 0, &sink, err);
}

int df_job_find_pod(struct df_job_watch *w, const struct df_engine_pod *pod, const cJSON **ret,
                    struct df_err *err)
{
    DF_SHARED const cJSON *found = NULL;
    if (df_kube_cache_find(w->pods, w->o.name_space, pod->name, &found, err) < 0)
        return -1;
    if (!df_streq(df_kube_uid(found), pod->uid)) {
        df_shared_drop(DF_TAKE(found));
        if (read_pod(w, pod->name, &found, err) < 0)
            return -1;
    }
    *ret = df_streq(df_kube_uid(found), pod->uid) ? DF_TAKE(found) : NULL;
    return 0;
}

int df_job_each_pod(struct df_job_watch *w, const char *step_uid,
                    int (*fn)(void *arg, const cJSON *pod, struct df_err *err), void *arg,
                    struct df_err *err)
{
    return df_kube_cache_each(w->pods, step_uid, fn, arg, err);
}

static int find_pod(struct df_job_watch *w, const struct df_engine_step *step,
                    struct df_job_snapshot *v, struct df_err *err)
{
    struct choice choice = {.holder = step->runner.pod};
    int result = df_kube_cache_each(w->pods, step->uid, choose_cached_pod, &choice, err);
    if (result == 0 && !choice.pod && step->was_claimed)
        result = list_pods(w, step, &choice, err);
    v->pod = choice.pod;
    return result;
}

/* The deletion of a Job also deletes its pod, and the watch of pods may report it first. Reads the
 * Job from the API server to find out whether it was the Job or the pod that was deleted. */
static int read_job_again(struct df_job_watch *w, const char *name,
                          const struct df_engine_step *step, struct df_job_snapshot *v,
                          struct df_err *err)
{
    bool pod_goes = v->pod ? df_kube_is_deleted(v->pod) : step->was_claimed;
    DF_SHARED const cJSON *job = NULL;
    if (!pod_goes || !v->job || df_kube_is_deleted(v->job))
        return 0;
    if (read_job(w, name, &job, err) < 0)
        return -1;
    bool is_same = job && df_streq(df_kube_uid(job), df_kube_uid(v->job));
    df_shared_drop(v->job);
    v->job = is_same ? DF_TAKE(job) : NULL;
    return 0;
}

/* Adds warnings about any Job of this name, but creations of pods only of this very Job, because
 * they are counted. */
static int add_event(void *arg, const cJSON *event, struct df_err *err)
{
    const struct df_job_snapshot *v = arg;
    bool is_creation = df_streq(df_json_str(event, "reason"), "SuccessfulCreate");
    if (is_creation && !df_streq(df_json_str(event, "involvedObject.uid"), df_kube_uid(v->job)))
        return 0;
    return df_json_append(v->events, cJSON_Duplicate(event, true), err);
}

static int find_events(struct df_job_watch *w, const char *name, struct df_job_snapshot *v,
                       struct df_err *err)
{
    v->events = cJSON_CreateArray();
    if (df_check_alloc(v->events, err) < 0 ||
        df_kube_cache_each(w->events, name, add_event, v, err) < 0)
        return -1;
    const char *pod = v->pod ? df_kube_name(v->pod) : NULL;
    return pod ? df_kube_cache_each(w->events, pod, add_event, v, err) : 0;
}

struct pod_events {
    const char *job;   /* name of the Job */
    const char *since; /* its creation */
    cJSON *list;
};

static int add_pod_event(void *arg, const cJSON *event, struct df_err *err)
{
    const struct pod_events *p = arg;
    const char *about = df_json_str(event, "involvedObject.name");
    const char *made = df_json_str(event, "metadata.creationTimestamp");
    size_t n = strlen(p->job);
    bool is_of_pod = about && strncmp(about, p->job, n) == 0 && about[n] == '-';
    if (!is_of_pod || !made || strcmp(made, p->since) < 0) /* of an earlier Job of that name */
        return 0;
    return df_json_append(p->list, cJSON_Duplicate(event, true), err);
}

int df_job_add_pod_events(struct df_job_watch *w, struct df_job_snapshot *v, struct df_err *err)
{
    const char *made = df_json_str(v->job, "metadata.creationTimestamp");
    const char *name = df_kube_name(v->job);
    struct pod_events p = {.job = name, .since = made, .list = v->events};
    return name && made ? df_kube_cache_each(w->events, NULL, add_pod_event, &p, err) : 0;
}

int df_job_note(struct df_job_watch *w, const cJSON *job, struct df_err *err)
{
    return df_kube_cache_note(w->jobs, job, true, err);
}

static int64_t list_wait_ms(const struct df_job_watch *w)
{
    int64_t left_ms = w->lists_wait_until_ms - df_mono_ms();
    return left_ms < 0 ? 0 : left_ms < WAIT_MS ? left_ms : WAIT_MS;
}

int df_job_await_events(struct df_job_watch *w, struct df_err *err)
{
    return df_kube_cache_wait(w->events, list_wait_ms(w), NULL, err);
}

static int wait_for_lists(struct df_job_watch *w, struct df_err *err)
{
    int64_t ms = list_wait_ms(w);
    if (df_kube_cache_wait(w->jobs, ms, NULL, err) < 0)
        return -1;
    return df_kube_cache_wait(w->pods, ms, NULL, err);
}

int df_job_snapshot(struct df_job_watch *w, const char *name, const struct df_engine_step *step,
                    struct df_job_snapshot *ret, struct df_err *err)
{
    DF_JOB_SNAPSHOT struct df_job_snapshot v = {0};
    if (wait_for_lists(w, err) < 0 || find_job(w, name, step, &v, err) < 0 ||
        find_pod(w, step, &v, err) < 0 || read_job_again(w, name, step, &v, err) < 0 ||
        find_events(w, name, &v, err) < 0)
        return -1;
    v.ahead_us = df_kube_clock_ahead_us(w->o.kube);
    *ret = v;
    v = (struct df_job_snapshot){0};
    return 0;
}
