/*
 * payload.h - the job that Terrakube's API gives to an executor: TerraformJob, in EphemeralJobData
 * or in the body of POST /api/v1/terraform-rs. Shapes of 2.22 to 2.34.
 *
 * Unknown members are ignored, except those that may restrict what a run may do (policy...,
 * ...Enforcement...): they are refused, so that no policy is passed over silently.
 * Thread rule: read only once made.
 */
#ifndef DF_TERRAKUBE_PAYLOAD_H
#define DF_TERRAKUBE_PAYLOAD_H

#include "common/json/json.h"

enum df_terrakube_type {
    DF_TERRAKUBE_PLAN,
    DF_TERRAKUBE_PLAN_DESTROY,
    DF_TERRAKUBE_APPLY,
    DF_TERRAKUBE_DESTROY,
    DF_TERRAKUBE_SCRIPTS, /* customScripts */
    DF_TERRAKUBE_REJECTED /* approval: the commands of onReject */
};

/* Strings are borrowed from the document; NULL: null, absent or "". */
struct df_terrakube_payload {
    cJSON *document; /* owned, wiped */
    enum df_terrakube_type type;
    const char *organization, *workspace, *step; /* UUIDs, never NULL */
    const char *job;                             /* digits without leading zeros, never NULL */
    const char *version;                         /* exact or a range; NULL: the newest */
    const char *source, *branch, *folder, *commit;
    const char *vcs_type, *connection_type, *access_token, *module_ssh_key;
    bool refresh, refresh_only, show_header, ignore_error, is_tofu;
    const cJSON *environment; /* object of strings, never NULL */
    const cJSON *variables;   /* object of strings; or an array of {key, value, hcl}, where value
                                 and hcl may be absent or null */
    const cJSON *commands, *on_failure; /* arrays, or NULL */
    const cJSON *policies,
        *exemptions; /* policyList, policyExemptionList: arrays, or NULL if empty */
};

/* text: the JSON. USER, reason PayloadInvalid (the member, and what is allowed), or
 * PayloadUnsupported (terragrunt, an unknown member that may restrict); LIMIT beyond
 * DF_LIMIT_TERRAKUBE_PAYLOAD. On failure organization, job and step are set as far as they could be
 * read, so that the failure can be told, and the others must not be used. The caller frees in any
 * case. */
int df_terrakube_payload_read(const char *text, size_t n, struct df_terrakube_payload *ret,
                              struct df_err *err) DF_MUST_CHECK;
/* The same from EphemeralJobData: base64 of the text. */
int df_terrakube_payload_decode(const char *base64, struct df_terrakube_payload *ret,
                                struct df_err *err) DF_MUST_CHECK;
void df_terrakube_payload_free(struct df_terrakube_payload *p);
#define DF_TERRAKUBE_PAYLOAD DF_CLEANUP(df_terrakube_payload_free) struct df_terrakube_payload

/* One of `commands`. */
struct df_terrakube_command {
    bool is_bash; /* else GROOVY */
    const char *script;
    int priority;
    bool before, after, verbose, before_init;
};
/* In the order of their priority; those of equal priority in the order of the payload. list may be
 * NULL. The caller frees *ret, whose strings are borrowed of the list. USER, LIMIT. */
int df_terrakube_commands(const cJSON *list, struct df_terrakube_command **ret, size_t *ret_n,
                          struct df_err *err) DF_MUST_CHECK;

#endif
