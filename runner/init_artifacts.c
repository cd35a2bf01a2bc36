/* The plan's side first, then the apply's. */
#include "runner/init_artifacts.h"

#include <dirent.h>
#include <fcntl.h>

#include "common/archive/pack.h"
#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/bundle/bundle.h"
#include "runner/init.h"
#include "runner/tofu/backend_noted.h"
#include "runner/tofu/packages.h"

#define MODULES ".terraform/modules"
#define PROVIDERS ".terraform/providers"

static const struct df_archive_limits modules_limits = {(int64_t)DF_LIMIT_MODULES,
                                                        DF_LIMIT_MODULES_ENTRIES};
/* The reader counts the archive's own headers, too: a few hundred bytes, rarely more, an entry. */
static const struct df_archive_limits archive_limits = {
    (int64_t)DF_LIMIT_MODULES + (int64_t)DF_LIMIT_MODULES_ENTRIES * 4096, DF_LIMIT_MODULES_ENTRIES};

void df_init_artifacts_free(struct df_init_artifacts *i)
{
    if (i->modules_fd >= 0)
        (void)close(i->modules_fd);
    if (i->backend_fd >= 0)
        (void)close(i->backend_fd);
    *i = DF_INIT_ARTIFACTS_NONE;
}

/* ---- the plan ---- */

static bool has_more_than(const char *dir, const char *name)
{
    int fd = df_fs_open_plain_dir(dir);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    bool more = false;
    for (const struct dirent *e; d && !more && (e = readdir(d));)
        more = e->d_name[0] != '.' && !df_streq(e->d_name, name);
    if (d)
        (void)closedir(d);
    else if (fd >= 0)
        (void)close(fd);
    return more;
}

static int keep_modules(const struct df_context *c, const char *modules, int *ret_fd,
                        struct df_err *err)
{
    DF_CLOSE int fd = -1;
    if (df_fs_unnamed(c->dirs->secret, &fd, err) < 0 ||
        df_archive_pack(modules, fd, &modules_limits, err) < 0)
        return -1;
    *ret_fd = DF_TAKE_FD(fd);
    return 0;
}

static int keep_backend(const struct df_context *c, int *ret_fd, struct df_err *err)
{
    DF_FREE char *path = df_fs_join(c->source.module_dir, DF_BACKEND_NOTE);
    DF_BUF struct df_buf note = DF_BUF_INIT(DF_LIMIT_DOCUMENT);
    DF_CLOSE int fd = -1;
    if (df_fs_read_plain(path, &note, err) < 0 || df_fs_unnamed(c->dirs->secret, &fd, err) < 0 ||
        df_fs_write_all(fd, df_buf_str(&note), note.len, err) < 0)
        return -1;
    *ret_fd = DF_TAKE_FD(fd);
    return 0;
}

/* In its new directory an apply needs an `init` only for provider plugins, fetched modules, and a
 * backend that `output` reads after it. The rest is kept for modules that read their own
 * directory. */
int df_init_artifacts_keep(struct df_context *c, struct df_init_artifacts *ret, struct df_err *err)
{
    DF_FREE char *providers = df_fs_join(c->source.module_dir, PROVIDERS);
    DF_FREE char *modules = df_fs_join(c->source.module_dir, MODULES);
    if (!providers || !modules)
        return df_fail_oom(err);
    bool is_fetched = has_more_than(modules, "modules.json");
    bool has_backend = !df_workspace_is_managed(c->doc);
    bool has_modules = df_fs_exists(modules);
    bool is_noted = keep_backend(c, &ret->backend_fd, NULL) == 0;
    c->has_plugins = df_fs_exists(providers);
    ret->is_needed = c->has_plugins || is_fetched || has_backend;
    ret->is_restorable = (is_noted || !has_backend) &&
                         (!has_modules || keep_modules(c, modules, &ret->modules_fd, NULL) == 0);
    return 0;
}

/* ---- the apply ---- */

static bool has_part(const cJSON *header, const char *name)
{
    const cJSON *part;
    cJSON_ArrayForEach (part, df_json_at(header, "parts")) {
        if (df_streq(df_json_str(part, "name"), name))
            return true;
    }
    return false;
}

static int restore_modules(const struct df_context *c, int bundle, struct df_err *err)
{
    DF_FREE char *archive = df_fs_join(c->dirs->secret, "modules");
    DF_FREE char *modules = df_fs_join(c->source.module_dir, MODULES);
    DF_CLOSE int fd = -1;
    if (df_check_alloc(archive, err) < 0 || df_check_alloc(modules, err) < 0 ||
        df_bundle_extract(bundle, "modules", archive, err) < 0 ||
        df_fs_open_plain(archive, O_RDONLY, 0, &fd, err) < 0 ||
        df_fs_mkdirs(modules, 0755, err) < 0)
        return -1;
    return df_archive_unpack(fd, modules, false, &archive_limits, err);
}

static int restore_backend(const struct df_context *c, int bundle, struct df_err *err)
{
    DF_FREE char *note = df_fs_join(c->source.module_dir, DF_BACKEND_NOTE);
    if (!note)
        return df_fail_oom(err);
    return df_bundle_extract(bundle, "backend", note, err) < 0
               ? -1
               : df_backend_noted_check(c->doc, c->source.module_dir, err);
}

/* Where the providers that the plan installed in this pod wait for their apply. The caller frees;
 * NULL: no memory. */
static char *installed_providers(const struct df_context *c)
{
    return df_fs_join(c->dirs->secret, "providers");
}

void df_init_artifacts_keep_providers(const struct df_context *c)
{
    DF_FREE char *from = df_fs_join(c->source.module_dir, PROVIDERS);
    DF_FREE char *to = installed_providers(c);
    if (from && to)
        (void)rename(from, to);
}

static int link_packages(struct df_context *c, int *ret, struct df_err *err)
{
    DF_FREE char *installed = installed_providers(c);
    if (!installed)
        return df_fail_oom(err);
    return df_packages_link(c->source.module_dir, installed, df_json_at(c->doc, "providers"),
                            &c->plugin_uses, ret, err);
}

static int restore_data(const struct df_context *c, const cJSON *header, int bundle,
                        struct df_err *err)
{
    DF_FREE char *data = df_fs_join(c->source.module_dir, ".terraform");
    if (!data)
        return df_fail_oom(err);
    return df_fs_mkdirs(data, 0755, err) < 0 ||
                   (has_part(header, "modules") && restore_modules(c, bundle, err) < 0) ||
                   (has_part(header, "backend") && restore_backend(c, bundle, err) < 0)
               ? -1
               : 0;
}

static int restore_all(struct df_context *c, const cJSON *header, int bundle, int *ret_packages,
                       struct df_err *err)
{
    if (!df_json_bool(header, "restorable", false))
        return df_fail(err, DF_ERR_NOT_FOUND, "the plan's modules are not in its bundle");
    if (restore_data(c, header, bundle, err) < 0)
        return -1;
    *ret_packages = 0;
    return has_part(header, "lock") ? link_packages(c, ret_packages, err) : 0;
}

/* Whatever is half restored would be in the way of `init`. */
static int init_again(struct df_context *c, const char *why, struct df_err *err)
{
    DF_FREE char *data = df_fs_join(c->source.module_dir, ".terraform");
    if (!data)
        return df_fail_oom(err);
    (void)df_output_note(c->output, "dayfly: init again: %s", why);
    c->has_plugins = true; /* perhaps */
    return df_fs_remove_tree(data, err) < 0 ? -1 : df_init(c, true, err);
}

int df_init_artifacts_restore(struct df_context *c, const cJSON *header, int fd, struct df_err *err)
{
    struct df_err why = {0};
    int packages = 0;
    if (!df_json_bool(header, "needsInit", true))
        return restore_data(c, header, fd, err);
    if (restore_all(c, header, fd, &packages, &why) < 0)
        return init_again(c, why.message, err);
    c->has_plugins = packages > 0;
    (void)df_output_note(c->output,
                         "dayfly: no init: what the plan's made is here (%d provider%s verified)",
                         packages, packages == 1 ? "" : "s");
    return 0;
}
