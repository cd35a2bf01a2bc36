/* dayfly version: prints dayfly's version, and the server's if one is named. */
#include "spawner/cli/commands.h"

int df_cmd_version(struct df_cli *cli, struct df_err *err)
{
    DF_JSON cJSON *server = NULL;
    bool named = df_arg_given(&cli->args, "server") || !df_str_empty(getenv("DAYFLY_SERVER"));
    if (named && df_cli_call(cli, "GET", "/v1/version", NULL, &server, err) < 0)
        return -1;
    if (df_cli_output(cli)[0]) {
        DF_JSON cJSON *doc = df_json_object(DF_STR("version", DF_VERSION));
        if (df_check_alloc(doc, err) < 0 ||
            (server && df_json_add(doc, "server", DF_TAKE(server), err) < 0))
            return -1;
        return df_cli_print_json(cli, doc, err);
    }
    const char *theirs = df_json_str(server, "version");
    DF_FREE char *text = theirs ? df_strf("dayfly " DF_VERSION "\nserver %s\n", theirs)
                                : strdup("dayfly " DF_VERSION "\n");
    return df_cli_print(text, err);
}
