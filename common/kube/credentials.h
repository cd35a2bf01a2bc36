/*
 * credentials.h - who we are at this moment: files read again as they rotate, exec plug-ins run
 * again when what they gave expires. Internal to common/kube.
 *
 * Contract of plug-ins: client.authentication.k8s.io/v1 and v1beta1. Thread rule: any thread; a
 * plug-in runs once, and whoever needs its answer waits.
 */
#ifndef DF_KUBE_CREDENTIALS_H
#define DF_KUBE_CREDENTIALS_H

#include "common/kube/config.h"

enum { DF_KUBE_CREDENTIAL_LIFE_MS = 60000 }; /* of what files say, as client-go has it */

struct df_kube_credential {
    char *token;              /* or NULL */
    char *cert_pem, *key_pem; /* or both NULL */
    int64_t until_ms;         /* monotonic: then it must be read again */
    unsigned generation;      /* another number, another reading */
};
void df_kube_credential_free(struct df_kube_credential *c); /* wipes */
#define DF_KUBE_CREDENTIAL DF_CLEANUP(df_kube_credential_free)

struct df_kube_credentials; /* opaque */

/* The configuration is borrowed and must live on. */
int df_kube_credentials_new(const struct df_kube_config *config, struct df_kube_credentials **ret,
                            struct df_err *err) DF_MUST_CHECK;
void df_kube_credentials_free(struct df_kube_credentials *c);

/* A copy of what holds now, if its generation is another than `known` (0: none is known); else *ret
 * is left empty but for its generation. Class USER (the configuration is wrong) or RETRY. stop may
 * be NULL. */
int df_kube_credentials_get(struct df_kube_credentials *c, unsigned known,
                            const volatile bool *stop, struct df_kube_credential *ret,
                            struct df_err *err) DF_MUST_CHECK;

/* The server did not take those of this generation: the next get reads anew. */
void df_kube_credentials_refused(struct df_kube_credentials *c, unsigned generation);

/* Runs the plug-in and reads its answer into *ret (token or certificate, until_ms). */
int df_kube_exec_run(const struct df_kube_config *config, const volatile bool *stop,
                     struct df_kube_credential *ret, struct df_err *err) DF_MUST_CHECK;

#endif
