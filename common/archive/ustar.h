/*
 * ustar.h - the header of a regular file in a tar archive (POSIX.1-1988 ustar), printed and parsed.
 *
 * For archives that dayfly writes and reads itself: a member is this header, its content, and zeros
 * up to the next block; two blocks of zeros end the archive. Sizes of 8 GiB and more are in base
 * 256, as GNU tar and libarchive write them. Thread rule: pure functions.
 */
#ifndef DF_USTAR_H
#define DF_USTAR_H

#include "common/base/err.h"

enum { DF_USTAR_BLOCK = 512, DF_USTAR_NAME = 257 };

struct df_ustar {
    char name[DF_USTAR_NAME]; /* relative, without ".." */
    int64_t size;
};

/* Bytes of zeros behind a content of this size. */
static inline size_t df_ustar_padding(int64_t size)
{
    return (size_t)(-size & (DF_USTAR_BLOCK - 1));
}

/* mode 0600, no owner. LIMIT if the name does not fit. */
int df_ustar_print(const struct df_ustar *h, int64_t mtime_s, char out[DF_USTAR_BLOCK],
                   struct df_err *err) DF_MUST_CHECK;

/* *ret_end: the block is one of zeros, and *ret is unchanged. USER if the block is no such header,
 * or of something that is not a regular file with a relative name. */
int df_ustar_parse(const char in[DF_USTAR_BLOCK], struct df_ustar *ret, bool *ret_end,
                   struct df_err *err) DF_MUST_CHECK;

#endif
