/*
 * The stages before the action: source, tool, then secrets and workspace. The first two also
 * check what an apply must have in common with its plan: commit and digest of the source, name and
 * version of the tool.
 */
#include "runner/prepare.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/bundle/bundle.h"
#include "runner/init_artifacts.h"
#include "runner/secrets.h"
#include "runner/source/listing.h"
#include "runner/tofu/backend.h"
#include "runner/tofu/cliconfig.h"
#include "runner/tofu/plugin_stage.h"
#include "runner/tofu/sensitive.h"
#include "runner/tofu/toolchain.h"
#include "runner/tofu/varvalues.h"
#include "runner/work.h"

/* ---- source ---- */

/* Copies the lines of the finished fetch to the log. */
static void show_fetch_log(struct df_context *c, int fd)
{
    char piece[4096];
    ssize_t n;
    for (off_t at = 0; (n = pread(fd, piece, sizeof piece, at)) > 0; at += n) {
        if (df_output_text(c->output, piece, (size_t)n, NULL) < 0)
            return;
    }
}

static int fetch_source(struct df_context *c, struct df_err *err)
{
    DF_WALL struct df_wall wall = {0};
    bool is_on = c->isolation->is_on;
    if (is_on && df_isolation_wall_of_fetch(c->isolation, c->dirs, &wall, err) < 0)
        return -1;
    DF_CLOSE int log = memfd_create("fetch", MFD_CLOEXEC);
    const struct df_source_request q = {.source = df_json_at(c->doc, "source"),
                                        .expected_commit = df_json_str(c->doc, "expected.commit"),
                                        .checkout = c->dirs->source,
                                        .private_dir = c->dirs->fetch,
                                        .log_fd = log,
                                        .stop = df_stop_flag(c->stop),
                                        .is_strict = is_on && c->isolation->is_strict,
                                        .hidden = is_on ? &c->isolation->hidden : NULL,
                                        .git_wall = is_on ? &wall : NULL,
                                        .advice = c->work->source_advice};
    int failed = df_source_fetch(&q, &c->source, err);
    if (log >= 0 && (failed || c->work->logs_source))
        show_fetch_log(c, log);
    return failed ? df_err_reason(err, "SourceFailed") : 0;
}

/* Writes the listing of the plan to the second file. */
static int get_listing(const struct df_context *c, const char *bundle, const char *listing,
                       struct df_err *err)
{
    DF_CLOSE int fd = -1;
    if (df_report_get_artifact(c->report, "plan", bundle, c->deadline_ms, err) < 0)
        return -1;
    int opened = df_fs_open_plain(bundle, O_RDONLY, 0, &fd, err);
    (void)unlink(bundle); /* it has secrets */
    return opened < 0 ? -1 : df_bundle_extract(fd, "files", listing, err);
}

/* What of the source differs from the plan that the step is to apply, as df_listing_differences()
 * says it; "" as well if the plan has no listing or cannot be read. */
static const char *changed_since_plan(const struct df_context *c, char out[DF_LISTING_WORDS])
{
    DF_FREE char *bundle = df_fs_join(c->dirs->secret, "bundle");
    DF_FREE char *listing = df_fs_join(c->dirs->secret, "files");
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_LIMIT_SOURCE_LISTING);
    DF_CLEANUP(df_listing_free) struct df_listing before = {0};
    struct df_err ignored = {0};
    if (bundle && listing && get_listing(c, bundle, listing, &ignored) == 0 &&
        df_fs_read_plain(listing, &text, &ignored) == 0)
        df_listing_read(&before, df_buf_str(&text), text.len);
    return df_listing_differences(&before, &c->source.listing, out);
}

static int fail_changed(const struct df_context *c, const char *digest, struct df_err *err)
{
    char names[DF_LISTING_WORDS];
    if (!*changed_since_plan(c, names))
        return df_fail_reason(err, DF_ERR_CONFLICT, "SourceChanged",
                              "the source's files changed since the plan (their digest was %.12s, "
                              "now it is %.12s): plan again",
                              digest, c->source.tree_digest);
    return df_fail_reason(err, DF_ERR_CONFLICT, "SourceChanged",
                          "the source's files changed since the plan: %s: plan again. In a "
                          "directory, .terraformignore names what is no part of the module",
                          names);
}

static int check_source(const struct df_context *c, struct df_err *err)
{
    const char *commit = df_json_str(c->doc, "expected.commit");
    const char *digest = df_json_str(c->doc, "expected.treeDigest");
    if (!df_str_empty(commit) && !df_streq(commit, c->source.commit))
        return df_fail_reason(err, DF_ERR_CONFLICT, "SourceChanged",
                              "planned from commit %s, but this is %s: plan again", commit,
                              c->source.commit);
    if (!df_str_empty(digest) && !df_streq(digest, c->source.tree_digest))
        return fail_changed(c, digest, err);
    return 0;
}

/* Links <dir>/module to the module's directory, where tofu leaves an errored.tfstate: the engine
 * reads it there after the runner was killed. The link goes through <dir>/work, because the engine
 * may move the directory that <dir>/work names. */
static int link_module(const struct df_context *c, struct df_err *err)
{
    DF_FREE char *path = df_fs_join(c->step_dir, "module");
    DF_FREE char *target = df_strf("work/source%s", c->source.module_dir + strlen(c->dirs->source));
    if (!path || !target)
        return df_fail_oom(err);
    if (df_fs_remove_tree(path, err) < 0)
        return -1;
    return symlink(target, path) < 0 ? df_fail_errno(err, errno, "link %s", path) : 0;
}

/* The source of the plan in this pod, as it was fetched. Where the module's code changed it, it is
 * fetched again, as for an apply in a pod of its own. */
static int use_kept_source(struct df_context *c, struct df_err *err)
{
    struct df_err why = {0};
    bool is_same = false;
    df_init_artifacts_keep_providers(c);
    if (df_kept_source_restore(c->dirs->source, &c->source, &c->kept, &is_same, &why) == 0 &&
        is_same)
        return 0;
    (void)df_output_note(c->output, "dayfly: the source is fetched again: %s",
                         *why.message ? why.message : "the plan changed files of it");
    df_source_result_free(&c->source);
    return df_fs_renew_dir(c->dirs->source, err) < 0 ? -1 : fetch_source(c, err);
}

/* The pod of a plan may stay for the apply. */
static int keep_source(struct df_context *c, struct df_err *err)
{
    if (!df_json_at(c->doc, "keepsPodFor"))
        return 0;
    return df_kept_source_note(c->dirs->source, &c->source, &c->kept, err);
}

/* What was fetched before the claim, if it is the plan's. */
static int get_source(struct df_context *c, struct df_err *err)
{
    bool is_ready = false;
    int log = -1;
    if (df_preparation_take_source(c->preparation, &is_ready, &c->source, &log, err) < 0)
        return -1;
    if (!is_ready)
        return fetch_source(c, err);
    show_fetch_log(c, log);
    return 0;
}

int df_prepare_source(struct df_context *c, struct df_err *err)
{
    if ((c->is_kept ? use_kept_source(c, err) : get_source(c, err)) < 0 || keep_source(c, err) < 0)
        return -1;
    cJSON *source = df_json_object_at(c->result, "source");
    if (!source)
        return df_fail_oom(err);
    if ((*c->source.commit && df_json_add_str(source, "commit", c->source.commit, err) < 0) ||
        df_json_add_str(source, "treeDigest", c->source.tree_digest, err) < 0)
        return -1;
    if (c->work->logs_source)
        (void)df_output_note(c->output, "dayfly: source %s%s(files %.12s)", c->source.commit,
                             *c->source.commit ? " " : "", c->source.tree_digest);
    if (check_source(c, err) < 0 || link_module(c, err) < 0)
        return -1;
    return df_context_mark(c, "sourced", df_real_us(), err);
}

/* ---- toolchain ---- */

static int find_tool(struct df_context *c, struct df_err *err)
{
    const char *planned = df_json_str(c->doc, "expected.toolVersion");
    const struct df_step_wall_request wall = df_context_wall(c);
    const struct df_tool_request how = {.stop = df_stop_flag(c->stop), .wall = &wall};
    if (df_toolchain_of_step(c->doc, &how, &c->tool, err) == 0)
        return 0;
    if (!planned || !df_streq(err->reason, "ToolMissing"))
        return df_err_reason(err, "ToolMissing");
    struct df_err why = *err;
    return df_fail_reason(err, DF_ERR_CONFLICT, "ToolVersionChanged",
                          "planned with %s %s, which is not here any more: %s",
                          df_json_str(c->doc, "expected.toolName"), planned, why.message);
}

int df_prepare_tool(struct df_context *c, struct df_err *err)
{
    char version[DF_VERSION_TEXT];
    if (find_tool(c, err) < 0)
        return -1;
    const char *name = df_tool_kind_name(c->tool.kind);
    cJSON *tool = df_json_object_at(c->result, "tool");
    if (!tool)
        return df_fail_oom(err);
    if (df_json_add_str(tool, "name", name, err) < 0 ||
        df_json_add_str(tool, "version", df_version_format(&c->tool.version, version), err) < 0)
        return -1;
    (void)df_output_note(c->output, "dayfly: %s %s", name, version);
    return df_stopped(df_stop_flag(c->stop))
               ? df_fail(err, DF_ERR_RETRY, "before %s was started", c->tool.path)
               : 0;
}

/* ---- sensitive variables ---- */

int df_prepare_secrets(struct df_context *c, struct df_err *err)
{
    DF_HCL_MODULE struct df_hcl_module module = {0};
    DF_SECRET_STRS struct df_strs values = {0};
    const char *dir = c->source.module_dir;
    if (df_hcl_scan(dir, df_tool_kind_hcl(c->tool.kind), &module, err) < 0 ||
        df_secrets_check(c->doc, &module, err) < 0 ||
        df_sensitive_write(c->doc, &module, dir, err) < 0 ||
        df_varvalues_collect(dir, &c->varfiles.files, &module, &values, err) < 0 ||
        df_secrets_collect(c->doc, &module, &values, err) < 0)
        return -1;
    return df_output_hide(c->output, &values, err);
}

/* ---- workspace and init ---- */

static int check_backend(struct df_context *c, struct df_err *err)
{
    char note[512];
    if (!c->tool.path) /* the step only runs scripts */
        return 0;
    const struct df_backend_request q = {.step = c->doc,
                                         .module_dir = c->source.module_dir,
                                         .origin_dir = c->source.origin_dir,
                                         .tool = df_tool_kind_hcl(c->tool.kind)};
    if (df_backend_check(&q, note, err) < 0)
        return -1;
    if (*note)
        (void)df_output_note(c->output, "dayfly: %s", note);
    return 0;
}

static void say_cli_config(const struct df_context *c)
{
    if (df_json_at(c->doc, "sealed.cliConfig") &&
        df_cliconfig_is_own(df_json_at(c->doc, "providers")))
        (void)df_output_note(c->output,
                             "dayfly: providers.* of dayfly's configuration is used instead of the "
                             "CLI configuration of the caller's shell");
}

static int check_oci_mirror(const struct df_context *c, struct df_err *err)
{
    char version[DF_VERSION_TEXT];
    if (df_str_empty(df_json_str(c->doc, "providers.ociMirror")) ||
        df_tool_has_oci_mirror(&c->tool))
        return 0;
    return df_fail_reason(err, DF_ERR_USER, "InvalidStep",
                          "providers.ociMirror: %s %s cannot take providers from an OCI registry: "
                          "run the module with OpenTofu 1.10 or newer, or use "
                          "providers.networkMirror",
                          df_tool_kind_name(c->tool.kind),
                          df_version_format(&c->tool.version, version));
}

/* Of the source, or of scripts. */
static int remove_data(const struct df_context *c, struct df_err *err)
{
    DF_FREE char *data = df_fs_join(c->source.module_dir, ".terraform");
    if (!data)
        return df_fail_oom(err);
    return df_fs_remove_tree(data, err);
}

static int check_module(struct df_context *c, struct df_err *err)
{
    if (!df_tool_runs_modules(&c->tool))
        return 0;
    return check_oci_mirror(c, err) < 0 || check_backend(c, err) < 0 ? -1 : remove_data(c, err);
}

int df_prepare_workspace(struct df_context *c, struct df_err *err)
{
    const struct df_varfiles_request q = {.step = c->doc,
                                          .checkout = c->dirs->source,
                                          .module_dir = c->source.module_dir,
                                          .secret_dir = c->dirs->secret};
    if (check_module(c, err) < 0 ||
        df_workspace_prepare(c->doc, &c->tool, c->dirs, c->source.module_dir, &c->workspace, err) <
            0 ||
        df_varfiles_collect(&q, &c->varfiles, err) < 0)
        return df_err_reason(err, "RunnerFailed");
    say_cli_config(c);
    const char *cache = df_json_str(c->doc, "providers.pluginCacheDirectory");
    const struct df_step_wall_request wall = df_context_wall(c);
    if (df_plugin_stage_make_cache(cache, err) < 0 || df_step_wall_make(&wall, &c->wall, err) < 0)
        return df_err_reason(err, "RunnerFailed");
    c->pid_path = df_fs_join(c->step_dir, "tofu.pid");
    c->fifo_path = df_fs_join(c->dirs->secret, "events");
    if (!c->pid_path || !c->fifo_path)
        return df_fail_oom(err);
    c->commander = (struct df_commander){
        .program = c->tool.path,
        .tool = &c->tool,
        .variables = &c->varfiles.files,
        .directory = c->source.module_dir,
        .env = &c->workspace.env,
        .fifo_path = c->fifo_path,
        .pid_path = c->pid_path,
        .output = c->output,
        .stop = c->stop,
        .wall = c->isolation->is_on ? &c->wall : NULL,
        .grace_ms = df_json_int(c->doc, "graceSeconds", DF_TIMEOUT_GRACE_SECONDS) * 1000};
    return 0;
}
