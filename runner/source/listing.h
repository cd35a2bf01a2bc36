/*
 * listing.h - what a source consists of, entry by entry: kept with a plan, so that its apply can
 * name what was added, changed or removed since. It explains a digest that differs, and proves
 * nothing. Thread rule: one listing, one thread.
 */
#ifndef DF_SOURCE_LISTING_H
#define DF_SOURCE_LISTING_H

#include "common/base/strs.h"

struct df_listing {
    struct df_strs entries; /* "HASH PATH" in the order of df_tree_walk(), HASH of 16 digits */
    size_t bytes;
    bool is_dropped; /* it became larger than DF_LIMIT_SOURCE_LISTING: there is none */
};
void df_listing_free(struct df_listing *l);

/* hash: of kind and content (df_hash()). */
void df_listing_add(struct df_listing *l, uint64_t hash, const char *path);

/* Writes all entries, each with its NUL. */
int df_listing_write(const struct df_listing *l, int fd, struct df_err *err) DF_MUST_CHECK;
/* Adds what was written. Bytes that are no listing end it. */
void df_listing_read(struct df_listing *l, const char *bytes, size_t n);

#define DF_LISTING_WORDS 512
/* "a.tf (changed), .b (added) and 3 others"; "": nothing is known to differ. Returns out. */
const char *df_listing_differences(const struct df_listing *before, const struct df_listing *now,
                                   char out[DF_LISTING_WORDS]);

#endif
