/*
 * integrations.c - read df_integration_grant() at the end first. An integration is a named one or
 * an entry of spec.integrations itself. grant() chooses how it becomes variables: a role that is
 * assumed, an identity token, or the keys of its secret.
 */
#include "spawner/steps/integrations.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "spawner/engine/job/job_object.h"
#include "spawner/model/secret_use.h"
#include "spawner/steps/step_secrets.h"
#include "spawner/store/vault/vault_integrations.h"

#define FIELD "spec.integrations"

/* One integration while it is granted. All borrowed but secret. */
struct grant_request {
    const struct df_integration_ask *ask;
    const char *name;  /* of a named integration; or NULL */
    const cJSON *spec; /* of the named one; else the entry, whose members have the same names */
    cJSON *secret;     /* owned; or NULL */
    const struct df_integration_places *to;
};

static void grant_request_free(struct grant_request *g)
{
    df_json_wipe(g->secret);
}

void df_integration_grant_free(struct df_integration_grant *g)
{
    df_json_wipe(g->secrets);
    free(g->token_file);
}

static const char *executor_of(const cJSON *task)
{
    return df_json_str(task, "spec.executorRef.name");
}

/* ---- a named one ---- */

static int check_allowed(const cJSON *doc, const char *name, const cJSON *task, struct df_err *err)
{
    DF_JSON cJSON *use = NULL;
    if (df_integration_use(doc, &use, err) < 0)
        return -1;
    return df_secret_use_check(use, DF_USED_INTEGRATION(name), executor_of(task), err);
}

static int find_named(struct df_spawner *s, const cJSON *task, const char *name, cJSON **ret,
                      struct df_err *err)
{
    DF_JSON cJSON *doc = NULL;
    struct df_err why = {0};
    if (df_vault_integration_get(s->vault, name, &doc, &why) == 0 &&
        check_allowed(doc, name, task, &why) == 0) {
        *ret = DF_TAKE(doc);
        return 0;
    }
    if (why.cls == DF_ERR_NOT_FOUND)
        return df_fail_reason(err, DF_ERR_USER, "InvalidStep",
                              FIELD ": %s; create it with: dayfly create -f FILE", why.message);
    (void)df_err_pass(err, &why);
    if (df_streq(why.reason, "IntegrationNotAllowed"))
        err->cls = DF_ERR_USER; /* it was allowed when the executor was written */
    return df_err_wrap(err, FIELD);
}

/* The step has what it needs already: that the use cannot be noted does not end it. */
static void note_use(const struct grant_request *g)
{
    struct df_err err = {0};
    if (g->name && df_vault_integration_note(g->ask->s->vault, g->name,
                                             df_json_str(g->ask->task, "spec.runRef.name"),
                                             df_real_us(), &err) < 0)
        df_warn("the use of the integration %s is not noted: %s", g->name, err.message);
}

/* ---- a role ---- */

/* The keys that the service has itself. */
static int keys_of_service(const char *region, struct df_aws_keys *ret, struct df_err *err)
{
    struct df_aws_credentials *c = NULL;
    if (df_aws_credentials_new(region, &c, err) < 0)
        return -1;
    int result = df_aws_credentials_get(c, ret, err);
    df_aws_credentials_free(c);
    return result;
}

int df_integration_assume(const struct df_integration_role *role, const cJSON *secret,
                          struct df_aws_keys *ret, struct df_err *err)
{
    DF_AWS_KEYS own = {0};
    const struct df_sts sts = {.region = role->region, .keys = &own};
    struct df_err why = {0};
    if ((secret ? df_integration_keys(secret, &own, &why)
                : keys_of_service(role->region, &own, &why)) == 0 &&
        df_sts_assume_role(&sts, &role->role, ret, &why) == 0)
        return 0;
    bool is_refused = !why.reason[0] && (why.cls == DF_ERR_DENIED || why.cls == DF_ERR_USER);
    (void)df_err_pass(err, &why);
    return is_refused ? df_fail_reason(err, DF_ERR_USER, "IntegrationFailed", "role %s: %s",
                                       role->role.arn, why.message)
                      : df_err_wrap(err, "role %s", role->role.arn);
}

static int keep_keys(const struct df_aws_keys *keys, cJSON *secrets, struct df_err *err)
{
    if (df_json_add_str(secrets, "id", keys->access_key, err) < 0 ||
        df_json_add_str(secrets, "key", keys->secret_key, err) < 0)
        return -1;
    return df_json_add_str(secrets, "token", keys->token, err);
}

static int grant_role(const struct grant_request *g, struct df_integration_role *role,
                      struct df_integration_grant *ret, struct df_err *err)
{
    DF_AWS_KEYS keys = {0};
    DF_SECRET_JSON cJSON *made = NULL;
    role->role.session = df_json_str(g->ask->task, "metadata.name");
    ret->secrets = cJSON_CreateObject();
    if (!ret->secrets)
        return df_fail_oom(err);
    if (df_integration_assume(role, g->secret, &keys, err) < 0 ||
        df_integration_assumed(role, &keys, g->secret, &made, err) < 0 ||
        keep_keys(&keys, ret->secrets, err) < 0)
        return -1;
    return df_integration_apply("aws", made, g->to, err);
}

/* ---- a token ---- */

/* Returns where the tool finds the token; NULL if out of memory, or nowhere. */
static char *token_path(const struct grant_request *g)
{
    const char *file = g->ask->s->config->identity_token_file;
    if (g->ask->in_pod)
        return df_strf(DF_JOB_IDENTITY_DIR "/%s", g->name);
    return file ? strdup(file) : NULL;
}

static int grant_token(const struct grant_request *g, struct df_integration_grant *ret,
                       struct df_err *err)
{
    if (!g->ask->in_pod && !g->ask->s->config->identity_token_file)
        return df_fail_reason(err, DF_ERR_USER, "InvalidStep",
                              "integration %s exchanges an identity token: for the engine local "
                              "engine.local.identityTokenFile names its file",
                              g->name);
    ret->token_file = token_path(g);
    if (!ret->token_file)
        return df_fail_oom(err);
    return df_integration_identity(g->spec, ret->token_file,
                                   df_json_str(g->ask->task, "metadata.name"), g->to, err);
}

int df_integration_tokens(struct df_spawner *s, const cJSON *task, cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *list = cJSON_CreateArray();
    const cJSON *entry;
    if (!list)
        return df_fail_oom(err);
    cJSON_ArrayForEach (entry, df_json_at(task, "spec.integrations")) {
        DF_JSON cJSON *doc = NULL;
        DF_FREE char *made = NULL;
        const char *name = df_json_str(entry, "name");
        struct df_err why = {0};
        if (name && find_named(s, task, name, &doc, &why) < 0 && why.cls != DF_ERR_USER)
            return df_err_pass(err, &why);
        const char *audience = df_integration_audience(df_json_at(doc, "spec"), &made);
        cJSON *token = audience ? cJSON_CreateObject() : NULL;
        if (audience && (df_json_append(list, token, err) < 0 ||
                         df_json_add_str(token, "name", name, err) < 0 ||
                         df_json_add_str(token, "audience", audience, err) < 0))
            return -1;
    }
    *ret = DF_TAKE(list);
    return 0;
}

/* ---- granting ---- */

static int grant_keys(struct grant_request *g, struct df_integration_grant *ret, struct df_err *err)
{
    const char *provider = df_json_str(g->spec, "provider");
    if (df_integration_apply(provider, g->secret, g->to, err) < 0)
        return -1;
    ret->secrets = DF_TAKE(g->secret);
    return 0;
}

static int grant(struct grant_request *g, struct df_integration_grant *ret, struct df_err *err)
{
    DF_INTEGRATION_ROLE role = {0};
    DF_FREE char *made = NULL;
    bool is_aws = df_streq(df_json_str(g->spec, "provider"), "aws");
    if (is_aws && df_integration_role_of(g->spec, g->secret, &role, err) < 0)
        return -1;
    if (role.role.arn)
        return grant_role(g, &role, ret, err);
    return df_integration_audience(g->spec, &made) ? grant_token(g, ret, err)
                                                   : grant_keys(g, ret, err);
}

int df_integration_grant(const struct df_integration_ask *ask,
                         const struct df_integration_places *to, struct df_integration_grant *ret,
                         struct df_err *err)
{
    DF_JSON cJSON *doc = NULL;
    DF_CLEANUP(grant_request_free)
    struct grant_request g = {
        .ask = ask, .name = df_json_str(ask->entry, "name"), .spec = ask->entry, .to = to};
    if (g.name) {
        if (find_named(ask->s, ask->task, g.name, &doc, err) < 0)
            return -1;
        g.spec = df_json_at(doc, "spec");
    }
    const char *secret = df_json_str(g.spec, "secretRef.name");
    if (secret && df_step_secret(ask->s, ask->task, secret, FIELD, &g.secret, err) < 0)
        return -1;
    if (grant(&g, ret, err) < 0)
        return g.name ? df_err_wrap(err, "integration %s", g.name) : -1;
    note_use(&g);
    return 0;
}
