/*
 * Walks two values at once: walk() goes down where both are objects, or lists of named items, and
 * notes any other pair that differs.
 */
#include "spawner/model/difference.h"

#include "common/base/buf.h"
#include "common/base/limits.h"

/* Where the walk is. */
struct place {
    const char *path;
    bool in_environment; /* a member `value` is that of a variable */
};

static int walk(const struct place *at, const cJSON *old, const cJSON *now, cJSON *list,
                struct df_err *err);

static bool is_environment(const char *key)
{
    return df_streq(key, "environment") || df_streq(key, "env");
}

/* ---- values ---- */

/* Hides the values of variables in this copy. */
static int hide(cJSON *value, bool in_environment, struct df_err *err)
{
    cJSON *member;
    if (in_environment && cJSON_IsObject(value) &&
        cJSON_GetObjectItemCaseSensitive(value, "value") &&
        df_json_set_str(value, "value", DF_DIFFERENCE_HIDDEN, err) < 0)
        return -1;
    cJSON_ArrayForEach (member, value) {
        bool inside = cJSON_IsArray(value) ? in_environment : is_environment(member->string);
        if (hide(member, inside, err) < 0)
            return -1;
    }
    return 0;
}

static int add_value(cJSON *to, const char *key, const struct place *at, const cJSON *value,
                     struct df_err *err)
{
    const char *dot = strrchr(at->path, '.');
    if (!value)
        return 0;
    if (at->in_environment && df_streq(dot, ".value"))
        return df_json_set_str(to, key, DF_DIFFERENCE_HIDDEN, err);
    cJSON *copy = cJSON_Duplicate(value, true);
    if (df_json_set(to, key, copy, err) < 0)
        return -1;
    return hide(copy, at->in_environment, err);
}

static int note(const struct place *at, const cJSON *old, const cJSON *now, cJSON *list,
                struct df_err *err)
{
    cJSON *item = df_json_object(DF_STR("path", at->path));
    if (df_json_append(list, item, err) < 0)
        return -1;
    return add_value(item, "old", at, old, err) < 0 ? -1 : add_value(item, "new", at, now, err);
}

/* ---- lists ---- */

static const char *name_of(const cJSON *item)
{
    return df_json_str(item, "name");
}

/* A list of items, each of which has a name of its own. */
static bool is_named(const cJSON *value)
{
    const cJSON *item;
    if (!cJSON_IsArray(value))
        return false;
    cJSON_ArrayForEach (item, value) {
        if (!name_of(item) || df_json_named(value, name_of(item)) != item)
            return false;
    }
    return true;
}

/* ---- the walk ---- */

static const cJSON *part_of(const cJSON *whole, const char *key)
{
    return cJSON_IsArray(whole) ? df_json_named(whole, key)
                                : cJSON_GetObjectItemCaseSensitive(whole, key);
}

static int walk_part(const struct place *at, const char *key, const cJSON *old, const cJSON *now,
                     cJSON *list, struct df_err *err)
{
    bool is_item = cJSON_IsArray(now);
    DF_FREE char *path =
        is_item ? df_strf("%s[%s]", at->path, key) : df_strf("%s.%s", at->path, key);
    const struct place inside = {
        path, is_item ? at->in_environment
                      : is_environment(key) || (at->in_environment && df_streq(key, "value"))};
    return df_check_alloc(path, err) < 0
               ? -1
               : walk(&inside, part_of(old, key), part_of(now, key), list, err);
}

/* Both are objects, or lists of named items: first what the new one has, then what is gone. */
static int walk_parts(const struct place *at, const cJSON *old, const cJSON *now, cJSON *list,
                      struct df_err *err)
{
    const cJSON *part;
    cJSON_ArrayForEach (part, now) {
        const char *key = part->string ? part->string : name_of(part);
        if (walk_part(at, key, old, now, list, err) < 0)
            return -1;
    }
    cJSON_ArrayForEach (part, old) {
        const char *key = part->string ? part->string : name_of(part);
        if (!part_of(now, key) && walk_part(at, key, old, now, list, err) < 0)
            return -1;
    }
    return 0;
}

static int walk(const struct place *at, const cJSON *old, const cJSON *now, cJSON *list,
                struct df_err *err)
{
    if (old && now && df_json_equal(old, now))
        return 0;
    bool goes_down =
        (cJSON_IsObject(old) && cJSON_IsObject(now)) || (is_named(old) && is_named(now));
    return goes_down ? walk_parts(at, old, now, list, err) : note(at, old, now, list, err);
}

int df_difference(const char *root, const cJSON *old, const cJSON *now, cJSON **ret,
                  struct df_err *err)
{
    const struct place at = {root, false};
    DF_JSON cJSON *list = cJSON_CreateArray();
    if (df_check_alloc(list, err) < 0 || walk(&at, old, now, list, err) < 0)
        return -1;
    *ret = DF_TAKE(list);
    return 0;
}
