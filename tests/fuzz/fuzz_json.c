/*
 * fuzz_json - the JSON reader and printer.
 *
 * Held: what is read is printed and read again as the same tree, in both forms; cJSON's own, more
 * generous reader sees the same tree; the text is YAML, too. NUL in strings of others stays.
 */
#include "common/base/parse.h"
#include "common/json/json.h"
#include "common/yaml/yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must_read_as(const char *text, const cJSON *expected)
{
    DF_JSON cJSON *again = NULL;
    if (df_json_parse(text, strlen(text), &again, NULL) < 0 || !df_json_equal(expected, again))
        abort();
}

static bool has_raw(const cJSON *j)
{
    if (cJSON_IsRaw(j))
        return true;
    for (const cJSON *c = j->child; c; c = c->next)
        if (has_raw(c))
            return true;
    return false;
}

/* libyaml gives up on keys beyond 1024 bytes, so that only short texts are compared. */
static void must_be_yaml(const char *text, const cJSON *expected)
{
    DF_JSON cJSON *again = NULL;
    if (strlen(text) > 500)
        return;
    if (df_yaml_parse(text, strlen(text), &again, NULL, NULL) < 0 ||
        !df_json_equal(expected, again))
        abort();
}

/* With NUL in strings, as others write them. */
static void must_go_around(const char *data, size_t size)
{
    DF_JSON cJSON *j = NULL, *again = NULL;
    if (df_json_parse_nul(data, size, &j, NULL) < 0)
        return;
    DF_FREE char *text = df_json_print_nul(j), *plain = df_json_print(j);
    if (!text || !plain || df_json_parse_nul(text, strlen(text), &again, NULL) < 0 ||
        !df_json_equal(j, again) || !df_is_utf8(plain, strlen(plain)))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    must_go_around((const char *)data, size);
    struct df_err err = {0};
    DF_JSON cJSON *j = NULL;
    if (df_json_parse((const char *)data, size, &j, &err) < 0) {
        if (!err.message[0] || err.cls != DF_ERR_USER)
            abort();
        return 0;
    }
    DF_FREE char *text = df_json_print(j), *pretty = df_json_print_pretty(j);
    if (!text || !pretty)
        abort();
    must_read_as(text, j);
    must_read_as(pretty, j);
    must_be_yaml(text, j);
    DF_JSON cJSON *generous = cJSON_ParseWithLength((const char *)data, size);
    if (!generous || (!has_raw(j) && !df_json_equal(j, generous)))
        abort();
    return 0;
}
