/*
 * values.c - recursive functions: hiding, marks, what changed, what became known. Objects are
 * walked by name and arrays by position, so an array never loses an item: a null stands for what is
 * missing. A value that is marked as sensitive is never copied.
 */
#include "runner/terrakube/values.h"

static const cJSON *member(const cJSON *object, const char *key)
{
    return cJSON_IsObject(object) ? cJSON_GetObjectItemCaseSensitive(object, key) : NULL;
}

static const cJSON *object(const cJSON *v)
{
    return cJSON_IsObject(v) ? v : NULL;
}

static const cJSON *item(const cJSON *array, int i)
{
    return cJSON_IsArray(array) ? cJSON_GetArrayItem(array, i) : NULL;
}

static void add(cJSON *object, const char *key, cJSON *value)
{
    if (value)
        (void)df_json_add(object, key, value, NULL);
}

/* ---- hiding ---- */

/* In an array a part that there is no memory for leaves a null, so that the others keep their
 * place. */
static void append(cJSON *array, cJSON *value)
{
    (void)df_json_append(array, value ? value : cJSON_CreateNull(), NULL);
}

cJSON *df_values_hide(const cJSON *value, const cJSON *sensitive)
{
    const cJSON *v;
    if (!value || cJSON_IsTrue(sensitive))
        return cJSON_CreateNull();
    if (!cJSON_IsObject(value) && !cJSON_IsArray(value))
        return cJSON_Duplicate(value, true);
    cJSON *out = cJSON_IsObject(value) ? cJSON_CreateObject() : cJSON_CreateArray();
    const cJSON *mark = item(sensitive, 0);
    if (!out)
        return NULL;
    cJSON_ArrayForEach (v, value) {
        if (v->string) {
            add(out, v->string, df_values_hide(v, member(sensitive, v->string)));
        } else {
            append(out, df_values_hide(v, mark));
            mark = mark ? mark->next : NULL;
        }
    }
    return out;
}

/* ---- marks ---- */

static bool is_empty(const cJSON *marks)
{
    return !marks || ((cJSON_IsObject(marks) || cJSON_IsArray(marks)) && !marks->child);
}

cJSON *df_values_marks(const char *type, const char *address, const cJSON *sensitive)
{
    cJSON *marks = sensitive ? cJSON_Duplicate(sensitive, true) : NULL;
    const cJSON *input = member(marks, "input");
    bool copies =
        df_streq(type, "terraform_data") || (address && strstr(address, "terraform_data."));
    if (copies && input && !cJSON_IsFalse(input) && is_empty(member(marks, "output")))
        (void)df_json_set(marks, "output", cJSON_Duplicate(input, true), NULL);
    return marks;
}

static cJSON *merge_objects(const cJSON *a, const cJSON *b)
{
    cJSON *out = cJSON_CreateObject();
    const cJSON *v;
    if (!out)
        return NULL;
    cJSON_ArrayForEach (v, object(a)) {
        add(out, v->string, df_values_merge(v, member(b, v->string)));
    }
    cJSON_ArrayForEach (v, object(b)) {
        if (!member(a, v->string))
            add(out, v->string, cJSON_Duplicate(v, true));
    }
    return out;
}

static cJSON *merge_arrays(const cJSON *a, const cJSON *b)
{
    cJSON *out = cJSON_CreateArray();
    int n = cJSON_IsArray(a) ? cJSON_GetArraySize(a) : 0;
    int m = cJSON_IsArray(b) ? cJSON_GetArraySize(b) : 0;
    for (int i = 0; out && i < (n > m ? n : m); i++)
        append(out, df_values_merge(item(a, i), item(b, i)));
    return out;
}

cJSON *df_values_merge(const cJSON *a, const cJSON *b)
{
    if (cJSON_IsTrue(a) || cJSON_IsTrue(b))
        return cJSON_CreateTrue();
    if (cJSON_IsObject(a) || cJSON_IsObject(b))
        return merge_objects(a, b);
    if (cJSON_IsArray(a) || cJSON_IsArray(b))
        return merge_arrays(a, b);
    return b || a ? cJSON_Duplicate(b ? b : a, true) : NULL;
}

/* ---- what changed ---- */

struct four {
    const cJSON *of[4]; /* before, after, and the marks of both */
};

static bool any(const struct four *f, cJSON_bool (*is)(const cJSON *))
{
    return is(f->of[0]) || is(f->of[1]) || is(f->of[2]) || is(f->of[3]);
}

static cJSON *changed(const struct four *f);

static cJSON *changed_members(const struct four *f)
{
    cJSON *out = cJSON_CreateObject();
    for (int i = 0; out && i < 4; i++) {
        const cJSON *v;
        cJSON_ArrayForEach (v, object(f->of[i])) {
            struct four below;
            bool seen = false;
            for (int k = 0; k < 4; k++) {
                below.of[k] = member(f->of[k], v->string);
                seen = seen || (k < i && below.of[k]);
            }
            if (!seen)
                add(out, v->string, changed(&below));
        }
    }
    if (out && out->child)
        return out;
    cJSON_Delete(out);
    return NULL;
}

static cJSON *changed_items(const struct four *f)
{
    cJSON *out = cJSON_CreateArray();
    bool has = false;
    int longest = 0;
    for (int k = 0; k < 4; k++) {
        int n = cJSON_IsArray(f->of[k]) ? cJSON_GetArraySize(f->of[k]) : 0;
        longest = n > longest ? n : longest;
    }
    for (int i = 0; out && i < longest; i++) {
        const struct four below = {
            {item(f->of[0], i), item(f->of[1], i), item(f->of[2], i), item(f->of[3], i)}};
        cJSON *c = changed(&below);
        has = has || c;
        append(out, c);
    }
    if (has)
        return out;
    cJSON_Delete(out);
    return NULL;
}

static bool is_same(const cJSON *a, const cJSON *b)
{
    bool no_a = !a || cJSON_IsNull(a), no_b = !b || cJSON_IsNull(b);
    return no_a || no_b ? no_a == no_b : df_json_equal(a, b);
}

static cJSON *changed(const struct four *f)
{
    if (cJSON_IsTrue(f->of[2]) || cJSON_IsTrue(f->of[3]))
        return is_same(f->of[0], f->of[1]) ? NULL : cJSON_CreateTrue();
    if (any(f, cJSON_IsObject))
        return changed_members(f);
    return any(f, cJSON_IsArray) ? changed_items(f) : NULL;
}

cJSON *df_values_changed(const cJSON *before, const cJSON *after, const cJSON *before_sensitive,
                         const cJSON *after_sensitive)
{
    const struct four f = {{before, after, before_sensitive, after_sensitive}};
    return changed(&f);
}

/* ---- what became known ---- */

static cJSON *resolve_members(const cJSON *unknown, cJSON **after, const cJSON *known,
                              const cJSON *sensitive)
{
    cJSON *still = cJSON_CreateObject();
    cJSON *to = cJSON_IsObject(*after) ? *after : cJSON_CreateObject();
    const cJSON *v;
    if (!still || !to) {
        if (to != *after)
            cJSON_Delete(to);
        return still;
    }
    cJSON_ArrayForEach (v, unknown) {
        cJSON *below = cJSON_DetachItemFromObjectCaseSensitive(to, v->string);
        add(still, v->string,
            df_values_resolve(v, &below, member(known, v->string), member(sensitive, v->string)));
        add(to, v->string, below);
    }
    if (to != *after && !to->child) { /* nothing came into it */
        cJSON_Delete(to);
    } else if (to != *after) {
        cJSON_Delete(*after);
        *after = to;
    }
    return still;
}

static cJSON *resolve_items(const cJSON *unknown, cJSON **after, const cJSON *known,
                            const cJSON *sensitive)
{
    cJSON *still = cJSON_CreateArray(), *array = cJSON_CreateArray();
    cJSON *old = cJSON_IsArray(*after) ? *after : NULL, *rest;
    const cJSON *v;
    int i = 0;
    if (!still || !array) {
        cJSON_Delete(array);
        return still;
    }
    cJSON_ArrayForEach (v, unknown) {
        cJSON *below = cJSON_DetachItemFromArray(old, 0);
        append(still, df_values_resolve(v, &below, item(known, i), item(sensitive, i)));
        append(array, below);
        i++;
    }
    while ((rest = cJSON_DetachItemFromArray(old, 0)))
        append(array, rest);
    cJSON_Delete(*after);
    *after = array;
    return still;
}

cJSON *df_values_resolve(const cJSON *unknown, cJSON **after, const cJSON *known,
                         const cJSON *sensitive)
{
    if (!unknown)
        return NULL;
    if (cJSON_IsTrue(unknown) && !cJSON_IsTrue(sensitive) && known && !cJSON_IsNull(known)) {
        cJSON_Delete(*after);
        *after = df_values_hide(known, sensitive);
        return cJSON_CreateFalse();
    }
    if (cJSON_IsTrue(sensitive) || (!cJSON_IsObject(unknown) && !cJSON_IsArray(unknown)))
        return cJSON_Duplicate(unknown, true);
    return cJSON_IsObject(unknown) ? resolve_members(unknown, after, known, sensitive)
                                   : resolve_items(unknown, after, known, sensitive);
}
