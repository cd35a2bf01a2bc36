#include "spawner/cli/policies.h"

#include "spawner/cli/text.h"

static void add_result(const cJSON *result, struct df_buf *out)
{
    const cJSON *message;
    (void)df_buf_addf(out, "  %s (%s) %s\n", df_json_text(result, "name"),
                      df_json_text(result, "level"),
                      df_json_bool(result, "passed", false) ? "passed" : "failed");
    cJSON_ArrayForEach (message, df_json_at(result, "messages")) {
        const char *text = cJSON_GetStringValue(message);
        (void)df_buf_adds(out, "    ");
        df_text_safe(out, text ? text : "", text ? strlen(text) : 0);
        (void)df_buf_addc(out, '\n');
    }
}

void df_policies_show(const cJSON *doc, struct df_buf *out)
{
    const cJSON *result, *results = df_json_at(doc, "status.policies");
    if (cJSON_GetArraySize(results))
        (void)df_buf_adds(out, "\nPolicies:\n");
    cJSON_ArrayForEach (result, results)
        add_result(result, out);
}

void df_policies_count(const cJSON *results, struct df_buf *out)
{
    const cJSON *result;
    int all = cJSON_GetArraySize(results), failed = 0;
    cJSON_ArrayForEach (result, results)
        failed += !df_json_bool(result, "passed", false);
    if (failed)
        (void)df_buf_addf(out, "%d of %d failed", failed, all);
    else if (all)
        (void)df_buf_addf(out, "%d passed", all);
}
