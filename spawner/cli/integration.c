/* dayfly integration test: the service asks the provider. */
#include "spawner/cli/commands.h"

static int print_result(const struct df_cli *cli, const char *name, const cJSON *result,
                        struct df_err *err)
{
    const char *message = df_json_str(result, "message");
    if (*df_cli_output(cli))
        return df_cli_print_json(cli, result, err);
    DF_FREE char *line = df_strf("integration/%s: %s\n", name, message ? message : "");
    return line ? df_cli_print(line, err) : df_fail_oom(err);
}

int df_cmd_integration_test(struct df_cli *cli, struct df_err *err)
{
    const char *name = NULL;
    DF_JSON cJSON *result = NULL;
    if (df_cli_name(cli, 0, "integration", &name, err) < 0)
        return -1;
    DF_FREE char *path = df_path("integrations", name, "test", NULL);
    if (!path)
        return df_fail_oom(err);
    if (df_cli_call(cli, "POST", path, NULL, &result, err) < 0)
        return -1;
    return print_result(cli, name, result, err);
}
