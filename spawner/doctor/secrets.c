/*
 * secrets.c - names the secrets of the vault that every executor may use.
 */
#include "common/base/fs.h"
#include "spawner/doctor/checks.h"
#include "spawner/store/vault/vault.h"

enum { NAMED = 20 }; /* more are counted */

/* A data directory that no service has used yet has no vault, and doctor makes none. */
static int list_on_disk(const struct df_doctor_context *p, cJSON **ret, struct df_err *err)
{
    DF_FREE char *database = df_fs_join(p->config.data_directory, "dayfly.db");
    DF_FREE char *key = df_fs_join(p->config.data_directory, "key");
    DF_VAULT struct df_vault *vault = NULL;
    if (!database || !key)
        return df_fail_oom(err);
    if (!df_fs_exists(database) || !df_fs_exists(key))
        return 0;
    return df_vault_open(database, key, &vault, err) < 0 ? -1 : df_vault_list(vault, ret, err);
}

/* Returns how many there are, and adds the names of the first ones. */
static size_t find_open(const cJSON *secrets, struct df_buf *names)
{
    const cJSON *secret;
    size_t count = 0;
    cJSON_ArrayForEach (secret, secrets) {
        if (cJSON_HasObjectItem(secret, "executors"))
            continue;
        if (count++ < NAMED)
            (void)df_buf_addf(names, "%s%s", names->len ? ", " : "", df_json_str(secret, "name"));
    }
    return count;
}

static int report(struct df_doctor_context *p, const cJSON *secrets, struct df_err *err)
{
    const struct df_config *c = &p->config;
    bool has_others = c->in_cluster || df_config_has_callers(c);
    DF_BUF struct df_buf names = DF_BUF_INIT(8 * DF_KIB);
    size_t count = find_open(secrets, &names);
    if (df_buf_check(&names, err) < 0)
        return -1;
    if (count > NAMED)
        (void)df_buf_addf(&names, " and %zu more", count - NAMED);
    if (count)
        df_finding(
            p, has_others ? DF_LEVEL_WARN : DF_LEVEL_OK,
            "every executor may use these secrets of the vault: %s. `dayfly secret allow NAME "
            "--executor …` names those that may",
            df_buf_str(&names));
    else if (cJSON_GetArraySize(secrets))
        df_finding(p, DF_LEVEL_OK, "each secret of the vault is for the executors that it names");
    return 0;
}

int df_check_secrets(struct df_doctor_context *p, struct df_err *err)
{
    DF_JSON cJSON *secrets = NULL;
    struct df_err why = {0};
    if (p->config.in_cluster && !p->kube)
        return 0; /* the API server does not answer, as the check "cluster" says */
    int result = p->config.in_cluster ? df_vault_kube_list(p->kube, p->service_ns, &secrets, &why)
                                      : list_on_disk(p, &secrets, &why);
    if (result == 0)
        df_find_hidden_secrets(p, secrets);
    if (result == 0)
        return report(p, secrets, err);
    if (why.cls != DF_ERR_DENIED)
        return df_err_pass(err, &why);
    df_finding(p, DF_LEVEL_WARN, "these credentials may not list the secrets of the vault: %s",
               why.message);
    return 0;
}
