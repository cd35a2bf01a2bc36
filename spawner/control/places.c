#include "spawner/control/places.h"

#include "common/base/clock.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/metrics/metrics.h"
#include "spawner/control/loop.h"
#include "spawner/news/transitions.h"

int df_places_init(struct df_places *p, struct df_err *err)
{
    (void)pthread_mutex_init(&p->lock, NULL);
    p->waits =
        df_metric_gauge("dayfly_steps_waiting", "Steps that wait for a place (limits).", NULL);
    p->entering = calloc(DF_LIMIT_WORKERS, sizeof(struct df_admission_step *));
    return p->entering ? 0 : df_fail_oom(err);
}

void df_places_free(struct df_places *p)
{
    df_admission_free(&p->waiting);
    free(p->entering);
    (void)pthread_mutex_destroy(&p->lock);
}

/* ---- labels ---- */

static const char *const labels[] = {[DF_ADMISSION_ALL] = DF_LABEL_LIVE,
                                     [DF_ADMISSION_NAMESPACE] = DF_LABEL_LIVE_NAMESPACE,
                                     [DF_ADMISSION_CLASS] = DF_LABEL_LIVE_CLASS};

int df_place_set(cJSON *task, struct df_err *err)
{
    const char *class_name = df_json_str(task, "spec.class");
    if (df_label_set(task, DF_LABEL_LIVE, "true", err) < 0 ||
        df_label_set(task, DF_LABEL_LIVE_NAMESPACE, df_json_str(task, "metadata.namespace"), err) <
            0)
        return -1;
    return df_label_set(task, DF_LABEL_LIVE_CLASS, class_name, err);
}

int df_place_clear(cJSON *task, struct df_err *err)
{
    for (size_t i = 0; i < DF_ARRAY_SIZE(labels); i++)
        if (df_label_set(task, labels[i], NULL, err) < 0)
            return -1;
    return 0;
}

/* ---- the count ---- */

static bool is_under(const struct df_admission_step *s, enum df_admission_by by, const char *of)
{
    return by == DF_ADMISSION_ALL ||
           strcmp(by == DF_ADMISSION_CLASS ? s->class_name : s->name_space, of) == 0;
}

/* A step that is just being written may count twice for a moment: then one too few starts, and is
 * woken when that is over. */
static int count(void *arg, enum df_admission_by by, const char *of, int64_t *ret,
                 struct df_err *err)
{
    const struct df_control *c = arg;
    const struct df_places *p = &c->places;
    DF_FREE char *label = df_strf("%s=%s", labels[by], by == DF_ADMISSION_ALL ? "true" : of);
    int64_t live = 0;
    if (!label)
        return df_fail_oom(err);
    if (df_store_count(c->s->store, DF_KIND_TASK_ACTION, label, &live, err) < 0)
        return -1;
    for (size_t i = 0; i < p->entering_count; i++)
        live += is_under(p->entering[i], by, of);
    *ret = live;
    return 0;
}

static int decide(struct df_control *c, struct df_err *err)
{
    const struct df_config *config = c->s->config;
    const struct df_admission_limits limits = {.steps = config->limit_steps,
                                               .per_namespace = config->limit_per_namespace,
                                               .classes = config->classes};
    return df_admission_decide(&c->places.waiting, &limits, count, c, err);
}

/* ---- waking ---- */

static void wake_locked(struct df_control *c)
{
    const struct df_admission *a = &c->places.waiting;
    struct df_err err = {0};
    if (!a->len)
        return;
    if (decide(c, &err) < 0) {
        df_warn("who waits for a place is not woken now: %s", err.message);
        return;
    }
    for (size_t i = 0; i < a->len; i++) {
        struct df_admission_step *step = a->steps[i];
        if (step->may_start && !step->is_woken) /* thousands may start, once each */
            df_control_wake(c, DF_KIND_TASK_ACTION, step->name);
        step->is_woken |= step->may_start;
    }
}

void df_places_wake(struct df_control *c)
{
    (void)pthread_mutex_lock(&c->places.lock);
    wake_locked(c);
    (void)pthread_mutex_unlock(&c->places.lock);
}

static void show_waiting(const struct df_places *p)
{
    df_metric_set(p->waits, NULL, (double)p->waiting.len);
}

/* ---- coming and going ---- */

/* The step's own entry among those that wait, made when there is none. */
static int enter(struct df_control *c, const cJSON *task, struct df_admission_step **ret,
                 struct df_err *err)
{
    struct df_admission *a = &c->places.waiting;
    *ret = df_admission_find(a, df_json_str(task, "metadata.name"));
    if (*ret)
        return 0;
    DF_FREE struct df_admission_step *made = df_admission_step_of(task);
    if (!made)
        return df_fail_oom(err);
    if (df_admission_add(a, made, err) < 0)
        return -1;
    *ret = DF_TAKE(made);
    return 0;
}

int df_places_expect(struct df_control *c, const cJSON *task, struct df_err *err)
{
    struct df_admission_step *step = NULL;
    if (df_task_is_final(task) || df_label_has(task, DF_LABEL_LIVE) ||
        !df_str_empty(df_json_str(task, "status.lockedBy")))
        return 0;
    (void)pthread_mutex_lock(&c->places.lock);
    int result = enter(c, task, &step, err);
    show_waiting(&c->places);
    (void)pthread_mutex_unlock(&c->places.lock);
    return result;
}

void df_places_leave(struct df_control *c, const char *name)
{
    struct df_places *p = &c->places;
    (void)pthread_mutex_lock(&p->lock);
    struct df_admission_step *step = df_admission_find(&p->waiting, name);
    if (step) {
        step->may_start = false; /* it had no turn */
        free(df_admission_take(&p->waiting, step));
        show_waiting(p);
        wake_locked(c);
    }
    (void)pthread_mutex_unlock(&p->lock);
}

/* ---- take ---- */

#define AGAIN_US INT64_C(15000000)
#define AGAIN_EACH_US INT64_C(1000000)

/* What a step that finds no place is told, and when it asks again: the more are before it the
 * later, so that ten thousand that wait do not write all the time. */
struct refusal {
    char message[256];
    int64_t wake_us;
};

/* *ret_entry: those of the caller who enters; NULL: refused. */
static int ask(struct df_control *c, const cJSON *task, struct df_admission_step **ret_entry,
               struct refusal *ret, struct df_err *err)
{
    struct df_places *p = &c->places;
    struct df_admission_step *step = NULL;
    if (enter(c, task, &step, err) < 0 || decide(c, err) < 0)
        return -1;
    if (step->may_start) {
        *ret_entry = p->entering[p->entering_count++] = df_admission_take(&p->waiting, step);
    } else {
        step->is_woken = false;
        int64_t ahead = (int64_t)df_admission_ahead(&p->waiting, step);
        df_admission_tell(&p->waiting, step, ret->message, sizeof(ret->message));
        ret->wake_us = df_real_us() + AGAIN_US + ahead * AGAIN_EACH_US;
    }
    show_waiting(p);
    return 0;
}

/* The store knows it now, or it did not come to that. */
static void has_entered(struct df_control *c, struct df_admission_step *entry)
{
    struct df_places *p = &c->places;
    (void)pthread_mutex_lock(&p->lock);
    size_t i = 0;
    while (p->entering[i] != entry)
        i++;
    p->entering[i] = p->entering[--p->entering_count];
    free(entry);
    wake_locked(c);
    (void)pthread_mutex_unlock(&p->lock);
}

static int set_queued(cJSON *task, void *arg, struct df_err *err)
{
    const char *message = arg;
    if (df_task_is_final(task) || df_label_has(task, DF_LABEL_LIVE) ||
        df_streq(df_task_message(task), message))
        return 1;
    return df_task_set_conditions(task, DF_OUTCOME_NONE, "Queued", message, df_real_us(), err);
}

int df_places_take(struct df_control *c, const cJSON *task, df_store_change change, void *arg,
                   int64_t *ret_wake_us, struct df_err *err)
{
    const char *name = df_json_str(task, "metadata.name");
    struct df_admission_step *entry = NULL;
    struct refusal refusal = {0};
    *ret_wake_us = 0;
    if (df_label_has(task, DF_LABEL_LIVE))
        return df_task_modify(c->s, name, change, arg, NULL, err);
    (void)pthread_mutex_lock(&c->places.lock);
    int result = ask(c, task, &entry, &refusal, err);
    (void)pthread_mutex_unlock(&c->places.lock);
    if (result < 0)
        return -1;
    if (entry) {
        result = df_task_modify(c->s, name, change, arg, NULL, err);
        has_entered(c, entry);
        return result;
    }
    *ret_wake_us = refusal.wake_us;
    return df_task_modify(c->s, name, set_queued, refusal.message, NULL, err);
}
