#include "spawner/journal/marks.h"

#include <search.h>

struct mark {
    char name[64], uid[40];
    int n;
};

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct mark *)a)->name, ((const struct mark *)b)->name);
}

static struct mark probe_of(const char *name)
{
    struct mark probe = {0};
    (void)snprintf(probe.name, sizeof(probe.name), "%s", name);
    return probe;
}

static struct mark *find(const struct df_marks *m, const char *name)
{
    const struct mark probe = probe_of(name);
    struct mark *const *node = tfind(&probe, &m->by_name, by_name);
    return node ? *node : NULL;
}

void df_marks_free(struct df_marks *m)
{
    tdestroy(m->by_name, free);
    m->by_name = NULL;
}

int df_marks_get(const struct df_marks *m, const char *name, const char *uid, int fallback)
{
    const struct mark *mark = find(m, name);
    return mark && df_streq(mark->uid, uid) ? mark->n : fallback;
}

static struct mark *add(struct df_marks *m, const char *name)
{
    struct mark *mark = malloc(sizeof(*mark));
    if (!mark)
        return NULL;
    *mark = probe_of(name);
    if (tsearch(mark, &m->by_name, by_name))
        return mark;
    free(mark);
    return NULL;
}

int df_marks_set(struct df_marks *m, const char *name, const char *uid, int n, struct df_err *err)
{
    struct mark *mark = find(m, name);
    if (!mark)
        mark = add(m, name);
    if (!mark)
        return df_fail_oom(err);
    (void)snprintf(mark->uid, sizeof(mark->uid), "%s", uid);
    mark->n = n;
    return 0;
}

void df_marks_drop(struct df_marks *m, const char *name)
{
    struct mark *mark = find(m, name);
    if (!mark)
        return;
    (void)tdelete(mark, &m->by_name, by_name);
    free(mark);
}
