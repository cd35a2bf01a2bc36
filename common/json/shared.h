/*
 * shared.h - a JSON tree that several owners have and nobody changes. References are counted, so a
 * reader needs neither a copy nor a lock. Thread rule: any thread.
 *
 * Everyone else sees it as a const cJSON *. Only roots that df_shared_new() returned are shared; no
 * other may be given to the functions here (they end the program with a message).
 */
#ifndef DF_JSON_SHARED_H
#define DF_JSON_SHARED_H

#include "common/json/json.h"

/* Takes the tree over, an object or an array, also on failure. Returns the first reference. NULL:
 * no memory, or tree is NULL. Addresses in the tree stay valid, but not that of its root. */
const cJSON *df_shared_new(cJSON *tree) DF_MUST_CHECK;

/* Adds a reference and returns the same root. */
const cJSON *df_shared_add(const cJSON *shared);
/* Gives up a reference; the last one frees the tree. NULL is fine. */
void df_shared_drop(const cJSON *shared);

/* Exchanges a reference for a tree of the caller's own: the same tree if this was the last
 * reference, or a copy. The reference is gone, also on failure. NULL: no memory, or shared is
 * NULL. */
cJSON *df_shared_own(const cJSON *shared) DF_MUST_CHECK;

static inline void df_cleanup_shared(const cJSON **shared)
{
    df_shared_drop(*shared);
}
#define DF_SHARED DF_CLEANUP(df_cleanup_shared)

#endif
