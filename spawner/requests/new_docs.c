/*
 * new_docs.c - in the order of a run's life: a Run from a request, the check against its executor,
 * number and snapshot, the TaskAction of each step. The rows of the model (spawner/model/field.h)
 * say which field is copied where; this file merges the values.
 */
#include "spawner/requests/new_docs.h"

#include "common/base/clock.h"
#include "common/base/limits.h"
#include "spawner/engine/placement/placement.h"
#include "spawner/journal/reporter.h"
#include "spawner/model/instance.h"
#include "spawner/model/labels.h"
#include "spawner/model/overrides.h"
#include "spawner/model/recipe.h"
#include "spawner/model/revision.h"
#include "spawner/model/state_command.h"
#include "spawner/model/tables.h"
#include "spawner/requests/reserved.h"

/* Copies a member if it is present. */
static int copy_member(cJSON *to, const cJSON *from, const char *name, struct df_err *err)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(from, name);
    if (!to)
        return df_fail_oom(err);
    return item ? df_json_set(to, name, cJSON_Duplicate(item, true), err) : 0;
}

static int set_object(cJSON *to, const char *key, const char *name, const char *value,
                      struct df_err *err)
{
    return df_json_set(to, key, df_json_object(DF_STR(name, value)), err);
}

/* ---- cancels ---- */

cJSON *df_new_cancel(const char *by, const char *why)
{
    return df_json_object(DF_STR("reason", why), DF_STR("by", by), DF_TIME("at", df_real_us()));
}

/* ---- executors ---- */

int df_new_executor_status(cJSON *executor, const char *creator, struct df_err *err)
{
    cJSON *status = df_json_object_at(executor, "status");
    char at[DF_TIME_LEN];
    if (!status)
        return df_fail_oom(err);
    if (df_json_put(status, err, DF_STR("state", "provision"), DF_STR("status", "ready"),
                    DF_NUM("runCounter", 0), DF_STR("creator", creator)) < 0)
        return -1;
    return df_revision_set(status, 1, creator, df_time_format(df_real_us(), at), err);
}

/* ---- runs ---- */

/* Copies a member of the request to where its field belongs. */
static int take_member(cJSON *spec, const cJSON *body, const char *name, struct df_err *err)
{
    const struct df_field *field = df_spec_field(DF_KIND_RUN, name);
    if (field && field->by == DF_BY_CLIENT)
        return copy_member(spec, body, name, err);
    if (df_streq(name, DF_RUN_SECRETS))
        return 0;
    return df_fail_reason(err, DF_ERR_USER, "InvalidDocument", "%.64s: is not a known field", name);
}

static int take_members(cJSON *spec, const cJSON *body, struct df_err *err)
{
    const cJSON *m;
    if (!cJSON_IsObject(body))
        return df_fail_reason(err, DF_ERR_USER, "InvalidDocument", "the request must be an object");
    cJSON_ArrayForEach (m, body) {
        if (take_member(spec, body, m->string, err) < 0)
            return -1;
    }
    return 0;
}

int df_new_run(const char *executor, const cJSON *body, const cJSON *marks, const char *actor,
               cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *run = cJSON_CreateObject();
    char name[64];
    if (!run)
        return df_fail_oom(err);
    cJSON *metadata = df_json_object_at(run, "metadata"), *spec = df_json_object_at(run, "spec");
    if (df_add_reserved(run, marks, err) < 0 || take_members(spec, body, err) < 0 ||
        df_model_name(executor, "0", name, err) < 0 ||
        df_json_add_str(metadata, "name", name, err) < 0 ||
        set_object(spec, "executorRef", "name", executor, err) < 0 ||
        df_json_add_str(spec, "requestedBy", actor, err) < 0 ||
        df_model_admit(DF_KIND_RUN, run, NULL, err) < 0)
        return -1;
    *ret = DF_TAKE(run);
    return 0;
}

/* Returns the instance's configuration for this executor; NULL: none. Borrowed. */
static const cJSON *workspace_of(const struct df_config *config, const char *executor)
{
    return cJSON_GetObjectItemCaseSensitive(config->workspaces, executor);
}

/* Merges the environments of workspace and executor; the executor's variables take precedence. */
static int merge_environment(const cJSON *workspace, const cJSON *executor, cJSON **ret,
                             struct df_err *err)
{
    const cJSON *own = df_json_at(executor, "spec.environment"), *entry;
    DF_JSON cJSON *merged = cJSON_CreateArray();
    cJSON_ArrayForEach (entry, df_json_at(workspace, "environment")) {
        if (!df_json_named(own, df_json_str(entry, "name")) &&
            df_json_append(merged, cJSON_Duplicate(entry, true), err) < 0)
            return -1;
    }
    cJSON_ArrayForEach (entry, own) {
        if (df_json_append(merged, cJSON_Duplicate(entry, true), err) < 0)
            return -1;
    }
    if (cJSON_GetArraySize(merged) > DF_LIMIT_ENVIRONMENT)
        return df_fail_reason(err, DF_ERR_USER, "InvalidDocument",
                              "spec.environment: with that of workspaces.%s there are %d "
                              "variables; %d are allowed",
                              workspace->string, cJSON_GetArraySize(merged), DF_LIMIT_ENVIRONMENT);
    return df_check_alloc(*ret = DF_TAKE(merged), err);
}

static int check_environment(const cJSON *workspace, const cJSON *executor, struct df_err *err)
{
    DF_JSON cJSON *merged = NULL;
    return workspace ? merge_environment(workspace, executor, &merged, err) : 0;
}

/* Checks the run's class, else the executor's. A workspace's class was checked with the
 * configuration. */
static int check_class(const cJSON *classes, const cJSON *run, const cJSON *executor,
                       struct df_err *err)
{
    const char *own = df_json_str(run, "spec.class");
    return df_class_check(classes, own ? own : df_json_str(executor, "spec.class"), err);
}

int df_new_run_check(const struct df_config *config, const cJSON *run, const cJSON *executor,
                     struct df_err *err)
{
    const cJSON *workspace = workspace_of(config, df_json_str(executor, "metadata.name"));
    const struct df_placement_levels levels = {.environment =
                                                   df_json_at(executor, "spec.environment"),
                                               .executor = df_json_at(executor, "spec.placement"),
                                               .run = df_json_at(run, "spec.placement")};
    DF_JSON cJSON *merged = NULL;
    if (check_class(config->classes, run, executor, err) < 0 ||
        check_environment(workspace, executor, err) < 0 ||
        df_overrides_check(run, executor, err) < 0 || df_state_command_fits(run, executor, err) < 0)
        return -1;
    return levels.run ? df_placement_resolve(&levels, &merged, err) : 0;
}

int df_new_run_name(cJSON *run, const cJSON *executor, int64_t number, struct df_err *err)
{
    char name[64], suffix[24];
    (void)snprintf(suffix, sizeof(suffix), "%lld", (long long)number);
    if (df_model_name(df_json_str(executor, "metadata.name"), suffix, name, err) < 0)
        return -1;
    return df_json_set_str(df_json_object_at(run, "metadata"), "name", name, err);
}

/* An executor without a tool keeps the one it was last applied with. */
static int keep_tool(cJSON *snapshot, const cJSON *executor, struct df_err *err)
{
    const char *name = df_json_str(executor, "status.tool.name");
    if (!name || df_json_at(snapshot, "runtime.name"))
        return 0;
    return df_json_set_str(df_json_object_at(snapshot, "runtime"), "name", name, err);
}

static int copy_spec(cJSON *snapshot, const cJSON *spec, struct df_err *err)
{
    for (const struct df_field *f = df_executor_spec; f->name; f++)
        if (!(f->flags & DF_LIVE) && copy_member(snapshot, spec, f->name, err) < 0)
            return -1;
    return 0;
}

static int take_snapshot(cJSON *snapshot, const cJSON *workspace, const cJSON *run,
                         const cJSON *executor, struct df_err *err)
{
    cJSON *environment = NULL;
    if (copy_member(snapshot, workspace, "class", err) < 0 ||
        copy_spec(snapshot, df_json_at(executor, "spec"), err) < 0 ||
        df_storage_fill(snapshot, df_json_str(executor, "metadata.name"), err) < 0 ||
        df_overrides_merge(snapshot, run, err) < 0 || keep_tool(snapshot, executor, err) < 0)
        return -1;
    if (!df_json_at(workspace, "environment"))
        return 0;
    return merge_environment(workspace, executor, &environment, err) < 0
               ? -1
               : df_json_set(snapshot, "environment", environment, err);
}

int df_new_run_number(const struct df_config *config, cJSON *run, const cJSON *executor,
                      int64_t number, struct df_err *err)
{
    const char *owner = df_json_str(executor, "metadata.name");
    cJSON *spec = df_json_object_at(run, "spec");
    cJSON *status = df_json_object_at(run, "status");
    cJSON *ref = df_json_object_at(spec, "executorRef");
    if (!status || !ref)
        return df_fail_oom(err);
    /* One that somebody wrote into a resource must not fill gaps of ours. */
    cJSON_DeleteItemFromObjectCaseSensitive(spec, "snapshot");
    if (df_json_set_str(ref, "uid", df_json_str(executor, "metadata.uid"), err) < 0 ||
        df_json_put(spec, err, DF_NUM("number", number),
                    DF_NUM("executorRevision", df_json_int(executor, "status.revision", 1))) < 0 ||
        df_label_set(run, DF_LABEL_EXECUTOR, owner, err) < 0 ||
        df_label_set(run, DF_LABEL_QUEUE, df_run_takes_turn(run) ? owner : DF_QUEUE_NONE, err) <
            0 ||
        df_label_set(run, DF_LABEL_UNFINISHED, "true", err) < 0 ||
        df_json_set_str(status, "phase", "Pending", err) < 0)
        return -1;
    return take_snapshot(df_json_object_at(spec, "snapshot"), workspace_of(config, owner), run,
                         executor, err);
}

/* ---- steps ---- */

int df_new_task_name(const cJSON *run, const char *step, char ret[64], struct df_err *err)
{
    return df_model_name(df_json_str(run, "metadata.name"), step, ret, err);
}

static int append_items(cJSON *spec, const char *key, const cJSON *of_run, struct df_err *err)
{
    const cJSON *item;
    cJSON_ArrayForEach (item, of_run) {
        if (df_json_append(df_json_array_at(spec, key), cJSON_Duplicate(item, true), err) < 0)
            return -1;
    }
    return 0;
}

static int set_members(cJSON *spec, const char *key, const cJSON *of_run, struct df_err *err)
{
    const cJSON *item;
    cJSON_ArrayForEach (item, of_run) {
        if (df_json_set(df_json_object_at(spec, key), item->string, cJSON_Duplicate(item, true),
                        err) < 0)
            return -1;
    }
    return 0;
}

/* Merges one field: appends the run's items to the executor's, puts its members over theirs, or
 * replaces any other value. */
static int merge_field(cJSON *spec, const struct df_field *field, const cJSON *of_run,
                       struct df_err *err)
{
    if (field->type == DF_TYPE_LIST)
        return append_items(spec, field->name, of_run, err);
    if (field->type == DF_TYPE_OBJECT)
        return set_members(spec, field->name, of_run, err);
    return df_json_set(spec, field->name, cJSON_Duplicate(of_run, true), err);
}

/* Merges only run and executor: the defaults of the service are merged when the pod is built. */
static int merge_placement(cJSON *spec, const cJSON *run, struct df_err *err)
{
    const struct df_placement_levels levels = {.executor = df_json_at(spec, "placement"),
                                               .run = df_json_at(run, "spec.placement")};
    cJSON *merged = NULL;
    if (!levels.run)
        return 0;
    if (df_placement_resolve(&levels, &merged, err) < 0)
        return -1;
    return df_json_set(spec, "placement", merged, err);
}

/* Sets the inputs of a step: the run's snapshot of the executor, with the run's own values over it.
 */
static int set_inputs(cJSON *spec, const cJSON *run, struct df_err *err)
{
    const cJSON *snapshot = df_json_at(run, "spec.snapshot"), *said = df_json_at(run, "spec");
    for (const struct df_field *f = df_task_spec; f->name; f++)
        if (copy_member(spec, snapshot, f->name, err) < 0)
            return -1;
    for (const struct df_field *f = df_run_spec; f->name; f++) {
        const cJSON *of_run = cJSON_GetObjectItemCaseSensitive(said, f->name);
        if (of_run && (f->flags & DF_TO_STEP) && merge_field(spec, f, of_run, err) < 0)
            return -1;
    }
    return merge_placement(spec, run, err);
}

/* Sets the executor's timeout in whole seconds, at least one; without it the configured one. */
static int set_seconds(cJSON *spec, const char *key, const cJSON *timeouts, const char *which,
                       int64_t configured_s, struct df_err *err)
{
    const char *text = df_json_str(timeouts, which);
    int64_t us = configured_s * 1000000;
    if (text && df_duration_parse(text, &us, err) < 0)
        return df_err_wrap(err, "timeouts.%s", which);
    int64_t seconds = (us + 999999) / 1000000;
    return df_json_set(spec, key, cJSON_CreateNumber((double)(seconds ? seconds : 1)), err);
}

static int set_timeouts(cJSON *spec, const cJSON *run, bool writes, const struct df_config *config,
                        struct df_err *err)
{
    const cJSON *t = df_json_at(run, "spec.snapshot.timeouts");
    if (set_seconds(spec, "timeoutSeconds", t, writes ? "apply" : "plan",
                    writes ? config->timeout_apply_s : config->timeout_plan_s, err) < 0 ||
        set_seconds(spec, "graceSeconds", t, "grace", config->timeout_grace_s, err) < 0)
        return -1;
    return set_seconds(spec, "pendingSeconds", t, "pending", config->timeout_pending_s, err);
}

static int set_references(cJSON *spec, const cJSON *run, const char *plan_of, struct df_err *err)
{
    const cJSON *owner = df_json_at(run, "spec.executorRef");
    char plan[64];
    DF_FREE char *target = df_strf("executor/%s", df_json_str(owner, "name"));
    if (df_check_alloc(target, err) < 0 ||
        set_object(spec, "runRef", "name", df_json_str(run, "metadata.name"), err) < 0 ||
        df_json_set_str(spec, "targetResource", target, err) < 0)
        return -1;
    if (!plan_of)
        return 0;
    return df_new_task_name(run, plan_of, plan, err) < 0
               ? -1
               : df_json_set_str(spec, "planFrom", plan, err);
}

static int fill_spec(cJSON *spec, const cJSON *run, const char *action,
                     const struct df_config *config, struct df_err *err)
{
    const struct df_recipe_step *step = df_recipe_step_for(action);
    if (set_inputs(spec, run, err) < 0 ||
        df_json_put(spec, err, DF_STR("action", action), DF_STR("engine", config->engine)) < 0 ||
        set_references(spec, run, step->plan_of, err) < 0 ||
        (!df_run_takes_turn(run) && df_json_set(spec, "dryRun", cJSON_CreateTrue(), err) < 0))
        return -1;
    return set_timeouts(spec, run, step->writes, config, err);
}

int df_new_task(const cJSON *run, const char *step, const char *action,
                const struct df_config *config, int64_t now_us, cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *task = cJSON_CreateObject();
    char name[64];
    if (!task)
        return df_fail_oom(err);
    cJSON *metadata = df_json_object_at(task, "metadata"), *spec = df_json_object_at(task, "spec");
    if (df_new_task_name(run, step, name, err) < 0 ||
        df_json_put(task, err, DF_STR("apiVersion", DF_API_VERSION),
                    DF_STR("kind", df_kind_name(DF_KIND_TASK_ACTION))) < 0 ||
        df_json_add_str(metadata, "name", name, err) < 0 ||
        df_json_add_str(metadata, "namespace", df_json_str(run, "metadata.namespace"), err) < 0 ||
        df_label_set(task, DF_LABEL_RUN, df_json_str(run, "metadata.name"), err) < 0 ||
        df_label_set(task, DF_LABEL_EXECUTOR, df_json_str(run, "spec.executorRef.name"), err) < 0 ||
        df_label_set(task, DF_LABEL_UNFINISHED, "true", err) < 0 ||
        df_reporter_expect(config, task, err) < 0 ||
        fill_spec(spec, run, action, config, err) < 0 ||
        df_task_set_conditions(task, DF_OUTCOME_NONE, "Queued", NULL, now_us, err) < 0 ||
        df_task_add_time(task, "queued", now_us, err) < 0)
        return -1;
    *ret = DF_TAKE(task);
    return 0;
}
