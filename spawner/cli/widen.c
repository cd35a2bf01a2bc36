#include "spawner/cli/widen.h"

#include "common/base/fs.h"
#include "spawner/cli/reach.h"

static const char file_scheme[] = "file://";

static int refuse(const struct df_reach *reach, const char *name, bool is_strict,
                  struct df_err *err)
{
    const char *url = df_json_str(reach->source, "url");
    return df_fail(err, DF_ERR_USER,
                   "the module calls %s, which is outside of what is copied, and %s: if it may "
                   "have all of %s, "
                   "say %s --folder %s --name %s",
                   reach->why,
                   is_strict ? "with engine.local.isolation: strict it sees nothing else"
                             : "a service adds nothing to it by itself",
                   url, url + strlen(file_scheme), df_json_str(reach->source, "folder"), name);
}

/* Said before the tool fails for it, which names neither the directory nor the way out. A home
 * directory is no way out: it has the data directory, which no step may see. */
static void say_left(const struct df_reach *reach, const char *name)
{
    static const char what[] = "does not come along";
    if (reach->left_fault)
        df_cli_note(
            "the module names %s, which %s, because the smallest directory with both is %s: "
            "if it is a file that the module reads, move both into a directory of their own",
            reach->left, what, reach->left_fault);
    else
        df_cli_note("the module names %s, which %s: if it is a file that the module reads, `dayfly "
                    "run %s --folder %s --name %s` takes all of that directory",
                    reach->left, what, reach->left_top, reach->left_folder, name);
}

int df_widen_source(const struct df_cli *cli, const char *name, const cJSON *source, cJSON **ret,
                    char **ret_why, struct df_err *err)
{
    DF_REACH struct df_reach reach = {0};
    const struct df_config *config = df_connection_shell(cli->server);
    bool is_strict = config && df_streq(config->isolation, "strict");
    bool guess = config && !is_strict;
    if (df_reach_widen(source, guess, &reach, err) < 0)
        return -1;
    if (reach.source && !guess)
        return refuse(&reach, name, is_strict, err);
    if (reach.left)
        say_left(&reach, name);
    *ret = DF_TAKE(reach.source);
    *ret_why = DF_TAKE(reach.why);
    return 0;
}

/* True if a directory that was named has the executor's own one, and more. Both are of one
 * module. */
static bool is_wider(const cJSON *named, const cJSON *own)
{
    const char *one = df_json_str(named, "url"), *other = df_json_str(own, "url");
    return df_streq(df_json_str(named, "kind"), "directory") &&
           df_streq(df_json_str(own, "kind"), "directory") && df_starts_with(one, file_scheme) &&
           df_starts_with(other, file_scheme) && !df_streq(one, other) &&
           df_fs_is_within(other + strlen(file_scheme), one + strlen(file_scheme));
}

/* *ret: NULL: the executor's source is wide enough. *ret_why: NULL: somebody named it. */
static int find_wider(struct df_cli *cli, const cJSON *executor, const cJSON *named, cJSON **ret,
                      char **ret_why, struct df_err *err)
{
    const cJSON *own = df_json_at(executor, "spec.source");
    const char *name = df_json_str(executor, "metadata.name");
    if (!named || !is_wider(named, own))
        return df_widen_source(cli, name, own, ret, ret_why, err);
    DF_JSON cJSON *again = NULL;
    if (df_widen_source(cli, name, named, &again, ret_why, err) < 0)
        return -1;
    return df_check_alloc(*ret = again ? DF_TAKE(again) : cJSON_Duplicate(named, true), err);
}

int df_widen_executor(struct df_cli *cli, const cJSON *executor, const cJSON *named,
                      struct df_err *err)
{
    const char *name = df_json_str(executor, "metadata.name");
    DF_JSON cJSON *wide = NULL, *patch = cJSON_CreateObject();
    DF_FREE char *why = NULL, *path = df_path("executors", name, NULL);
    cJSON *spec = df_json_object_at(patch, "spec");
    if (df_check_alloc(spec, err) < 0 || df_check_alloc(path, err) < 0 ||
        find_wider(cli, executor, named, &wide, &why, err) < 0)
        return -1;
    if (!wide)
        return 0;
    const char *url = df_json_str(wide, "url"), *folder = df_json_str(wide, "folder");
    DF_FREE char *line =
        df_strf("executor %s changed: %s%s%sits source is %s, folder %s", name,
                why ? "the module names " : "", why ? why : "", why ? ", so " : "", url, folder);
    if (df_check_alloc(line, err) < 0 ||
        df_json_add(spec, "source", cJSON_Duplicate(wide, true), err) < 0 ||
        df_cli_call(cli, "PATCH", path, patch, NULL, err) < 0)
        return -1;
    df_cli_note("%s", line);
    return 0;
}
