/*
 * awx_credentials.h - how a Secret of Kubernetes reaches a playbook: as a credential type of AWX
 * with a field for each key, and a credential of it that lives as long as the run.
 *
 * Contract: kubernaut's ansible executor. Unlike there a key that is no id of AWX gets one, a type
 * that was changed meanwhile is not used, and what two keys share is refused. Thread rule: pure
 * functions, any thread.
 */
#ifndef DF_ENGINE_AWX_CREDENTIALS_H
#define DF_ENGINE_AWX_CREDENTIALS_H

#include "common/json/json.h"

/* Of the object that asks for a run: the ids of the credentials that were made for it. */
#define DF_AWX_ANNOTATION "kubernaut.ai/awx-ephemeral-credentials"

/* A Secret in the words of AWX. */
struct df_awx_secret {
    char *type;       /* name of the credential type: kubernaut-secret-<name> */
    cJSON *inputs;    /* of the type: {fields: [{id, label, type, secret}]} */
    cJSON *injectors; /* of the type: {env: {KUBERNAUT_SECRET_<NAME>_<KEY>: "{{id}}"}} */
    cJSON *values;    /* of the credential: {id: "text"}, secret */
};
void df_awx_secret_wipe(struct df_awx_secret *s);
#define DF_AWX_SECRET DF_CLEANUP(df_awx_secret_wipe) struct df_awx_secret

/* secret: an object of Kubernetes. USER: two keys become the same field or variable, or a value is
 * no text. LIMIT: more than DF_LIMIT_SECRET_KEYS keys. Messages name keys and never show values. */
int df_awx_secret_of(const cJSON *secret, struct df_awx_secret *ret,
                     struct df_err *err) DF_MUST_CHECK;

/* Would this type of AWX give a job what ours gives? If not, somebody changed the type, or the
 * Secret has other keys now. */
bool df_awx_type_fits(const cJSON *type, const struct df_awx_secret *s);
/* Then ours gets another name: -<hash> is added, which its keys decide. */
int df_awx_secret_rename(struct df_awx_secret *s, struct df_err *err) DF_MUST_CHECK;

/* kubernaut-ephemeral-<secret>-<action>. The caller frees it; NULL: no memory. */
char *df_awx_credential_name(const char *secret, const char *action);

/* The ids of both arrays, each once: first those of the template, because AWX takes the list of a
 * launch instead of its own. The caller owns *ret. */
int df_awx_merge_ids(const cJSON *of_template, const cJSON *own, cJSON **ret,
                     struct df_err *err) DF_MUST_CHECK;

/* The text of DF_AWX_ANNOTATION: "42,55". The caller frees it; NULL: no memory. */
char *df_awx_print_ids(const cJSON *ids);
#endif
