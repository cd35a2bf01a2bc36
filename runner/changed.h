/*
 * changed.h - what of the source differs from the plan that a step is to apply. Thread rule: main
 * thread.
 */
#ifndef DF_RUNNER_CHANGED_H
#define DF_RUNNER_CHANGED_H

#include "runner/context.h"
#include "runner/source/listing.h"

/* As df_listing_differences(); "" as well if the plan has no listing or cannot be read. */
const char *df_changed_since_plan(const struct df_context *c, char out[DF_LISTING_WORDS]);

#endif
