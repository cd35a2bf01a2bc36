/*
 * never.h - what no pod of a step or workflow gets, whoever asks and whatever the configuration
 * allows: the service's own accounts, Secrets and volumes, and tokens for its own audiences. With
 * one of them a module would be the service, or an admin of it.
 *
 * Thread rule: pure functions, any thread.
 */
#ifndef DF_NEVER_H
#define DF_NEVER_H

#include "common/base/strs.h"
#include "spawner/model/schema.h"

#define DF_REASON_PLACEMENT_DENIED "PlacementDenied"

/* The names that only an installation knows. The names that every installation has (the Secret
 * dayfly-key, dfb-..., the audience dayfly) are built in: where a df_never is a parameter, NULL
 * stands for one without more names. */
struct df_never {
    struct df_strs accounts, secrets, claims;
};

void df_never_free(struct df_never *n);

/* Adds a fault for each reference in the tree (references.h) that is never given. uid: of the step,
 * which may have its own token and its own Secret; or NULL. */
void df_never_find(const struct df_never *n, const char *uid, const cJSON *tree,
                   const struct df_path *path, struct df_faults *f);
/* The same for one member of an object; path: of the object. */
void df_never_find_of(const struct df_never *n, const cJSON *member, const struct df_path *path,
                      struct df_faults *f);

/* Is it a Secret of the service itself: its key, its authority, its tokens, blobs, a step's? */
bool df_never_is_secret(const struct df_never *n, const char *name);

/* Checks the pod template of a Job, as it is sent. Class USER, reason PlacementDenied. */
int df_never_check_pod(const struct df_never *n, const char *uid, const cJSON *pod_template,
                       struct df_err *err) DF_MUST_CHECK;

#endif
