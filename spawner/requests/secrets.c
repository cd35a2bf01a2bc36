/*
 * secrets.c - first the users of a secret (users.h), then the requests on secrets, then the check
 * of an executor against all secrets.
 */
#include "spawner/requests/secrets.h"

#include <pthread.h>

#include "common/base/limits.h"
#include "spawner/model/secret_use.h"
#include "spawner/requests/users.h"
#include "spawner/store/vault/vault_integrations.h"

/* Held from the check of a secret to its change: otherwise two callers could both make it. A lock
 * of this process suffices, because only the leader serves these requests. */
static pthread_mutex_t secrets_lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- users ---------------------------------------------------------------------------------- */

/* The names of the integrations that have the secret; the caller frees. */
static int find_integrations(struct df_spawner *s, const char *secret, cJSON **ret,
                             struct df_err *err)
{
    DF_JSON cJSON *list = NULL, *names = cJSON_CreateArray();
    const cJSON *doc;
    if (df_check_alloc(names, err) < 0 || df_vault_integration_list(s->vault, &list, err) < 0)
        return -1;
    cJSON_ArrayForEach (doc, list) {
        if (df_streq(df_json_str(doc, "spec.secretRef.name"), secret) &&
            df_json_append_str(names, df_json_str(doc, "metadata.name"), err) < 0)
            return -1;
    }
    *ret = DF_TAKE(names);
    return 0;
}

/* CONFLICT SecretInUse unless it is forced. use: look only for users that it does not cover. */
static int check_unused(struct df_spawner *s, const struct df_secret_request *q, const cJSON *use,
                        struct df_err *err)
{
    DF_JSON cJSON *through = NULL;
    const cJSON *name;
    if (q->force)
        return 0;
    if (find_integrations(s, q->name, &through, err) < 0)
        return -1;
    DF_USERS u = {.secret = q->name,
                  .key = use ? NULL : q->key,
                  .through = through,
                  .use = use,
                  .text = DF_USERS_TEXT};
    if (df_users_find(s, &u, err) < 0)
        return -1;
    cJSON_ArrayForEach (name, through) {
        if (!use) /* the list of the secret's executors says nothing of integrations */
            df_users_add(&u, "integration", cJSON_GetStringValue(name));
    }
    return df_users_refuse(&u, "SecretInUse",
                           "their next steps would get the change; if that is meant, repeat it "
                           "with --force",
                           err);
}

/* ---- set ------------------------------------------------------------------------------------ */

/* *ret: the listed secret, or NULL if there is none; the caller frees. */
static int find_secret(struct df_spawner *s, const char *name, cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *list = NULL;
    cJSON *entry;
    *ret = NULL;
    if (df_vault_list(s->vault, &list, err) < 0)
        return -1;
    cJSON_ArrayForEach (entry, list) {
        if (df_streq(df_json_str(entry, "name"), name)) {
            *ret = cJSON_DetachItemViaPointer(list, entry);
            return 0;
        }
    }
    return 0;
}

static int check_old(struct df_spawner *s, const struct df_secret_request *q, const cJSON *old,
                     const cJSON *use, struct df_err *err)
{
    if (df_secret_use_check_change(old, DF_USED_SECRET(q->name), q->role, q->actor, err) < 0)
        return -1;
    if (q->value && df_json_has_string(df_json_at(old, "keys"), q->key) &&
        check_unused(s, q, NULL, err) < 0)
        return -1;
    return use ? check_unused(s, q, use, err) : 0;
}

/* A caller who is no admin always says which executors; for all of them is an admin's to say. */
static int check_executors(const struct df_secret_request *q, const cJSON *old, const cJSON *use,
                           struct df_err *err)
{
    if (q->role >= DF_ROLE_ADMIN)
        return 0;
    if (use && !cJSON_HasObjectItem(use, "executors"))
        return df_fail(err, DF_ERR_DENIED,
                       "secret \"%s\": only an admin allows every executor to use a secret; name "
                       "them: --executor a,b",
                       q->name);
    if (use || old)
        return 0;
    return df_fail(err, DF_ERR_USER,
                   "secret \"%s\" is new: name the executors that may use it (--executor a,b); "
                   "only a secret of an admin is for every executor without that",
                   q->name);
}

/* Builds the use to store; *ret is NULL if the stored one stays. */
static int make_use(const struct df_secret_request *q, const cJSON *old, cJSON **ret,
                    struct df_err *err)
{
    const char *owner = old ? df_json_str(old, "owner") : q->actor;
    const char *executors = q->executors ? q->executors : old ? NULL : "*";
    if (!executors)
        return 0;
    if (!old && !q->executors && q->role < DF_ROLE_ADMIN)
        return check_executors(q, old, NULL, err);
    return df_secret_use_parse(executors, owner, ret, err);
}

static int set_secret(struct df_spawner *s, const struct df_secret_request *q, struct df_err *err)
{
    DF_JSON cJSON *old = NULL, *use = NULL;
    if (df_vault_check_writable(s->vault, q->name, err) < 0 ||
        find_secret(s, q->name, &old, err) < 0 || make_use(q, old, &use, err) < 0 ||
        (old && check_old(s, q, old, use, err) < 0) || check_executors(q, old, use, err) < 0)
        return -1;
    struct df_vault_entry entry = {.use = use};
    if (q->value)
        entry = (struct df_vault_entry){q->key, df_buf_str(q->value), q->value->len, use};
    return df_vault_put(s->vault, q->name, &entry, err);
}

int df_request_set_secret(struct df_spawner *s, const struct df_secret_request *request,
                          struct df_err *err)
{
    (void)pthread_mutex_lock(&secrets_lock);
    int result = set_secret(s, request, err);
    (void)pthread_mutex_unlock(&secrets_lock);
    return result;
}

/* ---- delete --------------------------------------------------------------------------------- */

static int delete_secret(struct df_spawner *s, const struct df_secret_request *q,
                         struct df_err *err)
{
    DF_JSON cJSON *old = NULL;
    if (df_vault_check_writable(s->vault, q->name, err) < 0 ||
        df_vault_get_use(s->vault, q->name, &old, err) < 0 ||
        df_secret_use_check_change(old, DF_USED_SECRET(q->name), q->role, q->actor, err) < 0 ||
        check_unused(s, q, NULL, err) < 0)
        return -1;
    return df_vault_delete(s->vault, q->name, q->key, err);
}

int df_request_delete_secret(struct df_spawner *s, const struct df_secret_request *request,
                             struct df_err *err)
{
    (void)pthread_mutex_lock(&secrets_lock);
    int result = delete_secret(s, request, err);
    (void)pthread_mutex_unlock(&secrets_lock);
    return result;
}

/* ---- executors ------------------------------------------------------------------------------ */

/* Fails if one of the secrets is entrusted to the executor by somebody else. */
static int check_entrusted(const cJSON *list, const char *executor, const char *actor,
                           struct df_err *err)
{
    const cJSON *secret;
    cJSON_ArrayForEach (secret, list) {
        if (df_secret_use_is_entrusted(secret, executor, actor))
            return df_secret_use_refuse_maker(secret, DF_USED_SECRET(df_json_str(secret, "name")),
                                              executor, err);
    }
    return 0;
}

/* What the executor names must be for it. A secret that does not exist yet is nobody's. */
static int check_named(struct df_spawner *s, const cJSON *spec, const char *executor,
                       struct df_err *err)
{
    struct df_secret_place p;
    for (size_t i = 0; df_secret_place_at(spec, i, &p); i++) {
        DF_JSON cJSON *use = NULL;
        struct df_err why = {0};
        int result = df_vault_get_use(s->vault, p.name, &use, &why);
        if (result < 0 && why.cls != DF_ERR_NOT_FOUND)
            return df_err_pass(err, &why);
        if (result == 0 && df_secret_use_check(use, DF_USED_SECRET(p.name), executor, err) < 0)
            return -1;
    }
    return 0;
}

int df_request_check_secrets(struct df_spawner *s, const cJSON *executor, enum df_role role,
                             const char *actor, struct df_err *err)
{
    const char *name = df_json_str(executor, "metadata.name");
    DF_JSON cJSON *own = NULL, *of_sources = NULL;
    if (check_named(s, df_json_at(executor, "spec"), name, err) < 0)
        return -1;
    /* Most executors of admins need no request to the vault, which may be the API server. */
    if (role >= DF_ROLE_ADMIN)
        return 0;
    if (df_vault_list(s->vault, &own, err) < 0 ||
        df_vault_list_uses(s->vault, &of_sources, err) < 0 ||
        check_entrusted(own, name, actor, err) < 0)
        return -1;
    return check_entrusted(of_sources, name, actor, err);
}

static bool is_missing(struct df_spawner *s, const char *name)
{
    DF_JSON cJSON *use = NULL;
    struct df_err why = {0};
    return *name && df_vault_get_use(s->vault, name, &use, &why) < 0 && why.cls == DF_ERR_NOT_FOUND;
}

static int add_warning(cJSON *doc, const struct df_secret_place *p, struct df_err *err)
{
    cJSON *list = df_json_array_at(doc, "warnings");
    const char *key = cJSON_GetStringValue(cJSON_GetArrayItem(df_json_at(p->entry, "keys"), 0));
    DF_FREE char *text =
        df_strf("%s: secret \"%s\" does not exist yet, and until then steps of "
                "executor %s fail: `dayfly secret set %s %s` makes it",
                p->path, p->name, df_json_str(doc, "metadata.name"), p->name, key ? key : "KEY");
    return list && text ? df_json_append_str(list, text, err) : df_fail_oom(err);
}

int df_request_warn_of_secrets(struct df_spawner *s, cJSON *doc, struct df_err *err)
{
    struct df_secret_place p;
    for (size_t i = 0; df_secret_place_at(df_json_at(doc, "spec"), i, &p); i++)
        if (is_missing(s, p.name) && add_warning(doc, &p, err) < 0)
            return -1;
    return 0;
}
