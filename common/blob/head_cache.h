/*
 * head_cache.h - heads that this process put last: whoever appends next, replaces or removes the
 * blob need not read what was written here. Internal to common/blob.
 *
 * A head may be outdated when it is used: the store compares its version, and a put or a removal
 * that fails forgets it. In memory only; each name has one place, which it may share with others.
 * Thread rule: any thread.
 */
#ifndef DF_BLOB_HEAD_CACHE_H
#define DF_BLOB_HEAD_CACHE_H

#include <pthread.h>

#include "common/blob/head.h"

struct df_blob_head_cache {
    pthread_mutex_t lock;
    struct df_blob_head *heads; /* version "": free. NULL: not initialised */
    size_t places;
};

int df_blob_head_cache_init(struct df_blob_head_cache *c, size_t places,
                            struct df_err *err) DF_MUST_CHECK;
void df_blob_head_cache_free(struct df_blob_head_cache *c); /* wipes */

/* Takes the head of this key out. *ret: as of df_blob_head_new(), with key borrowed from the
 * caller. False: it is not here, and *ret is unchanged. */
bool df_blob_head_cache_take(struct df_blob_head_cache *c, const char *key,
                             struct df_blob_head *ret);
/* Moves the head in, and clears *h. */
void df_blob_head_cache_keep(struct df_blob_head_cache *c, struct df_blob_head *h);

#endif
