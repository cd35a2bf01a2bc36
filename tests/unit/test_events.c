#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/base/log.h"
#include "common/metrics/metrics.h"
#include "spawner/journal/events.h"
#include "spawner/journal/journal.h"
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

static void a_run_that_waits_for_its_approval_has_an_event_of_one_name(void **state)
{
    (void)state;
    DF_JSON cJSON *run = json("{'metadata':{'name':'net-1','namespace':'apps','uid':"
                              "'0123456789abcdef'},'status':{'phase':'WaitingApproval',"
                              "'remindedAt':'1970-01-01T00:00:01.000000Z'}}");
    cJSON *made = NULL;
    assert_int_equal(df_event_reminder(run, "pod-7", &made, NULL), 0);
    DF_JSON cJSON *event = made;
    assert_json(event,
                "{'apiVersion':'events.k8s.io/v1','kind':'Event','regarding':{'apiVersion':"
                "'dayfly.dev/v1alpha1','kind':'Run','name':'net-1','namespace':'apps','uid':"
                "'0123456789abcdef'},'metadata':{'name':'net-1.01234567-reminder','namespace':"
                "'apps'},'eventTime':'1970-01-01T00:00:01.000000Z','type':'Warning','reason':"
                "'WaitingApproval','action':'approve','reportingController':'dayfly.dev/spawner',"
                "'reportingInstance':'pod-7','note':'still waits for approval: dayfly approve "
                "net-1'}",
                "the event");
}

static void an_event_about_a_workflow_of_tekton_is_about_its_pipeline_run(void **state)
{
    (void)state;
    DF_JSON cJSON *task = task_with(DF_OUTCOME_NONE, "Initializing", NULL);
    cJSON *ref = df_json_object_at(df_json_object_at(task, "status"), "engineRef");
    assert_int_equal(df_json_set_str(ref, "kind", "PipelineRun", NULL), 0);
    DF_JSON cJSON *event = event_of(task, 0, false);
    assert_at(event, "regarding.apiVersion", "'tekton.dev/v1'");
    assert_at(event, "regarding.kind", "'PipelineRun'");
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

#define HEAD(name)                                                                                 \
    "{'apiVersion':'dayfly.dev/v1alpha1','kind':'TaskAction','metadata':{'name':'" name "',"
#define SPEC "'spec':{'action':'apply','runRef':{'name':'net-1'}},"
#define JOB "'engineRef':{'kind':'Job','name':'j','namespace':'jobs','uid':'ju'}"
#define UNFINISHED "'labels':{'dayfly.dev/unfinished':'true'}},"
#define STEP HEAD("net-1-apply") UNFINISHED SPEC "'status':{" JOB "}}"
#define STEP_WITHOUT_JOB HEAD("web-1-plan") UNFINISHED SPEC "'status':{}}"
#define FINISHED_STEP                                                                              \
    HEAD("old-1-plan")                                                                             \
    "'labels':{}}," SPEC "'status':{" JOB ",'phaseHistory':["                                      \
    "{'phase':'Executing','occurredAt':'2026-01-01T00:00:00.000000Z'}]}}"

static int get_job(cJSON *task, void *arg, struct df_err *err)
{
    (void)arg;
    DF_JSON cJSON *job = json("{" JOB "}");
    return df_json_set(df_json_object_at(task, "status"), "engineRef",
                       cJSON_DetachItemFromObject(job, "engineRef"), err);
}

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
    struct df_config config;
    struct df_spawner s;
    struct df_events *events;
    char directory[32];
};

static void start_events(struct teller *t)
{
    assert_int_equal(df_events_start(&t->s, &t->events, NULL), 0);
}

/* The thread is not started. */
static void open_teller(struct teller *t, const int *statuses)
{
    *t = (struct teller){.script = {.statuses = statuses},
                         .config = {.runs_pods = true},
                         .directory = "/tmp/dayfly-events-XXXXXX"};
    assert_non_null(mkdtemp(t->directory));
    DF_FREE char *path = df_fs_join(t->directory, "db");
    kube_start(&t->server, play, &t->script);
    t->s.config = &t->config;
    t->s.kube = kube_client(&t->server);
    assert_int_equal(df_store_sqlite_open(path, &t->s.store, NULL), 0);
    assert_int_equal(df_journal_new(t->s.store, &t->s.journal, NULL), 0);
}

/* What was posted, once it is over; the caller frees. */
static char *close_teller(struct teller *t)
{
    df_events_stop(t->events);
    df_journal_free(t->s.journal);
    df_store_close(t->s.store);
    df_kube_free(t->s.kube);
    assert_int_equal(df_fs_remove_tree(t->directory, NULL), 0);
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

struct change {
    enum df_outcome outcome;
    const char *reason;
    int64_t at_us;
};

static int make_change(cJSON *task, void *arg, struct df_err *err)
{
    const struct change *c = arg;
    return df_task_set_conditions(task, c->outcome, c->reason, "m", c->at_us, err);
}

static void change(struct teller *t, const char *name, enum df_outcome outcome, const char *reason,
                   int64_t at_us)
{
    struct change c = {outcome, reason, at_us};
    struct df_err err = {0};
    if (df_store_modify(t->s.store, DF_KIND_TASK_ACTION, name, make_change, &c, NULL, &err) < 0)
        fail_msg("%s", err.message);
}

/* A step's next phase. */
static void enter(struct teller *t, const char *reason)
{
    change(t, "net-1-apply", DF_OUTCOME_NONE, reason, df_real_us());
}

static void make_step(struct teller *t, const char *text)
{
    DF_JSON cJSON *task = json(text);
    struct df_err err = {0};
    if (df_store_create(t->s.store, DF_KIND_TASK_ACTION, task, NULL, &err) < 0)
        fail_msg("%s", err.message);
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
    start_events(&t);
    make_step(&t, STEP);
    enter(&t, "Queued");
    enter(&t, "Initializing");
    enter(&t, "Executing");
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
    start_events(&t);
    make_step(&t, STEP);
    enter(&t, "Queued");
    enter(&t, "Initializing");
    await_asked(&t, 2);
    DF_FREE char *seen = close_teller(&t);
    assert_non_null(strstr(seen, "Initializing"));
    assert_true(dropped() == before + 1);
}

/* The answer of a webhook that cannot read one of them. */
static void an_event_that_always_ends_in_an_internal_error_does_not_hold_back_the_next(void **state)
{
    (void)state;
    static const int statuses[] = {500, 500, 500, 201};
    struct teller t;
    double before = dropped();
    open_teller(&t, statuses);
    start_events(&t);
    make_step(&t, STEP);
    enter(&t, "Queued");
    enter(&t, "Initializing");
    await_asked(&t, 4);
    DF_FREE char *seen = close_teller(&t);
    assert_non_null(strstr(seen, "Initializing"));
    assert_true(dropped() == before + 1);
}

/* Its document, with the history, is gone when the Event has its turn. */
static void a_step_that_is_deleted_after_its_end_has_the_event_of_its_end(void **state)
{
    (void)state;
    static const int statuses[] = {503, 503, 201, 201};
    struct teller t;
    open_teller(&t, statuses);
    start_events(&t);
    make_step(&t, STEP);
    enter(&t, "Queued");
    await_asked(&t, 1); /* for the next second and a half the Event waits */
    change(&t, "net-1-apply", DF_OUTCOME_FAILED, "Canceled", df_real_us());
    (void)poll(NULL, 0, 1000);
    assert_int_equal(df_store_remove(t.s.store, DF_KIND_TASK_ACTION, "net-1-apply", NULL, NULL), 0);
    await_asked(&t, 4);
    DF_FREE char *seen = close_teller(&t);
    assert_non_null(strstr(seen, "Canceled"));
}

static void a_write_without_a_new_phase_posts_nothing(void **state)
{
    (void)state;
    static const int statuses[] = {201, 201};
    struct teller t;
    open_teller(&t, statuses);
    start_events(&t);
    make_step(&t, STEP);
    enter(&t, "Queued");
    await_asked(&t, 1);
    enter(&t, "Queued");
    enter(&t, "Executing");
    DF_FREE char *seen = close_teller(&t);
    assert_string_equal(seen, POSTED "Queued\n" POSTED "Executing\n");
}

/* Neither who writes nor who stops waits for an API server that does not answer. */
static void an_api_server_that_does_not_answer_holds_nobody_back(void **state)
{
    (void)state;
    static const int statuses[] = {0};
    struct teller t;
    open_teller(&t, statuses);
    start_events(&t);
    make_step(&t, STEP);
    enter(&t, "Queued");
    await_asked(&t, 1);
    for (int i = 0; i < 50; i++)
        enter(&t, i % 2 ? "Initializing" : "Executing");
    DF_FREE char *seen = close_teller(&t);
    assert_string_equal(seen, POSTED "Queued\n");
}

static void a_step_has_events_from_its_first_entry_on_once_it_has_a_job(void **state)
{
    (void)state;
    static const int statuses[] = {201, 201};
    struct teller t;
    open_teller(&t, statuses);
    start_events(&t);
    make_step(&t, STEP_WITHOUT_JOB);
    change(&t, "web-1-plan", DF_OUTCOME_NONE, "Queued", df_real_us());
    make_step(&t, STEP); /* the journal is read in order: the other one was looked at before this */
    enter(&t, "Executing");
    await_asked(&t, 1);
    assert_int_equal(
        df_store_modify(t.s.store, DF_KIND_TASK_ACTION, "web-1-plan", get_job, NULL, NULL, NULL),
        0);
    DF_FREE char *seen = close_teller(&t);
    assert_string_equal(seen, POSTED "Executing\n" POSTED "Queued\n");
}

static void a_new_leader_posts_what_is_young_and_nothing_that_is_old(void **state)
{
    (void)state;
    static const int statuses[] = {201, 201};
    struct teller t;
    open_teller(&t, statuses);
    make_step(&t, STEP);
    change(&t, "net-1-apply", DF_OUTCOME_NONE, "Queued", df_real_us() - 3600 * INT64_C(1000000));
    change(&t, "net-1-apply", DF_OUTCOME_NONE, "Initializing", df_real_us() - 1000000);
    start_events(&t);
    enter(&t, "Executing");
    DF_FREE char *seen = close_teller(&t);
    assert_string_equal(seen, POSTED "Initializing\n" POSTED "Executing\n");
}

static void a_finished_step_that_is_written_again_has_no_new_events(void **state)
{
    (void)state;
    static const int statuses[] = {201};
    struct teller t;
    open_teller(&t, statuses);
    make_step(&t, FINISHED_STEP);
    start_events(&t);
    change(&t, "old-1-plan", DF_OUTCOME_SUCCEEDED, "Planned", df_real_us());
    DF_FREE char *seen = close_teller(&t);
    assert_string_equal(seen, "");
}

static void a_job_of_awx_has_no_events_for_the_cluster_does_not_know_it(void **state)
{
    (void)state;
    static const int statuses[] = {201, 201};
    struct teller t;
    open_teller(&t, statuses);
    start_events(&t);
    make_step(&t, HEAD("restart") UNFINISHED SPEC
              "'status':{'engineRef':{'kind':'AWXJob','name':'awx-job-7','namespace':'default',"
              "'uid':'7'}}}");
    make_step(&t, STEP);
    change(&t, "restart", DF_OUTCOME_NONE, "Executing", df_real_us());
    enter(&t, "Queued");
    await_asked(&t, 1);
    DF_FREE char *seen = close_teller(&t);
    assert_string_equal(seen, POSTED "Queued\n");
}

static void without_pods_there_are_no_events(void **state)
{
    (void)state;
    const struct df_config config = {.runs_here = true};
    struct df_spawner s = {.config = &config};
    struct df_events *events = NULL;
    assert_int_equal(df_events_start(&s, &events, NULL), 0);
    assert_null(events);
    df_events_stop(events);
}

int main(void)
{
    df_log_setup(DF_LOG_ERROR, false, "test");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_event_is_about_the_job_of_its_step),
        cmocka_unit_test(a_run_that_waits_for_its_approval_has_an_event_of_one_name),
        cmocka_unit_test(an_event_about_a_workflow_of_tekton_is_about_its_pipeline_run),
        cmocka_unit_test(or_about_the_task_where_that_is_an_object_of_the_cluster),
        cmocka_unit_test(what_went_wrong_is_a_warning_and_an_end_has_the_reason_of_the_step),
        cmocka_unit_test(a_long_message_is_cut_between_characters),
        cmocka_unit_test(events_are_posted_in_order_and_again_until_they_are_answered),
        cmocka_unit_test(a_refused_event_does_not_hold_back_the_next),
        cmocka_unit_test(
            an_event_that_always_ends_in_an_internal_error_does_not_hold_back_the_next),
        cmocka_unit_test(a_step_that_is_deleted_after_its_end_has_the_event_of_its_end),
        cmocka_unit_test(a_write_without_a_new_phase_posts_nothing),
        cmocka_unit_test(an_api_server_that_does_not_answer_holds_nobody_back),
        cmocka_unit_test(a_step_has_events_from_its_first_entry_on_once_it_has_a_job),
        cmocka_unit_test(a_new_leader_posts_what_is_young_and_nothing_that_is_old),
        cmocka_unit_test(a_finished_step_that_is_written_again_has_no_new_events),
        cmocka_unit_test(a_job_of_awx_has_no_events_for_the_cluster_does_not_know_it),
        cmocka_unit_test(without_pods_there_are_no_events),
    };
    return cmocka_run_group_tests_name("events", tests, NULL, NULL);
}
