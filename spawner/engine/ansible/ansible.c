/*
 * The engine `ansible`: the operations of engine.h for workflows. A call takes a client of AWX from
 * the idle ones, because each is for one thread at a time.
 */
#include "spawner/engine/ansible/ansible.h"

#include "common/base/clock.h"
#include "common/crypto/crypto.h"
#include "spawner/engine/ansible/awx_credentials.h"
#include "spawner/engine/ansible/awx_job.h"
#include "spawner/engine/ansible/awx_launch.h"
#include "spawner/engine/ansible/awx_poll.h"

enum { IDLE = 8 /* clients that keep their connection and their token */ };

struct ansible {
    struct df_engine engine; /* first: the pointer that callers have */
    struct df_ansible_options o;
    struct df_awx_options awx; /* of all clients */
    struct df_awx_poll *poll;
    bool stop;
    struct df_awx_gate gate;
    struct df_awx_lost lost;
    pthread_mutex_t lock; /* guards what follows */
    struct df_awx *idle[IDLE];
    size_t idle_count;
    cJSON *cleaned; /* {uid: true}: nothing is left of these steps, which status() has not told */
};

static struct ansible *ansible_of(struct df_engine *e)
{
    return (struct ansible *)(void *)e;
}

/* ---- the token ---- */

static int decode_token(const cJSON *value, char **ret, struct df_err *err)
{
    DF_CLEANUP(df_buf_wipe) struct df_buf text = DF_BUF_INIT(DF_LIMIT_SECRET_VALUE);
    if (!cJSON_IsString(value))
        return df_fail(err, DF_ERR_NOT_FOUND, "it lacks this key");
    if (df_base64_decode(value->valuestring, strlen(value->valuestring), false, &text, err) < 0)
        return -1;
    return df_check_alloc(*ret = strdup(df_buf_str(&text)), err);
}

/* The service is not configured yet, or the Secret is being replaced: no fault of a workflow. */
static int read_token(void *arg, char **ret, struct df_err *err)
{
    const struct ansible *a = arg;
    const char *key = a->o.token_secret.key;
    const struct df_kube_at at = {.resource = &df_kube_secrets,
                                  .name_space = a->o.token_secret.name_space,
                                  .name = a->o.token_secret.name,
                                  .stop = &a->stop};
    DF_SECRET_JSON cJSON *secret = NULL;
    struct df_err why = {0};
    if (df_kube_get(a->o.kube, &at, &secret, &why) == 0 &&
        decode_token(cJSON_GetObjectItemCaseSensitive(df_json_at(secret, "data"), key), ret,
                     &why) == 0)
        return 0;
    return df_fail(err, DF_ERR_RETRY, "the token of AWX, key %s of the Secret %s/%s: %s", key,
                   at.name_space, at.name, why.message);
}

/* ---- who may change something ---- */

static bool may_write(void *arg)
{
    const struct ansible *a = arg;
    return !a->o.may_write || a->o.may_write(a->o.may_write_arg);
}

/* ---- a client for one call ---- */

struct client {
    struct ansible *engine;
    struct df_awx *awx; /* NULL: none was taken */
};

static int take_client(struct ansible *a, struct client *ret, struct df_err *err)
{
    ret->engine = a;
    (void)pthread_mutex_lock(&a->lock);
    ret->awx = a->idle_count ? a->idle[--a->idle_count] : NULL;
    (void)pthread_mutex_unlock(&a->lock);
    return ret->awx ? 0 : df_awx_new(&a->awx, &ret->awx, err);
}

static void give_back(struct client *c)
{
    struct ansible *a = c->engine;
    if (!c->awx)
        return;
    df_awx_forget(c->awx);
    (void)pthread_mutex_lock(&a->lock);
    if (a->idle_count < IDLE)
        a->idle[a->idle_count++] = DF_TAKE(c->awx);
    (void)pthread_mutex_unlock(&a->lock);
    df_awx_free(c->awx);
}
#define CLIENT DF_CLEANUP(give_back) struct client

static struct df_awx_call call_of(struct ansible *a, struct df_awx *awx,
                                  const struct df_engine_step *step)
{
    return (struct df_awx_call){.awx = awx,
                                .kube = a->o.kube,
                                .name_space = a->o.name_space,
                                .never = a->o.never,
                                .sees_pipelines = a->o.sees_pipelines,
                                .lost = &a->lost,
                                .step = step};
}

static int job_of(const struct df_engine_step *step, int64_t *ret, struct df_err *err)
{
    const char *name = df_json_str(step->ref, "name");
    return df_awx_job_id(name ? name : "", ret, err);
}

/* ---- create ---- */

static int ansible_create(struct df_engine *e, const struct df_engine_step *step, cJSON **ret_ref,
                          struct df_err *err)
{
    struct ansible *a = ansible_of(e);
    CLIENT client = {0};
    if (take_client(a, &client, err) < 0)
        return -1;
    const struct df_awx_call c = call_of(a, client.awx, step);
    return df_awx_create(&c, ret_ref, err);
}

/* ---- status, result, output ---- */

/* What the thread knows of the job; asks AWX if that is nothing. */
static int see(struct ansible *a, const struct df_engine_step *step, struct df_awx_seen *ret,
               struct df_err *err)
{
    CLIENT client = {0};
    struct df_awx_watched w = {0};
    /* The output may show the Secrets that the job was given. */
    w.shows_output = !cJSON_GetArraySize(df_json_at(step->workflow.spec, "dependencies.secrets"));
    df_copy(w.uid, sizeof(w.uid), step->uid);
    df_copy(w.step, sizeof(w.step), step->name);
    if (job_of(step, &w.job, err) < 0)
        return -1;
    if (!df_awx_poll_find(a->poll, w.uid, ret)) {
        if (take_client(a, &client, err) < 0)
            return -1;
        df_awx_look(client.awx, &w, ret);
        if (df_awx_poll_add(a->poll, &w, ret, err) < 0)
            return -1;
    }
    return ret->why.cls ? df_err_pass(err, &ret->why) : 0;
}

static bool is_clean(struct ansible *a, const struct df_engine_step *step)
{
    (void)pthread_mutex_lock(&a->lock);
    bool clean = cJSON_GetObjectItemCaseSensitive(a->cleaned, step->uid);
    if (clean)
        cJSON_DeleteItemFromObjectCaseSensitive(a->cleaned, step->uid);
    (void)pthread_mutex_unlock(&a->lock);
    return clean;
}

static void observe_queued(const struct df_engine_step *step, const struct df_awx_seen *s,
                           struct df_engine_observation *o)
{
    int64_t late_us = s->created_us + step->pending_seconds * 1000000;
    o->phase = DF_ENGINE_PENDING;
    o->gives_up = s->created_us && step->pending_seconds && df_real_us() >= late_us;
    df_copy(o->reason, sizeof(o->reason), o->gives_up ? "Unschedulable" : "");
    df_copy(o->cause, sizeof(o->cause), s->job.message);
}

static void observe_job(const struct df_engine_step *step, const struct df_awx_seen *s,
                        struct df_engine_observation *o)
{
    bool is_gone = df_streq(s->job.reason, "AWXJobGone");
    o->since_us = s->created_us;
    if (s->is_queued) {
        observe_queued(step, s, o);
    } else if (s->job.phase == DF_WORKFLOW_RUNNING) {
        o->phase = DF_ENGINE_RUNNING;
    } else {
        o->phase = DF_ENGINE_ENDED;
        o->exit_code = s->job.phase == DF_WORKFLOW_COMPLETED ? 0 : -1;
    }
    if (s->job.phase != DF_WORKFLOW_FAILED)
        return;
    df_copy(o->reason, sizeof(o->reason), is_gone ? "JobDeleted" : "WorkflowFailed");
    (void)snprintf(o->cause, sizeof(o->cause), "%s: %.850s", s->job.reason, s->job.message);
}

static int observe_absent(struct ansible *a, const struct df_engine_step *step,
                          struct df_engine_observation *o, struct df_err *err)
{
    const struct df_awx_call c = call_of(a, NULL, step);
    struct df_err why = {0};
    if (df_awx_tell_lost(&c, o->cause, sizeof(o->cause))) {
        df_copy(o->reason, sizeof(o->reason), "JobDeleted");
        return 0;
    }
    if (!step->workflow.was_locked || df_awx_check_target(&c, &why) == 0)
        return 0;
    if (!df_streq(why.reason, "TargetLocked"))
        return df_err_pass(err, &why);
    df_copy(o->reason, sizeof(o->reason), why.reason);
    df_copy(o->cause, sizeof(o->cause), why.message);
    return 0;
}

/* A step without a reference is absent: create() finds its job if there is one. */
static int observe(struct ansible *a, const struct df_engine_step *step,
                   struct df_engine_observation *o, struct df_err *err)
{
    struct df_awx_seen seen;
    if (!step->ref)
        return observe_absent(a, step, o, err);
    if (see(a, step, &seen, err) < 0)
        return -1;
    observe_job(step, &seen, o);
    return 0;
}

static int ansible_status(struct df_engine *e, const struct df_engine_step *step,
                          struct df_engine_observation *ret, struct df_err *err)
{
    struct ansible *a = ansible_of(e);
    struct df_engine_observation observed = {.phase = DF_ENGINE_ABSENT, .exit_code = -1};
    if (observe(a, step, &observed, err) < 0)
        return -1;
    observed.is_gone = !step->was_created || is_clean(a, step);
    *ret = observed;
    return 0;
}

/* The reference stays as create() made it. */
static int complete_result(const struct df_engine_step *step, cJSON *result, struct df_err *err)
{
    const cJSON *ids = df_json_at(step->ref, "credentials");
    DF_FREE char *note = df_awx_print_ids(ids);
    if (df_json_set(result, "engineRef", cJSON_Duplicate(step->ref, true), err) < 0)
        return -1;
    if (!cJSON_GetArraySize(ids))
        return 0;
    if (df_json_set(result, "ephemeralCredentialIDs", cJSON_Duplicate(ids, true), err) < 0)
        return -1;
    return df_json_put(df_json_object_at(result, "annotations"), err,
                       DF_STR_ALLOC(DF_AWX_ANNOTATION, note));
}

static int ansible_result(struct df_engine *e, const struct df_engine_step *step, cJSON **ret,
                          struct df_err *err)
{
    DF_JSON cJSON *result = NULL;
    const struct df_workflow_object object = {0};
    struct df_awx_seen seen;
    if (!step->ref)
        return df_fail(err, DF_ERR_NOT_FOUND, "the AWX job of %s is not known", step->name);
    if (see(ansible_of(e), step, &seen, err) < 0 ||
        df_workflow_result(&object, &seen.job, &result, err) < 0 ||
        complete_result(step, result, err) < 0)
        return -1;
    *ret = DF_TAKE(result);
    return 0;
}

/* AWX orders what was printed by its lines, and stores it in any order: while a job runs, a line
 * may come before others that are there already. *ret_is_whole: nothing comes but at the end. */
static int read_output(struct df_awx *awx, int64_t job, bool has_ended, struct df_buf *text,
                       bool *ret_is_whole, struct df_err *err)
{
    struct df_awx_events before = {0}, after = {0};
    if (!has_ended && df_awx_count_events(awx, job, &before, err) < 0)
        return -1;
    *ret_is_whole = before.count == before.newest;
    if (!*ret_is_whole)
        return 0;
    if (df_awx_stdout(awx, job, text, err) < 0 ||
        (!has_ended && df_awx_count_events(awx, job, &after, err) < 0))
        return -1;
    *ret_is_whole = after.count == before.count && after.newest == before.newest;
    return 0;
}

static int give_output(struct ansible *a, int64_t job, bool has_ended,
                       const struct df_output_reader *to, struct df_err *err)
{
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_LIMIT_HTTP_RESPONSE);
    CLIENT client = {0};
    struct df_err why = {0};
    bool is_whole = false;
    if (take_client(a, &client, err) < 0)
        return -1;
    if (read_output(client.awx, job, has_ended, &text, &is_whole, &why) < 0)
        return why.cls == DF_ERR_NOT_FOUND ? 0 : df_err_pass(err, &why);
    return is_whole ? to->add(to->arg, df_buf_str(&text), text.len, err) : 0;
}

static int ansible_output(struct df_engine *e, const struct df_engine_step *step,
                          const struct df_output_reader *to, struct df_err *err)
{
    struct ansible *a = ansible_of(e);
    struct df_awx_seen seen;
    int64_t job;
    if (!step->ref)
        return 0;
    if (job_of(step, &job, err) < 0 || see(a, step, &seen, err) < 0)
        return -1;
    int known = to->begin(to->arg, df_json_str(step->ref, "name"), err);
    if (known != 0)
        return known < 0 ? -1 : 0;
    bool is_over = df_awx_has_ended(&seen) && !seen.is_printing;
    return give_output(a, job, is_over, to, err);
}

/* ---- cancel, cleanup ---- */

static int ansible_cancel(struct df_engine *e, const struct df_engine_step *step,
                          struct df_err *err)
{
    struct ansible *a = ansible_of(e);
    CLIENT client = {0};
    struct df_err why = {0};
    int64_t job;
    if (!step->ref)
        return 0;
    if (job_of(step, &job, err) < 0 || take_client(a, &client, err) < 0)
        return -1;
    if (df_awx_cancel(client.awx, job, &why) < 0 && why.cls != DF_ERR_NOT_FOUND)
        return df_err_pass(err, &why);
    df_awx_poll_soon(a->poll, step->uid);
    return 0;
}

static int set_clean(struct ansible *a, const struct df_engine_step *step, struct df_err *err)
{
    (void)pthread_mutex_lock(&a->lock);
    int result = df_json_set(a->cleaned, step->uid, cJSON_CreateTrue(), err);
    (void)pthread_mutex_unlock(&a->lock);
    return result;
}

static int ansible_cleanup(struct df_engine *e, const struct df_engine_step *step,
                           struct df_err *err)
{
    struct ansible *a = ansible_of(e);
    CLIENT client = {0};
    struct df_awx_seen seen;
    if (step->ref && see(a, step, &seen, err) < 0)
        return -1;
    if (step->ref && !df_awx_has_ended(&seen))
        return df_fail(err, DF_ERR_CONFLICT, "the AWX job of %s still lives", step->name);
    if (take_client(a, &client, err) < 0)
        return -1;
    const struct df_awx_call c = call_of(a, client.awx, step);
    return df_awx_remove(&c, err) < 0 ? -1 : set_clean(a, step, err);
}

/* ---- the engine's life ---- */

/* There is nothing to watch. The process that acted before may have launched in its last moment. */
static int ansible_watch(struct df_engine *e, struct df_err *err)
{
    (void)err;
    df_awx_lost_before(&ansible_of(e)->lost);
    return 0;
}

/* Any question would do: whether AWX is there, and takes the token. */
static int ansible_check(struct df_engine *e, struct df_err *err)
{
    DF_JSON cJSON *ids = NULL;
    CLIENT client = {0};
    return take_client(ansible_of(e), &client, err) < 0
               ? -1
               : df_awx_find_credentials(client.awx, "dayfly", &ids, err);
}

static void ansible_close(struct df_engine *e)
{
    struct ansible *a = ansible_of(e);
    __atomic_store_n(&a->stop, true, __ATOMIC_RELAXED); /* df_stopped() */
    df_awx_poll_free(a->poll);
    while (a->idle_count)
        df_awx_free(a->idle[--a->idle_count]);
    cJSON_Delete(a->cleaned);
    df_awx_lost_destroy(&a->lost);
    df_awx_gate_destroy(&a->gate);
    (void)pthread_mutex_destroy(&a->lock);
    free(a);
}

/* The credentials: the job has ended. A step that was asked for and has no reference ended before
 * its create() did: they are looked for then, and so is its job. */
static int ansible_release(struct df_engine *e, const struct df_engine_step *step,
                           struct df_err *err)
{
    struct ansible *a = ansible_of(e);
    CLIENT client = {0};
    bool has_none =
        step->ref ? !cJSON_GetArraySize(df_json_at(step->ref, "credentials")) : !step->was_created;
    if (has_none) {
        df_awx_lost_forget(&a->lost, step->uid);
        return 0;
    }
    if (take_client(a, &client, err) < 0)
        return -1;
    const struct df_awx_call c = call_of(a, client.awx, step);
    return df_awx_remove(&c, err);
}

static const struct df_workflow_ops workflow_ops = {.step = {.create = ansible_create,
                                                             .status = ansible_status,
                                                             .result = ansible_result,
                                                             .cancel = ansible_cancel,
                                                             .cleanup = ansible_cleanup},
                                                    .output = ansible_output,
                                                    .release = ansible_release};

static const struct df_engine_ops ansible_ops = {
    .watch = ansible_watch,
    .check = ansible_check,
    .close = ansible_close,
    .workflow = &workflow_ops,
};

int df_engine_ansible_new(const struct df_ansible_options *o, struct df_engine **ret,
                          struct df_err *err)
{
    struct ansible *a = calloc(1, sizeof(*a));
    if (!a)
        return df_fail_oom(err);
    *a = (struct ansible){.engine = {.ops = &ansible_ops, .kind = o->kind},
                          .o = *o,
                          .awx = {.url = o->url,
                                  .ca_file = o->ca_file,
                                  .insecure = o->insecure,
                                  .organization = o->organization,
                                  .token = read_token,
                                  .may_write = may_write,
                                  .arg = a,
                                  .stop = &a->stop,
                                  .gate = &a->gate},
                          .cleaned = cJSON_CreateObject()};
    (void)pthread_mutex_init(&a->lock, NULL);
    df_awx_gate_init(&a->gate);
    if (df_awx_lost_init(&a->lost, err) < 0 || df_check_alloc(a->cleaned, err) < 0 ||
        df_awx_poll_new(&a->awx, o->notify, o->notify_arg, &a->poll, err) < 0) {
        ansible_close(&a->engine);
        return -1;
    }
    *ret = &a->engine;
    return 0;
}
