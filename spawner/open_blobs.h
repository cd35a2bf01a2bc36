/*
 * open_blobs.h - where states, plans, logs and outputs live: at home (the data directory, or the
 * namespace that has the documents), or in a bucket (blobs.location). Called once at the start.
 */
#ifndef DF_OPEN_BLOBS_H
#define DF_OPEN_BLOBS_H

#include "common/blob/blob.h"
#include "spawner/config/config.h"
#include "spawner/store/vault/vault.h"

struct df_blob_places {
    const struct df_config *config;
    struct df_kube *kube;   /* NULL: home is the directory */
    const char *name_space; /* of the blobs in the cluster */
    const char *directory;  /* home, or its tmp/ alone */
    struct df_vault *vault; /* has the key that seals, unless blobs.keyFiles says otherwise */
};

/* Home remembers the bucket in the blob "location". USER: home has blobs, or remembers another
 * bucket, or one while none is configured: nobody must find his states gone. Else as the store
 * fails. */
int df_open_blobs(const struct df_blob_places *p, struct df_blob **ret,
                  struct df_err *err) DF_MUST_CHECK;

#endif
