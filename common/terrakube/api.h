/*
 * api.h - Terrakube's API, as its executor uses it: jobs and steps by JSON:API, history, context,
 * logs. Contract: sections 3.3, 3.7 to 3.10; recorded exchanges of 2.28.0.
 *
 * Each call sends the token at once (made anew for each request), and repeats with back-off until
 * the patience ends what means "not now": no answer, 423, 429, 5xx; of JSON:API also a 404 that is
 * not the API's own, and 401, 403 and 409 once a call of this handle has succeeded; RETRY then.
 * Else a 401 is repeated once with a fresh token. Since an answer may be lost, a request may be
 * executed twice. Other failures are those of df_http_check(), with what the API says of the cause.
 * JSON:API, logs and release indexes are at AzBuilderApiUrl, the context at TerrakubeApiUrl. Thread
 * rule: one handle, one thread.
 */
#ifndef DF_TERRAKUBE_API_H
#define DF_TERRAKUBE_API_H

#include "common/base/wait_listener.h"
#include "common/json/json.h"
#include "common/terrakube/payload.h"
#include "common/terrakube/settings.h"

struct df_terrakube_api; /* opaque */

/* s and p are borrowed: organization, workspace, job and step of p are used. retry_ms: how long one
 * call is repeated; stop: ends it (or NULL). */
int df_terrakube_api_new(const struct df_terrakube_settings *s,
                         const struct df_terrakube_payload *p, int64_t retry_ms,
                         const volatile bool *stop, struct df_terrakube_api **ret,
                         struct df_err *err) DF_MUST_CHECK;
/* Who hears that calls are repeated, from now on; borrowed. */
void df_terrakube_api_listen(struct df_terrakube_api *a, const struct df_wait_listener *listener);
void df_terrakube_api_free(struct df_terrakube_api *a); /* NULL is fine */
static inline void df_cleanup_terrakube_api(struct df_terrakube_api **a)
{
    df_terrakube_api_free(*a);
}
#define DF_TERRAKUBE_API DF_CLEANUP(df_cleanup_terrakube_api)

enum df_terrakube_status { /* of jobs and steps: api rs/job/JobStatus.java */
                           DF_TERRAKUBE_UNKNOWN,
                           DF_TERRAKUBE_PENDING,
                           DF_TERRAKUBE_WAITING_APPROVAL,
                           DF_TERRAKUBE_APPROVED,
                           DF_TERRAKUBE_QUEUE,
                           DF_TERRAKUBE_RUNNING,
                           DF_TERRAKUBE_COMPLETED,
                           DF_TERRAKUBE_NO_CHANGES,
                           DF_TERRAKUBE_NOT_EXECUTED,
                           DF_TERRAKUBE_REJECTED_STATUS,
                           DF_TERRAKUBE_CANCELLED,
                           DF_TERRAKUBE_FAILED
};

/* GET job?include=step. Strings owned. A job without steps is asked for again for a second. */
struct df_terrakube_job {
    enum df_terrakube_status status, step_status; /* of the payload's step; UNKNOWN: not listed */
    int steps;                                    /* how many steps the job has */
    char *plan;                                   /* terraformPlan; NULL */
    char *override_source;                        /* of remote-content; NULL */
    char *output;                                 /* NULL */
};
void df_terrakube_job_free(struct df_terrakube_job *j);
int df_terrakube_api_job(struct df_terrakube_api *a, struct df_terrakube_job *ret,
                         struct df_err *err) DF_MUST_CHECK;
/* PATCH with these attributes (an object; nulls are left out). */
int df_terrakube_api_patch_job(struct df_terrakube_api *a, const cJSON *attributes,
                               struct df_err *err) DF_MUST_CHECK;
int df_terrakube_api_patch_step(struct df_terrakube_api *a, const char *status, struct df_err *err)
    DF_MUST_CHECK; /* and output: the tfoutput URL */
/* POST history: the new state has the name uuid ("state/<uuid>.json"). */
int df_terrakube_api_add_history(struct df_terrakube_api *a, const char *uuid,
                                 struct df_err *err) DF_MUST_CHECK;
/* Does the workspace's history have the state of this name? */
int df_terrakube_api_has_history(struct df_terrakube_api *a, const char *uuid, bool *ret,
                                 struct df_err *err) DF_MUST_CHECK;
/* The folder of the workspace, as the API itself has it (2.33: the trusted copy): the first of its
 * list; "" if it has none. The caller frees. */
int df_terrakube_api_folder(struct df_terrakube_api *a, char **ret,
                            struct df_err *err) DF_MUST_CHECK;
/* GET /context/v1/{job}; then POST of the merged document. NOT_FOUND or USER where the version has
 * none; CONFLICT where the job's status forbids it. *ret: delete with cJSON_Delete(). */
int df_terrakube_api_context(struct df_terrakube_api *a, cJSON **ret,
                             struct df_err *err) DF_MUST_CHECK;
int df_terrakube_api_put_context(struct df_terrakube_api *a, const cJSON *context,
                                 struct df_err *err) DF_MUST_CHECK;
/* LogViaApi: POST /logs/{job}/setup-consumer-groups, and POST /logs with an array of
 * {jobId, stepId, lineNumber, output}. */
int df_terrakube_api_log_setup(struct df_terrakube_api *a, struct df_err *err) DF_MUST_CHECK;
int df_terrakube_api_log(struct df_terrakube_api *a, const cJSON *lines,
                         struct df_err *err) DF_MUST_CHECK;
/* Where an uploaded configuration that the URL of a job names is asked for with the token: the same
 * path at the API's URL. By what name the API was called does not matter, since it calls itself by
 * TerrakubeHostname, which we do not know. The caller frees *ret; NULL: the URL names no upload. */
int df_terrakube_api_upload(const struct df_terrakube_settings *s, const char *url, char **ret,
                            struct df_err *err) DF_MUST_CHECK;
/* GET of a URL (release index, remote-content) into a file, which is emptied before each try;
 * redirects are followed. with_token: with a bearer token of one minute. That opens the whole
 * instance, so it is sent to scheme, host and port of the settings' URLs only, and there to uploads
 * only: DENIED, reason ForeignHost, for another URL. LIMIT beyond max. */
int df_terrakube_api_download(struct df_terrakube_api *a, const char *url, bool with_token,
                              size_t max, int fd, struct df_err *err) DF_MUST_CHECK;

/* "<public_url>/tfoutput/v1/organization/{o}/job/{j}/step/{s}"; the caller frees; NULL: no
 * memory. */
char *df_terrakube_output_url(const struct df_terrakube_settings *s,
                              const struct df_terrakube_payload *p);

#endif
