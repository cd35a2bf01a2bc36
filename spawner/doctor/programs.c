/*
 * programs.c - checks of the programs that a step on this machine needs. A step of the engine `job`
 * uses those of its image.
 */
#include "common/base/fs.h"
#include "common/process/process.h"
#include "spawner/doctor/checks.h"

static bool is_program(const char *directory, size_t n, const char *name)
{
    DF_FREE char *path = df_strf("%.*s/%s", (int)n, directory, name);
    return path && access(path, X_OK) == 0;
}

static bool is_in_path(const char *name)
{
    const char *path = getenv("PATH");
    DF_FREE char *found = path ? df_process_which(name, path) : NULL;
    return found != NULL;
}

static bool is_local(const struct df_doctor_context *p)
{
    return p->config.runs_here;
}

int df_check_runner(struct df_doctor_context *p, struct df_err *err)
{
    if (!is_local(p))
        return 0;
    DF_FREE char *runner = df_config_runner(&p->config);
    if (!runner || access(runner, X_OK) < 0)
        return df_fail(
            err, DF_ERR_USER,
            "%s cannot be executed, and every step needs it: install it beside dayfly, or set "
            "runner.path",
            runner ? runner : "dayfly-runner");
    df_finding(p, DF_LEVEL_OK, "%s can be executed", runner);
    return 0;
}

static bool has_tool(const struct df_config *c, const char *name)
{
    for (size_t i = 0; i < c->tool_directories.len; i++)
        if (is_program(c->tool_directories.items[i], strlen(c->tool_directories.items[i]), name))
            return true;
    return is_in_path(name);
}

bool df_has_local_tool(const struct df_doctor_context *p)
{
    return has_tool(&p->config, "tofu") || has_tool(&p->config, "terraform");
}

int df_check_local_tool(struct df_doctor_context *p, struct df_err *err)
{
    const struct df_config *c = &p->config;
    bool tofu = has_tool(c, "tofu"), terraform = has_tool(c, "terraform");
    if (!is_local(p))
        return 0;
    if (tofu || terraform)
        df_finding(p, DF_LEVEL_OK, "steps find %s%s%s", tofu ? "tofu" : "",
                   tofu && terraform ? " and " : "", terraform ? "terraform" : "");
    else if (c->tool_index_opentofu || c->tool_index_terraform)
        df_finding(p, DF_LEVEL_OK, "neither tofu nor terraform is installed; a step downloads one");
    else
        return df_fail(
            err, DF_ERR_USER,
            "neither tofu nor terraform is in tools.directories or PATH: install one, or "
            "set tools.index.opentofu");
    return 0;
}

/* Only steps with a repository as their source need them, so their absence is a warning. */
int df_check_git(struct df_doctor_context *p, struct df_err *err)
{
    (void)err;
    if (!is_local(p))
        return 0;
    if (!is_in_path("git"))
        df_finding(p, DF_LEVEL_WARN,
                   "git is not in PATH: runs from repositories fail; install git");
    else if (!is_in_path("ssh"))
        df_finding(p, DF_LEVEL_WARN, "ssh is not in PATH: runs from ssh:// repositories fail");
    else
        df_finding(p, DF_LEVEL_OK, "git and ssh are in PATH");
    return 0;
}

/* The same rule as that of the start (open_engines.c). */
static int find_no_wall(struct df_doctor_context *p, const char *why, struct df_err *err)
{
    const struct df_config *c = &p->config;
    if (df_streq(c->isolation, "strict") || df_config_has_callers(c))
        return df_fail(err, DF_ERR_USER,
                       "engine.local.isolation: %s is not possible here: %s; allow user "
                       "namespaces, or set it to none",
                       c->isolation, why);
    df_finding(p, DF_LEVEL_WARN,
               "engine.local.isolation: auto, and steps are not isolated: %s; allow user "
               "namespaces, or a module reads what this user reads",
               why);
    return 0;
}

int df_check_isolation(struct df_doctor_context *p, struct df_err *err)
{
    const char *mode = p->config.isolation;
    struct df_err why = {0};
    size_t hidden = 0;
    if (!is_local(p))
        return 0;
    if (df_streq(mode, "none")) {
        df_finding(p, DF_LEVEL_WARN,
                   "engine.local.isolation: none: a module reads what this user reads, also the "
                   "secrets and states of all executors");
        return 0;
    }
    if (df_wall_probe(&why) < 0)
        return find_no_wall(p, why.message, err);
    if (df_doctor_try_wall(&p->config, &hidden, err) < 0)
        return df_err_wrap(err, "engine.local.isolation: %s was tried as a step has it", mode);
    df_finding(p, DF_LEVEL_OK,
               "engine.local.isolation: %s, tried as a step has it: %zu places with data, keys and "
               "tokens are hidden, and so is every other process",
               mode, hidden);
    return 0;
}
