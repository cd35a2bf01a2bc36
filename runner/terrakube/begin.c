/*
 * The way of a step up to its command: df_terrakube_begin() and df_terrakube_ready() at the end.
 * What fails before the API knows that the step runs is a failure to prepare the work directory.
 */
#include "runner/terrakube/begin.h"

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "runner/init.h"
#include "runner/prepare.h"
#include "runner/secrets.h"
#include "runner/terrakube/banner.h"
#include "runner/terrakube/environment.h"
#include "runner/terrakube/flow.h"
#include "runner/terrakube/guard.h"
#include "runner/terrakube/outcome.h"
#include "runner/terrakube/source.h"
#include "runner/terrakube/state.h"
#include "runner/terrakube/tool.h"
#include "runner/terrakube/variables.h"

/* ---- masks ---- */

/* module: NULL before it is fetched. */
static int mask_secrets(struct df_context *c, const struct df_hcl_module *module,
                        struct df_err *err)
{
    DF_SECRET_STRS struct df_strs values = {0};
    if (module && df_terrakube_variables_secrets(df_terrakube_of(c)->payload->variables, module,
                                                 &values, err) < 0)
        return -1;
    return df_secrets_collect(c->doc, module, &values, err) < 0
               ? -1
               : df_output_hide(c->output, &values, err);
}

/* ---- source ---- */

static int add_source(struct df_context *c, struct df_err *err)
{
    struct df_terrakube *t = df_terrakube_of(c);
    if (df_terrakube_known_hosts(t->environment, &t->known_hosts, err) < 0)
        return -1;
    const struct df_terrakube_source_request r = {.settings = t->settings,
                                                  .payload = t->payload,
                                                  .known_hosts = t->known_hosts,
                                                  .override_source = t->job.override_source,
                                                  .api = t->api,
                                                  .directory = c->dirs->secret,
                                                  .output = c->output};
    if (df_terrakube_source_add(&r, t->document, err) < 0 ||
        df_terrakube_source_add_module_key(t->payload, t->known_hosts, t->document, err) < 0)
        return -1;
    return mask_secrets(c, NULL, err);
}

/* Scripts read it: the id of the commit, in the root of the source. */
static int note_commit(struct df_context *c, struct df_err *err)
{
    struct df_terrakube *t = df_terrakube_of(c);
    const char *commit = *c->source.commit ? c->source.commit : "000000000";
    DF_FREE char *path = df_fs_join(c->dirs->source, "commitHash.info");
    (void)snprintf(t->commit, sizeof t->commit, "%s", commit);
    return df_fs_remove_tree(path, err) < 0 ? -1
                                            : df_fs_write(path, commit, strlen(commit), 0600, err);
}

int df_terrakube_begin(struct df_context *c, struct df_err *err)
{
    struct df_terrakube *t = df_terrakube_of(c);
    t->waits.output = c->output;
    t->stop = df_stop_flag(c->stop);
    if (df_terrakube_guard(c, err) < 0 ||
        df_terrakube_watch_new(t->settings, t->payload, c->stop, &t->watch, err) < 0)
        return -1;
    if (t->refused)
        return df_err_pass(err, t->refused);
    if (add_source(c, err) < 0 || df_prepare_source(c, err) < 0 || note_commit(c, err) < 0)
        return -1;
    df_terrakube_await_queue(t, df_stop_flag(c->stop));
    if (df_stopped(df_stop_flag(c->stop)))
        return df_fail(err, DF_ERR_RETRY, "before the step was begun");
    t->scripts = (struct df_terrakube_scripts){
        .settings = t->settings, .payload = t->payload, .directory = c->source.module_dir};
    return df_terrakube_guard_change(c, err) < 0 ? -1 : df_terrakube_tell_running(t, err);
}

/* ---- tool and workspace ---- */

static int find_tool(struct df_context *c, struct df_err *err)
{
    struct df_terrakube *t = df_terrakube_of(c);
    const struct df_step_wall_request wall = df_context_wall(c);
    const struct df_terrakube_tool_request r = {.settings = t->settings,
                                                .payload = t->payload,
                                                .uses_storage = t->storage != NULL,
                                                .tools = df_json_at(c->doc, "tools"),
                                                .path_env = getenv("PATH"),
                                                .output = c->output,
                                                .stop = df_stop_flag(c->stop),
                                                .wall = &wall};
    if (df_terrakube_tool_find(&r, &c->tool, err) < 0)
        return -1;
    return df_stopped(df_stop_flag(c->stop))
               ? df_fail(err, DF_ERR_RETRY, "before %s was started", c->tool.path)
               : 0;
}

/* The backend of Terrakube wins over the module's, as with its own executor. */
static int add_state(struct df_context *c, struct df_err *err)
{
    struct df_terrakube *t = df_terrakube_of(c);
    if (df_terrakube_state_add(t->settings, t->payload, &c->tool.version, t->document, err) < 0)
        return -1;
    return df_terrakube_state_write(t->settings, t->payload, c->source.module_dir, err);
}

static int add_variables(struct df_context *c, struct df_err *err)
{
    DF_HCL_MODULE struct df_hcl_module module = {0};
    struct df_terrakube *t = df_terrakube_of(c);
    if (df_hcl_scan(c->source.module_dir, df_tool_kind_hcl(c->tool.kind), &module, err) < 0 ||
        mask_secrets(c, &module, err) < 0)
        return -1;
    return df_terrakube_variables_write(t->payload->variables, &module, c->dirs->secret,
                                        &c->varfiles.files, err);
}

/* ---- scripts and init ---- */

static int run_commands(struct df_context *c, enum df_terrakube_phase phase, struct df_err *err)
{
    struct df_terrakube *t = df_terrakube_of(c);
    t->has_begun = true;
    return df_terrakube_scripts_run(c, &t->scripts, t->payload->commands, phase, err);
}

/* The log of a CLI's run begins with the plan: it has run `init` itself. */
static int run_tools_init(struct df_context *c, struct df_err *err)
{
    struct df_terrakube *t = df_terrakube_of(c);
    if (df_terrakube_banner_init(c, err) < 0 ||
        df_terrakube_temp_env(t->scripts.directory, &c->workspace.env, err) < 0)
        return -1;
    c->is_init_quiet = df_terrakube_is_remote_content(t->payload);
    if (df_init(c, false, err) < 0 || df_output_end_line(c->output, err) < 0)
        return -1;
    DF_FREE char *plugins = df_fs_join(c->source.module_dir, ".terraform/providers");
    c->has_plugins = plugins && df_fs_exists(plugins);
    return 0;
}

int df_terrakube_ready(struct df_context *c, struct df_err *err)
{
    c->is_coloured = df_terrakube_of(c)->settings->colour;
    if (find_tool(c, err) < 0 || add_state(c, err) < 0 || df_prepare_workspace(c, err) < 0 ||
        df_terrakube_environment_add(c, err) < 0 || add_variables(c, err) < 0)
        return -1;
    if (run_commands(c, DF_TERRAKUBE_BEFORE_INIT, err) < 0 || run_tools_init(c, err) < 0)
        return -1;
    return run_commands(c, DF_TERRAKUBE_BEFORE, err);
}

int df_terrakube_run_scripts(struct df_context *c, struct df_err *err)
{
    cJSON *state = df_json_object_at(df_terrakube_of(c)->document, "state");
    df_terrakube_of(c)->scripts.directory = c->dirs->source;
    if (df_json_set_str(state, "type", "module", err) < 0 || df_prepare_workspace(c, err) < 0 ||
        df_terrakube_environment_add(c, err) < 0 || run_commands(c, DF_TERRAKUBE_ALL, err) < 0)
        return -1;
    df_context_set_outcome(c, "Completed", "the commands of the step ended with success");
    return 0;
}

static void note_deadline(const struct df_context *c)
{
    (void)df_output_note(
        c->output, "dayfly: the step did not end within its deadline of %lld s%s: it was stopped",
        (long long)df_json_int(c->doc, "timeoutSeconds", DF_TIMEOUT_STEP_SECONDS),
        df_terrakube_of(c)->is_handed_out ? " (terrakube.deadline of the service)" : "");
}

/* Who stopped the step. The tool only says that it was interrupted. */
static void note_stop(const struct df_context *c)
{
    switch (df_stop_cause(c->stop)) {
    case DF_STOP_SIGNAL: /* in a pod with the words of Terrakube's executor */
        (void)df_output_note(c->output, getenv("KUBERNETES_SERVICE_HOST")
                                            ? "Executor pod is shutting down"
                                            : "dayfly: the executor was told to stop");
        break;
    case DF_STOP_OVER:
        (void)df_output_note(c->output, df_terrakube_watch_lost_lock(df_terrakube_of(c)->watch)
                                            ? "dayfly: Terrakube's API gave away the lock of the "
                                              "state: the step was stopped"
                                            : "dayfly: the job was cancelled: the step was "
                                              "stopped");
        break;
    case DF_STOP_TIMEOUT:
        note_deadline(c);
        break;
    case DF_STOP_NONE:
        break;
    }
}

void df_terrakube_note_end(const struct df_context *c, bool is_known)
{
    const struct df_outcome *outcome = &c->outcome;
    if (df_terrakube_of(c)->is_told) { /* whose step it is not: the pod's log alone says why */
        df_warn("%s: %s", outcome->reason, outcome->message);
        return;
    }
    if (df_streq(outcome->reason, "Canceled") || df_streq(outcome->reason, "TimedOut"))
        note_stop(c);
    if (df_terrakube_waits_had_redis_away(&df_terrakube_of(c)->waits))
        (void)df_output_note(c->output,
                             "dayfly: Redis was not there all the time: the live log may "
                             "have gaps, the saved output has none");
    if (is_known || df_terrakube_of(c)->is_unheard)
        return;
    if (!df_terrakube_of(c)->is_announced)
        (void)df_output_note(c->output, "Failed to prepare work dir");
    (void)df_output_note(c->output, "dayfly: %s: %s", outcome->reason, outcome->message);
}
