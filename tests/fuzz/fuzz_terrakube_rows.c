/*
 * fuzz_terrakube_rows - what the tool prints, on its way to Terrakube's UI. Input: JSON lines; each
 * is an event, a plan, a state and the outputs, one after the other.
 *
 * Held: whatever a plan marks as sensitive as a whole is not in its rows, nor is a sensitive
 * output.
 */
#include "runner/terrakube/rows.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_outputs(const cJSON *document)
{
    DF_JSON cJSON *list = df_rows_outputs(document);
    const cJSON *output;
    cJSON_ArrayForEach (output, list) {
        if (df_json_bool(output, "sensitive", false) &&
            !cJSON_IsNull(cJSON_GetObjectItemCaseSensitive(output, "value")))
            abort();
    }
}

static void check_rows(const struct df_rows *r)
{
    const cJSON *row;
    cJSON_ArrayForEach (row, r->rows) {
        const cJSON *after = cJSON_GetObjectItemCaseSensitive(row, "after");
        if (!df_json_str(row, "address") && !cJSON_GetObjectItemCaseSensitive(row, "address"))
            abort();
        if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(row, "afterSensitive")) && after &&
            !cJSON_IsNull(after))
            abort();
    }
}

static void take(struct df_rows *r, const char *line, size_t n)
{
    DF_JSON cJSON *document = NULL;
    if (df_json_parse(line, n, &document, NULL) < 0)
        return;
    (void)df_rows_event(r, document);
    df_rows_plan(r, document);
    df_rows_state(r, document);
    check_outputs(document);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct df_rows r;
    if (df_rows_init(&r, NULL) < 0)
        abort();
    for (size_t at = 0; at < size;) {
        const uint8_t *end = memchr(data + at, '\n', size - at);
        size_t n = end ? (size_t)(end - data) - at : size - at;
        take(&r, (const char *)data + at, n);
        at += n + 1;
    }
    check_rows(&r);
    df_rows_free(&r);
    return 0;
}
