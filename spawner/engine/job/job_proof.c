/*
 * The proof that this service has made a Job. Whoever reads a TaskAction knows the name and the
 * labels that its Job will have, and could create it first. The proof is an HMAC with a key that
 * only the service has, so that every leader can check the Jobs of those before. It holds for the
 * minute in which the Job is made: who has read it cannot use it for a later Job of this name.
 */
#include "common/base/clock.h"
#include "common/base/parse.h"
#include "spawner/engine/job/job_engine.h"

#define PROOF "dayfly.dev/proof"
#define MINUTE_US INT64_C(60000000)

static int proof_of(const struct df_job_engine *j, const cJSON *job, int64_t minute,
                    char ret[DF_SHA256_HEX], struct df_err *err)
{
    unsigned char mac[DF_SHA256_LEN];
    const char *uid = df_kube_label(job, DF_LABEL_STEP_UID);
    DF_FREE char *text = df_strf("%s/%s/%s/%lld", df_json_str(job, "metadata.namespace"),
                                 df_kube_name(job), uid ? uid : "", (long long)minute);
    if (df_check_alloc(text, err) < 0 ||
        df_hmac_sha256(j->key, sizeof(j->key), text, strlen(text), mac, err) < 0)
        return -1;
    df_hex(mac, sizeof(mac), ret);
    return 0;
}

int df_job_proof_add(const struct df_job_engine *j, cJSON *job, struct df_err *err)
{
    char proof[DF_SHA256_HEX];
    cJSON *annotations = df_json_object_at(df_json_object_at(job, "metadata"), "annotations");
    int64_t now_us = df_real_us() + df_kube_clock_ahead_us(j->o.kube);
    if (!j->has_key)
        return 0;
    if (proof_of(j, job, now_us / MINUTE_US, proof, err) < 0)
        return -1;
    return df_json_set_str(annotations, PROOF, proof, err);
}

/* The request may have crossed the end of a minute, and the clocks differ a little. */
static int has_proof(const struct df_job_engine *j, const cJSON *job, bool *ret, struct df_err *err)
{
    const char *made = df_json_str(job, "metadata.creationTimestamp");
    char proof[DF_SHA256_HEX];
    int64_t made_us = 0;
    *ret = false;
    if (!made || df_time_parse(made, &made_us, NULL) < 0)
        return 0;
    for (int64_t around = -1; around <= 1 && !*ret; around++) {
        if (proof_of(j, job, made_us / MINUTE_US + around, proof, err) < 0)
            return -1;
        *ret = df_streq(df_kube_annotation(job, PROOF), proof);
    }
    return 0;
}

int df_job_proof_check(const struct df_job_engine *j, const cJSON *job, struct df_err *err)
{
    bool is_ours = !j->has_key;
    if (!is_ours && has_proof(j, job, &is_ours, err) < 0)
        return -1;
    if (is_ours)
        return 0;
    return df_fail_reason(err, DF_ERR_CONFLICT, "NameTaken",
                          "the Job %s/%s has the labels of a Job of this service, which did not "
                          "make it: find out who did, and delete it",
                          df_json_str(job, "metadata.namespace"), df_kube_name(job));
}
