/*
 * fuzz_yaml - the YAML reader and printer.
 *
 * Held: what is read stays within the node budget; printed as YAML and as JSON it is read again as
 * the same tree; every value of the tree has a line.
 */
#include "common/base/limits.h"
#include "common/yaml/yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t count(const cJSON *j)
{
    size_t n = 1;
    for (const cJSON *c = j->child; c; c = c->next)
        n += count(c);
    return n;
}

/* Keys that would be read as steps of a path cannot be asked for. */
static void check_lines(const struct df_yaml_lines *lines, const cJSON *j)
{
    if (!df_yaml_line(lines, "") && !cJSON_IsNull(j))
        abort();
    for (const cJSON *c = j->child; c; c = c->next)
        if (c->string && *c->string && !strpbrk(c->string, ".[") && !df_yaml_line(lines, c->string))
            abort();
}

static void must_print_and_read_back(const cJSON *j)
{
    DF_FREE char *json = df_json_print(j), *yaml = df_yaml_print(j);
    DF_JSON cJSON *from_json = NULL, *from_yaml = NULL;
    if (!json || !yaml)
        abort();
    if (df_json_parse(json, strlen(json), &from_json, NULL) < 0 || !df_json_equal(j, from_json))
        abort();
    /* libyaml gives up on keys beyond 1024 bytes. */
    if (strlen(json) > 500)
        return;
    if (df_yaml_parse(yaml, strlen(yaml), &from_yaml, NULL, NULL) < 0 ||
        !df_json_equal(j, from_yaml))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    DF_JSON cJSON *j = NULL, *all = NULL;
    struct df_yaml_lines *lines = NULL;
    struct df_err err = {0};
    if (df_yaml_parse((const char *)data, size, &j, &lines, &err) == 0) {
        if (count(j) > DF_LIMIT_YAML_NODES)
            abort();
        check_lines(lines, j);
        df_yaml_lines_free(lines);
        must_print_and_read_back(j);
    } else if (!err.message[0] || err.cls != DF_ERR_USER) {
        abort();
    }
    if (df_yaml_parse_all((const char *)data, size, &all, NULL) == 0 && !cJSON_IsArray(all))
        abort();
    return 0;
}
