/*
 * shape.c - reads variables and YAML files by tables. A scalar is a text for both: keep_text() is
 * the one place that knows what a text of each type must look like.
 */
#include "runner/platform/shape.h"

#include "common/base/clock.h"
#include "common/base/nearest.h"
#include "common/base/parse.h"

/* What is wrong with a value: the rest of a sentence behind the key; "": nothing. */
struct complaint {
    char text[512];
};

/* Appends. */
static void DF_PRINTF(2, 3) complain(struct complaint *c, const char *fmt, ...)
{
    size_t n = strlen(c->text);
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(c->text + n, sizeof(c->text) - n, fmt, ap);
    va_end(ap);
}

static void *member_at(void *base, const struct df_shape *row)
{
    return row->offset == DF_SHAPE_NOWHERE ? NULL : (char *)base + row->offset;
}

/* ---- texts ---- */

static void list_words(const char *const *words, struct complaint *c)
{
    for (size_t i = 0; words[i]; i++)
        complain(c, "%s%s", i ? ", " : "", words[i]);
}

/* The position among the words; -1 with a complaint. */
static int find_word(const char *const *words, const char *text, struct complaint *c)
{
    const char *best = NULL;
    size_t distance = SIZE_MAX;
    for (int i = 0; words[i]; i++) {
        if (strcmp(words[i], text) == 0)
            return i;
        df_nearest(text, words[i], &best, &distance);
    }
    complain(c, "\"%.64s\" is none of ", text);
    list_words(words, c);
    if (best)
        complain(c, "; did you mean %s?", best);
    return -1;
}

static int64_t parse_duration(const char *text, struct complaint *c)
{
    struct df_err why = {0};
    int64_t us = 0;
    if (df_duration_parse(text, &us, &why) < 0)
        complain(c, "%.300s", why.message);
    else if (us < 1000)
        complain(c, "\"%.64s\" is no time to wait: 1ms is the least", text);
    else if (us > DF_LIMIT_WAIT_SECONDS * INT64_C(1000000))
        complain(c, "\"%.64s\" is longer than %dh, the most", text, DF_LIMIT_WAIT_SECONDS / 3600);
    return us / 1000;
}

static void complain_of_text(const struct df_shape *row, const char *text, struct complaint *c)
{
    const char *fault = NULL;
    if (!*text)
        fault = "is empty";
    else if (df_has_control(text))
        fault = "has a control character in it";
    else if (row->type == DF_SHAPE_LABEL && !df_is_dns_label(text))
        fault = "must be a DNS label: at most 63 of a-z, 0-9 and -, no - at an end";
    else if (row->check)
        fault = row->check(text);
    if (fault)
        complain(c, "%s", fault);
}

/* to: where the value goes, or NULL. */
static void keep_text(const struct df_shape *row, const char *text, void *to,
                      struct df_faults *faults, struct complaint *c)
{
    int64_t ms = 0;
    int word = 0;
    complain_of_text(row, text, c);
    if (!c->text[0] && row->words)
        word = find_word(row->words, text, c);
    if (!c->text[0] && row->type == DF_SHAPE_DURATION)
        ms = parse_duration(text, c);
    if (c->text[0] || !to)
        return;
    if (row->type == DF_SHAPE_DURATION)
        *(int64_t *)to = ms;
    else if (row->type == DF_SHAPE_CHOICE)
        *(bool *)to = word == 1;
    else
        df_faults_keep(faults, to, text);
}

static void complain_of_absence(const struct df_shape *row, struct complaint *c)
{
    complain(c, "is required");
    if (!row->words)
        return;
    complain(c, ": one of ");
    list_words(row->words, c);
}

void df_shape_read_variables(const struct df_shape *rows, void *base, struct df_faults *faults)
{
    for (const struct df_shape *row = rows; row->key; row++) {
        const char *given = getenv(row->key);
        const char *text = df_str_empty(given) ? row->fallback : given;
        struct complaint c = {.text = ""};
        if (text)
            keep_text(row, text, member_at(base, row), faults, &c);
        else if (row->is_required)
            complain_of_absence(row, &c);
        if (c.text[0])
            df_faults_add(faults, row->key, "%s", c.text);
    }
}

/* ---- documents ---- */

void df_document_free(struct df_document *d)
{
    cJSON_Delete(d->json);
    df_yaml_lines_free(d->lines);
    *d = (struct df_document){0};
}

bool df_document_parse(const char *name, const char *text, size_t len, struct df_faults *faults,
                       struct df_document *ret)
{
    struct df_err why = {0};
    *ret = (struct df_document){.name = name, .faults = faults};
    if (df_yaml_parse(text, len, &ret->json, &ret->lines, &why) < 0)
        df_faults_add(faults, name, "%s", why.message);
    else if (!cJSON_IsObject(ret->json))
        df_faults_add(faults, name, "must be a mapping with keys");
    else
        return true;
    cJSON_Delete(DF_TAKE(ret->json));
    return false;
}

/* The line of the value at the path, or of the nearest that holds it. */
static unsigned line_near(const struct df_yaml_lines *lines, char *path)
{
    for (;;) {
        unsigned line = df_yaml_line(lines, path);
        if (line || !*path)
            return line ? line : 1;
        char *dot = strrchr(path, '.'), *bracket = strrchr(path, '[');
        char *last = !dot || (bracket && bracket > dot) ? bracket : dot;
        *(last ? last : path) = '\0';
    }
}

void df_document_fault(const struct df_document *d, const char *path, const char *fmt, ...)
{
    if (df_faults_full(d->faults))
        return;
    struct df_key_path near = df_key_path("%s", path);
    unsigned line = line_near(d->lines, near.text);
    DF_FREE char *about = df_strf("%s:%u%s%s", d->name, line, *path ? ": " : "", path);
    va_list ap;
    va_start(ap, fmt);
    df_faults_addv(d->faults, about, fmt, ap);
    va_end(ap);
}

struct df_key_path df_key_path(const char *fmt, ...)
{
    struct df_key_path path;
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(path.text, sizeof(path.text), fmt, ap);
    va_end(ap);
    return path;
}

static struct df_key_path path_of(const char *parent, const char *key)
{
    return df_key_path("%s%s%s", parent, *parent ? "." : "", key);
}

static void read_text(const struct df_document *d, const cJSON *value, const char *path,
                      const struct df_shape *row, void *to)
{
    struct complaint c = {.text = ""};
    if (cJSON_IsString(value))
        keep_text(row, value->valuestring, to, d->faults, &c);
    else if (row->type == DF_SHAPE_DURATION)
        complain(&c, "must be a duration with its unit, as 90s or 15m");
    else
        complain(&c, "must be a string; put it in quotes");
    if (c.text[0])
        df_document_fault(d, path, "%s", c.text);
}

static void read_bool(const struct df_document *d, const cJSON *value, const char *path, bool *to)
{
    if (!cJSON_IsBool(value))
        df_document_fault(d, path, "must be true or false");
    else if (to)
        *to = cJSON_IsTrue(value);
}

static void read_whole(const struct df_document *d, const cJSON *value, const char *path,
                       const struct df_shape *row, int *to)
{
    double n = cJSON_IsNumber(value) ? value->valuedouble : -1;
    if (n < row->min || n > row->max || n != (int)n)
        df_document_fault(d, path, "must be a whole number from %d to %d", row->min, row->max);
    else if (to)
        *to = (int)n;
}

static void read_texts(const struct df_document *d, const cJSON *list, const char *path,
                       const struct df_shape *row)
{
    const cJSON *item;
    size_t i = 0;
    if (!cJSON_IsArray(list)) {
        df_document_fault(d, path, "must be a list of strings");
        return;
    }
    cJSON_ArrayForEach (item, list)
        read_text(d, item, df_key_path("%s[%zu]", path, i++).text, row, NULL);
}

static void read_object(const struct df_document *d, const cJSON *value, const char *path,
                        const struct df_shape *row, void *base)
{
    if (!cJSON_IsObject(value))
        df_document_fault(d, path, "must be a mapping");
    else if (row->members)
        df_document_read(d, value, path, row->members, base);
}

static void read_value(const struct df_document *d, const cJSON *value, const char *path,
                       const struct df_shape *row, void *base)
{
    switch (row->type) {
    case DF_SHAPE_BOOL:
        read_bool(d, value, path, member_at(base, row));
        return;
    case DF_SHAPE_WHOLE:
        read_whole(d, value, path, row, member_at(base, row));
        return;
    case DF_SHAPE_TEXTS:
        read_texts(d, value, path, row);
        return;
    case DF_SHAPE_LIST:
        if (!cJSON_IsArray(value))
            df_document_fault(d, path, "must be a list");
        return;
    case DF_SHAPE_OBJECT:
        read_object(d, value, path, row, base);
        return;
    default:
        read_text(d, value, path, row, member_at(base, row));
    }
}

static void read_absent(const struct df_document *d, const char *path, const struct df_shape *row,
                        void *base)
{
    struct complaint c = {.text = ""};
    if (row->is_required)
        df_document_fault(d, path, "is required");
    else if (row->fallback)
        keep_text(row, row->fallback, member_at(base, row), d->faults, &c);
    else if (row->members) /* their fallbacks */
        for (const struct df_shape *m = row->members; m->key; m++)
            if (!m->is_required)
                read_absent(d, path, m, base);
}

static const struct df_shape *find_row(const struct df_shape *rows, const char *key)
{
    for (; rows->key; rows++)
        if (strcmp(rows->key, key) == 0)
            return rows;
    return NULL;
}

static void refuse_unknown(const struct df_document *d, const char *path, const char *key,
                           const struct df_shape *rows)
{
    struct complaint c = {.text = ""};
    const char *names[32] = {NULL};
    for (size_t i = 0; rows[i].key && i + 1 < DF_ARRAY_SIZE(names); i++)
        names[i] = rows[i].key;
    (void)find_word(names, key, &c);
    df_document_fault(d, path, "is not known: %s", c.text);
}

void df_document_read(const struct df_document *d, const cJSON *object, const char *path,
                      const struct df_shape *rows, void *base)
{
    if (!cJSON_IsObject(object)) {
        df_document_fault(d, path, "must be a mapping");
        return;
    }
    const cJSON *value;
    cJSON_ArrayForEach (value, object) {
        const struct df_shape *row = find_row(rows, value->string);
        struct df_key_path at = path_of(path, value->string);
        if (!row)
            refuse_unknown(d, at.text, value->string, rows);
        else if (cJSON_IsNull(value))
            df_document_fault(d, at.text, "has no value: give it one or leave the key out");
        else
            read_value(d, value, at.text, row, base);
    }
    for (const struct df_shape *row = rows; row->key; row++)
        if (!cJSON_GetObjectItemCaseSensitive(object, row->key))
            read_absent(d, path_of(path, row->key).text, row, base);
}
