/*
 * kube_object.h - heads and chunks of blobs as objects of Kubernetes. Internal to common/blob.
 *
 * A head is a Secret of its name: key, size and the chunks' ids in annotations, so that they come
 * with metadata alone; tail and seal in its data. Its labels are hashes of the key's directories: a
 * list selects by them.
 *
 * Chunks are immutable ConfigMaps, sealed (AES-256-GCM) with the seal that only the head has:
 * whoever asks for Secrets by a label makes the API server read all of them, so there must be no
 * large ones. Content is compressed (zstd): etcd is small.
 */
#ifndef DF_BLOB_KUBE_OBJECT_H
#define DF_BLOB_KUBE_OBJECT_H

#include "common/blob/blob.h"
#include "common/blob/head.h"
#include "common/kube/kube.h"

/* Reads the head's Secret into *h, which was made by df_blob_head_new(). SYSTEM when it is damaged
 * or another key's. Of metadata alone (whole: false) tail and seal stay as they are. */
int df_blob_head_parse(const cJSON *secret, bool whole, struct df_blob_head *h,
                       struct df_err *err) DF_MUST_CHECK;

/* The Secret; the caller wipes it. */
int df_blob_head_print(const struct df_blob_head *h, cJSON **ret, struct df_err *err) DF_MUST_CHECK;

/* A chunk's ConfigMap; the caller deletes it. */
int df_blob_chunk_print(const struct df_blob_head *h, const char *id, const void *bytes, size_t n,
                        cJSON **ret, struct df_err *err) DF_MUST_CHECK;
/* Adds the chunk's content to out. SYSTEM when it is damaged. */
int df_blob_chunk_parse(const cJSON *map, const struct df_blob_head *h, struct df_buf *out,
                        struct df_err *err) DF_MUST_CHECK;

/* The key that a head's Secret (its metadata suffices) is of; borrowed; NULL: it is no head. */
const char *df_blob_head_key(const cJSON *secret);
/* The size of its blob; 0 if the Secret does not say. */
int64_t df_blob_head_size(const cJSON *secret);
/* Adds the chunks' names of a head's Secret (its metadata suffices). */
int df_blob_head_chunks(const cJSON *secret, struct df_strs *out, struct df_err *err) DF_MUST_CHECK;

/* A label selector for all heads below prefix ("": all), and perhaps for others; the caller frees.
 * NULL with err. */
char *df_blob_head_selector(const char *prefix, struct df_err *err);

#endif
