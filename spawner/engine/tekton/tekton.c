/*
 * The operations of the engine `tekton`. Each begins with begin_call(), which knows the name and
 * the namespace of the step's PipelineRun, and reads that run from the API server. In this order:
 * create, status, result, cancel and cleanup, the engine's life.
 */
#include "spawner/engine/tekton/tekton.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "spawner/engine/diagnosis/pod_cause.h"
#include "spawner/engine/proof.h"
#include "spawner/engine/tekton/pipeline_run.h"
#include "spawner/engine/tekton/pipeline_status.h"
#include "spawner/engine/tekton/tekton_watch.h"
#include "spawner/engine/vault_secrets.h"
#include "spawner/model/labels.h"

#define NOT_SERVED "the cluster has no PipelineRuns (tekton.dev/v1): install Tekton"

struct tekton {
    struct df_engine engine;    /* first: the pointer that callers have */
    struct df_tekton_options o; /* its strings are the two below */
    char *name_space, *workflow_account;
    struct df_proof_key key;
    struct df_tekton_watches watches;
};

/* One call about one step. */
struct call {
    struct tekton *engine;
    const struct df_engine_step *step;
    struct df_workflow workflow;
    const char *name_space; /* of the run: the recorded one, or that of new runs */
    char name[21];          /* of the run */
};

static int begin_call(struct df_engine *e, const struct df_engine_step *step, struct call *ret,
                      struct df_err *err)
{
    struct tekton *t = (struct tekton *)(void *)e;
    const char *recorded = df_json_str(step->ref, "namespace");
    *ret = (struct call){.engine = t,
                         .step = step,
                         .workflow = df_workflow_of(step, t->workflow_account),
                         .name_space = recorded ? recorded : t->name_space};
    ret->workflow.never = t->o.never;
    ret->workflow.namespace = ret->name_space;
    if (df_tekton_watch(&t->watches, ret->name_space, err) < 0)
        return -1;
    return df_workflow_name(step->workflow.target, ret->name, err);
}

/* *ret: the run of this name, whoever made it; NULL: there is none. A step whose document is being
 * deleted does not wait for Tekton: a run goes with the definition of its kind. */
static int read_run(const struct call *c, cJSON **ret, struct df_err *err)
{
    struct df_err why = {0};
    int result = df_workflow_read(c->engine->o.kube, &df_workflow_pipeline_run, c->name_space,
                                  c->name, ret, &why);
    __atomic_store_n(&c->engine->watches.are_served, result == 0, __ATOMIC_RELAXED);
    if (result == 0)
        return 0;
    if (!df_workflow_is_unserved(&why))
        return df_err_pass(err, &why);
    return c->step->is_deleted ? 0 : df_fail_reason(err, DF_ERR_RETRY, why.reason, NOT_SERVED);
}

/* The same, but only the step's own run. */
static int read_own(const struct call *c, cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *run = NULL;
    if (read_run(c, &run, err) < 0)
        return -1;
    bool is_own = run && df_streq(df_kube_label(run, DF_LABEL_STEP_UID), c->step->uid);
    *ret = is_own ? DF_TAKE(run) : NULL;
    return 0;
}

static struct df_kube_at at_of(const struct call *c)
{
    return (struct df_kube_at){.resource = df_workflow_pipeline_run.resource,
                               .name_space = c->name_space,
                               .name = c->name};
}

static struct df_workflow_object object_of(const struct call *c, const cJSON *run)
{
    return (struct df_workflow_object){
        .kind = df_workflow_pipeline_run.name,
        .name = c->name,
        .name_space = c->name_space,
        .uid = df_kube_uid(run),
        .service_account = df_json_str(run, "spec.taskRunTemplate.serviceAccountName")};
}

/* ---- create ---- */

/* Deletes exactly this run. Absent is success. */
static int delete_run(const struct call *c, const cJSON *run, struct df_err *err)
{
    const struct df_kube_at at = at_of(c);
    struct df_kube_delete_options o = DF_KUBE_DELETE_OPTIONS;
    struct df_err why = {0};
    o.uid = df_kube_uid(run);
    o.propagation = "Background";
    if (df_kube_is_deleted(run) || df_kube_delete(c->engine->o.kube, &at, &o, &why) == 0 ||
        why.cls == DF_ERR_NOT_FOUND)
        return 0;
    return df_err_pass(err, &why);
}

/* A run of this name exists already. */
static int adopt(const struct call *c, cJSON **ret_run, struct df_err *err)
{
    DF_JSON cJSON *run = NULL;
    if (read_run(c, &run, err) < 0)
        return -1;
    switch (df_workflow_clash(&c->workflow, run, df_workflow_is_over(run))) {
    case DF_WORKFLOW_CLASH_ADOPT:
        *ret_run = DF_TAKE(run);
        return df_proof_check(&c->engine->key, df_workflow_pipeline_run.name, *ret_run, err);
    case DF_WORKFLOW_CLASH_REPLACE:
        if (delete_run(c, run, err) < 0)
            return -1;
        return df_fail(err, DF_ERR_RETRY,
                       "the PipelineRun %s/%s of %s, which has ended, is being removed",
                       c->name_space, c->name, df_workflow_owner(run));
    case DF_WORKFLOW_CLASH_WAIT:
        return df_workflow_fail_locked(&df_workflow_pipeline_run, c->name_space, c->name, run, err);
    case DF_WORKFLOW_CLASH_GONE:
    default:
        return df_fail(err, DF_ERR_RETRY, "the PipelineRun %s/%s was just removed", c->name_space,
                       c->name);
    }
}

/* Class USER if the API server or Tekton's webhook would refuse the same run again, else RETRY. */
static int fail_refused(const struct df_err *why, struct df_err *err)
{
    static const char *const reasons[] = {[DF_ERR_USER] = "ObjectRefused",
                                          [DF_ERR_LIMIT] = "ObjectRefused",
                                          [DF_ERR_NOT_FOUND] = "NamespaceMissing",
                                          [DF_ERR_DENIED] = "NotAllowed"};
    size_t class = (size_t)why->cls;
    const char *reason = class < DF_ARRAY_SIZE(reasons) ? reasons[class] : NULL;
    bool is_right = why->cls == DF_ERR_DENIED && strstr(why->message, "cannot create");
    bool is_refused = reason && why->cls != DF_ERR_DENIED;
    if (df_workflow_is_unserved(why))
        return df_fail_reason(err, DF_ERR_RETRY, "EngineFailed", NOT_SERVED);
    if (!is_right)
        reason = df_pod_cause(why->message, reason ? reason : "EngineFailed");
    bool lasts = is_refused || (!is_right && df_pod_cause_is_permanent(reason, why->message));
    (void)df_fail_reason(err, lasts ? DF_ERR_USER : DF_ERR_RETRY, reason,
                         "the cluster did not take the PipelineRun: %.900s", why->message);
    if (err)
        err->retry_after_s = why->retry_after_s;
    return -1;
}

static int build_run(struct call *c, cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *placement = NULL, *run = NULL;
    const struct tekton *t = c->engine;
    if (df_workflow_placement(c->step, df_pipeline_placement, &placement, err) < 0)
        return -1;
    c->workflow.placement = placement;
    int result = df_pipeline_run_build(&c->workflow, &run, err);
    c->workflow.placement = NULL;
    if (result < 0 || (t->o.has_vault && df_engine_check_vault(t->o.kube, t->name_space,
                                                               df_json_at(run, "spec"), err) < 0))
        return -1;
    *ret = DF_TAKE(run);
    return 0;
}

static int create_run(struct call *c, cJSON **ret_run, struct df_err *err)
{
    DF_JSON cJSON *run = NULL;
    const struct df_kube_at at = at_of(c);
    struct df_kube *k = c->engine->o.kube;
    struct df_err why = {0};
    int64_t now_us = df_real_us() + df_kube_clock_ahead_us(k);
    if (build_run(c, &run, err) < 0 || df_proof_add(&c->engine->key, now_us, run, err) < 0 ||
        df_workflow_check_free(k, &df_workflow_job, c->name_space, c->name, err) < 0)
        return -1;
    df_debug("creating the PipelineRun %s/%s", c->name_space, c->name);
    if (df_kube_create(k, &at, run, ret_run, &why) == 0)
        return 0;
    return df_streq(why.reason, "AlreadyExists") ? adopt(c, ret_run, err) : fail_refused(&why, err);
}

static int tekton_create(struct df_engine *e, const struct df_engine_step *step, cJSON **ret_ref,
                         struct df_err *err)
{
    DF_JSON cJSON *run = NULL;
    struct call c;
    if (begin_call(e, step, &c, err) < 0 || create_run(&c, &run, err) < 0)
        return -1;
    const struct df_workflow_object object = object_of(&c, run);
    return df_workflow_ref(&object, ret_ref, err);
}

/* ---- status ---- */

/* The run of a step, and what its status means. */
struct view {
    cJSON *run;       /* NULL: absent */
    cJSON *task_runs; /* {name: TaskRun} */
    struct df_workflow_status status;
};

static void view_free(struct view *v)
{
    cJSON_Delete(v->run);
    cJSON_Delete(v->task_runs);
}
#define VIEW DF_CLEANUP(view_free)

static int take_task_run(void *arg, cJSON **task_run, struct df_err *err)
{
    const char *name = df_kube_name(*task_run);
    return name ? df_json_set(arg, name, DF_TAKE(*task_run), err) : 0;
}

/* They have the labels of their run. Without the right to list them only details are missing. */
static int list_task_runs(const struct call *c, cJSON *to, struct df_err *err)
{
    static const char *const unused[] = {DF_KUBE_MANAGED, ".items.spec", "taskSpec", NULL};
    DF_FREE char *labels = df_strf("%s=%s", DF_LABEL_STEP_UID, c->step->uid);
    const struct df_kube_at at = {.resource = &df_tekton_task_runs, .name_space = c->name_space};
    const struct df_kube_select select = {.labels = labels};
    const struct df_kube_sink sink = {.take = take_task_run, .arg = to, .without = unused};
    struct df_err why = {0};
    if (df_check_alloc(labels, err) < 0)
        return -1;
    if (df_kube_list(c->engine->o.kube, &at, &select, 0, &sink, &why) == 0)
        return 0;
    if (why.cls != DF_ERR_DENIED)
        return df_err_pass(err, &why);
    df_warn("the tasks of the PipelineRun %s/%s are not known: %s", c->name_space, c->name,
            why.message);
    return 0;
}

static int look(const struct call *c, struct view *v, struct df_err *err)
{
    v->task_runs = cJSON_CreateObject();
    if (df_check_alloc(v->task_runs, err) < 0 || read_own(c, &v->run, err) < 0)
        return -1;
    if (df_json_at(v->run, "status.childReferences") && list_task_runs(c, v->task_runs, err) < 0)
        return -1;
    v->status = df_pipeline_status(v->run, v->task_runs);
    return 0;
}

static void set_reason(struct df_engine_observation *observed, const char *reason,
                       const char *cause)
{
    (void)snprintf(observed->reason, sizeof(observed->reason), "%s", reason);
    df_copy(observed->cause, sizeof(observed->cause), cause);
}

static void observe_pending(const struct call *c, const struct view *v,
                            struct df_engine_observation *observed)
{
    int64_t now_us = df_real_us();
    int64_t pending_us = c->step->pending_seconds * 1000000;
    observed->phase = DF_ENGINE_PENDING;
    observed->gives_up = observed->since_us && now_us >= observed->since_us + pending_us;
    set_reason(observed, observed->gives_up ? "EngineFailed" : "", v->status.message);
}

static void observe_running(const struct view *v, struct df_engine_observation *observed)
{
    const char *task = NULL;
    const char *why = df_pipeline_waits_for(v->run, v->task_runs, &task);
    observed->phase = DF_ENGINE_RUNNING;
    if (why)
        (void)snprintf(observed->cause, sizeof(observed->cause), "the task %.100s waits: %.800s",
                       task, why);
}

static void observe_failed(const struct view *v, struct df_engine_observation *observed)
{
    const struct df_workflow_failure *f = &v->status.failure;
    char code[40] = "", cause[900];
    if (f->exit_code)
        (void)snprintf(code, sizeof(code), " (exit code %d)", f->exit_code);
    (void)snprintf(cause, sizeof(cause), "%s%.260s%s%s%s: %.500s", *f->task ? "the task " : "",
                   f->task, code, *f->task ? ": " : "", v->status.reason, v->status.message);
    observed->exit_code = f->exit_code ? f->exit_code : -1;
    observed->phase = DF_ENGINE_ENDED;
    set_reason(observed, f->word, cause);
}

static struct df_engine_observation observation_of(const struct call *c, const struct view *v)
{
    struct df_engine_observation observed = {
        .phase = DF_ENGINE_ABSENT, .exit_code = -1, .is_gone = !v->run};
    const char *made = df_json_str(v->run, "metadata.creationTimestamp");
    if (made && df_time_parse(made, &observed.since_us, NULL) == 0)
        observed.since_us -= df_kube_clock_ahead_us(c->engine->o.kube);
    if (v->status.phase == DF_WORKFLOW_COMPLETED) {
        observed.phase = DF_ENGINE_ENDED;
        observed.exit_code = 0;
    } else if (v->status.phase == DF_WORKFLOW_FAILED) {
        observe_failed(v, &observed);
    } else if (v->run && df_pipeline_has_begun(v->run)) {
        observe_running(v, &observed);
    } else if (v->run) {
        observe_pending(c, v, &observed);
    }
    return observed;
}

/* A run that was created may exist when Tekton is back; one that was not cannot be. */
static int observe_unserved(const struct call *c, const struct df_err *why,
                            struct df_engine_observation *ret, struct df_err *err)
{
    if (!df_workflow_is_unserved(why) || c->step->was_created)
        return df_err_pass(err, why);
    *ret = (struct df_engine_observation){
        .phase = DF_ENGINE_ABSENT, .exit_code = -1, .is_gone = true, .takes_none = true};
    set_reason(ret, "EngineFailed", why->message);
    return 0;
}

/* Nobody has asked for a run of it, and the next one can be made: there is nothing to ask for. */
static bool is_new(const struct call *c)
{
    return !c->step->was_created && !c->step->workflow.was_locked &&
           __atomic_load_n(&c->engine->watches.are_served, __ATOMIC_RELAXED);
}

static int tekton_status(struct df_engine *e, const struct df_engine_step *step,
                         struct df_engine_observation *ret, struct df_err *err)
{
    VIEW struct view v = {0};
    struct df_err why = {0};
    struct call c;
    if (begin_call(e, step, &c, err) < 0)
        return -1;
    if (is_new(&c)) {
        *ret = observation_of(&c, &v);
        return 0;
    }
    if (look(&c, &v, &why) < 0)
        return observe_unserved(&c, &why, ret, err);
    struct df_engine_observation observed = observation_of(&c, &v);
    if (!v.run && step->workflow.was_locked &&
        df_workflow_find_lock(c.engine->o.kube, &df_workflow_pipeline_run, &df_workflow_job,
                              &c.workflow, c.name, &observed, err) < 0)
        return -1;
    *ret = observed;
    return 0;
}

/* ---- result ---- */

static int tekton_result(struct df_engine *e, const struct df_engine_step *step, cJSON **ret,
                         struct df_err *err)
{
    VIEW struct view v = {0};
    struct call c;
    if (begin_call(e, step, &c, err) < 0 || look(&c, &v, err) < 0)
        return -1;
    if (!v.run)
        return df_fail(err, DF_ERR_NOT_FOUND, "the PipelineRun of %s does not exist", step->name);
    const struct df_workflow_object object = object_of(&c, v.run);
    return df_workflow_result(&object, &v.status, ret, err);
}

/* ---- cancel, cleanup ---- */

/* The uid makes the API server refuse the patch of a run that took the place of ours. */
static int patch_canceled(const struct call *c, const cJSON *run, struct df_err *err)
{
    const struct df_kube_at at = at_of(c);
    DF_JSON cJSON *body = cJSON_CreateObject();
    const struct df_kube_patch patch = {.type = DF_KUBE_PATCH_MERGE, .body = body};
    struct df_err why = {0};
    if (df_json_add_str(df_json_object_at(body, "metadata"), "uid", df_kube_uid(run), err) < 0 ||
        df_json_add_str(df_json_object_at(body, "spec"), "status", "Cancelled", err) < 0)
        return -1;
    if (df_kube_patch(c->engine->o.kube, &at, &patch, NULL, &why) == 0 ||
        why.cls == DF_ERR_NOT_FOUND)
        return 0;
    return df_err_pass(err, &why);
}

static int tekton_cancel(struct df_engine *e, const struct df_engine_step *step, struct df_err *err)
{
    DF_JSON cJSON *run = NULL;
    struct call c;
    if (begin_call(e, step, &c, err) < 0 || read_own(&c, &run, err) < 0)
        return -1;
    bool is_asked = df_streq(df_json_str(run, "spec.status"), "Cancelled");
    return !run || is_asked || df_workflow_is_over(run) ? 0 : patch_canceled(&c, run, err);
}

/* Whoever wants the target next finds its name free. */
static int tekton_cleanup(struct df_engine *e, const struct df_engine_step *step,
                          struct df_err *err)
{
    DF_JSON cJSON *run = NULL;
    struct call c;
    if (begin_call(e, step, &c, err) < 0 || read_own(&c, &run, err) < 0)
        return -1;
    if (!run)
        return 0;
    if (!df_workflow_is_over(run))
        return df_fail(err, DF_ERR_CONFLICT, "the PipelineRun of %s still lives", step->name);
    return delete_run(&c, run, err);
}

/* ---- output ---- */

/* *ret_goes_on: true if all steps of the task have ended, so that the next task may follow. */
static int give_task(const struct call *c, const cJSON *task_run, const struct df_output_reader *to,
                     bool *ret_goes_on, struct df_err *err)
{
    const char *pod = df_json_str(task_run, "status.podName");
    const cJSON *step;
    *ret_goes_on = pod && df_workflow_is_over(task_run);
    cJSON_ArrayForEach (step, df_json_at(task_run, "status.steps")) {
        const char *container = df_json_str(step, "container");
        bool has_ended = df_json_at(step, "terminated");
        DF_FREE char *part = pod && container ? df_strf("%s/%s", pod, container) : NULL;
        const struct df_workflow_printer p = {c->name_space, pod, container, part};
        if (part && (has_ended || df_json_at(step, "running")) &&
            df_workflow_give_pod(c->engine->o.kube, &p, to, err) < 0)
            return -1;
        if (!has_ended)
            return *ret_goes_on = false, 0;
    }
    return 0;
}

static int tekton_output(struct df_engine *e, const struct df_engine_step *step,
                         const struct df_output_reader *to, struct df_err *err)
{
    VIEW struct view v = {0};
    struct call c;
    bool goes_on = true;
    if (begin_call(e, step, &c, err) < 0 || look(&c, &v, err) < 0)
        return -1;
    const cJSON *reference;
    cJSON_ArrayForEach (reference, df_json_at(v.run, "status.childReferences")) {
        const char *name = df_json_str(reference, "name");
        const cJSON *task_run = name ? cJSON_GetObjectItemCaseSensitive(v.task_runs, name) : NULL;
        if (goes_on && task_run && give_task(&c, task_run, to, &goes_on, err) < 0)
            return -1;
    }
    return 0;
}

/* ---- the engine's life ---- */

static int tekton_watch(struct df_engine *e, struct df_err *err)
{
    struct tekton *t = (struct tekton *)(void *)e;
    return df_tekton_watch(&t->watches, t->name_space, err);
}

struct sweep {
    struct tekton *engine;
    bool (*may_go)(void *arg, const char *step_uid);
    void *arg;
    int64_t before_us; /* by the cluster's clock */
};

static int sweep_run(void *arg, const cJSON *run, struct df_err *err)
{
    const struct sweep *s = arg;
    const char *ended = df_json_str(run, "status.completionTime");
    const char *uid = df_kube_label(run, DF_LABEL_STEP_UID);
    struct call c = {.engine = s->engine, .name_space = df_json_str(run, "metadata.namespace")};
    int64_t ended_us = 0;
    if (!uid || !ended || df_time_parse(ended, &ended_us, NULL) < 0 || ended_us > s->before_us ||
        !df_workflow_is_over(run) || !s->may_go(s->arg, uid))
        return 0;
    df_copy(c.name, sizeof(c.name), df_kube_name(run));
    return delete_run(&c, run, err);
}

/* A PipelineRun has no age of its own, as Jobs have. */
static int tekton_sweep(struct df_engine *e, bool (*may_go)(void *arg, const char *step_uid),
                        void *arg, struct df_err *err)
{
    struct tekton *t = (struct tekton *)(void *)e;
    struct sweep s = {t, may_go, arg,
                      df_real_us() + df_kube_clock_ahead_us(t->o.kube) -
                          DF_WORKFLOW_TTL_SECONDS * INT64_C(1000000)};
    const struct df_kube_at at = {.resource = df_workflow_pipeline_run.resource,
                                  .name_space = t->name_space};
    const struct df_kube_select select = {.labels = DF_MADE_SELECTOR};
    const struct df_kube_sink sink = {.item = sweep_run, .arg = &s};
    struct df_err why = {0};
    if (df_kube_list(t->o.kube, &at, &select, 0, &sink, &why) == 0 || df_workflow_is_unserved(&why))
        return 0;
    return df_err_pass(err, &why);
}

/* Whether there is a run of this name does not matter. */
static int tekton_check(struct df_engine *e, struct df_err *err)
{
    const struct tekton *t = (const struct tekton *)(const void *)e;
    DF_JSON cJSON *run = NULL;
    struct df_err why = {0};
    if (df_workflow_read(t->o.kube, &df_workflow_pipeline_run, t->name_space, "dayfly", &run,
                         &why) == 0)
        return 0;
    return df_workflow_is_unserved(&why) ? df_fail(err, DF_ERR_RETRY, NOT_SERVED)
                                         : df_err_pass(err, &why);
}

static void tekton_close(struct df_engine *e)
{
    struct tekton *t = (struct tekton *)(void *)e;
    df_tekton_watches_stop(&t->watches);
    free(t->name_space);
    free(t->workflow_account);
    explicit_bzero(&t->key, sizeof(t->key));
    free(t);
}

static const struct df_workflow_ops workflow_ops = {
    .step = {.create = tekton_create,
             .status = tekton_status,
             .result = tekton_result,
             .cancel = tekton_cancel,
             .cleanup = tekton_cleanup},
    .output = tekton_output,
};

static const struct df_engine_ops tekton_ops = {
    .watch = tekton_watch,
    .check = tekton_check,
    .sweep = tekton_sweep,
    .close = tekton_close,
    .workflow = &workflow_ops,
};

int df_engine_tekton_new(const struct df_tekton_options *o, struct df_engine **ret,
                         struct df_err *err)
{
    const char *account = o->workflow_account;
    struct tekton *t = calloc(1, sizeof(*t));
    if (!t)
        return df_fail_oom(err);
    *t = (struct tekton){
        .engine = {.ops = &tekton_ops, .kind = &df_engine_kinds[DF_ENGINE_TEKTON]},
        .o = *o,
        .name_space = strdup(o->name_space),
        .workflow_account = strdup(account ? account : DF_WORKFLOW_SERVICE_ACCOUNT),
        .watches = {.kube = o->kube, .notify = o->notify, .notify_arg = o->notify_arg}};
    t->key.is_set = o->key;
    if (o->key)
        memcpy(t->key.bytes, o->key, sizeof(t->key.bytes));
    t->o.key = NULL;
    t->o.name_space = t->name_space;
    t->o.workflow_account = t->workflow_account;
    (void)pthread_mutex_init(&t->watches.lock, NULL);
    if (!t->name_space || !t->workflow_account) {
        tekton_close(&t->engine);
        return df_fail_oom(err);
    }
    *ret = &t->engine;
    return 0;
}
