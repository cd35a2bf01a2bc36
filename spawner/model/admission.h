/*
 * admission.h - who of those that wait may start: limits on steps at once, in all, in a namespace
 * and of a class, and the order in which a free place is given away.
 *
 * The order: higher priority first. Inside a priority in rounds: in each round every target (an
 * executor, or what a workflow works on) has one turn; in a round the oldest first. A step that a
 * limit of its namespace or class holds back holds back nobody else.
 * Pure but for the count of what lives, which is asked for: it is observed, never kept.
 * Thread rule: none; the caller has a lock.
 */
#ifndef DF_ADMISSION_H
#define DF_ADMISSION_H

#include "spawner/model/model.h"

struct df_admission_limits {
    int64_t steps;         /* in all */
    int64_t per_namespace; /* in each */
    const cJSON *classes;  /* {name: {limit}}: a class without one has no limit; or NULL */
};

/* Which limit. */
enum df_admission_by { DF_ADMISSION_ALL, DF_ADMISSION_NAMESPACE, DF_ADMISSION_CLASS };

/* A step that waits. */
struct df_admission_step {
    int64_t priority;
    int64_t round;
    int64_t since_us;      /* when it was made */
    uint64_t target, hash; /* of its target and of its name: hashes are enough to tell them apart */
    const char *name_space; /* all three point into text */
    const char *class_name; /* "": none */
    const char *name;
    /* The last decision */
    bool may_start;
    bool is_woken;           /* the caller's: it was told so, and has not been refused since */
    enum df_admission_by by; /* what holds it back */
    int64_t live, limit;     /* how many run under that limit, and the limit */
    char text[];
};

/* All that wait, in their order. Zero-initialised it is empty. */
struct df_admission {
    struct df_admission_step **steps;
    size_t len, cap;
    int64_t round; /* of the last that left for a place */
};

void df_admission_free(struct df_admission *a);

/* What the document of a step says of these things. NULL: no memory. The caller frees. */
struct df_admission_step *df_admission_step_of(const cJSON *task) DF_MUST_CHECK;

/* Takes the step over, unless it fails. It must not wait already. */
int df_admission_add(struct df_admission *a, struct df_admission_step *step,
                     struct df_err *err) DF_MUST_CHECK;

/* NULL: nobody of this name waits. Borrowed. */
struct df_admission_step *df_admission_find(const struct df_admission *a, const char *name);

/* It waits no more. Returned to the caller, who frees it. */
struct df_admission_step *df_admission_take(struct df_admission *a, struct df_admission_step *step);

/* How many steps live in this namespace or of this class; of: its name, "" for ALL. */
typedef int (*df_admission_count)(void *arg, enum df_admission_by by, const char *of, int64_t *ret,
                                  struct df_err *err);

/* Gives the free places away in order: sets may_start of all, and what holds the others back. */
int df_admission_decide(struct df_admission *a, const struct df_admission_limits *limits,
                        df_admission_count count, void *arg, struct df_err *err) DF_MUST_CHECK;

/* How many that wait for the same places come before this one. */
size_t df_admission_ahead(const struct df_admission *a, const struct df_admission_step *step);

/* For a person: "12 steps run, the limit is 12; 3 before this one". */
void df_admission_tell(const struct df_admission *a, const struct df_admission_step *step, char *to,
                       size_t size);

#endif
