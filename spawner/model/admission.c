/*
 * admission.c - which waiting step starts next. In this order: the sorted list of waiting steps,
 * the decision about all of them, and the position and reason of a step that still waits.
 */
#include "spawner/model/admission.h"

#include "common/base/clock.h"
#include "common/base/limits.h"
#include "spawner/model/task_parts.h"

void df_admission_free(struct df_admission *a)
{
    for (size_t i = 0; i < a->len; i++)
        free(a->steps[i]);
    free(a->steps);
    *a = (struct df_admission){0};
}

/* ---- the waiting steps ---- */

static const char *put_text(char **at, const char *text)
{
    size_t n = strlen(text) + 1;
    const char *begin = memcpy(*at, text, n);
    *at += n;
    return begin;
}

struct df_admission_step *df_admission_step_of(const cJSON *task)
{
    const char *name = df_json_text(task, "metadata.name");
    const char *name_space = df_json_text(task, "metadata.namespace");
    const char *class_name = df_json_text(task, "spec.class");
    struct df_admission_step *s =
        calloc(1, sizeof(*s) + strlen(name) + strlen(name_space) + strlen(class_name) + 3);
    if (!s)
        return NULL;
    char *at = s->text;
    s->priority = df_json_int(task, "spec.priority", 0);
    s->has_begun = !df_str_empty(df_json_str(task, "spec.planFrom"));
    s->since_us = df_task_time(task, "metadata.creationTimestamp", 0);
    s->target = df_hash_str(DF_HASH_BEGIN, df_json_text(task, "spec.targetResource"));
    s->hash = df_hash_str(DF_HASH_BEGIN, name);
    s->name = put_text(&at, name);
    s->name_space = put_text(&at, name_space);
    s->class_name = put_text(&at, class_name);
    return s;
}

/* Round-robin over the targets: if steps of the target wait already, this one comes a round after
 * the last of them. The turn of a run is its plan's: its apply takes none. */
static int64_t round_of(const struct df_admission *a, const struct df_admission_step *step)
{
    int64_t last = a->round;
    if (step->has_begun)
        return 0;
    for (size_t i = 0; i < a->len; i++) {
        const struct df_admission_step *s = a->steps[i];
        if (s->target == step->target && s->priority == step->priority && s->round > last)
            last = s->round;
    }
    return last + 1;
}

static bool comes_before(const struct df_admission_step *a, const struct df_admission_step *b)
{
    if (a->priority != b->priority)
        return a->priority > b->priority;
    if (a->has_begun != b->has_begun)
        return a->has_begun;
    if (a->round != b->round)
        return a->round < b->round;
    return a->since_us != b->since_us ? a->since_us < b->since_us : strcmp(a->name, b->name) < 0;
}

/* The index of the step in the sorted list, or the index at which to insert it. */
static size_t index_of(const struct df_admission *a, const struct df_admission_step *step)
{
    size_t low = 0, high = a->len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (comes_before(a->steps[middle], step))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int grow_steps(struct df_admission *a)
{
    if (a->len < a->cap)
        return 0;
    size_t cap = a->cap ? 2 * a->cap : 16;
    struct df_admission_step **steps = reallocarray(a->steps, cap, sizeof(*steps));
    if (!steps)
        return -1;
    a->steps = steps;
    a->cap = cap;
    return 0;
}

int df_admission_add(struct df_admission *a, struct df_admission_step *step, struct df_err *err)
{
    if (grow_steps(a) < 0)
        return df_fail_oom(err);
    step->round = round_of(a, step);
    size_t i = index_of(a, step);
    memmove(&a->steps[i + 1], &a->steps[i], (a->len - i) * sizeof(*a->steps));
    a->steps[i] = step;
    a->len++;
    return 0;
}

struct df_admission_step *df_admission_find(const struct df_admission *a, const char *name)
{
    uint64_t wanted = df_hash_str(DF_HASH_BEGIN, name);
    for (size_t i = 0; i < a->len; i++)
        if (a->steps[i]->hash == wanted && strcmp(a->steps[i]->name, name) == 0)
            return a->steps[i];
    return NULL;
}

struct df_admission_step *df_admission_take(struct df_admission *a, struct df_admission_step *step)
{
    size_t i = index_of(a, step);
    if (i >= a->len || a->steps[i] != step)
        DF_BUG("the step %s does not wait", step->name);
    a->len--;
    memmove(&a->steps[i], &a->steps[i + 1], (a->len - i) * sizeof(*a->steps));
    if (step->may_start && step->round > a->round)
        a->round = step->round;
    return step;
}

/* ---- the decision ---- */

/* One limit and the number of free slots under it. */
struct quota {
    enum df_admission_by by;
    const char *of; /* borrowed */
    int64_t live, limit, left;
};

struct quotas {
    struct quota *list;
    size_t len, cap;
    const struct df_admission_limits *limits;
    df_admission_count count;
    void *arg;
};

static void free_quotas(struct quotas *r)
{
    free(r->list);
}

static int64_t limit_of(const struct df_admission_limits *l, enum df_admission_by by,
                        const char *of)
{
    if (by == DF_ADMISSION_ALL)
        return l->steps;
    if (by == DF_ADMISSION_NAMESPACE)
        return l->per_namespace;
    return df_json_int(cJSON_GetObjectItemCaseSensitive(l->classes, of), "limit", INT64_MAX);
}

/* A limit is counted once per decision, and only if it is lower than the limit of all steps. */
static int add_quota(struct quotas *r, enum df_admission_by by, const char *of, struct quota **ret,
                     struct df_err *err)
{
    int64_t limit = limit_of(r->limits, by, of), live = 0;
    bool is_counted = by == DF_ADMISSION_ALL || limit < r->limits->steps;
    if (r->len == r->cap) {
        size_t cap = r->cap ? 2 * r->cap : 8;
        struct quota *list = reallocarray(r->list, cap, sizeof(*list));
        if (!list)
            return df_fail_oom(err);
        r->list = list;
        r->cap = cap;
    }
    if (is_counted && r->count(r->arg, by, of, &live, err) < 0)
        return -1;
    struct quota *quota = &r->list[r->len++];
    *quota = (struct quota){by, of, live, limit, is_counted ? limit - live : INT64_MAX};
    *ret = quota;
    return 0;
}

static int find_quota(struct quotas *r, enum df_admission_by by, const char *of, struct quota **ret,
                      struct df_err *err)
{
    for (size_t i = 0; i < r->len; i++) {
        if (r->list[i].by == by && strcmp(r->list[i].of, of) == 0) {
            *ret = &r->list[i];
            return 0;
        }
    }
    return add_quota(r, by, of, ret, err);
}

/* The name under which this limit counts the step: "", its namespace or its class. NULL: the limit
 * does not apply, because the step has no class. */
static const char *limit_key(const struct df_admission_step *s, enum df_admission_by by)
{
    static const char all[] = "";
    if (by == DF_ADMISSION_ALL)
        return all;
    if (by == DF_ADMISSION_NAMESPACE)
        return s->name_space;
    return *s->class_name ? s->class_name : NULL;
}

#define LIMITS 3

static void hold_back(struct df_admission_step *s, const struct quota *by)
{
    s->by = by->by;
    s->live = by->live;
    s->limit = by->limit;
}

static int decide_one(struct quotas *r, struct df_admission_step *s, struct df_err *err)
{
    struct quota *quota = NULL;
    s->may_start = false;
    for (int by = 0; by < LIMITS; by++) {
        const char *of = limit_key(s, (enum df_admission_by)by);
        if (!of)
            continue;
        if (find_quota(r, (enum df_admission_by)by, of, &quota, err) < 0)
            return -1;
        if (quota->left <= 0) {
            hold_back(s, quota);
            return 0;
        }
    }
    s->may_start = true;
    for (int by = 0; by < LIMITS; by++) { /* the loop above found them all: this cannot fail */
        const char *of = limit_key(s, (enum df_admission_by)by);
        if (of && find_quota(r, (enum df_admission_by)by, of, &quota, err) < 0)
            return -1;
        if (of)
            quota->left--;
    }
    return 0;
}

int df_admission_decide(struct df_admission *a, const struct df_admission_limits *limits,
                        df_admission_count count, void *arg, struct df_err *err)
{
    DF_CLEANUP(free_quotas) struct quotas quotas = {.limits = limits, .count = count, .arg = arg};
    for (size_t i = 0; i < a->len; i++)
        if (decide_one(&quotas, a->steps[i], err) < 0)
            return -1;
    return 0;
}

/* ---- position and reason ---- */

size_t df_admission_ahead(const struct df_admission *a, const struct df_admission_step *step)
{
    const char *of = limit_key(step, step->by);
    size_t n = 0;
    for (size_t i = 0; i < a->len && a->steps[i] != step; i++) {
        const char *its = limit_key(a->steps[i], step->by);
        n += its && strcmp(its, of) == 0;
    }
    return n;
}

void df_admission_describe(const struct df_admission *a, const struct df_admission_step *step,
                           char *to, size_t size)
{
    static const char *const words[] = {"", " in the namespace ", " of the class "};
    static const char *const keys[] = {"limits.steps", "limits.perNamespace", "classes."};
    const char *of = limit_key(step, step->by);
    bool is_class = step->by == DF_ADMISSION_CLASS;
    size_t ahead = df_admission_ahead(a, step);
    bool is_one = step->live == 1;
    char before[48] = "it is the next";
    if (ahead)
        (void)snprintf(before, sizeof(before), "%zu before this one", ahead);
    (void)snprintf(to, size, "%lld step%s%s%s %s, the limit is %lld (%s%s%s); %s",
                   (long long)step->live, is_one ? "" : "s", words[step->by], of,
                   is_one ? "runs" : "run", (long long)step->limit, keys[step->by],
                   is_class ? of : "", is_class ? ".limit" : "", before);
}
