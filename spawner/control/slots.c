/*
 * slots.c - df_slots_acquire() goes through the waiting steps in their order and counts, by label,
 * the live steps under each limit. Read count(), decide(), then df_slots_acquire() and
 * df_slots_unreserve().
 */
#include "spawner/control/slots.h"

#include "common/base/clock.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/metrics/metrics.h"
#include "spawner/model/labels.h"

int df_slots_init(struct df_slots *l, struct df_spawner *s, struct df_queue *queue,
                  struct df_err *err)
{
    l->s = s;
    l->queue = queue;
    (void)pthread_mutex_init(&l->lock, NULL);
    l->waits =
        df_metric_gauge("dayfly_steps_waiting", "Steps that wait for a slot (limits).", NULL);
    l->reserved = calloc(DF_LIMIT_WORKERS, sizeof(struct df_admission_step *));
    return l->reserved ? 0 : df_fail_oom(err);
}

void df_slots_free(struct df_slots *l)
{
    df_admission_free(&l->waiting);
    free(l->reserved);
    (void)pthread_mutex_destroy(&l->lock);
}

/* ---- labels ---- */

static const char *const labels[] = {[DF_ADMISSION_ALL] = DF_LABEL_LIVE,
                                     [DF_ADMISSION_NAMESPACE] = DF_LABEL_LIVE_NAMESPACE,
                                     [DF_ADMISSION_CLASS] = DF_LABEL_LIVE_CLASS};

int df_slot_set(cJSON *task, struct df_err *err)
{
    const char *class_name = df_json_str(task, "spec.class");
    if (df_label_set(task, DF_LABEL_LIVE, "true", err) < 0 ||
        df_label_set(task, DF_LABEL_LIVE_NAMESPACE, df_json_str(task, "metadata.namespace"), err) <
            0)
        return -1;
    return df_label_set(task, DF_LABEL_LIVE_CLASS, class_name, err);
}

int df_slot_clear(cJSON *task, struct df_err *err)
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

/* A step whose write is under way may count twice for a moment. Then one step too few may start;
 * df_slots_unreserve() wakes it after that write. */
static int count(void *arg, enum df_admission_by by, const char *of, int64_t *ret,
                 struct df_err *err)
{
    const struct df_slots *l = arg;
    DF_FREE char *label = df_strf("%s=%s", labels[by], by == DF_ADMISSION_ALL ? "true" : of);
    int64_t live = 0;
    if (!label)
        return df_fail_oom(err);
    if (df_store_count(l->s->store, DF_KIND_TASK_ACTION, label, &live, err) < 0)
        return -1;
    for (size_t i = 0; i < l->reserved_count; i++)
        live += is_under(l->reserved[i], by, of);
    *ret = live;
    return 0;
}

static int decide(struct df_slots *l, struct df_err *err)
{
    const struct df_config *config = l->s->config;
    const struct df_admission_limits limits = {.steps = config->limit_steps,
                                               .per_namespace = config->limit_per_namespace,
                                               .classes = config->classes};
    return df_admission_decide(&l->waiting, &limits, count, l, err);
}

static int64_t limit_of(const struct df_config *config, enum df_admission_by by,
                        const char *class_name)
{
    const cJSON *class = cJSON_GetObjectItemCaseSensitive(config->classes, class_name);
    switch (by) {
    case DF_ADMISSION_NAMESPACE:
        return config->limit_per_namespace;
    case DF_ADMISSION_CLASS:
        return df_json_int(class, "limit", DF_LIMIT_STEPS);
    case DF_ADMISSION_ALL:
    default:
        return config->limit_steps;
    }
}

static int room_of(const struct df_slots *l, const struct df_admission_step *step, int64_t *ret,
                   struct df_err *err)
{
    const char *const of[] = {[DF_ADMISSION_ALL] = "",
                              [DF_ADMISSION_NAMESPACE] = step->name_space,
                              [DF_ADMISSION_CLASS] = step->class_name};
    *ret = DF_LIMIT_STEPS;
    for (size_t by = 0; by < DF_ARRAY_SIZE(of); by++) {
        int64_t live = 0;
        if (by == DF_ADMISSION_CLASS && !of[by][0])
            continue;
        if (count((void *)(uintptr_t)l, (enum df_admission_by)by, of[by], &live, err) < 0)
            return -1;
        int64_t left = limit_of(l->s->config, (enum df_admission_by)by, step->class_name) - live;
        *ret = left < *ret ? left : *ret;
    }
    return 0;
}

/* ---- waking ---- */

static void wake_locked(struct df_slots *l)
{
    const struct df_admission *a = &l->waiting;
    struct df_err err = {0};
    if (!a->len)
        return;
    if (decide(l, &err) < 0) {
        df_warn("the steps that wait for a slot are not woken now: %s", err.message);
        return;
    }
    for (size_t i = 0; i < a->len; i++) {
        struct df_admission_step *step = a->steps[i];
        if (step->may_start && !step->is_woken) /* thousands may start: wake each one once */
            df_queue_wake(l->queue, DF_KIND_TASK_ACTION, step->name);
        step->is_woken |= step->may_start;
    }
}

void df_slots_wake(struct df_slots *l)
{
    (void)pthread_mutex_lock(&l->lock);
    wake_locked(l);
    (void)pthread_mutex_unlock(&l->lock);
}

static void show_waiting(const struct df_slots *l)
{
    df_metric_set(l->waits, NULL, (double)l->waiting.len);
}

/* ---- the waiting steps ---- */

/* The step's entry in the queue; creates it if there is none. */
static int find_or_enqueue(struct df_slots *l, const cJSON *task, struct df_admission_step **ret,
                           struct df_err *err)
{
    struct df_admission *a = &l->waiting;
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

int df_slots_enqueue(struct df_slots *l, const cJSON *task, struct df_err *err)
{
    struct df_admission_step *step = NULL;
    if (df_task_is_final(task) || df_label_has(task, DF_LABEL_LIVE) ||
        !df_str_empty(df_json_str(task, "status.lockedBy")))
        return 0;
    (void)pthread_mutex_lock(&l->lock);
    int result = find_or_enqueue(l, task, &step, err);
    show_waiting(l);
    (void)pthread_mutex_unlock(&l->lock);
    return result;
}

void df_slots_dequeue(struct df_slots *l, const char *name)
{
    (void)pthread_mutex_lock(&l->lock);
    struct df_admission_step *step = df_admission_find(&l->waiting, name);
    if (step) {
        step->may_start = false; /* it leaves without a slot: its turn does not count */
        free(df_admission_take(&l->waiting, step));
        show_waiting(l);
        wake_locked(l);
    }
    (void)pthread_mutex_unlock(&l->lock);
}

int64_t df_slots_waiting(struct df_slots *l, const char *class_name)
{
    int64_t n = 0;
    (void)pthread_mutex_lock(&l->lock);
    for (size_t i = 0; i < l->waiting.len; i++)
        n += df_streq(l->waiting.steps[i]->class_name, class_name ? class_name : "");
    (void)pthread_mutex_unlock(&l->lock);
    return n;
}

/* Does it wait for a limit under which the other one counts, too? */
static bool competes(const struct df_admission_step *waiting, const struct df_admission_step *other)
{
    const char *of = waiting->by == DF_ADMISSION_CLASS ? waiting->class_name : waiting->name_space;
    return waiting->may_start || is_under(other, waiting->by, of);
}

static int free_room(const struct df_slots *l, const struct df_admission_step *step, int64_t *ret,
                     struct df_err *err)
{
    if (room_of(l, step, ret, err) < 0)
        return -1;
    for (size_t i = 0; i<l->waiting.len && * ret> 0; i++)
        if (competes(l->waiting.steps[i], step))
            *ret = 0;
    return 0;
}

int df_slots_room(struct df_slots *l, const cJSON *task, int64_t *ret, struct df_err *err)
{
    DF_FREE struct df_admission_step *step = df_admission_step_of(task);
    if (!step)
        return df_fail_oom(err);
    (void)pthread_mutex_lock(&l->lock);
    int result = free_room(l, step, ret, err);
    (void)pthread_mutex_unlock(&l->lock);
    return result;
}

/* ---- the target of a workflow ---- */

static bool is_reserved(const struct df_slots *l, const char *name)
{
    for (size_t i = 0; i < l->reserved_count; i++)
        if (df_streq(l->reserved[i]->name, name))
            return true;
    return false;
}

/* The order of the queue does not tell who holds the target: a document may come into the queue
 * late, and before those that have begun. holder: "" if nobody does. */
static int find_holder(const struct df_slots *l, const cJSON *task, char holder[64],
                       struct df_err *err)
{
    const char *lock = df_label_get(task, DF_LABEL_QUEUE),
               *own = df_json_str(task, "metadata.name");
    DF_FREE char *label = lock ? df_strf(DF_LABEL_QUEUE "=%s", lock) : NULL;
    DF_STRS struct df_strs queue = {0}, live = {0};
    if (!lock)
        return 0;
    if (!label)
        return df_fail_oom(err);
    if (df_store_names(l->s->store, DF_KIND_TASK_ACTION, label, &queue, err) < 0)
        return -1;
    if (queue.len > 1 && /* else it is alone */
        df_store_names(l->s->store, DF_KIND_TASK_ACTION, DF_LABEL_LIVE "=true", &live, err) < 0)
        return -1;
    for (size_t i = 0; i < queue.len; i++) {
        const char *name = queue.items[i];
        if (!df_streq(name, own) && (df_strs_has(&live, name) || is_reserved(l, name)))
            df_copy(holder, 64, name);
    }
    return 0;
}

/* ---- acquire ---- */

#define AGAIN_US INT64_C(15000000)
#define RECOUNT_US INT64_C(1000000) /* the count that the message shows may have one too many */
#define AGAIN_EACH_US INT64_C(1000000)

/* Grants a slot, or says when the refused step tries again: the delay grows with its queue
 * position, to limit the writes when thousands wait. */
static int slots_grant(struct df_slots *l, const cJSON *task, struct df_slot *ret,
                       struct df_err *err)
{
    struct df_admission_step *step = NULL;
    if (find_or_enqueue(l, task, &step, err) < 0 || decide(l, err) < 0)
        return -1;
    if (step->may_start) {
        ret->entry = l->reserved[l->reserved_count++] = df_admission_take(&l->waiting, step);
    } else {
        step->is_woken = false;
        int64_t ahead = (int64_t)df_admission_ahead(&l->waiting, step);
        int64_t pause_us = l->reserved_count ? RECOUNT_US : AGAIN_US;
        df_admission_describe(&l->waiting, step, ret->message, sizeof(ret->message));
        ret->wake_us = df_real_us() + pause_us + ahead * AGAIN_EACH_US;
    }
    show_waiting(l);
    return 0;
}

int df_slots_acquire(struct df_slots *l, const cJSON *task, struct df_slot *ret, struct df_err *err)
{
    *ret = (struct df_slot){0};
    if (df_label_has(task, DF_LABEL_LIVE))
        return 0;
    (void)pthread_mutex_lock(&l->lock);
    int result = find_holder(l, task, ret->holder, err);
    if (result == 0 && !ret->holder[0])
        result = slots_grant(l, task, ret, err);
    (void)pthread_mutex_unlock(&l->lock);
    return result;
}

int df_slots_acquire_free(struct df_slots *l, const cJSON *task, struct df_slot *ret,
                          struct df_err *err)
{
    DF_FREE struct df_admission_step *step = df_admission_step_of(task);
    int64_t room = 0;
    *ret = (struct df_slot){0};
    if (!step)
        return df_fail_oom(err);
    (void)pthread_mutex_lock(&l->lock);
    int result = free_room(l, step, &room, err);
    if (result == 0 && room > 0)
        ret->entry = l->reserved[l->reserved_count++] = DF_TAKE(step);
    (void)pthread_mutex_unlock(&l->lock);
    return result;
}

void df_slots_unreserve(struct df_slots *l, struct df_slot *slot)
{
    if (!slot->entry)
        return;
    (void)pthread_mutex_lock(&l->lock);
    size_t i = 0;
    while (l->reserved[i] != slot->entry)
        i++;
    l->reserved[i] = l->reserved[--l->reserved_count];
    free(DF_TAKE(slot->entry));
    wake_locked(l);
    (void)pthread_mutex_unlock(&l->lock);
}
