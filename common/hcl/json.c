/*
 * The JSON syntax of HCL: each member of the top object is a type of block, and its labels are
 * levels of objects. df_hcl_scan_json() is at the end.
 */
#include "common/json/json.h"
#include "common/hcl/blocks.h"

struct state {
    const char *file, *text;
    size_t n;
    struct df_hcl_module *m;
};

static size_t labels_of(const char *type)
{
    static const struct {
        const char *type;
        size_t labels;
    } table[] = {{"resource", 2}, {"data", 2},    {"ephemeral", 2}, {"variable", 1}, {"output", 1},
                 {"module", 1},   {"backend", 1}, {"provider", 1},  {"check", 1}};
    for (size_t i = 0; i < DF_ARRAY_SIZE(table); i++) {
        if (df_streq(type, table[i].type))
            return table[i].labels;
    }
    return 0;
}

static unsigned line_of(const struct state *t, const char *word)
{
    unsigned line = 1;
    size_t n = strlen(word);
    for (const char *p = t->text, *end = t->text + t->n; (size_t)(end - p) > n + 1; p++) {
        if (*p == '"' && memcmp(p + 1, word, n) == 0 && p[n + 1] == '"')
            return line;
        line += *p == '\n';
    }
    return 1;
}

static int add_attributes(struct df_hcl_block *b, const cJSON *body, struct df_err *err)
{
    const cJSON *item;
    cJSON_ArrayForEach (item, body) {
        DF_FREE char *number = df_json_is_number(item) ? df_json_print(item) : NULL;
        const char *value = cJSON_IsBool(item)     ? cJSON_IsTrue(item) ? "true" : "false"
                            : cJSON_IsString(item) ? item->valuestring
                                                   : number;
        if (df_json_is_number(item) && !number)
            return df_fail_oom(err);
        if (value && !df_hcl_is_plain(value, strlen(value)))
            value = NULL;
        if (df_hcl_add_attribute(b, item->string, strlen(item->string), value,
                                 value ? strlen(value) : 0, err) < 0)
            return -1;
    }
    return 0;
}

static int add_inner(struct state *t, const cJSON *body, struct df_err *err);

static int add_block(struct state *t, const char *type, const char *const *labels, size_t n,
                     bool inside, const cJSON *body, struct df_err *err)
{
    const char *last = n ? labels[n - 1] : type;
    struct df_hcl_block *b = df_hcl_add(t->m, t->file, line_of(t, last), type, strlen(type), err);
    if (!b)
        return -1;
    b->in_terraform = inside;
    for (size_t i = 0; i < n; i++)
        (void)df_strs_add(&b->labels, labels[i]);
    if (df_strs_check(&b->labels, err) < 0)
        return -1;
    if (df_hcl_keeps_attributes(b) && cJSON_IsObject(body) && add_attributes(b, body, err) < 0)
        return -1;
    return !inside && df_streq(type, "terraform") && cJSON_IsObject(body) ? add_inner(t, body, err)
                                                                          : 0;
}

/* An array has several blocks; each label is a level of objects. */
static int add_blocks(struct state *t, const char *type, const char *const *labels, size_t n,
                      bool inside, const cJSON *value, struct df_err *err)
{
    const cJSON *item;
    size_t wanted = labels_of(type);
    if (cJSON_IsArray(value)) {
        cJSON_ArrayForEach (item, value) {
            if (!cJSON_IsArray(item) && add_blocks(t, type, labels, n, inside, item, err) < 0)
                return -1;
        }
        return 0;
    }
    if (n == wanted)
        return add_block(t, type, labels, n, inside, value, err);
    if (!cJSON_IsObject(value))
        return 0;
    cJSON_ArrayForEach (item, value) {
        const char *more[2] = {n > 0 ? labels[0] : item->string, item->string};
        if (!df_streq(item->string, "//") &&
            add_blocks(t, type, more, n + 1, inside, item, err) < 0)
            return -1;
    }
    return 0;
}

static int add_inner(struct state *t, const cJSON *body, struct df_err *err)
{
    const cJSON *item;
    cJSON_ArrayForEach (item, body) {
        if (df_hcl_is_state_block(item->string, strlen(item->string)) &&
            add_blocks(t, item->string, NULL, 0, true, item, err) < 0)
            return -1;
    }
    return 0;
}

static int add_top(struct state *t, const cJSON *object, struct df_err *err)
{
    const cJSON *item;
    if (!cJSON_IsObject(object))
        return 0;
    cJSON_ArrayForEach (item, object) {
        if (!df_streq(item->string, "//") &&
            add_blocks(t, item->string, NULL, 0, false, item, err) < 0)
            return -1;
    }
    return 0;
}

/* HCL accepts duplicate members, for several blocks. Our parser refuses them, but reports all other
 * faults. */
static int parse_blocks(const char *text, size_t n, cJSON **ret, struct df_err *err)
{
    struct df_err why = {0};
    if (df_json_parse(text, n, ret, &why) == 0)
        return 0;
    if (why.cls == DF_ERR_USER)
        *ret = cJSON_ParseWithLength(text, n);
    if (*ret)
        return 0;
    if (strstr(why.message, "twice")) /* duplicates were the only fault, so there was no memory */
        return df_fail_oom(err);
    return df_err_pass(err, &why);
}

int df_hcl_scan_json(const char *file, const char *text, size_t n, struct df_hcl_module *m,
                     struct df_err *err)
{
    struct state t = {file, text, n, m};
    DF_JSON cJSON *doc = NULL;
    if (parse_blocks(text, n, &doc, err) < 0)
        return df_err_wrap(err, "%s", file);
    if (!cJSON_IsArray(doc))
        return add_top(&t, doc, err);
    const cJSON *item;
    cJSON_ArrayForEach (item, doc) {
        if (add_top(&t, item, err) < 0)
            return -1;
    }
    return 0;
}
