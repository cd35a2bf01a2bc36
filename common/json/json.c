/*
 * json.c - helpers over cJSON trees: adders that fail on no memory, getters by path, and
 * operations on whole trees (compare, hash, wipe, merge patch).
 */
#include "common/json/json.h"

#include <math.h>

#include "common/base/clock.h"

/* ---- adders ---- */

int df_json_add(cJSON *object, const char *key, cJSON *item, struct df_err *err)
{
    if (item && cJSON_AddItemToObject(object, key, item))
        return 0;
    df_json_wipe(item); /* may be secret */
    return df_fail_oom(err);
}

int df_json_add_str(cJSON *object, const char *key, const char *value, struct df_err *err)
{
    if (!value)
        return df_check_alloc(object, err);
    return df_json_add(object, key, cJSON_CreateString(value), err);
}

int df_json_add_num(cJSON *object, const char *key, double value, struct df_err *err)
{
    return df_json_add(object, key, cJSON_CreateNumber(value), err);
}

int df_json_add_bool(cJSON *object, const char *key, bool value, struct df_err *err)
{
    return df_json_add(object, key, cJSON_CreateBool(value), err);
}

int df_json_add_time(cJSON *object, const char *key, int64_t real_us, struct df_err *err)
{
    char text[DF_TIME_LEN];
    return df_json_add_str(object, key, df_time_format(real_us, text), err);
}

int df_json_append(cJSON *array, cJSON *item, struct df_err *err)
{
    if (item && cJSON_AddItemToArray(array, item))
        return 0;
    df_json_wipe(item);
    return df_fail_oom(err);
}

int df_json_append_str(cJSON *array, const char *value, struct df_err *err)
{
    if (!value)
        return df_check_alloc(array, err);
    return df_json_append(array, cJSON_CreateString(value), err);
}

int df_json_set(cJSON *object, const char *key, cJSON *item, struct df_err *err)
{
    cJSON *old = cJSON_GetObjectItemCaseSensitive(object, key);
    if (!old)
        return df_json_add(object, key, item, err);
    if (!item)
        return df_fail_oom(err);
    /* Reuses the place and key of the old item: without an allocation this cannot fail half-way. */
    cJSON_free(item->string);
    item->string = old->string;
    old->string = NULL;
    if (!cJSON_ReplaceItemViaPointer(object, old, item))
        DF_BUG("member \"%s\" vanished", key);
    return 0;
}

int df_json_set_str(cJSON *object, const char *key, const char *value, struct df_err *err)
{
    if (!value)
        return df_check_alloc(object, err);
    return df_json_set(object, key, cJSON_CreateString(value), err);
}

/* ---- several members ---- */

static cJSON *value_of(const struct df_json_member *m)
{
    char text[DF_TIME_LEN];
    switch (m->type) {
    case DF_MEMBER_STR:
    case DF_MEMBER_STR_ALLOC:
        return m->text ? cJSON_CreateString(m->text) : NULL;
    case DF_MEMBER_NUM:
        return cJSON_CreateNumber(m->number);
    case DF_MEMBER_BOOL:
        return cJSON_CreateBool(m->number != 0);
    case DF_MEMBER_TIME:
        return cJSON_CreateString(df_time_format(m->real_us, text));
    case DF_MEMBER_ITEM:
        return m->item;
    case DF_MEMBER_END:
        break;
    }
    DF_BUG("member \"%s\" has no type", m->key);
}

static int put_members(cJSON *object, const struct df_json_member *members,
                       int (*put)(cJSON *, const char *, cJSON *, struct df_err *),
                       struct df_err *err)
{
    int result = df_check_alloc(object, err);
    for (const struct df_json_member *m = members; m->type != DF_MEMBER_END; m++) {
        result = result < 0 ? result : df_check_alloc(m->key, err);
        if (result < 0)
            df_json_wipe(m->item); /* may be secret */
        else if (m->type != DF_MEMBER_STR || m->text)
            result = put(object, m->key, value_of(m), err);
    }
    return result;
}

cJSON *df_json_object_of(const struct df_json_member *members)
{
    DF_SECRET_JSON cJSON *object = cJSON_CreateObject();
    return put_members(object, members, df_json_add, NULL) < 0 ? NULL : DF_TAKE(object);
}

int df_json_put_members(cJSON *object, const struct df_json_member *members, struct df_err *err)
{
    return put_members(object, members, df_json_set, err);
}

static cJSON *holder_at(cJSON *object, const char *key, bool is_object)
{
    cJSON *found = cJSON_GetObjectItemCaseSensitive(object, key);
    if (found && (is_object ? cJSON_IsObject(found) : cJSON_IsArray(found)))
        return found;
    cJSON *made = is_object ? cJSON_CreateObject() : cJSON_CreateArray();
    return df_json_set(object, key, made, NULL) < 0 ? NULL : made;
}

cJSON *df_json_object_at(cJSON *object, const char *key)
{
    return holder_at(object, key, true);
}

cJSON *df_json_array_at(cJSON *object, const char *key)
{
    return holder_at(object, key, false);
}

/* ---- getters ---- */

static const cJSON *member(const cJSON *object, const char *key, size_t n)
{
    if (!cJSON_IsObject(object))
        return NULL;
    for (const cJSON *m = object->child; m; m = m->next)
        if (strncmp(m->string, key, n) == 0 && m->string[n] == '\0')
            return m;
    return NULL;
}

const cJSON *df_json_at(const cJSON *object, const char *path)
{
    for (;;) {
        size_t n = strcspn(path, ".");
        object = member(object, path, n);
        if (!path[n] || !object)
            return object;
        path += n + 1;
    }
}

const char *df_json_str(const cJSON *object, const char *path)
{
    const cJSON *j = df_json_at(object, path);
    return cJSON_IsString(j) ? j->valuestring : NULL;
}

const char *df_json_text(const cJSON *object, const char *path)
{
    const char *text = df_json_str(object, path);
    return text ? text : "";
}

double df_json_num(const cJSON *object, const char *path, double fallback)
{
    const cJSON *j = df_json_at(object, path);
    return cJSON_IsNumber(j) ? j->valuedouble : fallback;
}

int64_t df_json_int(const cJSON *object, const char *path, int64_t fallback)
{
    double d = df_json_num(object, path, NAN);
    bool whole = d >= -DF_JSON_MAX_WHOLE && d <= DF_JSON_MAX_WHOLE && d == floor(d);
    return whole ? (int64_t)d : fallback;
}

bool df_json_bool(const cJSON *object, const char *path, bool fallback)
{
    const cJSON *j = df_json_at(object, path);
    return cJSON_IsBool(j) ? cJSON_IsTrue(j) : fallback;
}

/* ---- whole trees ---- */

static int compare_keys(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* For few members, comparing all pairs is faster than sorting. */
#define FEW 12

static const char *duplicate_of_few(const cJSON *object)
{
    for (const cJSON *a = object->child; a; a = a->next)
        for (const cJSON *b = a->next; b; b = b->next)
            if (strcmp(a->string, b->string) == 0)
                return b->string;
    return NULL;
}

int df_json_duplicate_key(const cJSON *object, const char **ret, struct df_err *err)
{
    size_t n = (size_t)cJSON_GetArraySize(object), i = 0;
    *ret = NULL;
    if (n <= FEW) {
        *ret = duplicate_of_few(object);
        return 0;
    }
    /* Sorting keeps objects with a million keys from taking quadratic time. */
    DF_FREE const char **keys = reallocarray(NULL, n, sizeof(*keys));
    if (!keys)
        return df_fail_oom(err);
    for (const cJSON *m = object->child; m; m = m->next)
        keys[i++] = m->string;
    qsort(keys, n, sizeof(*keys), compare_keys);
    for (i = 1; i < n && !*ret; i++)
        if (strcmp(keys[i - 1], keys[i]) == 0)
            *ret = keys[i];
    return 0;
}

static bool equal_objects(const cJSON *a, const cJSON *b)
{
    if (cJSON_GetArraySize(a) != cJSON_GetArraySize(b))
        return false;
    /* Documents are usually written by the same code: try the same position first. */
    const cJSON *guess = b->child;
    for (const cJSON *m = a->child; m; m = m->next) {
        bool hit = guess && strcmp(guess->string, m->string) == 0;
        const cJSON *other = hit ? guess : member(b, m->string, strlen(m->string));
        if (!other || !df_json_equal(m, other))
            return false;
        guess = other->next;
    }
    return true;
}

static bool equal_arrays(const cJSON *a, const cJSON *b)
{
    const cJSON *x = a->child, *y = b->child;
    while (x && y && df_json_equal(x, y)) {
        x = x->next;
        y = y->next;
    }
    return !x && !y;
}

bool df_json_equal(const cJSON *a, const cJSON *b)
{
    if (!a || !b || (a->type & 0xff) != (b->type & 0xff))
        return a == b;
    switch (a->type & 0xff) {
    case cJSON_Object:
        return equal_objects(a, b);
    case cJSON_Array:
        return equal_arrays(a, b);
    case cJSON_String:
    case cJSON_Raw:
        return strcmp(a->valuestring, b->valuestring) == 0;
    case cJSON_Number:
        return a->valuedouble == b->valuedouble;
    default:
        return true;
    }
}

static uint64_t hash_text(uint64_t h, const char *s)
{
    return s ? df_hash(h, s, strlen(s) + 1) : h;
}

bool df_json_has_string(const cJSON *list, const char *s)
{
    const cJSON *item;
    if (!s)
        return false;
    cJSON_ArrayForEach (item, list) {
        if ((item->type & cJSON_String) && *item->valuestring == *s &&
            df_streq(item->valuestring, s))
            return true;
    }
    return false;
}

const cJSON *df_json_named(const cJSON *list, const char *name)
{
    const cJSON *item;
    cJSON_ArrayForEach (item, list) {
        if (df_streq(df_json_str(item, "name"), name))
            return item;
    }
    return NULL;
}

uint64_t df_json_hash(const cJSON *j, uint64_t seed)
{
    const unsigned char type = (unsigned char)j->type, end = 0xff;
    uint64_t h = hash_text(df_hash(seed, &type, 1), j->string);
    h = hash_text(h, j->valuestring);
    if (cJSON_IsNumber(j))
        h = df_hash(h, &j->valuedouble, sizeof(j->valuedouble));
    for (const cJSON *item = j->child; item; item = item->next)
        h = df_json_hash(item, h);
    return df_hash(h, &end,
                   1); /* an end mark: it distinguishes children from the following siblings */
}

static void wipe_strings(cJSON *j)
{
    for (; j; j = j->next) {
        if (j->type & cJSON_IsReference)
            continue;
        if (j->valuestring)
            explicit_bzero(j->valuestring, strlen(j->valuestring));
        wipe_strings(j->child);
    }
}

void df_json_wipe(cJSON *j)
{
    wipe_strings(j);
    cJSON_Delete(j);
}

static int merge_members(cJSON *target, const cJSON *patch, struct df_err *err);

static int merge_member(cJSON *target, const cJSON *m, struct df_err *err)
{
    if (cJSON_IsNull(m)) {
        cJSON_DeleteItemFromObjectCaseSensitive(target, m->string);
        return 0;
    }
    if (!cJSON_IsObject(m))
        return df_json_set(target, m->string, cJSON_Duplicate(m, true), err);
    cJSON *inner = df_json_object_at(target, m->string);
    return inner ? merge_members(inner, m, err) : df_fail_oom(err);
}

static int merge_members(cJSON *target, const cJSON *patch, struct df_err *err)
{
    for (const cJSON *m = patch->child; m; m = m->next)
        if (merge_member(target, m, err) < 0)
            return -1;
    return 0;
}

int df_json_merge_patch(cJSON **target, const cJSON *patch, struct df_err *err)
{
    DF_JSON cJSON *merged = cJSON_Duplicate(*target, true);
    if (!merged)
        return df_fail_oom(err);
    if (merge_members(merged, patch, err) < 0)
        return -1;
    cJSON_Delete(*target);
    *target = DF_TAKE(merged);
    return 0;
}
