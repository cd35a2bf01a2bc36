#include "spawner/journal/cursors.h"

#include <search.h>

struct cursor {
    char name[64], uid[40];
    int n;
};

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct cursor *)a)->name, ((const struct cursor *)b)->name);
}

static struct cursor probe_of(const char *name)
{
    struct cursor probe = {0};
    (void)snprintf(probe.name, sizeof(probe.name), "%s", name);
    return probe;
}

static struct cursor *find(const struct df_cursors *m, const char *name)
{
    const struct cursor probe = probe_of(name);
    struct cursor *const *node = tfind(&probe, &m->by_name, by_name);
    return node ? *node : NULL;
}

void df_cursors_free(struct df_cursors *m)
{
    tdestroy(m->by_name, free);
    m->by_name = NULL;
}

int df_cursors_get(const struct df_cursors *m, const char *name, const char *uid, int fallback)
{
    const struct cursor *cursor = find(m, name);
    return cursor && df_streq(cursor->uid, uid) ? cursor->n : fallback;
}

static struct cursor *add(struct df_cursors *m, const char *name)
{
    struct cursor *cursor = malloc(sizeof(*cursor));
    if (!cursor)
        return NULL;
    *cursor = probe_of(name);
    if (tsearch(cursor, &m->by_name, by_name))
        return cursor;
    free(cursor);
    return NULL;
}

int df_cursors_set(struct df_cursors *m, const char *name, const char *uid, int n,
                   struct df_err *err)
{
    struct cursor *cursor = find(m, name);
    if (!cursor)
        cursor = add(m, name);
    if (!cursor)
        return df_fail_oom(err);
    (void)snprintf(cursor->uid, sizeof(cursor->uid), "%s", uid);
    cursor->n = n;
    return 0;
}

void df_cursors_drop(struct df_cursors *m, const char *name)
{
    struct cursor *cursor = find(m, name);
    if (!cursor)
        return;
    (void)tdelete(cursor, &m->by_name, by_name);
    free(cursor);
}
