/*
 * module.c - checks whether a run can use a module as it is: the module must have configuration,
 * and should have no state of its own.
 */
#include "common/base/fs.h"
#include "common/hcl/hcl.h"
#include "spawner/doctor/checks.h"

#define REMEDIES                                                                                   \
    "a run asks for `--storage module` (its backend is used unchanged) or for adoption "           \
    "(`dayfly state push`)"

static bool selects_workspace(const char *path)
{
    DF_BUF struct df_buf name = DF_BUF_INIT(256);
    if (df_fs_read(path, &name, NULL) < 0)
        return false;
    size_t n = strcspn(df_buf_str(&name), " \r\n");
    return n > 0 && !(n == strlen("default") && strncmp(df_buf_str(&name), "default", n) == 0);
}

/* A file or directory by which the tool finds a state that is not dayfly's; the caller frees. NULL:
 * there is none, or out of memory. */
static char *find_state(const char *module)
{
    static const char *const names[] = {"terraform.tfstate", "terraform.tfstate.d",
                                        ".terraform/terraform.tfstate"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(names); i++) {
        DF_FREE char *path = df_fs_join(module, names[i]);
        if (path && df_fs_exists(path))
            return DF_TAKE(path);
    }
    DF_FREE char *selected = df_fs_join(module, ".terraform/environment");
    return selected && selects_workspace(selected) ? DF_TAKE(selected) : NULL;
}

static void check_state(struct df_doctor_context *p, const struct df_hcl_module *m)
{
    const struct df_hcl_block *b = df_hcl_backend(m);
    DF_FREE char *state = find_state(p->module);
    if (b)
        df_finding(p, DF_LEVEL_WARN,
                   "%s: the block `%s%s%s%s` in %s, line %u names a state: " REMEDIES, p->module,
                   b->type, b->labels.len ? " \"" : "", b->labels.len ? b->labels.items[0] : "",
                   b->labels.len ? "\"" : "", b->file, b->line);
    else if (state)
        df_finding(p, DF_LEVEL_WARN, "%s belongs to a state of the module's own: " REMEDIES, state);
    else
        df_finding(p, DF_LEVEL_OK, "%s has configuration, and no state of its own", p->module);
}

int df_check_module(struct df_doctor_context *p, struct df_err *err)
{
    DF_HCL_MODULE struct df_hcl_module m = {0};
    if (!p->module)
        return 0;
    if (df_hcl_scan(p->module, DF_HCL_ANY, &m, err) < 0)
        return -1;
    if (!m.files)
        return df_fail(err, DF_ERR_USER,
                       "%s has no configuration (*.tf or *.tofu): name the directory of the module",
                       p->module);
    check_state(p, &m);
    return df_check_registries(p, &m, err);
}
