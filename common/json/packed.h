/*
 * packed.h - JSON documents that are alike, packed (zstd): ten thousand of them cost some MiB.
 *
 * A packer keeps a few whole texts as samples, and packs what comes by what it has in common with
 * the newest of them: of a document that is like its sample in all but names, times and uids little
 * more than these is left: of 2.5 KiB 200 bytes. A text that does not pack well so becomes the next
 * sample. Packing costs some 20 microseconds, unpacking 12.
 * Thread rule: any thread.
 */
#ifndef DF_JSON_PACKED_H
#define DF_JSON_PACKED_H

#include "common/json/json.h"

struct df_sample; /* opaque; lives as long as its packer */

struct df_packed {
    const void *bytes;
    uint32_t len, text_len;         /* no document comes near 4 GiB */
    const struct df_sample *sample; /* by which it was packed; NULL: by none */
};

struct df_packer;
int df_packer_new(struct df_packer **ret, struct df_err *err) DF_MUST_CHECK;
/* What it packed cannot be unpacked any more. NULL is fine. */
void df_packer_free(struct df_packer *p);

/* *ret owns its bytes: DF_PACKED on the local. */
int df_pack(struct df_packer *p, const cJSON *tree, struct df_packed *ret,
            struct df_err *err) DF_MUST_CHECK;
/* The same packer's. The caller owns *ret. */
int df_unpack(struct df_packer *p, const struct df_packed *packed, cJSON **ret,
              struct df_err *err) DF_MUST_CHECK;

int df_packed_copy(const struct df_packed *p, struct df_packed *ret,
                   struct df_err *err) DF_MUST_CHECK;
void df_packed_free(struct df_packed *p);
#define DF_PACKED DF_CLEANUP(df_packed_free)

/* Copies of several. Begins as {0}. */
struct df_packed_list {
    struct df_packed *items;
    size_t len, room;
};
int df_packed_list_add(struct df_packed_list *l, const struct df_packed *p,
                       struct df_err *err) DF_MUST_CHECK;
void df_packed_list_free(struct df_packed_list *l);
#define DF_PACKED_LIST DF_CLEANUP(df_packed_list_free)

#endif
