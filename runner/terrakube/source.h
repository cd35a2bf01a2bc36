/*
 * source.h - the source of a step of Terrakube, as `source` of a step document: who asks the server
 * of each VCS, branch or tag, the pinned commit, and the archives of remote-content.
 * Contract: section 3.2.
 *
 * Host keys: with known hosts the server must be one of them. Without, the first key is accepted,
 * as Terrakube accepts every key, and the log says so. Thread rule: main thread.
 */
#ifndef DF_RUNNER_TERRAKUBE_SOURCE_H
#define DF_RUNNER_TERRAKUBE_SOURCE_H

#include "common/terrakube/api.h"
#include "runner/report/output.h"

/* The variable of the container that names a file of known hosts. */
#define DF_TERRAKUBE_KNOWN_HOSTS "DAYFLY_KNOWN_HOSTS"
/* Its lines; *ret is NULL if env has no such variable. The caller frees. Reason SourceRefused: a
 * file that cannot be read does not make every host welcome. */
int df_terrakube_known_hosts(const struct df_strs *env, char **ret,
                             struct df_err *err) DF_MUST_CHECK;

#define DF_TERRAKUBE_REMOTE_CONTENT "remote-content" /* the branch of an uploaded configuration */

struct df_terrakube_source_request {
    const struct df_terrakube_settings *settings;
    const struct df_terrakube_payload *payload;
    const char *known_hosts;     /* lines; or NULL */
    const char *override_source; /* of the job (api.h); or NULL */
    struct df_terrakube_api *api;
    const char *directory; /* existing, 0700, for the archive; outlives the fetch */
    struct df_output *output;
};

/* Sets `source`, and `expected.commit` for a pinned commit, of the step document. Of remote-content
 * it downloads the archive, from the job's override or else from the payload's source. Credentials
 * are in the document: the caller masks them (`mask`) and wipes it. Reasons SourceRefused,
 * SourceFailed. */
int df_terrakube_source_add(const struct df_terrakube_source_request *r, cJSON *step,
                            struct df_err *err) DF_MUST_CHECK;

/* Adds the key for modules that come over ssh to `files`, and GIT_SSH_COMMAND to `environment` of
 * the step document: that of the payload, else that of an ssh source. Nothing if there is
 * neither. */
int df_terrakube_source_add_module_key(const struct df_terrakube_payload *p,
                                       const char *known_hosts, cJSON *step,
                                       struct df_err *err) DF_MUST_CHECK;

/* The variable of the container that lets credentials go over http (settings.h). */
#define DF_TERRAKUBE_HTTP_CREDENTIALS "DAYFLY_TERRAKUBE_HTTP_CREDENTIALS"

/* Whose repository it is, and what opens it. Borrowed. */
struct df_terrakube_access {
    const char *url;
    const char *vcs_type, *token; /* or NULL */
    const char *known_hosts;      /* lines; or NULL */
    bool http_credentials;        /* settings.h */
};
/* Adds `credentials` to a source: {username, password} or {sshPrivateKey, ...}; none if the VCS
 * needs none. Adds `acceptsHttp`, unless a password belongs to it: that goes over http to loopback
 * alone, or where the operator allows it, and the token of a managed identity to Azure DevOps
 * alone. Reason SourceRefused. The caller wipes. */
int df_terrakube_source_add_access(const struct df_terrakube_access *a, cJSON *source,
                                   struct df_err *err) DF_MUST_CHECK;

#endif
