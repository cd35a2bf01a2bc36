/*
 * course.h - the loop over the components of a deploy or a teardown, and how a component begins and
 * ends in it: its state, its times, and what log, metrics and spans are told. Thread rule: main
 * thread.
 */
#ifndef DF_PLATFORM_COURSE_H
#define DF_PLATFORM_COURSE_H

#include "runner/platform/applications.h"

static inline bool df_course_is_over(const struct df_component *c)
{
    return c->state != DF_COMPONENT_PENDING && c->state != DF_COMPONENT_RUNNING;
}

/* How long Argo CD may work on the component. */
int64_t df_course_limit_ms(const struct df_platform *p, const struct df_component *c);

void df_course_begin(struct df_platform *p, struct df_component *c);
/* For a failure df_component_fail() comes before. */
void df_course_end(struct df_platform *p, struct df_component *c, enum df_component_state state);

/* It waits from now on, or still, for the same: "sync", which must be static. A wait for something
 * else is over. span: the id of the wait's span; NULL: a new one. */
void df_course_wait(struct df_platform *p, struct df_component *c, const char *what,
                    const char *span);
/* Tells of its wait as a span below its own, if it waits. error: why in vain, or NULL. The end of a
 * component is the end of its wait. */
void df_course_wait_end(struct df_platform *p, struct df_component *c, const char *error);

/* How an action goes over its components. All borrowed. */
struct df_course {
    struct df_platform *platform;
    struct df_applications *apps; /* whose changes are waited for; NULL: there is no Argo CD */
    bool is_backwards;            /* those last in the DAG first */
    /* Of a component in scope that is pending: begins it, ends it, or leaves it as it is because
     * others come first. */
    void (*look)(void *arg, struct df_component *c);
    /* Of one that is under way: moves it as far as it goes now. Returns when it is to be looked at
     * again, if nothing changes before: monotonic, in milliseconds. */
    int64_t (*advance)(void *arg, struct df_component *c);
    void *arg;
};
/* Returns when every component in scope is over. When the action is stopped, those that are not are
 * ended. */
void df_course_run(const struct df_course *course);

#endif
