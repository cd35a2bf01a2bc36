/*
 * doctor.c - the table of checks, and the loop that executes them. A check whose prerequisite is
 * missing is skipped and named at the end.
 */
#include "spawner/doctor/doctor.h"

#include "common/base/clock.h"
#include "spawner/doctor/checks.h"
#include "spawner/terrakube/upstream.h"

/* When a check applies: always, if the installation uses a cluster, if it has the engine `job`, or
 * if doctor may also start a pod. Each includes the ones before it. A long one is asked for by
 * name. */
enum when { ALWAYS, WITH_CLUSTER, WITH_PODS, WITH_PROBE, BY_NAME };

static int check_upstream(struct df_doctor_context *p, struct df_err *err)
{
    return p->config.upstream_listen ? df_terrakube_upstream.check(p, err) : 0;
}

static const struct check {
    const char *name;
    enum when when;
    unsigned needs; /* enum df_prerequisite */
    int (*run)(struct df_doctor_context *p, struct df_err *err);
} checks[] = {
    {"data-directory", ALWAYS, 0, df_check_data_directory},
    {"runner", ALWAYS, 0, df_check_runner},
    {"local-tool", ALWAYS, 0, df_check_local_tool},
    {"downloads", ALWAYS, 0, df_check_downloads},
    {"providers", ALWAYS, 0, df_check_providers},
    {"git", ALWAYS, 0, df_check_git},
    {"isolation", ALWAYS, 0, df_check_isolation},
    {"module", ALWAYS, 0, df_check_module},
    {"tokens", ALWAYS, 0, df_check_tokens},
    {"credentials", ALWAYS, 0, df_check_credentials},
    {"tls", ALWAYS, 0, df_check_tls},
    {"address", WITH_PODS, 0, df_check_address},
    {"state-service", ALWAYS, 0, df_check_state_service},
    {"terrakube", ALWAYS, 0, check_upstream},
    {"bucket-keys", ALWAYS, 0, df_check_bucket_keys},
    {"bucket", ALWAYS, 0, df_check_bucket},
    {"keys-used", BY_NAME, 0, df_check_keys_used},
    {"cluster", WITH_CLUSTER, 0, df_check_cluster},
    {"clock", WITH_CLUSTER, DF_HAS_CLUSTER, df_check_clock},
    {"custom-resources", WITH_CLUSTER, DF_HAS_CLUSTER, df_check_custom_resources},
    {"rights", WITH_CLUSTER, DF_HAS_CLUSTER, df_check_rights},
    {"authority", WITH_CLUSTER, DF_HAS_CLUSTER, df_check_authority},
    {"openid", ALWAYS, 0, df_check_openid},
    {"secrets", ALWAYS, 0, df_check_secrets},
    {"secret-sources", ALWAYS, 0, df_check_sources},
    {"issuer", WITH_PODS, DF_HAS_CLUSTER, df_check_issuer},
    {"placement-policy", WITH_PODS, 0, df_check_policy},
    {"pod-security", WITH_PODS, DF_HAS_CLUSTER, df_check_pod_security},
    {"placement", WITH_PODS, DF_HAS_CLUSTER, df_check_step},
    {"runner-rights", WITH_PODS, DF_HAS_JOB, df_check_runner_rights},
    {"references", WITH_PODS, DF_HAS_JOB, df_check_references},
    {"nodes", WITH_PODS, DF_HAS_JOB, df_check_nodes},
    {"job", WITH_PODS, DF_HAS_JOB, df_check_job},
    {"pod", WITH_PODS, DF_HAS_ACCEPTED, df_check_pod},
    {"start", WITH_PROBE, DF_HAS_ACCEPTED, df_check_start},
    {"image", WITH_PROBE, DF_HAS_PROBE, df_check_image},
    {"dns", WITH_PROBE, DF_HAS_PROBE, df_check_dns},
    {"reach", WITH_PROBE, DF_HAS_PROBE, df_check_reach},
    {"pod-clock", WITH_PROBE, DF_HAS_PROBE, df_check_pod_clock},
    {"pod-token", WITH_PROBE, DF_HAS_PROBE, df_check_pod_token},
    {"pod-storage", WITH_PROBE, DF_HAS_PROBE, df_check_work},
    {"tool", WITH_PROBE, DF_HAS_PROBE, df_check_tool},
};

const char *df_doctor_check(size_t i)
{
    return i < DF_ARRAY_SIZE(checks) ? checks[i].name : NULL;
}

/* ---- running the checks ---- */

static enum when scope_of(const struct df_config *c, bool probe)
{
    if (c->runs_pods)
        return probe ? WITH_PROBE : WITH_PODS;
    return c->in_cluster || c->needs_cluster ? WITH_CLUSTER : ALWAYS;
}

/* Skips the checks whose prerequisite is missing, so that a failed check is reported once and not
 * again by every check that needs it. */
static void run_checks(struct df_doctor_context *p, enum when most, const char *only)
{
    DF_BUF struct df_buf skipped = DF_BUF_INIT(1000);
    for (size_t i = 0; i < DF_ARRAY_SIZE(checks); i++) {
        const struct check *c = &checks[i];
        struct df_err why = {0};
        bool is_asked = only && df_streq(c->name, only);
        if ((c->when > most && !(is_asked && c->when == BY_NAME)) || (only && !is_asked))
            continue;
        if ((c->needs & p->has) != c->needs) {
            (void)df_buf_addf(&skipped, "%s%s", skipped.len ? ", " : "", c->name);
            continue;
        }
        p->check = c->name;
        if (c->run(p, &why) < 0)
            df_finding(p, DF_LEVEL_FAIL, "%s", why.message);
    }
    p->check = "examination";
    if (skipped.len)
        df_finding(p, DF_LEVEL_WARN, "skipped because of the failures above: %s",
                   df_buf_str(&skipped));
}

static void release(struct df_doctor_context *p)
{
    df_config_free(&p->config);
    df_never_free(&p->never);
    df_kube_free(p->kube);
    cJSON_Delete(p->jobs);
    cJSON_Delete(p->probe);
    if (p->owns_ca_file)
        (void)unlink(p->ca_file);
    free(p->url);
    free(p->ca_file);
    free(p->issuer);
}

static int check_all(struct df_doctor_context *p, const struct df_doctor_options *o,
                     struct df_err *err)
{
    struct df_err why = {0};
    if (df_uuid(p->uid, err) < 0)
        return -1;
    p->check = "configuration";
    if (df_config_load(o->config, environ, o->settings, &p->config, &why) < 0) {
        df_finding(p, DF_LEVEL_FAIL, "%s", why.message);
        return 0;
    }
    df_finding(p, DF_LEVEL_OK, "%s is valid", o->config ? o->config : "the environment");
    if (df_find_server(p, err) < 0)
        return -1;
    run_checks(p, scope_of(&p->config, o->probe), o->only);
    return 0;
}

static int check_name(const char *only, struct df_err *err)
{
    for (size_t i = 0; only && i < DF_ARRAY_SIZE(checks); i++)
        if (df_streq(checks[i].name, only))
            return 0;
    return only ? df_fail(err, DF_ERR_USER,
                          "--only: there is no check \"%.40s\"; docs/doctor.md "
                          "lists them",
                          only)
                : 0;
}

int df_doctor(const struct df_doctor_options *o, cJSON **ret, struct df_err *err)
{
    if (check_name(o->only, err) < 0)
        return -1;
    DF_JSON cJSON *doc = cJSON_CreateObject();
    DF_CLEANUP(release) struct df_doctor_context p = {.account = o->account, .module = o->module};
    p.findings = df_json_array_at(doc, "findings");
    if (df_check_alloc(p.findings, err) < 0 || check_all(&p, o, err) < 0)
        return -1;
    if (p.is_oom)
        return df_fail_oom(err);
    if (df_json_put(doc, err, DF_NUM("failures", p.counts[DF_LEVEL_FAIL]),
                    DF_NUM("warnings", p.counts[DF_LEVEL_WARN])) < 0)
        return -1;
    *ret = DF_TAKE(doc);
    return 0;
}
