/*
 * advice.h - what a person can do about a failure, by its reason word. Thread rule: any thread.
 */
#ifndef DF_PLATFORM_ADVICE_H
#define DF_PLATFORM_ADVICE_H

#include <stddef.h>

struct df_advice {
    const char *cause; /* "SyncFailed" */
    const char *text;  /* one sentence */
};

/* All known causes, in the order in which a report gives its recommendations. */
extern const struct df_advice df_advices[];
extern const size_t df_advice_count;

#endif
