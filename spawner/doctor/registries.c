/*
 * registries.c - asks the registries of a module's providers, if steps on this machine download
 * from them: a run needs them, but for what a cache or a mirror has.
 */
#include "common/hcl/hcl.h"
#include "common/process/process.h"
#include "common/providers/cli_file.h"
#include "common/providers/lockfile.h"
#include "spawner/doctor/checks.h"

#define BUILT_IN "terraform_" /* types of the provider that is a part of the tool */

static bool has_mirror(const struct df_config *c)
{
    return c->mirror_directory || c->filesystem_mirror || c->network_mirror || c->oci_mirror;
}

static bool needs_provider(const struct df_hcl_block *b)
{
    if (df_streq(b->type, "provider"))
        return true;
    return (df_streq(b->type, "resource") || df_streq(b->type, "data")) && b->labels.len &&
           !df_starts_with(b->labels.items[0], BUILT_IN);
}

/* Where the tool looks for a provider whose source names no host. */
static const char *default_registry(void)
{
    DF_FREE char *tofu = df_process_which("tofu", getenv("PATH"));
    return tofu ? "registry.opentofu.org" : "registry.terraform.io";
}

/* The hosts of the lock file; without one the default, if a block needs a provider. */
static int find_hosts(const char *module, const struct df_hcl_module *m, struct df_strs *ret,
                      struct df_err *err)
{
    DF_LOCKED struct df_lockfile lock = {0};
    bool needs = false;
    if (df_lockfile_read(module, &lock, err) < 0)
        return -1;
    for (size_t i = 0; i < lock.len; i++) {
        const char *source = lock.providers[i].source;
        DF_FREE char *host = strndup(source, strcspn(source, "/"));
        if (!host)
            return df_fail_oom(err);
        if (!df_strs_has(ret, host))
            (void)df_strs_add(ret, host);
    }
    for (size_t i = 0; i < m->len; i++)
        needs = needs || needs_provider(&m->blocks[i]);
    if (needs && !ret->len)
        (void)df_strs_add(ret, default_registry());
    return df_strs_check(ret, err);
}

/* Trusts what the tool of a step would trust. */
static int ask(struct df_doctor_context *p, const char *host, struct df_err *err)
{
    struct df_err why = {0};
    DF_FREE char *url = df_strf("https://%s/.well-known/terraform.json", host);
    if (!url)
        return df_fail_oom(err);
    if (df_doctor_request(url, getenv("SSL_CERT_FILE"), &why) == 0)
        df_finding(p, DF_LEVEL_OK, "%s, a registry of the module's providers, answers", host);
    else
        df_finding(
            p, DF_LEVEL_WARN,
            "%s, a registry of the module's providers, does not answer: %s. A run fails, but "
            "for what the cache has: use a mirror (providers.mirror.directory, "
            "providers.filesystemMirror; without a service also ~/.tofurc or ~/.terraformrc)",
            host, why.message);
    return 0;
}

/* *ret: true if the caller's own ~/.tofurc says where providers come from, which a command without
 * a service takes. */
static void find_own_mirror(struct df_doctor_context *p, bool *ret)
{
    DF_CLI_FILE struct df_cli_file f = {0};
    struct df_err why = {0};
    *ret = false;
    if (!p->config.caller_files)
        return;
    if (df_cli_file_read(false, NULL, &f, &why) < 0)
        df_finding(p, DF_LEVEL_WARN,
                   "the tool's own configuration: %s: a run without a service "
                   "fails, but with --no-env",
                   why.message);
    else if (f.missing)
        df_finding(p, DF_LEVEL_WARN,
                   DF_CLI_FILE_VARIABLE " names %s, which cannot be read: a run goes on without it",
                   f.missing);
    else if (f.text)
        df_finding(p, DF_LEVEL_OK, "%s%s: a run without a service uses it, a service does not",
                   f.names.items[0], f.has_mirror ? " says where providers come from" : "");
    *ret = f.has_mirror;
}

int df_check_registries(struct df_doctor_context *p, const struct df_hcl_module *m,
                        struct df_err *err)
{
    DF_STRS struct df_strs hosts = {0};
    bool has_own = false;
    if (!p->config.runs_here || has_mirror(&p->config))
        return 0;
    find_own_mirror(p, &has_own);
    if (has_own)
        return 0;
    if (find_hosts(p->module, m, &hosts, err) < 0)
        return -1;
    for (size_t i = 0; i < hosts.len; i++)
        if (ask(p, hosts.items[i], err) < 0)
            return -1;
    return 0;
}
