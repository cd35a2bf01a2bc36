#include "common/base/nearest.h"

#include "common/base/util.h"

static size_t min3(size_t a, size_t b, size_t c)
{
    size_t m = a < b ? a : b;
    return m < c ? m : c;
}

#define DISTANCE_MAX 32 /* longer words are compared only by their first letters */

size_t df_edit_distance(const char *a, const char *b)
{
    size_t n = strnlen(a, DISTANCE_MAX), m = strnlen(b, DISTANCE_MAX);
    size_t d[DISTANCE_MAX + 1][DISTANCE_MAX + 1];
    for (size_t i = 0; i <= n; i++)
        d[i][0] = i;
    for (size_t j = 0; j <= m; j++)
        d[0][j] = j;
    for (size_t i = 1; i <= n; i++) {
        for (size_t j = 1; j <= m; j++) {
            d[i][j] =
                min3(d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
            bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (swapped && d[i - 2][j - 2] + 1 < d[i][j])
                d[i][j] = d[i - 2][j - 2] + 1;
        }
    }
    return d[n][m];
}

void df_nearest(const char *word, const char *candidate, const char **best, size_t *best_distance)
{
    size_t d = df_edit_distance(word, candidate);
    /* The beginning of a long word is a better guess than any spelling. */
    if (strlen(word) >= 2 && df_starts_with(candidate, word))
        d = 0;
    size_t near = strlen(word) < 4 ? 1 : strlen(word) < 8 ? 2 : 3;
    if (d <= near && d < *best_distance) {
        *best = candidate;
        *best_distance = d;
    }
}
