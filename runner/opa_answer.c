#include "runner/opa_answer.h"

/* {"errors": [{"message", "location": {"file", "row"}}]} or {"result": [{"expressions":
 * [{"value"}]}]} */
int df_opa_answer(const struct df_buf *out, const char *tail, int code, const char *query,
                  cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *answer = NULL;
    if (df_json_parse(df_buf_str(out), out->len, &answer, NULL) < 0)
        return df_fail(err, DF_ERR_USER, "opa ended with exit code %d and says %.400s", code, tail);
    const cJSON *error = df_json_at(answer, "errors") ? df_json_at(answer, "errors")->child : NULL;
    const char *file = df_json_str(error, "location.file"), *says = df_json_str(error, "message");
    if (error)
        return df_fail(err, DF_ERR_USER, "opa: %s (%s:%lld)", says ? says : "an error without text",
                       file ? file : "?", (long long)df_json_int(error, "location.row", 0));
    const cJSON *result = df_json_at(answer, "result");
    const cJSON *first = cJSON_IsArray(result) ? result->child : NULL;
    const cJSON *expressions = df_json_at(first, "expressions");
    cJSON *value = expressions && expressions->child
                       ? cJSON_GetObjectItemCaseSensitive(expressions->child, "value")
                       : NULL;
    if (code != 0)
        return df_fail(err, DF_ERR_USER, "opa ended with exit code %d: %.400s", code, tail);
    if (!cJSON_IsObject(value))
        return df_fail(err, DF_ERR_USER, "its rules have no package %s: nothing was evaluated",
                       df_starts_with(query, "data.") ? query + strlen("data.") : query);
    return df_check_alloc(*ret = cJSON_Duplicate(value, true), err);
}
