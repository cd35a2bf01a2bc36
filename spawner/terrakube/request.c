/*
 * request.c - makes a TaskAction of a payload. Read df_request_terrakube_step() at the end first.
 * The name follows from job and step, so a repeated request finds its TaskAction and succeeds. The
 * payload is stored before the TaskAction, which therefore never lacks it.
 */
#include "common/base/clock.h"
#include "common/base/parse.h"
#include "spawner/journal/reporter.h"
#include "spawner/journal/transitions.h"
#include "spawner/model/labels.h"
#include "spawner/model/tables.h"
#include "spawner/model/task_kinds.h"
#include "spawner/terrakube/terrakube.h"

/* ---- room ---- */

/* The API sends the next step of a job as soon as the last one has told its end, while its pod is
 * still there: APIs before 2.33 would fail the job for a refusal. */
#define OF_ONE_JOB 2

struct room {
    int64_t taken;   /* by all unfinished steps of Terrakube */
    int64_t own;     /* steps of the job */
    int64_t running; /* of these: not ended */
};

static int count_unfinished(struct df_spawner *s, const char *job, struct room *ret,
                            struct df_err *err)
{
    const struct df_store_list_options unfinished = {.label = DF_LABEL_UNFINISHED "=true"};
    DF_JSON cJSON *list = NULL;
    const cJSON *task;
    *ret = (struct room){0};
    if (df_store_list(s->store, DF_KIND_TASK_ACTION, &unfinished, &list, NULL, err) < 0)
        return -1;
    cJSON_ArrayForEach (task, list) {
        bool is_own = df_streq(df_json_str(task, "spec.terrakube.job"), job);
        if (df_task_kind(task)->id != DF_TASK_TERRAKUBE)
            continue;
        ret->taken++;
        ret->own += is_own;
        ret->running += is_own && !df_task_is_final(task);
    }
    return 0;
}

static int check_room(struct df_spawner *s, const char *job, struct df_err *err)
{
    struct room room;
    int64_t most = s->config->terrakube_steps;
    if (count_unfinished(s, job, &room, err) < 0)
        return -1;
    if (room.own ? room.running < OF_ONE_JOB : room.taken < most)
        return 0;
    __atomic_store_n(&df_terrakube_of(s)->turned_away, true, __ATOMIC_RELAXED);
    if (room.own)
        return df_fail_reason(err, DF_ERR_RETRY, "NoCapacity",
                              "job %s of Terrakube has %lld steps that have not ended: try again",
                              job, (long long)room.running);
    return df_fail_reason(err, DF_ERR_RETRY, "NoCapacity",
                          "%lld steps are not finished, and terrakube.steps is %lld: try again",
                          (long long)room.taken, (long long)most);
}

/* ---- the TaskAction ---- */

static int fill_spec(const struct df_spawner *s, cJSON *spec, struct df_err *err)
{
    const struct df_config *c = s->config;
    if (df_json_add_str(spec, "engine", c->engine, err) < 0 ||
        df_json_add_num(spec, "timeoutSeconds", (double)c->terrakube_deadline_s, err) < 0 ||
        df_json_add_num(spec, "graceSeconds", (double)c->timeout_grace_s, err) < 0)
        return -1;
    return df_json_add_num(spec, "pendingSeconds", (double)c->timeout_pending_s, err);
}

static int fill_document(const struct df_spawner *s, cJSON *task, const char *name,
                         struct df_err *err)
{
    cJSON *metadata = df_json_object_at(task, "metadata");
    int64_t now_us = df_real_us();
    if (df_json_add_str(task, "apiVersion", DF_API_VERSION, err) < 0 ||
        df_json_add_str(task, "kind", df_kind_name(DF_KIND_TASK_ACTION), err) < 0 ||
        df_json_add_str(metadata, "name", name, err) < 0 ||
        df_json_add_str(metadata, "namespace", "default", err) < 0 ||
        df_label_set(task, DF_LABEL_UNFINISHED, "true", err) < 0 ||
        df_reporter_expect(s->config, task, err) < 0 ||
        df_task_set_conditions(task, DF_OUTCOME_NONE, "Queued", NULL, now_us, err) < 0)
        return -1;
    return df_task_add_time(task, "queued", now_us, err);
}

static int make_task(struct df_spawner *s, const struct df_terrakube_payload *p, const char *name,
                     cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *task = cJSON_CreateObject();
    cJSON *spec = NULL;
    if (df_terrakube_task_spec(p, &spec, err) < 0 || df_json_add(task, "spec", spec, err) < 0)
        return -1;
    if (fill_spec(s, spec, err) < 0 || fill_document(s, task, name, err) < 0)
        return -1;
    *ret = DF_TAKE(task);
    return 0;
}

/* ---- the request ---- */

static int read_payload(const char *text, size_t n, struct df_terrakube_payload *ret,
                        struct df_err *err)
{
    struct df_err why = {0};
    if (df_terrakube_payload_read(text, n, ret, &why) == 0)
        return 0;
    if (why.cls != DF_ERR_USER || !ret->organization || !ret->job || !ret->step)
        return df_err_pass(err, &why);
    ret->workspace = NULL; /* what else was read is not to be used */
    ret->environment = NULL;
    return 0;
}

static int store_step(struct df_spawner *s, const struct df_terrakube_payload *p, const char *name,
                      const char *text, size_t n, struct df_err *err)
{
    DF_JSON cJSON *task = NULL;
    struct df_err why = {0};
    if (make_task(s, p, name, &task, err) < 0 || df_payload_put(s, name, text, n, err) < 0)
        return -1;
    if (df_task_create(s, task, NULL, &why) == 0)
        return 0;
    return why.cls == DF_ERR_CONFLICT ? 0 : df_err_pass(err, &why); /* the other of two requests */
}

/* Two requests at once do not take the same room. */
static int take_room(struct df_spawner *s, const struct df_terrakube_payload *p, const char *name,
                     const char *text, size_t n, struct df_err *err)
{
    (void)pthread_mutex_lock(&df_terrakube_of(s)->room);
    int result = check_room(s, p->job, err);
    if (result == 0)
        result = store_step(s, p, name, text, n, err);
    (void)pthread_mutex_unlock(&df_terrakube_of(s)->room);
    return result;
}

int df_request_terrakube_step(struct df_spawner *s, const char *text, size_t n, struct df_err *err)
{
    DF_TERRAKUBE_PAYLOAD p = {0};
    DF_SHARED const cJSON *known = NULL;
    if (read_payload(text, n, &p, err) < 0)
        return -1;
    DF_FREE char *name = df_terrakube_task_name(&p);
    if (!name)
        return df_fail_oom(err);
    if (!df_is_dns_label(name))
        return df_fail_reason(err, DF_ERR_USER, "PayloadInvalid",
                              "jobId, stepId: \"%.100s\" is not a number and a UUID", name);
    if (df_store_look_for(s->store, DF_KIND_TASK_ACTION, name, &known, err) < 0)
        return -1;
    if (known)
        return 0;
    return take_room(s, &p, name, text, n, err);
}
