#include "common/redact/names.h"

#include <stdlib.h>

void df_redact_names_free(struct df_redact_names *n)
{
    free(n->masked);
    *n = (struct df_redact_names){0};
}

int df_redact_names_add(struct df_redact_names *n, cJSON *member, struct df_err *err)
{
    if (n->len == n->cap) {
        size_t cap = n->cap ? 2 * n->cap : 8;
        cJSON **masked = reallocarray(n->masked, cap, sizeof(cJSON *));
        if (!masked)
            return df_fail_oom(err);
        n->masked = masked;
        n->cap = cap;
    }
    n->masked[n->len++] = member;
    return 0;
}

/* Names that were not masked, sorted: an object may have very many. */
struct kept {
    const char **at; /* owned; its items are borrowed */
    size_t len;
};

static void kept_free(struct kept *k)
{
    free(k->at);
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int keep_others(const struct df_redact_names *n, const cJSON *object, struct kept *k,
                       struct df_err *err)
{
    const cJSON *member = NULL;
    size_t at = 0;
    k->at = calloc((size_t)cJSON_GetArraySize(object) + 1, sizeof(*k->at));
    if (!k->at)
        return df_fail_oom(err);
    cJSON_ArrayForEach (member, object) {
        if (at < n->len && n->masked[at] == member)
            at++;
        else
            k->at[k->len++] = member->string;
    }
    qsort(k->at, k->len, sizeof(*k->at), by_bytes);
    return 0;
}

static bool is_kept(const struct kept *k, const char *name)
{
    return bsearch(&name, k->at, k->len, sizeof(*k->at), by_bytes);
}

/* Names that end in different numbers differ. So no number is taken twice, and what remains to be
 * looked at are the names that were there, and the first masked one, which may have no number. */
int df_redact_names_number(const struct df_redact_names *n, const cJSON *object, struct df_err *err)
{
    DF_CLEANUP(kept_free) struct kept kept = {0};
    size_t number = 2;
    if (!n->len)
        return 0;
    if (keep_others(n, object, &kept, err) < 0)
        return -1;
    for (size_t i = is_kept(&kept, n->masked[0]->string) ? 0 : 1; i < n->len; i++) {
        DF_FREE char *numbered = NULL;
        do {
            free(numbered);
            numbered = df_strf("%s %zu", n->masked[i]->string, number++);
            if (!numbered)
                return df_fail_oom(err);
        } while (is_kept(&kept, numbered) || (i > 0 && df_streq(numbered, n->masked[0]->string)));
        free(n->masked[i]->string);
        n->masked[i]->string = DF_TAKE(numbered);
    }
    return 0;
}
