/*
 * placement_rules.c - rules of the parts of a placement: mounts, environment, security, the pod
 * template. The last one, df_rule_placement(), compares the parts with each other.
 */
#include "spawner/model/placement_rules.h"

#include "common/base/limits.h"
#include "spawner/model/placement.h"
#include "spawner/model/runner_environment.h"

/* ---- mounts ---- */

/* Paths that the runner's container uses itself, and paths that every container needs. */
static const char *const taken_paths[] = {"/",     "/work", "/tmp",  "/run",  "/run/dayfly",
                                          "/proc", "/sys",  "/dev",  "/etc",  "/usr",
                                          "/bin",  "/lib",  "/sbin", "/lib64"};

static bool has_dots(const char *path)
{
    for (const char *at = path; (at = strstr(at, "/..")); at += 3)
        if (at[3] == '\0' || at[3] == '/')
            return true;
    return false;
}

/* The length without slashes at the end. */
static size_t path_length(const char *path)
{
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    return n;
}

static bool same_path(const char *a, const char *b)
{
    return path_length(a) == path_length(b) && strncmp(a, b, path_length(a)) == 0;
}

void df_rule_mount_path(const cJSON *value, const struct df_path *path, struct df_faults *f)
{
    const char *s = value->valuestring;
    if (*s != '/' || has_dots(s) || strchr(s, ':')) {
        df_fault(f, path, "\"%.100s\" is not a path to mount at: absolute, without .. and :", s);
        return;
    }
    bool taken = df_starts_with(s, "/run/dayfly/") || df_starts_with(s, "/proc/") ||
                 df_starts_with(s, "/sys/") || df_starts_with(s, "/dev/");
    for (size_t i = 0; i < DF_ARRAY_SIZE(taken_paths); i++)
        taken = taken || same_path(s, taken_paths[i]);
    if (taken)
        df_fault(f, path, "\"%.100s\" is needed by the runner itself; mount below it or elsewhere",
                 s);
}

/* How many members of the object are among the names. */
static int count_members(const cJSON *object, const char *const *names)
{
    int n = 0;
    for (; *names; names++)
        n += df_json_at(object, *names) != NULL;
    return n;
}

void df_rule_volume(const cJSON *value, const struct df_path *path, struct df_faults *f)
{
    static const char *const sources[] = {
        "emptyDir", "persistentVolumeClaim", "secret", "configMap", "csi", "nfs", "image", NULL};
    const char *name = df_json_str(value, "name");
    if (count_members(value, sources) != 1)
        df_fault(f, path,
                 "needs exactly one of emptyDir, persistentVolumeClaim, secret, configMap, csi, "
                 "nfs, image");
    if (df_starts_with(name, "dayfly-"))
        df_fault(f, path, "the name \"%.64s\" begins with dayfly-, as the service's own do", name);
}

/* ---- environment ---- */

/* Kubernetes also allows dots and dashes. */
static bool is_env_name(const char *s)
{
    size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-");
    return *s && !s[n] && !(*s >= '0' && *s <= '9');
}

void df_rule_env(const cJSON *value, const struct df_path *path, struct df_faults *f)
{
    int index = 0;
    for (const cJSON *item = value->child; item; item = item->next) {
        const struct df_path here = {path, NULL, index++};
        const char *name = df_json_str(item, "name");
        if (!is_env_name(name))
            df_fault(f, &here, "\"%.64s\" is not the name of an environment variable", name);
        const char *why = df_runner_variable_refused(name, DF_SET_BY_DOCUMENT);
        if (why)
            df_fault(f, &here, "%.64s is refused: %s", name, why);
        if (df_json_at(item, "value") && df_json_at(item, "valueFrom"))
            df_fault(f, &here, "%.64s has a value and a valueFrom; one of them", name);
        for (const cJSON *old = value->child; old != item; old = old->next)
            if (df_streq(df_json_str(old, "name"), name))
                df_fault(f, &here, "\"%.64s\" occurs twice", name);
    }
}

void df_rule_env_source(const cJSON *value, const struct df_path *path, struct df_faults *f)
{
    static const char *const sources[] = {"secretKeyRef", "configMapKeyRef", "fieldRef",
                                          "resourceFieldRef", NULL};
    if (count_members(value, sources) != 1)
        df_fault(f, path,
                 "needs exactly one of secretKeyRef, configMapKeyRef, fieldRef, resourceFieldRef");
}

void df_rule_env_from(const cJSON *value, const struct df_path *path, struct df_faults *f)
{
    static const char *const sources[] = {"secretRef", "configMapRef", NULL};
    if (count_members(value, sources) != 1)
        df_fault(f, path, "needs exactly one of secretRef, configMapRef");
}

/* ---- security ---- */

void df_rule_user_context(const cJSON *value, const struct df_path *path, struct df_faults *f)
{
    if (df_json_bool(value, "runAsNonRoot", false) && df_json_int(value, "runAsUser", 1) == 0)
        df_fault(f, path, "runAsNonRoot is true and runAsUser is 0, which is root");
}

/* The setting that conflicts with the pod's `allowPrivilegeEscalation: false`, or NULL. */
static const char *privilege_of(const cJSON *context)
{
    const cJSON *added = df_json_at(context, "capabilities.add");
    if (df_json_bool(context, "privileged", false))
        return "privileged";
    for (const cJSON *c = added ? added->child : NULL; c; c = c->next)
        if (df_streq(c->valuestring, "SYS_ADMIN") || df_streq(c->valuestring, "CAP_SYS_ADMIN"))
            return "the capability SYS_ADMIN";
    return NULL;
}

void df_rule_container_user(const cJSON *value, const struct df_path *path, struct df_faults *f)
{
    const char *privilege = privilege_of(value);
    df_rule_user_context(value, path, f);
    if (privilege && !df_json_bool(value, "allowPrivilegeEscalation", false))
        df_fault(f, path, "%s needs allowPrivilegeEscalation: true beside it", privilege);
}

/* ---- the pod template ---- */

static void check_patch(const cJSON *patch, const struct df_path *path, struct df_faults *f)
{
    static const char *const members[] = {"metadata", "spec"};
    if (!cJSON_IsObject(patch)) {
        df_fault(f, path, "must be an object with metadata or spec");
        return;
    }
    for (const cJSON *m = patch->child; m; m = m->next) {
        const struct df_path here = {path, m->string, 0};
        bool known = df_streq(m->string, members[0]) || df_streq(m->string, members[1]);
        if (!known)
            df_fault(f, &here, "is not a field (there are: metadata, spec)");
        else if (!cJSON_IsObject(m))
            df_fault(f, &here, "must be an object");
    }
}

void df_rule_pod_template(const cJSON *value, const struct df_path *path, struct df_faults *f)
{
    if (!cJSON_IsArray(value)) {
        check_patch(value, path, f);
        return;
    }
    int index = 0;
    for (const cJSON *patch = value->child; patch; patch = patch->next) {
        const struct df_path here = {path, NULL, index++};
        check_patch(patch, &here, f);
    }
    if (index > DF_LIMIT_POD_PATCHES)
        df_fault(f, path, "has %d patches; %d are allowed", index, DF_LIMIT_POD_PATCHES);
}

/* ---- the placement ---- */

/* The lists whose items have a mountPath. */
static const char *const mounting[] = {"volumes", "secretMounts", "configMapMounts"};

static bool mounted_before(const cJSON *placement, const cJSON *stop, const char *path)
{
    for (size_t i = 0; i < DF_ARRAY_SIZE(mounting); i++) {
        const cJSON *list = df_json_at(placement, mounting[i]);
        for (const cJSON *item = list ? list->child : NULL; item; item = item->next) {
            if (item == stop)
                return false;
            const char *other = df_json_str(item, "mountPath");
            if (other && same_path(other, path))
                return true;
        }
    }
    return false;
}

static void check_mounts(const cJSON *placement, const char *name, const struct df_path *path,
                         struct df_faults *f)
{
    const struct df_path list_path = {path, name, 0};
    const cJSON *list = df_json_at(placement, name);
    int index = 0;
    for (const cJSON *item = list ? list->child : NULL; item; item = item->next) {
        const struct df_path here = {&list_path, NULL, index++};
        const char *mount = df_json_str(item, "mountPath");
        if (mount && mounted_before(placement, item, mount))
            df_fault(f, &here, "something else is mounted at \"%.100s\"", mount);
        for (const cJSON *old = list->child; df_streq(name, "volumes") && old != item;
             old = old->next)
            if (df_streq(df_json_str(old, "name"), df_json_str(item, "name")))
                df_fault(f, &here, "the volume \"%.64s\" occurs twice", df_json_str(item, "name"));
    }
}

void df_rule_placement(const cJSON *value, const struct df_path *path, struct df_faults *f)
{
    const char *cache = df_json_str(value, "pluginCache.mountPath");
    const struct df_path here = {path, "pluginCache", 0};
    for (size_t i = 0; i < DF_ARRAY_SIZE(mounting); i++)
        check_mounts(value, mounting[i], path, f);
    if (cache && mounted_before(value, NULL, cache))
        df_fault(f, &here, "something else is mounted at \"%.100s\"", cache);
}
