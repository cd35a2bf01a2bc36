/*
 * reasons.h - the reason words of docs/objects.md in whole sentences: what happened and what a
 * person can do next.
 */
#ifndef DF_CLI_REASONS_H
#define DF_CLI_REASONS_H

struct df_reason {
    const char *word;    /* "ToolMissing" */
    const char *meaning; /* one sentence */
    const char *next;    /* what to do, or NULL: nothing */
};

/* NULL for a word that is not in the list. Borrowed. */
const struct df_reason *df_reason_find(const char *word);

/* All of them, for documentation and tests; ends with a word of NULL. */
extern const struct df_reason df_reasons[];

#endif
