/*
 * init.c - runs `init` of the tool, and explains how it failed. Read df_init() at the end, then
 * upwards: run_with_cache() adds the plugin cache, run_in_environment() the certificates and the
 * credentials of the source for modules. Those credentials are removed before a program of the
 * module can start.
 */
#include "runner/init.h"

#include "common/base/fs.h"
#include "common/hcl/calls.h"
#include "runner/args.h"
#include "runner/tofu/backend_noted.h"
#include "runner/tofu/plugin_stage.h"
#include "runner/tofu/trust.h"
#include "runner/tool_run.h"
#include "runner/work.h"

#define INIT_TAIL (256 * DF_KIB)
#define FOR_MODULES "source.credentials.forModules"

/* ---- modules that the module calls, in plain words ---- */

struct checking {
    const char *checkout;
    const char *advice;
};

static int check_call(void *arg, const struct df_hcl_call *call, struct df_err *err)
{
    const struct checking *k = arg;
    if (df_fs_is_within(call->target, k->checkout))
        return 0;
    const char *folder = call->directory + strlen(k->checkout);
    return df_fail_reason(
        err, DF_ERR_USER, "InitFailed",
        "module \"%.64s\" (%s%s%s, line %u) calls %.256s, which is outside of the "
        "source: %s",
        call->name, folder + strspn(folder, "/"), *folder ? "/" : "", call->file, call->line,
        call->source, k->advice);
}

/* Before `init`, which would find something else at that path, or only name it. Class USER, reason
 * InitFailed. */
static int check_calls(const struct df_context *c, struct df_err *err)
{
    bool is_directory = df_streq(df_json_str(c->doc, "source.kind"), "directory");
    struct checking k = {c->dirs->source,
                         is_directory ? "`dayfly run DIRECTORY` takes it along; or name a "
                                        "directory that has both, and the module in it with "
                                        "--folder (spec.source.folder)"
                                      : "the repository or archive must have both"};
    struct df_err why = {0};
    if (!c->work->checks_calls || df_hcl_calls(c->source.module_dir, df_tool_kind_hcl(c->tool.kind),
                                               check_call, &k, &why) == 0)
        return 0;
    /* What is beyond our limits is the tool's to read. */
    return df_streq(why.reason, "InitFailed") ? df_err_pass(err, &why) : 0;
}

/* ---- how it failed ---- */

/* True if `init` failed at a module on the host of the source, whose credentials it did not
 * have. */
static bool lacks_credentials(const struct df_context *c, const struct df_failure *f)
{
    static const char *const words[] = {
        "could not read Username",     "could not read Password",
        "Authentication failed",       "certificate verification failed",
        "SSL certificate problem",     "Permission denied (publickey",
        "Host key verification failed"};
    DF_FREE char *host = df_source_host(df_json_str(c->doc, "source.url"));
    bool is_theirs = host && (strstr(f->summary, host) || strstr(f->detail, host));
    if (!df_json_at(c->doc, "source.credentials") || df_json_bool(c->doc, FOR_MODULES, false))
        return false;
    for (size_t i = 0; i < DF_ARRAY_SIZE(words) && is_theirs; i++)
        if (strstr(f->detail, words[i]) || strstr(f->summary, words[i]))
            return true;
    return false;
}

/* Puts the way out in front of what the tool said, which may be long. */
static int advise_sharing(const struct df_context *c, const struct df_failure *f,
                          struct df_err *err)
{
    char name[DF_TOOL_COMMAND_TEXT];
    return df_fail_reason(
        err, DF_ERR_USER, "InitFailed",
        "%s: a module on the host of the source was not fetched. It gets the source's "
        "credentials and certificates with source.secretRef.forModules: true. %.200s: %.400s",
        df_tool_command_name(&c->tool, "init", name), f->summary, f->detail);
}

static int fail_init(struct df_context *c, const char *text, struct df_err *err)
{
    struct df_failure f;
    char name[DF_TOOL_COMMAND_TEXT];
    df_tool_read_failure(c, text, &f);
    c->logged = f;
    DF_FREE char *local = df_fs_join(c->source.module_dir, "terraform.tfstate");
    if (local && df_fs_exists(local) && strcasestr(f.summary, "state migration"))
        return df_fail_reason(
            err, DF_ERR_USER, "InitFailed",
            "the source holds a terraform.tfstate with resources, but the executor "
            "keeps its state elsewhere, without them: remove the file if that is "
            "intended");
    if (lacks_credentials(c, &f)) {
        c->logged = (struct df_failure){.summary = ""}; /* nobody has seen the advice */
        return advise_sharing(c, &f, err);
    }
    return df_failure_explain(&f, df_tool_command_name(&c->tool, "init", name), "InitFailed",
                              c->work->failure_advice, err);
}

static int run_init(struct df_context *c, const struct df_strs *args, struct df_err *err)
{
    DF_BUF struct df_buf tail = DF_BUF_INIT(INIT_TAIL);
    int code = -1;
    df_output_mute(c->output, c->is_init_quiet);
    int run = df_tool_run(c, args, DF_EVENTS_NONE, true, &tail, &code, err);
    df_output_mute(c->output, false);
    if (run < 0 || code == 0)
        return run;
    if (c->is_init_quiet && df_output_text(c->output, df_buf_str(&tail), tail.len, err) < 0)
        return -1;
    return fail_init(c, df_buf_str(&tail), err);
}

/* Trusts the spawner, if `init` takes providers from it. */
static int add_trust(const struct df_context *c, struct df_strs *env, struct df_err *err)
{
    const char *pem = df_json_str(c->doc, "providers.caCertificate");
    if (!pem)
        return 0;
    DF_FREE char *path = df_fs_join(c->dirs->secret, "trusted.pem");
    if (!path)
        return df_fail_oom(err);
    if (df_trust_write(df_strs_get_env(env, "SSL_CERT_FILE"), pem, path, err) < 0)
        return df_err_wrap(err, "certificates for the mirror of providers");
    (void)df_strs_set_env(env, "SSL_CERT_FILE", path);
    return 0;
}

/* *ret_dir: the files that git needs for it; NULL: none. To be removed after `init`. */
static int share_source(const struct df_context *c, struct df_strs *env, char **ret_dir,
                        struct df_err *err)
{
    if (!df_json_bool(c->doc, FOR_MODULES, false))
        return 0;
    *ret_dir = df_fs_join(c->dirs->secret, "modules");
    if (!*ret_dir)
        return df_fail_oom(err);
    return df_fs_renew_dir(*ret_dir, err) < 0
               ? -1
               : df_source_share(df_json_at(c->doc, "source"), *ret_dir, env, err);
}

/* stage: the plugin cache; NULL: none. */
static int run_in_environment(struct df_context *c, const struct df_plugin_stage *stage,
                              const struct df_strs *args, struct df_err *err)
{
    DF_FREE char *shared = NULL;
    DF_SECRET_STRS struct df_strs env = {0};
    for (size_t i = 0; i < c->workspace.env.len; i++)
        (void)df_strs_add(&env, c->workspace.env.items[i]);
    if (stage)
        (void)df_strs_set_env(&env, "TF_PLUGIN_CACHE_DIR", stage->directory);
    if (add_trust(c, &env, err) < 0 || df_strs_check(&env, err) < 0)
        return -1;
    int failed = share_source(c, &env, &shared, err);
    c->commander.env = &env;
    if (!failed)
        failed = run_init(c, args, err);
    c->commander.env = &c->workspace.env;
    /* Programs of the module start after `init`. */
    return shared && df_fs_remove_tree(shared, failed ? NULL : err) < 0 ? -1 : failed;
}

static int run_with_cache(struct df_context *c, const struct df_strs *args, struct df_err *err)
{
    const struct df_plugin_cache cache = {
        .directory = df_json_str(c->doc, "providers.pluginCacheDirectory"),
        .limit = df_json_int(c->doc, "providers.pluginCacheMaxMiB", 0) * (int64_t)DF_MIB,
        .uses = &c->plugin_uses};
    const char *module_dir = c->source.module_dir;
    DF_PLUGIN_STAGE struct df_plugin_stage stage = DF_PLUGIN_STAGE_NONE;
    if (df_str_empty(cache.directory))
        return run_in_environment(c, NULL, args, err);
    if (df_plugin_stage_open(&cache, module_dir, c->dirs->secret, &stage, err) < 0 ||
        run_in_environment(c, &stage, args, err) < 0)
        return -1;
    return df_plugin_stage_publish(&stage, module_dir, err);
}

int df_init(struct df_context *c, bool lock_readonly, struct df_err *err)
{
    DF_STRS struct df_strs args = {0};
    (void)df_strs_add(&args, "init");
    (void)df_strs_add(&args, "-input=false");
    df_args_add_colour(c, &args);
    if (lock_readonly)
        (void)df_strs_add(&args, "-lockfile=readonly");
    if (df_strs_check(&args, err) < 0 || check_calls(c, err) < 0 ||
        run_with_cache(c, &args, err) < 0)
        return df_err_reason(err, "InitFailed");
    return df_backend_noted_check(c->doc, c->source.module_dir, err);
}
