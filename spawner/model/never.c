#include "spawner/model/never.h"

#include "spawner/model/references.h"

#define AUDIENCE "dayfly"

void df_never_free(struct df_never *n)
{
    df_strs_free(&n->accounts);
    df_strs_free(&n->secrets);
    df_strs_free(&n->claims);
    *n = (struct df_never){0};
}

/* ---- what is ours ---- */

static const struct df_never nothing_more;

/* The part of `name` behind the prefix, or NULL. */
static const char *behind(const char *name, const char *prefix)
{
    size_t n = strlen(prefix);
    return strncmp(name, prefix, n) == 0 ? name + n : NULL;
}

/* The key of the vault, the authority, and the blobs: states and plans. What the vault itself holds
 * is known by a label (engine/job/vault_secrets.c). */
static bool is_own_secret(const struct df_never *n, const char *name)
{
    return strcmp(name, "dayfly-key") == 0 || strcmp(name, "dayfly-authority") == 0 ||
           behind(name, "dfb-") || df_strs_has(&n->secrets, name);
}

/* A token of the audience `dayfly` is worth a role, one of `dayfly/<uid>` is worth that step. */
static bool is_own_audience(const char *name, const char *uid)
{
    const char *rest = behind(name, AUDIENCE);
    return rest && (!*rest || (*rest == '/' && !df_streq(rest + 1, uid)));
}

static bool is_never(const struct df_never *n, enum df_reference kind, const char *name,
                     const char *uid)
{
    switch (kind) {
    case DF_REFERENCE_ACCOUNT:
        return df_strs_has(&n->accounts, name);
    case DF_REFERENCE_SECRET:
        return is_own_secret(n, name);
    case DF_REFERENCE_CONFIG_MAP:
        return behind(name, "dfb-");
    case DF_REFERENCE_CLAIM:
        return df_strs_has(&n->claims, name);
    case DF_REFERENCE_AUDIENCE:
        return is_own_audience(name, uid);
    case DF_REFERENCE_IMAGE:
    case DF_REFERENCE_PRIORITY:
        return false;
    }
    return false;
}

/* ---- the search ---- */

struct search {
    const struct df_never *never;
    const char *uid;
    struct df_faults *faults;
};

static void look(void *arg, enum df_reference kind, const char *name, const struct df_path *path)
{
    const struct search *s = arg;
    if (is_never(s->never, kind, name, s->uid))
        df_fault(s->faults, path,
                 "the %s \"%.80s\" belongs to dayfly itself: no step gets it, whoever asks",
                 df_reference_name(kind), name);
}

bool df_never_is_secret(const struct df_never *n, const char *name)
{
    return is_own_secret(n ? n : &nothing_more, name);
}

void df_never_find(const struct df_never *n, const char *uid, const cJSON *tree,
                   const struct df_path *path, struct df_faults *f)
{
    struct search s = {n ? n : &nothing_more, uid, f};
    df_references(tree, path, look, &s);
}

void df_never_find_of(const struct df_never *n, const cJSON *member, const struct df_path *path,
                      struct df_faults *f)
{
    struct search s = {n ? n : &nothing_more, NULL, f};
    df_references_of(member, path, look, &s);
}

/* A pod that names no account gets `default`, which may be the service's own. */
static void look_default(const struct df_never *n, const cJSON *pod_spec,
                         const struct df_path *path, struct df_faults *f)
{
    const struct df_path here = {path, "serviceAccountName", 0};
    bool is_named = !df_str_empty(df_json_str(pod_spec, "serviceAccountName")) ||
                    !df_str_empty(df_json_str(pod_spec, "serviceAccount"));
    if (!is_named && n && df_strs_has(&n->accounts, "default"))
        df_fault(f, &here,
                 "none is set, and the account \"default\" is dayfly's own: set "
                 "kubernetes.placement.serviceAccountName");
}

int df_never_check_pod(const struct df_never *n, const char *uid, const cJSON *pod_template,
                       struct df_err *err)
{
    struct df_faults f = {0};
    const struct df_path root = {0}, spec = {&root, "spec", 0};
    const cJSON *pod_spec = df_json_at(pod_template, "spec");
    df_never_find(n, uid, pod_spec, &spec, &f);
    look_default(n, pod_spec, &spec, &f);
    return df_faults_fail(&f, DF_REASON_PLACEMENT_DENIED, "the pod of this step: ", err);
}
