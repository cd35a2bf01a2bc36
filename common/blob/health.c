/*
 * health.c - one spell for each direction (reading, writing) says since when it fails. Read
 * df_blob_health_note() first: it takes the result of a call, decides whether that says anything of
 * the store, and tells the owner when a direction begins to fail and when it works again. A store
 * that was taken over by others fails until it is closed.
 */
#include "common/blob/health.h"

#include <errno.h>
#include <pthread.h>

#include "common/base/clock.h"
#include "common/blob/backend.h"

/* A direction that fails. */
struct spell {
    int64_t since_us; /* 0: it works */
    int64_t since_mono_us;
    struct df_err last; /* failure */
};

struct df_blob_health {
    struct df_blob_service service; /* its place is owned */
    char *place;
    pthread_mutex_t lock; /* of what follows */
    struct spell spells[DF_BLOB_DIRECTIONS];
};

static const char *const verbs[DF_BLOB_DIRECTIONS] = {"read", "written"};

/* ---- what a failure says of the store ---- */

/* Keys and sizes were checked before. So DENIED and USER of the store are about the service's own
 * location or credentials, and must not reach a caller as an answer about the caller's rights. */
static void deny_to_retry(struct df_err *why)
{
    if (why->cls != DF_ERR_DENIED && why->cls != DF_ERR_USER)
        return;
    why->cls = DF_ERR_RETRY;
    why->os_errno = 0;
    (void)snprintf(why->reason, sizeof(why->reason), "%s", DF_BLOB_REFUSED);
}

static bool is_answer(const struct df_err *why)
{
    return why->cls == DF_ERR_NONE || why->cls == DF_ERR_NOT_FOUND || why->cls == DF_ERR_CONFLICT;
}

/* These failures tell of one blob, or of this replica, and nothing of the store. */
static bool is_of_store(const struct df_err *why)
{
    static const char *const others[] = {DF_BLOB_DAMAGED, "UnknownKey", "NotLeader"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(others); i++)
        if (df_streq(why->reason, others[i]))
            return false;
    return true;
}

static bool is_failure(const struct df_err *why)
{
    bool is_full = why->os_errno == ENOSPC || why->os_errno == EDQUOT;
    return is_of_store(why) && (why->cls == DF_ERR_RETRY || why->cls == DF_ERR_SYSTEM || is_full);
}

/* ---- what is told ---- */

/* "12 min": in the largest unit of which there are two. */
static void print_duration(int64_t us, char out[32])
{
    static const struct {
        const char *unit;
        int64_t s;
    } units[] = {{"days", 86400}, {"h", 3600}, {"min", 60}, {"s", 1}};
    int64_t s = us / 1000000;
    size_t i = 0;
    while (i + 1 < DF_ARRAY_SIZE(units) && s < 2 * units[i].s)
        i++;
    (void)snprintf(out, 32, "%lld %s", (long long)(s / units[i].s), units[i].unit);
}

static void tell_works(const struct df_blob_health *h, enum df_blob_direction direction,
                       int64_t failed_us)
{
    char message[512], lasted[32];
    print_duration(failed_us, lasted);
    (void)snprintf(message, sizeof(message), "%s can be %s again after %s", h->place,
                   verbs[direction], lasted);
    h->service.tell(h->service.arg, DF_ERR_NONE, message);
}

static void tell_fails(const struct df_blob_health *h, enum df_blob_direction direction,
                       const struct df_err *why)
{
    char message[sizeof(why->message) + 512];
    (void)snprintf(message, sizeof(message), "%s cannot be %s: %s", h->place, verbs[direction],
                   why->message);
    h->service.tell(h->service.arg, why->cls, message);
}

void df_blob_health_tell(const struct df_blob_health *h, enum df_err_class cls,
                         const char *sentence)
{
    char message[2 * sizeof(((struct df_err *)NULL)->message)];
    (void)snprintf(message, sizeof(message), "%s: %s", h->place, sentence);
    h->service.tell(h->service.arg, cls, message);
}

/* For as long as these blobs are open: a call that has nothing to write succeeds all the same. */
static bool is_taken_over(const struct df_err *why)
{
    return df_streq(why->reason, DF_BLOB_TAKEN_OVER);
}

void df_blob_health_note(struct df_blob_health *h, enum df_blob_direction direction,
                         struct df_err *why)
{
    struct spell *s = &h->spells[direction];
    deny_to_retry(why);
    bool fails = is_failure(why);
    if (!fails && !is_answer(why))
        return;
    (void)pthread_mutex_lock(&h->lock);
    bool changes = !is_taken_over(&s->last) && (is_taken_over(why) || fails == !s->since_us);
    int64_t failed_us = df_mono_us() - s->since_mono_us;
    if (changes) {
        s->since_us = fails ? df_real_us() : 0;
        s->since_mono_us = df_mono_us();
    }
    if (fails && !is_taken_over(&s->last))
        s->last = *why;
    (void)pthread_mutex_unlock(&h->lock);
    if (changes && fails)
        tell_fails(h, direction, why);
    else if (changes)
        tell_works(h, direction, failed_us);
}

/* ---- asking ---- */

bool df_blob_health_fails(struct df_blob_health *h, enum df_blob_direction direction)
{
    (void)pthread_mutex_lock(&h->lock);
    bool fails = h->spells[direction].since_us;
    (void)pthread_mutex_unlock(&h->lock);
    return fails;
}

bool df_blob_health_is_remote(const struct df_blob_health *h)
{
    return h->service.is_remote;
}

static int fail_spell(const struct df_blob_health *h, const char *what, const struct spell *s,
                      struct df_err *err)
{
    char since[DF_TIME_LEN];
    (void)df_fail_reason(err, DF_ERR_RETRY, s->last.reason, "%s cannot be %s since %s: %s",
                         h->place, what, df_time_format(s->since_us, since), s->last.message);
    if (err)
        err->os_errno = s->last.os_errno;
    return -1;
}

int df_blob_health_check(struct df_blob_health *h, struct df_err *err)
{
    (void)pthread_mutex_lock(&h->lock);
    const struct spell reads = h->spells[DF_BLOB_READS], writes = h->spells[DF_BLOB_WRITES];
    (void)pthread_mutex_unlock(&h->lock);
    if (!reads.since_us && !writes.since_us)
        return 0;
    bool both = reads.since_us && writes.since_us;
    const struct spell *first =
        !writes.since_us || (both && reads.since_us <= writes.since_us) ? &reads : &writes;
    return fail_spell(h, both ? "read and written" : verbs[first == &writes], first, err);
}

/* ---- making ---- */

int df_blob_health_new(const struct df_blob_service *service, struct df_blob_health **ret,
                       struct df_err *err)
{
    struct df_blob_health *h = calloc(1, sizeof(*h));
    char *place = strdup(service->place);
    if (!h || !place) {
        free(h);
        free(place);
        return df_fail_oom(err);
    }
    h->service = *service;
    h->place = place;
    (void)pthread_mutex_init(&h->lock, NULL);
    *ret = h;
    return 0;
}

void df_blob_health_free(struct df_blob_health *h)
{
    if (!h)
        return;
    (void)pthread_mutex_destroy(&h->lock);
    free(h->place);
    free(h);
}
