/*
 * storage.h - Terrakube's storage as its API reads it: plain objects under exact keys in S3, GCS,
 * Azure's containers, or files below HOME; or through the API. Contract: section 3.8.
 *
 * Calls repeat temporary faults until the patience ends, RETRY then. Other failures: USER, DENIED
 * (of the store, its credentials), LIMIT beyond DF_LIMIT_TERRAKUBE_OBJECT, NOT_FOUND as said. Large
 * objects need no memory. Thread rule: one handle, one thread.
 */
#ifndef DF_TERRAKUBE_STORAGE_H
#define DF_TERRAKUBE_STORAGE_H

#include "common/base/wait_listener.h"
#include "common/terrakube/payload.h"
#include "common/terrakube/settings.h"

struct df_terrakube_storage; /* opaque */

/* s is borrowed. stop: ends a pause between attempts; or NULL. Sends no request yet. USER, reason
 * SettingMissing: HOME is not set, and files are kept there. */
int df_terrakube_storage_new(const struct df_terrakube_settings *s, int64_t retry_ms,
                             const volatile bool *stop, struct df_terrakube_storage **ret,
                             struct df_err *err) DF_MUST_CHECK;
/* Instead of the stop of df_terrakube_storage_new(). */
void df_terrakube_storage_stop(struct df_terrakube_storage *s, const volatile bool *stop);
/* Who hears that calls are repeated, from now on; borrowed. */
void df_terrakube_storage_listen(struct df_terrakube_storage *s,
                                 const struct df_wait_listener *listener);
void df_terrakube_storage_free(struct df_terrakube_storage *s); /* NULL is fine */
static inline void df_cleanup_terrakube_storage(struct df_terrakube_storage **s)
{
    df_terrakube_storage_free(*s);
}
#define DF_TERRAKUBE_STORAGE DF_CLEANUP(df_cleanup_terrakube_storage)

/* What is kept, each under its own name. */
enum df_terrakube_object {
    DF_TERRAKUBE_OBJECT_PLAN,       /* of (organization, workspace, job, step) */
    DF_TERRAKUBE_OBJECT_STATE_JSON, /* name: a UUID */
    DF_TERRAKUBE_OBJECT_STATE_RAW,  /* name: the same UUID */
    DF_TERRAKUBE_OBJECT_OUTPUT,     /* of (organization, job, step) */
    DF_TERRAKUBE_OBJECT_BINARY      /* name: "<tofu|terraform>/<version>/<tofu|terraform>" */
};
/* name: as above, or NULL. Puts the regular file at path over what is there. Of p organization,
 * workspace, job and step are used. The API keeps no binaries: a put of one does nothing. */
int df_terrakube_storage_put(struct df_terrakube_storage *s, const struct df_terrakube_payload *p,
                             enum df_terrakube_object what, const char *name, const char *path,
                             struct df_err *err) DF_MUST_CHECK;
/* Into a new file (0600) instead of the one at path; none on failure. NOT_FOUND. Through the API
 * only plans come back. */
int df_terrakube_storage_get(struct df_terrakube_storage *s, const struct df_terrakube_payload *p,
                             enum df_terrakube_object what, const char *name, const char *path,
                             struct df_err *err) DF_MUST_CHECK;
/* What job.terraformPlan says of this step's plan: a URL, or a path. The caller frees. */
int df_terrakube_storage_plan_place(struct df_terrakube_storage *s,
                                    const struct df_terrakube_payload *p, char **ret,
                                    struct df_err *err) DF_MUST_CHECK;
/* The plan that job.terraformPlan names, as above: NOT_FOUND; DENIED, reason ForeignPlan, if it is
 * no plan of this job and workspace. The form of the place may also be that of Terrakube's own
 * executor. */
int df_terrakube_storage_get_plan(struct df_terrakube_storage *s,
                                  const struct df_terrakube_payload *p, const char *place,
                                  const char *path, struct df_err *err) DF_MUST_CHECK;

#endif
