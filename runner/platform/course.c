/*
 * The loop: a pass over all components, then a wait until an Application changes or the next time
 * comes. Before it the begin and the end of one component.
 */
#include "runner/platform/course.h"

#include <poll.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "runner/platform/spans.h"

#define PARALLEL 8   /* components at once: Argo CD itself works on a few */
#define LOOK_MS 1000 /* without Argo CD nothing tells of changes */

int64_t df_course_limit_ms(const struct df_platform *p, const struct df_component *c)
{
    return c->node->timeout_ms ? c->node->timeout_ms : p->in->sync_ms;
}

void df_course_begin(struct df_platform *p, struct df_component *c)
{
    c->state = DF_COMPONENT_RUNNING;
    c->started_us = df_real_us();
    df_telemetry_new_span(p->telemetry, &c->span);
    df_telemetry_component(p->telemetry, c);
}

/* ---- waits ---- */

void df_course_wait_end(struct df_platform *p, struct df_component *c, const char *error)
{
    char name[32];
    if (!c->wait.what)
        return;
    (void)snprintf(name, sizeof(name), "wait %s", c->wait.what);
    df_telemetry_span(p->telemetry, &(struct df_span){.id = c->wait.span.hex,
                                                      .parent = c->span.hex,
                                                      .name = name,
                                                      .from_us = c->wait.since_us,
                                                      .to_us = df_real_us(),
                                                      .error = error});
    c->wait.what = NULL;
}

void df_course_wait(struct df_platform *p, struct df_component *c, const char *what,
                    const char *span)
{
    if (df_streq(c->wait.what, what))
        return;
    df_course_wait_end(p, c, NULL);
    c->wait.what = what;
    c->wait.since_us = df_real_us();
    if (span)
        df_copy(c->wait.span.hex, sizeof(c->wait.span.hex), span);
    else
        df_telemetry_new_span(p->telemetry, &c->wait.span);
}

/* ---- the end of a component ---- */

static void tell_end(struct df_platform *p, const struct df_component *c)
{
    bool failed = c->state == DF_COMPONENT_FAILED;
    if (failed)
        df_error("%s: %s", c->cause, c->message);
    else
        df_info("%s%s%s", df_component_state_name(c->state), *c->message ? ": " : "", c->message);
    if (failed)
        df_telemetry_error(p->telemetry, c->cause);
    df_telemetry_component(p->telemetry, c);
    const struct df_span span = {.id = c->span.hex,
                                 .name = c->node->name,
                                 .from_us = c->started_us,
                                 .to_us = c->ended_us,
                                 .error = failed ? c->message : NULL};
    if (c->started_us)
        df_telemetry_span(p->telemetry, &span);
}

void df_course_end(struct df_platform *p, struct df_component *c, enum df_component_state state)
{
    c->state = state;
    c->ended_us = df_real_us();
    df_telemetry_enter(p->telemetry, c);
    df_course_wait_end(p, c, state == DF_COMPONENT_FAILED ? c->message : NULL);
    tell_end(p, c);
    df_telemetry_enter(p->telemetry, NULL);
}

/* ---- the loop ---- */

static void stop(struct df_platform *p)
{
    bool timeout = df_stop_cause(p->stop) == DF_STOP_TIMEOUT;
    for (size_t i = 0; i < p->dag.len; i++) {
        struct df_component *c = &p->components[i];
        if (c->state == DF_COMPONENT_RUNNING) {
            df_component_fail(c, timeout ? "Timeout" : "Interrupted",
                              "the action ended before it: %s",
                              timeout ? "ACTION_TIMEOUT is over" : "a signal came");
            df_course_end(p, c, DF_COMPONENT_FAILED);
        } else if (c->state == DF_COMPONENT_PENDING && c->node->is_in_scope) {
            df_copy(c->message, sizeof(c->message), "the action ended before it began");
            df_course_end(p, c, DF_COMPONENT_SKIPPED);
        }
    }
}

/* A pending component may begin; one under way moves. Returns when it is to be looked at. */
static int64_t visit(const struct df_course *course, struct df_component *c, size_t *running)
{
    if (c->state == DF_COMPONENT_PENDING && c->node->is_in_scope && *running < PARALLEL) {
        course->look(course->arg, c);
        *running += c->state == DF_COMPONENT_RUNNING;
    }
    if (c->state != DF_COMPONENT_RUNNING)
        return INT64_MAX;
    int64_t look_ms = course->advance(course->arg, c);
    if (!df_course_is_over(c))
        return look_ms;
    --*running;
    return 0; /* others may begin */
}

/* Returns how many are under way; *ret_look_ms: when the next is to be looked at. */
static size_t pass(const struct df_course *course, int64_t *ret_look_ms)
{
    struct df_platform *p = course->platform;
    size_t running = 0;
    *ret_look_ms = INT64_MAX;
    for (size_t i = 0; i < p->dag.len; i++)
        running += p->components[i].state == DF_COMPONENT_RUNNING;
    for (size_t i = 0; i < p->dag.len && df_stop_cause(p->stop) == DF_STOP_NONE; i++) {
        size_t at = course->is_backwards ? p->dag.len - 1 - i : i;
        int64_t look_ms = visit(course, &p->components[at], &running);
        *ret_look_ms = look_ms < *ret_look_ms ? look_ms : *ret_look_ms;
    }
    return running;
}

static void wait_until(const struct df_course *course, int64_t until_ms)
{
    struct pollfd stopped = {.fd = df_stop_fd(course->platform->stop), .events = POLLIN};
    int64_t ms = until_ms - df_mono_ms();
    if (course->apps)
        df_applications_wait(course->apps, until_ms);
    else if (ms > 0)
        (void)poll(&stopped, 1, ms < LOOK_MS ? (int)ms : LOOK_MS);
}

void df_course_run(const struct df_course *course)
{
    int64_t look_ms;
    while (pass(course, &look_ms) || look_ms != INT64_MAX) {
        if (df_stop_cause(course->platform->stop) != DF_STOP_NONE)
            break;
        if (look_ms)
            wait_until(course, look_ms);
    }
    if (df_stop_cause(course->platform->stop) != DF_STOP_NONE)
        stop(course->platform);
}
