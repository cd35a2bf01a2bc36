/*
 * informer.h - one watch cache of the API server's resources for each kind that is a custom
 * resource. Watchers are notified of changes in order, but not of the documents of the first list.
 *
 * The index words of a document are its labels ("key=value") and its uid.
 * Thread rule: any thread.
 */
#ifndef DF_INFORMER_H
#define DF_INFORMER_H

#include "common/kube/cache.h"
#include "spawner/store/documents/watchers.h"

struct df_informer; /* opaque */

/* group: the resources' API group. group, name_space and watchers are borrowed until
 * df_informer_stop(). */
int df_informer_start(struct df_kube *k, const char *group, const char *name_space,
                      struct df_watchers *watchers, struct df_informer **ret,
                      struct df_err *err) DF_MUST_CHECK;
/* NULL is fine. */
void df_informer_stop(struct df_informer *i);

/* Waits until every kind is listed. RETRY after timeout_ms, with the last failure. */
int df_informer_wait(struct df_informer *i, int64_t timeout_ms, struct df_err *err) DF_MUST_CHECK;

/* Lists every kind again and waits until the lists are in the caches, which then contain every
 * write that was done before this call. RETRY when *stop becomes true. */
int df_informer_catch_up(struct df_informer *i, const volatile bool *stop,
                         struct df_err *err) DF_MUST_CHECK;

const struct df_kube_resource *df_informer_resource(const struct df_informer *i, enum df_kind kind);
/* The cached resources, as the API server has them but without managedFields. */
struct df_kube_cache *df_informer_cache(const struct df_informer *i, enum df_kind kind);

#endif
