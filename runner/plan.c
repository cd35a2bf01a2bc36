/*
 * Runs `init` (no_init.h), `plan` and `show`, and uploads the bundle. `show -json` takes half as
 * long as the plan, so it is started together with the plan and waits at a gate (tofu/gate.h) for
 * the plan file. Read df_plan() at the end first.
 */
#include "runner/plan.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/bundle/bundle.h"
#include "common/crypto/crypto.h"
#include "runner/args.h"
#include "runner/emptied.h"
#include "runner/init_artifacts.h"
#include "runner/lineage.h"
#include "runner/no_init.h"
#include "runner/orphans.h"
#include "runner/plan_bundle.h"
#include "runner/plan_changes.h"
#include "runner/policies.h"
#include "runner/secrets.h"
#include "runner/tofu/failure.h"
#include "runner/tofu/gate.h"
#include "runner/tool_run.h"
#include "runner/torn.h"

enum { PLAN_NO_CHANGES = 0, PLAN_CHANGES = 2 }; /* of -detailed-exitcode */

/* The files of one plan. All owned. */
struct paths {
    char *plan, *json, *errors, *lock, *gate;
};

static void paths_free(struct paths *f)
{
    free(f->plan);
    free(f->json);
    free(f->errors);
    free(f->lock);
    free(f->gate);
}

static int name_paths(const struct df_context *c, struct paths *f, struct df_err *err)
{
    f->plan = df_fs_join(c->dirs->secret, "plan");
    f->json = df_fs_join(c->dirs->secret, "plan.json");
    f->errors = df_fs_join(c->dirs->secret, "show.err");
    f->gate = df_fs_join(c->dirs->secret, "plan-to-show");
    f->lock = df_fs_join(c->source.module_dir, ".terraform.lock.hcl");
    return f->plan && f->json && f->errors && f->gate && f->lock ? 0 : df_fail_oom(err);
}

/* ---- after init ---- */

static int add_lock_digest(struct df_context *c, const char *path, struct df_err *err)
{
    DF_CLOSE int fd = -1;
    char hex[DF_SHA256_HEX];
    struct df_err why = {0};
    if (df_fs_open_plain(path, O_RDONLY, 0, &fd, &why) < 0)
        return why.os_errno == ENOENT ? 0 : df_err_pass(err, &why);
    if (df_sha256_file_hex(fd, hex, NULL, err) < 0)
        return -1;
    return df_json_add_str(c->result, "lockFileSha256", hex, err);
}

/* ---- plan ---- */

static int run_plan(struct df_context *c, const char *plan_path, int *ret_code, struct df_err *err)
{
    DF_STRS struct df_strs args = {0};
    (void)df_strs_add(&args, "plan");
    (void)df_strs_add(&args, "-input=false");
    (void)df_strs_add(&args, "-no-color");
    (void)df_strs_add(&args, "-detailed-exitcode");
    (void)df_strs_add(&args, df_is_dry_run(c) ? "-lock=false" : DF_LOCK_TIMEOUT);
    (void)df_strs_addf(&args, "-out=%s", plan_path);
    if (c->destroys)
        (void)df_strs_add(&args, "-destroy");
    enum df_command_events events = df_args_add_events(c, &args);
    df_args_add_all(&args, &c->varfiles.arguments);
    if (df_strs_check(&args, err) < 0)
        return -1;
    return df_tool_run(c, &args, events, !c->has_plugins, NULL, ret_code, err);
}

/* The state that is read without a lock may be one that is being written. */
static int run_plan_whole(struct df_context *c, const char *plan_path, int *ret_code,
                          struct df_err *err)
{
    for (int tries = 1;; tries++) {
        if (run_plan(c, plan_path, ret_code, err) < 0)
            return -1;
        bool is_made = *ret_code == PLAN_NO_CHANGES || *ret_code == PLAN_CHANGES;
        if (!is_made || !df_torn_plan(c, plan_path) || !df_torn_again(c, tries))
            return 0;
    }
}

static int fail_plan(struct df_context *c, struct df_err *err)
{
    struct df_failure f;
    df_failure_from_events(df_output_summary(c->output), &f);
    return df_tool_failed(c, &f, "plan", "PlanFailed", err);
}

static void plan_succeed(struct df_context *c, bool changes)
{
    const struct df_output_summary *s = df_output_summary(c->output);
    char words[DF_CHANGES_WORDS];
    df_changes_words(&s->changes, false, words, sizeof words);
    if (!changes && s->changes.of[DF_CHANGES_DRIFT])
        df_context_set_outcome(c, "NoChanges", "no changes; %s", words);
    else if (!changes)
        df_context_set_outcome(c, "NoChanges", "no changes");
    else if (df_changes_total(&s->changes) == 0)
        df_context_set_outcome(c, "Planned",
                               s->output_changes ? "only outputs change" : "only data is read");
    else
        df_context_set_outcome(c, "Planned", "%s", words);
}

/* ---- show ---- */

/* `show -json` in the background: started with `plan`, it waits at the gate for the plan file. */
struct background_show {
    struct df_gate gate;
    struct df_process process; /* pid -1: not started */
    int json;                  /* what it writes; -1: nothing yet */
};
#define BACKGROUND_SHOW_INIT                                                                       \
    ((struct background_show){.gate = DF_GATE_INIT, .process = DF_PROCESS_INIT, .json = -1})

static void background_show_drop(struct background_show *s)
{
    if (s->process.pid > 0)
        df_command_drop(&s->process);
    df_gate_drop(&s->gate);
    if (s->json >= 0)
        (void)close(DF_TAKE_FD(s->json));
}

/* The file loses its name before code of the module runs, which could put another one there. */
static int start_show(struct df_context *c, const struct paths *f, const char *plan,
                      struct background_show *s, struct df_err *err)
{
    DF_STRS struct df_strs args = {0};
    struct df_commander brief = c->commander;
    brief.is_brief = true;
    (void)df_strs_add(&args, "show");
    (void)df_strs_add(&args, "-json");
    (void)df_strs_add(&args, "-no-color");
    (void)df_strs_add(&args, plan);
    if (df_strs_check(&args, err) < 0)
        return -1;
    (void)unlink(f->json);
    if (df_command_start(&brief, &args, f->json, f->errors, &s->process, err) < 0 ||
        df_fs_open_plain(f->json, O_RDONLY, 0, &s->json, err) < 0)
        return -1;
    return unlink(f->json) < 0 ? df_fail_errno(err, errno, "%s", f->json) : 0;
}

/* Nobody reads the JSON of a plan that is approved automatically. */
static bool is_reviewed(const struct df_context *c)
{
    return df_json_bool(c->doc, "reviewed", true);
}

static bool lists_changes(const struct df_context *c)
{
    return df_json_bool(c->doc, "listsChanges", false);
}

/* Programs judge the plan, or the service does. */
static bool is_judged(const struct df_context *c)
{
    return df_plan_policies_any(c) || lists_changes(c);
}

/* Known before the plan is made. */
static bool wants_json(const struct df_context *c)
{
    return is_reviewed(c) || is_judged(c);
}

/* A plan that may empty the state is checked in any case. */
static bool needs_json(const struct df_context *c)
{
    return wants_json(c) || df_plan_may_empty(c);
}

/* Something is decided by the JSON. While `plan` runs, code of the module can write to the gate, so
 * that the waiting `show` reads another plan: then it is shown once that code has ended. */
static bool decides(const struct df_context *c)
{
    return is_judged(c) || df_plan_may_empty(c);
}

/* A failure costs only time: show_plan() starts it again. */
static void start_background_show(struct df_context *c, const struct paths *f,
                                  struct background_show *s)
{
    if (!wants_json(c) || is_judged(c))
        return;
    if (df_gate_make(f->gate, &s->gate, NULL) < 0 || start_show(c, f, f->gate, s, NULL) < 0)
        background_show_drop(s);
}

/* Behind a wall all of them have ended with their command. */
static int end_others(const struct df_context *c, struct df_err *err)
{
    return !decides(c) || c->isolation->is_on ? 0 : df_orphans_must_end("PlanFailed", err);
}

/* The plan as text, for tools that cannot print it beside their events. */
static int show_text(struct df_context *c, const char *plan_path, struct df_err *err)
{
    DF_STRS struct df_strs args = {0};
    struct df_command_end end;
    if (df_tool_has_json_into(&c->tool))
        return 0;
    (void)df_strs_add(&args, "show");
    (void)df_strs_add(&args, "-no-color");
    (void)df_strs_add(&args, plan_path);
    if (df_strs_check(&args, err) < 0)
        return -1;
    return df_command_run(&c->commander, &args, DF_EVENTS_NONE, NULL, &end, err);
}

/* The plan as JSON, and as text if it was not printed yet. */
static int show_plan(struct df_context *c, const struct paths *f, struct background_show *s,
                     struct df_err *err)
{
    struct df_command_end end = {.code = -1};
    bool waiting = s->process.pid > 0 && !decides(c) && df_gate_open(&s->gate, f->plan, NULL) == 0;
    if (show_text(c, f->plan, err) < 0)
        return -1;
    if (!needs_json(c))
        return 0;
    if (waiting && df_command_wait(&c->commander, &s->process, &end, err) < 0)
        return -1;
    if (end.code == 0)
        return 0;
    background_show_drop(s);
    if (end_others(c, err) < 0 || start_show(c, f, f->plan, s, err) < 0 ||
        df_command_wait(&c->commander, &s->process, &end, err) < 0)
        return -1;
    return end.code == 0 ? 0 : df_tool_failed_aside(c, f->errors, "show -json", "PlanFailed", err);
}

/* ---- collect ---- */

/* *ret: the listing of the source, for an apply that meets another one; stays -1: there is none. */
static int write_listing(const struct df_context *c, int *ret, struct df_err *err)
{
    if (!c->source.listing.entries.len)
        return 0;
    *ret = memfd_create("files", MFD_CLOEXEC);
    if (*ret < 0)
        return df_fail_errno(err, errno, "memfd_create");
    return df_listing_write(&c->source.listing, *ret, err);
}

static int store_plan(struct df_context *c, const struct paths *f, int json,
                      const struct df_init_artifacts *inited, struct df_err *err)
{
    DF_CLOSE int listing = -1;
    DF_JSON cJSON *header = df_json_object(DF_BOOL("needsInit", inited->is_needed),
                                           DF_BOOL("restorable", inited->is_restorable));
    if (df_check_alloc(header, err) < 0 || write_listing(c, &listing, err) < 0)
        return -1;
    const struct df_bundle_part parts[] = {{.name = "plan", .path = f->plan},
                                           {.name = "plan.json", .fd = json},
                                           {.name = "lock", .path = f->lock},
                                           {.name = "modules", .fd = inited->modules_fd},
                                           {.name = "backend", .fd = inited->backend_fd},
                                           {.name = "files", .fd = listing}};
    return df_plan_bundle_store(c, header, parts, DF_ARRAY_SIZE(parts), err);
}

/* The spawner refuses a run that found the state of somebody else: its outputs are not the
 * executor's. */
static bool is_own_state(const struct df_context *c)
{
    struct df_err why = {0};
    return df_lineage_compare(c, df_json_str(c->result, "state.lineage"), &why) == 0;
}

/* A tool that prints only events has no event for this sentence. */
static int print_no_changes(struct df_context *c, struct df_err *err)
{
    const char *text = c->destroys ? "No changes. No objects need to be destroyed.\n"
                                   : "No changes. Your infrastructure matches the configuration.\n";
    return df_tool_has_json_into(&c->tool) ? 0 : df_output_text(c->output, text, strlen(text), err);
}

static int plan_and_store(struct df_context *c, const struct paths *f,
                          const struct df_init_artifacts *inited, struct background_show *s,
                          struct df_err *err)
{
    int code = -1;
    if (run_plan_whole(c, f->plan, &code, err) < 0 ||
        df_context_mark(c, "executed", df_real_us(), err) < 0)
        return -1;
    bool changes = code == PLAN_CHANGES;
    if (changes)
        df_output_expect_changes(c->output);
    if (df_context_add_summary(c, err) < 0)
        return -1;
    if (code != PLAN_NO_CHANGES && code != PLAN_CHANGES)
        return fail_plan(c, err);
    plan_succeed(c, changes);
    if (df_json_add_bool(c->result, "hasChanges", changes, err) < 0)
        return -1;
    if (!changes) {
        c->has_outputs = is_own_state(c);
        return print_no_changes(c, err);
    }
    if (show_plan(c, f, s, err) < 0)
        return -1;
    if (df_plan_may_empty(c) && df_plan_empties(s->json) &&
        df_json_add_bool(c->result, "destroysAll", true, err) < 0)
        return -1;
    if ((lists_changes(c) && df_plan_changes_add(c, s->json, err) < 0) ||
        df_plan_policies_check(c, s->json, err) < 0)
        return -1;
    return store_plan(c, f, s->json, inited, err);
}

static int plan_initialized(struct df_context *c, const struct paths *f, struct df_err *err)
{
    DF_INIT_ARTIFACTS inited = DF_INIT_ARTIFACTS_NONE;
    if (df_context_mark(c, "initialized", df_real_us(), err) < 0 ||
        add_lock_digest(c, f->lock, err) < 0 || df_init_artifacts_keep(c, &inited, err) < 0 ||
        df_lineage_note(c, err) < 0)
        return -1;
    DF_CLEANUP(background_show_drop) struct background_show show = BACKGROUND_SHOW_INIT;
    start_background_show(c, f, &show);
    return plan_and_store(c, f, &inited, &show, err);
}

int df_plan(struct df_context *c, struct df_err *err)
{
    DF_CLEANUP(paths_free) struct paths f = {0};
    bool without = false;
    struct df_err why = {0};
    if (name_paths(c, &f, err) < 0 || df_init_or_not(c, &without, err) < 0)
        return -1;
    if (plan_initialized(c, &f, &why) == 0)
        return 0;
    bool is_planned = df_json_at(c->result, "hasChanges") != NULL; /* then `init` mends nothing */
    if (!without || is_planned || !df_init_is_wanted(c))
        return df_err_pass(err, &why);
    return df_init_after_all(c, err) < 0 ? -1 : plan_initialized(c, &f, err);
}
