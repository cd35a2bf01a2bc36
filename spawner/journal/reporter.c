/*
 * Reports transitions to a State Service. One thread reads the journal, keeps the names of steps
 * that changed in a ring, reads each of these steps and sends what it has not sent yet. Read
 * report().
 */
#include "spawner/journal/reporter.h"

#include <pthread.h>
#include <stdatomic.h>

#include "common/base/backoff.h"
#include "common/base/clock.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/metrics/metrics.h"
#include "spawner/journal/cursors.h"
#include "spawner/journal/journal.h"
#include "spawner/journal/state_service.h"
#include "spawner/model/labels.h"

#define PAGE 100
#define PAUSE_MIN_US 10000    /* after the first failure */
#define PAUSE_MAX_US 30000000 /* never longer than this */
#define IDLE_MS 3600000       /* a change of a document ends it */

typedef char step_name[64];

struct df_reporter {
    struct df_spawner *s;
    pthread_t thread;
    struct df_subscription subscription; /* to all documents */
    atomic_bool closing;
    atomic_int_least64_t end_ms; /* monotonic: of the closing */

    uint64_t last;    /* number of the last entry of the journal that was read; the thread's own, as
                         all that follows */
    step_name *names; /* a ring of different ones: steps to look at */
    size_t first, count;
    struct df_cursors in_ring;
    bool look_at_all;
    struct df_state_service *service;
    struct df_cursors told;
    char *cursor; /* of the next page of all; NULL: no more pages */
    int failures; /* in a row, each with a pause */
    size_t tried; /* steps that failed by themselves since one was taken or a pause was made */
    bool is_away, was_refused, had_own; /* was said */
    struct df_metric *reports;
};

int df_reporter_expect(const struct df_config *config, cJSON *task, struct df_err *err)
{
    return config->state_service_url ? df_label_set(task, DF_LABEL_UNREPORTED, "true", err) : 0;
}

int df_reporter_release(const struct df_config *config, const cJSON *task, struct df_err *err)
{
    const char *name = df_json_str(task, "metadata.name");
    int64_t end_us = df_task_ended_at(task, 0) + DF_TIMEOUT_FORGET_SECONDS * 1000000LL;
    if (!config->state_service_url || !df_label_has(task, DF_LABEL_UNREPORTED))
        return 0;
    if (df_real_us() < end_us)
        return df_fail_reason(err, DF_ERR_RETRY, "Conflict",
                              "the State Service has not been told of step %s yet: try again soon",
                              name);
    df_warn("step %s is removed, of which the State Service was not told everything", name);
    return 0;
}

/* ---- which steps to look at ---- */

/* True if it is one more to look at; false if it waits already, or all will be looked at. */
static bool add_name(struct df_reporter *r, const char *name)
{
    if (df_cursors_get(&r->in_ring, name, "", 0))
        return false;
    if (r->count == DF_LIMIT_REPORTS || df_cursors_set(&r->in_ring, name, "", 1, NULL) < 0) {
        r->look_at_all = true;
        return false;
    }
    (void)snprintf(r->names[(r->first + r->count++) % DF_LIMIT_REPORTS], sizeof(step_name), "%s",
                   name);
    return true;
}

/* Reads the journal to its end. Returns true if there are more steps to look at than before. */
static bool read_journal(struct df_reporter *r)
{
    struct df_journal_entry entry;
    bool found = false;
    for (;;) {
        int result = df_journal_read(r->s->journal, &r->last, &entry);
        if (result == 0)
            return found;
        if (result < 0)
            r->look_at_all = true; /* entries are lost */
        else if (entry.kind == DF_KIND_TASK_ACTION && add_name(r, entry.name))
            found = true;
    }
}

static void take_first(struct df_reporter *r, step_name ret)
{
    memcpy(ret, r->names[r->first], sizeof(step_name));
    r->first = (r->first + 1) % DF_LIMIT_REPORTS;
    r->count--;
    df_cursors_drop(&r->in_ring, ret);
}

static void await_entries(struct df_reporter *r)
{
    for (;;) {
        uint64_t mark = df_subscription_mark(r->s->journal, &r->subscription);
        (void)read_journal(r);
        if (r->count || r->look_at_all || r->cursor || r->closing)
            return;
        r->had_own = false;
        df_subscription_wait(r->s->journal, &r->subscription, mark, IDLE_MS);
    }
}

enum work { STEP, NEXT_PAGE, NO_MORE };

static enum work await_work(struct df_reporter *r, step_name ret)
{
    await_entries(r);
    /* Some that are never taken must not keep the others from being found. */
    bool wants_page = (r->look_at_all || r->cursor) && r->count < PAGE;
    if (r->closing && df_mono_ms() >= r->end_ms)
        return NO_MORE;
    if (r->count && !wants_page) {
        take_first(r, ret);
        return STEP;
    }
    if (!wants_page)
        return NO_MORE;
    if (r->look_at_all) {
        r->look_at_all = false;
        free(r->cursor);
        r->cursor = NULL;
    }
    return NEXT_PAGE;
}

/* Puts the names of a page among those with news. */
static int take_page(struct df_reporter *r, struct df_err *err)
{
    const struct df_store_list_options o = {
        .label = DF_LABEL_UNREPORTED "=true", .cursor = r->cursor, .limit = PAGE};
    DF_JSON cJSON *list = NULL;
    char *next = NULL;
    if (df_store_list(r->s->store, DF_KIND_TASK_ACTION, &o, &list, &next, err) < 0) {
        r->look_at_all = true;
        return -1;
    }
    const cJSON *task;
    cJSON_ArrayForEach (task, list)
        (void)add_name(r, df_json_str(task, "metadata.name"));
    free(r->cursor);
    r->cursor = next;
    return 0;
}

/* ---- telling ---- */

static void count(struct df_reporter *r, const char *result, int n)
{
    df_metric_add(r->reports, result, n);
}

static void is_back(struct df_reporter *r)
{
    if (r->is_away)
        df_info("the State Service answers again");
    r->is_away = false;
    r->failures = 0;
    r->tried = 0;
}

/* One line for all that follow until something is taken. */
static void say_refused(struct df_reporter *r, const cJSON *task, const struct df_err *why)
{
    if (!r->was_refused)
        df_warn("the State Service refuses transitions of step %s, which are dropped: %s",
                df_json_str(task, "metadata.name"), why->message);
    r->was_refused = true;
}

/* Tells those from *index on, as many as go into a call, and moves it on. A call that is refused is
 * made again for each alone: one of them need not take the others along. */
static int tell_some(struct df_reporter *r, const cJSON *task, int *index, int *most,
                     struct df_err *err)
{
    struct df_err why = {0};
    int left = df_action_transitions(task) - *index, n = left < *most ? left : *most;
    switch (df_state_service_tell(r->service, task, *index, n, &why)) {
    case DF_STATE_TAKEN:
        is_back(r);
        r->was_refused = false;
        count(r, "taken", n);
        *index += n;
        return 0;
    case DF_STATE_REFUSED:
        is_back(r);
        if (n > 1) {
            *most = 1;
            return 0;
        }
        say_refused(r, task, &why);
        count(r, "refused", n);
        *index += n;
        return 0;
    case DF_STATE_LATER:
    default:
        count(r, "later", n);
        return df_err_pass(err, &why);
    }
}

static int set_reported(cJSON *task, void *arg, struct df_err *err)
{
    const int *told = arg;
    cJSON *status = df_json_object_at(task, "status");
    if (df_check_alloc(status, err) < 0 || df_label_set(task, DF_LABEL_UNREPORTED, NULL, err) < 0)
        return -1;
    return df_json_set(status, "reported", cJSON_CreateNumber(*told), err);
}

/* A step that is over comes to nothing more. */
static int finish(struct df_reporter *r, const cJSON *task, int told, struct df_err *err)
{
    const char *name = df_json_str(task, "metadata.name");
    struct df_err why = {0};
    if (!df_task_is_final(task))
        return 0;
    if (df_store_modify(r->s->store, DF_KIND_TASK_ACTION, name, set_reported, &told, NULL, &why) <
            0 &&
        why.cls != DF_ERR_NOT_FOUND)
        return df_err_pass(err, &why);
    df_cursors_drop(&r->told, name);
    return 0;
}

static int tell(struct df_reporter *r, const cJSON *task, struct df_err *err)
{
    const char *name = df_json_str(task, "metadata.name"), *uid = df_json_str(task, "metadata.uid");
    int index = df_cursors_get(&r->told, name, uid, 0), most = df_state_service_most(r->service);
    while (index < df_action_transitions(task)) {
        if (tell_some(r, task, &index, &most, err) < 0 ||
            df_cursors_set(&r->told, name, uid, index, err) < 0)
            return -1;
    }
    return finish(r, task, index, err);
}

static int look_at(struct df_reporter *r, const char *name, struct df_err *err)
{
    DF_SHARED const cJSON *task = NULL;
    if (df_store_look_for(r->s->store, DF_KIND_TASK_ACTION, name, &task, err) < 0)
        return -1;
    if (!task) {
        df_cursors_drop(&r->told, name);
        return 0;
    }
    return df_label_has(task, DF_LABEL_UNREPORTED) ? tell(r, task, err) : 0;
}

/* ---- the thread ---- */

/* Ends early when the reporter is stopped (false), or (for_others) when another step changed. */
static bool pause_after(struct df_reporter *r, const struct df_err *why, bool for_others)
{
    int64_t asked_us = (int64_t)why->retry_after_s * 1000000;
    int64_t us = df_backoff_pause(PAUSE_MIN_US, PAUSE_MAX_US, ++r->failures);
    int64_t end_ms = df_mono_ms() + (us > asked_us ? us : asked_us) / 1000;
    for (;;) {
        uint64_t mark = df_subscription_mark(r->s->journal, &r->subscription);
        int64_t left_ms = end_ms - df_mono_ms();
        if (r->closing)
            return false;
        if ((read_journal(r) && for_others) || left_ms <= 0)
            return true;
        df_subscription_wait(r->s->journal, &r->subscription, mark, left_ms);
    }
}

/* After a failure that is of one step alone the others are tried first. */
static bool put_off(struct df_reporter *r, const struct df_err *why)
{
    bool is_its_own = why->cls == DF_ERR_SYSTEM, *said = is_its_own ? &r->had_own : &r->is_away;
    if (!*said)
        df_warn("the State Service is told %s later: %s",
                is_its_own ? "of some steps" : "everything", why->message);
    *said = true;
    if (is_its_own && ++r->tried < r->count)
        return true;
    r->tried = 0;
    return pause_after(r, why, is_its_own);
}

/* A step that could not be told comes behind the others. */
static void *report(void *arg)
{
    struct df_reporter *r = arg;
    bool goes_on = true;
    while (goes_on) {
        step_name name;
        struct df_err why = {0};
        switch (await_work(r, name)) {
        case STEP:
            if (look_at(r, name, &why) < 0) {
                (void)add_name(r, name);
                goes_on = put_off(r, &why);
            }
            break;
        case NEXT_PAGE:
            if (take_page(r, &why) < 0)
                goes_on = put_off(r, &why);
            break;
        case NO_MORE:
        default:
            goes_on = false;
        }
    }
    return NULL;
}

/* ---- its life ---- */

static void free_reporter(struct df_reporter *r)
{
    df_state_service_free(r->service);
    df_cursors_free(&r->told);
    df_cursors_free(&r->in_ring);
    free(r->names);
    free(r->cursor);
    df_unsubscribe(r->s->journal, &r->subscription);
    free(r);
}

static void init(struct df_reporter *r, struct df_spawner *s)
{
    char version[32];
    r->s = s;
    df_subscribe(s->journal, &r->subscription, NULL, 0, false);
    r->last = df_journal_last(s->journal, version);
    r->look_at_all = true;
    r->reports = df_metric_counter("dayfly_state_service_transitions_total",
                                   "Transitions told to the State Service: taken, refused for good "
                                   "and dropped, or put off (each time).",
                                   "result");
}

static int start(struct df_reporter *r, struct df_err *err)
{
    r->names = calloc(DF_LIMIT_REPORTS, sizeof(step_name));
    if (df_check_alloc(r->names, err) < 0 ||
        df_state_service_new(r->s->config, &r->service, err) < 0)
        return -1;
    int failed = pthread_create(&r->thread, NULL, report, r);
    return failed ? df_fail_errno(err, failed, "start the thread of the State Service") : 0;
}

int df_reporter_start(struct df_spawner *s, struct df_reporter **ret, struct df_err *err)
{
    *ret = NULL;
    if (!s->config->state_service_url)
        return 0;
    struct df_reporter *r = calloc(1, sizeof(*r));
    if (!r)
        return df_fail_oom(err);
    init(r, s);
    if (start(r, err) < 0) {
        free_reporter(r);
        return -1;
    }
    *ret = r;
    return 0;
}

void df_reporter_stop(struct df_reporter *r)
{
    if (!r)
        return;
    r->end_ms = df_mono_ms() + DF_TIMEOUT_LAST_REPORTS_MS;
    r->closing = true;
    df_subscription_wake(r->s->journal, &r->subscription);
    (void)pthread_join(r->thread, NULL);
    free_reporter(r);
}
