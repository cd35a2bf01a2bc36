/*
 * purge.c - removes documents with all that belongs to them. The document goes last: after a crash
 * it is still there, and the next purge continues. purge_of_X() removes what belongs to X;
 * df_purge_X() does that and removes the document, as one removal (removals.h).
 */
#include "spawner/requests/purge.h"

#include "spawner/journal/reporter.h"
#include "spawner/model/labels.h"
#include "spawner/steps/engine_step.h"
#include "spawner/steps/outputs.h"
#include "spawner/steps/plans.h"
#include "spawner/steps/streams.h"

static int list_of(struct df_store *s, enum df_kind kind, const char *label_name, const char *value,
                   cJSON **ret, struct df_err *err)
{
    char label[128];
    (void)snprintf(label, sizeof(label), "%s=%s", label_name, value);
    const struct df_store_list_options o = {.label = label};
    return df_store_list(s, kind, &o, ret, NULL, err);
}

/* A Job that has ended stays for people to look at, no longer than its step. What an engine keeps
 * that is no longer configured is not reached any more. */
static int purge_from_engine(struct df_spawner *s, const cJSON *task, struct df_err *err)
{
    struct df_engine *engine = NULL;
    struct df_engine_step step;
    df_engine_step_of(s, task, &step);
    step.is_deleted = true;
    if (!df_json_at(task, "status.engineRef") ||
        df_engine_get_for(&s->engines, df_json_str(task, "spec.engine"), &step, &engine, NULL) < 0)
        return 0;
    return df_engine_ops_of(engine, &step)->cleanup(engine, &step, err);
}

static int remove_document(struct df_spawner *s, enum df_kind kind, const cJSON *doc,
                           struct df_err *err)
{
    return df_store_remove(s->store, kind, df_json_str(doc, "metadata.name"),
                           df_json_str(doc, "metadata.uid"), err);
}

static int purge_of_step(struct df_spawner *s, const cJSON *task, struct df_err *err)
{
    const char *uid = df_json_str(task, "metadata.uid");
    if (df_label_has(task, DF_LABEL_LIVE))
        return df_fail_reason(err, DF_ERR_RETRY, "Conflict", "step %s is still being cleaned up",
                              df_json_str(task, "metadata.name"));
    if (purge_from_engine(s, task, err) < 0 || df_reporter_release(s->config, task, err) < 0 ||
        df_stream_delete(s, uid, err) < 0 || df_plan_delete(s, uid, err) < 0)
        return -1;
    return df_outputs_delete(s, uid, err);
}

static int purge_step(struct df_spawner *s, const cJSON *task, struct df_err *err)
{
    return purge_of_step(s, task, err) < 0 ? -1
                                           : remove_document(s, DF_KIND_TASK_ACTION, task, err);
}

static int purge_run(struct df_spawner *s, const cJSON *run, struct df_err *err)
{
    return remove_document(s, DF_KIND_RUN, run, err);
}

static int purge_revision(struct df_spawner *s, const cJSON *revision, struct df_err *err)
{
    return remove_document(s, DF_KIND_REVISION, revision, err);
}

/* Selects what is removed: documents of a kind with this label that belong to this executor. */
struct owned {
    const char *label, *value;
    const char *executor_uid;
    int (*purge)(struct df_spawner *s, const cJSON *doc, struct df_err *err);
};

/* Names are reused: an executor that was deleted and created again also has a run net-1. A run that
 * was never accepted has no uid; it belongs to the executor with its name. */
static bool is_owned(const cJSON *doc, const struct owned *o)
{
    const char *uid = df_json_str(doc, "spec.executorRef.uid");
    return !uid || df_streq(uid, o->executor_uid);
}

static int purge_kind(struct df_spawner *s, enum df_kind kind, const struct owned *o,
                      struct df_err *err)
{
    for (bool found = true; found;) {
        DF_JSON cJSON *list = NULL;
        const cJSON *doc;
        found = false;
        if (list_of(s->store, kind, o->label, o->value, &list, err) < 0)
            return -1;
        cJSON_ArrayForEach (doc, list) {
            struct df_err why = {0};
            if (!is_owned(doc, o))
                continue;
            found = true;
            if (o->purge(s, doc, &why) < 0 && why.cls != DF_ERR_NOT_FOUND)
                return df_err_pass(err, &why);
        }
    }
    return 0;
}

static int purge_of_run(struct df_spawner *s, const cJSON *run, struct df_err *err)
{
    const struct owned steps = {DF_LABEL_RUN, df_json_str(run, "metadata.name"),
                                df_json_str(run, "spec.executorRef.uid"), purge_step};
    return purge_kind(s, DF_KIND_TASK_ACTION, &steps, err);
}

static int purge_of_executor(struct df_spawner *s, const cJSON *executor, struct df_err *err)
{
    const char *name = df_json_str(executor, "metadata.name");
    const char *uid = df_json_str(executor, "metadata.uid");
    const struct owned steps = {DF_LABEL_EXECUTOR, name, uid, purge_step};
    const struct owned runs = {DF_LABEL_EXECUTOR, name, uid, purge_run};
    const struct owned revisions = {DF_LABEL_EXECUTOR, name, uid, purge_revision};
    if (purge_kind(s, DF_KIND_TASK_ACTION, &steps, err) < 0 ||
        purge_kind(s, DF_KIND_RUN, &runs, err) < 0 ||
        purge_kind(s, DF_KIND_REVISION, &revisions, err) < 0 ||
        df_state_purge(s->states, uid, err) < 0)
        return -1;
    return df_outputs_delete(s, uid, err);
}

/* ---- as removals ---- */

typedef int (*purge)(struct df_spawner *s, const cJSON *doc, struct df_err *err);

/* First what belongs to the document, then the document. */
static int as_removal(struct df_spawner *s, enum df_kind kind, const cJSON *doc, purge belongings,
                      const struct df_purge_note *note, struct df_err *err)
{
    if (df_removal_begin(&s->removals, err) < 0)
        return -1;
    int result = belongings(s, doc, err);
    if (result == 0 && note)
        note->write(note->arg, kind, doc);
    if (result == 0)
        result = remove_document(s, kind, doc, err);
    df_removal_end(&s->removals);
    return result;
}

int df_purge_step(struct df_spawner *s, const cJSON *task, const struct df_purge_note *note,
                  struct df_err *err)
{
    return as_removal(s, DF_KIND_TASK_ACTION, task, purge_of_step, note, err);
}

int df_purge_run(struct df_spawner *s, const cJSON *run, const struct df_purge_note *note,
                 struct df_err *err)
{
    return as_removal(s, DF_KIND_RUN, run, purge_of_run, note, err);
}

int df_purge_executor(struct df_spawner *s, const cJSON *executor, const struct df_purge_note *note,
                      struct df_err *err)
{
    return as_removal(s, DF_KIND_EXECUTOR, executor, purge_of_executor, note, err);
}
