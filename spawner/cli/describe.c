/* dayfly describe: one object in full, for people. */
#include "common/base/clock.h"
#include "spawner/cli/commands.h"
#include "spawner/cli/kinds.h"
#include "spawner/cli/text.h"
#include "spawner/cli/timeline.h"
#include "spawner/cli/unrecorded.h"

static int add_conditions(const cJSON *doc, struct df_buf *out, struct df_err *err)
{
    const cJSON *list = df_json_at(doc, "status.conditions"), *item = NULL;
    DF_TABLE struct df_table t = {.columns = 4};
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

static int add_steps(const cJSON *doc, struct df_buf *out, struct df_err *err)
{
    const cJSON *item = NULL;
    DF_TABLE struct df_table t = {.columns = 4};
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

/* What the asking person may do with an executor now. */
static int add_actions(struct df_cli *cli, const cJSON *doc, struct df_buf *out, struct df_err *err)
{
    DF_FREE char *path = df_path("executors", df_json_str(doc, "metadata.name"), "actions", NULL);
    DF_JSON cJSON *answer = NULL;
    if (!path)
        return df_fail_oom(err);
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
    if (df_shown_details(kind, doc, df_real_us(), out, err) < 0 || add_steps(doc, out, err) < 0 ||
        add_conditions(doc, out, err) < 0 || df_timeline_add(doc, out, err) < 0)
        return -1;
    df_unrecorded_add(doc, out);
    if (df_streq(kind->plural, "executors") && add_actions(cli, doc, out, err) < 0)
        return -1;
    return df_buf_check(out, err);
}

int df_cmd_describe(struct df_cli *cli, struct df_err *err)
{
    const struct df_shown *kind = NULL;
    DF_JSON cJSON *doc = NULL;
    if (df_shown_find(df_cli_word(cli, 0), &kind, err) < 0 ||
        df_cli_get(cli, kind, df_cli_word(cli, 1), &doc, err) < 0)
        return -1;
    DF_BUF struct df_buf out = DF_BUF_INIT(DF_LIMIT_HTTP_RESPONSE);
    if (describe(cli, kind, doc, &out, err) < 0)
        return -1;
    return df_cli_print(df_buf_str(&out), err);
}
