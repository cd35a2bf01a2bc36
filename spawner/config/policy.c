/*
 * policy.c - the parts of the configuration that limit placements, in the form of the model.
 */
#include "spawner/config/config.h"
#include "spawner/model/names.h"

struct df_allow df_config_allow(const struct df_config *c, const struct df_never *never)
{
    struct df_allow allow = {.defaults = c->kube_placement,
                             .classes = c->classes,
                             .image = c->kube_image,
                             .workflow_account = c->workflow_account,
                             .never = never};
    for (int role = 0; role < DF_ALLOW_ROLES; role++)
        for (int level = 0; level < DF_ALLOW_LEVELS; level++)
            allow.rules[role][level] = c->allow[role][level];
    return allow;
}

static void add_all(struct df_strs *to, const struct df_strs *from)
{
    for (size_t i = 0; i < from->len; i++)
        (void)df_strs_add(to, from->items[i]);
}

/* account: "namespace/name". An account of another namespace cannot be that of a pod. */
static void add_account(struct df_strs *to, const char *account, const char *name_space)
{
    size_t n = strlen(name_space);
    if (strncmp(account, name_space, n) == 0 && account[n] == '/')
        (void)df_strs_add(to, account + n + 1);
}

static bool is_admin(const cJSON *account)
{
    return df_streq(cJSON_GetStringValue(account), df_role_name(DF_ROLE_ADMIN));
}

static void add_accounts(struct df_strs *to, const cJSON *list, const char *name_space)
{
    const cJSON *account;
    cJSON_ArrayForEach (account, list) {
        add_account(to, account->valuestring, name_space);
    }
}

int df_config_never(const struct df_config *c, const char *name_space, const char *account,
                    struct df_never *ret, struct df_err *err)
{
    DF_CLEANUP(df_never_free) struct df_never n = {0};
    const cJSON *known;
    add_all(&n.accounts, &c->never.accounts);
    add_all(&n.secrets, &c->never.secrets);
    add_all(&n.claims, &c->never.claims);
    if (c->tls_secret)
        (void)df_strs_add(&n.secrets, c->tls_secret);
    if (c->awx.secret)
        (void)df_strs_add(&n.secrets, c->awx.secret);
    if (account)
        add_account(&n.accounts, account, name_space);
    cJSON_ArrayForEach (known, c->accounts) {
        if (is_admin(known))
            add_account(&n.accounts, known->string, name_space);
    }
    cJSON_ArrayForEach (known, c->grants) {
        if (df_grant_verbs(known) & ~DF_VERBS_WRITE)
            add_accounts(&n.accounts, df_json_at(known, "to.serviceAccounts"), name_space);
    }
    if (df_strs_check(&n.accounts, err) < 0 || df_strs_check(&n.secrets, err) < 0 ||
        df_strs_check(&n.claims, err) < 0)
        return -1;
    *ret = n;
    n = (struct df_never){0};
    return 0;
}
