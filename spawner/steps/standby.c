/*
 * standby.c - the list of standby runners: an entry for each Job, and for each request that waits a
 * waiter in its entry. Requests of a plan's runner wait in a list of their own, without an entry. A
 * waiter is on the stack of its thread. Whoever ends the wait takes it out of its list first, so
 * that an entry can be removed at any time. runner_claim.c has the claim.
 */
#include "spawner/steps/standby.h"

#include <errno.h>
#include <pthread.h>

#include "common/base/clock.h"
#include "common/base/limits.h"
#include "spawner/model/shared_pod.h"
#include "spawner/steps/step_auth.h"

#define CLIENT_CHECK_MS 1000 /* how often a waiting request checks its client */

/* How a wait ended. */
enum end { WAITS, OFFERED, PREPARES, REPLACED, OVER, LATE, LEFT };

/* One request that waits. */
struct waiter {
    struct waiter *next;
    const char *id; /* of the runner */
    const char *claim_id;
    enum end end;
    pthread_cond_t ended;
};

struct entry {
    cJSON *ref;
    const char *id; /* in ref */
    struct df_standby_form form;
    bool is_taken;
    bool has_asked;
    char step[DF_STANDBY_STEP]; /* the uid of the step that was offered to it; "": none */
    cJSON *preparation;         /* what its runner may get ready; or NULL */
    int64_t made_ms, since_ms, quiet_ms;
    struct waiter *waiters;
};

struct df_standby {
    pthread_mutex_t lock; /* guards the rest */
    bool is_open;
    struct entry *entries[DF_LIMIT_STANDBY]; /* the oldest first */
    size_t count;
    struct waiter *of_plans; /* requests of runners of plans, which wait for their applies */
};

bool df_standby_is(const char *host_uid)
{
    return host_uid && df_starts_with(host_uid, DF_STANDBY_PREFIX);
}

int df_standby_new(struct df_standby **ret, struct df_err *err)
{
    struct df_standby *b = calloc(1, sizeof(*b));
    if (!b)
        return df_fail_oom(err);
    (void)pthread_mutex_init(&b->lock, NULL);
    *ret = b;
    return 0;
}

static void entry_free(struct entry *e)
{
    cJSON_Delete(e->ref);
    cJSON_Delete(e->preparation);
    free(e);
}

void df_standby_free(struct df_standby *b)
{
    if (!b)
        return;
    while (b->count)
        entry_free(b->entries[--b->count]);
    (void)pthread_mutex_destroy(&b->lock);
    free(b);
}

void df_standby_open(struct df_standby *b)
{
    (void)pthread_mutex_lock(&b->lock);
    b->is_open = true;
    (void)pthread_mutex_unlock(&b->lock);
}

bool df_standby_is_open(struct df_standby *b)
{
    (void)pthread_mutex_lock(&b->lock);
    bool is_open = b->is_open;
    (void)pthread_mutex_unlock(&b->lock);
    return is_open;
}

/* ---- the entries; the caller holds the lock ---- */

/* The place of the entry; b->count: there is none. */
static size_t place_of(const struct df_standby *b, const char *id)
{
    size_t i = 0;
    while (i < b->count && !df_streq(b->entries[i]->id, id))
        i++;
    return i;
}

static struct entry *find(const struct df_standby *b, const char *id)
{
    size_t i = place_of(b, id);
    return i < b->count ? b->entries[i] : NULL;
}

static bool is_free(const struct entry *e)
{
    return !e->is_taken && !e->step[0];
}

/* Takes the waiters of this runner out of the list. */
static void end_waiters(struct waiter **list, const char *id, enum end end)
{
    for (struct waiter **at = list, *w; (w = *at);) {
        if (!df_streq(w->id, id)) {
            at = &w->next;
            continue;
        }
        *at = w->next;
        w->end = end;
        (void)pthread_cond_signal(&w->ended);
    }
}

/* Between the answer and the runner's next request it has asked just now: it is not one that has
 * gone. */
static void end_waits(struct entry *e, enum end end)
{
    e->quiet_ms = e->waiters ? df_mono_ms() : e->quiet_ms;
    end_waiters(&e->waiters, e->id, end);
}

/* ---- what the control loop does ---- */

static int add(struct df_standby *b, const cJSON *ref, const struct df_standby_form *form,
               int64_t age_ms, struct df_err *err)
{
    const char *id = df_shared_pod_host_of(ref);
    if (find(b, id))
        return 0;
    if (b->count == DF_LIMIT_STANDBY)
        return df_fail(err, DF_ERR_LIMIT, "standby runner %s: there are %d already", id,
                       DF_LIMIT_STANDBY);
    struct entry *e = calloc(1, sizeof(*e));
    if (!e)
        return df_fail_oom(err);
    *e = (struct entry){.ref = cJSON_Duplicate(ref, true),
                        .form = *form,
                        .made_ms = df_mono_ms() - age_ms,
                        .since_ms = df_mono_ms()};
    e->id = df_shared_pod_host_of(e->ref);
    if (!e->id) {
        entry_free(e);
        return df_fail_oom(err);
    }
    b->entries[b->count++] = e;
    return 0;
}

int df_standby_add(struct df_standby *b, const cJSON *ref, const struct df_standby_form *form,
                   int64_t age_ms, struct df_err *err)
{
    (void)pthread_mutex_lock(&b->lock);
    int result = add(b, ref, form, age_ms, err);
    (void)pthread_mutex_unlock(&b->lock);
    return result;
}

static bool fits(const struct entry *e, const struct df_standby_form *step)
{
    return is_free(e) && df_streq(e->form.digest, step->digest) &&
           e->form.seconds >= step->seconds &&
           (!e->form.run[0] || df_streq(e->form.run, step->run));
}

#define BETWEEN_MS 3000 /* the longest pause between two requests of a runner that lives */

/* A runner whose request was answered without a step asks again at once, and hears of an offer
 * then. */
static bool waits_now(const struct entry *e)
{
    return e->waiters || (e->has_asked && df_mono_ms() < e->quiet_ms + BETWEEN_MS);
}

/* One that is for this step alone would start no sooner as a Job of the step's own. */
static bool may_start(const struct entry *e)
{
    return !e->has_asked && (e->form.run[0] || df_mono_ms() < e->made_ms + DF_STANDBY_START_MS);
}

/* The oldest one that waits, else the oldest one that starts. */
static struct entry *choose(const struct df_standby *b, const struct df_standby_form *step)
{
    struct entry *starts = NULL;
    for (size_t i = 0; i < b->count; i++) {
        struct entry *e = b->entries[i];
        if (!fits(e, step))
            continue;
        if (waits_now(e))
            return e;
        if (!starts && may_start(e))
            starts = e;
    }
    return starts;
}

static int take(struct df_standby *b, const struct df_standby_form *step, cJSON **ret_ref,
                struct df_err *err)
{
    struct entry *e = b->is_open ? choose(b, step) : NULL;
    *ret_ref = NULL;
    if (!e)
        return 0;
    DF_JSON cJSON *ref = cJSON_Duplicate(e->ref, true);
    if (!ref)
        return df_fail_oom(err);
    e->is_taken = true;
    *ret_ref = DF_TAKE(ref);
    return 0;
}

int df_standby_take(struct df_standby *b, const struct df_standby_form *step, cJSON **ret_ref,
                    struct df_err *err)
{
    (void)pthread_mutex_lock(&b->lock);
    int result = take(b, step, ret_ref, err);
    (void)pthread_mutex_unlock(&b->lock);
    return result;
}

void df_standby_return(struct df_standby *b, const char *id)
{
    (void)pthread_mutex_lock(&b->lock);
    struct entry *e = find(b, id);
    if (e && e->is_taken && !e->step[0]) {
        e->is_taken = false;
        e->since_ms = df_mono_ms();
    }
    (void)pthread_mutex_unlock(&b->lock);
}

void df_standby_offer(struct df_standby *b, const char *id, const char *step_uid)
{
    (void)pthread_mutex_lock(&b->lock);
    struct entry *e = find(b, id);
    if (e && !e->step[0]) {
        (void)snprintf(e->step, sizeof(e->step), "%s", step_uid);
        end_waits(e, OFFERED);
    }
    end_waiters(&b->of_plans, id, OFFERED);
    (void)pthread_mutex_unlock(&b->lock);
}

int df_standby_prepare(struct df_standby *b, const char *id, const cJSON *preparation,
                       struct df_err *err)
{
    DF_JSON cJSON *copy = cJSON_Duplicate(preparation, true);
    if (!copy)
        return df_fail_oom(err);
    (void)pthread_mutex_lock(&b->lock);
    struct entry *e = find(b, id);
    if (e && !e->preparation) {
        e->preparation = DF_TAKE(copy);
        end_waits(e, PREPARES);
    }
    (void)pthread_mutex_unlock(&b->lock);
    return 0;
}

void df_standby_step(struct df_standby *b, const char *id, char ret[DF_STANDBY_STEP])
{
    (void)pthread_mutex_lock(&b->lock);
    const struct entry *e = find(b, id);
    (void)snprintf(ret, DF_STANDBY_STEP, "%s", e ? e->step : "");
    (void)pthread_mutex_unlock(&b->lock);
}

void df_standby_of_step(struct df_standby *b, const char *step_uid, char ret[DF_LIMIT_NAME + 1])
{
    ret[0] = '\0';
    (void)pthread_mutex_lock(&b->lock);
    for (size_t i = 0; i < b->count; i++)
        if (df_streq(b->entries[i]->step, step_uid))
            df_copy(ret, DF_LIMIT_NAME + 1, b->entries[i]->id);
    (void)pthread_mutex_unlock(&b->lock);
}

static void remove_at(struct df_standby *b, size_t i)
{
    end_waits(b->entries[i], OVER);
    entry_free(b->entries[i]);
    b->count--;
    memmove(&b->entries[i], &b->entries[i + 1], (b->count - i) * sizeof(b->entries[0]));
}

void df_standby_remove(struct df_standby *b, const char *id)
{
    (void)pthread_mutex_lock(&b->lock);
    size_t i = place_of(b, id);
    if (i < b->count)
        remove_at(b, i);
    (void)pthread_mutex_unlock(&b->lock);
}

bool df_standby_dismiss(struct df_standby *b, const char *id)
{
    (void)pthread_mutex_lock(&b->lock);
    size_t i = place_of(b, id);
    bool may_go = i < b->count && is_free(b->entries[i]);
    if (may_go)
        remove_at(b, i);
    (void)pthread_mutex_unlock(&b->lock);
    return may_go;
}

bool df_standby_is_empty(struct df_standby *b)
{
    (void)pthread_mutex_lock(&b->lock);
    bool is_empty = b->count == 0;
    (void)pthread_mutex_unlock(&b->lock);
    return is_empty;
}

size_t df_standby_list(struct df_standby *b, struct df_standby_view ret[DF_LIMIT_STANDBY])
{
    (void)pthread_mutex_lock(&b->lock);
    size_t n = b->count;
    for (size_t i = 0; i < n; i++) {
        const struct entry *e = b->entries[i];
        ret[i] = (struct df_standby_view){.form = e->form,
                                          .is_free = is_free(e),
                                          .has_step = e->step[0],
                                          .waits = e->waiters,
                                          .has_asked = e->has_asked,
                                          .is_prepared = e->preparation,
                                          .made_ms = e->made_ms,
                                          .since_ms = e->since_ms,
                                          .quiet_ms = e->quiet_ms};
        df_copy(ret[i].id, sizeof(ret[i].id), e->id);
    }
    (void)pthread_mutex_unlock(&b->lock);
    return n;
}

/* ---- what a runner does ---- */

/* Fails for an id that is not in the list. The caller holds the lock. */
static int fail_absent(const struct df_standby *b, struct df_err *err)
{
    if (b->is_open)
        return df_step_fail_over(err);
    return df_fail_reason(err, DF_ERR_RETRY, "NotListedYet",
                          "the spawner does not know yet which standby runners there are");
}

static void leave(struct waiter **list, const struct waiter *w)
{
    while (*list != w)
        list = &(*list)->next;
    *list = w->next;
}

/* The request that has w's claimId waits no more: its client has left, and asks again as w. */
static void replace(struct waiter **list, const struct waiter *w)
{
    for (struct waiter *old = *list; old; old = old->next) {
        if (!df_streq(old->id, w->id) || !df_streq(old->claim_id, w->claim_id))
            continue;
        leave(list, old);
        old->end = REPLACED;
        (void)pthread_cond_signal(&old->ended);
        return;
    }
}

static void join(struct waiter **list, struct waiter *w)
{
    replace(list, w);
    w->next = *list;
    *list = w;
}

static struct waiter waiter_of(const struct df_standby_request *r)
{
    return (struct waiter){.id = r->id, .claim_id = df_json_str(r->body, "claimId")};
}

/* The lock is not held while gone() works. */
static bool has_left(struct df_standby *b, const struct df_standby_request *r)
{
    (void)pthread_mutex_unlock(&b->lock);
    bool left = r->gone(r->arg);
    (void)pthread_mutex_lock(&b->lock);
    return left;
}

static void pause_for(struct df_standby *b, struct waiter *w, int64_t ms)
{
    const struct timespec until =
        df_mono_after_us((ms < CLIENT_CHECK_MS ? ms : CLIENT_CHECK_MS) * 1000);
    int waited = 0;
    while (w->end == WAITS && waited != ETIMEDOUT)
        waited = pthread_cond_timedwait(&w->ended, &b->lock, &until);
}

/* The list is there as long as w waits. */
static void wait_for_end(struct df_standby *b, struct waiter **list, struct waiter *w,
                         const struct df_standby_request *r, int64_t wait_ms)
{
    const int64_t until_ms = df_mono_ms() + wait_ms;
    df_cond_init(&w->ended);
    join(list, w);
    while (w->end == WAITS) {
        bool left = has_left(b, r);
        int64_t ms = until_ms - df_mono_ms();
        if (w->end != WAITS)
            break;
        if (!left && ms > 0) {
            pause_for(b, w, ms);
            continue;
        }
        leave(list, w);
        w->end = left ? LEFT : LATE;
    }
    if (w->end == OFFERED && has_left(b, r)) /* the runner asks again, and gets the step then */
        w->end = LEFT;
    (void)pthread_cond_destroy(&w->ended);
}

static bool hears_preparation(const struct entry *e, const struct df_standby_request *r)
{
    return !e->step[0] && e->preparation && df_json_bool(r->body, "prepares", false);
}

static int tell(const struct entry *e, const struct df_standby_request *r,
                struct df_standby_answer *ret, struct df_err *err)
{
    if (hears_preparation(e, r) && !(ret->preparation = cJSON_Duplicate(e->preparation, true)))
        return df_fail_oom(err);
    (void)snprintf(ret->step, sizeof(ret->step), "%s", e->step);
    return 0;
}

/* The entry may be gone afterwards. */
static void wait_in_entry(struct df_standby *b, struct entry *e, struct waiter *w,
                          const struct df_standby_request *r, int64_t wait_ms)
{
    if (!e->has_asked)
        e->since_ms = df_mono_ms();
    e->has_asked = true;
    wait_for_end(b, &e->waiters, w, r, wait_ms);
    e = find(b, r->id);
    if (e)
        e->quiet_ms = df_mono_ms();
}

/* The caller holds the lock, which the wait gives up. */
static int wait_for_step(struct df_standby *b, const struct df_standby_request *r, int64_t wait_ms,
                         struct df_standby_answer *ret, struct df_err *err)
{
    struct waiter w = waiter_of(r);
    struct entry *e = b->is_open ? find(b, r->id) : NULL; /* it may have a step */
    *ret = (struct df_standby_answer){0};
    if (e && !e->step[0] && !hears_preparation(e, r)) {
        wait_in_entry(b, e, &w, r, wait_ms);
        e = find(b, r->id);
    }
    if (!e)
        return fail_absent(b, err);
    if (w.end == LEFT)
        return df_fail_reason(err, DF_ERR_RETRY, "NotDecidedYet",
                              "the wait for a step was cut short");
    return w.end == REPLACED ? 0 : tell(e, r, ret, err);
}

int df_standby_wait(struct df_standby *b, const struct df_standby_request *r, int64_t wait_ms,
                    struct df_standby_answer *ret, struct df_err *err)
{
    (void)pthread_mutex_lock(&b->lock);
    int result = wait_for_step(b, r, wait_ms, ret, err);
    (void)pthread_mutex_unlock(&b->lock);
    return result;
}

bool df_standby_wait_for_offer(struct df_standby *b, const struct df_standby_request *r,
                               int64_t wait_ms)
{
    struct waiter w = waiter_of(r);
    (void)pthread_mutex_lock(&b->lock);
    wait_for_end(b, &b->of_plans, &w, r, wait_ms);
    (void)pthread_mutex_unlock(&b->lock);
    return w.end != REPLACED;
}

int df_standby_ref(struct df_standby *b, const char *id, cJSON **ret, struct df_err *err)
{
    (void)pthread_mutex_lock(&b->lock);
    const struct entry *e = find(b, id);
    *ret = e ? cJSON_Duplicate(e->ref, true) : NULL;
    int result = e && !*ret ? df_fail_oom(err) : 0;
    (void)pthread_mutex_unlock(&b->lock);
    return result;
}
