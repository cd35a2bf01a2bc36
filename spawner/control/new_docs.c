#include "spawner/control/new_docs.h"

#include "common/base/clock.h"
#include "common/base/limits.h"
#include "spawner/control/loop.h"
#include "spawner/engine/placement.h"
#include "spawner/model/instance.h"
#include "spawner/news/reporter.h"

/* Copies the named members that are there. */
static int copy_members(cJSON *to, const cJSON *from, const char *const *names, struct df_err *err)
{
    if (!to)
        return df_fail_oom(err);
    for (; *names; names++) {
        const cJSON *item = cJSON_GetObjectItemCaseSensitive(from, *names);
        if (item && df_json_set(to, *names, cJSON_Duplicate(item, true), err) < 0)
            return -1;
    }
    return 0;
}

static int set_object(cJSON *to, const char *key, const char *name, const char *value,
                      struct df_err *err)
{
    cJSON *object = cJSON_CreateObject();
    if (df_json_set(to, key, object, err) < 0)
        return -1;
    return df_json_add_str(object, name, value, err);
}

/* ---- executors ---- */

int df_new_executor_status(cJSON *executor, const char *creator, struct df_err *err)
{
    cJSON *status = df_json_object_at(executor, "status");
    if (!status)
        return df_fail_oom(err);
    if (df_json_add_str(status, "state", "provision", err) < 0 ||
        df_json_add_str(status, "status", "ready", err) < 0 ||
        df_json_add_num(status, "revision", 1, err) < 0 ||
        df_json_add_num(status, "runCounter", 0, err) < 0)
        return -1;
    return df_json_add_str(status, "creator", creator, err);
}

/* ---- runs ---- */

static const char *const of_spec[] = {"action", "variables", "arguments",   "placement",
                                      "class",  "priority",  "autoApprove", NULL};
static const char *const of_metadata[] = {"labels", "annotations", NULL};

static bool is_one_of(const char *name, const char *const *names)
{
    while (*names && strcmp(*names, name) != 0)
        names++;
    return *names != NULL;
}

static int check_members(const cJSON *body, struct df_err *err)
{
    if (!cJSON_IsObject(body))
        return df_fail_reason(err, DF_ERR_USER, "InvalidDocument", "the request must be an object");
    for (const cJSON *m = body->child; m; m = m->next) {
        if (!is_one_of(m->string, of_spec) && !is_one_of(m->string, of_metadata))
            return df_fail_reason(err, DF_ERR_USER, "InvalidDocument",
                                  "%.64s: is no member of a run's request", m->string);
    }
    return 0;
}

int df_new_run(const char *executor, const cJSON *body, const char *actor, cJSON **ret,
               struct df_err *err)
{
    DF_JSON cJSON *run = cJSON_CreateObject();
    char name[64];
    if (!run)
        return df_fail_oom(err);
    if (check_members(body, err) < 0 || df_model_name(executor, "0", name, err) < 0)
        return -1;
    cJSON *metadata = df_json_object_at(run, "metadata"), *spec = df_json_object_at(run, "spec");
    if (copy_members(metadata, body, of_metadata, err) < 0 ||
        copy_members(spec, body, of_spec, err) < 0 ||
        df_json_add_str(metadata, "name", name, err) < 0 ||
        set_object(spec, "executorRef", "name", executor, err) < 0 ||
        df_json_add_str(spec, "requestedBy", actor, err) < 0 ||
        df_model_admit(DF_KIND_RUN, run, NULL, err) < 0)
        return -1;
    *ret = DF_TAKE(run);
    return 0;
}

/* Only what the two say: the service's defaults are laid below when the pod is made. */
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

/* What the instance has for this executor; NULL: nothing. Borrowed. */
static const cJSON *workspace_of(const struct df_config *config, const char *executor)
{
    return cJSON_GetObjectItemCaseSensitive(config->workspaces, executor);
}

static bool has_variable(const cJSON *environment, const char *name)
{
    const cJSON *entry;
    cJSON_ArrayForEach (entry, environment) {
        if (df_streq(df_json_str(entry, "name"), name))
            return true;
    }
    return false;
}

/* The workspace's variables that the executor does not set itself, and the executor's. */
static int merge_environment(const cJSON *workspace, const cJSON *executor, cJSON **ret,
                             struct df_err *err)
{
    const cJSON *own = df_json_at(executor, "spec.environment"), *entry;
    DF_JSON cJSON *merged = cJSON_CreateArray();
    cJSON_ArrayForEach (entry, df_json_at(workspace, "environment")) {
        if (!has_variable(own, df_json_str(entry, "name")) &&
            df_json_append(merged, cJSON_Duplicate(entry, true), err) < 0)
            return -1;
    }
    cJSON_ArrayForEach (entry, own) {
        if (df_json_append(merged, cJSON_Duplicate(entry, true), err) < 0)
            return -1;
    }
    if (!merged)
        return df_fail_oom(err);
    if (cJSON_GetArraySize(merged) > DF_LIMIT_ENVIRONMENT)
        return df_fail_reason(err, DF_ERR_USER, "InvalidDocument",
                              "spec.environment: with that of workspaces.%s there are %d "
                              "variables; %d are allowed",
                              workspace->string, cJSON_GetArraySize(merged), DF_LIMIT_ENVIRONMENT);
    *ret = DF_TAKE(merged);
    return 0;
}

static int check_environment(const cJSON *workspace, const cJSON *executor, struct df_err *err)
{
    DF_JSON cJSON *merged = NULL;
    return workspace ? merge_environment(workspace, executor, &merged, err) : 0;
}

/* The run's class, else the executor's; that of a workspace was checked with the configuration. */
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
        check_environment(workspace, executor, err) < 0)
        return -1;
    return levels.run ? df_placement_resolve(&levels, &merged, err) : 0;
}

static const char *const of_snapshot[] = {"runtime",     "source",    "variables",    "arguments",
                                          "environment", "secrets",   "integrations", "storage",
                                          "timeouts",    "placement", "class",        NULL};

int df_new_run_name(cJSON *run, const cJSON *executor, int64_t number, struct df_err *err)
{
    char name[64], suffix[24];
    (void)snprintf(suffix, sizeof(suffix), "%lld", (long long)number);
    if (df_model_name(df_json_str(executor, "metadata.name"), suffix, name, err) < 0)
        return -1;
    return df_json_set_str(df_json_object_at(run, "metadata"), "name", name, err);
}

static int take_snapshot(cJSON *snapshot, const cJSON *workspace, const cJSON *executor,
                         struct df_err *err)
{
    static const char *const of_workspace[] = {"class", NULL};
    cJSON *environment = NULL;
    if (copy_members(snapshot, workspace, of_workspace, err) < 0 ||
        copy_members(snapshot, df_json_at(executor, "spec"), of_snapshot, err) < 0)
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
    if (df_json_set_str(ref, "uid", df_json_str(executor, "metadata.uid"), err) < 0 ||
        df_json_set(spec, "number", cJSON_CreateNumber((double)number), err) < 0 ||
        df_label_set(run, DF_LABEL_EXECUTOR, owner, err) < 0 ||
        df_label_set(run, DF_LABEL_QUEUE, owner, err) < 0 ||
        df_label_set(run, DF_LABEL_UNFINISHED, "true", err) < 0 ||
        df_json_set_str(status, "phase", "Pending", err) < 0)
        return -1;
    return take_snapshot(df_json_object_at(spec, "snapshot"), workspace_of(config, owner), executor,
                         err);
}

/* ---- steps ---- */

int df_new_task_name(const cJSON *run, const char *step, char ret[64], struct df_err *err)
{
    return df_model_name(df_json_str(run, "metadata.name"), step, ret, err);
}

/* The executor's variables with the run's over them, its arguments with the run's behind them. */
static int merge_inputs(cJSON *spec, const cJSON *run, struct df_err *err)
{
    const cJSON *item;
    cJSON_ArrayForEach (item, df_json_at(run, "spec.variables")) {
        cJSON *variables = df_json_object_at(spec, "variables");
        if (!variables)
            return df_fail_oom(err);
        if (df_json_set(variables, item->string, cJSON_Duplicate(item, true), err) < 0)
            return -1;
    }
    cJSON_ArrayForEach (item, df_json_at(run, "spec.arguments")) {
        cJSON *arguments = df_json_array_at(spec, "arguments");
        if (!arguments)
            return df_fail_oom(err);
        if (df_json_append(arguments, cJSON_Duplicate(item, true), err) < 0)
            return -1;
    }
    return merge_placement(spec, run, err);
}

/* The executor's own timeout in whole seconds, at least one; the configured one without it. */
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

static int set_timeouts(cJSON *spec, const cJSON *run, bool apply, const struct df_config *config,
                        struct df_err *err)
{
    const cJSON *t = df_json_at(run, "spec.snapshot.timeouts");
    if (set_seconds(spec, "timeoutSeconds", t, apply ? "apply" : "plan",
                    apply ? config->timeout_apply_s : config->timeout_plan_s, err) < 0 ||
        set_seconds(spec, "graceSeconds", t, "grace", config->timeout_grace_s, err) < 0)
        return -1;
    return set_seconds(spec, "pendingSeconds", t, "pending", config->timeout_pending_s, err);
}

static int set_references(cJSON *spec, const cJSON *run, bool apply, struct df_err *err)
{
    const cJSON *owner = df_json_at(run, "spec.executorRef");
    char plan[64];
    DF_FREE char *target = df_strf("executor/%s", df_json_str(owner, "name"));
    if (!target)
        return df_fail_oom(err);
    if (df_json_set(spec, "executorRef", cJSON_Duplicate(owner, true), err) < 0 ||
        set_object(spec, "runRef", "name", df_json_str(run, "metadata.name"), err) < 0 ||
        df_json_set_str(spec, "targetResource", target, err) < 0 ||
        df_new_task_name(run, "plan", plan, err) < 0)
        return -1;
    return apply ? df_json_set_str(spec, "planFrom", plan, err) : 0;
}

static int fill_spec(cJSON *spec, const cJSON *run, const char *action,
                     const struct df_config *config, struct df_err *err)
{
    static const char *const members[] = {
        "runtime",      "source",  "variables", "arguments", "environment", "secrets",
        "integrations", "storage", "placement", "class",     NULL};
    static const char *const of_run[] = {"class", "priority", NULL};
    bool apply = df_streq(action, "apply");
    if (copy_members(spec, df_json_at(run, "spec.snapshot"), members, err) < 0 ||
        copy_members(spec, df_json_at(run, "spec"), of_run, err) < 0 ||
        df_json_set_str(spec, "action", action, err) < 0 ||
        df_json_set_str(spec, "engine", config->engine, err) < 0 ||
        set_references(spec, run, apply, err) < 0 || merge_inputs(spec, run, err) < 0)
        return -1;
    return set_timeouts(spec, run, apply, config, err);
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
        df_json_add_str(task, "apiVersion", DF_API_VERSION, err) < 0 ||
        df_json_add_str(task, "kind", df_kind_name(DF_KIND_TASK_ACTION), err) < 0 ||
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
