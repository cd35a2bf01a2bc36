#include "spawner/requests/deletions.h"

#include <pthread.h>

struct deletion {
    char uid[37]; /* "": this place is free */
    struct df_stamp by;
    bool is_disputed; /* another name was told, too */
    int64_t until_us;
};

struct df_deletions {
    pthread_mutex_t lock;
    struct deletion all[DF_LIMIT_DELETIONS];
};

int df_deletions_new(struct df_deletions **ret, struct df_err *err)
{
    struct df_deletions *d = calloc(1, sizeof(*d));
    if (!d)
        return df_fail_oom(err);
    (void)pthread_mutex_init(&d->lock, NULL);
    *ret = d;
    return 0;
}

void df_deletions_free(struct df_deletions *d)
{
    if (!d)
        return;
    (void)pthread_mutex_destroy(&d->lock);
    free(d);
}

/* Under the lock: the deletion of this uid; else *ret_free is a free place, or NULL. */
static struct deletion *find(struct df_deletions *d, const char *uid, int64_t now_us,
                             struct deletion **ret_free)
{
    *ret_free = NULL;
    for (size_t i = 0; i < DF_LIMIT_DELETIONS; i++) {
        struct deletion *each = &d->all[i];
        if (each->uid[0] && each->until_us < now_us)
            each->uid[0] = '\0';
        if (!each->uid[0])
            *ret_free = each;
        else if (strcmp(each->uid, uid) == 0)
            return each;
    }
    return NULL;
}

static bool is_same(const struct df_stamp *a, const struct df_stamp *b)
{
    return a->role == b->role && strcmp(a->name, b->name) == 0;
}

void df_deletions_tell(struct df_deletions *d, const char *uid, const struct df_stamp *by,
                       int64_t now_us)
{
    struct deletion *place;
    if (!*uid || strlen(uid) >= sizeof(place->uid))
        return;
    (void)pthread_mutex_lock(&d->lock);
    struct deletion *known = find(d, uid, now_us, &place);
    if (known) {
        known->is_disputed = known->is_disputed || !is_same(&known->by, by);
    } else if (place) {
        *place = (struct deletion){
            .by = *by, .until_us = now_us + DF_LIMIT_DELETION_SECONDS * INT64_C(1000000)};
        (void)snprintf(place->uid, sizeof(place->uid), "%s", uid);
    }
    (void)pthread_mutex_unlock(&d->lock);
}

struct df_stamp df_deletions_take(struct df_deletions *d, const char *uid, int64_t now_us)
{
    struct df_stamp by = df_stamp_nobody();
    struct deletion *place;
    if (!d || !uid)
        return by;
    (void)pthread_mutex_lock(&d->lock);
    struct deletion *known = find(d, uid, now_us, &place);
    if (known && !known->is_disputed)
        by = known->by;
    if (known)
        known->uid[0] = '\0';
    (void)pthread_mutex_unlock(&d->lock);
    return by;
}
