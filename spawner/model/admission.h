/*
 * admission.h - which waiting steps may start. There are limits on the steps that run at once: in
 * total, in a namespace, and of a class. Free slots are given out in a fixed order.
 *
 * The order: higher priority first. Within a priority the steps of runs that have begun come first
 * (an apply, whose run has its plan), the oldest of them first. The others are served in rounds
 * (fair queueing): in each round every target (an executor, or the resource of a workflow) has one
 * turn, and within a round the oldest step is first. An apply belongs to the turn of its plan. A
 * step that waits for a slot of its namespace or class does not block other steps.
 * The functions are pure, except that the number of running steps is requested from a callback: it
 * is observed and never stored.
 * Thread rule: the caller holds a lock.
 */
#ifndef DF_ADMISSION_H
#define DF_ADMISSION_H

#include "spawner/model/model.h"

struct df_admission_limits {
    int64_t steps;         /* in total */
    int64_t per_namespace; /* in each namespace */
    const cJSON *classes;  /* {name: {limit}}: a class without one has no limit; or NULL */
};

/* The kind of a limit. */
enum df_admission_by { DF_ADMISSION_ALL, DF_ADMISSION_NAMESPACE, DF_ADMISSION_CLASS };

/* A waiting step. */
struct df_admission_step {
    int64_t priority;
    bool has_begun;        /* its run has its plan: the step is an apply */
    int64_t round;         /* of a step that has begun: of no meaning */
    int64_t since_us;      /* its creation time */
    uint64_t target, hash; /* of its target and of its name: hashes are enough to tell them apart */
    const char *name_space; /* all three point into text */
    const char *class_name; /* "": none */
    const char *name;
    /* The last decision */
    bool may_start;
    bool is_woken; /* for the caller: it was notified of may_start and has not been refused since */
    enum df_admission_by by; /* the limit that it waits for */
    int64_t live, limit;     /* how many steps run under that limit, and the limit */
    char text[];
};

/* All waiting steps in their order. Empty when zero-initialised. */
struct df_admission {
    struct df_admission_step **steps;
    size_t len, cap;
    int64_t round; /* of the last step that got a slot */
};

/* Frees the waiting steps and clears *a. */
void df_admission_free(struct df_admission *a);

/* The waiting step for this document. NULL: no memory. The caller frees it. */
struct df_admission_step *df_admission_step_of(const cJSON *task) DF_MUST_CHECK;

/* Adds a step, which must not be in the list yet. Takes ownership on success. */
int df_admission_add(struct df_admission *a, struct df_admission_step *step,
                     struct df_err *err) DF_MUST_CHECK;

/* NULL: no step of this name waits. Borrowed. */
struct df_admission_step *df_admission_find(const struct df_admission *a, const char *name);

/* Removes the step from the list. The caller frees the returned step. */
struct df_admission_step *df_admission_take(struct df_admission *a, struct df_admission_step *step);

/* Counts the running steps under a limit. of: name of the namespace or class, "" for ALL. */
typedef int (*df_admission_count)(void *arg, enum df_admission_by by, const char *of, int64_t *ret,
                                  struct df_err *err);

/* Gives out the free slots in order: sets may_start of every waiting step, and for the others the
 * limit that they wait for. */
int df_admission_decide(struct df_admission *a, const struct df_admission_limits *limits,
                        df_admission_count count, void *arg, struct df_err *err) DF_MUST_CHECK;

/* The queue position: how many steps that wait for the same limit are before this one. */
size_t df_admission_ahead(const struct df_admission *a, const struct df_admission_step *step);

/* A message for people: "12 steps run, the limit is 12 (limits.steps); 3 before this one". */
void df_admission_describe(const struct df_admission *a, const struct df_admission_step *step,
                           char *to, size_t size);

#endif
