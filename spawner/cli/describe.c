/* dayfly describe: all details of an object, as text. */
#include "common/base/clock.h"
#include "spawner/cli/commands.h"
#include "spawner/cli/named.h"
#include "spawner/cli/policies.h"
#include "spawner/cli/text.h"
#include "spawner/cli/timeline.h"
#include "spawner/cli/unrecorded.h"

static int add_conditions(const struct df_cli *cli, const cJSON *doc, struct df_buf *out,
                          struct df_err *err)
{
    const cJSON *list = df_json_at(doc, "status.conditions"), *item = NULL;
    struct df_table_shape shape = df_cli_text_shape(cli);
    DF_TABLE struct df_table t = {.columns = 4, .shape = &shape};
    cJSON_ArrayForEach (item, list) {
        df_table_add(&t, df_json_str(item, "type"));
        df_table_add(&t, df_json_str(item, "status"));
        df_table_add(&t, df_json_str(item, "reason"));
        df_table_add(&t, df_json_str(item, "message"));
    }
    if (!t.cells.len)
        return 0;
    (void)df_buf_adds(out, "\nConditions:\n");
    return df_table_print(&t, 2, out, err);
}

static int add_steps(const struct df_cli *cli, const cJSON *doc, struct df_buf *out,
                     struct df_err *err)
{
    const cJSON *item = NULL;
    struct df_table_shape shape = df_cli_table_shape(cli);
    DF_TABLE struct df_table t = {.columns = 4, .shape = &shape};
    cJSON_ArrayForEach (item, df_json_at(doc, "status.steps")) {
        char took[DF_SHORT_TEXT];
        int64_t us = df_text_span(item, "startedAt", "finishedAt", df_real_us());
        df_table_add(&t, df_json_str(item, "name"));
        df_table_add(&t, df_json_str(item, "phase"));
        df_table_add(&t, us < 0 ? NULL : df_text_duration(us, took));
        df_table_add(&t, df_json_str(item, "taskAction"));
    }
    if (!t.cells.len)
        return 0;
    (void)df_buf_adds(out, "\nSteps:\n");
    return df_table_print(&t, 2, out, err);
}

/* The actions that the caller is allowed to request for an executor now. */
static int add_actions(struct df_cli *cli, const cJSON *doc, struct df_buf *out, struct df_err *err)
{
    DF_FREE char *path = df_path("executors", df_json_str(doc, "metadata.name"), "actions", NULL);
    DF_JSON cJSON *answer = NULL;
    if (df_cli_call(cli, "GET", path, NULL, &answer, err) < 0)
        return -1;
    const cJSON *list = df_json_at(answer, "items"), *item = NULL;
    (void)df_buf_adds(out, "\nYou may:");
    cJSON_ArrayForEach (item, list) {
        if (cJSON_IsString(item))
            (void)df_buf_addf(out, " %s", item->valuestring);
    }
    (void)df_buf_adds(out, cJSON_GetArraySize(list) ? "\n" : " nothing now\n");
    return 0;
}

static int describe(struct df_cli *cli, const struct df_shown *kind, const cJSON *doc,
                    struct df_buf *out, struct df_err *err)
{
    if (df_shown_details(kind, doc, df_real_us(), df_cli_text_shape(cli), out, err) < 0 ||
        add_steps(cli, doc, out, err) < 0)
        return -1;
    df_policies_show(doc, out);
    if (add_conditions(cli, doc, out, err) < 0 ||
        df_timeline_add(doc, df_cli_text_shape(cli), out, err) < 0)
        return -1;
    df_unrecorded_add(doc, out);
    if (df_streq(kind->plural, "executors") && add_actions(cli, doc, out, err) < 0)
        return -1;
    return df_buf_check(out, err);
}

static int describe_all(struct df_cli *cli, const struct df_named *named, size_t count,
                        struct df_err *err)
{
    DF_BUF struct df_buf out = DF_BUF_INIT(DF_LIMIT_HTTP_RESPONSE);
    for (size_t i = 0; i < count; i++) {
        DF_JSON cJSON *doc = NULL;
        if (!named[i].name)
            return df_fail(err, DF_ERR_USER, "which %s? usage: dayfly describe %s",
                           named[i].kind->singular, cli->command->synopsis);
        if (df_cli_get(cli, named[i].kind, named[i].name, &doc, err) < 0)
            return -1;
        if (i)
            (void)df_buf_addc(&out, '\n');
        if (describe(cli, named[i].kind, doc, &out, err) < 0)
            return -1;
    }
    return df_cli_print(df_buf_str(&out), err);
}

int df_cmd_describe(struct df_cli *cli, struct df_err *err)
{
    struct df_named *named = NULL;
    size_t count = 0;
    if (df_named_parse(cli, cli->args.words, cli->args.word_count, &named, &count, err) < 0)
        return -1;
    int result = describe_all(cli, named, count, err);
    free(named);
    return result;
}
