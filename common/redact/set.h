/*
 * set.h - the patterns of a set of secrets, laid out for fast search.
 *
 * Internal to the redactor. How it searches: of each pattern a window of step + 3 bytes is chosen
 * that it shares with few others; the step strings of 4 bytes ("grams") in that window go into a
 * table. Looking up every step-th gram of a text then meets each occurrence of each pattern at
 * least once. A bit table that fits the first-level cache answers nearly all look-ups.
 */
#ifndef DF_REDACT_SET_H
#define DF_REDACT_SET_H

#include "common/base/err.h"

enum { DF_GRAM = 4, DF_REDACT_STEP_MAX = 4, DF_PREFIX_BITS = 15 };

struct df_redact_pattern {
    uint32_t at; /* in bytes */
    uint16_t len;
    uint16_t window; /* where in the pattern its window begins */
};

struct df_redact_gram {
    uint32_t gram;
    uint32_t at;   /* of its pattern, in bytes */
    uint16_t len;  /* of its pattern */
    uint16_t back; /* from the pattern's beginning to the gram */
};

struct df_redact_set {
    char *bytes; /* all patterns; wiped at the end */
    size_t bytes_len, bytes_cap;
    struct df_redact_pattern *patterns; /* sorted by their bytes, all different */
    size_t count, cap;
    size_t max_len; /* of a pattern; 0: an empty set */
    size_t step;
    uint64_t *bits; /* 1 << bits_log2 of them: some gram hashes here */
    unsigned bits_log2;
    uint32_t *heads; /* (1 << heads_log2) + 1: where in grams those of a hash begin */
    unsigned heads_log2;
    struct df_redact_gram *grams;
    uint64_t prefixes[(1U << DF_PREFIX_BITS) / 64]; /* some pattern begins with such a gram */
};

/* Sets the bits of every byte of text that an occurrence covers, and says whether there is any.
 * cover has at least n bits; NULL: stop at the first occurrence. */
bool df_redact_scan(const struct df_redact_set *s, const char *text, size_t n, uint64_t *cover);

/* The first position from which on the text is the beginning, but not the whole, of a pattern; n if
 * there is none. What stands before it is decided, whatever comes. */
size_t df_redact_hold(const struct df_redact_set *s, const char *text, size_t n);

#endif
