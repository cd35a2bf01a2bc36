#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/metrics/metrics.h"
#include "spawner/journal/events.h"
#include "spawner/model/model.h"
#include "tests/unit/kube_server.h"
#include "tests/unit/kube_words.h"

#define TASK                                                                                       \
    "{'metadata':{'name':'net-1-apply','namespace':'apps','uid':'0123456789abcdef'},"              \
    "'spec':{'action':'apply'},'status':{'engineRef':{'kind':'Job','name':'net-1-apply',"          \
    "'namespace':'jobs','uid':'ju','serviceAccountName':'s'}}}"

static cJSON *event_of(const cJSON *task, int entry, bool on_task)
{
    cJSON *event = NULL;
    struct df_err err = {0};
    if (df_event_build(task, entry, on_task, "pod-7", &event, &err) < 0)
        fail_msg("%s", err.message);
    return event;
}

static cJSON *task_with(enum df_outcome outcome, const char *reason, const char *message)
{
    cJSON *task = json(TASK);
    assert_int_equal(df_task_set_conditions(task, outcome, reason, message, 1000000, NULL), 0);
    return task;
}

static void an_event_is_about_the_job_of_its_step(void **state)
{
    (void)state;
    DF_JSON cJSON *task = task_with(DF_OUTCOME_NONE, "Initializing", "no node takes it");
    DF_JSON cJSON *event = event_of(task, 0, false);
    assert_json(event,
                "{'apiVersion':'events.k8s.io/v1','kind':'Event','regarding':{'apiVersion':"
                "'batch/v1','kind':'Job','name':'net-1-apply','namespace':'jobs','uid':'ju'},"
                "'metadata':{'name':'net-1-apply.01234567-0','namespace':'jobs'},'eventTime':"
                "'1970-01-01T00:00:01.000000Z','type':'Normal','reason':'Initializing','action':"
                "'apply','reportingController':'dayfly.dev/spawner','reportingInstance':'pod-7',"
                "'note':'no node takes it'}",
                "the event");
}

static void or_about_the_task_where_that_is_an_object_of_the_cluster(void **state)
{
    (void)state;
    DF_JSON cJSON *task = task_with(DF_OUTCOME_NONE, "Queued", NULL);
    DF_JSON cJSON *event = event_of(task, 0, true);
    assert_at(event, "regarding",
              "{'apiVersion':'dayfly.dev/v1alpha1','kind':'TaskAction','name':'net-1-apply',"
              "'namespace':'apps','uid':'0123456789abcdef'}");
    assert_at(event, "metadata.namespace", "'apps'");
    assert_at(event, "note", "'Queued'");
}

static void what_went_wrong_is_a_warning_and_an_end_has_the_reason_of_the_step(void **state)
{
    (void)state;
    static const struct {
        enum df_outcome outcome;
        const char *reason, *type;
    } rows[] = {
        {DF_OUTCOME_SUCCEEDED, "Applied", "Normal"}, {DF_OUTCOME_FAILED, "ApplyFailed", "Warning"},
        {DF_OUTCOME_FAILED, "TimedOut", "Warning"},  {DF_OUTCOME_FAILED, "Canceled", "Normal"},
        {DF_OUTCOME_NONE, "Executing", "Normal"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        DF_JSON cJSON *task = task_with(rows[i].outcome, rows[i].reason, "m");
        DF_JSON cJSON *event = event_of(task, 0, false);
        assert_string_equal(df_json_str(event, "reason"), rows[i].reason);
        assert_string_equal(df_json_str(event, "type"), rows[i].type);
    }
}

/* The API takes 1024 bytes. */
static void a_long_message_is_cut_between_characters(void **state)
{
    (void)state;
    for (size_t pad = 0; pad < 3; pad++) {
        char text[3000] = "";
        memset(text, 'x', pad);
        for (size_t n = pad; n < 2000; n += 3)
            memcpy(text + n, "\u20ac", 4);
        DF_JSON cJSON *task = task_with(DF_OUTCOME_NONE, "Initializing", text);
        DF_JSON cJSON *event = event_of(task, 0, false);
        size_t n = strlen(df_json_str(event, "note"));
        assert_in_range(n, 1000, 1023);
        assert_int_equal((n - pad) % 3, 0);
    }
}

/* ---- the thread ---- */

/* An API server that gives these answers one after the other; 0: none, ever. */
struct script {
    const int *statuses;
    size_t asked;
};

static void play(struct kube_server *s, const struct kube_request *r, struct kube_reply *a)
{
    struct script *script = s->arg;
    DF_JSON cJSON *event = json(r->body);
    int status = script->statuses[script->asked++];
    (void)df_buf_addf(&s->seen, "%s\n", df_json_str(event, "reason"));
    a->hold = status == 0;
    if (status == 201)
        kube_say(a, 201, "", r->body);
    else if (status)
        kube_status(a, status, status == 409 ? "AlreadyExists" : "Said", "as the test says");
}

struct teller {
    struct kube_server server;
    struct script script;
    struct df_kube *kube;
    struct df_events *events;
};

static void open_teller(struct teller *t, const int *statuses)
{
    t->script = (struct script){.statuses = statuses};
    kube_start(&t->server, play, &t->script);
    t->kube = kube_client(&t->server);
    const struct df_events_options o = {.kube = t->kube};
    assert_int_equal(df_events_start(&o, &t->events, NULL), 0);
}

/* What was posted, once it is over; the caller frees. */
static char *close_teller(struct teller *t)
{
    df_events_stop(t->events);
    df_kube_free(t->kube);
    char *seen = strdup(df_buf_str(&t->server.seen));
    kube_stop(&t->server);
    return seen;
}

static void await_asked(struct teller *t, size_t times)
{
    (void)pthread_mutex_lock(&t->server.lock);
    while (t->script.asked < times)
        (void)pthread_cond_wait(&t->server.changed, &t->server.lock);
    (void)pthread_mutex_unlock(&t->server.lock);
}

static void tell(struct teller *t, const char *reason)
{
    DF_JSON cJSON *task = task_with(DF_OUTCOME_NONE, reason, NULL);
    df_events_tell(t->events, task, 0);
}

static double dropped(void)
{
    static const char name[] = "\ndayfly_events_dropped_total ";
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_MIB);
    assert_int_equal(df_metrics_write(&text, NULL), 0);
    const char *at = strstr(df_buf_str(&text), name);
    return at ? strtod(at + strlen(name), NULL) : 0;
}

#define POSTED "POST /apis/events.k8s.io/v1/namespaces/jobs/events?fieldValidation=Strict\n"

static void events_are_posted_in_order_and_again_until_they_are_answered(void **state)
{
    (void)state;
    static const int statuses[] = {503, 201, 409, 201};
    struct teller t;
    double before = dropped();
    open_teller(&t, statuses);
    tell(&t, "Queued");
    tell(&t, "Initializing");
    tell(&t, "Executing");
    await_asked(&t, 4);
    DF_FREE char *seen = close_teller(&t);
    assert_string_equal(seen, POSTED "Queued\n" POSTED "Queued\n" POSTED "Initializing\n" POSTED
                                     "Executing\n");
    assert_true(dropped() == before);
}

static void a_refused_event_does_not_hold_back_the_next(void **state)
{
    (void)state;
    static const int statuses[] = {403, 201};
    struct teller t;
    double before = dropped();
    open_teller(&t, statuses);
    tell(&t, "Queued");
    tell(&t, "Initializing");
    await_asked(&t, 2);
    DF_FREE char *seen = close_teller(&t);
    assert_non_null(strstr(seen, "Initializing"));
    assert_true(dropped() == before + 1);
}

/* Neither who tells nor who stops waits for an API server that does not answer. */
static void what_finds_no_place_is_dropped(void **state)
{
    (void)state;
    static const int statuses[] = {0};
    struct teller t;
    double before = dropped();
    open_teller(&t, statuses);
    tell(&t, "Queued");
    await_asked(&t, 1);
    for (int i = 0; i < DF_LIMIT_EVENTS_WAITING; i++)
        tell(&t, "Initializing");
    assert_true(dropped() == before);
    tell(&t, "Initializing");
    assert_true(dropped() == before + 1);
    DF_FREE char *seen = close_teller(&t);
    assert_string_equal(seen, POSTED "Queued\n");
}

/* There is no Job yet: it is told when there is one. */
static void a_step_without_a_job_has_no_events_yet(void **state)
{
    (void)state;
    static const int statuses[] = {201};
    struct teller t;
    open_teller(&t, statuses);
    DF_JSON cJSON *task = json("{'metadata':{'name':'a'},'status':{}}");
    assert_false(df_events_may_tell(t.events, task));
    assert_false(df_events_may_tell(NULL, task));
    df_events_tell(t.events, task, 0);
    DF_FREE char *seen = close_teller(&t);
    assert_string_equal(seen, "");
}

int main(void)
{
    (void)alarm(120); /* what is awaited and never comes */
    df_log_setup(DF_LOG_ERROR, false, "test");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_event_is_about_the_job_of_its_step),
        cmocka_unit_test(or_about_the_task_where_that_is_an_object_of_the_cluster),
        cmocka_unit_test(what_went_wrong_is_a_warning_and_an_end_has_the_reason_of_the_step),
        cmocka_unit_test(a_long_message_is_cut_between_characters),
        cmocka_unit_test(events_are_posted_in_order_and_again_until_they_are_answered),
        cmocka_unit_test(a_refused_event_does_not_hold_back_the_next),
        cmocka_unit_test(what_finds_no_place_is_dropped),
        cmocka_unit_test(a_step_without_a_job_has_no_events_yet),
    };
    return cmocka_run_group_tests_name("events", tests, NULL, NULL);
}
