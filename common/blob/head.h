/*
 * head.h - how a blob lies in an object store. Internal to common/blob; the page about it is
 * docs/internals/chunked-blob.md.
 *
 * A blob is one object, its head: the store lets only one writer create or change it. The head has
 * the size, the ids of the chunks, and the end of the content (the tail). The content before the
 * tail is in chunks named <head's name>-<id>, all of one size, never changed and never shared. They
 * are written before the head that refers to them, and deleted after that head. So the head alone
 * decides what the blob is.
 */
#ifndef DF_BLOB_HEAD_H
#define DF_BLOB_HEAD_H

#include "common/base/strs.h"
#include "common/crypto/crypto.h"

/* Sizes that suit a store, in bytes before compression. */
struct df_blob_sizes {
    int64_t chunk;        /* of a blob that is put: larger chunks need fewer requests */
    int64_t stream_chunk; /* of a stream: with smaller chunks each frame rewrites less */
    int64_t no_chunks;    /* a smaller blob is put without chunks */
    int64_t blob;         /* the largest blob */
    size_t at_once;       /* chunks of one blob that are on their way at once; 0: one */
};

struct df_blob_head {
    const char *key;  /* of the blob; borrowed */
    char name[40];    /* "dfb-<32 hex of SHA-256(key)>": valid where a key is not */
    char version[72]; /* of the store: differs after each change; "": no such blob */
    int64_t size;     /* of the whole blob */
    int64_t chunk_size;
    struct df_strs chunks; /* their ids, in order: 16 hex of randomness each */
    /* Key that encrypts the chunks, for stores in which more people may read chunks than heads. It
     * is stored with the tail, and like the tail unknown when only the description was read. */
    unsigned char seal[DF_KEY_LEN];
    struct df_buf tail; /* the content after the chunks */
};

/* A head without content, of a blob that does not exist yet, as streams begin. */
int df_blob_head_new(const char *key, const struct df_blob_sizes *sizes, struct df_blob_head *ret,
                     struct df_err *err) DF_MUST_CHECK;
void df_blob_head_free(struct df_blob_head *h); /* wipes; an empty head afterwards */
#define DF_BLOB_HEAD DF_CLEANUP(df_blob_head_free) struct df_blob_head

struct df_blob_chunk_name {
    char text[64];
};
struct df_blob_chunk_name df_blob_chunk_name(const struct df_blob_head *h, const char *id);

#endif
