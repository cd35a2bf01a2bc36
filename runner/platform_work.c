/*
 * The row of a step of a platform: dayfly-platform (runner/platform) is its tool, the folder of the
 * source its configuration. A plan is a dry run, and its report is what an apply gets; the apply
 * deploys the commit that the plan saw. Read plan() and apply() at the end.
 */
#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/redact/redact.h"
#include "runner/outputs.h"
#include "runner/plan_bundle.h"
#include "runner/prepare.h"
#include "runner/torn.h"
#include "runner/work.h"

enum { ENDED_LATE = 4 }; /* exit code, docs/platform.md */

/* EXPECTED_COMMIT of an apply whose plan could not read the repository: no commit is called so. */
#define UNKNOWN_COMMIT "unknown to the plan"

/* One call of the program. */
struct call {
    const char *action; /* "deploy", "teardown" */
    cJSON *plan;        /* the report of its plan; NULL: this is the plan, a dry run; owned */
    cJSON *report;      /* owned */
    int code;           /* exit code; 0 as well before it ran */
};
#define CALL DF_CLEANUP(call_free) struct call

static void call_free(struct call *call)
{
    cJSON_Delete(call->plan);
    cJSON_Delete(call->report);
}

/* ---- files and variables ---- */

/* secrets/<name>/<key> for each file <name>.<key> of the step: how a pod has mounted Secrets. *ret:
 * the directory; NULL: the step has no files. The caller frees. */
static int place_secrets(const struct df_context *c, char **ret, struct df_err *err)
{
    DF_FREE char *root = df_fs_join(c->dirs->secret, "secrets");
    const cJSON *file;
    cJSON_ArrayForEach (file, df_json_at(c->doc, "files")) {
        const char *dot = strchr(file->string, '.'), *text = cJSON_GetStringValue(file);
        if (!dot || !text)
            continue;
        DF_FREE char *directory = df_strf("%s/%.*s", root, (int)(dot - file->string), file->string);
        DF_FREE char *path = df_fs_join(directory, dot + 1);
        if (!root || !directory || !path)
            return df_fail_oom(err);
        if (df_fs_mkdirs(directory, 0700, err) < 0 ||
            df_fs_write(path, text, strlen(text), 0600, err) < 0)
            return -1;
    }
    *ret = df_fs_exists(root) ? DF_TAKE(root) : NULL;
    return 0;
}

/* A step inherits nothing from its pod; the program finds the pod's own API server by these. */
static void pass_cluster(struct df_strs *env)
{
    static const char *const names[] = {"KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(names); i++) {
        const char *value = getenv(names[i]);
        if (value && !df_strs_get_env(env, names[i]))
            (void)df_strs_set_env(env, names[i], value);
    }
}

/* Whoever approved the plan of a teardown has confirmed what that plan names. */
static int set_variables(struct df_context *c, const struct call *call, const char *report,
                         struct df_err *err)
{
    struct df_strs *env = &c->workspace.env;
    const cJSON *summary = df_json_at(call->plan, "summary");
    const char *commit = df_json_str(summary, "commit");
    DF_FREE char *confirmation =
        df_strf("destroy %s/%s", df_json_str(summary, "name"), df_json_str(summary, "environment"));
    if (!confirmation)
        return df_fail_oom(err);
    pass_cluster(env);
    if (!df_strs_get_env(env, "LOG_FORMAT"))
        (void)df_strs_set_env(env, "LOG_FORMAT", "text");
    (void)df_strs_set_env(env, "REPORT_PATH", report);
    (void)df_strs_set_env(env, "DRY_RUN", call->plan ? "false" : "true");
    (void)df_strs_set_env(env, "EXPECTED_COMMIT",
                          commit       ? commit
                          : call->plan ? UNKNOWN_COMMIT
                                       : "");
    (void)df_strs_set_env(env, "TEARDOWN_CONFIRMATION", call->plan ? confirmation : "");
    return df_strs_check(env, err);
}

/* ---- the program ---- */

static int read_report(const char *path, cJSON **ret, struct df_err *err)
{
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_LIMIT_PLATFORM_REPORT);
    if (df_fs_read_plain(path, &text, err) < 0)
        return df_err_wrap(err, "the report of dayfly-platform");
    return df_json_parse(df_buf_str(&text), text.len, ret, err);
}

static int run_program(struct df_context *c, struct call *call, struct df_err *err)
{
    DF_FREE char *report = df_fs_join(c->dirs->secret, "report.json");
    DF_FREE char *secrets = NULL;
    struct df_err why = {0};
    DF_STRS struct df_strs args = {0};
    struct df_command_end end;
    if (df_check_alloc(report, err) < 0 || place_secrets(c, &secrets, err) < 0 ||
        set_variables(c, call, report, err) < 0)
        return -1;
    (void)df_strs_add(&args, call->action);
    (void)df_strs_add(&args, "--config");
    (void)df_strs_add(&args, c->source.module_dir);
    if (secrets) {
        (void)df_strs_add(&args, "--secrets");
        (void)df_strs_add(&args, secrets);
    }
    if (df_strs_check(&args, err) < 0 || df_context_mark(c, "initialized", df_real_us(), err) < 0 ||
        df_command_run(&c->commander, &args, DF_EVENTS_NONE, NULL, &end, err) < 0)
        return -1;
    call->code = end.code;
    if (df_context_mark(c, "executed", df_real_us(), err) < 0)
        return -1;
    if (read_report(report, &call->report, &why) < 0)
        return df_fail_reason(err, DF_ERR_USER, call->plan ? "ApplyFailed" : "PlanFailed",
                              "dayfly-platform %s ended with exit code %d and left no report: %s",
                              call->action, end.code, why.message);
    return 0;
}

/* ---- its end ---- */

/* The report as an output of the executor: `dayfly outputs EXECUTOR report`. */
static void keep_report(struct df_context *c, const struct call *call)
{
    DF_FREE char *path = df_fs_join(c->dirs->secret, "outputs.json");
    struct df_err why = {0};
    DF_JSON cJSON *output = df_json_object(DF_BOOL("sensitive", false), DF_STR("type", "dynamic"),
                                           DF_ITEM("value", cJSON_Duplicate(call->report, true)));
    DF_JSON cJSON *outputs = df_json_object(DF_ITEM("report", DF_TAKE(output)));
    if (df_json_save(path, outputs, &why) < 0 || df_outputs_put(c, path, &why) < 0)
        (void)df_output_note(c->output, "dayfly: the report is not kept with the run: %s",
                             why.message);
}

static long long changed(const struct call *call)
{
    long long n = 0;
    const cJSON *component;
    cJSON_ArrayForEach (component, df_json_at(call->report, "components"))
        n += df_json_bool(component, "changed", false);
    return n;
}

static int add_summary(struct df_context *c, const struct call *call, struct df_err *err)
{
    struct df_changes changes = {0};
    bool destroys = df_streq(call->action, "teardown");
    changes.of[destroys ? DF_CHANGES_DESTROY : DF_CHANGES_CHANGE] = changed(call);
    return df_changes_write(&changes, df_json_object_at(c->result, "planSummary"), err);
}

/* The first failure of the report; the rest is in the log. What the cluster says of an object may
 * have a secret of the step in it. */
static int fail(struct df_context *c, const struct call *call, const char *reason,
                struct df_err *err)
{
    const cJSON *first = cJSON_GetArrayItem(df_json_at(call->report, "failures"), 0);
    const char *component = df_json_str(first, "component"), *why = df_json_str(first, "message");
    DF_BUF struct df_buf clean = DF_BUF_INIT(DF_LIMIT_PLATFORM_REPORT);
    DF_FREE char *text = df_strf("%s%s%s", component ? component : "", component ? ": " : "",
                                 why ? why : df_json_str(call->report, "summary.status"));
    int next_ms;
    if (df_streq(df_json_str(call->report, "summary.cause"), "CommitChanged"))
        reason = "PlanStale";
    else if (call->code == ENDED_LATE)
        reason = "TimedOut";
    if (df_check_alloc(text, err) < 0 || df_output_renew(c->output, &next_ms, err) < 0 ||
        df_redact_string(df_masks_set(c->masks), text, &clean, err) < 0)
        return -1;
    return df_fail_reason(err, DF_ERR_USER, reason, "dayfly-platform %s: %s", call->action,
                          df_buf_str(&clean));
}

static bool writes(const struct call *call)
{
    return df_json_int(call->report, "metrics.writes", 0) > 0;
}

/* ---- plan ---- */

static int store(struct df_context *c, const struct call *call, struct df_err *err)
{
    DF_FREE char *path = df_fs_join(c->dirs->secret, "plan");
    DF_JSON cJSON *header = cJSON_CreateObject();
    if (!path || !header)
        return df_fail_oom(err);
    if (df_json_save(path, call->report, err) < 0)
        return -1;
    const struct df_bundle_part parts[] = {{.name = "plan", .path = path}};
    return df_plan_bundle_store(c, header, parts, DF_ARRAY_SIZE(parts), err);
}

/* A deploy that has nothing to write waits for nothing, as one would that failed before. */
static void note_health(struct df_context *c, const struct call *call)
{
    const cJSON *component;
    cJSON_ArrayForEach (component, df_json_at(call->report, "components")) {
        const char *health = df_json_str(component, "health");
        if (!df_str_empty(health) && !df_streq(health, "Healthy"))
            (void)df_output_note(c->output,
                                 "dayfly: nothing is to be written, but %s is %s: "
                                 "`dayfly run EXECUTOR --action validate` says why",
                                 df_json_text(component, "name"), health);
    }
}

static int plan(struct df_context *c, struct df_err *err)
{
    CALL call = {.action = c->destroys ? "teardown" : "deploy"};
    if (run_program(c, &call, err) < 0 || add_summary(c, &call, err) < 0)
        return -1;
    if (df_is_dry_run(c))
        keep_report(c, &call);
    if (call.code != 0)
        return fail(c, &call, "PlanFailed", err);
    /* What a teardown finds besides the components, its dry run does not look for: one that was
     * killed has left namespaces, credentials, Argo CD. */
    bool goes_on = writes(&call) || c->destroys;
    if (df_json_add_bool(c->result, "hasChanges", goes_on, err) < 0)
        return -1;
    if (!goes_on) {
        note_health(c, &call);
        df_context_set_outcome(c, "NoChanges", "no changes");
        return 0;
    }
    df_context_set_outcome(c, "Planned", "%lld components to %s", changed(&call),
                           c->destroys ? "remove, and what is left of the platform" : "change");
    return store(c, &call, err);
}

/* ---- apply ---- */

/* The report of the plan that was approved. */
static int fetch_plan(struct df_context *c, struct call *call, struct df_err *err)
{
    DF_FREE char *path = df_fs_join(c->dirs->secret, "plan");
    DF_CLOSE int fd = -1;
    DF_JSON cJSON *header = NULL;
    if (df_check_alloc(path, err) < 0 || df_plan_bundle_fetch(c, &fd, &header, err) < 0)
        return -1;
    if (df_bundle_extract(fd, "plan", path, err) < 0)
        return df_err_reason(err, "PlanCorrupt");
    bool destroys = df_streq(df_json_str(header, "action"), DF_ACTION_PLAN_DESTROY);
    call->action = destroys ? "teardown" : "deploy";
    return read_report(path, &call->plan, err);
}

static int apply(struct df_context *c, struct df_err *err)
{
    CALL call = {0};
    if (fetch_plan(c, &call, err) < 0)
        return -1;
    if (df_stopped(df_stop_flag(c->stop)))
        return df_fail(err, DF_ERR_RETRY, "before %s was begun", call.action);
    int ran = run_program(c, &call, err);
    c->partial = call.code != 0 && (!call.report || writes(&call));
    if (ran < 0 || add_summary(c, &call, err) < 0)
        return -1;
    keep_report(c, &call);
    if (df_json_add_bool(c->result, "hasChanges", writes(&call), err) < 0)
        return -1;
    if (call.code != 0)
        return fail(c, &call, "ApplyFailed", err);
    df_context_set_outcome(c, df_streq(call.action, "deploy") ? "Applied" : "Destroyed",
                           "%lld components changed", changed(&call));
    return df_context_mark(c, "stored", df_real_us(), err);
}

static int validate(struct df_context *c, struct df_err *err)
{
    CALL call = {.action = "validate"};
    if (run_program(c, &call, err) < 0)
        return -1;
    keep_report(c, &call);
    if (call.code != 0)
        return fail(c, &call, "ValidationFailed", err);
    df_context_set_outcome(c, "Validated", "%d components are healthy",
                           cJSON_GetArraySize(df_json_at(call.report, "components")));
    return 0;
}

/* ---- the row ---- */

static const struct df_step_recipe recipes[] = {
    {.action = "plan", .stages = {df_prepare_source, df_prepare_tool, df_prepare_workspace, plan}},
    {.action = DF_ACTION_PLAN_DESTROY,
     .destroys = true,
     .stages = {df_prepare_source, df_prepare_tool, df_prepare_workspace, plan}},
    {.action = "apply",
     .stages = {df_prepare_source, df_prepare_tool, df_prepare_workspace, apply}},
    {.action = "validate",
     .stages = {df_prepare_source, df_prepare_tool, df_prepare_workspace, validate}},
    {0}};

const struct df_work df_platform_work = {.runtime = "platform",
                                         .recipes = recipes,
                                         .memory_limit = "placement.resources.limits.memory",
                                         .logs_source = true};
