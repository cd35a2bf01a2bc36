/*
 * The proof that this service has made an object. Whoever reads a TaskAction knows the name and the
 * labels that its object will have, and could create it first. The proof is an HMAC with a key that
 * only the service has, so that every leader can check the objects of those before. It holds for
 * the minute in which the object is made: who has read it cannot use it for a later one of this
 * name.
 */
#include "spawner/engine/proof.h"

#include "common/base/clock.h"
#include "common/base/parse.h"
#include "common/kube/kube.h"
#include "spawner/model/labels.h"

#define PROOF "dayfly.dev/proof"
#define MINUTE_US INT64_C(60000000)

static int proof_of(const struct df_proof_key *key, const cJSON *object, int64_t minute,
                    char ret[DF_SHA256_HEX], struct df_err *err)
{
    unsigned char mac[DF_SHA256_LEN];
    const char *uid = df_kube_label(object, DF_LABEL_STEP_UID);
    DF_FREE char *text = df_strf("%s/%s/%s/%lld", df_json_str(object, "metadata.namespace"),
                                 df_kube_name(object), uid ? uid : "", (long long)minute);
    if (df_check_alloc(text, err) < 0 ||
        df_hmac_sha256(key->bytes, sizeof(key->bytes), text, strlen(text), mac, err) < 0)
        return -1;
    df_hex(mac, sizeof(mac), ret);
    return 0;
}

int df_proof_add(const struct df_proof_key *key, int64_t now_us, cJSON *object, struct df_err *err)
{
    char proof[DF_SHA256_HEX];
    cJSON *annotations = df_json_object_at(df_json_object_at(object, "metadata"), "annotations");
    if (!key->is_set)
        return 0;
    if (proof_of(key, object, now_us / MINUTE_US, proof, err) < 0)
        return -1;
    return df_json_set_str(annotations, PROOF, proof, err);
}

/* The request may have crossed the end of a minute, and the clocks differ a little. */
static int has_proof(const struct df_proof_key *key, const cJSON *object, bool *ret,
                     struct df_err *err)
{
    const char *made = df_json_str(object, "metadata.creationTimestamp");
    char proof[DF_SHA256_HEX];
    int64_t made_us = 0;
    *ret = false;
    if (!made || df_time_parse(made, &made_us, NULL) < 0)
        return 0;
    for (int64_t around = -1; around <= 1 && !*ret; around++) {
        if (proof_of(key, object, made_us / MINUTE_US + around, proof, err) < 0)
            return -1;
        *ret = df_streq(df_kube_annotation(object, PROOF), proof);
    }
    return 0;
}

int df_proof_check(const struct df_proof_key *key, const char *kind, const cJSON *object,
                   struct df_err *err)
{
    bool is_ours = !key->is_set;
    if (!is_ours && has_proof(key, object, &is_ours, err) < 0)
        return -1;
    if (is_ours)
        return 0;
    return df_fail_reason(err, DF_ERR_CONFLICT, "NameTaken",
                          "the %s %s/%s has the labels of a %s of this service, which did not "
                          "make it: find out who did, and delete it",
                          kind, df_json_str(object, "metadata.namespace"), df_kube_name(object),
                          kind);
}
