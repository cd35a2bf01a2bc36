/*
 * cluster.c - checks of the cluster as a whole: the API server answers, its clock agrees with this
 * machine's, and the issuer and the keys of pods' tokens are known.
 */
#include "common/base/clock.h"
#include "common/crypto/jwks.h"
#include "common/http/http.h"
#include "spawner/doctor/checks.h"

int df_check_cluster(struct df_doctor_context *p, struct df_err *err)
{
    const struct df_kube_config_options o = {.kubeconfig = p->config.kube_config,
                                             .context = p->config.kube_context};
    struct df_kube_config config = {0};
    DF_JSON cJSON *version = NULL;
    if (df_kube_config_load(&o, &config, err) < 0 || df_kube_new(&config, &p->kube, err) < 0)
        return -1;
    if (df_kube_get_raw(p->kube, "/version", &version, err) < 0)
        return df_err_wrap(err, "the API server %s does not answer", df_kube_server(p->kube));
    p->service_ns = df_config_namespace(&p->config, p->kube);
    p->name_space = p->config.kube_step_space ? p->config.kube_step_space : p->service_ns;
    p->has |= DF_HAS_CLUSTER;
    const char *git = df_json_str(version, "gitVersion");
    df_finding(p, DF_LEVEL_OK, "%s answers, Kubernetes %s; steps run in the namespace %s",
               df_kube_server(p->kube), git ? git : "of an unknown version", p->name_space);
    return 0;
}

int df_check_clock(struct df_doctor_context *p, struct df_err *err)
{
    int64_t from_us = df_real_us(), at_us = 0;
    if (df_kube_time(p->kube, &at_us, err) < 0)
        return -1;
    df_finding_skew(p, "the API server's clock",
                    df_clock_skew(from_us, at_us, 1000000, df_real_us()));
    return 0;
}

/* ---- tokens ---- */

static int fetch_url(const struct df_config *c, struct df_buf *keys, struct df_err *err)
{
    const struct df_http_options o = {.ca_file = c->claim_ca_file, .allow_file = true};
    DF_HTTP struct df_http *http = NULL;
    return df_http_new(&o, &http, err) < 0
               ? -1
               : df_http_get(http, c->claim_jwks_url, "claim.jwksUrl", keys, err);
}

static int fetch_from_cluster(struct df_kube *k, struct df_buf *keys, struct df_err *err)
{
    DF_JSON cJSON *answer = NULL;
    if (df_kube_get_raw(k, DF_JWKS_PATH, &answer, err) < 0)
        return -1;
    DF_FREE char *text = df_json_print(answer);
    (void)df_buf_adds(keys, text);
    return df_buf_check(keys, err);
}

static int check_keys(const struct df_doctor_context *p, struct df_err *err)
{
    DF_BUF struct df_buf keys = DF_BUF_INIT(DF_LIMIT_JWKS);
    struct df_jwk_set *set = NULL;
    struct df_err why = {0};
    int result = p->config.claim_jwks_url ? fetch_url(&p->config, &keys, &why)
                                          : fetch_from_cluster(p->kube, &keys, &why);
    if (result == 0)
        result = df_jwk_set_parse(df_buf_str(&keys), keys.len, &set, &why);
    df_jwk_set_free(set);
    if (result == 0)
        return 0;
    return df_fail(err, why.cls, "cannot read the keys of pods' tokens: %s: %s", why.message,
                   p->config.claim_jwks_url
                       ? "correct claim.jwksUrl and claim.caFile"
                       : "let the spawner read " DF_JWKS_PATH " (ClusterRole "
                         "system:service-account-issuer-discovery), or set claim.jwksUrl");
}

/* The issuer that the cluster names; NULL if it cannot be read. */
static char *fetch_issuer(const struct df_doctor_context *p)
{
    DF_JSON cJSON *discovery = NULL;
    if (df_kube_get_raw(p->kube, DF_JWKS_DISCOVERY, &discovery, NULL) < 0)
        return NULL;
    const char *issuer = df_json_str(discovery, "issuer");
    return issuer ? strdup(issuer) : NULL;
}

int df_check_issuer(struct df_doctor_context *p, struct df_err *err)
{
    const char *configured = p->config.claim_issuer;
    DF_FREE char *actual = fetch_issuer(p);
    if (!actual && !configured)
        return df_fail(err, DF_ERR_USER,
                       "the cluster does not say who issues its pods' tokens (" DF_JWKS_DISCOVERY
                       "): set claim.issuer");
    if (check_keys(p, err) < 0)
        return -1;
    if (actual && configured && !df_streq(actual, configured))
        return df_fail(
            err, DF_ERR_USER,
            "claim.issuer is \"%.200s\", but the cluster's tokens are issued by \"%.200s\": "
            "no step could be claimed; correct claim.issuer, or leave it out",
            configured, actual);
    p->issuer = configured ? strdup(configured) : DF_TAKE(actual);
    if (!p->issuer)
        return df_fail_oom(err);
    df_finding(p, DF_LEVEL_OK, "pods' tokens are issued by %s, and its keys are available",
               p->issuer);
    return 0;
}
