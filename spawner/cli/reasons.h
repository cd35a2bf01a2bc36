/*
 * reasons.h - explains the reason words of docs/objects.md in sentences: what happened, and what a
 * person can do next. Thread rule: constant data, any thread.
 */
#ifndef DF_CLI_REASONS_H
#define DF_CLI_REASONS_H

struct df_reason {
    const char *word;    /* "ToolMissing" */
    const char *meaning; /* one sentence */
    const char *next;    /* what to do; NULL: nothing */
};

/* NULL for an unknown word. Borrowed. */
const struct df_reason *df_reason_find(const char *word);

/* All reasons, for documentation and tests; ends with a word of NULL. */
extern const struct df_reason df_reasons[];

#endif
