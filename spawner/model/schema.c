/*
 * schema.c - checks a document against its rows. From bottom up: how faults are collected, how a
 * value of each type is checked, and the recursion over objects at the end.
 */
#include "spawner/model/schema.h"

#include <math.h>
#include <stdarg.h>

#include "common/base/buf.h"
#include "common/base/nearest.h"

/* ---- faults ---- */

/* Keys come from outside: writes printable ASCII only, at most 64 characters. */
static void render_key(char *out, size_t size, const char *key, bool dot)
{
    size_t n = 0;
    if (dot && size > 1)
        out[n++] = '.';
    for (size_t i = 0; key[i] && i < 64 && n + 1 < size; i++)
        out[n++] = key[i] > ' ' && key[i] < 0x7f ? key[i] : '?';
    out[n] = '\0';
}

static void render_path(const struct df_path *path, char *out, size_t size)
{
    if (!path->up) {
        out[0] = '\0';
        return;
    }
    render_path(path->up, out, size);
    size_t n = strlen(out);
    if (path->key)
        render_key(out + n, size - n, path->key, n > 0);
    else
        (void)snprintf(out + n, size - n, "[%d]", path->index);
}

void df_fault(struct df_faults *f, const struct df_path *path, const char *fmt, ...)
{
    char where[200], what[500];
    render_path(path, where, sizeof(where));
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(what, sizeof(what), fmt, ap);
    va_end(ap);
    f->count++;
    size_t room = sizeof(f->text) - f->len;
    int n = snprintf(f->text + f->len, room, "%s%s%s%s", f->len ? "; " : "", where,
                     where[0] ? ": " : "", what);
    if (n < 0 || (size_t)n >= room) {
        f->text[f->len] = '\0';
        f->left_out++;
        return;
    }
    f->len += (size_t)n;
}

int df_faults_fail(const struct df_faults *f, const char *reason, const char *prefix,
                   struct df_err *err)
{
    char more[40] = "";
    if (f->no_memory)
        return df_fail_oom(err);
    if (!f->count)
        return 0;
    if (f->left_out)
        (void)snprintf(more, sizeof(more), "; and %d more", f->left_out);
    return df_fail_reason(err, DF_ERR_USER, reason, "%s%s%s", prefix, f->text, more);
}

/* ---- types ---- */

static const char *const type_names[] = {"a value",        "a string",  "true or false",
                                         "a whole number", "an object", "a list"};

static bool has_type(const cJSON *value, enum df_type type)
{
    switch (type) {
    case DF_TYPE_STRING:
        return cJSON_IsString(value);
    case DF_TYPE_BOOL:
        return cJSON_IsBool(value);
    case DF_TYPE_WHOLE:
        return cJSON_IsNumber(value) && fabs(value->valuedouble) <= DF_JSON_MAX_WHOLE &&
               value->valuedouble == floor(value->valuedouble);
    case DF_TYPE_OBJECT:
        return cJSON_IsObject(value);
    case DF_TYPE_LIST:
        return cJSON_IsArray(value);
    default:
        return true;
    }
}

static void type_fault(const cJSON *value, enum df_type type, const struct df_path *path,
                       struct df_faults *f)
{
    const char *hint = "";
    if (cJSON_IsNull(value))
        hint = " and is null; leave it out";
    else if (type == DF_TYPE_STRING && (df_json_is_number(value) || cJSON_IsBool(value)))
        hint = "; put it in quotes";
    df_fault(f, path, "must be %s%s", type_names[type], hint);
}

static void check_field(const struct df_field *field, cJSON *value, const cJSON *old,
                        const struct df_path *path, struct df_faults *f);

/* ---- one function for each type ---- */

static bool has_control(const char *s, bool lines)
{
    if (strstr(s, DF_JSON_NUL))
        return true;
    for (; *s; s++) {
        bool is_break = *s == '\n' || *s == '\t' || *s == '\r';
        if (((unsigned char)*s < 0x20 && !(lines && is_break)) || *s == 0x7f)
            return true;
    }
    return false;
}

static bool is_word(const char *const *words, const char *s)
{
    for (; *words; words++)
        if (strcmp(*words, s) == 0)
            return true;
    return false;
}

static void words_fault(const struct df_field *field, const char *s, const struct df_path *path,
                        struct df_faults *f)
{
    DF_BUF struct df_buf list = DF_BUF_INIT(400);
    for (const char *const *w = field->words; *w; w++)
        (void)df_buf_addf(&list, "%s%s", list.len ? ", " : "", *w);
    df_fault(f, path, "\"%.64s\" is not one of %s", s, df_buf_str(&list));
}

/* True if the string is valid so far; then the row's rule is called. */
static bool check_string(const struct df_field *field, const char *s, const struct df_path *path,
                         struct df_faults *f)
{
    size_t n = strlen(s);
    int before = f->count;
    if (has_control(s, field->flags & DF_LINES))
        df_fault(f, path, "has a control character in it");
    else if (n < (size_t)field->min)
        df_fault(f, path, "is empty");
    else if (field->max && n > (size_t)field->max)
        df_fault(f, path, "is longer than %lld bytes", (long long)field->max);
    else if (field->words && !is_word(field->words, s))
        words_fault(field, s, path, f);
    return f->count == before;
}

static bool check_range(const struct df_field *field, const cJSON *value,
                        const struct df_path *path, struct df_faults *f)
{
    double d = value->valuedouble;
    bool fits = d >= (double)field->min && (!field->max || d <= (double)field->max);
    if (!fits)
        df_fault(f, path, "must be from %lld to %lld", (long long)field->min,
                 (long long)field->max);
    return fits;
}

static bool check_count(const struct df_field *field, const cJSON *value,
                        const struct df_path *path, struct df_faults *f)
{
    int64_t n = cJSON_GetArraySize(value);
    bool fits = n >= field->min && (!field->max || n <= field->max);
    if (n < field->min)
        df_fault(f, path, "is empty");
    else if (!fits)
        df_fault(f, path, "has %lld entries; %lld are allowed", (long long)n,
                 (long long)field->max);
    return fits;
}

static void check_members(const struct df_field *field, cJSON *value, const cJSON *old,
                          const struct df_path *path, struct df_faults *f)
{
    if (field->fields) {
        df_schema_check(field->fields, value, old, path, f);
        return;
    }
    int index = 0;
    for (cJSON *item = value->child; field->item && item; item = item->next) {
        bool named = cJSON_IsObject(value);
        const struct df_path here = {path, named ? item->string : NULL, index++};
        check_field(field->item, item, NULL, &here, f);
    }
}

static void check_field(const struct df_field *field, cJSON *value, const cJSON *old,
                        const struct df_path *path, struct df_faults *f)
{
    int before = f->count;
    if (!has_type(value, field->type)) {
        type_fault(value, field->type, path, f);
        return;
    }
    if (field->type == DF_TYPE_STRING && !check_string(field, value->valuestring, path, f))
        return;
    if (field->type == DF_TYPE_WHOLE && !check_range(field, value, path, f))
        return;
    if (field->type == DF_TYPE_OBJECT || field->type == DF_TYPE_LIST) {
        if (!check_count(field, value, path, f))
            return;
        check_members(field, value, old, path, f);
    }
    if (field->rule && f->count == before)
        field->rule(value, path, f);
}

/* ---- objects ---- */

const struct df_field *df_field_find(const struct df_field *fields, const char *name)
{
    for (; fields->name; fields++)
        if (strcmp(fields->name, name) == 0)
            return fields;
    return NULL;
}

static void unknown_fault(const struct df_field *fields, const struct df_path *path,
                          struct df_faults *f)
{
    DF_BUF struct df_buf list = DF_BUF_INIT(400);
    const char *meant = NULL;
    size_t distance = SIZE_MAX;
    for (; fields->name; fields++) {
        (void)df_buf_addf(&list, "%s%s", list.len ? ", " : "", fields->name);
        df_nearest(path->key, fields->name, &meant, &distance);
    }
    if (meant)
        df_fault(f, path, "is not a field; did you mean \"%s\"?", meant);
    else
        df_fault(f, path, "is not a field (there are: %s)", df_buf_str(&list));
}

/* Fills in an absent field: a frozen one keeps its old value, another one gets its default. */
static cJSON *put_fallback(const struct df_field *row, cJSON *object, const cJSON *was,
                           struct df_faults *f)
{
    cJSON *value = NULL;
    if (was && (row->flags & DF_FROZEN))
        value = cJSON_Duplicate(was, true);
    else if (df_json_parse(row->fallback, strlen(row->fallback), &value, NULL) < 0)
        value = NULL;
    if (df_json_add(object, row->name, value, NULL) < 0) {
        f->no_memory = true;
        return NULL;
    }
    return value;
}

static void check_row(const struct df_field *row, cJSON *object, const cJSON *old,
                      const struct df_path *path, struct df_faults *f)
{
    const struct df_path here = {path, row->name, 0};
    cJSON *value = cJSON_GetObjectItemCaseSensitive(object, row->name);
    const cJSON *was = df_json_at(old, row->name);
    if (!value && row->fallback)
        value = put_fallback(row, object, was, f);
    if (!value && (row->flags & DF_REQUIRED))
        df_fault(f, &here, "is required");
    if (value)
        check_field(row, value, was, &here, f);
    if (old && (row->flags & DF_FROZEN) && !df_json_equal(value, was))
        df_fault(f, &here, "cannot be changed");
}

void df_schema_check(const struct df_field *fields, cJSON *object, const cJSON *old,
                     const struct df_path *path, struct df_faults *f)
{
    for (const cJSON *member = object->child; member; member = member->next) {
        const struct df_path here = {path, member->string, 0};
        if (!df_field_find(fields, member->string))
            unknown_fault(fields, &here, f);
    }
    for (const struct df_field *row = fields; row->name; row++)
        check_row(row, object, old, path, f);
}
