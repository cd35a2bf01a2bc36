/*
 * kube_head.h - how a blob lies in a namespace. Internal to common/blob.
 *
 * A blob is one Secret, its head, named dfb-<32 hex of SHA-256(key)>: the API server's unique name
 * decides who creates it, its resourceVersion who changes it. The head has the key, the size and
 * the names of the chunks in its annotations, and the end of the content (the tail) in its data.
 * What lies before is in chunks dfb-<32 hex>-<16 random hex>, each of the same size, never changed
 * and never shared: they are written before the head that names them and deleted after the head
 * that named them is gone. So the head alone decides what the blob is.
 *
 * Chunks are ConfigMaps, sealed (AES-256-GCM) with a key that only the head has: whoever asks for
 * Secrets by a label makes the API server read all of them, so there must be no large ones. Content
 * is compressed (zstd): etcd is small.
 */
#ifndef DF_BLOB_KUBE_HEAD_H
#define DF_BLOB_KUBE_HEAD_H

#include "common/blob/home.h"
#include "common/crypto/crypto.h"
#include "common/kube/kube.h"

/* Bytes of a chunk before compression. Few requests for what is written at once; for a stream
 * little to be written again with each frame. 512 KiB that cannot be compressed fit into a
 * ConfigMap (1 MiB). */
#define DF_BLOB_CHUNK (512 * DF_KIB)
#define DF_BLOB_STREAM_CHUNK (64 * DF_KIB)
#define DF_BLOB_INLINE (16 * DF_KIB) /* what is smaller has no chunks */

#define DF_BLOB_LABEL "dayfly.dev/blob" /* "head" or "chunk" */

struct df_blob_head {
    char name[40];
    char version[40];              /* resourceVersion; "": there is no such blob */
    int64_t size;                  /* of the whole blob */
    int64_t chunk_size;            /* of each chunk */
    struct df_strs chunks;         /* their ids, in order */
    unsigned char key[DF_KEY_LEN]; /* of the chunks; not known when only metadata was read */
    struct df_buf tail; /* what lies behind the chunks; empty when only metadata was read */
};
void df_blob_head_free(struct df_blob_head *h);
#define DF_BLOB_HEAD DF_CLEANUP(df_blob_head_free) struct df_blob_head

/* A head without content, of a blob that does not exist yet, as streams begin. */
int df_blob_head_new(const char *key, struct df_blob_head *ret, struct df_err *err) DF_MUST_CHECK;

/* Reads the head's Secret into *h, which was made by df_blob_head_new(). SYSTEM when it is damaged
 * or another key's. Of metadata alone the tail and the chunks' key stay empty. */
int df_blob_head_parse(const cJSON *secret, const char *key, bool metadata_only,
                       struct df_blob_head *h, struct df_err *err) DF_MUST_CHECK;

/* The Secret; the caller wipes it. */
int df_blob_head_print(const struct df_blob_head *h, const char *key, cJSON **ret,
                       struct df_err *err) DF_MUST_CHECK;

/* A chunk's ConfigMap; the caller deletes it. Its name is "<head>-<id>". */
int df_blob_chunk_print(const struct df_blob_head *h, const char *id, const void *bytes, size_t n,
                        cJSON **ret, struct df_err *err) DF_MUST_CHECK;
struct df_blob_chunk_name {
    char text[64];
};
struct df_blob_chunk_name df_blob_chunk_name(const struct df_blob_head *h, const char *id);
/* Adds the chunk's content to out. SYSTEM when it is damaged. */
int df_blob_chunk_parse(const cJSON *map, const struct df_blob_head *h, struct df_buf *out,
                        struct df_err *err) DF_MUST_CHECK;

/* The key that a head's Secret (its metadata suffices) is of; borrowed; NULL: it is no head. */
const char *df_blob_head_key(const cJSON *secret);
/* Adds the chunks' names of a head's Secret (its metadata suffices). */
int df_blob_head_chunks(const cJSON *secret, struct df_strs *out, struct df_err *err) DF_MUST_CHECK;

/* A label selector for all heads below prefix ("": all), and perhaps for others; the caller frees.
 * NULL with err. */
char *df_blob_head_selector(const char *prefix, struct df_err *err);

#endif
