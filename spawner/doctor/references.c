/*
 * references.c - checks that the cluster has the objects that the pods of steps refer to: Secrets,
 * ConfigMaps, claims, classes. The spawner's own account may read almost none of them; what doctor
 * may not read is left to the probe. Read df_check_references() at the end, then walk() and
 * check_object().
 */
#include "spawner/doctor/checks.h"

static const struct df_kube_resource claims = {"", "v1", "persistentvolumeclaims"};
static const struct df_kube_resource accounts = {"", "v1", "serviceaccounts"};
static const struct df_kube_resource priorities = {"scheduling.k8s.io", "v1", "priorityclasses"};
static const struct df_kube_resource runtimes = {"node.k8s.io", "v1", "runtimeclasses"};
static const struct df_kube_resource storages = {"storage.k8s.io", "v1", "storageclasses"};

/* The members of a pod's spec that name an object; [] stands for every item of a list. */
static const struct reference {
    const char *path;
    const char *optional; /* beside the name: true if the object may be absent; or NULL */
    const struct df_kube_resource *resource;
    const char *kind;
    bool is_global;
} references[] = {
    {"serviceAccountName", NULL, &accounts, "service account", false},
    {"priorityClassName", NULL, &priorities, "priority class", true},
    {"runtimeClassName", NULL, &runtimes, "runtime class", true},
    {"imagePullSecrets.[].name", NULL, &df_kube_secrets, "Secret", false},
    {"volumes.[].secret.secretName", "optional", &df_kube_secrets, "Secret", false},
    {"volumes.[].configMap.name", "optional", &df_kube_config_maps, "ConfigMap", false},
    {"volumes.[].persistentVolumeClaim.claimName", NULL, &claims, "claim", false},
    {"containers.[].envFrom.[].secretRef.name", "optional", &df_kube_secrets, "Secret", false},
    {"containers.[].envFrom.[].configMapRef.name", "optional", &df_kube_config_maps, "ConfigMap",
     false},
    {"containers.[].env.[].valueFrom.secretKeyRef.name", "optional", &df_kube_secrets, "Secret",
     false},
    {"containers.[].env.[].valueFrom.configMapKeyRef.name", "optional", &df_kube_config_maps,
     "ConfigMap", false},
};

struct walk_state {
    struct df_doctor_context *p;
    const struct reference *reference;
    const char *of;         /* the key of the placement */
    struct df_strs checked; /* "kind name" of what was checked already */
    size_t found_count, unreadable_count;
};

/* ---- claims ---- */

/* True if the claim is bound only when its first pod is scheduled: then it is not a fault that it
 * is not bound. */
static bool waits_for_a_pod(const struct df_doctor_context *p, const cJSON *claim)
{
    const char *class = df_json_str(claim, "spec.storageClassName");
    const struct df_kube_at at = {.resource = &storages, .name = class};
    DF_JSON cJSON *storage = NULL;
    return !df_str_empty(class) && df_kube_get(p->kube, &at, &storage, NULL) == 0 &&
           df_streq(df_json_str(storage, "volumeBindingMode"), "WaitForFirstConsumer");
}

static void check_claim(struct df_doctor_context *p, const char *name, const cJSON *claim)
{
    const char *phase = df_json_str(claim, "status.phase");
    if (df_streq(phase, "Bound") || waits_for_a_pod(p, claim))
        return;
    df_finding(
        p, DF_LEVEL_FAIL,
        "the claim %s is %s, and steps wait for it: give it a volume, or a storage class that "
        "creates one",
        name, phase ? phase : "not bound");
}

/* ---- one name ---- */

static int check_object(struct walk_state *t, const char *name, struct df_err *err)
{
    struct df_doctor_context *p = t->p;
    const struct reference *r = t->reference;
    const struct df_kube_at at = {
        .resource = r->resource, .name_space = r->is_global ? NULL : p->name_space, .name = name};
    DF_SECRET_JSON cJSON *object = NULL;
    struct df_err why = {0};
    if (df_kube_get(p->kube, &at, &object, &why) == 0) {
        t->found_count++;
        if (r->resource == &claims)
            check_claim(p, name, object);
        return 0;
    }
    if (why.cls == DF_ERR_DENIED) {
        t->unreadable_count++;
        return 0;
    }
    if (why.cls == DF_ERR_NOT_FOUND) {
        df_finding(
            p, DF_LEVEL_FAIL,
            "the %s %s does not exist, and steps need it: create it%s%s, or correct its name in "
            "%s",
            r->kind, name, r->is_global ? "" : " in the namespace ",
            r->is_global ? "" : p->name_space, t->of);
        return 0;
    }
    return df_err_pass(err, &why);
}

static int check_once(struct walk_state *t, const char *name, struct df_err *err)
{
    DF_FREE char *key = df_strf("%s %s", t->reference->kind, name);
    if (!key)
        return df_fail_oom(err);
    return df_strs_add_new(&t->checked, key) ? check_object(t, name, err)
                                             : df_strs_check(&t->checked, err);
}

/* True for the Secret of the step itself, which the engine creates with the step. */
static bool is_own(const struct df_doctor_context *p, const char *name)
{
    return df_starts_with(name, "dayfly-") && df_streq(name + strlen("dayfly-"), p->uid);
}

/* ---- all names ---- */

static int walk(struct walk_state *t, const cJSON *at, const char *path, struct df_err *err)
{
    const char *dot = strchr(path, '.');
    char member[64];
    if (!dot) {
        const char *name = df_json_str(at, path);
        const char *optional = t->reference->optional;
        bool may_lack = optional && df_json_bool(at, optional, false);
        return df_str_empty(name) || may_lack || is_own(t->p, name) ? 0 : check_once(t, name, err);
    }
    if (df_starts_with(path, "[].")) {
        for (const cJSON *item = at ? at->child : NULL; item; item = item->next)
            if (walk(t, item, dot + 1, err) < 0)
                return -1;
        return 0;
    }
    (void)snprintf(member, sizeof(member), "%.*s", (int)(dot - path), path);
    at = cJSON_GetObjectItemCaseSensitive(at, member);
    return at ? walk(t, at, dot + 1, err) : 0;
}

static int walk_job(struct walk_state *t, const cJSON *job, struct df_err *err)
{
    t->of = job->string;
    for (size_t i = 0; i < DF_ARRAY_SIZE(references); i++) {
        t->reference = &references[i];
        if (walk(t, df_json_at(job, "spec.template.spec"), references[i].path, err) < 0)
            return -1;
    }
    return 0;
}

int df_check_references(struct df_doctor_context *p, struct df_err *err)
{
    struct walk_state t = {.p = p};
    size_t before = p->counts[DF_LEVEL_FAIL];
    int result = 0;
    const cJSON *job;
    cJSON_ArrayForEach (job, p->jobs)
        result = result < 0 ? -1 : walk_job(&t, job, err);
    df_strs_free(&t.checked);
    if (result == 0 && p->counts[DF_LEVEL_FAIL] == before)
        df_finding(p, DF_LEVEL_OK,
                   "objects that the pods of steps refer to: %zu exist, %zu could not be read",
                   t.found_count, t.unreadable_count);
    return result;
}
