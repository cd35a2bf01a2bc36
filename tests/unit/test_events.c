#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "spawner/control/events.h"
#include "spawner/model/model.h"
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_event_is_about_the_job_of_its_step),
        cmocka_unit_test(or_about_the_task_where_that_is_an_object_of_the_cluster),
        cmocka_unit_test(what_went_wrong_is_a_warning_and_an_end_has_the_reason_of_the_step),
        cmocka_unit_test(a_long_message_is_cut_between_characters),
    };
    return cmocka_run_group_tests_name("events", tests, NULL, NULL);
}
