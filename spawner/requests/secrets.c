/*
 * secrets.c - first the users of a secret, then the requests on secrets, then the check of an
 * executor against all secrets.
 */
#include "spawner/requests/secrets.h"

#include <pthread.h>

#include "common/base/limits.h"
#include "spawner/model/labels.h"
#include "spawner/model/secret_use.h"

/* Held from the check of a secret to its change: otherwise two callers could both make it. A lock
 * of this process suffices, because only the leader serves these requests. */
static pthread_mutex_t checked = PTHREAD_MUTEX_INITIALIZER;

/* ---- users ---------------------------------------------------------------------------------- */

struct users {
    const char *secret;
    const char *key;    /* only users of this key; NULL: of any */
    const cJSON *use;   /* only users that it does not cover; NULL: all */
    enum df_kind kind;  /* of the documents that are looked at */
    struct df_buf text; /* "executor net, run net-3" */
    size_t count;
};

/* More than a message can hold are counted, and not named. */
enum { USERS_NAMED = 5 };

static void add_user(struct users *u, const char *name)
{
    if (u->count++ < USERS_NAMED)
        (void)df_buf_addf(&u->text, "%s%s %s", u->text.len ? ", " : "",
                          u->kind == DF_KIND_RUN ? "run" : "executor", name);
}

static const char *executor_of(enum df_kind kind, const cJSON *doc)
{
    return df_json_str(doc, kind == DF_KIND_RUN ? "spec.executorRef.name" : "metadata.name");
}

static int check_user(const cJSON *doc, void *arg, struct df_err *err)
{
    struct users *u = arg;
    (void)err;
    const cJSON *spec = df_json_at(doc, u->kind == DF_KIND_RUN ? "spec.snapshot" : "spec");
    if (df_secret_is_used(spec, u->secret, u->key) &&
        !(u->use && df_secret_use_covers(u->use, executor_of(u->kind, doc))))
        add_user(u, df_json_str(doc, "metadata.name"));
    return 0;
}

static int find_users(struct df_spawner *s, struct users *u, enum df_kind kind, struct df_err *err)
{
    u->kind = kind;
    return df_store_each(s->store, kind, kind == DF_KIND_RUN ? DF_LABEL_UNFINISHED "=true" : NULL,
                         check_user, u, err);
}

static int refuse_users(const struct users *u, struct df_err *err)
{
    char more[32] = "";
    if (u->count > USERS_NAMED)
        (void)snprintf(more, sizeof(more), " and %zu more", u->count - USERS_NAMED);
    return df_fail_reason(err, DF_ERR_CONFLICT, "SecretInUse",
                          "secret \"%s\" is in use by %s%s: their next steps would get the change; "
                          "if that is meant, repeat it with --force",
                          u->secret, df_buf_str(&u->text), more);
}

/* CONFLICT SecretInUse unless it is forced. use: look only for users that it does not cover. */
static int check_unused(struct df_spawner *s, const struct df_secret_request *q, const cJSON *use,
                        struct df_err *err)
{
    struct users u = {
        .secret = q->name, .key = use ? NULL : q->key, .use = use, .text = DF_BUF_INIT(DF_KIB)};
    if (q->force)
        return 0;
    int result = find_users(s, &u, DF_KIND_EXECUTOR, err);
    if (result == 0)
        result = find_users(s, &u, DF_KIND_RUN, err);
    if (result == 0 && u.count)
        result = refuse_users(&u, err);
    df_buf_free(&u.text);
    return result;
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
    if (df_secret_use_check_change(old, q->name, q->role, q->actor, err) < 0)
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
    if (find_secret(s, q->name, &old, err) < 0 || make_use(q, old, &use, err) < 0 ||
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
    (void)pthread_mutex_lock(&checked);
    int result = set_secret(s, request, err);
    (void)pthread_mutex_unlock(&checked);
    return result;
}

/* ---- delete --------------------------------------------------------------------------------- */

static int delete_secret(struct df_spawner *s, const struct df_secret_request *q,
                         struct df_err *err)
{
    DF_JSON cJSON *old = NULL;
    if (df_vault_get_use(s->vault, q->name, &old, err) < 0 ||
        df_secret_use_check_change(old, q->name, q->role, q->actor, err) < 0 ||
        check_unused(s, q, NULL, err) < 0)
        return -1;
    return df_vault_delete(s->vault, q->name, q->key, err);
}

int df_request_delete_secret(struct df_spawner *s, const struct df_secret_request *request,
                             struct df_err *err)
{
    (void)pthread_mutex_lock(&checked);
    int result = delete_secret(s, request, err);
    (void)pthread_mutex_unlock(&checked);
    return result;
}

/* ---- executors ------------------------------------------------------------------------------ */

/* Is the secret meant for this executor by name, and by somebody else than the caller? */
static bool is_entrusted(const cJSON *secret, const char *executor, const char *actor)
{
    return cJSON_HasObjectItem(secret, "executors") && df_secret_use_covers(secret, executor) &&
           !df_streq(df_json_str(secret, "owner"), actor);
}

int df_request_check_secrets(struct df_spawner *s, const cJSON *executor, enum df_role role,
                             const char *actor, struct df_err *err)
{
    const char *name = df_json_str(executor, "metadata.name");
    struct df_secret_place first;
    DF_JSON cJSON *list = NULL;
    const cJSON *secret;
    /* Most executors need no request to the vault, which may be the API server. */
    if (role >= DF_ROLE_ADMIN && !df_secret_place_at(df_json_at(executor, "spec"), 0, &first))
        return 0;
    if (df_vault_list(s->vault, &list, err) < 0)
        return -1;
    cJSON_ArrayForEach (secret, list) {
        const char *of = df_json_str(secret, "name");
        if (df_secret_is_used(df_json_at(executor, "spec"), of, NULL) &&
            df_secret_use_check(secret, of, name, err) < 0)
            return -1;
        if (role < DF_ROLE_ADMIN && is_entrusted(secret, name, actor))
            return df_fail_reason(err, DF_ERR_DENIED, "SecretNotAllowed",
                                  "the secret \"%s\" is for the executor %s: only its owner or an "
                                  "admin makes this executor",
                                  of, name);
    }
    return 0;
}
