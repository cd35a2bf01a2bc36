#include "spawner/doctor/doctor.h"

#include <stdarg.h>

#include "common/base/clock.h"
#include "spawner/doctor/patient.h"

/* Only where a cluster is used at all, with the engine `job`, where a pod may be started, too. */
enum when { ALWAYS, WITH_CLUSTER, WITH_PODS, WITH_PROBE };

static const struct check {
    const char *name;
    enum when when;
    unsigned needs; /* enum df_ground */
    int (*look)(struct df_patient *p, struct df_err *err);
} checks[] = {
    {"data-directory", ALWAYS, 0, df_look_data_directory},
    {"tokens", ALWAYS, 0, df_look_tokens},
    {"credentials", ALWAYS, 0, df_look_credentials},
    {"tls", ALWAYS, 0, df_look_tls},
    {"address", WITH_PODS, 0, df_look_address},
    {"state-service", ALWAYS, 0, df_look_state_service},
    {"cluster", WITH_CLUSTER, 0, df_look_cluster},
    {"clock", WITH_CLUSTER, DF_GROUND_CLUSTER, df_look_clock},
    {"custom-resources", WITH_CLUSTER, DF_GROUND_CLUSTER, df_look_custom_resources},
    {"rights", WITH_CLUSTER, DF_GROUND_CLUSTER, df_look_rights},
    {"authority", WITH_CLUSTER, DF_GROUND_CLUSTER, df_look_authority},
    {"issuer", WITH_PODS, DF_GROUND_CLUSTER, df_look_issuer},
    {"placement", WITH_PODS, DF_GROUND_CLUSTER, df_look_step},
    {"runner-rights", WITH_PODS, DF_GROUND_JOB, df_look_runner_rights},
    {"references", WITH_PODS, DF_GROUND_JOB, df_look_references},
    {"nodes", WITH_PODS, DF_GROUND_JOB, df_look_nodes},
    {"job", WITH_PODS, DF_GROUND_JOB, df_look_job},
    {"pod", WITH_PODS, DF_GROUND_TAKEN, df_look_pod},
    {"start", WITH_PROBE, DF_GROUND_TAKEN, df_look_start},
    {"image", WITH_PROBE, DF_GROUND_PROBE, df_look_image},
    {"dns", WITH_PROBE, DF_GROUND_PROBE, df_look_dns},
    {"reach", WITH_PROBE, DF_GROUND_PROBE, df_look_reach},
    {"pod-clock", WITH_PROBE, DF_GROUND_PROBE, df_look_pod_clock},
    {"pod-token", WITH_PROBE, DF_GROUND_PROBE, df_look_pod_token},
    {"pod-storage", WITH_PROBE, DF_GROUND_PROBE, df_look_work},
    {"tool", WITH_PROBE, DF_GROUND_PROBE, df_look_tool},
};

const char *df_doctor_check(size_t i)
{
    return i < DF_ARRAY_SIZE(checks) ? checks[i].name : NULL;
}

/* ---- findings ---- */

static int add_finding(cJSON *findings, const char *check, enum df_level level, const char *message)
{
    static const char *const words[] = {"ok", "warn", "fail"};
    cJSON *finding = cJSON_CreateObject();
    if (df_json_append(findings, finding, NULL) < 0 ||
        df_json_add_str(finding, "check", check, NULL) < 0 ||
        df_json_add_str(finding, "level", words[level], NULL) < 0)
        return -1;
    return df_json_add_str(finding, "message", message, NULL);
}

void df_find(struct df_patient *p, enum df_level level, const char *fmt, ...)
{
    char message[1200];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(message, sizeof(message), fmt, ap);
    va_end(ap);
    p->counts[level]++;
    if (add_finding(p->findings, p->check, level, message) < 0)
        p->is_oom = true;
}

int64_t df_clock_skew(int64_t from_us, int64_t at_us, int64_t slack_us, int64_t to_us)
{
    if (at_us + slack_us < from_us)
        return at_us + slack_us - from_us;
    return at_us > to_us ? at_us - to_us : 0;
}

/* From 30 s on tokens are refused (jwt.h), or taken too long. */
void df_find_skew(struct df_patient *p, const char *whose, int64_t skew_us)
{
    int64_t off_s = (skew_us < 0 ? -skew_us : skew_us) / 1000000;
    const char *where = skew_us < 0 ? "behind" : "ahead of";
    if (off_s < 5)
        df_find(p, DF_LEVEL_OK, "%s and this machine's agree", whose);
    else
        df_find(p, off_s < 30 ? DF_LEVEL_WARN : DF_LEVEL_FAIL,
                "%s is %lld s %s this machine's: tokens and certificates are taken for expired or "
                "not yet valid; let both keep time by NTP",
                whose, (long long)off_s, where);
}

/* ---- the examination ---- */

static enum when reach_of(const struct df_config *c, bool probe)
{
    if (df_streq(c->engine, "job"))
        return probe ? WITH_PROBE : WITH_PODS;
    return df_streq(c->store, "kubernetes") ? WITH_CLUSTER : ALWAYS;
}

/* What did not go well before is said once, not again by everything that stands on it. */
static void examine_all(struct df_patient *p, enum when most)
{
    DF_BUF struct df_buf left_out = DF_BUF_INIT(1000);
    for (size_t i = 0; i < DF_ARRAY_SIZE(checks); i++) {
        const struct check *c = &checks[i];
        struct df_err why = {0};
        if (c->when > most)
            continue;
        if ((c->needs & p->ground) != c->needs) {
            (void)df_buf_addf(&left_out, "%s%s", left_out.len ? ", " : "", c->name);
            continue;
        }
        p->check = c->name;
        if (c->look(p, &why) < 0)
            df_find(p, DF_LEVEL_FAIL, "%s", why.message);
    }
    p->check = "examination";
    if (left_out.len)
        df_find(p, DF_LEVEL_WARN, "not looked at, because of what is wrong above: %s",
                df_buf_str(&left_out));
}

static void release(struct df_patient *p)
{
    df_config_free(&p->config);
    df_kube_free(p->kube);
    cJSON_Delete(p->jobs);
    cJSON_Delete(p->probe);
    if (p->owns_ca_file)
        (void)unlink(p->ca_file);
    free(p->url);
    free(p->ca_file);
    free(p->issuer);
}

static int examine(struct df_patient *p, const struct df_doctor_options *o, struct df_err *err)
{
    struct df_err why = {0};
    if (df_uuid(p->uid, err) < 0)
        return -1;
    p->check = "configuration";
    if (df_config_load(o->config, environ, o->settings, &p->config, &why) < 0) {
        df_find(p, DF_LEVEL_FAIL, "%s", why.message);
        return 0;
    }
    df_find(p, DF_LEVEL_OK, "%s can be read", o->config ? o->config : "that of the environment");
    if (df_find_server(p, err) < 0)
        return -1;
    examine_all(p, reach_of(&p->config, o->probe));
    return 0;
}

int df_doctor(const struct df_doctor_options *o, cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *doc = cJSON_CreateObject();
    DF_CLEANUP(release) struct df_patient p = {.account = o->account};
    p.findings = df_json_array_at(doc, "findings");
    if (!p.findings)
        return df_fail_oom(err);
    if (examine(&p, o, err) < 0)
        return -1;
    if (p.is_oom)
        return df_fail_oom(err);
    if (df_json_add_num(doc, "failures", (double)p.counts[DF_LEVEL_FAIL], err) < 0 ||
        df_json_add_num(doc, "warnings", (double)p.counts[DF_LEVEL_WARN], err) < 0)
        return -1;
    *ret = DF_TAKE(doc);
    return 0;
}
