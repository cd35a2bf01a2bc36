/*
 * The end of a teardown: what the components' Applications did not take with them. Only a teardown
 * of the whole platform that removed every component goes as far as namespaces, credentials, and
 * Argo CD itself.
 */
#include "runner/platform/remains.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "runner/platform/application.h"
#include "runner/platform/bootstrap.h"
#include "runner/platform/credentials.h"
#include "runner/platform/lists.h"
#include "runner/platform/orphans.h"
#include "runner/platform/volumes.h"

#define LOOK_MS 500

static bool is_all_gone(const struct df_platform *p)
{
    for (size_t i = 0; i < p->dag.len; i++) {
        if (p->components[i].state != DF_COMPONENT_DONE)
            return false;
    }
    return p->in->scope.kind == DF_SCOPE_PLATFORM;
}

/* ---- namespaces ---- */

static int read_namespace(struct df_platform *p, const char *name, cJSON **ret, struct df_err *err)
{
    const struct df_kube_at at = {
        .resource = &df_namespaces, .name = name, .stop = df_stop_flag(p->stop)};
    return df_object_read(&p->objects, &at, ret, err);
}

/* True of the entry that CreateNamespace leaves. It never writes a namespace that is there: one
 * that is changed later has other fields. */
static bool is_creation(const cJSON *entry)
{
    const cJSON *fields = df_json_at(entry, "fieldsV1");
    const cJSON *spec = df_json_at(fields, "f:spec");
    const cJSON *labels = df_json_at(fields, "f:metadata.f:labels");
    return (cJSON_IsObject(spec) && !spec->child) || /* applied by the server: an empty spec */
           cJSON_GetObjectItemCaseSensitive(labels, "f:kubernetes.io/metadata.name");
}

/* True if Argo CD or we made the namespace, and nobody else has ever written it. Without an entry
 * nothing is proved: an apply by the server of nothing but the name leaves none. */
static bool is_made_for_us(const struct df_platform *p, const cJSON *object)
{
    const char *environment = df_kube_label(object, DF_LABEL_ENVIRONMENT);
    bool is_ours = df_streq(environment, p->in->name), is_of_argocd = false;
    const cJSON *entry;
    cJSON_ArrayForEach (entry, df_json_at(object, "metadata." DF_KUBE_MANAGED)) {
        const char *manager = df_json_str(entry, "manager");
        bool by_argocd = manager && df_starts_with(manager, "argocd");
        if (df_json_str(entry, "subresource")) /* its status */
            continue;
        if (!by_argocd && !df_streq(manager, DF_PLATFORM_MANAGER))
            return false;
        is_of_argocd |= by_argocd && is_creation(entry);
    }
    return is_ours || (is_of_argocd && !environment);
}

static bool is_of_kubernetes(const char *name)
{
    return !strcmp(name, "default") || df_starts_with(name, "kube-");
}

static const char *user_of(const struct df_orphans *o, const char *name)
{
    for (size_t i = 0; i < o->used.len; i++) {
        if (!strcmp(o->used.items[i], name))
            return o->used_by.items[i];
    }
    return NULL;
}

/* The caller frees *ret; NULL: it does not stay. */
static int say_why_it_stays(const struct df_platform *p, const struct df_orphans *o,
                            const char *name, const cJSON *object, char **ret, struct df_err *err)
{
    const char *user = user_of(o, name), *why = NULL;
    *ret = NULL;
    if (user)
        return df_check_alloc(*ret = df_strf("%s is left in it", user), err);
    if (o->unread.len)
        why = "not all that may be in it could be listed";
    else if (!strcmp(name, p->in->argocd_namespace) || !strcmp(name, p->in->workflows_namespace))
        why = "Argo CD or Workflows are in it";
    else if (is_of_kubernetes(name) || !is_made_for_us(p, object))
        why = "somebody else made or changed it";
    else if (df_application_keeps(object) || df_kube_annotation(object, DF_ARGO_TRACKING))
        why = "it is of an Application, which did not delete it";
    return why ? df_check_alloc(*ret = strdup(why), err) : 0;
}

/* Deletes the namespace unless *stays says why it stays. */
static int delete_read(struct df_platform *p, const cJSON *object, char **stays, struct df_err *err)
{
    const struct df_kube_at at = {
        .resource = &df_namespaces, .name = df_kube_name(object), .stop = df_stop_flag(p->stop)};
    struct df_err why = {0};
    if (*stays || df_object_delete(&p->objects, &at, df_kube_uid(object), &why) == 0)
        return 0;
    if (why.cls != DF_ERR_CONFLICT)
        return df_err_pass(err, &why);
    return df_check_alloc(*stays = strdup("somebody deleted or replaced it meanwhile"), err);
}

/* Adds a line to `told`: that it was deleted, or why it stays; in a dry run what would be. */
static int settle_namespace(struct df_platform *p, const struct df_orphans *o, const char *name,
                            cJSON *told, struct df_err *err)
{
    bool is_dry = p->in->dry_run;
    const char *gone =
        is_dry ? "would be deleted, unless something is left in it by then" : "deleted";
    DF_JSON cJSON *object = NULL;
    DF_FREE char *stays = NULL;
    if (read_namespace(p, name, &object, err) < 0)
        return -1;
    if (!object || df_kube_is_deleted(object))
        return 0;
    if (say_why_it_stays(p, o, name, object, &stays, err) < 0 ||
        (!is_dry && delete_read(p, object, &stays, err) < 0))
        return -1;
    DF_FREE char *line =
        df_strf("%s: %s%s", name, is_dry && stays ? "would stay: " : "", stays ? stays : gone);
    if (df_check_alloc(line, err) < 0)
        return -1;
    df_info("namespace %s", line);
    return df_json_append_str(told, line, err);
}

static int tell_terminating(const cJSON *object, struct df_orphans *o, struct df_err *err)
{
    DF_BUF struct df_buf why = DF_BUF_INIT(4 * DF_KIB);
    const cJSON *one;
    (void)df_buf_adds(&why, "it is Terminating");
    cJSON_ArrayForEach (one, df_json_at(object, "status.conditions")) {
        const char *message = df_json_str(one, "message");
        if (df_streq(df_json_str(one, "status"), "True"))
            (void)df_buf_addf(&why, "; %.500s", message ? message : "no reason is given");
    }
    cJSON_ArrayForEach (one, df_json_at(object, "metadata.finalizers")) {
        if (cJSON_IsString(one))
            (void)df_buf_addf(&why, "; it has the finalizer %s", one->valuestring);
    }
    return df_orphans_add(o, "Namespace", object, df_buf_str(&why), err);
}

/* Waits for a namespace that is being deleted, and tells of it if it does not go. */
static int await_namespace(struct df_platform *p, const char *name, int64_t until_ms,
                           struct df_orphans *o, struct df_err *err)
{
    for (;;) {
        DF_JSON cJSON *object = NULL;
        const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000L};
        if (read_namespace(p, name, &object, err) < 0)
            return -1;
        if (!object || !df_kube_is_deleted(object))
            return 0;
        if (df_mono_ms() >= until_ms)
            return tell_terminating(object, o, err);
        (void)nanosleep(&pause, NULL);
    }
}

static int settle_namespaces(struct df_platform *p, struct df_orphans *o, cJSON *told,
                             struct df_err *err)
{
    DF_STRS struct df_strs names = {0};
    int64_t until_ms = df_mono_ms() + p->in->sync_ms;
    bool deletes = is_all_gone(p);
    if (df_list_namespaces(p, &names, err) < 0)
        return -1;
    for (size_t i = 0; deletes && i < names.len; i++) {
        if (settle_namespace(p, o, names.items[i], told, err) < 0)
            return -1;
    }
    for (size_t i = 0; i < names.len; i++) {
        if (await_namespace(p, names.items[i], until_ms, o, err) < 0)
            return -1;
    }
    return 0;
}

/* ---- all of it ---- */

/* Volumes that were to stay are listed, but nothing is wrong with them. Returns how many were not,
 * or -1. */
static int add_volumes(const cJSON *volumes, struct df_orphans *o, struct df_err *err)
{
    const cJSON *one;
    int wrong = 0;
    cJSON_ArrayForEach (one, volumes) {
        bool is_retained = df_streq(df_json_str(one, "policy"), "Retain");
        DF_JSON cJSON *object = df_json_object(
            DF_ITEM("metadata", df_json_object(DF_STR("name", df_json_str(one, "name")))));
        wrong += !is_retained;
        if (df_check_alloc(object, err) < 0 ||
            df_orphans_add(o, "PersistentVolume", object,
                           is_retained ? "retained" : "it was to be deleted, and is still there",
                           err) < 0)
            return -1;
    }
    return wrong;
}

/* Where nobody looked there may be some, too. */
static void say_what_is_left(struct df_platform *p, const struct df_orphans *o, int orphans)
{
    const cJSON *first = o->list->child;
    if (orphans)
        (void)snprintf(p->left, sizeof(p->left),
                       "orphans are left: %d, of them %s %.100s; removal in the report has each",
                       orphans, df_json_text(first, "kind"), df_json_text(first, "name"));
    else if (o->unread.len)
        (void)snprintf(p->left, sizeof(p->left),
                       "not all could be searched for orphans: %.150s; removal in the report has "
                       "each",
                       o->unread.items[0]);
}

static int tell_unread(const struct df_orphans *o, cJSON *removal, struct df_err *err)
{
    cJSON *list = o->unread.len ? df_json_array_at(removal, "notSearched") : NULL;
    if (!o->unread.len)
        return 0;
    if (df_check_alloc(list, err) < 0)
        return -1;
    for (size_t i = 0; i < o->unread.len; i++) {
        df_warn("not searched for orphans: %s", o->unread.items[i]);
        if (df_json_append_str(list, o->unread.items[i], err) < 0)
            return -1;
    }
    return 0;
}

static int find(struct df_platform *p, struct df_orphans *o, cJSON *removal, struct df_err *err)
{
    cJSON *told = df_json_array_at(removal, "namespaces");
    DF_JSON cJSON *volumes = NULL;
    if (df_check_alloc(told, err) < 0 || df_orphans_find(p, o, err) < 0 ||
        settle_namespaces(p, o, told, err) < 0 || df_volumes_left(p, &volumes, err) < 0)
        return -1;
    int orphans = cJSON_GetArraySize(o->list) + o->left_out;
    int wrong = add_volumes(volumes, o, err);
    if (wrong < 0)
        return -1;
    say_what_is_left(p, o, orphans + wrong);
    return df_json_add(removal, "volumes", DF_TAKE(volumes), err) < 0
               ? -1
               : tell_unread(o, removal, err);
}

/* What is in the namespaces is not looked at: most of it would be gone. */
static int preview(struct df_platform *p, struct df_err *err)
{
    const struct df_orphans nothing = {.list = NULL};
    DF_STRS struct df_strs names = {0};
    cJSON *told = df_json_array_at(p->removal, "namespaces");
    if (df_check_alloc(told, err) < 0 || df_list_namespaces(p, &names, err) < 0)
        return -1;
    for (size_t i = 0; is_all_gone(p) && i < names.len; i++) {
        if (settle_namespace(p, &nothing, names.items[i], told, err) < 0)
            return -1;
    }
    return 0;
}

int df_remains_settle(struct df_platform *p, struct df_err *err)
{
    DF_ORPHANS struct df_orphans o = {.list = cJSON_CreateArray()};
    DF_JSON cJSON *removal = cJSON_CreateObject();
    if (p->in->dry_run)
        return preview(p, err);
    if (is_all_gone(p) && df_credentials_remove(p, err) < 0)
        return -1;
    if (df_check_alloc(o.list, err) < 0 || find(p, &o, removal, err) < 0)
        return -1;
    if ((o.left_out && df_json_put(removal, err, DF_NUM("orphansNotShown", o.left_out)) < 0) ||
        df_json_put(removal, err, DF_ITEM("orphans", DF_TAKE(o.list))) < 0)
        return -1;
    p->removal = DF_TAKE(removal);
    return is_all_gone(p) && !*p->left ? df_bootstrap_remove(p, err) : 0;
}
