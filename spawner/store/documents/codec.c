/*
 * codec.c - first, which labels and fields are kept in the status; then decoding; then the check of
 * numbers; then the encoders
 * in the order of codec.h; last the index keys.
 */
#include "spawner/store/documents/codec.h"

#include "common/base/parse.h"
#include "common/kube/kube.h"
#include "spawner/model/labels.h"
#include "spawner/model/schema.h"
#include "spawner/model/tables.h"

#define SERVICE "service"

/* ---- what is kept in the status -------------------------------------------------------------- */

/* Labels by which the service finds its documents. The first two never change: they are also
 * written into metadata.labels, for people who use kubectl. */
static const char *const service_labels[] = {
    DF_LABEL_EXECUTOR,   DF_LABEL_RUN,        DF_LABEL_UNFINISHED,
    DF_LABEL_QUEUE,      DF_LABEL_LIVE,       DF_LABEL_LIVE_NAMESPACE,
    DF_LABEL_LIVE_CLASS, DF_LABEL_UNREPORTED, DF_LABEL_RESTORED};
#define SHOWN_LABELS 2

static bool is_service_label(const char *key)
{
    for (size_t i = 0; i < DF_ARRAY_SIZE(service_labels); i++)
        if (strcmp(service_labels[i], key) == 0)
            return true;
    return false;
}

/* Returns the field if it is kept in the status, NULL if the spec alone has it. An Executor has
 * none of these, because people may change its spec at any time. */
static const struct df_field *kept_field(enum df_kind kind, const char *name)
{
    return df_kind_row(kind)->is_editable ? NULL : df_spec_field(kind, name);
}

/* True if later edits of this field in the spec are ignored once the document is accepted. */
static bool is_frozen(enum df_kind kind, const char *name)
{
    const struct df_field *field = kept_field(kind, name);
    return field && field->by != DF_BY_VERB;
}

/* True if the field is also written into the spec of a new resource, for people to see. */
static bool is_shown(enum df_kind kind, const char *name)
{
    const struct df_field *field = kept_field(kind, name);
    return !field || field->by == DF_BY_CLIENT || field->by == DF_BY_PATH;
}

/* ---- helpers --------------------------------------------------------------------------------- */

static cJSON *member_of(const cJSON *object, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(object, name);
}

static int copy_item(cJSON *to, const char *as, const cJSON *item, struct df_err *err)
{
    return item ? df_json_set(to, as, cJSON_Duplicate(item, true), err) : 0;
}

/* Adds the item without a copy: `to` must not be read any more when its owner is gone. */
static int borrow_item(cJSON *to, const char *as, const cJSON *item, struct df_err *err)
{
    if (!item)
        return 0;
    cJSON *reference = cJSON_CreateNull();
    if (reference) {
        reference->type = item->type | cJSON_IsReference;
        reference->child = item->child;
        reference->valuestring = item->valuestring;
        reference->valueint = item->valueint;
        reference->valuedouble = item->valuedouble;
    }
    return df_json_add(to, as, reference, err);
}

static bool is_empty(const cJSON *object)
{
    return !object || !object->child;
}

/* Compares two maps; an absent one equals {}. */
static bool same_map(const cJSON *a, const cJSON *b)
{
    return (is_empty(a) && is_empty(b)) || (a && b && df_json_equal(a, b));
}

static bool same_item(const cJSON *a, const cJSON *b)
{
    return a && b ? df_json_equal(a, b) : !a && !b;
}

static int set_type(cJSON *resource, enum df_kind kind, const char *api_version, struct df_err *err)
{
    return df_json_put(resource, err, DF_STR("apiVersion", api_version),
                       DF_STR("kind", df_kind_name(kind)));
}

/* Copies the labels that are (or are not) service labels. */
static int pick_labels(cJSON *to, const cJSON *from, bool of_service, struct df_err *err)
{
    const cJSON *label;
    cJSON_ArrayForEach (label, from) {
        if (is_service_label(label->string) == of_service &&
            copy_item(to, label->string, label, err) < 0)
            return -1;
    }
    return 0;
}

/* ---- decode --------------------------------------------------------------------------------- */

static int reduce_metadata(cJSON *metadata, struct df_err *err)
{
    static const char *const kept[] = {"name",        "namespace",         "uid",
                                       "labels",      "resourceVersion",   "generation",
                                       "annotations", "creationTimestamp", "deletionTimestamp"};
    DF_JSON cJSON *all = cJSON_CreateObject();
    if (!all)
        return df_fail_oom(err);
    while (metadata->child)
        cJSON_AddItemToArray(all, cJSON_DetachItemViaPointer(metadata, metadata->child));
    for (size_t i = 0; i < DF_ARRAY_SIZE(kept); i++) {
        cJSON *item = cJSON_DetachItemFromObjectCaseSensitive(all, kept[i]);
        if (item)
            cJSON_AddItemToArray(metadata, item);
    }
    return 0;
}

static int show_labels(cJSON *metadata, const cJSON *service, struct df_err *err)
{
    DF_JSON cJSON *labels = cJSON_CreateObject();
    if (df_check_alloc(labels, err) < 0 ||
        pick_labels(labels, member_of(metadata, "labels"), false, err) < 0 ||
        pick_labels(labels, member_of(service, "labels"), true, err) < 0)
        return -1;
    cJSON_DeleteItemFromObjectCaseSensitive(metadata, "labels");
    return is_empty(labels) ? 0 : df_json_add(metadata, "labels", DF_TAKE(labels), err);
}

static int show_spec(enum df_kind kind, cJSON *spec, cJSON *service, struct df_err *err)
{
    cJSON *set = member_of(service, "spec");
    for (cJSON *item = service && spec ? spec->child : NULL, *next; item; item = next) {
        next = item->next;
        if (is_frozen(kind, item->string))
            cJSON_Delete(cJSON_DetachItemViaPointer(spec, item));
    }
    while (set && set->child) {
        cJSON *item = cJSON_DetachItemViaPointer(set, set->child);
        DF_FREE char *name = strdup(item->string);
        if (df_json_put(spec, err, DF_ITEM(name, item)) < 0)
            return -1;
    }
    return 0;
}

const char *df_codec_uid(const cJSON *resource)
{
    const char *own = df_json_str(resource, "status." SERVICE ".uid");
    return own ? own : df_kube_uid(resource);
}

static int show_uid(cJSON *metadata, const cJSON *service, struct df_err *err)
{
    const char *own = df_json_str(service, "uid");
    return own ? df_json_set_str(metadata, "uid", own, err) : 0;
}

int df_codec_to_document(enum df_kind kind, cJSON *resource, struct df_err *err)
{
    cJSON *metadata = df_json_object_at(resource, "metadata"), *spec = member_of(resource, "spec");
    cJSON *status = member_of(resource, "status");
    DF_JSON cJSON *service = cJSON_DetachItemFromObjectCaseSensitive(status, SERVICE);
    if (df_check_alloc(metadata, err) < 0 || set_type(resource, kind, DF_API_VERSION, err) < 0 ||
        reduce_metadata(metadata, err) < 0 || show_uid(metadata, service, err) < 0 ||
        show_labels(metadata, service, err) < 0 || show_spec(kind, spec, service, err) < 0)
        return -1;
    if (!service || is_empty(status))
        cJSON_DeleteItemFromObjectCaseSensitive(resource, "status");
    return 0;
}

/* ---- numbers --------------------------------------------------------------------------------- */

static void check_numbers(const cJSON *j, const struct df_path *path, struct df_faults *f)
{
    int64_t number = 0;
    int index = 0;
    const cJSON *item;
    if (cJSON_IsRaw(j) && df_parse_i64(j->valuestring, INT64_MIN, INT64_MAX, &number, NULL) < 0)
        df_fault(f, path, "Kubernetes would round the number %.60s: put it in quotes",
                 j->valuestring);
    cJSON_ArrayForEach (item, j) {
        const struct df_path here = {path, item->string, index++};
        check_numbers(item, &here, f);
    }
}

int df_codec_check_numbers(const cJSON *doc, struct df_err *err)
{
    const struct df_path root = {0};
    struct df_faults f = {0};
    check_numbers(doc, &root, &f);
    return df_faults_fail(&f, "InvalidDocument", "", err);
}

/* ---- encode a new resource ------------------------------------------------------------------ */

static cJSON *new_resource(enum df_kind kind, const char *api_version)
{
    cJSON *resource = cJSON_CreateObject();
    if (resource && set_type(resource, kind, api_version, NULL) == 0)
        return resource;
    cJSON_Delete(resource);
    return NULL;
}

/* Adds the labels that people see, unless labels has them. */
static int show_new_labels(cJSON *labels, const cJSON *doc, struct df_err *err)
{
    const cJSON *from = df_json_at(doc, "metadata.labels");
    for (size_t i = 0; i < SHOWN_LABELS; i++)
        if (!member_of(labels, service_labels[i]) &&
            copy_item(labels, service_labels[i], member_of(from, service_labels[i]), err) < 0)
            return -1;
    return 0;
}

static int new_labels(cJSON *labels, const cJSON *doc, struct df_err *err)
{
    if (pick_labels(labels, df_json_at(doc, "metadata.labels"), false, err) < 0)
        return -1;
    return show_new_labels(labels, doc, err);
}

static int new_metadata(cJSON *metadata, const cJSON *doc, const char *name_space,
                        struct df_err *err)
{
    cJSON *labels = df_json_object_at(metadata, "labels");
    cJSON *finalizers = df_json_array_at(metadata, "finalizers");
    if (df_check_alloc(labels, err) < 0 || df_check_alloc(finalizers, err) < 0 ||
        df_json_put(metadata, err, DF_STR("name", df_json_str(doc, "metadata.name")),
                    DF_STR("namespace", name_space)) < 0 ||
        borrow_item(metadata, "annotations", df_json_at(doc, "metadata.annotations"), err) < 0 ||
        new_labels(labels, doc, err) < 0)
        return -1;
    return df_json_append_str(finalizers, DF_FINALIZER, err);
}

static int new_spec(enum df_kind kind, cJSON *spec, const cJSON *from, struct df_err *err)
{
    const cJSON *item;
    cJSON_ArrayForEach (item, from) {
        if (is_shown(kind, item->string) && borrow_item(spec, item->string, item, err) < 0)
            return -1;
    }
    return 0;
}

int df_codec_new(enum df_kind kind, const char *api_version, const cJSON *doc,
                 const char *name_space, cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *resource = new_resource(kind, api_version);
    cJSON *metadata = df_json_object_at(resource, "metadata");
    cJSON *spec = df_json_object_at(resource, "spec");
    if (df_check_alloc(metadata, err) < 0 || df_check_alloc(spec, err) < 0 ||
        new_metadata(metadata, doc, name_space, err) < 0 ||
        new_spec(kind, spec, df_json_at(doc, "spec"), err) < 0)
        return -1;
    *ret = DF_TAKE(resource);
    return 0;
}

/* ---- encode spec and metadata --------------------------------------------------------------- */

/* Borrows the members that are (or are not) kept in the status. */
static int pick_members(enum df_kind kind, cJSON *to, const cJSON *from, bool is_kept,
                        struct df_err *err)
{
    const cJSON *item;
    cJSON_ArrayForEach (item, from) {
        if ((kept_field(kind, item->string) != NULL) == is_kept &&
            borrow_item(to, item->string, item, err) < 0)
            return -1;
    }
    return 0;
}

/* Removes a decision that was refused: the document does not have it any more. */
static void drop_refused(enum df_kind kind, cJSON *spec, const cJSON *doc)
{
    const cJSON *of_doc = df_json_at(doc, "spec");
    for (cJSON *item = spec->child, *next; item; item = next) {
        const struct df_field *field = kept_field(kind, item->string);
        next = item->next;
        if (field && field->by == DF_BY_VERB && !member_of(of_doc, item->string))
            cJSON_Delete(cJSON_DetachItemViaPointer(spec, item));
    }
}

/* Builds the spec of the resource: fields kept in the status stay as people wrote them, all others
 * are taken from the document. */
static int main_spec(enum df_kind kind, cJSON *spec, const cJSON *doc, const cJSON *old,
                     struct df_err *err)
{
    if (pick_members(kind, spec, df_json_at(doc, "spec"), false, err) < 0 ||
        pick_members(kind, spec, old, true, err) < 0)
        return -1;
    drop_refused(kind, spec, doc);
    return 0;
}

static bool has_finalizer(const cJSON *resource)
{
    return df_json_has_string(df_json_at(resource, "metadata.finalizers"), DF_FINALIZER);
}

/* A resource that people made gets the labels to be seen in the write that adds the finalizer. */
static int main_labels(cJSON *labels, const cJSON *doc, const cJSON *resource, struct df_err *err)
{
    if (pick_labels(labels, df_json_at(doc, "metadata.labels"), false, err) < 0 ||
        pick_labels(labels, df_json_at(resource, "metadata.labels"), true, err) < 0)
        return -1;
    bool gets_finalizer = !has_finalizer(resource) && !df_kube_is_deleted(resource);
    return gets_finalizer ? show_new_labels(labels, doc, err) : 0;
}

static int add_finalizer(cJSON *metadata, struct df_err *err)
{
    return df_json_append_str(df_json_array_at(metadata, "finalizers"), DF_FINALIZER, err);
}

/* Copies the resource without status and managed fields, and with these labels, annotations and
 * spec. */
static int write_main(const cJSON *resource, const cJSON *doc, const cJSON *labels,
                      const cJSON *spec, cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *main = cJSON_Duplicate(resource, true);
    const cJSON *annotations = df_json_at(doc, "metadata.annotations");
    cJSON *metadata = df_json_object_at(main, "metadata");
    cJSON_DeleteItemFromObjectCaseSensitive(main, "status");
    cJSON_DeleteItemFromObjectCaseSensitive(metadata, "annotations");
    if (copy_item(metadata, "labels", labels, err) < 0 ||
        copy_item(metadata, "annotations", annotations, err) < 0 ||
        copy_item(main, "spec", spec, err) < 0)
        return -1;
    if (!has_finalizer(resource) && !member_of(metadata, "deletionTimestamp") &&
        add_finalizer(metadata, err) < 0)
        return -1;
    *ret = DF_TAKE(main);
    return 0;
}

int df_codec_main(enum df_kind kind, const char *api_version, const cJSON *doc,
                  const cJSON *resource, cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *spec = cJSON_CreateObject(), *labels = cJSON_CreateObject();
    DF_JSON cJSON *main = NULL;
    const cJSON *old_spec = member_of(resource, "spec");
    const cJSON *old_labels = df_json_at(resource, "metadata.labels");
    if (df_check_alloc(spec, err) < 0 || df_check_alloc(labels, err) < 0 ||
        main_spec(kind, spec, doc, old_spec, err) < 0 ||
        main_labels(labels, doc, resource, err) < 0)
        return -1;
    bool guarded = has_finalizer(resource) || df_kube_is_deleted(resource);
    if (guarded && same_item(spec, old_spec) && same_map(labels, old_labels) &&
        same_map(df_json_at(doc, "metadata.annotations"),
                 df_json_at(resource, "metadata.annotations")))
        return 0;
    if (write_main(resource, doc, labels, spec, &main, err) < 0 ||
        set_type(main, kind, api_version, err) < 0)
        return -1;
    *ret = DF_TAKE(main);
    return 0;
}

/* ---- encode the status ---------------------------------------------------------------------- */

static int service_spec(enum df_kind kind, cJSON *service, const cJSON *doc, const cJSON *resource,
                        struct df_err *err)
{
    DF_JSON cJSON *set = cJSON_CreateObject();
    const cJSON *item;
    if (!set)
        return df_fail_oom(err);
    cJSON_ArrayForEach (item, df_json_at(doc, "spec")) {
        const char *name = item->string;
        bool differs = !same_item(item, member_of(member_of(resource, "spec"), name));
        if (kept_field(kind, name) && (is_frozen(kind, name) || differs) &&
            borrow_item(set, name, item, err) < 0)
            return -1;
    }
    return is_empty(set) ? 0 : df_json_add(service, "spec", DF_TAKE(set), err);
}

static int service_part(enum df_kind kind, cJSON *service, const cJSON *doc, const cJSON *resource,
                        struct df_err *err)
{
    const char *order = df_json_str(resource, "status." SERVICE ".order");
    const char *version = df_json_str(resource, "metadata.resourceVersion");
    cJSON *labels = df_json_object_at(service, "labels");
    if (df_check_alloc(labels, err) < 0 ||
        df_json_put(service, err, DF_STR("order", order ? order : version),
                    DF_STR("uid", df_codec_uid(resource))) < 0 ||
        pick_labels(labels, df_json_at(doc, "metadata.labels"), true, err) < 0)
        return -1;
    return service_spec(kind, service, doc, resource, err);
}

static int whole_status(enum df_kind kind, const cJSON *doc, const cJSON *resource, cJSON **ret,
                        struct df_err *err)
{
    DF_JSON cJSON *status = cJSON_CreateObject();
    cJSON *service = df_json_object_at(status, SERVICE);
    const cJSON *item;
    if (!service)
        return df_fail_oom(err);
    cJSON_ArrayForEach (item, df_json_at(doc, "status")) {
        if (borrow_item(status, item->string, item, err) < 0)
            return -1;
    }
    if (service_part(kind, service, doc, resource, err) < 0)
        return -1;
    *ret = DF_TAKE(status);
    return 0;
}

int df_codec_status(enum df_kind kind, const char *api_version, const cJSON *doc,
                    const cJSON *resource, cJSON **ret, struct df_err *err)
{
    static const char *const identity[] = {"name", "namespace", "uid", "resourceVersion"};
    DF_JSON cJSON *status = NULL, *body = NULL;
    if (whole_status(kind, doc, resource, &status, err) < 0)
        return -1;
    if (same_item(status, member_of(resource, "status")))
        return 0;
    body = new_resource(kind, api_version);
    cJSON *metadata = df_json_object_at(body, "metadata");
    if (!metadata)
        return df_fail_oom(err);
    for (size_t i = 0; i < DF_ARRAY_SIZE(identity); i++)
        if (borrow_item(metadata, identity[i],
                        member_of(member_of(resource, "metadata"), identity[i]), err) < 0)
            return -1;
    if (df_json_add(body, "status", DF_TAKE(status), err) < 0)
        return -1;
    *ret = DF_TAKE(body);
    return 0;
}

/* ---- index keys ----------------------------------------------------------------------------- */

static int add_labels(struct df_strs *to, const cJSON *labels, bool of_service, struct df_err *err)
{
    const cJSON *label;
    cJSON_ArrayForEach (label, labels) {
        if (is_service_label(label->string) == of_service)
            (void)df_strs_addf(to, "%s=%s", label->string, cJSON_GetStringValue(label));
    }
    return df_strs_check(to, err);
}

/* True if the resource was applied, edited or deleted after the last pass of the control loop. */
static bool is_unseen(const cJSON *resource)
{
    int64_t revision = df_json_int(resource, "status.revision", INT64_MAX);
    return !df_json_at(resource, "status." SERVICE) ||
           revision < df_json_int(resource, "metadata.generation", 0) ||
           df_kube_is_deleted(resource);
}

static bool is_restored(const cJSON *resource)
{
    const char *uid = df_kube_uid(resource);
    return uid && !df_streq(uid, df_codec_uid(resource));
}

int df_codec_labels(const cJSON *resource, struct df_strs *ret, struct df_err *err)
{
    static const char unfinished[] = DF_LABEL_UNFINISHED "=true";
    if (add_labels(ret, df_json_at(resource, "metadata.labels"), false, err) < 0 ||
        add_labels(ret, df_json_at(resource, "status." SERVICE ".labels"), true, err) < 0)
        return -1;
    if (is_unseen(resource) && !df_strs_has(ret, unfinished))
        (void)df_strs_add(ret, unfinished);
    if (is_restored(resource) && df_strs_has(ret, unfinished))
        (void)df_strs_add(ret, DF_LABEL_RESTORED "=true");
    return df_strs_check(ret, err);
}

/* Beyond every resourceVersion. */
#define FIRST_OF_CLUSTER (INT64_C(1) << 50)

int64_t df_codec_order(const cJSON *resource)
{
    const char *order = df_json_str(resource, "status." SERVICE ".order");
    const char *version = df_json_str(resource, "metadata.resourceVersion");
    int64_t number = 0;
    if (df_parse_i64(order ? order : version ? version : "", 1, INT64_MAX, &number, NULL) < 0)
        return 0;
    return is_restored(resource) ? number : number + FIRST_OF_CLUSTER;
}

cJSON *df_codec_other_finalizers(const cJSON *resource)
{
    cJSON *others = cJSON_CreateArray();
    const cJSON *item;
    cJSON_ArrayForEach (item, df_json_at(resource, "metadata.finalizers")) {
        const char *name = cJSON_GetStringValue(item);
        if (others && !df_streq(name, DF_FINALIZER) && df_json_append_str(others, name, NULL) < 0) {
            cJSON_Delete(others);
            return NULL;
        }
    }
    return others;
}
