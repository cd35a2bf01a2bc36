#include "spawner/engine/job.h"

#include <pthread.h>

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/base/limits.h"
#include "spawner/engine/job_object.h"
#include "spawner/engine/job_view.h"
#include "spawner/engine/placement.h"
#include "spawner/engine/pod_verdict.h"
#include "spawner/engine/workflow.h"

struct job_engine {
    struct df_engine engine; /* first: the pointer that callers have */
    struct df_job_options o; /* its strings are the two below */
    char *name_space, *image;
    struct df_job_watch *watch;
    pthread_mutex_t lock; /* guards refusals */
    cJSON *refusals;      /* step uid -> {reason, message}: why its Job could not be made last */
};

static struct job_engine *job_of(struct df_engine *e)
{
    return (struct job_engine *)(void *)e;
}

static struct df_kube_at at_job(const struct job_engine *j, const struct df_engine_step *step)
{
    return (struct df_kube_at){
        .resource = &df_kube_jobs, .name_space = j->name_space, .name = step->name};
}

static struct df_workflow_place place_of(const struct job_engine *j)
{
    return (struct df_workflow_place){.kube = j->o.kube,
                                      .watch = j->watch,
                                      .name_space = j->name_space,
                                      .defaults = j->o.placement};
}

/* ---- why a Job could not be made ---- */

static void remember_refusal(struct job_engine *j, const struct df_engine_step *step,
                             const struct df_pod_verdict *v)
{
    cJSON *refusal = cJSON_CreateObject();
    (void)pthread_mutex_lock(&j->lock);
    cJSON_DeleteItemFromObjectCaseSensitive(j->refusals, step->uid);
    /* Without memory it is told the next time. */
    if (df_json_add_str(refusal, "reason", v->reason, NULL) < 0 ||
        df_json_add_str(refusal, "message", v->message, NULL) < 0)
        cJSON_Delete(refusal);
    else
        (void)!df_json_set(j->refusals, step->uid, refusal, NULL);
    (void)pthread_mutex_unlock(&j->lock);
}

static void forget_refusal(struct job_engine *j, const struct df_engine_step *step)
{
    (void)pthread_mutex_lock(&j->lock);
    cJSON_DeleteItemFromObjectCaseSensitive(j->refusals, step->uid);
    (void)pthread_mutex_unlock(&j->lock);
}

static void tell_refusal(struct job_engine *j, const struct df_engine_step *step,
                         struct df_engine_observation *seen)
{
    (void)pthread_mutex_lock(&j->lock);
    const cJSON *refusal = cJSON_GetObjectItemCaseSensitive(j->refusals, step->uid);
    const char *reason = df_json_str(refusal, "reason"), *message = df_json_str(refusal, "message");
    (void)snprintf(seen->reason, sizeof(seen->reason), "%s", reason ? reason : "");
    (void)snprintf(seen->cause, sizeof(seen->cause), "%s", message ? message : "");
    (void)pthread_mutex_unlock(&j->lock);
}

struct df_pod_verdict df_job_refusal(const struct df_err *why)
{
    static const int statuses[] = {
        [DF_ERR_USER] = 422, [DF_ERR_DENIED] = 403, [DF_ERR_NOT_FOUND] = 404, [DF_ERR_LIMIT] = 413};
    size_t class = (size_t)why->cls;
    int status = class < DF_ARRAY_SIZE(statuses) ? statuses[class] : 0;
    return df_pod_refusal(status, why->message);
}

/* What the API server refused as a verdict: for good, or to be tried again. */
static int fail_refused(struct job_engine *j, const struct df_engine_step *step,
                        const struct df_err *why, struct df_err *err)
{
    struct df_pod_verdict v = df_job_refusal(why);
    remember_refusal(j, step, &v);
    enum df_err_class as = v.class == DF_POD_PERMANENT ? DF_ERR_USER : DF_ERR_RETRY;
    (void)df_fail_reason(err, as, v.reason, "%s", v.message);
    if (err)
        err->retry_after_s = why->retry_after_s;
    return -1;
}

/* ---- create ---- */

static int resolve_placement(const struct df_job_options *o, const struct df_engine_step *step,
                             cJSON **ret, struct df_err *err)
{
    const struct df_placement_levels levels = {
        .defaults = o->placement, .environment = step->environment, .executor = step->placement};
    return df_placement_resolve(&levels, ret, err);
}

/* An optional plugin cache is mounted where its claim exists. */
static int find_plugin_claim(const struct df_job_options *o, const cJSON *placement, bool *ret,
                             struct df_err *err)
{
    static const struct df_kube_resource claims = {"", "v1", "persistentvolumeclaims"};
    const char *name = df_json_str(placement, "pluginCache.claimName");
    *ret = name && !df_json_bool(df_json_at(placement, "pluginCache"), "optional", false);
    if (!name || *ret)
        return 0;
    const struct df_kube_at at = {.resource = &claims, .name_space = o->name_space, .name = name};
    struct df_err why = {0};
    *ret = df_kube_get(o->kube, &at, NULL, &why) == 0;
    if (*ret || why.cls == DF_ERR_NOT_FOUND || why.cls == DF_ERR_DENIED)
        return 0;
    *err = why;
    return -1;
}

static int read_ca(const struct df_engine_step *step, struct df_buf *to, struct df_err *err)
{
    return step->ca_file ? df_fs_read(step->ca_file, to, err) : 0;
}

int df_job_render(const struct df_job_options *o, const struct df_engine_step *step, cJSON **ret,
                  struct df_err *err)
{
    DF_JSON cJSON *placement = NULL;
    DF_BUF struct df_buf ca = DF_BUF_INIT(DF_LIMIT_CA_ANNOTATION);
    bool has_claim = false;
    if (resolve_placement(o, step, &placement, err) < 0 ||
        find_plugin_claim(o, placement, &has_claim, err) < 0 || read_ca(step, &ca, err) < 0)
        return -1;
    const struct df_job_spec spec = {
        .name = step->name,
        .namespace = o->name_space,
        .uid = step->uid,
        .run = step->run,
        .executor = step->executor,
        .action = step->action,
        .claim = o->by_secret ? DF_CLAIM_SECRET : DF_CLAIM_TOKEN,
        .image = o->image,
        .server_url = o->reachable ? step->server_url : NULL,
        .ca_pem = ca.len ? df_buf_str(&ca) : NULL,
        .timeout_seconds = step->timeout_seconds,
        .grace_seconds = step->grace_seconds,
        .pending_seconds = step->pending_seconds,
        .ttl_seconds = o->ttl_seconds,
        .placement = placement,
        .has_plugin_claim = has_claim,
    };
    return df_job_build(&spec, ret, err);
}

/* With its pod, and gone only after it. */
static int delete_job(const struct job_engine *j, const struct df_engine_step *step,
                      const cJSON *job, struct df_err *err)
{
    const struct df_kube_at at = at_job(j, step);
    struct df_kube_delete_options o = DF_KUBE_DELETE_OPTIONS;
    struct df_err why = {0};
    o.uid = df_kube_uid(job);
    o.propagation = "Foreground";
    if (df_json_at(job, "metadata.deletionTimestamp") ||
        df_kube_delete(j->o.kube, &at, &o, &why) == 0 || why.cls == DF_ERR_NOT_FOUND)
        return 0;
    *err = why;
    return -1;
}

/* The name is taken: by ourselves, in a call whose answer was lost; by an earlier try of the step;
 * or by somebody else, whose Job is never touched. */
static int meet_existing(const struct job_engine *j, const struct df_engine_step *step,
                         cJSON **ret_job, struct df_err *err)
{
    DF_JSON cJSON *job = NULL;
    if (df_job_read(j->o.kube, j->name_space, step->name, &job, err) < 0)
        return -1;
    const char *owner = job ? df_kube_label(job, DF_LABEL_STEP_UID) : NULL;
    if (job && !df_streq(owner, step->uid))
        return df_fail_reason(
            err, DF_ERR_CONFLICT, "NameTaken",
            "the Job %s/%s is another's (step %s): delete it, or wait for its end", j->name_space,
            step->name, owner ? owner : "unknown");
    bool is_over =
        job && (df_workflow_is_completed(job) || df_json_at(job, "metadata.deletionTimestamp"));
    if (is_over && delete_job(j, step, job, err) < 0)
        return -1;
    if (!job || is_over)
        return df_fail(err, DF_ERR_RETRY, "the Job %s/%s of an earlier try is being removed",
                       j->name_space, step->name);
    *ret_job = DF_TAKE(job);
    return 0;
}

static int build_any(const struct job_engine *j, const struct df_engine_step *step, cJSON **ret,
                     struct df_err *err)
{
    const struct df_workflow_place p = place_of(j);
    return step->workflow ? df_workflow_build(&p, step, ret, err)
                          : df_job_render(&j->o, step, ret, err);
}

static int meet_any(const struct job_engine *j, const struct df_engine_step *step, cJSON **ret_job,
                    struct df_err *err)
{
    const struct df_workflow_place p = place_of(j);
    return step->workflow ? df_workflow_meet(&p, step, ret_job, err)
                          : meet_existing(j, step, ret_job, err);
}

static int make_job(struct job_engine *j, const struct df_engine_step *step, cJSON **ret_job,
                    struct df_err *err)
{
    DF_JSON cJSON *job = NULL;
    struct df_kube_at at = at_job(j, step);
    struct df_err why = {0};
    at.name = NULL; /* the collection is posted to */
    if (build_any(j, step, &job, err) < 0)
        return -1;
    if (df_kube_create(j->o.kube, &at, job, ret_job, &why) == 0) {
        forget_refusal(j, step);
        return df_job_note(j->watch, *ret_job, err);
    }
    if (df_streq(why.reason, "AlreadyExists"))
        return meet_any(j, step, ret_job, err);
    return fail_refused(j, step, &why, err);
}

static int delete_secret(const struct job_engine *j, const struct df_engine_step *step,
                         struct df_err *err)
{
    DF_FREE char *name = df_job_secret_name(step->uid);
    if (!name)
        return df_fail_oom(err);
    const struct df_kube_at at = {
        .resource = &df_kube_secrets, .name_space = j->name_space, .name = name};
    const struct df_kube_delete_options o = DF_KUBE_DELETE_OPTIONS;
    struct df_err why = {0};
    if (df_kube_delete(j->o.kube, &at, &o, &why) == 0 || why.cls == DF_ERR_NOT_FOUND)
        return 0;
    *err = why;
    return -1;
}

/* An earlier try's is of no worth any more: its tokens were replaced. */
static int make_secret(const struct job_engine *j, const struct df_engine_step *step,
                       const cJSON *job, struct df_err *err)
{
    const struct df_job_spec spec = {.name = step->name,
                                     .namespace = j->name_space,
                                     .uid = step->uid,
                                     .run = step->run,
                                     .executor = step->executor,
                                     .action = step->action};
    const struct df_kube_at at = {.resource = &df_kube_secrets, .name_space = j->name_space};
    cJSON *secret = NULL;
    if (delete_secret(j, step, err) < 0 ||
        df_job_secret_build(&spec, df_kube_uid(job), step->document, &secret, err) < 0)
        return -1;
    int result = df_kube_create(j->o.kube, &at, secret, NULL, err);
    df_json_wipe(secret);
    return result;
}

static int make_ref(const struct job_engine *j, const cJSON *job, cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *ref = cJSON_CreateObject();
    const char *account = df_json_str(job, "spec.template.spec.serviceAccountName");
    if (df_json_add_str(ref, "kind", "Job", err) < 0 ||
        df_json_add_str(ref, "name", df_kube_name(job), err) < 0 ||
        df_json_add_str(ref, "namespace", j->name_space, err) < 0 ||
        df_json_add_str(ref, "uid", df_kube_uid(job), err) < 0 ||
        df_json_add_str(ref, "serviceAccountName", account ? account : "default", err) < 0)
        return -1;
    *ret = DF_TAKE(ref);
    return 0;
}

static int job_create(struct df_engine *e, const struct df_engine_step *asked, cJSON **ret_ref,
                      struct df_err *err)
{
    struct job_engine *j = job_of(e);
    DF_JSON cJSON *job = NULL;
    char name[DF_WORKFLOW_NAME];
    struct df_engine_step step;
    if (df_workflow_step(asked, name, &step, err) < 0 || make_job(j, &step, &job, err) < 0)
        return -1;
    bool needs_secret = j->o.by_secret && df_json_bool(df_json_at(job, "spec"), "suspend", false);
    if (needs_secret && make_secret(j, &step, job, err) < 0)
        return -1;
    return make_ref(j, job, ret_ref, err);
}

static int job_release(struct df_engine *e, const struct df_engine_step *step, struct df_err *err)
{
    struct job_engine *j = job_of(e);
    const struct df_kube_at at = at_job(j, step);
    DF_JSON cJSON *body = NULL, *job = NULL;
    if (df_json_parse(DF_JOB_UNSUSPEND, strlen(DF_JOB_UNSUSPEND), &body, err) < 0)
        return -1;
    const struct df_kube_patch patch = {.type = DF_KUBE_PATCH_MERGE, .body = body};
    if (df_kube_patch(j->o.kube, &at, &patch, &job, err) < 0)
        return -1;
    return df_job_note(j->watch, job, err);
}

/* ---- status, result ---- */

static struct df_pod_verdict judge(const struct df_engine_step *step, const struct df_job_view *v,
                                   int64_t since_us)
{
    /* The Job's time has whole seconds: one more, or it would be over too early. */
    int64_t deadline = since_us + (step->pending_seconds + 1) * 1000000;
    const struct df_pod_view view = {
        .job = v->job,
        .pod = v->pod,
        .events = v->events,
        .container = DF_JOB_CONTAINER,
        .was_created = step->was_created,
        .had_pod = step->was_claimed,
        .now_us = df_real_us(),
        .pending_deadline_us = since_us && !step->was_claimed ? deadline : 0,
    };
    return df_pod_verdict(&view);
}

static void observe(const struct df_engine_step *step, const struct df_job_view *view,
                    struct df_engine_observation *ret)
{
    struct df_engine_observation seen = {.phase = DF_ENGINE_ABSENT, .exit_code = -1};
    const char *made = df_json_str(view->job, "metadata.creationTimestamp");
    DF_JSON cJSON *result = NULL;
    if (made && df_time_parse(made, &seen.since_us, NULL) < 0)
        seen.since_us = 0;
    struct df_pod_verdict v = judge(step, view, seen.since_us);
    seen.phase = v.phase;
    seen.exit_code = v.exit_code;
    seen.gives_up = v.give_up || (v.phase == DF_ENGINE_ENDED && !v.never_started) ||
                    v.class == DF_POD_PERMANENT;
    seen.is_held = df_json_bool(df_json_at(view->job, "spec"), "suspend", false);
    /* Neither Job nor pod: every process of a step that lived is proven gone. */
    if (v.phase == DF_ENGINE_ABSENT && step->was_claimed)
        seen.phase = DF_ENGINE_ENDED;
    seen.has_result = seen.phase == DF_ENGINE_ENDED && view->pod &&
                      df_pod_result(view->pod, DF_JOB_CONTAINER, &result, NULL) == 0;
    (void)snprintf(seen.reason, sizeof(seen.reason), "%s", v.reason);
    (void)snprintf(seen.cause, sizeof(seen.cause), "%.*s", (int)sizeof(seen.cause) - 1, v.message);
    *ret = seen;
}

static int look(const struct job_engine *j, const struct df_engine_step *step,
                struct df_engine_observation *ret, struct df_err *err)
{
    DF_JOB_VIEW struct df_job_view view = {0};
    if (df_job_look(j->watch, step, &view, err) < 0)
        return -1;
    observe(step, &view, ret);
    return 0;
}

static int job_status(struct df_engine *e, const struct df_engine_step *asked,
                      struct df_engine_observation *ret, struct df_err *err)
{
    struct job_engine *j = job_of(e);
    const struct df_workflow_place p = place_of(j);
    char name[DF_WORKFLOW_NAME];
    struct df_engine_step step;
    if (df_workflow_step(asked, name, &step, err) < 0)
        return -1;
    int result = step.workflow ? df_workflow_look(&p, &step, ret, err) : look(j, &step, ret, err);
    if (result < 0)
        return -1;
    if (ret->phase == DF_ENGINE_ABSENT && !ret->reason[0])
        tell_refusal(j, &step, ret);
    return 0;
}

static int job_result(struct df_engine *e, const struct df_engine_step *asked, cJSON **ret,
                      struct df_err *err)
{
    struct job_engine *j = job_of(e);
    const struct df_workflow_place p = place_of(j);
    DF_JOB_VIEW struct df_job_view view = {0};
    char name[DF_WORKFLOW_NAME];
    struct df_engine_step step;
    if (df_workflow_step(asked, name, &step, err) < 0)
        return -1;
    if (step.workflow)
        return df_workflow_result(&p, &step, ret, err);
    if (df_job_look(j->watch, &step, &view, err) < 0)
        return -1;
    if (!view.pod)
        return df_fail(err, DF_ERR_NOT_FOUND, "the pod of step %s is gone", step.name);
    return df_pod_result(view.pod, DF_JOB_CONTAINER, ret, err);
}

/* The pod's files go with it. */
static int job_leftover(struct df_engine *e, const struct df_engine_step *step, const char *name,
                        char **ret_path, struct df_err *err)
{
    (void)e;
    (void)ret_path;
    return df_fail(err, DF_ERR_NOT_FOUND, "a pod leaves no %s of step %s", name, step->name);
}

/* ---- cancel, cleanup ---- */

/* The Job, if it is this step's. */
static int remove_own(const struct job_engine *j, const struct df_engine_step *step, bool if_ended,
                      struct df_err *err)
{
    DF_JSON cJSON *job = NULL;
    if (df_job_read(j->o.kube, j->name_space, step->name, &job, err) < 0)
        return -1;
    bool is_ours = job && df_streq(df_kube_label(job, DF_LABEL_STEP_UID), step->uid);
    return is_ours && (if_ended || !df_workflow_is_completed(job)) ? delete_job(j, step, job, err)
                                                                   : 0;
}

static int job_cancel(struct df_engine *e, const struct df_engine_step *asked, struct df_err *err)
{
    char name[DF_WORKFLOW_NAME];
    struct df_engine_step step;
    if (df_workflow_step(asked, name, &step, err) < 0)
        return -1;
    return remove_own(job_of(e), &step, false, err);
}

static bool has_company(const cJSON *pod)
{
    const cJSON *status;
    cJSON_ArrayForEach (status, df_json_at(pod, "status.containerStatuses")) {
        if (!df_streq(df_json_str(status, "name"), DF_JOB_CONTAINER) &&
            df_json_at(status, "state.running"))
            return true;
    }
    return false;
}

/* Sidecars among the init containers are ended by the kubelet; one among the containers would keep
 * the pod until the Job's deadline. */
static int end_company(const struct job_engine *j, const struct df_engine_step *step,
                       struct df_err *err)
{
    DF_JOB_VIEW struct df_job_view view = {0};
    if (df_job_look(j->watch, step, &view, err) < 0)
        return -1;
    return view.job && has_company(view.pod) ? delete_job(j, step, view.job, err) : 0;
}

/* The Job of a tofu step stays to be looked at, until its TTL; its Secret has no reason to. That of
 * a workflow goes: it is a lock. */
static int job_cleanup(struct df_engine *e, const struct df_engine_step *asked, struct df_err *err)
{
    struct job_engine *j = job_of(e);
    struct df_engine_observation seen;
    char name[DF_WORKFLOW_NAME];
    struct df_engine_step step;
    if (job_status(e, asked, &seen, err) < 0 || df_workflow_step(asked, name, &step, err) < 0)
        return -1;
    if (seen.phase == DF_ENGINE_PENDING || seen.phase == DF_ENGINE_RUNNING)
        return df_fail(err, DF_ERR_CONFLICT, "the pod of step %s still lives", asked->name);
    forget_refusal(j, &step);
    if (step.workflow)
        return remove_own(j, &step, true, err);
    if (end_company(j, &step, err) < 0)
        return -1;
    return j->o.by_secret ? delete_secret(j, &step, err) : 0;
}

/* ---- the engine's life ---- */

static void job_close(struct df_engine *e)
{
    struct job_engine *j = job_of(e);
    df_job_watch_stop(j->watch);
    (void)pthread_mutex_destroy(&j->lock);
    cJSON_Delete(j->refusals);
    free(j->name_space);
    free(j->image);
    free(j);
}

static const struct df_engine_ops job_ops = {
    .name = "job",
    .create = job_create,
    .release = job_release,
    .status = job_status,
    .result = job_result,
    .leftover = job_leftover,
    .cancel = job_cancel,
    .cleanup = job_cleanup,
    .close = job_close,
};

static int fill(struct job_engine *j, struct df_err *err)
{
    j->name_space = strdup(j->o.name_space);
    j->image = j->o.image ? strdup(j->o.image) : NULL;
    j->refusals = cJSON_CreateObject();
    if (!j->name_space || (j->o.image && !j->image) || !j->refusals)
        return df_fail_oom(err);
    j->o.name_space = j->name_space;
    j->o.image = j->image;
    const struct df_job_watch_options o = {.kube = j->o.kube,
                                           .name_space = j->name_space,
                                           .notify = j->o.notify,
                                           .notify_arg = j->o.notify_arg};
    return df_job_watch_start(&o, &j->watch, err);
}

int df_engine_job_new(const struct df_job_options *o, struct df_engine **ret, struct df_err *err)
{
    struct job_engine *j = calloc(1, sizeof(*j));
    if (!j)
        return df_fail_oom(err);
    *j = (struct job_engine){.engine = {.ops = &job_ops,
                                        .hands_over = o->by_secret,
                                        .is_remote = true,
                                        .takes_workflows = true},
                             .o = *o};
    (void)pthread_mutex_init(&j->lock, NULL);
    if (fill(j, err) < 0) {
        job_close(&j->engine);
        return -1;
    }
    *ret = &j->engine;
    return 0;
}
