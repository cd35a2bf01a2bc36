/*
 * blocks.h - looks at 16 bytes of a text at once. Internal to the redactor.
 */
#ifndef DF_REDACT_BLOCKS_H
#define DF_REDACT_BLOCKS_H

#include <stdint.h>
#include <string.h>

typedef unsigned char df_block __attribute__((vector_size(16)));

static inline df_block df_block_load(const char *text)
{
    df_block b;
    memcpy(&b, text, sizeof b);
    return b;
}

/* The position of the first byte in memory that is not 0. */
static inline size_t df_block_first_of(uint64_t word)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    return (size_t)__builtin_ctzll(word) / 8;
#else
    return (size_t)__builtin_clzll(word) / 8;
#endif
}

/* The first byte that is not 0; the size of a block if all are. */
static inline size_t df_block_first(df_block hits)
{
    uint64_t words[2];
    memcpy(words, &hits, sizeof hits);
    if (words[0])
        return df_block_first_of(words[0]);
    return words[1] ? 8 + df_block_first_of(words[1]) : sizeof hits;
}

#endif
