/*
 * claim.c - df_claim_check() verifies the token of a step's pod, df_claim_account() that of a
 * client; the signature is checked in common/crypto/jwks.c, the claims about namespace, account and
 * pod here. The keys come from the cluster's API server or from a configured URL.
 */
#include "spawner/identity/claim.h"

#include "common/crypto/jwks.h"
#include "common/http/http.h"

struct df_claims {
    struct df_jwks *keys;
    struct df_http *http; /* with jwks_url; used by one thread at a time, as jwks.h promises */
    char *jwks_url;
    char *namespace;
};

/* ---- keys from a configured URL ---- */

static int fetch_url(void *arg, const char *path, struct df_buf *ret, struct df_err *err)
{
    struct df_claims *c = arg;
    (void)path; /* always the keys: the issuer is configured */
    return df_http_get(c->http, c->jwks_url, "get the keys of the cluster", ret, err);
}

/* ---- lifecycle ---- */

static int copy_string(const char *from, char **to, struct df_err *err)
{
    *to = from ? strdup(from) : NULL;
    return from && !*to ? df_fail_oom(err) : 0;
}

static int claims_init(struct df_claims *c, const struct df_claims_options *o, struct df_err *err)
{
    struct df_jwks_options keys = {
        .fetch = o->fetch, .arg = o->arg, .ahead_us = o->ahead_us, .issuer = o->issuer};
    if (copy_string(o->jwks_url, &c->jwks_url, err) < 0 ||
        copy_string(o->namespace, &c->namespace, err) < 0)
        return -1;
    if (o->jwks_url) {
        const struct df_http_options http = {.ca_file = o->ca_file, .allow_file = true};
        if (!o->issuer)
            return df_fail(err, DF_ERR_USER, "claim.issuer: is required with claim.jwksUrl");
        if (df_http_new(&http, &c->http, err) < 0)
            return -1;
        keys.fetch = fetch_url;
        keys.arg = c;
        keys.ahead_us = NULL;
    }
    return df_jwks_new(&keys, &c->keys, err);
}

int df_claims_new(const struct df_claims_options *o, struct df_claims **ret, struct df_err *err)
{
    struct df_claims *c = calloc(1, sizeof(*c));
    if (!c)
        return df_fail_oom(err);
    if (claims_init(c, o, err) < 0) {
        df_claims_free(c);
        return -1;
    }
    *ret = c;
    return 0;
}

void df_claims_free(struct df_claims *c)
{
    if (!c)
        return;
    df_jwks_free(c->keys);
    df_http_free(c->http);
    free(c->jwks_url);
    free(c->namespace);
    free(c);
}

/* ---- the check ---- */

static int refuse_token(struct df_err *err, const char *reason, const char *what, const char *got,
                        const char *wanted)
{
    return df_fail_reason(err, DF_ERR_DENIED, reason,
                          "the token belongs to %s \"%.253s\", and the step's pod to \"%s\"", what,
                          got ? got : "", wanted ? wanted : "");
}

static int check_place(const struct df_claims *c, const cJSON *ref, const cJSON *kubernetes,
                       struct df_err *err)
{
    const char *recorded = df_json_str(ref, "namespace");
    const char *namespace = recorded ? recorded : c->namespace;
    const char *account = df_json_str(ref, "serviceAccountName");
    const char *got = df_json_str(kubernetes, "namespace");
    if (!namespace || !df_streq(got, namespace))
        return refuse_token(err, "TokenNamespace", "namespace", got, namespace);
    got = df_json_str(kubernetes, "serviceaccount.name");
    if (account && !df_streq(got, account))
        return refuse_token(err, "TokenServiceAccount", "service account", got, account);
    return 0;
}

static int take_pod(const cJSON *kubernetes, struct df_claim_pod *ret, struct df_err *err)
{
    struct df_claim_pod pod = {.node = ""};
    const char *uid = df_json_str(kubernetes, "pod.uid");
    const char *name = df_json_str(kubernetes, "pod.name");
    const char *node = df_json_str(kubernetes, "node.name");
    if (df_str_empty(uid) || strlen(uid) >= sizeof(pod.uid) || df_str_empty(name) ||
        strlen(name) >= sizeof(pod.name))
        return df_fail_reason(err, DF_ERR_DENIED, "TokenNotOfPod",
                              "the token is not bound to a pod");
    (void)snprintf(pod.uid, sizeof(pod.uid), "%s", uid);
    (void)snprintf(pod.name, sizeof(pod.name), "%s", name);
    (void)snprintf(pod.node, sizeof(pod.node), "%s", node ? node : "");
    *ret = pod;
    return 0;
}

static int verify(struct df_claims *c, const char *id, const char *token, cJSON **ret,
                  struct df_err *err)
{
    DF_FREE char *audience = df_strf("dayfly/%s", id);
    return audience ? df_jwks_verify(c->keys, token, audience, ret, err) : df_fail_oom(err);
}

int df_claim_check(struct df_claims *c, const char *id, const cJSON *ref, const char *token,
                   struct df_claim_pod *ret, struct df_err *err)
{
    DF_JSON cJSON *claims = NULL;
    if (verify(c, id, token, &claims, err) < 0)
        return -1;
    const cJSON *kubernetes = cJSON_GetObjectItemCaseSensitive(claims, "kubernetes.io");
    if (check_place(c, ref, kubernetes, err) < 0)
        return -1;
    return take_pod(kubernetes, ret, err);
}

int df_claim_check_audience(struct df_claims *c, const char *id, const char *token,
                            struct df_err *err)
{
    DF_JSON cJSON *claims = NULL;
    return verify(c, id, token, &claims, err);
}

/* ---- clients with a service account ---- */

int df_claim_account(struct df_claims *c, const char *token, char ret[DF_LIMIT_CALLER + 1],
                     struct df_err *err)
{
    DF_JSON cJSON *claims = NULL;
    if (df_jwks_verify(c->keys, token, "dayfly", &claims, err) < 0)
        return -1;
    const cJSON *kubernetes = cJSON_GetObjectItemCaseSensitive(claims, "kubernetes.io");
    const char *namespace = df_json_str(kubernetes, "namespace");
    const char *name = df_json_str(kubernetes, "serviceaccount.name");
    char whole[DF_LIMIT_CALLER + 1];
    if (df_str_empty(namespace) || df_str_empty(name) ||
        snprintf(whole, sizeof(whole), "%s/%s", namespace, name) > DF_LIMIT_CALLER)
        return df_fail_reason(err, DF_ERR_DENIED, "TokenNotOfAccount",
                              "the token is not of a service account with a name of at most %d "
                              "characters",
                              DF_LIMIT_CALLER);
    memcpy(ret, whole, sizeof(whole));
    return 0;
}
