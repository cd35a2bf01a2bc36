#include "spawner/cli/widen.h"

#include "spawner/cli/reach.h"

static int refuse(const struct df_reach *reach, bool is_strict, struct df_err *err)
{
    const char *url = df_json_str(reach->source, "url");
    return df_fail(err, DF_ERR_USER,
                   "the module calls %s, which is outside of what is copied, and %s: if it may "
                   "have all of %s, "
                   "say %s --folder %s",
                   reach->why,
                   is_strict ? "with engine.local.isolation: strict it sees nothing else"
                             : "a service adds nothing to it by itself",
                   url, url + strlen("file://"), df_json_str(reach->source, "folder"));
}

/* Said before the tool fails for it, which names neither the directory nor the way out. */
static void say_left(const struct df_reach *reach)
{
    df_cli_note("the module names %s, which does not come along%s%s: if it is a file that the "
                "module reads, %s`dayfly run %s --folder %s` takes all of that directory",
                reach->left,
                reach->left_fault ? ", because the smallest directory with both is " : "",
                reach->left_fault ? reach->left_fault : "",
                reach->left_fault ? "move both into a directory of their own; " : "",
                reach->left_top, reach->left_folder);
}

int df_widen_source(const struct df_cli *cli, const cJSON *source, cJSON **ret, char **ret_why,
                    struct df_err *err)
{
    DF_REACH struct df_reach reach = {0};
    const struct df_config *config = df_connection_shell(cli->server);
    bool is_strict = config && df_streq(config->isolation, "strict");
    bool guess = config && !is_strict;
    if (df_reach_widen(source, guess, &reach, err) < 0)
        return -1;
    if (reach.source && !guess)
        return refuse(&reach, is_strict, err);
    if (reach.left)
        say_left(&reach);
    *ret = DF_TAKE(reach.source);
    *ret_why = DF_TAKE(reach.why);
    return 0;
}

int df_widen_executor(struct df_cli *cli, const cJSON *executor, struct df_err *err)
{
    const char *name = df_json_str(executor, "metadata.name");
    DF_JSON cJSON *wide = NULL, *patch = cJSON_CreateObject();
    DF_FREE char *why = NULL, *path = df_path("executors", name, NULL);
    cJSON *spec = patch ? df_json_object_at(patch, "spec") : NULL;
    if (!spec || !path)
        return df_fail_oom(err);
    if (df_widen_source(cli, df_json_at(executor, "spec.source"), &wide, &why, err) < 0)
        return -1;
    if (!wide)
        return 0;
    const char *url = df_json_str(wide, "url"), *folder = df_json_str(wide, "folder");
    DF_FREE char *line = df_strf("executor %s changed: the module names %s, so its source is %s, "
                                 "folder %s",
                                 name, why, url, folder);
    if (!line)
        return df_fail_oom(err);
    if (df_json_add(spec, "source", cJSON_Duplicate(wide, true), err) < 0 ||
        df_cli_call(cli, "PATCH", path, patch, NULL, err) < 0)
        return -1;
    df_cli_note("%s", line);
    return 0;
}
