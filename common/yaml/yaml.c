/*
 * yaml.c - builds cJSON trees from libyaml's events. Each copy of an alias is charged to the node
 * budget before it is made, so that "billion laughs" exhausts the budget and not the memory.
 */
#include "common/yaml/yaml.h"

#include <yaml.h>

#include "common/base/limits.h"
#include "common/base/parse.h"
#include "common/yaml/lines.h"
#include "common/yaml/scalar.h"

struct anchor {
    char *name;        /* owned */
    const cJSON *node; /* in the tree under construction; NULL while it is being read */
};

struct loader {
    yaml_parser_t parser;
    struct df_yaml_lines *lines;
    struct anchor anchors[DF_LIMIT_YAML_ANCHORS];
    size_t anchor_count;
    size_t nodes;
    struct df_err *err;
};

/* The position of a value: its parent in the lines, its key or index, its depth. */
struct position {
    size_t parent;
    const char *key;
    size_t index;
    int depth;
};

static void event_free(yaml_event_t *e)
{
    yaml_event_delete(e);
}
#define DF_EVENT DF_CLEANUP(event_free)

static int fail_at_mark(const struct loader *l, yaml_mark_t at, const char *what)
{
    return df_fail(l->err, DF_ERR_USER, "bad YAML at %zu:%zu: %s", at.line + 1, at.column + 1,
                   what);
}

static int next_event(struct loader *l, yaml_event_t *ret)
{
    if (yaml_parser_parse(&l->parser, ret))
        return 0;
    /* A failed parse leaves nothing to free. */
    *ret = (yaml_event_t){0};
    const yaml_parser_t *p = &l->parser;
    if (p->error == YAML_MEMORY_ERROR)
        return df_fail_oom(l->err);
    if (p->error == YAML_READER_ERROR)
        return df_fail(l->err, DF_ERR_USER, "bad YAML at byte %zu: %s", p->problem_offset,
                       p->problem);
    return fail_at_mark(l, p->problem_mark, p->problem ? p->problem : "syntax error");
}

/* ---- the budget ---- */

struct size {
    size_t nodes;
    int depth;
};

static struct size measure_tree(const cJSON *j)
{
    struct size sum = {1, 1};
    for (const cJSON *c = j->child; c; c = c->next) {
        struct size s = measure_tree(c);
        sum.nodes += s.nodes;
        if (sum.depth < s.depth + 1)
            sum.depth = s.depth + 1;
    }
    return sum;
}

static int spend_nodes(struct loader *l, yaml_mark_t at, struct size size, int depth)
{
    if (size.nodes > DF_LIMIT_YAML_NODES - l->nodes)
        return df_fail(l->err, DF_ERR_USER, "bad YAML at %zu:%zu: more than %d values", at.line + 1,
                       at.column + 1, DF_LIMIT_YAML_NODES);
    if (depth + size.depth - 1 > DF_LIMIT_JSON_DEPTH)
        return fail_at_mark(l, at, "nested too deeply");
    l->nodes += size.nodes;
    return 0;
}

/* ---- anchors ---- */

static struct anchor *find_anchor(struct loader *l, const char *name)
{
    for (size_t i = 0; i < l->anchor_count; i++)
        if (strcmp(l->anchors[i].name, name) == 0)
            return &l->anchors[i];
    return NULL;
}

/* Declares the name before its value is read, so that a value that contains itself is detected. */
static int declare_anchor(struct loader *l, const yaml_char_t *name, yaml_mark_t at,
                          struct anchor **ret)
{
    *ret = NULL;
    if (!name)
        return 0;
    struct anchor *a = find_anchor(l, (const char *)name);
    if (!a && l->anchor_count == DF_LIMIT_YAML_ANCHORS)
        return fail_at_mark(l, at, "too many anchors");
    if (!a) {
        a = &l->anchors[l->anchor_count];
        a->name = strdup((const char *)name);
        if (!a->name)
            return df_fail_oom(l->err);
        l->anchor_count++;
    }
    a->node = NULL;
    *ret = a;
    return 0;
}

static void forget_anchors(struct loader *l)
{
    while (l->anchor_count)
        free(l->anchors[--l->anchor_count].name);
}

static int read_alias(struct loader *l, const yaml_event_t *e, const struct position *p,
                      cJSON **ret)
{
    const struct anchor *a = find_anchor(l, (const char *)e->data.alias.anchor);
    if (!a)
        return fail_at_mark(l, e->start_mark, "the alias has no anchor");
    if (!a->node)
        return fail_at_mark(l, e->start_mark, "the alias is inside the value of its own anchor");
    if (spend_nodes(l, e->start_mark, measure_tree(a->node), p->depth) < 0)
        return -1;
    return df_check_alloc(*ret = cJSON_Duplicate(a->node, true), l->err);
}

/* ---- values ---- */

static int read_value(struct loader *l, const yaml_event_t *e, const struct position *p,
                      cJSON **ret);

static bool has_tag(const yaml_event_t *e)
{
    switch (e->type) {
    case YAML_SCALAR_EVENT:
        return e->data.scalar.tag != NULL;
    case YAML_SEQUENCE_START_EVENT:
        return e->data.sequence_start.tag != NULL;
    case YAML_MAPPING_START_EVENT:
        return e->data.mapping_start.tag != NULL;
    default:
        return false;
    }
}

static const yaml_char_t *anchor_name(const yaml_event_t *e)
{
    switch (e->type) {
    case YAML_SCALAR_EVENT:
        return e->data.scalar.anchor;
    case YAML_SEQUENCE_START_EVENT:
        return e->data.sequence_start.anchor;
    case YAML_MAPPING_START_EVENT:
        return e->data.mapping_start.anchor;
    default:
        return NULL;
    }
}

static int read_scalar(const struct loader *l, const yaml_event_t *e, cJSON **ret)
{
    const char *text = (const char *)e->data.scalar.value;
    if (strlen(text) != e->data.scalar.length)
        return fail_at_mark(l, e->start_mark, "a string may not contain NUL");
    if (e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE) {
        struct df_err why = {0};
        if (df_yaml_resolve(text, ret, &why) == 0)
            return 0;
        return why.cls == DF_ERR_USER ? fail_at_mark(l, e->start_mark, why.message)
                                      : df_fail_oom(l->err);
    }
    return df_check_alloc(*ret = cJSON_CreateString(text), l->err);
}

/* A key: a string, or a plain scalar that reads as one. */
static int read_key(const struct loader *l, const yaml_event_t *e, cJSON **ret)
{
    if (e->type != YAML_SCALAR_EVENT)
        return fail_at_mark(l, e->start_mark, "a key must be a string");
    if (has_tag(e) || anchor_name(e))
        return fail_at_mark(l, e->start_mark, "a key may have neither tag nor anchor");
    DF_JSON cJSON *key = NULL;
    if (read_scalar(l, e, &key) < 0)
        return -1;
    if (!cJSON_IsString(key))
        return fail_at_mark(l, e->start_mark, "a key must be a string: put it in quotes");
    if (e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE && strcmp(key->valuestring, "<<") == 0)
        return fail_at_mark(l, e->start_mark,
                            "merge keys (<<) are not supported: write the keys out");
    *ret = DF_TAKE(key);
    return 0;
}

static int read_member(struct loader *l, const yaml_event_t *key_event, size_t self, int depth,
                       cJSON *object)
{
    DF_JSON cJSON *key = NULL;
    if (read_key(l, key_event, &key) < 0)
        return -1;
    DF_EVENT yaml_event_t e = {0};
    if (next_event(l, &e) < 0)
        return -1;
    struct position p = {self, cJSON_GetStringValue(key), 0, depth + 1};
    cJSON *value = NULL;
    if (read_value(l, &e, &p, &value) < 0)
        return -1;
    return df_json_add(object, p.key, value, l->err);
}

static int check_duplicates(const struct loader *l, size_t self, const cJSON *object)
{
    const char *key = NULL;
    if (df_json_duplicate_key(object, &key, l->err) < 0)
        return -1;
    return !key ? 0
                : df_fail(l->err, DF_ERR_USER, "bad YAML at line %u: the key \"%s\" stands twice",
                          df_yaml_lines_of_key(l->lines, self, key), key);
}

static int read_mapping(struct loader *l, size_t self, int depth, cJSON *object)
{
    for (;;) {
        DF_EVENT yaml_event_t e = {0};
        if (next_event(l, &e) < 0)
            return -1;
        if (e.type == YAML_MAPPING_END_EVENT)
            return check_duplicates(l, self, object);
        if (read_member(l, &e, self, depth, object) < 0)
            return -1;
    }
}

static int read_sequence(struct loader *l, size_t self, int depth, cJSON *array)
{
    for (size_t index = 0;; index++) {
        DF_EVENT yaml_event_t e = {0};
        if (next_event(l, &e) < 0)
            return -1;
        if (e.type == YAML_SEQUENCE_END_EVENT)
            return 0;
        struct position p = {self, NULL, index, depth + 1};
        cJSON *value = NULL;
        if (read_value(l, &e, &p, &value) < 0 || df_json_append(array, value, l->err) < 0)
            return -1;
    }
}

static int read_holder(struct loader *l, const yaml_event_t *e, size_t self, int depth, cJSON **ret)
{
    bool mapping = e->type == YAML_MAPPING_START_EVENT;
    DF_JSON cJSON *holder = mapping ? cJSON_CreateObject() : cJSON_CreateArray();
    if (!holder)
        return df_fail_oom(l->err);
    if ((mapping ? read_mapping(l, self, depth, holder) : read_sequence(l, self, depth, holder)) <
        0)
        return -1;
    *ret = DF_TAKE(holder);
    return 0;
}

static int read_value(struct loader *l, const yaml_event_t *e, const struct position *p,
                      cJSON **ret)
{
    struct anchor *anchor = NULL;
    size_t self = 0;
    if (df_yaml_lines_add(l->lines, p->parent, p->key, p->index, (unsigned)e->start_mark.line + 1,
                          &self, l->err) < 0)
        return -1;
    if (e->type == YAML_ALIAS_EVENT)
        return read_alias(l, e, p, ret);
    if (has_tag(e))
        return fail_at_mark(l, e->start_mark, "tags are not supported; quotes make a string");
    if (spend_nodes(l, e->start_mark, (struct size){1, 1}, p->depth) < 0 ||
        declare_anchor(l, anchor_name(e), e->start_mark, &anchor) < 0)
        return -1;
    if ((e->type == YAML_SCALAR_EVENT ? read_scalar(l, e, ret)
                                      : read_holder(l, e, self, p->depth, ret)) < 0)
        return -1;
    if (anchor)
        anchor->node = *ret;
    return 0;
}

/* ---- documents ---- */

/* Reads the next document; *ret stays NULL at the end of the text. */
static int read_document(struct loader *l, cJSON **ret, yaml_mark_t *at)
{
    DF_EVENT yaml_event_t start = {0}, first = {0}, end = {0};
    if (next_event(l, &start) < 0)
        return -1;
    *at = start.start_mark;
    if (start.type == YAML_STREAM_END_EVENT)
        return 0;
    DF_JSON cJSON *value = NULL;
    struct position root = {.parent = DF_YAML_NO_PARENT, .depth = 1};
    if (next_event(l, &first) < 0 || read_value(l, &first, &root, &value) < 0 ||
        next_event(l, &end) < 0)
        return -1;
    forget_anchors(l);
    *ret = DF_TAKE(value);
    return 0;
}

static int loader_open(struct loader *l, const char *text, size_t n, struct df_err *err)
{
    const char *fault = df_text_fault(text, n);
    bool is_utf8 = df_is_utf8(text, n);
    if (!is_utf8 || (fault && (!text[0] || !text[1]))) /* a mark of UTF-8 is allowed in YAML */
        return df_fail(err, DF_ERR_USER, "bad YAML: it %s", fault ? fault : "is not UTF-8");
    l->err = err;
    l->lines = calloc(1, sizeof(*l->lines));
    if (!l->lines || !yaml_parser_initialize(&l->parser)) {
        free(l->lines);
        return df_fail_oom(err);
    }
    yaml_parser_set_input_string(&l->parser, (const unsigned char *)(n ? text : ""), n);
    return 0;
}

static void loader_close(struct loader *l)
{
    forget_anchors(l);
    df_yaml_lines_free(l->lines);
    yaml_parser_delete(&l->parser);
}

static int skip_stream_start(struct loader *l)
{
    DF_EVENT yaml_event_t e = {0};
    return next_event(l, &e);
}

static int read_only_document(struct loader *l, cJSON **ret)
{
    DF_JSON cJSON *value = NULL, *second = NULL;
    yaml_mark_t at;
    if (skip_stream_start(l) < 0 || read_document(l, &value, &at) < 0)
        return -1;
    if (!value)
        value = cJSON_CreateNull();
    else if (read_document(l, &second, &at) < 0)
        return -1;
    if (second)
        return fail_at_mark(l, at, "only one document is expected");
    if (!value)
        return df_fail_oom(l->err);
    *ret = DF_TAKE(value);
    return 0;
}

int df_yaml_parse(const char *text, size_t n, cJSON **ret, struct df_yaml_lines **ret_lines,
                  struct df_err *err)
{
    struct loader l = {0};
    if (loader_open(&l, text, n, err) < 0)
        return -1;
    int result = read_only_document(&l, ret);
    if (result == 0 && ret_lines)
        *ret_lines = DF_TAKE(l.lines);
    loader_close(&l);
    return result;
}

static int read_documents(struct loader *l, cJSON *all)
{
    yaml_mark_t at;
    if (skip_stream_start(l) < 0)
        return -1;
    for (;;) {
        DF_JSON cJSON *value = NULL;
        if (read_document(l, &value, &at) < 0)
            return -1;
        if (!value)
            return 0;
        if (!cJSON_IsNull(value) && df_json_append(all, DF_TAKE(value), l->err) < 0)
            return -1;
    }
}

int df_yaml_parse_all(const char *text, size_t n, cJSON **ret, struct df_err *err)
{
    struct loader l = {0};
    DF_JSON cJSON *all = cJSON_CreateArray();
    if (df_check_alloc(all, err) < 0 || loader_open(&l, text, n, err) < 0)
        return -1;
    int result = read_documents(&l, all);
    loader_close(&l);
    if (result == 0)
        *ret = DF_TAKE(all);
    return result;
}
