/*
 * workflows.c - requests on TaskActions without a run: workflows, which callers make, and steps of
 * an upstream system (upstream.h), which they may cancel and delete.
 */
#include "common/base/clock.h"
#include "spawner/engine/workflow/workflow.h"
#include "spawner/journal/reporter.h"
#include "spawner/journal/transitions.h"
#include "spawner/model/instance.h"
#include "spawner/model/labels.h"
#include "spawner/model/workflow.h"
#include "spawner/requests/new_docs.h"
#include "spawner/requests/requests.h"
#include "spawner/requests/reserved.h"
#include "spawner/steps/engine_step.h"
#include "spawner/steps/streams.h"

static int wrong_state(const cJSON *task, const char *why, struct df_err *err)
{
    return df_fail_reason(err, DF_ERR_CONFLICT, "WrongState", "taskaction %s: %s",
                          df_json_str(task, "metadata.name"), why);
}

static int check_alone(const cJSON *task, struct df_err *err)
{
    if (!df_json_at(task, "spec.runRef"))
        return 0;
    return df_fail_reason(
        err, DF_ERR_CONFLICT, "WrongState", "taskaction %s is a step of run %s, and goes with that",
        df_json_str(task, "metadata.name"), df_json_str(task, "spec.runRef.name"));
}

/* ---- create ---- */

static int check_engine(struct df_spawner *s, const cJSON *doc, struct df_err *err)
{
    const char *name = df_json_str(doc, "spec.engine");
    const struct df_engine_kind *kind = df_engine_kind_of(name);
    struct df_engine *engine = df_engine_find(&s->engines, name);
    if (!engine && (!kind || kind->takes_workflows)) /* one that takes none would be of no use */
        return df_engine_get(&s->engines, name, &engine, err);
    if (engine && engine->ops->workflow)
        return 0;
    return df_fail_reason(err, DF_ERR_USER, "InvalidDocument",
                          "spec.engine: the engine %s runs no workflows", name);
}

static int set_labels(cJSON *doc, struct df_err *err)
{
    char lock[21];
    if (df_workflow_name(df_json_str(doc, "spec.targetResource"), lock, err) < 0 ||
        df_label_set(doc, DF_LABEL_QUEUE, lock, err) < 0)
        return -1;
    return df_label_set(doc, DF_LABEL_UNFINISHED, "true", err);
}

static int set_pending(const struct df_spawner *s, cJSON *doc, struct df_err *err)
{
    cJSON *spec = df_json_object_at(doc, "spec");
    if (df_json_at(spec, "pendingSeconds"))
        return 0;
    return df_json_add_num(spec, "pendingSeconds", (double)s->config->timeout_pending_s, err);
}

int df_new_workflow(struct df_spawner *s, cJSON *doc, const char *actor, struct df_err *err)
{
    int64_t now_us = df_real_us();
    if (check_engine(s, doc, err) < 0 ||
        df_class_check(s->config->classes, df_json_str(doc, "spec.class"), err) < 0 ||
        set_labels(doc, err) < 0 || set_pending(s, doc, err) < 0 ||
        df_reporter_expect(s->config, doc, err) < 0 ||
        df_task_set_conditions(doc, DF_OUTCOME_NONE, "Queued", NULL, now_us, err) < 0 ||
        df_task_add_time(doc, "queued", now_us, err) < 0)
        return -1;
    return df_json_add_str(df_json_object_at(doc, "status"), "creator", actor, err);
}

static int check_document(struct df_spawner *s, cJSON *doc, struct df_err *err)
{
    if (!doc)
        return df_fail(err, DF_ERR_USER, "a body with the TaskAction is required");
    if (df_json_str(doc, "spec.action") && !df_task_is_workflow(doc))
        return df_task_refuse_step(doc, err);
    /* First: who must open the engine, or take another one, needs other fields then. */
    if (df_json_str(doc, "spec.engine") && check_engine(s, doc, err) < 0)
        return -1;
    if (df_model_admit(DF_KIND_TASK_ACTION, doc, NULL, err) < 0)
        return -1;
    return df_keep_reserved(doc, NULL, err);
}

int df_request_create_workflow(struct df_spawner *s, const struct df_document_request *request,
                               cJSON **ret, struct df_err *err)
{
    cJSON *doc = request->doc;
    if (check_document(s, doc, err) < 0 || df_allowed_workflow(s, doc, request->role, err) < 0 ||
        df_add_reserved(doc, request->marks, err) < 0 ||
        df_new_workflow(s, doc, request->actor, err) < 0)
        return -1;
    return df_task_create(s, doc, ret, err);
}

/* ---- cancel, delete ---- */

struct request {
    const char *why; /* or NULL */
    const char *actor;
};

static int set_cancel(cJSON *task, void *arg, struct df_err *err)
{
    const struct request *r = arg;
    if (check_alone(task, err) < 0)
        return -1;
    if (df_json_at(task, "spec.cancel"))
        return 1;
    if (df_task_is_final(task))
        return wrong_state(task, "it has ended", err);
    return df_json_set(df_json_object_at(task, "spec"), "cancel", df_new_cancel(r->actor, r->why),
                       err);
}

int df_request_cancel_workflow(struct df_spawner *s, const char *name, const char *actor,
                               const char *why, cJSON **ret, struct df_err *err)
{
    struct request r = {why, actor};
    return df_store_modify(s->store, DF_KIND_TASK_ACTION, name, set_cancel, &r, ret, err);
}

/* What the engine keeps. A workflow that it was never asked for has nothing there. */
static int remove_kept(struct df_spawner *s, const cJSON *task, struct df_engine_step *step,
                       struct df_err *err)
{
    struct df_engine *engine = NULL;
    if (df_task_is_workflow(task) && !step->was_created)
        return 0;
    if (df_engine_get_for(&s->engines, df_json_str(task, "spec.engine"), step, &engine, err) < 0)
        return -1;
    step->is_deleted = true;
    return df_engine_ops_of(engine, step)->cleanup(engine, step, err);
}

int df_request_delete_workflow(struct df_spawner *s, const char *name, struct df_err *err)
{
    DF_SHARED const cJSON *task = NULL;
    struct df_engine_step step;
    if (df_store_look(s->store, DF_KIND_TASK_ACTION, name, &task, err) < 0 ||
        check_alone(task, err) < 0)
        return -1;
    if (df_label_has(task, DF_LABEL_UNFINISHED))
        return wrong_state(task, "it has not ended: cancel it first", err);
    df_engine_step_of(s, task, &step);
    if (df_reporter_release(s->config, task, err) < 0 || remove_kept(s, task, &step, err) < 0 ||
        df_stream_delete(s, step.uid, err) < 0)
        return -1;
    return df_store_remove(s->store, DF_KIND_TASK_ACTION, name, step.uid, err);
}
