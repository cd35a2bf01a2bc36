/*
 * set.h - the patterns of a set of secrets, laid out for fast search.
 *
 * Internal to the redactor. In each pattern it chooses a window of step + 3 bytes that few other
 * patterns have; the `step` strings of 4 bytes ("grams") in that window go into a table. Looking up
 * every step-th gram of a text then finds each occurrence of each pattern at least once. A bit
 * table that fits into the first-level cache answers nearly all look-ups.
 */
#ifndef DF_REDACT_SET_H
#define DF_REDACT_SET_H

#include "common/base/err.h"

enum { DF_GRAM = 4, DF_REDACT_STEP_MAX = 4, DF_PREFIX_BITS = 15 };

struct df_redact_pattern {
    uint32_t at; /* in bytes */
    uint16_t len;
    uint16_t window; /* offset of its window */
};

struct df_redact_gram {
    uint32_t gram;
    uint32_t at;   /* of its pattern, in bytes */
    uint16_t len;  /* of its pattern */
    uint16_t back; /* from the start of the pattern to the gram */
};

struct df_redact_set {
    char *bytes; /* all patterns; wiped at the end */
    size_t bytes_len, bytes_cap;
    struct df_redact_pattern *patterns; /* sorted by their bytes, all different */
    size_t count, cap;
    size_t max_len; /* of a pattern; 0: an empty set */
    size_t step;
    uint64_t *bits; /* 1 << bits_log2 of them; set: some gram has this hash */
    unsigned bits_log2;
    uint32_t *heads; /* (1 << heads_log2) + 1: index into grams of the first one of a hash */
    unsigned heads_log2;
    struct df_redact_gram *grams;
    uint64_t prefixes[(1U << DF_PREFIX_BITS) / 64]; /* set: some pattern begins with such a gram */
};

/* Sets the bit of every byte of text in an occurrence; true if there is any. cover has at least n
 * bits; NULL: stop at the first occurrence. */
bool df_redact_scan(const struct df_redact_set *s, const char *text, size_t n, uint64_t *cover);

/* The first position from which the text is a proper prefix of a pattern; n if there is none. Bytes
 * before it do not depend on what follows. */
size_t df_redact_hold(const struct df_redact_set *s, const char *text, size_t n);

#endif
