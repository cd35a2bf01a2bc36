/*
 * nearest.h - suggests the known word that is nearest to a mistyped one.
 * Thread rule: pure functions, any thread.
 */
#ifndef DF_BASE_NEAREST_H
#define DF_BASE_NEAREST_H

#include <stddef.h>

/* How many single-letter edits turn a into b; a swap of neighbouring letters counts as one. */
size_t df_edit_distance(const char *a, const char *b);
/* Keeps in *best the candidate nearest to word, if it is near enough to be a typing error.
 * *best_distance starts as SIZE_MAX. */
void df_nearest(const char *word, const char *candidate, const char **best, size_t *best_distance);

#endif
