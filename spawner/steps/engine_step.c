#include "spawner/steps/engine_step.h"

#include "spawner/model/task_kinds.h"
#include "spawner/model/workflow.h"
#include "spawner/steps/step_document.h"

static bool has_time(const cJSON *task, const char *name)
{
    const cJSON *entry;
    cJSON_ArrayForEach (entry, df_json_at(task, "status.timeline")) {
        if (df_streq(df_json_str(entry, "name"), name))
            return true;
    }
    return false;
}

static void fill_runner(const struct df_spawner *s, const cJSON *task, struct df_engine_step *step)
{
    step->runner.server_url = s->server_url;
    step->runner.ca_file = s->ca_file;
    step->runner.endpoint_file = s->endpoint_file;
    step->runner.run = df_json_str(task, "spec.runRef.name");
    step->runner.executor = df_json_str(task, "spec.executorRef.name");
    step->runner.action = df_json_str(task, "spec.action");
    step->runner.labels = df_json_at(df_task_of_upstream(task), "labels");
    step->runner.grace_seconds = df_json_int(task, "spec.graceSeconds", 0);
    step->runner.apply_seconds = df_json_int(task, "spec.keepsPodFor.timeoutSeconds", 0);
    step->was_created = df_json_at(task, "status.engineRef");
    step->was_claimed = df_task_has_runner(task);
    step->runner.pod = df_json_str(task, "status.claimedBy.podUid"); /* of its verified token */
}

static void fill_workflow(const cJSON *task, struct df_engine_step *step)
{
    const char *holder = df_json_str(task, "status.lockedBy");
    /* The object may exist although no reference was stored: a create call may have got no
     * response. */
    step->was_created = df_json_at(task, "status.engineRef") || has_time(task, "created");
    step->was_claimed = has_time(task, "started");
    step->workflow = (struct df_engine_workflow){
        .spec = df_json_at(task, "spec.workflow"),
        .target = df_json_str(task, "spec.targetResource"),
        .name_space = df_json_str(task, "metadata.namespace"),
        .was_locked = holder && !df_starts_with(holder, DF_QUEUED_BEHIND),
    };
}

void df_engine_step_of(const struct df_spawner *s, const cJSON *task, struct df_engine_step *ret)
{
    *ret = (struct df_engine_step){
        .name = df_json_str(task, "metadata.name"),
        .uid = df_json_str(task, "metadata.uid"),
        .timeout_seconds = df_json_int(task, "spec.timeoutSeconds", 0),
        .pending_seconds = df_json_int(task, "spec.pendingSeconds", 0),
        .placement = df_step_placement(s->config, task),
        .is_deleted = df_doc_is_deleted(task),
        .ref = df_json_at(task, "status.engineRef"),
    };
    if (df_task_is_workflow(task))
        fill_workflow(task, ret);
    else
        fill_runner(s, task, ret);
}

int df_engine_step_check_pod(struct df_spawner *s, const char *engine,
                             const struct df_engine_step *step, const struct df_claim_pod *claimant,
                             struct df_err *err)
{
    struct df_engine *e = NULL;
    const struct df_engine_pod pod = {.name = claimant->name, .uid = claimant->uid};
    if (df_engine_get_for(&s->engines, engine, step, &e, err) < 0)
        return -1;
    return e->ops->runner->check_pod(e, step, &pod, err);
}
