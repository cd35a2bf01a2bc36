/*
 * What a look of the pool of standby runners needs to know, counted once: with hundreds of runners and
 * demands each question is a search in a sorted list.
 */
#include "common/base/log.h"
#include "spawner/control/standby/standby_parts.h"

/* ---- forms ---- */

static int compare_forms(const void *a, const void *b)
{
    const struct df_form_count *x = a, *y = b;
    int digests = strcmp(x->digest, y->digest);
    return digests ? digests : strcmp(x->run, y->run);
}

/* How many runners a class is to have. now: for the steps that wait, without those for later ones. */
static int64_t size_of(const struct df_standby_pool *pool, const struct df_demand *class, bool now)
{
    int64_t waiting = df_slots_waiting(&pool->c->slots, df_json_str(class->task, "spec.class"));
    int64_t size = waiting + (now ? 0 : class->min);
    return size < class->max ? size : class->max;
}

/* Equal forms, which are neighbours, become one. */
static void merge_forms(struct df_standby_tally *t)
{
    size_t n = 0;
    for (size_t i = 0; i < t->form_count; i++) {
        const struct df_form_count *f = &t->forms[i];
        if (n && compare_forms(&t->forms[n - 1], f) == 0) {
            t->forms[n - 1].idle += f->idle;
            t->forms[n - 1].wanted += f->wanted;
            t->forms[n - 1].wanted_now += f->wanted_now;
        } else {
            t->forms[n++] = *f;
        }
    }
    t->form_count = n;
}

static void count_forms(struct df_standby_pool *pool)
{
    struct df_standby_tally *t = &pool->tally;
    t->form_count = 0;
    for (size_t i = 0; i < pool->seen_count; i++) {
        const struct df_standby_view *v = &pool->seen[i];
        if (!v->has_step)
            t->forms[t->form_count++] =
                (struct df_form_count){.digest = v->form.digest, .run = v->form.run, .idle = 1};
    }
    for (size_t i = 0; i < pool->count; i++) {
        const struct df_demand *d = pool->demands[i];
        if (!d->run[0])
            t->forms[t->form_count++] =
                (struct df_form_count){.digest = d->form.digest,
                                       .run = d->run,
                                       .wanted = size_of(pool, d, false),
                                       .wanted_now = size_of(pool, d, true)};
    }
    qsort(t->forms, t->form_count, sizeof(t->forms[0]), compare_forms);
    merge_forms(t);
}

struct df_form_count df_tally_form(const struct df_standby_pool *pool, const char *digest,
                                   const char *run)
{
    const struct df_standby_tally *t = &pool->tally;
    const struct df_form_count key = {.digest = digest, .run = run};
    const struct df_form_count *found =
        bsearch(&key, t->forms, t->form_count, sizeof(key), compare_forms);
    return found ? *found : key;
}

/* ---- demands ---- */

/* Those of classes come first; a run has one. */
static int compare_demands(const void *a, const void *b)
{
    const struct df_demand *x = *(struct df_demand *const *)a, *y = *(struct df_demand *const *)b;
    int runs = strcmp(x->run, y->run);
    return runs ? runs : strcmp(x->form.digest, y->form.digest);
}

static int compare_run(const void *run, const void *demand)
{
    return strcmp(run, (*(struct df_demand *const *)demand)->run);
}

static int compare_view(const void *view, const void *demand)
{
    const struct df_standby_view *v = view;
    int runs = compare_run(v->form.run, demand);
    return runs ? runs : strcmp(v->form.digest, (*(struct df_demand *const *)demand)->form.digest);
}

static void sort_demands(struct df_standby_pool *pool)
{
    struct df_standby_tally *t = &pool->tally;
    memcpy(t->by_run, pool->demands, pool->count * sizeof(t->by_run[0]));
    qsort(t->by_run, pool->count, sizeof(t->by_run[0]), compare_demands);
}

static const struct df_demand *search(const struct df_standby_pool *pool, const void *key,
                                      int (*compare)(const void *, const void *))
{
    struct df_demand *const *found =
        bsearch(key, pool->tally.by_run, pool->count, sizeof(pool->tally.by_run[0]), compare);
    return found ? *found : NULL;
}

const struct df_demand *df_tally_demand_of_run(const struct df_standby_pool *pool,
                                               const struct df_standby_view *v)
{
    return search(pool, v->form.run, compare_run);
}

const struct df_demand *df_tally_demand(const struct df_standby_pool *pool,
                                        const struct df_standby_view *v)
{
    return search(pool, v, compare_view);
}

/* ---- places ---- */

/* Of a runner for an apply of which a person is asked the place can be given to others. */
static void count_ahead(struct df_standby_pool *pool)
{
    struct df_standby_tally *t = &pool->tally;
    t->ahead = t->sure = 0;
    for (size_t i = 0; i < pool->seen_count; i++) {
        const struct df_standby_view *v = &pool->seen[i];
        if (!v->is_free || !v->form.run[0])
            continue;
        const struct df_demand *d = df_tally_demand_of_run(pool, v);
        t->ahead++;
        t->sure += !d || !d->until_ms;
    }
}

static const char *text_at(const struct df_demand *d, const char *path)
{
    const char *text = df_json_str(d->task, path);
    return text ? text : "";
}

/* The limits of a step are those of its namespace and class: few of them differ. */
int64_t df_tally_room(struct df_standby_pool *pool, const struct df_demand *d)
{
    struct df_standby_tally *t = &pool->tally;
    const char *name_space = text_at(d, "metadata.namespace"),
               *class_name = text_at(d, "spec.class");
    struct df_err why = {0};
    for (size_t i = 0; i < t->room_count; i++)
        if (df_streq(t->rooms[i].name_space, name_space) &&
            df_streq(t->rooms[i].class_name, class_name))
            return t->rooms[i].left;
    struct df_room *room = &t->rooms[t->room_count++];
    *room = (struct df_room){name_space, class_name, 0};
    if (df_slots_room(&pool->c->slots, d->task, &room->left, &why) < 0)
        df_debug("run %s: no standby runner for its apply: %s", d->run, why.message);
    return room->left;
}

void df_tally_take(struct df_standby_pool *pool)
{
    pool->tally.room_count = 0;
    sort_demands(pool);
    count_forms(pool);
    count_ahead(pool);
}
