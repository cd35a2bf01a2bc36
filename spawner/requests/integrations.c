/*
 * integrations.c - first who may make and change an integration, then the requests, the test of its
 * credentials, and the check of an executor against all integrations.
 */
#include "spawner/requests/integrations.h"

#include <pthread.h>

#include "common/azure/credentials.h"
#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/base/limits.h"
#include "spawner/model/secret_use.h"
#include "spawner/requests/users.h"
#include "spawner/steps/integrations.h"
#include "spawner/store/vault/vault_integrations.h"

/* Held from the check of an integration to its change, as in secrets.c. */
static pthread_mutex_t integrations_lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- who may ---- */

static int check_change(const struct df_integration_request *q, const char *name, const cJSON *doc,
                        struct df_err *err)
{
    DF_JSON cJSON *use = NULL;
    if (df_integration_use(doc, &use, err) < 0)
        return -1;
    return df_secret_use_check_change(use, DF_USED_INTEGRATION(name), q->role, q->actor, err);
}

/* Whoever lets executors use a secret must be allowed to say so: its owner, or an admin. */
static int check_secret(struct df_spawner *s, const struct df_integration_request *q,
                        const char *secret, struct df_err *err)
{
    DF_JSON cJSON *use = NULL;
    struct df_err why = {0};
    if (q->role >= DF_ROLE_ADMIN)
        return 0;
    if (df_vault_get_use(s->vault, secret, &use, &why) < 0)
        return why.cls == DF_ERR_NOT_FOUND
                   ? df_fail(err, DF_ERR_DENIED,
                             "spec.secretRef: secret \"%s\" does not exist: make it first, with "
                             "dayfly secret set",
                             secret)
                   : df_err_pass(err, &why);
    return df_secret_use_check_change(use, DF_USED_SECRET(secret), q->role, q->actor, err);
}

/* What only an admin may make. */
static int check_role(struct df_spawner *s, const struct df_integration_request *q,
                      struct df_err *err)
{
    DF_JSON cJSON *use = NULL;
    const char *name = df_json_str(q->doc, "metadata.name");
    const char *secret = df_json_str(q->doc, "spec.secretRef.name");
    if (q->role >= DF_ROLE_ADMIN)
        return 0;
    if (df_integration_use(q->doc, &use, err) < 0)
        return -1;
    if (!cJSON_HasObjectItem(use, "executors"))
        return df_fail(err, DF_ERR_DENIED,
                       "integration \"%s\": only an admin allows every executor to use one; name "
                       "them in spec.executors",
                       name);
    if (df_integration_has_identity(df_json_at(q->doc, "spec")))
        return df_fail(err, DF_ERR_DENIED,
                       "integration \"%s\": without keys in a secret it uses an identity of the "
                       "service or of pods, which only an admin may grant",
                       name);
    return secret ? check_secret(s, q, secret, err) : 0;
}

/* ---- create and replace ---- */

/* Writes the parts of the document that the service sets. old: NULL for a new one. */
static int stamp(cJSON *doc, const cJSON *old, const char *actor, struct df_err *err)
{
    cJSON *metadata = df_json_object_at(doc, "metadata"),
          *status = df_json_object_at(doc, "status");
    int64_t generation = df_json_int(old, "metadata.generation", 0) + 1;
    const char *made = df_json_str(old, "metadata.creationTimestamp");
    char uid[37], version[24], now[DF_TIME_LEN];
    if (df_check_alloc(metadata, err) < 0 || df_check_alloc(status, err) < 0 ||
        df_uuid(uid, err) < 0)
        return -1;
    (void)df_time_format(df_real_us(), now);
    (void)snprintf(version, sizeof(version), "%lld", (long long)generation);
    if (df_json_set_str(metadata, "uid", old ? df_json_str(old, "metadata.uid") : uid, err) < 0 ||
        df_json_put(metadata, err, DF_STR("resourceVersion", version),
                    DF_NUM("generation", generation),
                    DF_STR("creationTimestamp", made ? made : now)) < 0 ||
        df_json_set_str(status, "owner", old ? df_json_str(old, "status.owner") : actor, err) < 0)
        return -1;
    return df_json_set_str(status, "changedAt", now, err);
}

/* Stores the document, which is valid, and returns it as it is then. */
static int store(struct df_spawner *s, const struct df_integration_request *q, const cJSON *old,
                 cJSON **ret, struct df_err *err)
{
    const char *name = df_json_str(q->doc, "metadata.name");
    if (stamp(q->doc, old, q->actor, err) < 0 ||
        df_vault_integration_put(s->vault, name, q->doc, err) < 0)
        return -1;
    return df_vault_integration_get(s->vault, name, ret, err);
}

static int create(struct df_spawner *s, const struct df_integration_request *q, cJSON **ret,
                  struct df_err *err)
{
    const char *name = df_json_str(q->doc, "metadata.name");
    DF_JSON cJSON *old = NULL;
    struct df_err why = {0};
    if (df_vault_integration_get(s->vault, name, &old, &why) == 0)
        return df_fail_reason(err, DF_ERR_CONFLICT, "AlreadyExists",
                              "integration %s exists already; change it with: dayfly apply -f FILE",
                              name);
    if (why.cls != DF_ERR_NOT_FOUND)
        return df_err_pass(err, &why);
    /* A former one of this name may have left the time of its last use. */
    if (df_vault_integration_delete(s->vault, name, &why) < 0 && why.cls != DF_ERR_NOT_FOUND)
        return df_err_pass(err, &why);
    return store(s, q, NULL, ret, err);
}

int df_request_create_integration(struct df_spawner *s, const struct df_integration_request *q,
                                  cJSON **ret, struct df_err *err)
{
    if (!q->doc)
        return df_fail(err, DF_ERR_USER, "a body with the integration is required");
    if (df_model_admit(DF_KIND_INTEGRATION, q->doc, NULL, err) < 0 || check_role(s, q, err) < 0)
        return -1;
    (void)pthread_mutex_lock(&integrations_lock);
    int result = create(s, q, ret, err);
    (void)pthread_mutex_unlock(&integrations_lock);
    return result;
}

/* Executors that use it now and may not afterwards. */
static int check_narrower(struct df_spawner *s, const struct df_integration_request *q,
                          struct df_err *err)
{
    DF_JSON cJSON *use = NULL;
    if (df_integration_use(q->doc, &use, err) < 0)
        return -1;
    DF_USERS u = {.integration = q->name, .use = use, .text = DF_USERS_TEXT};
    if (df_users_find(s, &u, err) < 0)
        return -1;
    return df_users_refuse(
        &u, "IntegrationInUse",
        "spec.executors must keep them, as long as their spec.integrations names "
        "it",
        err);
}

static int check_version(const struct df_integration_request *q, const cJSON *old,
                         struct df_err *err)
{
    const char *name = df_json_str(q->doc, "metadata.name");
    const char *version = df_json_str(q->doc, "metadata.resourceVersion");
    if (name && !df_streq(name, q->name))
        return df_fail_reason(err, DF_ERR_USER, "InvalidDocument",
                              "metadata.name: is %.64s, the path says %s", name, q->name);
    if (!version)
        return df_fail_reason(err, DF_ERR_USER, "PreconditionRequired",
                              "send metadata.resourceVersion as you read it: a blind replace could "
                              "undo a change of somebody else");
    if (!df_streq(version, df_json_str(old, "metadata.resourceVersion")))
        return df_fail_reason(err, DF_ERR_CONFLICT, "Conflict",
                              "metadata.resourceVersion: %s was changed meanwhile: read it again",
                              q->name);
    return 0;
}

static int replace(struct df_spawner *s, const struct df_integration_request *q, cJSON **ret,
                   struct df_err *err)
{
    DF_JSON cJSON *old = NULL;
    if (df_vault_integration_get(s->vault, q->name, &old, err) < 0 ||
        check_change(q, q->name, old, err) < 0 || check_version(q, old, err) < 0 ||
        df_model_admit(DF_KIND_INTEGRATION, q->doc, old, err) < 0 || check_role(s, q, err) < 0 ||
        check_narrower(s, q, err) < 0)
        return -1;
    if (df_json_equal(df_json_at(q->doc, "spec"), df_json_at(old, "spec"))) {
        *ret = DF_TAKE(old);
        return 0;
    }
    return store(s, q, old, ret, err);
}

int df_request_replace_integration(struct df_spawner *s, const struct df_integration_request *q,
                                   cJSON **ret, struct df_err *err)
{
    if (!q->doc)
        return df_fail(err, DF_ERR_USER, "a body with the integration is required");
    (void)pthread_mutex_lock(&integrations_lock);
    int result = replace(s, q, ret, err);
    (void)pthread_mutex_unlock(&integrations_lock);
    return result;
}

/* ---- delete ---- */

static int delete_unused(struct df_spawner *s, const struct df_integration_request *q,
                         struct df_err *err)
{
    DF_JSON cJSON *old = NULL;
    if (df_vault_integration_get(s->vault, q->name, &old, err) < 0 ||
        check_change(q, q->name, old, err) < 0)
        return -1;
    DF_USERS u = {.integration = q->name, .text = DF_USERS_TEXT};
    if (df_users_find(s, &u, err) < 0 ||
        df_users_refuse(&u, "IntegrationInUse", "take it out of their spec.integrations first",
                        err) < 0)
        return -1;
    return df_vault_integration_delete(s->vault, q->name, err);
}

int df_request_delete_integration(struct df_spawner *s, const struct df_integration_request *q,
                                  struct df_err *err)
{
    (void)pthread_mutex_lock(&integrations_lock);
    int result = delete_unused(s, q, err);
    (void)pthread_mutex_unlock(&integrations_lock);
    return result;
}

/* ---- test ---- */

/* Are keys and settings complete? */
static int check_complete(const cJSON *spec, const cJSON *secret, struct df_err *err)
{
    DF_SECRET_JSON cJSON *environment = cJSON_CreateObject(), *files = cJSON_CreateObject();
    DF_SECRET_JSON cJSON *binary = cJSON_CreateObject();
    const struct df_integration_places to = {environment, files, binary};
    DF_FREE char *made = NULL;
    if (!environment || !files || !binary)
        return df_fail_oom(err);
    if (df_integration_audience(spec, &made))
        return df_integration_identity(spec, "/token", "test", &to, err);
    return df_integration_apply(df_json_str(spec, "provider"), secret, &to, err);
}

/* What a provider said to credentials that it does not take. */
static int refused_by_provider(const struct df_err *why, struct df_err *err)
{
    return why->cls == DF_ERR_RETRY
               ? df_err_pass(err, why)
               : df_fail_reason(err, DF_ERR_USER, "IntegrationFailed", "%s", why->message);
}

/* AWS does not know the keys of another store, and may be out of reach of who has one. */
static int refused_by_aws(struct df_err *why, struct df_err *err)
{
    size_t n = strlen(why->message);
    if (df_str_empty(getenv("AWS_ENDPOINT_URL_STS")))
        (void)snprintf(why->message + n, sizeof(why->message) - n,
                       "; keys of another store than AWS are tested at its STS: name that in "
                       "AWS_ENDPOINT_URL_STS of the service's environment. Without one they cannot "
                       "be tested, and steps use them all the same");
    return refused_by_provider(why, err);
}

/* Asks AWS who the holder of the keys is that a step would get. *ret: its ARN; the caller frees. */
static int ask_aws(const cJSON *spec, const cJSON *secret, char **ret, struct df_err *err)
{
    DF_INTEGRATION_ROLE role = {0};
    DF_AWS_KEYS keys = {0};
    struct df_err why = {0};
    if (df_integration_role_of(spec, secret, &role, err) < 0)
        return -1;
    role.role.session = "dayfly-integration-test";
    struct df_sts sts = {.region = role.region, .keys = &keys};
    if (!sts.region && df_integration_region(NULL, secret, &sts.region, err) < 0)
        return -1;
    if (!role.role.arn &&
        (check_complete(spec, secret, err) < 0 || df_integration_keys(secret, &keys, err) < 0))
        return -1;
    if (role.role.arn && df_integration_assume(&role, secret, &keys, err) < 0)
        return -1;
    return df_sts_caller(&sts, ret, &why) < 0 ? refused_by_aws(&why, err) : 0;
}

static int answer(bool asked, const char *message, cJSON **ret, struct df_err *err)
{
    return df_check_alloc(
        *ret = df_json_object(DF_BOOL("asked", asked), DF_STR("message", message)), err);
}

static int test_aws(const cJSON *spec, const cJSON *secret, cJSON **ret, struct df_err *err)
{
    DF_FREE char *arn = NULL;
    if (ask_aws(spec, secret, &arn, err) < 0)
        return -1;
    DF_FREE char *message = df_strf("AWS takes the credentials: %s", arn);
    return message ? answer(true, message, ret, err) : df_fail_oom(err);
}

static int test_azure(const cJSON *secret, cJSON **ret, struct df_err *err)
{
    const struct df_azure_application a = {df_json_str(secret, "client_id"),
                                           df_json_str(secret, "tenant_id"),
                                           df_json_str(secret, "client_secret")};
    struct df_err why = {0};
    if (df_azure_check_application(&a, &why) < 0)
        return refused_by_provider(&why, err);
    return answer(true, "Azure takes the client secret; what its application may do was not asked",
                  ret, err);
}

/* Only a step exchanges the token, but its file can be looked at here. */
static int test_token(const struct df_spawner *s, const char *provider, cJSON **ret,
                      struct df_err *err)
{
    const char *path = s->config->identity_token_file;
    DF_CLEANUP(df_buf_wipe) struct df_buf token = DF_BUF_INIT(DF_LIMIT_TOKEN);
    struct df_err why = {0};
    if (path && df_fs_read(path, &token, &why) < 0)
        return df_fail_reason(err, DF_ERR_USER, "IntegrationFailed",
                              "engine.local.identityTokenFile: %s", why.message);
    if (path && !token.len)
        return df_fail_reason(err, DF_ERR_USER, "IntegrationFailed",
                              "engine.local.identityTokenFile: %s is empty", path);
    DF_FREE char *message = df_strf(
        "the settings are complete%s%s%s; %s was not asked: only a step exchanges the "
        "identity token%s",
        path ? ", and " : "", path ? path : "", path ? " has a token" : "", provider,
        path ? "" : ", that of its pod (the engine local needs engine.local.identityTokenFile)");
    return message ? answer(false, message, ret, err) : df_fail_oom(err);
}

/* Names the keys of a secret, which are all that the provider knows. */
static int test_keys(const char *provider, const cJSON *secret, cJSON **ret, struct df_err *err)
{
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_LIMIT_TOKEN);
    const cJSON *key;
    (void)df_buf_adds(&text, "the secret has the keys that a step needs (");
    cJSON_ArrayForEach (key, secret)
        (void)df_buf_addf(&text, "%s%s", key == secret->child ? "" : ", ", key->string);
    (void)df_buf_addf(&text, "); %s was not asked whether it takes their values", provider);
    return df_buf_check(&text, err) < 0 ? -1 : answer(false, df_buf_str(&text), ret, err);
}

static int test_spec(const struct df_spawner *s, const cJSON *spec, const cJSON *secret,
                     cJSON **ret, struct df_err *err)
{
    DF_FREE char *made = NULL;
    const char *provider = df_json_str(spec, "provider");
    bool has_token = df_integration_audience(spec, &made);
    if (df_streq(provider, "aws") && !has_token)
        return test_aws(spec, secret, ret, err);
    if (check_complete(spec, secret, err) < 0)
        return -1;
    if (has_token)
        return test_token(s, provider, ret, err);
    return df_streq(provider, "azurerm") && df_json_str(secret, "client_secret")
               ? test_azure(secret, ret, err)
               : test_keys(provider, secret, ret, err);
}

int df_request_test_integration(struct df_spawner *s, const struct df_integration_request *q,
                                cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *doc = NULL;
    DF_SECRET_JSON cJSON *values = NULL;
    struct df_err why = {0};
    if (df_vault_integration_get(s->vault, q->name, &doc, err) < 0 ||
        check_change(q, q->name, doc, err) < 0)
        return -1;
    const char *secret = df_json_str(doc, "spec.secretRef.name");
    if (secret && check_secret(s, q, secret, err) < 0)
        return -1;
    if (secret && df_vault_get(s->vault, secret, &values, &why) < 0)
        return why.cls == DF_ERR_NOT_FOUND
                   ? df_fail_reason(err, DF_ERR_USER, "InvalidStep",
                                    "spec.secretRef: %s; create it with: dayfly secret set %s KEY",
                                    why.message, secret)
                   : df_err_pass(err, &why);
    return test_spec(s, df_json_at(doc, "spec"), values, ret, err) < 0
               ? df_err_wrap(err, "integration %s", q->name)
               : 0;
}

/* ---- executors ---- */

static const cJSON *find_doc(const cJSON *list, const char *name)
{
    const cJSON *doc;
    cJSON_ArrayForEach (doc, list)
        if (df_streq(df_json_str(doc, "metadata.name"), name))
            return doc;
    return NULL;
}

/* The provider of an entry, by its name or its own. */
static const char *provider_of(const cJSON *list, const cJSON *entry)
{
    const char *name = df_json_str(entry, "name");
    return name ? df_json_str(find_doc(list, name), "spec.provider")
                : df_json_str(entry, "provider");
}

static int check_pairs(const cJSON *entries, const cJSON *list, struct df_err *err)
{
    int index = 0;
    for (const cJSON *b = entries ? entries->child : NULL; b; b = b->next, index++)
        for (const cJSON *a = entries->child; a != b; a = a->next) {
            const char *p = provider_of(list, a), *q = provider_of(list, b);
            const char *variable = df_integration_conflict(p, q);
            if (variable)
                return df_fail_reason(err, DF_ERR_USER, "InvalidDocument",
                                      "spec.integrations[%d]: %s and %s exclude each other: both "
                                      "set %s",
                                      index, p, q, variable);
        }
    return 0;
}

/* The secret of a named integration must be for the executor, too. One that is absent is found when
 * a step starts, as that of any entry. */
static int check_its_secret(struct df_spawner *s, const cJSON *doc, const char *executor,
                            struct df_err *err)
{
    DF_JSON cJSON *use = NULL;
    const char *secret = df_json_str(doc, "spec.secretRef.name");
    struct df_err why = {0};
    if (!secret)
        return 0;
    if (df_vault_get_use(s->vault, secret, &use, &why) < 0)
        return why.cls == DF_ERR_NOT_FOUND ? 0 : df_err_pass(err, &why);
    return df_secret_use_check(use, DF_USED_SECRET(secret), executor, err);
}

static int check_named(struct df_spawner *s, const cJSON *entries, const cJSON *list,
                       const char *executor, struct df_err *err)
{
    const cJSON *entry;
    int index = 0;
    cJSON_ArrayForEach (entry, entries) {
        DF_JSON cJSON *use = NULL;
        const char *name = df_json_str(entry, "name");
        const cJSON *doc = name ? find_doc(list, name) : NULL;
        if (name && !doc)
            return df_fail_reason(err, DF_ERR_USER, "InvalidDocument",
                                  "spec.integrations[%d].name: there is no integration \"%s\"; "
                                  "create it with: dayfly create -f FILE",
                                  index, name);
        if (doc && (df_integration_use(doc, &use, err) < 0 ||
                    df_secret_use_check(use, DF_USED_INTEGRATION(name), executor, err) < 0 ||
                    check_its_secret(s, doc, executor, err) < 0))
            return -1;
        index++;
    }
    return 0;
}

/* A caller who is neither owner nor admin makes no executor that an integration is meant for. */
static int check_maker(const cJSON *list, const char *executor, const char *actor,
                       struct df_err *err)
{
    const cJSON *doc;
    cJSON_ArrayForEach (doc, list) {
        DF_JSON cJSON *use = NULL;
        if (df_integration_use(doc, &use, err) < 0)
            return -1;
        if (df_secret_use_is_entrusted(use, executor, actor))
            return df_secret_use_refuse_maker(
                use, DF_USED_INTEGRATION(df_json_str(doc, "metadata.name")), executor, err);
    }
    return 0;
}

int df_request_check_integrations(struct df_spawner *s, const cJSON *executor, enum df_role role,
                                  const char *actor, struct df_err *err)
{
    const cJSON *entries = df_json_at(executor, "spec.integrations"), *entry;
    const char *name = df_json_str(executor, "metadata.name");
    DF_JSON cJSON *list = NULL;
    bool names_one = false;
    cJSON_ArrayForEach (entry, entries)
        names_one = names_one || df_json_str(entry, "name");
    /* Most executors need no request to the vault, which may be the API server. */
    if (role >= DF_ROLE_ADMIN && !names_one)
        return 0;
    if (df_vault_integration_list(s->vault, &list, err) < 0 ||
        check_named(s, entries, list, name, err) < 0 || check_pairs(entries, list, err) < 0)
        return -1;
    return role < DF_ROLE_ADMIN ? check_maker(list, name, actor, err) : 0;
}
