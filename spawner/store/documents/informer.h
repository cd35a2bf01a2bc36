/*
 * informer.h - what the API server has of our documents: a watch cache for each kind, of whose changes
 * watchers are notified in order, those that were there before the first list apart.
 *
 * Index words of a document are its labels ("key=value") and its uid.
 * Thread rule: any thread.
 */
#ifndef DF_INFORMER_H
#define DF_INFORMER_H

#include "common/kube/cache.h"
#include "spawner/store/documents/watchers.h"

struct df_informer; /* opaque */

/* group: of the resources; borrowed, must live on, as name_space and the watchers. */
int df_informer_start(struct df_kube *k, const char *group, const char *name_space,
                      struct df_watchers *watchers, struct df_informer **ret,
                      struct df_err *err) DF_MUST_CHECK;
/* NULL is fine. */
void df_informer_stop(struct df_informer *i);

/* Waits until all there is was listed. RETRY after timeout_ms, with what failed last. */
int df_informer_wait(struct df_informer *i, int64_t timeout_ms, struct df_err *err) DF_MUST_CHECK;

/* Lists all anew, and waits until that is taken: nothing that was written before this call is
 * unknown after it. RETRY when *stop turns true. */
int df_informer_catch_up(struct df_informer *i, const volatile bool *stop,
                         struct df_err *err) DF_MUST_CHECK;

const struct df_kube_resource *df_informer_resource(const struct df_informer *i, enum df_kind kind);
/* The resources as they are in the API server, whole but for managedFields. */
struct df_kube_cache *df_informer_cache(const struct df_informer *i, enum df_kind kind);

#endif
