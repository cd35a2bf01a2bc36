/*
 * packed.h - the text of a document, packed (zstd): ten thousand documents are 15 MiB instead of
 * 45. Packing costs some 20 microseconds, unpacking 4. Thread rule: any thread.
 */
#ifndef DF_PACKED_H
#define DF_PACKED_H

#include "common/base/err.h"

struct df_packed {
    const void *bytes;
    size_t len;
    size_t text_len; /* without the NUL */
};

/* zstd's working memory, which costs more to make than to use. */
struct df_packer;
int df_packer_new(struct df_packer **ret, struct df_err *err) DF_MUST_CHECK;
void df_packer_free(struct df_packer *p); /* NULL is fine */

/* *ret owns its bytes: free((void *)ret->bytes), or DF_PACKED on the local. */
int df_pack(struct df_packer *p, const char *text, struct df_packed *ret,
            struct df_err *err) DF_MUST_CHECK;
int df_packed_copy(const struct df_packed *p, struct df_packed *ret,
                   struct df_err *err) DF_MUST_CHECK;

/* The text; the caller frees. */
int df_unpack(struct df_packer *p, const struct df_packed *packed, char **ret,
              struct df_err *err) DF_MUST_CHECK;

void df_packed_free(struct df_packed *p);
#define DF_PACKED DF_CLEANUP(df_packed_free)

#endif
