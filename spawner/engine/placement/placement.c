/*
 * Turns a placement into a strategic merge patch of the pod template, so that Kubernetes' rules
 * decide what is replaced and what is added. df_placement_apply() applies that patch, then the
 * patches of podTemplate.
 */
#include "spawner/engine/placement/placement.h"

#include "common/crypto/crypto.h"
#include "spawner/engine/placement/placement_merge.h"
#include "spawner/engine/placement/pod_template.h"
#include "spawner/model/ephemeral.h"
#include "spawner/model/placement.h"

static int copy_member(cJSON *to, const char *name, const cJSON *from, const char *as,
                       struct df_err *err)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(from, name);
    return value ? df_json_add(to, as, cJSON_Duplicate(value, true), err) : 0;
}

static int copy_members(cJSON *to, const cJSON *from, const char *const *names, struct df_err *err)
{
    for (; *names; names++)
        if (copy_member(to, *names, from, *names, err) < 0)
            return -1;
    return 0;
}

/* ---- volumes ---- */

/* Places in the patch. */
struct parts {
    cJSON *spec, *container;
};

static int add_mount(const struct parts *p, const char *volume, const cJSON *item, bool read_only,
                     struct df_err *err)
{
    cJSON *mount = cJSON_CreateObject();
    if (df_json_append(df_json_array_at(p->container, "volumeMounts"), mount, err) < 0 ||
        df_json_add_str(mount, "name", volume, err) < 0 ||
        copy_member(mount, "mountPath", item, "mountPath", err) < 0 ||
        copy_member(mount, "subPath", item, "subPath", err) < 0)
        return -1;
    return read_only ? df_json_add_bool(mount, "readOnly", true, err) : 0;
}

static cJSON *add_volume(const struct parts *p, const char *name, struct df_err *err)
{
    cJSON *volume = cJSON_CreateObject();
    if (df_json_append(df_json_array_at(p->spec, "volumes"), volume, err) < 0 ||
        df_json_add_str(volume, "name", name, err) < 0)
        return NULL;
    return volume;
}

static int put_volumes(const struct parts *p, const cJSON *placement, struct df_err *err)
{
    static const char *const sources[] = {
        "emptyDir", "persistentVolumeClaim", "secret", "configMap", "csi", "nfs", "image", NULL};
    const cJSON *list = df_json_at(placement, "volumes");
    for (const cJSON *item = list ? list->child : NULL; item; item = item->next) {
        const char *name = df_json_str(item, "name");
        cJSON *volume = add_volume(p, name, err);
        if (!volume || copy_members(volume, item, sources, err) < 0 ||
            add_mount(p, name, item, df_json_bool(item, "readOnly", false), err) < 0)
            return -1;
    }
    return 0;
}

/* Mounts of Secrets and of ConfigMaps differ only in the names of their members. */
struct mounts {
    const char *list;   /* of the placement */
    const char *source; /* of the volume */
    const char *name;   /* of the object, in that source */
    const char *prefix; /* of the volume's name; a hash of the mount path makes it unique */
};

static int put_object_mount(const struct parts *p, const struct mounts *kind, const cJSON *item,
                            struct df_err *err)
{
    static const char *const options[] = {"items", "defaultMode", "optional", NULL};
    const char *path = df_json_str(item, "mountPath");
    char hash[DF_SHA256_HEX], name[64];
    if (df_sha256_hex(path, strlen(path), hash, err) < 0)
        return -1;
    (void)snprintf(name, sizeof(name), "%s-%.8s", kind->prefix, hash);
    cJSON *volume = add_volume(p, name, err);
    cJSON *source = df_json_object_at(volume, kind->source);
    if (df_check_alloc(source, err) < 0 || copy_member(source, "name", item, kind->name, err) < 0 ||
        copy_members(source, item, options, err) < 0)
        return -1;
    return add_mount(p, name, item, true, err);
}

static int put_object_mounts(const struct parts *p, const cJSON *placement, struct df_err *err)
{
    static const struct mounts kinds[] = {
        {"secretMounts", "secret", "secretName", "secret"},
        {"configMapMounts", "configMap", "name", "config"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(kinds); i++) {
        const cJSON *list = df_json_at(placement, kinds[i].list);
        for (const cJSON *item = list ? list->child : NULL; item; item = item->next)
            if (put_object_mount(p, &kinds[i], item, err) < 0)
                return -1;
    }
    return 0;
}

const char *df_placement_plugin_cache(const cJSON *placement)
{
    return df_json_str(placement, "pluginCache.mountPath");
}

static int put_plugin_cache(const struct parts *p, const cJSON *placement, bool has_claim,
                            struct df_err *err)
{
    const cJSON *cache = df_json_at(placement, "pluginCache");
    if (!cache)
        return 0;
    bool claimed = has_claim || !df_json_bool(cache, "optional", false);
    bool read_only = claimed && df_json_bool(cache, "readOnly", false);
    cJSON *volume = add_volume(p, "plugin-cache", err);
    cJSON *source = df_json_object_at(volume, claimed ? "persistentVolumeClaim" : "emptyDir");
    if (df_check_alloc(source, err) < 0 ||
        (claimed && copy_member(source, "claimName", cache, "claimName", err) < 0))
        return -1;
    return add_mount(p, "plugin-cache", cache, read_only, err);
}

/* ---- the patch ---- */

static int put_metadata(cJSON *patch, const cJSON *placement, struct df_err *err)
{
    cJSON *metadata = df_json_object_at(patch, "metadata");
    if (df_check_alloc(metadata, err) < 0 ||
        copy_member(metadata, "labels", placement, "labels", err) < 0)
        return -1;
    return copy_member(metadata, "podAnnotations", placement, "annotations", err);
}

static int put_spec(const struct parts *p, const cJSON *placement, struct df_err *err)
{
    static const char *const same[] = {"nodeSelector",
                                       "tolerations",
                                       "affinity",
                                       "topologySpreadConstraints",
                                       "priorityClassName",
                                       "runtimeClassName",
                                       "serviceAccountName",
                                       "imagePullSecrets",
                                       "dnsPolicy",
                                       "dnsConfig",
                                       NULL};
    static const char *const of_container[] = {"image",   "imagePullPolicy", "resources", "env",
                                               "envFrom", "securityContext", NULL};
    if (copy_members(p->spec, placement, same, err) < 0 ||
        copy_member(p->spec, "podSecurityContext", placement, "securityContext", err) < 0)
        return -1;
    return copy_members(p->container, placement, of_container, err);
}

static int make_patch(const cJSON *placement, const struct df_placement_target *target, cJSON **ret,
                      struct df_err *err)
{
    DF_JSON cJSON *patch = cJSON_CreateObject();
    const struct parts p = {df_json_object_at(patch, "spec"), cJSON_CreateObject()};
    if (df_json_append(p.spec ? df_json_array_at(p.spec, "containers") : NULL, p.container, err) <
            0 ||
        df_json_add_str(p.container, "name", target->container, err) < 0)
        return -1;
    if (put_metadata(patch, placement, err) < 0 || put_spec(&p, placement, err) < 0 ||
        put_volumes(&p, placement, err) < 0 || put_object_mounts(&p, placement, err) < 0 ||
        put_plugin_cache(&p, placement, target->has_plugin_claim, err) < 0)
        return -1;
    *ret = DF_TAKE(patch);
    return 0;
}

/* podTemplate is one patch or a list of them. */
static int apply_patches(const cJSON *patches, cJSON **pod_template, struct df_err *err)
{
    if (!patches)
        return 0;
    if (!cJSON_IsArray(patches))
        return df_pod_template_patch(pod_template, patches, err);
    for (const cJSON *patch = patches->child; patch; patch = patch->next)
        if (df_pod_template_patch(pod_template, patch, err) < 0)
            return -1;
    return 0;
}

int df_placement_apply(const cJSON *placement, const struct df_placement_target *target,
                       cJSON **pod_template, struct df_err *err)
{
    DF_JSON cJSON *patch = NULL;
    DF_JSON cJSON *result = cJSON_Duplicate(*pod_template, true);
    if (df_check_alloc(result, err) < 0 || make_patch(placement, target, &patch, err) < 0 ||
        df_pod_template_patch(&result, patch, err) < 0 ||
        apply_patches(df_json_at(placement, "podTemplate"), &result, err) < 0)
        return -1;
    cJSON_Delete(*pod_template);
    *pod_template = DF_TAKE(result);
    return 0;
}

/* ---- the levels ---- */

int df_placement_resolve(const struct df_placement_levels *levels, cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *keys = NULL;
    DF_JSON cJSON *merged = cJSON_CreateObject();
    if (df_check_alloc(merged, err) < 0 ||
        df_ephemeral_placement(levels->environment, &keys, err) < 0 ||
        df_placement_merge(merged, levels->defaults, err) < 0 ||
        df_placement_merge(merged, levels->class, err) < 0 ||
        df_placement_merge(merged, levels->workspace, err) < 0)
        return -1;
    /* As where these keys come from (ephemeral.h), a workspace's node selector replaces that of the
     * instance. */
    if (df_json_at(keys, "nodeSelector"))
        cJSON_DeleteItemFromObjectCaseSensitive(merged, "nodeSelector");
    if (df_placement_merge(merged, keys, err) < 0 ||
        df_placement_merge(merged, levels->executor, err) < 0 ||
        df_placement_merge(merged, levels->run, err) < 0 ||
        df_placement_check(merged, "placement", err) < 0)
        return -1;
    *ret = DF_TAKE(merged);
    return 0;
}
