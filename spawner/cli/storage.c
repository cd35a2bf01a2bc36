/* dayfly storage usage: how much states, plans, logs and the rest take. */
#include "spawner/cli/commands.h"

static const char *const kinds[] = {"states", "plans", "logs", "outputs", "documents", "audit"};
enum { OF_EXECUTOR = 5 }; /* the audit trail is nobody's */

static void add_row(struct df_table *t, const char *name, const cJSON *row)
{
    df_table_add(t, name);
    for (size_t i = 0; i < OF_EXECUTOR; i++) {
        const cJSON *amount = cJSON_GetObjectItemCaseSensitive(row, kinds[i]);
        char size[DF_SHORT_TEXT], cell[2 * DF_SHORT_TEXT];
        (void)snprintf(cell, sizeof(cell), "%lld, %s", (long long)df_json_int(amount, "count", 0),
                       df_text_bytes(df_json_int(amount, "bytes", 0), size));
        df_table_add(t, cell);
    }
}

static void add_line(struct df_buf *out, const char *what, const cJSON *amount)
{
    char size[DF_SHORT_TEXT];
    if (amount)
        (void)df_buf_addf(out, "%s: %lld, %s\n", what, (long long)df_json_int(amount, "count", 0),
                          df_text_bytes(df_json_int(amount, "bytes", 0), size));
}

static int print_usage(struct df_cli *cli, const cJSON *doc, bool of_one, struct df_err *err)
{
    struct df_table_shape shape = df_cli_table_shape(cli);
    DF_TABLE struct df_table t = {.columns = 1 + OF_EXECUTOR, .shape = &shape};
    DF_BUF struct df_buf out = DF_BUF_INIT(DF_LIMIT_HTTP_RESPONSE);
    static const char *const titles[] = {"EXECUTOR", "STATES",  "PLANS",
                                         "LOGS",     "OUTPUTS", "DOCUMENTS"};
    const cJSON *row;
    for (size_t i = 0; i < DF_ARRAY_SIZE(titles); i++)
        df_table_add(&t, titles[i]);
    cJSON_ArrayForEach (row, df_json_at(doc, "executors"))
        add_row(&t, df_json_str(row, "name"), row);
    if (!of_one)
        add_row(&t, "(all)", df_json_at(doc, "total"));
    if (df_table_print(&t, 0, &out, err) < 0)
        return -1;
    (void)df_buf_adds(&out,
                      "OUTPUTS of a managed state, which has them itself, are copies with their "
                      "secrets masked.\n");
    if (!of_one) {
        add_line(&out, "Audit trail", df_json_at(doc, "total.audit"));
        add_line(&out, "Belong to nothing (dayfly gc --dry-run lists them)",
                 df_json_at(doc, "orphans"));
        add_line(&out, "Mirror of providers", df_json_at(doc, "providers"));
    }
    return df_buf_check(&out, err) < 0 ? -1 : df_cli_print(df_buf_str(&out), err);
}

int df_cmd_storage_usage(struct df_cli *cli, struct df_err *err)
{
    const char *name = NULL;
    DF_JSON cJSON *doc = NULL;
    if (df_cli_word(cli, 0) && df_cli_name(cli, 0, "executor", &name, err) < 0)
        return -1;
    DF_FREE char *path = df_strf("/v1/storage%s%s", name ? "?executor=" : "", name ? name : "");
    if (df_cli_call(cli, "GET", path, NULL, &doc, err) < 0)
        return -1;
    return df_cli_output(cli)[0] ? df_cli_print_json(cli, doc, err)
                                 : print_usage(cli, doc, name != NULL, err);
}
