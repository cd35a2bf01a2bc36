/*
 * A plan is shown to people and to policies, and stored to be applied: the same bytes, though
 * scripts and providers can write where the file is. So its digest stays in this process from
 * before it is shown until it is stored, and what was left running is ended before each.
 */
#include "runner/terrakube/plan.h"

#include <fcntl.h>

#include "common/base/fs.h"
#include "common/crypto/crypto.h"
#include "runner/args.h"
#include "runner/orphans.h"
#include "runner/terrakube/banner.h"
#include "runner/terrakube/commands.h"
#include "runner/terrakube/flow.h"
#include "runner/terrakube/policy.h"

enum { NO_CHANGES = 0, FAILED = 1, CHANGES = 2 }; /* of -detailed-exitcode */

static int run_plan(struct df_context *c, int *ret_code, struct df_err *err)
{
    DF_STRS struct df_strs args = {0};
    const struct df_terrakube *t = df_terrakube_of(c);
    (void)df_strs_add(&args, "plan");
    (void)df_strs_add(&args, "-input=false");
    df_args_add_colour(c, &args);
    (void)df_strs_add(&args, "-detailed-exitcode");
    (void)df_strs_add(&args, "-out=" DF_TERRAKUBE_PLAN_FILE);
    if (!t->payload->refresh)
        (void)df_strs_add(&args, "-refresh=false");
    if (t->payload->refresh_only)
        (void)df_strs_add(&args, "-refresh-only");
    if (c->destroys)
        (void)df_strs_add(&args, "-destroy");
    enum df_command_events events = df_args_add_events(c, &args);
    return df_terrakube_command_run(c, &args, events, ret_code, err);
}

/* ---- the same bytes ---- */

/* Once nobody else runs. */
static int digest_plan(const struct df_context *c, char out[DF_SHA256_HEX], struct df_err *err)
{
    DF_FREE char *path = df_fs_join(c->source.module_dir, DF_TERRAKUBE_PLAN_FILE);
    DF_CLOSE int fd = -1;
    if (!path)
        return df_fail_oom(err);
    if (df_orphans_must_end("PlanFailed", err) < 0 ||
        df_fs_open_plain(path, O_RDONLY, 0, &fd, err) < 0)
        return df_err_reason(err, "PlanFailed");
    return df_sha256_file_hex(fd, out, NULL, err);
}

static int check_same(const struct df_context *c, const char *shown, struct df_err *err)
{
    char now[DF_SHA256_HEX];
    if (digest_plan(c, now, err) < 0)
        return -1;
    return df_streq(now, shown)
               ? 0
               : df_fail_reason(err, DF_ERR_DENIED,
                                df_terrakube_of(c)->payload->policies ? "PolicyFailed"
                                                                      : "PlanFailed",
                                DF_TERRAKUBE_PLAN_FILE
                                " has changed since the plan was shown: a command of the job's "
                                "template or a provider has written to it");
}

/* ---- showing ---- */

/* The plan as text, from a tool that prints only events: what the API's summary looks for. */
static int show_text(struct df_context *c, bool changes, struct df_err *err)
{
    DF_STRS struct df_strs args = {0};
    static const char none[] = "No changes. Your infrastructure matches the configuration.\n";
    int code;
    if (df_tool_has_json_into(&c->tool))
        return 0;
    if (!changes)
        return df_output_text(c->output, none, strlen(none), err);
    (void)df_strs_add(&args, "show");
    df_args_add_colour(c, &args);
    (void)df_strs_add(&args, DF_TERRAKUBE_PLAN_FILE);
    return df_terrakube_command_run(c, &args, DF_EVENTS_NONE, &code, err);
}

static void show_rows(const struct df_context *c, const char *json)
{
    DF_JSON cJSON *plan = df_terrakube_shown(c, json);
    if (plan)
        df_terrakube_context_plan(df_terrakube_of(c)->context, plan);
}

static int check_policies(struct df_context *c, const char *json, struct df_err *err)
{
    const struct df_terrakube *t = df_terrakube_of(c);
    struct df_terrakube_verdict verdict = {0};
    const struct df_terrakube_policies q = {.payload = t->payload,
                                            .api = t->api,
                                            .context = t->context,
                                            .known_hosts = t->known_hosts,
                                            .plan_json = json};
    return df_terrakube_policies_check(c, &q, &verdict, err);
}

static int use_json(struct df_context *c, struct df_err *err)
{
    const struct df_terrakube *t = df_terrakube_of(c);
    static const char *const show[] = {"show", "-json", DF_TERRAKUBE_PLAN_FILE, NULL};
    DF_FREE char *json = df_fs_join(c->dirs->secret, "plan.json");
    if (!t->context && !t->payload->policies)
        return 0;
    if (!json)
        return df_fail_oom(err);
    int shown = df_terrakube_command_save(c, show, json, err);
    if (shown == 0 && df_orphans_must_end("PlanFailed", err) < 0) /* `show` runs providers, too */
        return -1;
    if (shown == 0 && t->context)
        show_rows(c, json);
    if (!t->payload->policies)
        return 0;
    return shown < 0 ? df_err_reason(err, "PolicyFailed") : check_policies(c, json, err);
}

/* ---- storing ---- */

static int store_plan(struct df_context *c, struct df_err *err)
{
    struct df_terrakube *t = df_terrakube_of(c);
    DF_FREE char *path = df_fs_join(c->source.module_dir, DF_TERRAKUBE_PLAN_FILE);
    if (!path)
        return df_fail_oom(err);
    if (df_terrakube_storage_put(t->storage, t->payload, DF_TERRAKUBE_OBJECT_PLAN, NULL, path,
                                 err) < 0 ||
        df_terrakube_storage_plan_place(t->storage, t->payload, &t->plan_place, err) < 0)
        return df_err_wrap(err, "store the plan");
    return 0;
}

static int finish_plan(struct df_context *c, int code, struct df_err *err)
{
    struct df_terrakube *t = df_terrakube_of(c);
    char digest[DF_SHA256_HEX] = "";
    bool planned = code == NO_CHANGES || code == CHANGES;
    df_context_set_outcome(c, code == NO_CHANGES ? "NoChanges" : "Planned", "planned");
    if (planned && (digest_plan(c, digest, err) < 0 || show_text(c, code == CHANGES, err) < 0 ||
                    use_json(c, err) < 0))
        return -1;
    if (df_terrakube_scripts_run(c, &t->scripts, t->payload->commands, DF_TERRAKUBE_AFTER, err) < 0)
        return -1;
    if (!planned)
        return 0;
    return check_same(c, digest, err) < 0 ? -1 : store_plan(c, err);
}

int df_terrakube_plan(struct df_context *c, struct df_err *err)
{
    struct df_terrakube *t = df_terrakube_of(c);
    int code = -1;
    if (df_terrakube_banner_run(c, "PLAN", err) < 0 || run_plan(c, &code, err) < 0)
        return -1;
    bool planned = code == NO_CHANGES || code == CHANGES;
    if (!planned && (!t->payload->ignore_error || df_stop_cause(c->stop) != DF_STOP_NONE)) {
        (void)df_terrakube_command_fail(c, "plan", "PlanFailed", err);
        return df_terrakube_on_failure(c);
    }
    t->plan_code = planned ? code : FAILED;
    return finish_plan(c, code, err) < 0 ? df_terrakube_on_failure(c) : 0;
}
