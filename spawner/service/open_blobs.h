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
    struct df_kube *kube;       /* NULL: home is the directory */
    const char *name_space;     /* of the blobs in the cluster */
    const char *directory;      /* home, or its tmp/ alone */
    struct df_vault *vault;     /* has the key that seals, unless blobs.keyFiles says otherwise */
    struct df_kube *lease_kube; /* for the Lease of a move; NULL: no other replica may write */
};

/* Home remembers the bucket in the blob "location", and the id by which this installation marks it
 * in the blob "installation". A move waits until no replica leads, and holds the Lease meanwhile.
 * USER: home has blobs, or remembers another bucket, or one while none is configured: nobody must
 * find his states gone; or the bucket has the mark of another installation. Else as the store
 * fails. *ret_home: owned; NULL: *ret is home. */
int df_open_blobs(const struct df_blob_places *p, struct df_blob **ret, struct df_blob **ret_home,
                  struct df_err *err) DF_MUST_CHECK;

/* USER: home remembers another place than the one of config by now; another replica has moved
 * everything. Else as the store fails. */
int df_blobs_check_place(const struct df_config *config, struct df_blob *home,
                         struct df_err *err) DF_MUST_CHECK;

#endif
