/*
 * changes.h - which steps were written last, in the order of the writes: a ring of names for
 * followers of all steps. Who is too slow for it is told, and looks at everything.
 * Thread rule: any thread.
 */
#ifndef DF_NEWS_CHANGES_H
#define DF_NEWS_CHANGES_H

#include <pthread.h>

#include "spawner/store/store.h"

#define DF_CHANGES 2048 /* some seconds of the most that is promised */

struct df_changed {
    char name[64];
    char version[64]; /* the store's, of that write */
    bool is_new;      /* the step was made by it */
};

struct df_changes {
    pthread_mutex_t lock;
    uint64_t last; /* number of the latest; the first is 1 */
    struct df_changed ring[DF_CHANGES];
};

void df_changes_init(struct df_changes *c);
void df_changes_free(struct df_changes *c);
void df_changes_add(struct df_changes *c, const struct df_store_event *event);

/* The number of the latest change, and the version of its write ("0" before the first). */
uint64_t df_changes_last(struct df_changes *c, char ret_version[64]);

/* Change number n: 1 with *ret, 0: not yet, -1: it is forgotten. */
int df_changes_get(struct df_changes *c, uint64_t n, struct df_changed *ret);

#endif
