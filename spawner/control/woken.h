/*
 * woken.h - the versions of documents for which a run was woken already. Most passes over a step
 * are caused by its pod; its run looks at the document alone, and need not be woken by them. Not in
 * store/memory.h, which forgets a step that is final: passes over its pod come until the pod is
 * gone. Of a fixed size, so that nobody has to forget. Thread rule: any thread.
 */
#ifndef DF_SPAWNER_CONTROL_WOKEN_H
#define DF_SPAWNER_CONTROL_WOKEN_H

#include <stdatomic.h>

#include "common/json/json.h"

enum { DF_WOKEN = 1024 };

/* Initialize with {0}. Documents may share a place: then somebody is told twice. */
struct df_woken {
    atomic_uint_least64_t versions[DF_WOKEN]; /* digest of name and version */
};

/* True for the first call with this version of the document, at least. */
bool df_woken_is_new(struct df_woken *t, const cJSON *doc);

#endif
