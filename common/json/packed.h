/*
 * packed.h - compresses similar JSON documents (zstd), so that ten thousand of them take a few MiB.
 *
 * A packer keeps a few complete texts as samples and compresses each document with the newest
 * sample as its dictionary. A document that differs from it only in names, times and uids shrinks
 * from 2.5 KiB to 200 bytes. A text that compresses badly becomes the next sample. Packing takes
 * about 20 microseconds, unpacking 12. Thread rule: any thread.
 */
#ifndef DF_JSON_PACKED_H
#define DF_JSON_PACKED_H

#include "common/json/json.h"

struct df_sample; /* opaque; lives as long as its packer */

struct df_packed {
    const void *bytes;
    uint32_t len, text_len;         /* documents are far smaller than 4 GiB */
    const struct df_sample *sample; /* the dictionary it was packed with; NULL: none */
};

struct df_packer;
int df_packer_new(struct df_packer **ret, struct df_err *err) DF_MUST_CHECK;
/* Documents that it packed cannot be unpacked afterwards. NULL is fine. */
void df_packer_free(struct df_packer *p);

/* *ret owns its bytes: DF_PACKED on the local. */
int df_pack(struct df_packer *p, const cJSON *tree, struct df_packed *ret,
            struct df_err *err) DF_MUST_CHECK;
/* Unpacks a document of the same packer. The caller owns *ret. */
int df_unpack(struct df_packer *p, const struct df_packed *packed, cJSON **ret,
              struct df_err *err) DF_MUST_CHECK;

void df_packed_free(struct df_packed *p);
#define DF_PACKED DF_CLEANUP(df_packed_free)

#endif
