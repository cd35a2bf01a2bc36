/* dayfly integration test: the service asks the provider. */
#include "spawner/cli/commands.h"

static int print_result(const struct df_cli *cli, const char *name, const cJSON *result,
                        struct df_err *err)
{
    const char *message = df_json_str(result, "message");
    if (*df_cli_output(cli))
        return df_cli_print_json(cli, result, err);
    return df_cli_printf(err, "integration/%s: %s\n", name, message ? message : "");
}

int df_cmd_integration_test(struct df_cli *cli, struct df_err *err)
{
    const char *name = NULL;
    DF_JSON cJSON *result = NULL;
    if (df_cli_name(cli, 0, "integration", &name, err) < 0)
        return -1;
    DF_FREE char *path = df_path("integrations", name, "test", NULL);
    if (df_cli_call(cli, "POST", path, NULL, &result, err) < 0)
        return -1;
    return print_result(cli, name, result, err);
}
