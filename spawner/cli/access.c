/* dayfly access: who may do what with an executor, and what somebody may do with which. */
#include "spawner/cli/commands.h"
#include "spawner/model/verbs.h"

/* "group net-team, token ci" */
static void add_to(struct df_table *t, const cJSON *to)
{
    static const char *const kinds[][2] = {{"users", "user"},
                                           {"groups", "group"},
                                           {"serviceAccounts", "service account"},
                                           {"tokens", "token"}};
    DF_BUF struct df_buf cell = DF_BUF_INIT(DF_LIMIT_DOCUMENT);
    const cJSON *name;
    for (size_t i = 0; i < DF_ARRAY_SIZE(kinds); i++) {
        cJSON_ArrayForEach (name, df_json_at(to, kinds[i][0]))
            (void)df_buf_addf(&cell, "%s%s %s", cell.len ? ", " : "", kinds[i][1],
                              cJSON_IsString(name) ? name->valuestring : "");
    }
    (void)df_buf_adds(&cell, df_json_text(to, "creator"));
    df_table_add(t, df_buf_str(&cell));
}

/* "all", "net, db" or "team=net, env=dev" */
static void add_on(struct df_table *t, const cJSON *on)
{
    DF_BUF struct df_buf cell = DF_BUF_INIT(DF_LIMIT_DOCUMENT);
    const cJSON *one, *way = on ? on->child : NULL;
    cJSON_ArrayForEach (one, way) {
        (void)df_buf_addf(&cell, "%s%s%s%s", cell.len ? ", " : "", one->string ? one->string : "",
                          one->string ? "=" : "", cJSON_IsString(one) ? one->valuestring : "");
    }
    if (df_json_at(on, "creator"))
        (void)df_buf_adds(&cell, "what they made");
    df_table_add(t, cJSON_IsTrue(way) ? "all" : df_buf_str(&cell));
}

static void add_row(struct df_table *t, const cJSON *row)
{
    const char *grant = df_json_str(row, "grant");
    DF_FREE char *by =
        df_strf("%s%s", grant ? "grant " : "", grant ? grant : df_json_text(row, "by"));
    char text[DF_VERBS_TEXT];
    df_verbs verbs = 0;
    const cJSON *verb;
    cJSON_ArrayForEach (verb, df_json_at(row, "verbs")) {
        verbs |= cJSON_IsString(verb) ? df_verb_parse(verb->valuestring) : 0;
    }
    df_table_add(t, by);
    df_table_add(t, df_verbs_say(verbs, text));
    add_on(t, cJSON_GetObjectItemCaseSensitive(row, "on"));
    add_to(t, cJSON_GetObjectItemCaseSensitive(row, "to"));
}

static int print_rows(struct df_cli *cli, const cJSON *doc, struct df_err *err)
{
    static const char *const titles[] = {"BY", "VERBS", "ON", "TO"};
    struct df_table_shape shape = df_cli_text_shape(cli);
    DF_TABLE struct df_table t = {.columns = DF_ARRAY_SIZE(titles), .shape = &shape};
    DF_BUF struct df_buf out = DF_BUF_INIT(DF_LIMIT_HTTP_RESPONSE);
    const cJSON *one;
    for (size_t i = 0; i < DF_ARRAY_SIZE(titles); i++)
        df_table_add(&t, titles[i]);
    cJSON_ArrayForEach (one, df_json_at(doc, "items"))
        add_row(&t, one);
    if (df_table_print(&t, 0, &out, err) < 0)
        return -1;
    cJSON_ArrayForEach (one, df_json_at(doc, "notes")) {
        if (cJSON_IsString(one))
            (void)df_buf_addf(&out, "%s\n", one->valuestring);
    }
    return df_buf_check(&out, err) < 0 ? -1 : df_cli_print_safe(df_buf_str(&out), err);
}

/* Without an executor and --of: what the caller has, as `dayfly whoami` says it. */
int df_cmd_access(struct df_cli *cli, struct df_err *err)
{
    const char *name = NULL, *of = df_arg(&cli->args, "of");
    DF_JSON cJSON *doc = NULL;
    DF_FREE char *escaped = df_url_escape(of ? of : "");
    if (df_cli_word(cli, 0) && df_cli_name(cli, 0, "executor", &name, err) < 0)
        return -1;
    if (!name && !of)
        return df_cmd_whoami(cli, err);
    DF_FREE char *path = escaped
                             ? df_strf("/v1/%s%s%saccess%s%s", name ? "executors/" : "",
                                       name ? name : "", name ? "/" : "", of ? "?of=" : "", escaped)
                             : NULL;
    if (df_cli_call(cli, "GET", path, NULL, &doc, err) < 0)
        return -1;
    return df_cli_output(cli)[0] ? df_cli_print_json(cli, doc, err) : print_rows(cli, doc, err);
}
