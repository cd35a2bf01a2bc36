#include "spawner/cli/widen.h"

#include "spawner/cli/reach.h"

int df_widen_source(const struct df_cli *cli, const cJSON *source, cJSON **ret, char **ret_why,
                    struct df_err *err)
{
    const struct df_config *config = df_connection_shell(cli->server);
    if (df_reach_widen(source, ret, ret_why, err) < 0)
        return -1;
    bool is_strict = config && df_streq(config->isolation, "strict");
    if (!*ret || (config && !is_strict))
        return 0;
    const char *url = df_json_str(*ret, "url");
    return df_fail(
        err, DF_ERR_USER,
        "the module names %s, which is outside of what is copied, and %s: if it may have "
        "all of %s, say %s --folder %s",
        *ret_why,
        is_strict ? "with engine.local.isolation: strict it sees nothing else"
                  : "a service adds nothing to it by itself",
        url, url + strlen("file://"), df_json_str(*ret, "folder"));
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
