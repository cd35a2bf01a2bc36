/*
 * Reads, compares and applies one object of any kind: what is wanted against what is there, then
 * against what the server would make of it.
 */
#include "runner/platform/object.h"

#include "common/base/clock.h"

/* ---- comparing ---- */

static bool has(const cJSON *live, const cJSON *wanted);

static bool has_members(const cJSON *live, const cJSON *wanted)
{
    const cJSON *member;
    cJSON_ArrayForEach (member, wanted) {
        const cJSON *found = cJSON_GetObjectItemCaseSensitive(live, member->string);
        if (!cJSON_IsNull(member) && (!found || !has(found, member)))
            return false;
    }
    return true;
}

static bool has_items(const cJSON *live, const cJSON *wanted)
{
    const cJSON *a = live->child, *b = wanted->child;
    for (; a && b; a = a->next, b = b->next) {
        if (!has(a, b))
            return false;
    }
    return !a && !b;
}

static bool has(const cJSON *live, const cJSON *wanted)
{
    if (cJSON_IsObject(wanted) && cJSON_IsObject(live))
        return has_members(live, wanted);
    if (cJSON_IsArray(wanted) && cJSON_IsArray(live))
        return has_items(live, wanted);
    return df_json_equal(live, wanted);
}

/* Of fields by their names: "f:spec": {"f:source": {}}. Items of lists are compared by has(). */
static bool owns_more(const cJSON *fields, const cJSON *wanted)
{
    const cJSON *field;
    cJSON_ArrayForEach (field, fields) {
        if (!df_starts_with(field->string, "f:"))
            continue;
        const cJSON *member = cJSON_GetObjectItemCaseSensitive(wanted, field->string + 2);
        if (!member || (cJSON_IsObject(member) && owns_more(field, member)))
            return true;
    }
    return false;
}

static const cJSON *owned_fields(const cJSON *live)
{
    const cJSON *entry;
    cJSON_ArrayForEach (entry, df_json_at(live, "metadata." DF_KUBE_MANAGED)) {
        if (df_streq(df_json_str(entry, "manager"), DF_PLATFORM_MANAGER) &&
            df_streq(df_json_str(entry, "operation"), "Apply") &&
            !df_json_str(entry, "subresource"))
            return df_json_at(entry, "fieldsV1");
    }
    return NULL;
}

bool df_object_is_ours(const struct df_objects *o, const cJSON *live)
{
    return df_streq(df_kube_label(live, DF_LABEL_ENVIRONMENT), o->environment);
}

bool df_object_has(const cJSON *live, const cJSON *wanted)
{
    return has(live, wanted) && !owns_more(owned_fields(live), wanted);
}

/* What a write changes of any object. */
static int without_versions(const cJSON *object, cJSON **ret, struct df_err *err)
{
    *ret = cJSON_Duplicate(object, true);
    if (!*ret)
        return df_fail_oom(err);
    cJSON *metadata = cJSON_GetObjectItemCaseSensitive(*ret, "metadata");
    cJSON_DeleteItemFromObjectCaseSensitive(metadata, DF_KUBE_MANAGED);
    cJSON_DeleteItemFromObjectCaseSensitive(metadata, "resourceVersion");
    return 0;
}

/* Asks the server what the object would be. */
static int would_change(struct df_objects *o, const struct df_kube_at *at,
                        const struct df_kube_patch *patch, const cJSON *live, bool *ret,
                        struct df_err *err)
{
    DF_SECRET_JSON cJSON *then = NULL, *before = NULL, *after = NULL;
    struct df_kube_patch trial = *patch;
    struct df_err why = {0};
    trial.dry_run = true;
    *ret = true;
    if (df_kube_patch(o->kube, at, &trial, &then, &why) < 0) /* its namespace is not there either */
        return !live && why.cls == DF_ERR_NOT_FOUND ? 0 : df_err_pass(err, &why);
    if (!live)
        return 0;
    if (without_versions(live, &before, err) < 0 || without_versions(then, &after, err) < 0)
        return -1;
    *ret = !df_json_equal(before, after);
    return 0;
}

/* ---- calls ---- */

int df_object_place(struct df_objects *o, const cJSON *object, const char *name_space,
                    struct df_object_place *ret, struct df_err *err)
{
    const char *version = df_json_str(object, "apiVersion"), *kind = df_json_str(object, "kind");
    const char *name = df_kube_name(object), *own = df_json_str(object, "metadata.namespace");
    const struct df_kind *k;
    if (!version || !kind || !name)
        return df_fail(err, DF_ERR_USER, "an object has no apiVersion, kind or metadata.name");
    if (df_kinds_find(&o->kinds, o->kube, version, kind, &k, err) < 0)
        return -1;
    *ret = (struct df_object_place){.resource = df_kind_resource(k),
                                    .at = {.name = name,
                                           .name_space = !k->is_namespaced ? NULL
                                                         : own             ? own
                                                                           : name_space,
                                           .stop = o->stop}};
    return 0;
}

struct df_kube_at df_object_at(const struct df_object_place *place)
{
    struct df_kube_at at = place->at;
    at.resource = &place->resource;
    return at;
}

int df_object_read(struct df_objects *o, const struct df_kube_at *at, cJSON **ret,
                   struct df_err *err)
{
    struct df_err why = {0};
    *ret = NULL;
    if (df_kube_get(o->kube, at, ret, &why) < 0 && why.cls != DF_ERR_NOT_FOUND)
        return df_err_pass(err, &why);
    return 0;
}

/* Ends a write that began at from_us and may have failed. */
static int end_write(struct df_objects *o, const char *verb, const struct df_kube_at *at,
                     int64_t from_us, int failed, const struct df_err *why)
{
    o->writes += failed == 0;
    if (o->telemetry && !o->dry_run)
        df_telemetry_write(o->telemetry, verb, at, from_us, failed ? why->message : NULL);
    return failed;
}

int df_object_patch(struct df_objects *o, const struct df_kube_at *at,
                    const struct df_kube_patch *patch, cJSON **ret, struct df_err *err)
{
    int64_t from_us = df_real_us();
    struct df_err why = {0};
    int failed = o->dry_run ? 0 : df_kube_patch(o->kube, at, patch, ret, &why);
    return end_write(o, "patch", at, from_us, failed, &why) < 0 ? df_err_pass(err, &why) : 0;
}

int df_object_apply_over(struct df_objects *o, const struct df_kube_at *at, const cJSON *live,
                         const cJSON *wanted, enum df_applied *ret, cJSON **ret_object,
                         struct df_err *err)
{
    const struct df_kube_patch patch = {
        .type = DF_KUBE_PATCH_APPLY, .body = wanted, .manager = DF_PLATFORM_MANAGER, .force = true};
    bool changes = false;
    *ret = DF_APPLIED_SAME;
    if (live && df_object_has(live, wanted))
        return 0;
    /* A new object needs no trial, unless that is all there shall be. */
    if ((live || o->dry_run) && would_change(o, at, &patch, live, &changes, err) < 0)
        return -1;
    if (live && !changes)
        return 0;
    if (df_object_patch(o, at, &patch, ret_object, err) < 0)
        return -1;
    *ret = live ? DF_APPLIED_CHANGED : DF_APPLIED_NEW;
    return 0;
}

static int with_label(const struct df_objects *o, const cJSON *object, cJSON **ret,
                      struct df_err *err)
{
    DF_SECRET_JSON cJSON *copy = cJSON_Duplicate(object, true);
    cJSON *labels = df_json_object_at(df_json_object_at(copy, "metadata"), "labels");
    if (df_check_alloc(copy, err) < 0 ||
        df_json_set_str(labels, DF_LABEL_ENVIRONMENT, o->environment, err) < 0)
        return -1;
    *ret = DF_TAKE(copy);
    return 0;
}

static int apply_at(struct df_objects *o, const struct df_kube_at *at, const cJSON *wanted,
                    enum df_applied *ret, struct df_err *err)
{
    DF_SECRET_JSON cJSON *live = NULL, *labelled = NULL;
    *ret = DF_APPLIED_SAME;
    if (df_object_read(o, at, &live, err) < 0 || with_label(o, wanted, &labelled, err) < 0)
        return -1;
    if (!live || df_object_is_ours(o, live))
        return df_object_apply_over(o, at, live, labelled, ret, NULL, err);
    return df_object_has(live, wanted)
               ? 0
               : df_fail_reason(err, DF_ERR_DENIED, "NotOurs",
                                "it exists, is another one, and is not of this platform: take it "
                                "out of the folder, or hand it over by the label %s=%s",
                                DF_LABEL_ENVIRONMENT, o->environment);
}

int df_object_apply(struct df_objects *o, const cJSON *wanted, const char *name_space,
                    enum df_applied *ret, struct df_err *err)
{
    struct df_object_place place;
    if (df_object_place(o, wanted, name_space, &place, err) < 0)
        return -1;
    const struct df_kube_at at = df_object_at(&place);
    if (apply_at(o, &at, wanted, ret, err) < 0)
        return df_err_wrap(err, "%s %s", place.resource.plural, at.name);
    return 0;
}

int df_object_delete(struct df_objects *o, const struct df_kube_at *at, const char *uid,
                     struct df_err *err)
{
    struct df_kube_delete_options options = DF_KUBE_DELETE_OPTIONS;
    int64_t from_us = df_real_us();
    struct df_err why = {0};
    options.uid = uid;
    int failed = o->dry_run ? 0 : df_kube_delete(o->kube, at, &options, &why);
    if (failed && why.cls == DF_ERR_NOT_FOUND)
        return 0;
    return end_write(o, "delete", at, from_us, failed, &why) < 0 ? df_err_pass(err, &why) : 0;
}
