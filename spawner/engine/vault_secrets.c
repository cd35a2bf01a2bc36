#include "spawner/engine/vault_secrets.h"

#include "spawner/model/never.h"
#include "spawner/model/references.h"

static void collect(void *arg, enum df_reference kind, const char *name, const struct df_path *path)
{
    (void)path;
    if (kind == DF_REFERENCE_SECRET)
        (void)df_strs_add_new(arg, name);
}

/* A Secret that is absent, or that this service may not read, is none of its vault. */
static int check_secret(struct df_kube *k, const char *name_space, const char *name,
                        struct df_err *err)
{
    const struct df_kube_at at = {
        .resource = &df_kube_secrets, .name_space = name_space, .name = name};
    DF_SECRET_JSON cJSON *secret = NULL;
    struct df_err why = {0};
    if (df_kube_get(k, &at, &secret, &why) < 0)
        return why.cls == DF_ERR_NOT_FOUND || why.cls == DF_ERR_DENIED ? 0 : df_err_pass(err, &why);
    if (!df_kube_label(secret, DF_LABEL_VAULT))
        return 0;
    return df_fail_reason(err, DF_ERR_USER, DF_REASON_PLACEMENT_DENIED,
                          "the pod of this step: the Secret \"%.80s\" is a secret of dayfly's "
                          "vault (its label " DF_LABEL_VAULT
                          "): no step mounts it, whoever asks; name "
                          "it in spec.secrets of the executor",
                          name);
}

int df_engine_check_vault(struct df_kube *k, const char *name_space, const cJSON *tree,
                          struct df_err *err)
{
    static const struct df_path root = {0};
    DF_STRS struct df_strs names = {0};
    df_references(tree, &root, collect, &names);
    if (df_strs_check(&names, err) < 0)
        return -1;
    for (size_t i = 0; i < names.len; i++)
        if (check_secret(k, name_space, names.items[i], err) < 0)
            return -1;
    return 0;
}
