/* dayfly whoami: as whom the service sees the caller. */
#include "spawner/cli/commands.h"
#include "spawner/cli/token.h"

static void add_list(struct df_buf *out, const char *title, const cJSON *names)
{
    const cJSON *name;
    (void)df_buf_adds(out, title);
    cJSON_ArrayForEach (name, names)
        (void)df_buf_addf(out, "%s%s", name == names->child ? "" : ", ",
                          cJSON_IsString(name) ? name->valuestring : "");
    (void)df_buf_adds(out, cJSON_GetArraySize(names) ? "\n" : "-\n");
}

static void add_line(struct df_buf *out, const char *title, const char *value)
{
    (void)df_buf_addf(out, "%s%s\n", title, value ? value : "-");
}

/* What the token that was used has of all that. */
static void add_token(struct df_buf *out, const cJSON *token)
{
    if (!token)
        return;
    (void)df_buf_addf(out, "Token:     %s, until %s\n", df_json_text(token, "name"),
                      df_json_text(token, "expiresAt"));
    add_list(out, "Verbs:     ", df_json_at(token, "verbs"));
    (void)df_buf_adds(out, "Executors: ");
    df_token_executors(token, out);
    (void)df_buf_adds(out, "\n");
}

int df_cmd_whoami(struct df_cli *cli, struct df_err *err)
{
    DF_JSON cJSON *doc = NULL;
    DF_BUF struct df_buf out = DF_BUF_INIT(DF_LIMIT_HTTP_RESPONSE);
    if (df_cli_call(cli, "GET", "/v1/whoami", NULL, &doc, err) < 0)
        return -1;
    if (df_cli_output(cli)[0])
        return df_cli_print_json(cli, doc, err);
    add_line(&out, "Service:   ", df_client_address_of(cli->client)->url);
    add_line(&out, "Name:      ", df_json_str(doc, "name"));
    add_line(&out, "Role:      ", df_json_str(doc, "role"));
    add_line(&out, "Known by:  ", df_json_str(doc, "knownBy"));
    add_list(&out, "Groups:    ", df_json_at(doc, "groups"));
    add_list(&out, "Grants:    ", df_json_at(doc, "grants"));
    add_token(&out, df_json_at(doc, "token"));
    return df_buf_check(&out, err) < 0 ? -1 : df_cli_print_safe(df_buf_str(&out), err);
}
