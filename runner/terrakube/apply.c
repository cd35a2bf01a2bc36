/*
 * Both stages change resources: run_change() at the end runs the command, then keeps the state,
 * whatever the command came to.
 */
#include "runner/terrakube/apply.h"

#include <strings.h>

#include "common/base/fs.h"
#include "runner/args.h"
#include "runner/terrakube/banner.h"
#include "runner/terrakube/commands.h"
#include "runner/terrakube/flow.h"
#include "runner/terrakube/keep.h"
#include "runner/touched.h"

/* What differs between the two. */
struct change {
    const char *command, *title; /* "apply", "APPLY" */
    const char *reason, *failed; /* reason words */
    bool has_plan;               /* the plan file is in the module's directory */
};

/* ---- policies ---- */

/* Azure's library writes the slashes of a name as %2F. */
static void decode_slashes(char *place)
{
    char *to = place;
    for (const char *from = place; *from; to++) {
        bool escaped = strncasecmp(from, "%2F", 3) == 0;
        *to = escaped ? '/' : *from;
        from += escaped ? 3 : 1;
    }
    *to = '\0';
}

/* Every form of a place ends with the job, the step and a name (storage.h): .../{j}/{s}/name, or
 * .../jobId/{j}/step/{s}/name. */
static bool is_place_in_job(const char *place, const char *job)
{
    DF_FREE char *before_step = df_strf("/%s/", job);
    DF_FREE char *plain = strdup(place);
    if (!before_step || !plain)
        return false;
    decode_slashes(plain);
    for (const char *at = plain; (at = strstr(at, before_step)); at++) {
        const char *rest = at + strlen(before_step);
        rest += df_starts_with(rest, "step/") ? strlen("step/") : 0;
        const char *name = strchr(rest, '/');
        if (name && !strchr(name + 1, '/'))
            return true;
    }
    return false;
}

int df_terrakube_admit(struct df_context *c, struct df_err *err)
{
    const struct df_terrakube *t = df_terrakube_of(c);
    if (!t->payload->policies)
        return 0;
    if (t->payload->type == DF_TERRAKUBE_DESTROY)
        return df_fail_reason(err, DF_ERR_DENIED, "PolicyFailed",
                              "the workspace has policies, and terraformDestroy makes no plan to "
                              "evaluate them for: plan first (terraformPlanDestroy), and then "
                              "apply that plan (terraformApply)");
    /* A plan of another job may be older than the policies. */
    return !df_str_empty(t->job.plan) && is_place_in_job(t->job.plan, t->payload->job)
               ? 0
               : df_fail_reason(err, DF_ERR_DENIED, "PolicyFailed",
                                "the job has policies, but no plan for which they were evaluated: "
                                "plan first (terraformPlan)");
}

/* ---- the plan ---- */

static int fetch_plan(struct df_context *c, bool *ret_has, struct df_err *err)
{
    const struct df_terrakube *t = df_terrakube_of(c);
    DF_FREE char *path = df_fs_join(c->source.module_dir, DF_TERRAKUBE_PLAN_FILE);
    if (df_fs_remove_tree(path, err) < 0) /* one of the source is not the job's */
        return -1;
    *ret_has = !df_str_empty(t->job.plan);
    if (!*ret_has)
        return 0;
    return df_terrakube_storage_get_plan(t->storage, t->payload, t->job.plan, path, err) < 0
               ? df_err_wrap(err, "the plan of this job")
               : 0;
}

/* ---- the command ---- */

static int run_command(struct df_context *c, const struct change *change, int *ret_code,
                       struct df_err *err)
{
    DF_STRS struct df_strs args = {0};
    (void)df_strs_add(&args, change->command);
    (void)df_strs_add(&args, "-input=false");
    df_args_add_colour(c, &args);
    (void)df_strs_add(&args, "-auto-approve");
    enum df_command_events events = df_args_add_events(c, &args);
    if (change->has_plan)
        (void)df_strs_add(&args, DF_TERRAKUBE_PLAN_FILE);
    return df_terrakube_command_run(c, &args, events, ret_code, err);
}

/* After the resources changed, the step only fails if the tool or a script did. */
static int finish_change(struct df_context *c, const struct change *change, int code,
                         struct df_err *err)
{
    struct df_terrakube *t = df_terrakube_of(c);
    bool stopped = df_stop_cause(c->stop) != DF_STOP_NONE;
    if (code != 0 && (stopped || !t->payload->ignore_error))
        return df_terrakube_command_fail(c, change->command, change->failed, err);
    df_context_set_outcome(c, change->reason, "%s ended with %d", change->command, code);
    return df_terrakube_scripts_run(c, &t->scripts, t->payload->commands, DF_TERRAKUBE_AFTER, err);
}

static int run_change(struct df_context *c, const struct change *change, struct df_err *err)
{
    int code = -1;
    if (df_stopped(df_stop_flag(c->stop)))
        return df_fail(err, DF_ERR_RETRY, "before `%s`", change->command);
    if (df_terrakube_banner_run(c, change->title, err) < 0 ||
        df_terrakube_remove_errored(c, err) < 0)
        return -1;
    int run = run_command(c, change, &code, err);
    c->partial = df_apply_touched(c, NULL);
    df_terrakube_keep_state(c, code != 0);
    if (run < 0 || finish_change(c, change, code, err) < 0)
        return df_terrakube_on_failure(c);
    c->partial = false;
    return 0;
}

int df_terrakube_apply(struct df_context *c, struct df_err *err)
{
    struct change change = {
        .command = "apply", .title = "APPLY", .reason = "Applied", .failed = "ApplyFailed"};
    if (fetch_plan(c, &change.has_plan, err) < 0)
        return -1;
    return run_change(c, &change, err);
}

int df_terrakube_destroy(struct df_context *c, struct df_err *err)
{
    static const struct change change = {
        .command = "destroy", .title = "DESTROY", .reason = "Destroyed", .failed = "ApplyFailed"};
    return run_change(c, &change, err);
}
