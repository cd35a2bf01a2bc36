/* Transitions as other services read them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "spawner/model/action_event.h"
#include "tests/unit/json_words.h"

static const struct df_action_scope scope = {NULL, "live"};

#define STEP                                                                                       \
    "'metadata':{'name':'net-1-plan','namespace':'shop'},"                                         \
    "'spec':{'action':'plan','runRef':{'name':'net-1'}}"
#define AT "'occurredAt':'2026-01-02T03:04:05.000006Z'"

static void check(const cJSON *found, const char *expected)
{
    DF_JSON cJSON *wanted = json(expected);
    DF_FREE char *text = df_json_print(found);
    if (!df_json_equal(found, wanted))
        fail_msg("%s\ninstead of\n%s", text, expected);
}

/* The error of a state is told only if the phase is a failure. */
static void each_phase_has_its_name_and_a_failure_its_error(void **state)
{
    (void)state;
    static const struct {
        const char *ours, *theirs, *kind, *error;
    } phases[] = {
        {"Queued", "QUEUED", "", NULL},
        {"Initializing", "INITIALIZING", "", NULL},
        {"Executing", "RUNNING", "", NULL},
        {"Completed", "SUCCEEDED", "", NULL},
        {"Completed", "SUCCEEDED", "USER", NULL},
        {"RetryableFailure", "FAILED", "", "KIND_SYSTEM"},
        {"PermanentFailure", "FAILED", "USER", "KIND_USER"},
        {"PermanentFailure", "FAILED", "SYSTEM", "KIND_SYSTEM"},
        {"PermanentFailure", "FAILED", "", "KIND_UNSPECIFIED"},
        {"Aborted", "ABORTED", "USER", "KIND_USER"},
        {"TimedOut", "TIMED_OUT", "", "KIND_UNSPECIFIED"},
        {"Unheard", "UNSPECIFIED", "", NULL},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(phases); i++) {
        DF_FREE char *text =
            df_strf("{" STEP ",'status':{'phaseHistory':[{'phase':'%s'," AT ",'message':'m'}],"
                    "'errorState':{'kind':'%s'}}}",
                    phases[i].ours, phases[i].kind);
        DF_FREE char *error =
            phases[i].error ? df_strf(",'errorInfo':{'message':'m','kind':'%s'}", phases[i].error)
                            : strdup("");
        DF_FREE char *expected =
            df_strf("{'id':{'run':{'project':'shop','domain':'live','name':'net-1'},'name':'plan'},"
                    "'attempt':1,'phase':'ACTION_PHASE_%s','version':0,"
                    "'updatedTime':'2026-01-02T03:04:05.000006Z',"
                    "'reportedTime':'2026-01-02T03:04:05.000006Z','clusterEvents':[{'occurredAt':"
                    "'2026-01-02T03:04:05.000006Z','message':'m'}]%s}",
                    phases[i].theirs, error);
        DF_JSON cJSON *task = json(text);
        DF_JSON cJSON *event = NULL;
        assert_int_equal(df_action_event(task, 0, &scope, &event, NULL), 0);
        check(event, expected);
    }
}

/* What the cluster said of a phase is told with its own time. */
static void the_words_of_a_phase_are_told_with_their_time(void **state)
{
    (void)state;
    static const char *const words[] = {"cluster is creating", "Head pod pending"};
    static const char *const times[] = {"2026-04-02T10:00:00.000000Z",
                                        "2026-04-02T10:02:00.000000Z"};
    DF_JSON cJSON *task =
        json("{" STEP ",'status':{'phaseHistory':["
             "{'phase':'Queued','occurredAt':'2026-04-02T10:00:00.000000Z','message':"
             "'cluster is creating'},{'phase':'Initializing','occurredAt':"
             "'2026-04-02T10:02:00.000000Z','message':'Head pod pending'},"
             "{'phase':'Executing','occurredAt':'2026-04-02T10:05:00.000000Z'}]}}");
    for (int i = 0; i < 2; i++) {
        DF_JSON cJSON *event = NULL;
        assert_int_equal(df_action_event(task, i, &scope, &event, NULL), 0);
        const cJSON *told = df_json_at(event, "clusterEvents");
        assert_int_equal(cJSON_GetArraySize(told), 1);
        assert_string_equal(df_json_str(told->child, "message"), words[i]);
        assert_string_equal(df_json_str(told->child, "occurredAt"), times[i]);
    }
    DF_JSON cJSON *silent = NULL;
    assert_int_equal(df_action_event(task, 2, &scope, &silent, NULL), 0);
    assert_null(df_json_at(silent, "clusterEvents"));
}

/* The attempt goes with the status. */
static void a_lost_try_ends_an_attempt_and_the_place_is_the_version(void **state)
{
    (void)state;
    static const int attempts[] = {1, 1, 1, 2, 2, 3, 3};
    DF_JSON cJSON *task =
        json("{" STEP ",'status':{'phaseHistory':["
             "{'phase':'Queued'," AT "},{'phase':'Initializing'," AT "},"
             "{'phase':'RetryableFailure'," AT "},{'phase':'Initializing'," AT "},"
             "{'phase':'RetryableFailure'," AT "},{'phase':'Executing'," AT "},"
             "{'phase':'Completed'," AT "}]}}");
    assert_int_equal(df_action_transitions(task), DF_ARRAY_SIZE(attempts));
    for (int i = 0; i < df_action_transitions(task); i++) {
        DF_JSON cJSON *event = NULL;
        assert_int_equal(df_action_event(task, i, &scope, &event, NULL), 0);
        assert_int_equal(df_json_int(event, "attempt", 0), attempts[i]);
        assert_int_equal(df_json_int(event, "version", -1), i);
    }
}

static void put_has_the_state_as_a_text_of_json(void **state)
{
    (void)state;
    static const struct df_action_scope project = {"web", "live"};
    DF_JSON cJSON *task =
        json("{" STEP ",'status':{'phaseHistory':[{'phase':'Executing'," AT "}]}}");
    DF_JSON cJSON *put = NULL;
    assert_int_equal(df_action_put(task, 0, &project, &put, NULL), 0);
    DF_JSON cJSON *inner = cJSON_Parse(df_json_str(put, "state"));
    check(inner, "{'phase':'Executing','actionId':'net-1/plan',"
                 "'timestamp':'2026-01-02T03:04:05.000006Z'}");
    cJSON_DeleteItemFromObjectCaseSensitive(put, "state");
    check(put, "{'actionId':{'run':{'project':'web','domain':'live','name':'net-1'},"
               "'name':'plan'}}");
}

static void a_workflow_is_a_run_of_its_own(void **state)
{
    (void)state;
    DF_JSON cJSON *task = json("{'metadata':{'name':'restart','namespace':'shop'},"
                               "'spec':{'action':'workflow'},"
                               "'status':{'phaseHistory':[{'phase':'Queued'," AT "}]}}");
    DF_JSON cJSON *event = NULL;
    assert_int_equal(df_action_event(task, 0, &scope, &event, NULL), 0);
    assert_string_equal(df_json_str(event, "id.run.name"), "restart");
    assert_string_equal(df_json_str(event, "id.name"), "workflow");
}

static void a_step_without_history_has_no_transitions(void **state)
{
    (void)state;
    DF_JSON cJSON *task = json("{" STEP "}");
    assert_int_equal(df_action_transitions(task), 0);
}

/* The service writes no more; another writer of the status might. */
static void no_more_transitions_are_read_than_are_ever_written(void **state)
{
    (void)state;
    DF_JSON cJSON *task = json("{" STEP ",'status':{}}");
    for (int i = 0; i < DF_LIMIT_PHASE_HISTORY + 9; i++)
        assert_int_equal(
            df_json_append(df_json_array_at(df_json_object_at(task, "status"), "phaseHistory"),
                           json("{'phase':'Executing'}"), NULL),
            0);
    assert_int_equal(df_action_transitions(task), DF_LIMIT_PHASE_HISTORY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_phase_has_its_name_and_a_failure_its_error),
        cmocka_unit_test(the_words_of_a_phase_are_told_with_their_time),
        cmocka_unit_test(a_lost_try_ends_an_attempt_and_the_place_is_the_version),
        cmocka_unit_test(put_has_the_state_as_a_text_of_json),
        cmocka_unit_test(a_workflow_is_a_run_of_its_own),
        cmocka_unit_test(a_step_without_history_has_no_transitions),
        cmocka_unit_test(no_more_transitions_are_read_than_are_ever_written),
    };
    return cmocka_run_group_tests_name("action_event", tests, NULL, NULL);
}
