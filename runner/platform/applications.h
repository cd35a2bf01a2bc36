/*
 * applications.h - the Applications of Argo CD's namespace, kept up to date by one watch.
 *
 * They are kept without their long lists (resources, history, results of the last
 * synchronization); whoever needs one of those reads the object itself. Thread rule: main thread.
 */
#ifndef DF_PLATFORM_APPLICATIONS_H
#define DF_PLATFORM_APPLICATIONS_H

#include "common/json/shared.h"
#include "runner/platform/platform.h"

struct df_applications; /* opaque */

/* The Applications of this environment tell with which ENVIRONMENT it was deployed. USER, reason
 * InvalidInput: it was another one. */
int df_applications_check_tier(struct df_platform *p, struct df_err *err) DF_MUST_CHECK;

/* Returns when the first list is complete. NOT_FOUND, reason KindUnknown: there is no Argo CD. The
 * platform must live on. */
int df_applications_start(struct df_platform *p, struct df_applications **ret,
                          struct df_err *err) DF_MUST_CHECK;
void df_applications_stop(struct df_applications *a); /* NULL is fine */
static inline void df_cleanup_applications(struct df_applications **a)
{
    df_applications_stop(*a);
}
#define DF_APPLICATIONS DF_CLEANUP(df_cleanup_applications)

/* A reference (df_shared_drop); NULL in *ret: there is none of this name. */
int df_applications_find(struct df_applications *a, const char *name, const cJSON **ret,
                         struct df_err *err) DF_MUST_CHECK;

/* Where the object itself is. name is borrowed. */
struct df_kube_at df_applications_at(const struct df_platform *p, const char *name);

/* Applies the patch, and notes the answer: find() gives at least this version from now on. */
int df_applications_patch(struct df_applications *a, const char *name, const cJSON *patch,
                          struct df_err *err) DF_MUST_CHECK;
/* The same for a whole object, as df_object_apply_over(). live may be NULL. */
int df_applications_apply(struct df_applications *a, const cJSON *live, const cJSON *wanted,
                          enum df_applied *ret, struct df_err *err) DF_MUST_CHECK;

/* Waits until something changed since the last call, until this monotonic time, or until the
 * action is stopped. */
void df_applications_wait(struct df_applications *a, int64_t until_ms);

#endif
