/*
 * stamp.h - who wrote a custom resource. The API server checks a person's rights, but a document
 * does not say who the person was. So the admission webhook (review.h) writes role and user name
 * into an annotation, and an admission policy of the installation (rbac/admission.yaml) refuses any
 * other value: docs/internals/stamp.md.
 *
 * The value is the role, a blank and the user name: "write eve". A service account is named as in
 * the REST API, namespace/name.
 * Thread rule: pure functions, any thread.
 */
#ifndef DF_MODEL_STAMP_H
#define DF_MODEL_STAMP_H

#include "common/base/limits.h"
#include "common/json/json.h"
#include "spawner/model/names.h"

#define DF_STAMP_REQUESTED "dayfly.dev/requested-by" /* who wrote the present spec */
#define DF_STAMP_DECIDED "dayfly.dev/decided-by"     /* who added spec.decision */
#define DF_STAMP_CANCELED "dayfly.dev/canceled-by"   /* who added spec.cancel */

/* The name of the writer of a resource without a stamp. */
#define DF_STAMP_NOBODY "kubernetes"

struct df_stamp {
    enum df_role role;
    bool is_named;
    char name[DF_LIMIT_STAMP + 1]; /* DF_STAMP_NOBODY if not is_named */
};

/* Nobody: DF_STAMP_NOBODY with the role admin. The policy lets a resource without a stamp pass only
 * if an admin writes it; without the policy the API server's rights are all there is. */
struct df_stamp df_stamp_nobody(void);

/* Reads this annotation of the document. is_believed: the installation has the policy; otherwise
 * anybody may have written it, and the answer is df_stamp_nobody(), as for one that is absent or
 * not well-formed. */
struct df_stamp df_stamp_read(const cJSON *doc, const char *annotation, bool is_believed);

/* Removes the annotation, because what it is about is no longer what that person wrote. */
void df_stamp_drop(cJSON *doc, const char *annotation);

/* Is this the name of somebody? False for NULL and DF_STAMP_NOBODY. */
bool df_stamp_is_name(const char *name);

#endif
