/*
 * patterns.h - many byte strings, laid out for fast search.
 *
 * Internal to the redactor. In each pattern it chooses a window of step + 3 bytes that few other
 * patterns have; the `step` strings of 4 bytes ("grams") in that window go into a table. Looking up
 * every step-th gram of a text then finds each occurrence of each pattern at least once. A bit
 * table answers nearly all look-ups. Grams ignore the case of letters; the comparison of the whole
 * pattern decides. Thread rule: after df_patterns_seal() it is
 * read-only and may be shared.
 */
#ifndef DF_REDACT_PATTERNS_H
#define DF_REDACT_PATTERNS_H

#include "common/base/err.h"
#include "common/redact/forms.h"

enum { DF_GRAM = 4, DF_REDACT_STEP_MAX = 16, DF_PREFIX_BITS = 15 };

struct df_pattern {
    uint32_t at; /* in bytes */
    uint16_t len;
    uint16_t window; /* offset of its window */
    bool fold, tail; /* as in struct df_redact_form */
};

struct df_pattern_gram {
    uint32_t gram;
    uint32_t at;     /* of its pattern, in bytes */
    uint16_t len;    /* of its pattern */
    uint16_t back;   /* from the start of the pattern to the gram */
    bool fold, tail; /* of its pattern */
};

/* Zeros are an empty table. */
struct df_patterns {
    char *bytes; /* all patterns; wiped at the end */
    size_t bytes_len, bytes_cap;
    struct df_pattern *patterns; /* sorted, all different */
    size_t count, cap;
    size_t min_len; /* of a pattern */
    size_t max_len; /* of a pattern and its tail; 0: an empty table */
    size_t step;
    uint64_t *bits; /* 1 << bits_log2 of them; set: some gram has this hash */
    unsigned bits_log2;
    uint32_t *heads; /* (1 << heads_log2) + 1: index into grams of the first one of a hash */
    unsigned heads_log2;
    struct df_pattern_gram *grams;
    uint64_t prefixes[(1U << DF_PREFIX_BITS) / 64]; /* set: some pattern begins with such a gram */
};

/* Class LIMIT beyond DF_LIMIT_REDACT_BYTES of patterns. */
int df_patterns_add(struct df_patterns *s, const struct df_redact_form *form,
                    struct df_err *err) DF_MUST_CHECK;
/* To be called once, after the last add and before a search. */
int df_patterns_seal(struct df_patterns *s, struct df_err *err) DF_MUST_CHECK;
void df_patterns_free(struct df_patterns *s);

/* Calls found for every occurrence, in no certain order and perhaps more than once; true if there
 * is any. found NULL: stops at the first one. with_tail: the byte at end belongs to it as well. */
typedef void df_patterns_found(void *arg, size_t from, size_t end, bool with_tail);
bool df_patterns_scan(const struct df_patterns *s, const char *text, size_t n,
                      df_patterns_found *found, void *arg);

/* The first position at or after `from` from which the text is a proper prefix of a pattern; n if
 * there is none. Bytes before it do not depend on what follows. */
size_t df_patterns_hold(const struct df_patterns *s, const char *text, size_t from, size_t n);

#endif
