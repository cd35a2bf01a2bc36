/*
 * runners.c - in this order: what is counted (forms, demands, places), which runner is missing,
 * which one is too much, and df_runners_next().
 */
#include "spawner/model/runners.h"

#include <stdlib.h>
#include <string.h>

enum {
    LOOK_MS = 5000,    /* between two looks */
    REFILL_MS = 1000,  /* after a runner was taken, so that its step works first */
    LINGER_MS = 30000, /* of a class's surplus: its queue may grow again */
    QUIET_MS = 30000,  /* a runner that asks no more for so long is gone */
};

/* ---- forms ---- */

static int compare_forms(const void *a, const void *b)
{
    const struct df_runner_form *x = a, *y = b;
    int digests = strcmp(x->digest, y->digest);
    return digests ? digests : strcmp(x->run, y->run);
}

/* How many runners a class is to have. later: with those for later steps. */
static int64_t size_of(const struct df_runner_demand *class, bool later)
{
    int64_t size = class->waiting + (later ? class->min : 0);
    return size < class->max ? size : class->max;
}

/* Equal forms, which are neighbours, become one. */
static void merge_forms(struct df_runners *r)
{
    size_t n = 0;
    for (size_t i = 0; i < r->form_count; i++) {
        const struct df_runner_form *f = &r->forms[i];
        if (n && compare_forms(&r->forms[n - 1], f) == 0) {
            r->forms[n - 1].idle += f->idle;
            r->forms[n - 1].wanted += f->wanted;
            r->forms[n - 1].wanted_now += f->wanted_now;
        } else {
            r->forms[n++] = *f;
        }
    }
    r->form_count = n;
}

static void count_forms(struct df_runners *r)
{
    r->form_count = 0;
    for (size_t i = 0; i < r->runner_count; i++) {
        const struct df_runner *v = &r->runners[i];
        if (!v->has_step)
            r->forms[r->form_count++] =
                (struct df_runner_form){.digest = v->digest, .run = v->run, .idle = 1};
    }
    for (size_t i = 0; i < r->demand_count; i++) {
        const struct df_runner_demand *d = &r->demands[i];
        if (!d->run[0])
            r->forms[r->form_count++] = (struct df_runner_form){.digest = d->digest,
                                                                .run = d->run,
                                                                .wanted = size_of(d, true),
                                                                .wanted_now = size_of(d, false)};
    }
    qsort(r->forms, r->form_count, sizeof(r->forms[0]), compare_forms);
    merge_forms(r);
}

struct df_runner_form df_runners_form(const struct df_runners *r, const char *digest,
                                      const char *run)
{
    const struct df_runner_form key = {.digest = digest, .run = run};
    const struct df_runner_form *found =
        bsearch(&key, r->forms, r->form_count, sizeof(key), compare_forms);
    return found ? *found : key;
}

/* ---- demands ---- */

/* Those of classes come first; a run has one. */
static int compare_demands(const void *a, const void *b)
{
    const struct df_runner_demand *x = *(const struct df_runner_demand *const *)a,
                                  *y = *(const struct df_runner_demand *const *)b;
    int runs = strcmp(x->run, y->run);
    return runs ? runs : strcmp(x->digest, y->digest);
}

static int compare_run(const void *runner, const void *demand)
{
    const struct df_runner *v = runner;
    return strcmp(v->run, (*(const struct df_runner_demand *const *)demand)->run);
}

static int compare_form(const void *runner, const void *demand)
{
    const struct df_runner *v = runner;
    int runs = compare_run(runner, demand);
    return runs ? runs
                : strcmp(v->digest, (*(const struct df_runner_demand *const *)demand)->digest);
}

static void sort_demands(struct df_runners *r)
{
    for (size_t i = 0; i < r->demand_count; i++)
        r->by_run[i] = &r->demands[i];
    qsort(r->by_run, r->demand_count, sizeof(r->by_run[0]), compare_demands);
}

static const struct df_runner_demand *search(const struct df_runners *r, const struct df_runner *v,
                                             int (*compare)(const void *, const void *))
{
    const struct df_runner_demand *const *found =
        bsearch(v, r->by_run, r->demand_count, sizeof(r->by_run[0]), compare);
    return found ? *found : NULL;
}

const struct df_runner_demand *df_runners_demand_of(const struct df_runners *r,
                                                    const struct df_runner *runner)
{
    return search(r, runner, compare_form);
}

/* ---- places ---- */

/* Of a runner for an apply of which a person is asked the place can be given to others. */
static void count_ahead(struct df_runners *r)
{
    r->ahead = r->sure = 0;
    for (size_t i = 0; i < r->runner_count; i++) {
        const struct df_runner *v = &r->runners[i];
        if (!v->is_free || !v->run[0])
            continue;
        const struct df_runner_demand *d = search(r, v, compare_run);
        r->ahead++;
        r->sure += !d || !d->is_asked;
    }
}

void df_runners_count(struct df_runners *r)
{
    sort_demands(r);
    count_forms(r);
    count_ahead(r);
}

static bool is_crowded(const struct df_runners *r)
{
    return r->now_ms < r->crowded_until_ms;
}

static bool refills(const struct df_runners *r)
{
    return r->now_ms < r->taken_ms + REFILL_MS;
}

/* ---- what is missing ---- */

/* A runner ahead of an apply will need a place among the steps that may run at once. Those of
 * classes are nobody's step. A runner that was taken comes back if its step has to wait for a
 * slot. */
static bool is_missing(const struct df_runners *r, const struct df_runner_demand *d)
{
    const struct df_runner_form any = df_runners_form(r, d->digest, "");
    if (!d->run[0])
        return any.idle < (refills(r) ? any.wanted_now : any.wanted);
    return any.idle == 0 && df_runners_form(r, d->digest, d->run).idle == 0 && !is_crowded(r) &&
           d->room > (d->is_asked ? r->ahead : r->sure);
}

/* Its index; demand_count: none is missing. */
static size_t missing(const struct df_runners *r)
{
    size_t i = 0;
    if (!r->may_make || r->runner_count == DF_LIMIT_STANDBY)
        return r->demand_count;
    while (i < r->demand_count &&
           (r->now_ms < r->demands[i].retry_ms || !is_missing(r, &r->demands[i])))
        i++;
    return i;
}

/* ---- what is too much ---- */

/* A runner gives its place in the cluster to a step that finds none; while a person is asked, it
 * may wait for long, and gives its place under the limits, too. */
static bool yields(const struct df_runners *r, const struct df_runner_demand *d)
{
    return is_crowded(r) || (d->is_asked && d->room <= r->ahead - 1);
}

static bool is_unwanted(const struct df_runners *r, const struct df_runner *v)
{
    if (v->run[0]) {
        const struct df_runner_demand *d = search(r, v, compare_run);
        return !d || yields(r, d);
    }
    const struct df_runner_form any = df_runners_form(r, v->digest, "");
    return any.idle > any.wanted && r->now_ms >= v->since_ms + LINGER_MS;
}

/* It never came, it went away, or it has waited so long that its Job's deadline is near. */
static bool is_over(const struct df_runners *r, const struct df_runner *v)
{
    return (!v->has_asked && r->now_ms > v->since_ms + r->pending_ms) ||
           (v->has_asked && !v->waits && r->now_ms > v->quiet_ms + QUIET_MS) ||
           r->now_ms > v->made_ms + (DF_STANDBY_LIFE_SECONDS - 60) * INT64_C(1000);
}

/* Its index; runner_count: none is too much. */
static size_t surplus(const struct df_runners *r)
{
    size_t i = 0;
    while (i < r->runner_count && !(r->runners[i].is_free &&
                                    (is_over(r, &r->runners[i]) || is_unwanted(r, &r->runners[i]))))
        i++;
    return i;
}

struct df_runners_verdict df_runners_next(const struct df_runners *r)
{
    size_t i = missing(r);
    if (i < r->demand_count)
        return (struct df_runners_verdict){.next = DF_RUNNERS_MAKE, .index = i};
    i = surplus(r);
    if (i < r->runner_count)
        return (struct df_runners_verdict){.next = DF_RUNNERS_REMOVE, .index = i};
    return (struct df_runners_verdict){.wait_ms = refills(r) ? REFILL_MS : LOOK_MS};
}
