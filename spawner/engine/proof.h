/*
 * proof.h - the proof that this service has made an object, for engines that adopt what exists
 * already. Thread rule: pure functions.
 */
#ifndef DF_ENGINE_PROOF_H
#define DF_ENGINE_PROOF_H

#include "common/crypto/crypto.h"
#include "common/json/json.h"

struct df_proof_key {
    bool is_set; /* false: no proof is made, and none is asked for */
    unsigned char bytes[DF_KEY_LEN];
};

/* Adds the proof to an object whose name and labels are final. now_us: real time by the cluster's
 * clock. */
int df_proof_add(const struct df_proof_key *key, int64_t now_us, cJSON *object,
                 struct df_err *err) DF_MUST_CHECK;
/* CONFLICT NameTaken: somebody else made the object, whatever its labels say. kind: for the
 * message. */
int df_proof_check(const struct df_proof_key *key, const char *kind, const cJSON *object,
                   struct df_err *err) DF_MUST_CHECK;

#endif
