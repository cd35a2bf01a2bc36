#include "spawner/store/wire.h"

#include "common/base/parse.h"
#include "common/kube/kube.h"
#include "spawner/model/labels.h"

#define SERVICE "service"

/* ---- who writes what ------------------------------------------------------------------------ */

/* Labels that the service finds its documents by. The first two never change: they are written into
 * metadata.labels, too, for those who look with kubectl. */
static const char *const service_labels[] = {DF_LABEL_EXECUTOR,   DF_LABEL_RUN,
                                             DF_LABEL_UNFINISHED, DF_LABEL_QUEUE,
                                             DF_LABEL_LIVE,       DF_LABEL_LIVE_NAMESPACE,
                                             DF_LABEL_LIVE_CLASS, DF_LABEL_UNREPORTED};
#define SHOWN_LABELS 2

static bool is_service_label(const char *key)
{
    for (size_t i = 0; i < DF_ARRAY_SIZE(service_labels); i++)
        if (strcmp(service_labels[i], key) == 0)
            return true;
    return false;
}

/* Members of the spec that stand in the status, because the service sets them, or because what was
 * taken in must not change any more. All others are people's at any time. */
struct member {
    const char *name;
    bool is_shown; /* written into the spec of a new resource, too */
    bool is_kept;  /* once taken in, what people write into the spec counts no more */
};
static const struct member of_executor[] = {{0}};
static const struct member of_run[] = {{"executorRef", true, true},  {"action", true, true},
                                       {"variables", true, true},    {"arguments", true, true},
                                       {"placement", true, true},    {"autoApprove", true, true},
                                       {"class", true, true},        {"priority", true, true},
                                       {"number", false, true},      {"snapshot", false, true},
                                       {"requestedBy", false, true}, {"decision", false, false},
                                       {"cancel", false, false},     {0}};
static const struct member of_task[] = {{"action", true, true},
                                        {"engine", true, true},
                                        {"runRef", true, true},
                                        {"executorRef", true, true},
                                        {"targetResource", true, true},
                                        {"planFrom", true, true},
                                        {"workflow", true, true},
                                        {"timeoutSeconds", true, true},
                                        {"pendingSeconds", true, true},
                                        {"placement", true, true},
                                        {"class", true, true},
                                        {"priority", true, true},
                                        {"graceSeconds", false, true},
                                        {"runtime", false, true},
                                        {"source", false, true},
                                        {"variables", false, true},
                                        {"arguments", false, true},
                                        {"environment", false, true},
                                        {"secrets", false, true},
                                        {"integrations", false, true},
                                        {"storage", false, true},
                                        {"cancel", false, false},
                                        {0}};
static const struct member *const members[DF_KIND_COUNT] = {of_executor, of_run, of_task};

static const struct member *find_member(enum df_kind kind, const char *name)
{
    for (const struct member *m = members[kind]; m->name; m++)
        if (strcmp(m->name, name) == 0)
            return m;
    return NULL;
}

/* ---- small things --------------------------------------------------------------------------- */

static cJSON *member(const cJSON *object, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(object, name);
}

static int copy(cJSON *to, const char *as, const cJSON *item, struct df_err *err)
{
    return item ? df_json_set(to, as, cJSON_Duplicate(item, true), err) : 0;
}

static bool is_empty(const cJSON *object)
{
    return !object || !object->child;
}

/* Equal, where absent and {} are the same. */
static bool same_map(const cJSON *a, const cJSON *b)
{
    return (is_empty(a) && is_empty(b)) || (a && b && df_json_equal(a, b));
}

static bool same(const cJSON *a, const cJSON *b)
{
    return a && b ? df_json_equal(a, b) : !a && !b;
}

static int set_type(cJSON *wire, enum df_kind kind, const char *api_version, struct df_err *err)
{
    return df_json_set_str(wire, "apiVersion", api_version, err) < 0
               ? -1
               : df_json_set_str(wire, "kind", df_kind_name(kind), err);
}

/* The members of from whose names are (or are not) those of service labels. */
static int pick_labels(cJSON *to, const cJSON *from, bool of_service, struct df_err *err)
{
    const cJSON *label;
    cJSON_ArrayForEach (label, from) {
        if (is_service_label(label->string) == of_service &&
            copy(to, label->string, label, err) < 0)
            return -1;
    }
    return 0;
}

/* ---- to the document ------------------------------------------------------------------------ */

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
    if (!labels)
        return df_fail_oom(err);
    if (pick_labels(labels, member(metadata, "labels"), false, err) < 0 ||
        pick_labels(labels, member(service, "labels"), true, err) < 0)
        return -1;
    cJSON_DeleteItemFromObjectCaseSensitive(metadata, "labels");
    return is_empty(labels) ? 0 : df_json_add(metadata, "labels", DF_TAKE(labels), err);
}

static int show_spec(enum df_kind kind, cJSON *spec, cJSON *service, struct df_err *err)
{
    cJSON *set = member(service, "spec");
    for (const struct member *m = members[kind]; service && m->name; m++)
        if (m->is_kept)
            cJSON_DeleteItemFromObjectCaseSensitive(spec, m->name);
    while (set && set->child) {
        cJSON *item = cJSON_DetachItemViaPointer(set, set->child);
        DF_FREE char *name = strdup(item->string);
        if (!name) {
            cJSON_Delete(item);
            return df_fail_oom(err);
        }
        if (df_json_set(spec, name, item, err) < 0)
            return -1;
    }
    return 0;
}

int df_wire_to_document(enum df_kind kind, cJSON *wire, struct df_err *err)
{
    cJSON *metadata = df_json_object_at(wire, "metadata"), *spec = member(wire, "spec");
    cJSON *status = member(wire, "status");
    DF_JSON cJSON *service = cJSON_DetachItemFromObjectCaseSensitive(status, SERVICE);
    if (!metadata)
        return df_fail_oom(err);
    if (set_type(wire, kind, DF_API_VERSION, err) < 0 || reduce_metadata(metadata, err) < 0 ||
        show_labels(metadata, service, err) < 0 || show_spec(kind, spec, service, err) < 0)
        return -1;
    if (!service || is_empty(status))
        cJSON_DeleteItemFromObjectCaseSensitive(wire, "status");
    return 0;
}

/* ---- from the document ---------------------------------------------------------------------- */

static cJSON *header(enum df_kind kind, const char *api_version)
{
    cJSON *wire = cJSON_CreateObject();
    if (wire && set_type(wire, kind, api_version, NULL) == 0)
        return wire;
    cJSON_Delete(wire);
    return NULL;
}

static int new_labels(cJSON *labels, const cJSON *doc, struct df_err *err)
{
    const cJSON *from = df_json_at(doc, "metadata.labels");
    if (pick_labels(labels, from, false, err) < 0)
        return -1;
    for (size_t i = 0; i < SHOWN_LABELS; i++)
        if (copy(labels, service_labels[i], member(from, service_labels[i]), err) < 0)
            return -1;
    return 0;
}

static int new_metadata(cJSON *metadata, const cJSON *doc, const char *name_space,
                        struct df_err *err)
{
    cJSON *labels = df_json_object_at(metadata, "labels");
    cJSON *finalizers = df_json_array_at(metadata, "finalizers");
    if (!labels || !finalizers)
        return df_fail_oom(err);
    if (df_json_add_str(metadata, "name", df_json_str(doc, "metadata.name"), err) < 0 ||
        df_json_add_str(metadata, "namespace", name_space, err) < 0 ||
        copy(metadata, "annotations", df_json_at(doc, "metadata.annotations"), err) < 0 ||
        new_labels(labels, doc, err) < 0)
        return -1;
    return df_json_append_str(finalizers, DF_FINALIZER, err);
}

static int new_spec(enum df_kind kind, cJSON *spec, const cJSON *from, struct df_err *err)
{
    const cJSON *item;
    cJSON_ArrayForEach (item, from) {
        const struct member *m = find_member(kind, item->string);
        if ((!m || m->is_shown) && copy(spec, item->string, item, err) < 0)
            return -1;
    }
    return 0;
}

int df_wire_new(enum df_kind kind, const char *api_version, const cJSON *doc,
                const char *name_space, cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *wire = header(kind, api_version);
    cJSON *metadata = wire ? df_json_object_at(wire, "metadata") : NULL;
    cJSON *spec = wire ? df_json_object_at(wire, "spec") : NULL;
    if (!metadata || !spec)
        return df_fail_oom(err);
    if (new_metadata(metadata, doc, name_space, err) < 0 ||
        new_spec(kind, spec, df_json_at(doc, "spec"), err) < 0)
        return -1;
    *ret = DF_TAKE(wire);
    return 0;
}

/* ---- changes of the main part --------------------------------------------------------------- */

/* The spec that people see: what the document says, but for what the service sets. */
static int main_spec(enum df_kind kind, cJSON *spec, const cJSON *doc, const cJSON *old,
                     struct df_err *err)
{
    const cJSON *item;
    cJSON_ArrayForEach (item, df_json_at(doc, "spec")) {
        if (!find_member(kind, item->string) && copy(spec, item->string, item, err) < 0)
            return -1;
    }
    for (const struct member *m = members[kind]; m->name; m++)
        if (copy(spec, m->name, member(old, m->name), err) < 0)
            return -1;
    return 0;
}

static int main_labels(cJSON *labels, const cJSON *doc, const cJSON *old, struct df_err *err)
{
    return pick_labels(labels, df_json_at(doc, "metadata.labels"), false, err) < 0
               ? -1
               : pick_labels(labels, old, true, err);
}

static bool has_finalizer(const cJSON *wire)
{
    const cJSON *item;
    cJSON_ArrayForEach (item, df_json_at(wire, "metadata.finalizers")) {
        if (df_streq(cJSON_GetStringValue(item), DF_FINALIZER))
            return true;
    }
    return false;
}

static int add_finalizer(cJSON *metadata, struct df_err *err)
{
    cJSON *finalizers = df_json_array_at(metadata, "finalizers");
    return finalizers ? df_json_append_str(finalizers, DF_FINALIZER, err) : df_fail_oom(err);
}

/* A copy without status and managed fields, with these labels, annotations and spec. */
static int write_main(const cJSON *wire, const cJSON *doc, const cJSON *labels, const cJSON *spec,
                      cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *main = cJSON_Duplicate(wire, true);
    const cJSON *annotations = df_json_at(doc, "metadata.annotations");
    cJSON *metadata = df_json_object_at(main, "metadata");
    if (!metadata)
        return df_fail_oom(err);
    cJSON_DeleteItemFromObjectCaseSensitive(main, "status");
    cJSON_DeleteItemFromObjectCaseSensitive(metadata, "annotations");
    if (copy(metadata, "labels", labels, err) < 0 ||
        copy(metadata, "annotations", annotations, err) < 0 || copy(main, "spec", spec, err) < 0)
        return -1;
    if (!has_finalizer(wire) && !member(metadata, "deletionTimestamp") &&
        add_finalizer(metadata, err) < 0)
        return -1;
    *ret = DF_TAKE(main);
    return 0;
}

int df_wire_main(enum df_kind kind, const char *api_version, const cJSON *doc, const cJSON *wire,
                 cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *spec = cJSON_CreateObject(), *labels = cJSON_CreateObject();
    DF_JSON cJSON *main = NULL;
    const cJSON *old_spec = member(wire, "spec");
    const cJSON *old_labels = df_json_at(wire, "metadata.labels");
    if (!spec || !labels)
        return df_fail_oom(err);
    if (main_spec(kind, spec, doc, old_spec, err) < 0 ||
        main_labels(labels, doc, old_labels, err) < 0)
        return -1;
    bool guarded = has_finalizer(wire) || df_kube_is_deleted(wire);
    if (guarded && same(spec, old_spec) && same_map(labels, old_labels) &&
        same_map(df_json_at(doc, "metadata.annotations"), df_json_at(wire, "metadata.annotations")))
        return 0;
    if (write_main(wire, doc, labels, spec, &main, err) < 0 ||
        set_type(main, kind, api_version, err) < 0)
        return -1;
    *ret = DF_TAKE(main);
    return 0;
}

/* ---- changes of the status ------------------------------------------------------------------ */

static int service_spec(enum df_kind kind, cJSON *service, const cJSON *doc, const cJSON *wire,
                        struct df_err *err)
{
    DF_JSON cJSON *set = cJSON_CreateObject();
    if (!set)
        return df_fail_oom(err);
    for (const struct member *m = members[kind]; m->name; m++) {
        const cJSON *now = member(df_json_at(doc, "spec"), m->name);
        if (now && (m->is_kept || !same(now, member(member(wire, "spec"), m->name))) &&
            copy(set, m->name, now, err) < 0)
            return -1;
    }
    return is_empty(set) ? 0 : df_json_add(service, "spec", DF_TAKE(set), err);
}

static int service_part(enum df_kind kind, cJSON *service, const cJSON *doc, const cJSON *wire,
                        struct df_err *err)
{
    const char *order = df_json_str(wire, "status." SERVICE ".order");
    const char *version = df_json_str(wire, "metadata.resourceVersion");
    cJSON *labels = df_json_object_at(service, "labels");
    if (!labels)
        return df_fail_oom(err);
    if (df_json_add_str(service, "order", order ? order : version, err) < 0 ||
        pick_labels(labels, df_json_at(doc, "metadata.labels"), true, err) < 0)
        return -1;
    return service_spec(kind, service, doc, wire, err);
}

static int whole_status(enum df_kind kind, const cJSON *doc, const cJSON *wire, cJSON **ret,
                        struct df_err *err)
{
    const cJSON *own = df_json_at(doc, "status");
    DF_JSON cJSON *status = own ? cJSON_Duplicate(own, true) : cJSON_CreateObject();
    cJSON *service = status ? df_json_object_at(status, SERVICE) : NULL;
    if (!service)
        return df_fail_oom(err);
    if (service_part(kind, service, doc, wire, err) < 0)
        return -1;
    *ret = DF_TAKE(status);
    return 0;
}

int df_wire_status(enum df_kind kind, const char *api_version, const cJSON *doc, const cJSON *wire,
                   cJSON **ret, struct df_err *err)
{
    static const char *const identity[] = {"name", "namespace", "uid", "resourceVersion"};
    DF_JSON cJSON *status = NULL, *body = NULL;
    if (whole_status(kind, doc, wire, &status, err) < 0)
        return -1;
    if (same(status, member(wire, "status")))
        return 0;
    body = header(kind, api_version);
    cJSON *metadata = body ? df_json_object_at(body, "metadata") : NULL;
    if (!metadata)
        return df_fail_oom(err);
    for (size_t i = 0; i < DF_ARRAY_SIZE(identity); i++)
        if (copy(metadata, identity[i], member(member(wire, "metadata"), identity[i]), err) < 0)
            return -1;
    if (df_json_add(body, "status", DF_TAKE(status), err) < 0)
        return -1;
    *ret = DF_TAKE(body);
    return 0;
}

/* ---- what the memory is sorted by ----------------------------------------------------------- */

static int add_labels(struct df_strs *to, const cJSON *labels, bool of_service, struct df_err *err)
{
    const cJSON *label;
    cJSON_ArrayForEach (label, labels) {
        if (is_service_label(label->string) == of_service)
            (void)df_strs_addf(to, "%s=%s", label->string, cJSON_GetStringValue(label));
    }
    return df_strs_check(to, err);
}

/* Somebody applied, edited or deleted it, and nobody has looked yet. */
static bool needs_a_look(const cJSON *wire)
{
    int64_t revision = df_json_int(wire, "status.revision", INT64_MAX);
    return !df_json_at(wire, "status." SERVICE) ||
           revision < df_json_int(wire, "metadata.generation", 0) || df_kube_is_deleted(wire);
}

int df_wire_labels(const cJSON *wire, struct df_strs *ret, struct df_err *err)
{
    static const char unfinished[] = DF_LABEL_UNFINISHED "=true";
    if (add_labels(ret, df_json_at(wire, "metadata.labels"), false, err) < 0 ||
        add_labels(ret, df_json_at(wire, "status." SERVICE ".labels"), true, err) < 0)
        return -1;
    if (needs_a_look(wire) && !df_strs_has(ret, unfinished))
        (void)df_strs_add(ret, unfinished);
    return df_strs_check(ret, err);
}

int64_t df_wire_order(const cJSON *wire)
{
    const char *order = df_json_str(wire, "status." SERVICE ".order");
    const char *version = df_json_str(wire, "metadata.resourceVersion");
    int64_t number = 0;
    if (df_parse_i64(order ? order : version ? version : "", 1, INT64_MAX, &number, NULL) < 0)
        return 0;
    return number;
}

cJSON *df_wire_other_finalizers(const cJSON *wire)
{
    cJSON *others = cJSON_CreateArray();
    const cJSON *item;
    cJSON_ArrayForEach (item, df_json_at(wire, "metadata.finalizers")) {
        const char *name = cJSON_GetStringValue(item);
        if (others && !df_streq(name, DF_FINALIZER) && df_json_append_str(others, name, NULL) < 0) {
            cJSON_Delete(others);
            return NULL;
        }
    }
    return others;
}
