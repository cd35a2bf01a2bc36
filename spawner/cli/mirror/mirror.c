/* dayfly mirror: downloads the providers of modules into a directory that serves as a mirror. */
#include "common/archive/tree.h"
#include "common/base/fs.h"
#include "common/base/platform.h"
#include "common/hcl/hcl.h"
#include "common/providers/lockfile.h"
#include "spawner/cli/commands.h"
#include "spawner/cli/mirror/mirror_check.h"
#include "spawner/cli/mirror/mirror_store.h"
#include "spawner/cli/mirror/mirror_tool.h"

struct mirroring {
    struct df_mirror_store store;
    struct df_strs modules, platforms;
    char *tool; /* its path */
    char *into; /* where it downloads to, in the store's stage */
    int64_t added, there, failed, bytes;
    const char *module; /* the present one, as it was named */
};

static void mirroring_free(struct mirroring *m)
{
    df_mirror_store_close(&m->store);
    df_strs_free(&m->modules);
    df_strs_free(&m->platforms);
    free(m->tool);
    free(m->into);
}

/* ---- one package ---- */

static void note(const struct df_mirror_package *p, const char *what)
{
    df_cli_note("%s %s %s: %s", p->archive.source, p->archive.version, p->archive.platform, what);
}

static int put(struct mirroring *m, const struct df_mirror_package *p, const char *archive,
               struct df_err *err)
{
    char what[64];
    int64_t size = 0;
    if (df_mirror_check(m->tool, &m->store, m->into, p, &size, err) < 0 ||
        df_mirror_store_put(&m->store, archive, p, err) < 0 ||
        df_mirror_store_index(&m->store, p, err) < 0)
        return -1;
    m->added++;
    m->bytes += size;
    (void)snprintf(what, sizeof(what), "added, %.1f MiB", (double)size / (double)DF_MIB);
    note(p, what);
    return 0;
}

static int download(struct mirroring *m, const struct df_mirror_package *p, struct df_err *err)
{
    DF_FREE char *archive = df_provider_archive_path(m->into, &p->archive);
    if (!archive)
        return df_fail_oom(err);
    note(p, "downloading");
    return df_mirror_tool_fetch(m->tool, &m->store, p, m->into, err) < 0 ? -1
                                                                         : put(m, p, archive, err);
}

/* An archive that is there and was locked is not downloaded again; anything else is replaced. */
static int mirror_package(struct mirroring *m, const struct df_mirror_package *p,
                          struct df_err *err)
{
    int64_t size = 0;
    if (df_mirror_check(m->tool, &m->store, m->store.directory, p, &size, NULL) < 0)
        return download(m, p, err);
    if (df_mirror_store_index(&m->store, p, err) < 0)
        return -1;
    m->there++;
    m->bytes += size;
    note(p, "is there");
    return 0;
}

/* The other packages are still mirrored. */
static void mirror_or_tell(struct mirroring *m, const struct df_mirror_package *p)
{
    struct df_err why = {0};
    if (mirror_package(m, p, &why) == 0)
        return;
    m->failed++;
    df_cli_note("%s %s %s: failed: %s (%s)", p->archive.source, p->archive.version,
                p->archive.platform, why.message, m->module);
}

/* ---- one module ---- */

static void mirror_locked(struct mirroring *m, const struct df_lockfile *locked)
{
    for (size_t i = 0; i < locked->len; i++) {
        const struct df_locked_provider *l = &locked->providers[i];
        for (size_t k = 0; k < m->platforms.len; k++) {
            const struct df_mirror_package p = {{l->source, l->version, m->platforms.items[k]},
                                                &l->hashes};
            mirror_or_tell(m, &p);
        }
    }
}

static enum df_tree_visit visit(void *arg, const struct df_tree_entry *e, struct df_err *err)
{
    struct mirroring *m = (struct mirroring *)arg;
    struct df_mirror_package p = {0};
    DF_FREE char *path = strdup(e->path), *archive = df_fs_join(m->into, e->path);
    if (!path || !archive) {
        (void)df_fail_oom(err);
        return DF_TREE_FAIL;
    }
    char *slash = strrchr(path, '/');
    if (!S_ISREG(e->st->st_mode) || !slash)
        return DF_TREE_GO_ON;
    *slash = '\0';
    if (!df_provider_is_source(path) || !df_provider_archive_parse(slash + 1, path, &p.archive))
        return DF_TREE_GO_ON;
    return put(m, &p, archive, err) < 0 ? DF_TREE_FAIL : DF_TREE_GO_ON;
}

static int mirror_required(struct mirroring *m, const char *module, struct df_err *err)
{
    df_cli_note("%s: has no " DF_LOCKFILE ": downloading the newest that it allows", m->module);
    if (df_mirror_tool_fetch_module(m->tool, &m->store, module, &m->platforms, m->into, err) < 0)
        return -1;
    return df_tree_walk(m->into, visit, m, err);
}

/* Refuses what is no module: an empty mirror would be found out far away from here. */
static int check_module(const char *module, struct df_err *err)
{
    DF_HCL_MODULE struct df_hcl_module found = {0};
    if (df_hcl_scan(module, DF_HCL_ANY, &found, err) < 0)
        return -1;
    return found.files
               ? 0
               : df_fail(err, DF_ERR_USER, "%s: has no configuration (*.tf, *.tofu)", module);
}

static int mirror_module(struct mirroring *m, const char *module, struct df_err *err)
{
    DF_LOCKED struct df_lockfile locked = {0};
    struct df_err why = {0};
    m->module = module;
    if (df_lockfile_read(module, &locked, err) < 0)
        return -1;
    if (locked.len) {
        mirror_locked(m, &locked);
    } else if (mirror_required(m, module, &why) < 0) {
        m->failed++;
        df_cli_note("%s: failed: %s", module, why.message);
    }
    return 0;
}

/* ---- the command ---- */

static int read_platforms(const struct df_cli *cli, struct df_strs *ret, struct df_err *err)
{
    const char *platform;
    for (size_t i = 0; (platform = df_arg_nth(&cli->args, "platform", i)); i++) {
        if (!df_provider_is_platform(platform))
            return df_fail(err, DF_ERR_USER, "--platform: \"%.64s\" must be like linux_amd64",
                           platform);
        (void)df_strs_add_new(ret, platform);
    }
    if (!ret->len)
        (void)df_strs_add(ret, DF_PLATFORM);
    return df_strs_check(ret, err);
}

static int read_modules(const struct df_cli *cli, struct df_strs *ret, struct df_err *err)
{
    const char *module;
    for (size_t i = 1; (module = df_cli_word(cli, i)); i++)
        (void)df_strs_add(ret, module);
    if (!ret->len)
        (void)df_strs_add(ret, ".");
    return df_strs_check(ret, err);
}

static int begin(const struct df_cli *cli, struct mirroring *m, struct df_err *err)
{
    for (size_t i = 0; i < m->modules.len; i++)
        if (check_module(m->modules.items[i], err) < 0)
            return -1;
    if (read_platforms(cli, &m->platforms, err) < 0 ||
        df_mirror_tool_find(df_arg(&cli->args, "tool"), &m->tool, err) < 0 ||
        df_mirror_store_open(df_cli_word(cli, 0), &m->store, err) < 0)
        return -1;
    return df_check_alloc(m->into = df_fs_join(m->store.stage, "into"), err);
}

static int print_summary(const struct mirroring *m, struct df_err *err)
{
    return df_cli_printf(err, "%s: %lld added, %lld there, %lld failed, %.1f MiB\n",
                         m->store.directory, (long long)m->added, (long long)m->there,
                         (long long)m->failed, (double)m->bytes / (double)DF_MIB);
}

int df_cmd_mirror(struct df_cli *cli, struct df_err *err)
{
    DF_CLEANUP(mirroring_free) struct mirroring m = {.store = DF_MIRROR_STORE_NONE};
    if (read_modules(cli, &m.modules, err) < 0 || begin(cli, &m, err) < 0)
        return -1;
    for (size_t i = 0; i < m.modules.len; i++)
        if (mirror_module(&m, m.modules.items[i], err) < 0)
            return -1;
    if (print_summary(&m, err) < 0)
        return -1;
    return m.failed ? DF_EXIT_FAILURE : DF_EXIT_OK;
}
