/*
 * Finds the claims of an Application, sees to the reclaim policy of their volumes before the first
 * of them goes, and afterwards to those that nobody else deletes.
 */
#include "runner/platform/volumes.h"

#include "common/base/log.h"
#include "runner/platform/application.h"
#include "runner/platform/lists.h"

const struct df_kube_resource df_volumes = {"", "v1", "persistentvolumes"};
static const struct df_kube_resource claims = {"", "v1", "persistentvolumeclaims"};
static const struct df_kube_resource stateful_sets = {"apps", "v1", "statefulsets"};

/* ---- whose claims ---- */

/* What follows "PART-", or NULL. */
static const char *behind(const char *text, const char *part)
{
    if (!text || !part || !df_starts_with(text, part))
        return NULL;
    text += strlen(part);
    return *text == '-' ? text + 1 : NULL;
}

/* "data-db-0" is the claim of the StatefulSet db that was made of its template data. */
static bool is_made_by(const char *claim, const cJSON *set)
{
    const cJSON *template;
    cJSON_ArrayForEach (template, df_json_at(set, "spec.volumeClaimTemplates")) {
        const char *number = behind(behind(claim, df_kube_name(template)), df_kube_name(set));
        if (number && *number && strspn(number, "0123456789") == strlen(number))
            return true;
    }
    return false;
}

/* A name alone says little: kinds of other groups may have the same. */
static bool is_named(const cJSON *entry, const char *group, const char *kind, const char *name)
{
    return df_streq(df_json_text(entry, "group"), group) &&
           df_streq(df_json_str(entry, "kind"), kind) && df_streq(df_json_str(entry, "name"), name);
}

/* Reads the object that an owner's reference is about; NULL in *ret: that one is gone. */
static int read_owner(struct df_platform *p, const cJSON *owner, const char *name_space,
                      cJSON **ret, struct df_err *err)
{
    struct df_object_place place;
    struct df_err why = {0};
    DF_JSON cJSON *live = NULL;
    DF_JSON cJSON *named = df_json_object(
        DF_STR("apiVersion", df_json_str(owner, "apiVersion")),
        DF_STR("kind", df_json_str(owner, "kind")),
        DF_ITEM("metadata", df_json_object(DF_STR("name", df_json_str(owner, "name")))));
    if (df_check_alloc(named, err) < 0)
        return -1;
    if (df_object_place(&p->objects, named, name_space, &place, &why) < 0)
        return df_streq(why.reason, "KindUnknown") ? 0 : df_err_pass(err, &why);
    const struct df_kube_at at = df_object_at(&place);
    if (df_object_read(&p->objects, &at, &live, err) < 0)
        return -1;
    if (df_streq(df_kube_uid(live), df_json_str(owner, "uid")))
        *ret = DF_TAKE(live);
    return 0;
}

/* Of an operator's claims the owner is what Argo CD made. */
static int has_owner(struct df_platform *p, const struct df_component *c, const cJSON *claim,
                     const cJSON *entry, bool *ret, struct df_err *err)
{
    const cJSON *owner;
    cJSON_ArrayForEach (owner, df_json_at(claim, "metadata.ownerReferences")) {
        const char *version = df_json_str(owner, "apiVersion");
        const char *slash = version ? strchr(version, '/') : NULL;
        DF_FREE char *group = strndup(slash ? version : "", slash ? (size_t)(slash - version) : 0);
        DF_JSON cJSON *live = NULL;
        if (df_check_alloc(group, err) < 0)
            return -1;
        if (!version ||
            !is_named(entry, group, df_json_str(owner, "kind"), df_json_str(owner, "name")))
            continue;
        if (read_owner(p, owner, df_json_str(claim, "metadata.namespace"), &live, err) < 0)
            return -1;
        *ret |= live && !df_application_is_another(c->node->name, live);
    }
    return 0;
}

/* Of a namespace of the component. */
struct space {
    cJSON *claims, *sets; /* owned; sets NULL: the Application has no StatefulSet there */
};

static void space_free(struct space *s)
{
    cJSON_Delete(s->claims);
    cJSON_Delete(s->sets);
}

static bool is_of_set(const struct space *s, const struct df_component *c, const char *claim,
                      const cJSON *entry)
{
    const cJSON *set;
    cJSON_ArrayForEach (set, s->sets) {
        if (is_named(entry, "apps", "StatefulSet", df_kube_name(set)))
            return !df_application_is_another(c->node->name, set) && is_made_by(claim, set);
    }
    return false;
}

/* entry: of the Application's status.resources. */
static int belongs_to(struct df_platform *p, const struct df_component *c, const struct space *s,
                      const cJSON *claim, const cJSON *entry, bool *ret, struct df_err *err)
{
    const char *name = df_kube_name(claim);
    *ret = is_named(entry, "", "PersistentVolumeClaim", name) || is_of_set(s, c, name, entry);
    return *ret ? 0 : has_owner(p, c, claim, entry, ret, err);
}

/* ---- before anything is deleted ---- */

/* live: as it was read. policy: of a volume; NULL: it is a claim. What somebody deleted in the
 * meantime needs no label. */
static int label(struct df_platform *p, const struct df_component *c, const struct df_kube_at *at,
                 const cJSON *live, const char *policy, struct df_err *err)
{
    cJSON *labels = df_json_object(DF_STR(DF_LABEL_ENVIRONMENT, p->in->name),
                                   DF_STR(DF_LABEL_COMPONENT, c->node->name));
    cJSON *spec = df_json_object(DF_STR("persistentVolumeReclaimPolicy", policy));
    cJSON *metadata =
        df_json_object(DF_STR("resourceVersion", df_kube_version(live)), DF_ITEM("labels", labels));
    DF_JSON cJSON *body = df_json_object(DF_ITEM("metadata", metadata), DF_ITEM("spec", spec));
    const struct df_kube_patch patch = {
        .type = DF_KUBE_PATCH_MERGE, .body = body, .manager = DF_PLATFORM_MANAGER};
    struct df_err why = {0};
    if (df_check_alloc(body, err) < 0)
        return -1;
    return df_object_patch(&p->objects, at, &patch, NULL, &why) < 0 && why.cls != DF_ERR_NOT_FOUND
               ? df_err_pass(err, &why)
               : 0;
}

/* A claim may name any volume; the volume says which claim has it. */
static bool is_bound_to(const cJSON *volume, const cJSON *claim)
{
    const cJSON *ref = df_json_at(volume, "spec.claimRef");
    return df_streq(df_json_str(ref, "namespace"), df_json_str(claim, "metadata.namespace")) &&
           df_streq(df_json_str(ref, "name"), df_kube_name(claim)) &&
           df_streq(df_json_str(ref, "uid"), df_kube_uid(claim));
}

/* A dry run has nothing else to do about it. */
static int preview(struct df_platform *p, const struct df_component *c, const cJSON *claim,
                   const char *policy, struct df_err *err)
{
    const char *volume = df_json_str(claim, "spec.volumeName");
    const char *name_space = df_json_str(claim, "metadata.namespace");
    df_info("the volume %s of the claim %s/%s would be %s", volume, name_space, df_kube_name(claim),
            df_streq(policy, "Delete") ? "deleted" : "retained");
    return df_json_append(df_json_array_at(p->removal, "volumes"),
                          df_json_object(DF_STR("name", volume), DF_STR("component", c->node->name),
                                         DF_STR("namespace", name_space),
                                         DF_STR("claim", df_kube_name(claim)),
                                         DF_STR("policy", policy)),
                          err);
}

static int mark_volume(struct df_platform *p, const struct df_component *c, const cJSON *claim,
                       const char *policy, struct df_err *err)
{
    const struct df_kube_at at = {.resource = &df_volumes,
                                  .name = df_json_str(claim, "spec.volumeName")};
    DF_JSON cJSON *volume = NULL;
    if (!at.name)
        return 0;
    if (df_object_read(&p->objects, &at, &volume, err) < 0)
        return -1;
    if (volume && is_bound_to(volume, claim))
        return p->objects.dry_run ? preview(p, c, claim, policy, err)
                                  : label(p, c, &at, volume, policy, err);
    df_warn("claim %s names the volume %s, which is not bound to it: the volume stays as it is",
            df_kube_name(claim), at.name);
    return 0;
}

/* The volume first: it must not go with its claim. */
static int mark(struct df_platform *p, const struct df_component *c, const cJSON *claim,
                struct df_err *err)
{
    const char *policy = p->in->deletes_volumes ? "Delete" : "Retain";
    const struct df_kube_at at = {.resource = &claims,
                                  .name_space = df_json_str(claim, "metadata.namespace"),
                                  .name = df_kube_name(claim)};
    if (mark_volume(p, c, claim, policy, err) < 0)
        return -1;
    if (!p->objects.dry_run)
        df_info("claim %s: %s its volume", at.name, policy);
    return label(p, c, &at, claim, NULL, err);
}

/* A claim that Argo CD was told to keep. Should it go all the same, its data must not. */
static int mark_kept(struct df_platform *p, const struct df_component *c, const cJSON *claim,
                     struct df_err *err)
{
    return p->in->deletes_volumes ? 0 : mark_volume(p, c, claim, "Retain", err);
}

static int mark_if_owned(struct df_platform *p, const struct df_component *c, const cJSON *app,
                         const struct space *s, const cJSON *claim, struct df_err *err)
{
    const char *name_space = df_json_str(claim, "metadata.namespace");
    const cJSON *entry;
    if (df_application_is_another(c->node->name, claim))
        return 0;
    cJSON_ArrayForEach (entry, df_json_at(app, "status.resources")) {
        bool belongs = false;
        if (!df_streq(df_json_str(entry, "namespace"), name_space))
            continue;
        if (belongs_to(p, c, s, claim, entry, &belongs, err) < 0)
            return -1;
        if (belongs)
            return df_application_keeps(claim) ? mark_kept(p, c, claim, err)
                                               : mark(p, c, claim, err);
    }
    return 0;
}

static bool has_set(const cJSON *app, const char *name_space)
{
    const cJSON *entry;
    cJSON_ArrayForEach (entry, df_json_at(app, "status.resources")) {
        if (is_named(entry, "apps", "StatefulSet", df_json_str(entry, "name")) &&
            df_streq(df_json_str(entry, "namespace"), name_space))
            return true;
    }
    return false;
}

static int mark_in(struct df_platform *p, const struct df_component *c, const cJSON *app,
                   const char *name_space, struct df_err *err)
{
    DF_CLEANUP(space_free) struct space s = {.claims = NULL};
    struct df_kube_at at = {
        .resource = &claims, .name_space = name_space, .stop = df_stop_flag(p->stop)};
    const cJSON *claim;
    if (df_list_objects(p, &at, NULL, &s.claims, err) < 0)
        return -1;
    at.resource = &stateful_sets;
    if (s.claims->child && has_set(app, name_space) &&
        df_list_objects(p, &at, NULL, &s.sets, err) < 0)
        return -1;
    cJSON_ArrayForEach (claim, s.claims) {
        if (mark_if_owned(p, c, app, &s, claim, err) < 0)
            return -1;
    }
    return 0;
}

int df_volumes_mark(struct df_platform *p, const struct df_component *c, const cJSON *app,
                    struct df_err *err)
{
    DF_STRS struct df_strs seen = {0};
    const cJSON *entry;
    cJSON_ArrayForEach (entry, df_json_at(app, "status.resources")) {
        const char *name_space = df_json_str(entry, "namespace");
        if (name_space && df_strs_add_new(&seen, name_space) &&
            mark_in(p, c, app, name_space, err) < 0)
            return -1;
    }
    return df_strs_check(&seen, err);
}

/* ---- afterwards ---- */

/* component NULL: those of the whole environment. */
static int list_marked(struct df_platform *p, const struct df_kube_resource *resource,
                       const char *component, cJSON **ret, struct df_err *err)
{
    const struct df_kube_at at = {.resource = resource, .stop = df_stop_flag(p->stop)};
    DF_FREE char *labels = df_strf(DF_LABEL_ENVIRONMENT "=%s," DF_LABEL_COMPONENT "%s%s",
                                   p->in->name, component ? "=" : "", component ? component : "");
    return df_check_alloc(labels, err) < 0 ? -1 : df_list_objects(p, &at, labels, ret, err);
}

static int delete_claim(struct df_platform *p, const cJSON *claim, struct df_err *err)
{
    const struct df_kube_at at = {.resource = &claims,
                                  .name_space = df_json_str(claim, "metadata.namespace"),
                                  .name = df_kube_name(claim)};
    return df_kube_is_deleted(claim) ? 0
                                     : df_object_delete(&p->objects, &at, df_kube_uid(claim), err);
}

int df_volumes_release(struct df_platform *p, const struct df_component *c, int *ret_left,
                       struct df_err *err)
{
    DF_JSON cJSON *list = NULL, *volumes = NULL;
    const cJSON *one;
    if (list_marked(p, &claims, c->node->name, &list, err) < 0 ||
        list_marked(p, &df_volumes, c->node->name, &volumes, err) < 0)
        return -1;
    *ret_left = 0;
    cJSON_ArrayForEach (one, list) {
        if (df_application_keeps(one)) /* since an earlier teardown */
            continue;
        ++*ret_left;
        if (delete_claim(p, one, err) < 0)
            return -1;
    }
    cJSON_ArrayForEach (one, volumes)
        *ret_left += df_streq(df_json_str(one, "spec.persistentVolumeReclaimPolicy"), "Delete");
    return 0;
}

int df_volumes_left(struct df_platform *p, cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *volumes = NULL, *left = cJSON_CreateArray();
    const cJSON *one;
    if (list_marked(p, &df_volumes, NULL, &volumes, err) < 0)
        return -1;
    cJSON_ArrayForEach (one, volumes) {
        const char *component = df_kube_label(one, DF_LABEL_COMPONENT);
        const struct df_node *node = df_dag_find(&p->dag, component);
        if (node && !node->is_in_scope)
            continue;
        if (df_json_append(
                left,
                df_json_object(
                    DF_STR("name", df_kube_name(one)), DF_STR("component", component),
                    DF_STR("namespace", df_json_str(one, "spec.claimRef.namespace")),
                    DF_STR("claim", df_json_str(one, "spec.claimRef.name")),
                    DF_STR("policy", df_json_str(one, "spec.persistentVolumeReclaimPolicy")),
                    DF_STR("phase", df_json_str(one, "status.phase"))),
                err) < 0)
            return -1;
    }
    *ret = DF_TAKE(left);
    return 0;
}
