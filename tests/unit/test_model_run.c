#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "common/base/limits.h"
#include "spawner/model/model.h"
#include "tests/unit/json_words.h"

#define NOON "2026-11-21T12:00:00.000000Z"
static int64_t noon(void)
{
    int64_t us = 0;
    assert_int_equal(df_time_parse(NOON, &us, NULL), 0);
    return us;
}

/* ---- steps as the run sees them ---- */

static const char live[] = "{'spec':{},'status':{'conditions':["
                           "{'type':'Progressing','status':'True','reason':'Executing'}]}}";
static const char live_canceled[] =
    "{'spec':{'cancel':{'by':'a'}},'status':{'conditions':["
    "{'type':'Progressing','status':'True','reason':'Executing'}]}}";
#define ENDED(type, reason)                                                                        \
    "'conditions':[{'type':'Progressing','status':'False','reason':'" reason "'},"                 \
    "{'type':'" type "','status':'True','reason':'" reason "'}]"
static const char plan_done[] =
    "{'status':{'hasChanges':true,'plan':{'expiresAt':'2026-11-22T12:00:00Z'}," ENDED(
        "Succeeded", "Planned") "}}";
static const char plan_silent[] = "{'status':{" ENDED("Succeeded", "Planned") "}}";
static const char plan_empty[] =
    "{'status':{'hasChanges':false," ENDED("Succeeded", "NoChanges") "}}";
static const char plan_expired[] = "{'status':{'hasChanges':true,'plan':{'expiresAt':'" NOON
                                   "'}," ENDED("Succeeded", "Planned") "}}";
static const char failed[] =
    "{'status':{'message':'no such thing'," ENDED("Failed", "PlanFailed") "}}";
static const char canceled[] = "{'status':{'message':'ended'," ENDED("Failed", "Canceled") "}}";
static const char applied[] = "{'status':{'message':'3 added'," ENDED("Succeeded", "Applied") "}}";

static const char left_state[] =
    "{'metadata':{'labels':{'dayfly.dev/live':'true'}},'status':{'leavesState':true," ENDED(
        "Failed", "ApplyFailed") "}}";

static const char executor_required[] = "{'spec':{'approval':'required'},'status':{'revision':1}}";
static const char executor_errored[] = "{'metadata':{'name':'net'},'spec':{'approval':'automatic'},"
                                       "'status':{'revision':1,'erroredStates':["
                                       "{'step':'3f','run':'net-2','at':'" NOON "'}]}}";
static const char executor_automatic[] =
    "{'spec':{'approval':'automatic'},'status':{'revision':1}}";
static const char executor_unchecked[] =
    "{'metadata':{'generation':2},'spec':{'approval':'automatic'},'status':{'revision':1}}";
static const char executor_refused[] =
    "{'spec':{'approval':'automatic'},'status':{'revision':1,'conditions':["
    "{'type':'Progressing','status':'False','reason':'InvalidDocument'}]}}";

/* ---- one by one ---- */

struct expectation {
    const char *what;
    const char *run, *executor, *plan, *apply;
    bool not_first, lost_lives;
    enum df_run_next next;
    size_t step;
    const char *phase, *reason, *message;
    struct df_approval_rules approval;
};

static const struct expectation expectations[] = {
    {"a new run waits for its turn", "{'spec':{'action':'provision'}}", executor_required,
     .not_first = true, .next = DF_RUN_WAIT},
    {"a new run starts when it is first", "{'spec':{'action':'provision'}}", executor_required,
     .next = DF_RUN_STEP},
    {"a command on the state starts", "{'spec':{'action':'state'}}", executor_required,
     .next = DF_RUN_STEP},
    {"a command on the state that vanished is not made again",
     "{'spec':{'action':'state'},'status':{'phase':'Running','steps':[{'name':'state',"
     "'taskAction':'x'}]}}",
     executor_required, .next = DF_RUN_FINISH, .phase = "Failed", .reason = "StepDeleted",
     .message = "state step was deleted"},
    {"a command on the state is waited for",
     "{'spec':{'action':'state'},'status':{'phase':'Running'}}", executor_required, live,
     .next = DF_RUN_WAIT},
    {"a command on the state that is done asks nobody, and is the end",
     "{'spec':{'action':'state'},'status':{'phase':'Running'}}", executor_required, applied,
     .next = DF_RUN_FINISH, .phase = "Succeeded", .reason = "Applied", .message = "3 added"},
    {"a cancel that came too late for a command on the state changes nothing",
     "{'spec':{'action':'state','cancel':{'by':'a'}},'status':{'phase':'Running'}}",
     executor_required, applied, .next = DF_RUN_FINISH, .phase = "Succeeded", .reason = "Applied"},
    {"a command on the state that failed fails its run",
     "{'spec':{'action':'state'},'status':{'phase':'Running'}}", executor_required, failed,
     .next = DF_RUN_FINISH, .phase = "Failed", .reason = "PlanFailed"},
    {"a dry-run starts, too", "{'spec':{'action':'dry-run'}}", executor_required,
     .next = DF_RUN_STEP},
    {"an action that this version does not know is not executed", "{'spec':{'action':'dance'}}",
     executor_automatic, .next = DF_RUN_FINISH, .phase = "Failed", .reason = "InvalidDocument",
     .message = "spec.action: \"dance\" is not an action: provision, dry-run, destroy or state"},
    {"an action that this version does not know is not continued",
     "{'spec':{'action':'dance','autoApprove':true},'status':{'phase':'Running'}}",
     executor_automatic, plan_done, .next = DF_RUN_FINISH, .phase = "Failed",
     .reason = "InvalidDocument"},
    {"a step of an unknown action that is under way is waited for", "{'spec':{'action':'dance'}}",
     executor_required, live, .next = DF_RUN_WAIT},
    {"a step of an unknown action that is under way can be canceled",
     "{'spec':{'action':'dance','cancel':{}}}", executor_required, live,
     .next = DF_RUN_CANCEL_STEP},
    {"a run without an action is not executed", "{'spec':{}}", executor_automatic,
     .next = DF_RUN_FINISH, .phase = "Failed", .reason = "InvalidDocument"},
    {"a run whose start was noted and whose plan exists waits for it",
     "{'spec':{'action':'provision'},'status':{'phase':'Running','steps':[{'name':'plan',"
     "'taskAction':'x'}]}}",
     executor_required, live, .next = DF_RUN_WAIT},
    {"a plan that vanished is not made again",
     "{'spec':{'action':'provision'},'status':{'phase':'Running','steps':[{'name':'plan',"
     "'taskAction':'x'}]}}",
     executor_required, .next = DF_RUN_FINISH, .phase = "Failed", .reason = "StepDeleted",
     .message = "plan step was deleted"},
    {"an apply that vanished is not made again",
     "{'spec':{'action':'provision','autoApprove':true},'status':{'phase':'Running','steps':["
     "{'name':'plan','taskAction':'x'},{'name':'apply','taskAction':'y'}]}}",
     executor_required, plan_done, .next = DF_RUN_FINISH, .phase = "Failed",
     .reason = "StepDeleted", .message = "apply step was deleted"},
    {"an apply that vanished and lives is ended before its run",
     "{'spec':{'action':'provision','autoApprove':true,'cancel':{}},'status':{'phase':'Running',"
     "'steps':[{'name':'plan','taskAction':'x'},{'name':'apply','taskAction':'y'}]}}",
     executor_required, plan_done, .lost_lives = true, .next = DF_RUN_END_LOST},
    {"a plan that vanished is not missed by its apply",
     "{'spec':{'action':'provision','autoApprove':true},'status':{'phase':'Running','steps':["
     "{'name':'plan','taskAction':'x'},{'name':'apply','taskAction':'y'}]}}",
     executor_required, NULL, live, .next = DF_RUN_WAIT},
    {"a step that is only planned for is no step that was there",
     "{'spec':{'action':'provision','autoApprove':true},'status':{'phase':'Running','steps':["
     "{'name':'plan','taskAction':'x'},{'name':'apply','phase':'Pending'}]}}",
     executor_required, plan_done, .next = DF_RUN_STEP, .step = 1},
    {"a run goes on while its step may still hand over its state",
     "{'spec':{'action':'provision'},'status':{'phase':'Running'}}", executor_required, plan_done,
     left_state, .next = DF_RUN_WAIT},
    {"behind an errored state nothing starts", "{'spec':{'action':'provision'}}", executor_errored,
     .next = DF_RUN_FINISH, .phase = "Failed", .reason = "ErroredStatePending",
     .message = "run net-2 could not store its state (" NOON ")"},
    {"a run that waits learns of an errored state in its turn", "{'spec':{'action':'provision'}}",
     executor_errored, .not_first = true, .next = DF_RUN_WAIT},
    {"behind an errored state no plan is applied", "{'spec':{'action':'destroy'}}",
     executor_errored, plan_done, .next = DF_RUN_FINISH, .phase = "Failed",
     .reason = "ErroredStatePending"},
    {"an errored state is stored by a run",
     "{'spec':{'action':'state','command':['push-errored','3f']}}", executor_errored,
     .next = DF_RUN_STEP},
    {"a dry-run starts behind an errored state", "{'spec':{'action':'dry-run'}}", executor_errored,
     .next = DF_RUN_STEP},
    {"a dry-run behind an errored state says that its plan is of an old one",
     "{'spec':{'action':'dry-run'}}", executor_errored, plan_done, .next = DF_RUN_FINISH,
     .phase = "Succeeded", .reason = "Planned",
     .message = "the plan is of an old state: run net-2 could not store its state"},
    {"a dry-run ends after its plan", "{'spec':{'action':'dry-run'}}", executor_required, plan_done,
     .next = DF_RUN_FINISH, .phase = "Succeeded", .reason = "Planned"},
    {"a dry-run without changes says so, as a provision does", "{'spec':{'action':'dry-run'}}",
     executor_automatic, plan_empty, .next = DF_RUN_FINISH, .phase = "Succeeded",
     .reason = "NoChanges"},
    {"a dry-run whose plan does not say has planned", "{'spec':{'action':'dry-run'}}",
     executor_automatic, plan_silent, .next = DF_RUN_FINISH, .phase = "Succeeded",
     .reason = "Planned"},
    {"a dry-run without changes behind an errored state says that its plan is of an old one",
     "{'spec':{'action':'dry-run'}}", executor_errored, plan_empty, .next = DF_RUN_FINISH,
     .phase = "Succeeded", .reason = "NoChanges",
     .message = "the plan is of an old state: run net-2 could not store its state"},
    {"nothing to change is no apply", "{'spec':{'action':'provision'}}", executor_automatic,
     plan_empty, .next = DF_RUN_FINISH, .phase = "Succeeded", .reason = "NoChanges"},
    {"nothing to destroy is destroyed", "{'spec':{'action':'destroy'}}", executor_automatic,
     plan_empty, .next = DF_RUN_FINISH, .phase = "Succeeded", .reason = "Destroyed"},
    {"a plan with changes asks", "{'spec':{'action':'provision'}}", executor_required, plan_done,
     .next = DF_RUN_ASK},
    {"an edit that was refused approves nothing", "{'spec':{'action':'provision'}}",
     executor_refused, plan_done, .next = DF_RUN_ASK},
    {"an edit that nobody has checked approves nothing yet", "{'spec':{'action':'provision'}}",
     executor_unchecked, plan_done, .next = DF_RUN_WAIT},
    {"a plan that does not say asks", "{'spec':{'action':'provision'}}", executor_required,
     plan_silent, .next = DF_RUN_ASK},
    {"a destroy asks", "{'spec':{'action':'destroy'}}", executor_required, plan_done,
     .next = DF_RUN_ASK},
    {"who asked waits", "{'spec':{'action':'provision'},'status':{'phase':'WaitingApproval'}}",
     executor_required, plan_done, .next = DF_RUN_WAIT},
    {"auto-approval of the run", "{'spec':{'action':'provision','autoApprove':true}}",
     executor_required, plan_done, .next = DF_RUN_STEP, .step = 1},
    {"auto-approval of a role that may not skip the approval",
     "{'spec':{'action':'provision','autoApprove':true,'requestedRole':'write'}}",
     executor_required, plan_done, .next = DF_RUN_ASK, .approval = {.skips = DF_ROLE_ADMIN}},
    {"auto-approval of a role that may skip the approval",
     "{'spec':{'action':'provision','autoApprove':true,'requestedRole':'admin'}}",
     executor_required, plan_done, .next = DF_RUN_STEP, .step = 1,
     .approval = {.skips = DF_ROLE_ADMIN}},
    {"auto-approval of an unknown role", "{'spec':{'action':'provision','autoApprove':true}}",
     executor_required, plan_done, .next = DF_RUN_ASK, .approval = {.skips = DF_ROLE_ADMIN}},
    {"auto-approval of a run that was asked for before the separate approver",
     "{'spec':{'action':'provision','autoApprove':true,'requestedRole':'admin'}}",
     executor_required, plan_done, .next = DF_RUN_ASK, .approval = {.separate = true}},
    {"automatic approval with a separate approver", "{'spec':{'action':'provision'}}",
     executor_automatic, plan_done, .next = DF_RUN_ASK, .approval = {.separate = true}},
    {"automatic approval with a separate approver of the executor",
     "{'spec':{'action':'provision'}}",
     "{'spec':{'approval':'automatic','separateApprover':true},'status':{'revision':1}}", plan_done,
     .next = DF_RUN_ASK},
    {"automatic approval in spite of a window that is open", "{'spec':{'action':'provision'}}",
     "{'spec':{'approval':'automatic','applyWindow':{'from':'11:00','to':'12:01'}},'status':{"
     "'revision':1}}",
     plan_done, .next = DF_RUN_STEP, .step = 1},
    {"automatic approval outside of the window", "{'spec':{'action':'provision'}}",
     "{'metadata':{'name':'net'},'spec':{'approval':'automatic','applyWindow':{'from':'12:30','to':"
     "'13:00'}},'status':{'revision':1}}",
     plan_done, .next = DF_RUN_WAIT,
     .message = "waits for applyWindow of executor net: it opens at 2026"},
    {"an approval outside of the window",
     "{'spec':{'action':'provision','decision':{'verdict':'approved'}},'status':{'phase':"
     "'WaitingApproval'}}",
     "{'spec':{'applyWindow':{'from':'12:30','to':'13:00'}},'status':{'revision':1}}", plan_done,
     .next = DF_RUN_WAIT, .message = "T12:30:00"},
    {"a window that opens when the plan has expired",
     "{'spec':{'action':'provision','decision':{'verdict':'approved'}},'status':{'phase':"
     "'WaitingApproval'}}",
     "{'spec':{'applyWindow':{'from':'11:00','to':'11:30','days':['mon']}},'status':{"
     "'revision':1}}",
     plan_done, .next = DF_RUN_WAIT, .message = "and the plan expires at"},
    {"a cancel outside of the window",
     "{'spec':{'action':'provision','decision':{'verdict':'approved'},'cancel':{}},'status':{"
     "'phase':'WaitingApproval'}}",
     "{'spec':{'applyWindow':{'from':'12:30','to':'13:00'}},'status':{'revision':1}}", plan_done,
     .next = DF_RUN_FINISH, .phase = "Canceled"},
    {"a plan that nobody approved, outside of the window", "{'spec':{'action':'provision'}}",
     "{'spec':{'applyWindow':{'from':'12:30','to':'13:00'}},'status':{'revision':1}}", plan_done,
     .next = DF_RUN_ASK},
    {"automatic approval of a destroy that needs two", "{'spec':{'action':'destroy'}}",
     "{'spec':{'approval':'automatic','destroyApprovals':2},'status':{'revision':1}}", plan_done,
     .next = DF_RUN_ASK},
    {"automatic approval of a provision beside destroys that need two",
     "{'spec':{'action':'provision'}}",
     "{'spec':{'approval':'automatic','destroyApprovals':2},'status':{'revision':1}}", plan_done,
     .next = DF_RUN_STEP, .step = 1},
    {"automatic approval of an admin's plan that destroys everything, where that needs two",
     "{'spec':{'action':'provision','requestedRole':'admin'},'status':{'destroysAll':true}}",
     "{'spec':{'approval':'automatic','destroyApprovals':2},'status':{'revision':1}}", plan_done,
     .next = DF_RUN_ASK},
    {"automatic approval of the executor", "{'spec':{'action':'provision'}}", executor_automatic,
     plan_done, .next = DF_RUN_STEP, .step = 1},
    {"what waits for a person is not approved by a change of the executor",
     "{'spec':{'action':'provision'},'status':{'phase':'WaitingApproval'}}", executor_automatic,
     plan_done, .next = DF_RUN_WAIT},
    {"an approved plan is applied",
     "{'spec':{'action':'provision','decision':{'verdict':'approved'}},"
     "'status':{'phase':'WaitingApproval'}}",
     executor_required, plan_done, .next = DF_RUN_STEP, .step = 1},
    {"a discarded plan is not",
     "{'spec':{'action':'provision','decision':{'verdict':'discarded'}},"
     "'status':{'phase':'WaitingApproval'}}",
     executor_automatic, plan_done, .next = DF_RUN_FINISH, .phase = "Discarded",
     .reason = "Discarded"},
    {"an expired plan is not waited for",
     "{'spec':{'action':'provision'},'status':{'phase':'WaitingApproval'}}", executor_required,
     plan_expired, .next = DF_RUN_FINISH, .phase = "Failed", .reason = "PlanExpired"},
    {"an expired plan is not applied, approved or not",
     "{'spec':{'action':'provision','autoApprove':true,'decision':{'verdict':'approved'}}}",
     executor_automatic, plan_expired, .next = DF_RUN_FINISH, .phase = "Failed",
     .reason = "PlanExpired"},
    {"a failed plan fails the run with its reason", "{'spec':{'action':'provision'}}",
     executor_required, failed, .next = DF_RUN_FINISH, .phase = "Failed", .reason = "PlanFailed",
     .message = "no such thing"},
    {"a step that was canceled cancels the run", "{'spec':{'action':'provision'}}",
     executor_required, canceled, .next = DF_RUN_FINISH, .phase = "Canceled", .reason = "Canceled",
     .message = "ended"},
    {"cancel before the turn",
     "{'spec':{'action':'provision','cancel':{'by':'eve','reason':'no'}}}", executor_required,
     .not_first = true, .next = DF_RUN_FINISH, .phase = "Canceled", .reason = "Canceled",
     .message = "canceled by eve: no"},
    {"cancel while waiting for approval",
     "{'spec':{'action':'provision','cancel':{}},'status':{'phase':'WaitingApproval'}}",
     executor_required, plan_done, .next = DF_RUN_FINISH, .phase = "Canceled",
     .reason = "Canceled"},
    {"cancel beats an approval",
     "{'spec':{'action':'provision','cancel':{},'decision':{'verdict':'approved'}}}",
     executor_required, plan_done, .next = DF_RUN_FINISH, .phase = "Canceled",
     .reason = "Canceled"},
    {"cancel during the plan is passed on", "{'spec':{'action':'provision','cancel':{}}}",
     executor_required, live, .next = DF_RUN_CANCEL_STEP},
    {"cancel that was passed on waits", "{'spec':{'action':'provision','cancel':{}}}",
     executor_required, live_canceled, .next = DF_RUN_WAIT},
    {"cancel during the apply is passed on", "{'spec':{'action':'provision','cancel':{}}}",
     executor_required, plan_done, live, .next = DF_RUN_CANCEL_STEP},
    {"an apply is waited for", "{'spec':{'action':'provision'}}", executor_required, plan_done,
     live, .next = DF_RUN_WAIT},
    {"a plan that was used and expired does not end an apply", "{'spec':{'action':'provision'}}",
     executor_required, plan_expired, live, .next = DF_RUN_WAIT},
    {"an apply that succeeded", "{'spec':{'action':'provision'}}", executor_required, plan_done,
     applied, .next = DF_RUN_FINISH, .phase = "Succeeded", .reason = "Applied",
     .message = "3 added"},
    {"a destroy that succeeded", "{'spec':{'action':'destroy'}}", executor_required, plan_done,
     applied, .next = DF_RUN_FINISH, .phase = "Succeeded", .reason = "Destroyed"},
    {"an apply that in fact succeeded stays so, canceled or not",
     "{'spec':{'action':'provision','cancel':{}}}", executor_required, plan_done, applied,
     .next = DF_RUN_FINISH, .phase = "Succeeded", .reason = "Applied"},
    {"an apply that failed after a cancel is canceled",
     "{'spec':{'action':'provision','cancel':{'by':'eve'}}}", executor_required, plan_done, failed,
     .next = DF_RUN_FINISH, .phase = "Canceled", .reason = "Canceled",
     .message = "canceled by eve"},
    {"an apply that failed", "{'spec':{'action':'provision'}}", executor_required, plan_done,
     failed, .next = DF_RUN_FINISH, .phase = "Failed", .reason = "PlanFailed"},
    {"an executor that is gone fails what has not begun", "{'spec':{'action':'provision'}}", NULL,
     .not_first = true, .next = DF_RUN_FINISH, .phase = "Failed", .reason = "ExecutorGone"},
    {"an executor that is gone ends what runs", "{'spec':{'action':'provision'}}", NULL, live,
     .next = DF_RUN_CANCEL_STEP},
    {"and then fails it", "{'spec':{'action':'provision'}}", NULL, canceled, .next = DF_RUN_FINISH,
     .phase = "Failed", .reason = "ExecutorGone"},
    {"an executor that is gone fails what waits", "{'spec':{'action':'provision'}}", NULL,
     plan_done, .next = DF_RUN_FINISH, .phase = "Failed", .reason = "ExecutorGone"},
    {"what was applied before the executor went stays applied", "{'spec':{'action':'provision'}}",
     NULL, plan_done, applied, .next = DF_RUN_FINISH, .phase = "Succeeded", .reason = "Applied"},
};

static void a_run_is_decided_as_the_table_says(void **state)
{
    (void)state;
    for (size_t i = 0; i < DF_ARRAY_SIZE(expectations); i++) {
        const struct expectation *e = &expectations[i];
        DF_JSON cJSON *run = json(e->run), *executor = e->executor ? json(e->executor) : NULL;
        DF_JSON cJSON *plan = e->plan ? json(e->plan) : NULL;
        DF_JSON cJSON *apply = e->apply ? json(e->apply) : NULL;
        struct df_run_view view = {run,           executor,      {plan, apply},
                                   !e->not_first, e->lost_lives, e->approval};
        struct df_run_verdict v = df_run_next(&view, noon());
        if (v.next != e->next || (v.next == DF_RUN_STEP && v.step != e->step) ||
            (e->phase && !df_streq(v.phase, e->phase)) ||
            (e->reason && !df_streq(v.reason, e->reason)) ||
            (e->message && !strstr(v.message, e->message)))
            fail_msg("%s: next %d, phase %s, reason \"%s\", message \"%s\"", e->what, v.next,
                     v.phase ? v.phase : "-", v.reason, v.message);
    }
}

static void waiting_for_an_approval_ends_with_the_plan(void **state)
{
    (void)state;
    DF_JSON cJSON *run =
        json("{'spec':{'action':'provision'},'status':{'phase':'WaitingApproval'}}");
    DF_JSON cJSON *executor = json(executor_required), *plan = json(plan_done);
    struct df_run_view view = {run, executor, {plan}, true};
    struct df_run_verdict v = df_run_next(&view, noon());
    assert_int_equal(v.next, DF_RUN_WAIT);
    assert_int_equal(v.wake_us, noon() + INT64_C(86400000000));
    v = df_run_next(&view, v.wake_us);
    assert_int_equal(v.next, DF_RUN_FINISH);
    assert_string_equal(v.reason, "PlanExpired");
}

static void a_run_that_waits_for_long_says_so_once(void **state)
{
    (void)state;
    DF_JSON cJSON *run =
        json("{'spec':{'action':'provision'},'status':{'phase':'WaitingApproval'}}");
    DF_JSON cJSON *executor = json(executor_required);
    DF_JSON cJSON *plan =
        json("{'status':{'hasChanges':true,'plan':{'expiresAt':'2026-11-22T12:00:00Z'},"
             "'conditions':[{'type':'Progressing','status':'False','reason':'Planned',"
             "'lastTransitionTime':'" NOON "'},{'type':'Succeeded','status':'True'}]}}");
    struct df_run_view view = {run, executor, {plan}, true, .approval = {.reminder_s = 60}};
    int64_t due_us = noon() + INT64_C(60000000);
    struct df_run_verdict v = df_run_next(&view, due_us - 1);
    assert_int_equal(v.next, DF_RUN_WAIT);
    assert_int_equal(v.wake_us, due_us);
    v = df_run_next(&view, due_us);
    assert_int_equal(v.next, DF_RUN_REMIND);
    DF_JSON cJSON *said = json(
        "{'spec':{'action':'provision'},'status':{'phase':'WaitingApproval','remindedAt':'x'}}");
    view.run = said;
    v = df_run_next(&view, due_us);
    assert_int_equal(v.next, DF_RUN_WAIT);
    assert_true(v.wake_us > due_us);
}

static void a_canceled_run_ends_when_nothing_of_its_step_is_left(void **state)
{
    (void)state;
    static const struct {
        const char *step;
        int64_t seconds; /* from the cancel on */
    } rows[] = {
        {"{'metadata':{'labels':{'dayfly.dev/live':'true'}},'spec':{'graceSeconds':100},'status':{"
         "'claimedBy':{}," ENDED("Failed", "Canceled") "}}",
         100 + 3 * DF_TIMEOUT_MARGIN_SECONDS},
        {"{'metadata':{'labels':{'dayfly.dev/live':'true'}},'status':{" ENDED("Failed",
                                                                              "Canceled") "}}",
         3 * DF_TIMEOUT_MARGIN_SECONDS},
        {"{'metadata':{'labels':{}},'status':{" ENDED("Failed", "Canceled") "}}", 0},
    };
    DF_JSON cJSON *run = json("{'spec':{'action':'provision','cancel':{'at':'" NOON "'}}}");
    DF_JSON cJSON *executor = json(executor_required);
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        DF_JSON cJSON *plan = json(rows[i].step);
        struct df_run_view view = {run, executor, {plan}, true};
        int64_t end = noon() + rows[i].seconds * 1000000;
        if (rows[i].seconds) {
            struct df_run_verdict v = df_run_next(&view, end - 1);
            assert_int_equal(v.next, DF_RUN_WAIT);
            assert_int_equal(v.wake_us, end);
        }
        struct df_run_verdict v = df_run_next(&view, end);
        assert_int_equal(v.next, DF_RUN_FINISH);
        assert_string_equal(v.phase, "Canceled");
    }
}

/* ---- every combination ---- */

static const char *const actions[] = {"provision", "dry-run", "destroy"};
static const char *const phases[] = {NULL,        "Pending", "Running",  "WaitingApproval",
                                     "Succeeded", "Failed",  "Canceled", "Discarded"};
static const char *const decisions[] = {NULL, "approved", "discarded"};
static const char *const executors[] = {NULL, executor_required, executor_automatic};
static const char *const plans[] = {NULL,       live,         live_canceled, plan_done, plan_silent,
                                    plan_empty, plan_expired, failed,        canceled};
static const char *const applies[] = {NULL, live, live_canceled, applied, failed, canceled};
static const char *const noted[] = {
    "[]", "[{'name':'plan','taskAction':'x'}]",
    "[{'name':'plan','taskAction':'x'},{'name':'apply','taskAction':'y'}]"};

struct combination {
    size_t action, phase, decision, executor, plan, apply, steps;
    bool cancel, automatic, first, lost_lives;
};

/* Counts through all combinations like an odometer; false at the end. */
static bool advance(struct combination *c)
{
    size_t *digits[] = {&c->action, &c->phase, &c->decision, &c->executor,
                        &c->plan,   &c->apply, &c->steps};
    static const size_t sizes[] = {DF_ARRAY_SIZE(actions),   DF_ARRAY_SIZE(phases),
                                   DF_ARRAY_SIZE(decisions), DF_ARRAY_SIZE(executors),
                                   DF_ARRAY_SIZE(plans),     DF_ARRAY_SIZE(applies),
                                   DF_ARRAY_SIZE(noted)};
    bool *flags[] = {&c->cancel, &c->automatic, &c->first, &c->lost_lives};
    for (size_t i = 0; i < DF_ARRAY_SIZE(flags); i++) {
        *flags[i] = !*flags[i];
        if (*flags[i])
            return true;
    }
    for (size_t i = 0; i < DF_ARRAY_SIZE(digits); i++) {
        if (++*digits[i] < sizes[i])
            return true;
        *digits[i] = 0;
    }
    return false;
}

static cJSON *combined_run(const struct combination *c)
{
    cJSON *run = cJSON_CreateObject(), *spec = df_json_object_at(run, "spec");
    cJSON *status = df_json_object_at(run, "status");
    (void)df_json_add_str(spec, "action", actions[c->action], NULL);
    (void)df_json_add_bool(spec, "autoApprove", c->automatic, NULL);
    if (c->cancel)
        (void)df_json_object_at(spec, "cancel");
    if (decisions[c->decision])
        (void)df_json_set_str(df_json_object_at(spec, "decision"), "verdict",
                              decisions[c->decision], NULL);
    (void)df_json_add_str(status, "phase", phases[c->phase], NULL);
    (void)df_json_add(status, "steps", json(noted[c->steps]), NULL);
    return run;
}

static bool is_any(const char *s, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (df_streq(s, list[i]))
            return true;
    return false;
}

static void check_invariants(const struct combination *c, const struct df_run_verdict *v)
{
    const char *plan = plans[c->plan], *apply = applies[c->apply];
    bool final = c->phase >= 4, dry_run = c->action == 1;
    const char *last = apply ? apply : plan;
    bool is_live = last == live || last == live_canceled;
    bool planned = plan == plan_done || plan == plan_silent;
    bool approved =
        c->decision == 1 || (c->decision == 0 && c->phase != 3 &&
                             (c->automatic || executors[c->executor] == executor_automatic));
    bool is_lost = !apply && (c->steps == 2 || (c->steps == 1 && !plan));
    switch (v->next) {
    case DF_RUN_STEP:
        assert_true(!final && !c->cancel && executors[c->executor]);
        if (v->step == 0) {
            assert_true(!plan && !apply && c->steps == 0 && c->first);
            break;
        }
        /* Never a second apply, never one without a yes. */
        assert_true(!apply && c->steps < 2 && planned && !dry_run && approved);
        break;
    case DF_RUN_ASK:
        assert_true(!final && !apply && planned && !dry_run && !c->cancel && !approved);
        assert_true(c->decision == 0 && c->phase != 3);
        break;
    case DF_RUN_REMIND:
        fail_msg("there is no reminder");
        break;
    case DF_RUN_CANCEL_STEP:
        assert_true(!final && last == live && (c->cancel || !executors[c->executor]));
        break;
    case DF_RUN_END_LOST:
        assert_true(!final && is_lost && c->lost_lives && v->wake_us > noon());
        break;
    case DF_RUN_FINISH:
        assert_true(!final && v->reason[0]);
        assert_true(is_any(v->phase, phases + 4, 4));
        /* What lives is not given up. A step that was noted and is gone does not live. */
        assert_true(!is_live || is_lost);
        assert_true(!is_lost || !c->lost_lives);
        assert_true(last != applied || df_streq(v->phase, "Succeeded") || !plan);
        break;
    case DF_RUN_WAIT:
        /* For an end that must come, for the turn, or for a person until the plan expires. */
        assert_true(final || is_live || (!plan && !apply && !c->first) ||
                    (planned && !apply && c->phase == 3));
        if (!final && is_live && (c->cancel || !executors[c->executor]))
            assert_ptr_equal(last, live_canceled);
        if (!final && plan == plan_done && !apply)
            assert_true(v->wake_us > noon());
        break;
    }
}

static void every_combination_keeps_the_promises(void **state)
{
    (void)state;
    size_t count = 0;
    cJSON *executor_docs[] = {NULL, json(executor_required), json(executor_automatic)};
    cJSON *plan_docs[DF_ARRAY_SIZE(plans)] = {0}, *apply_docs[DF_ARRAY_SIZE(applies)] = {0};
    for (size_t i = 1; i < DF_ARRAY_SIZE(plans); i++)
        plan_docs[i] = json(plans[i]);
    for (size_t i = 1; i < DF_ARRAY_SIZE(applies); i++)
        apply_docs[i] = json(applies[i]);
    struct combination c = {0};
    do {
        count++;
        if (c.action == 1 && (c.apply || c.steps == 2))
            continue; /* a dry-run has no such step */
        DF_JSON cJSON *run = combined_run(&c);
        struct df_run_view view = {run,
                                   executor_docs[c.executor],
                                   {plan_docs[c.plan], apply_docs[c.apply]},
                                   c.first,
                                   c.lost_lives};
        struct df_run_verdict v = df_run_next(&view, noon());
        check_invariants(&c, &v);
    } while (advance(&c));
    assert_int_equal(count, 16 * 3 * 8 * 3 * 3 * 9 * 6 * 3);
    for (size_t i = 1; i < DF_ARRAY_SIZE(plans); i++)
        cJSON_Delete(plan_docs[i]);
    for (size_t i = 1; i < DF_ARRAY_SIZE(applies); i++)
        cJSON_Delete(apply_docs[i]);
    cJSON_Delete(executor_docs[1]);
    cJSON_Delete(executor_docs[2]);
}

static void the_plan_step_of_a_destroy_plans_the_destruction(void **state)
{
    (void)state;
    static const struct {
        const char *action, *executor, *step;
    } cases[] = {
        {"provision", "{'status':{'state':'provision'}}", "plan"},
        {"provision", "{'status':{'state':'destroy'}}", "plan"},
        {"provision", "{'status':{'state':'destroyed'}}", "plan"},
        {"dry-run", "{'status':{'state':'provisioned'}}", "plan"},
        {"dry-run", "{'status':{'state':'destroy'}}", "plan-destroy"},
        {"dry-run", "{'status':{'state':'destroy','before':{'state':'provisioned'}}}", "plan"},
        {"dry-run", "{'status':{'state':'provisioned','before':{'state':'destroy'}}}",
         "plan-destroy"},
        {"dry-run", "{}", "plan"},
        {"destroy", "{'status':{'state':'provisioned'}}", "plan-destroy"},
        {"destroy", "{}", "plan-destroy"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_JSON cJSON *executor = json(cases[i].executor), *run = json("{'spec':{}}");
        assert_int_equal(
            df_json_set_str(df_json_object_at(run, "spec"), "action", cases[i].action, NULL), 0);
        assert_string_equal(df_run_first_action(run, executor), cases[i].step);
    }
}

static void a_run_is_pending_until_it_says_otherwise(void **state)
{
    (void)state;
    DF_JSON cJSON *run = json("{}");
    assert_string_equal(df_run_phase(run), "Pending");
    assert_false(df_run_is_final(run));
    for (size_t i = 1; i < DF_ARRAY_SIZE(phases); i++) {
        assert_int_equal(
            df_json_set_str(df_json_object_at(run, "status"), "phase", phases[i], NULL), 0);
        assert_string_equal(df_run_phase(run), phases[i]);
        assert_true(df_run_is_final(run) == (i >= 4));
    }
}

#define SECOND INT64_C(1000000)

static void a_run_that_learned_only_its_tool_is_written_when_that_has_run_for_a_second(void **state)
{
    (void)state;
    static const char with_tool[] =
        "{'status':{'phase':'Running','source':{'a':1},'tool':{'name':'opentofu'}}}";
    static const struct {
        const char *before, *now;
        int64_t at_us, due_us; /* both after the tool began; due_us 0: now */
    } cases[] = {
        {"{'status':{'phase':'Running'}}", with_tool, 0, SECOND},
        {"{'status':{'phase':'Running'}}", with_tool, SECOND - 1, SECOND},
        {"{'status':{'phase':'Running'}}", with_tool, SECOND, 0},
        {"{'status':{'phase':'Running'}}", with_tool, -1, 0}, /* of a node whose clock is ahead */
        {"{'status':{'phase':'Pending'}}", with_tool, 0, 0},
        {with_tool, "{'status':{'phase':'Running','tool':{'name':'terraform'}}}", 0, 0},
        {"{'status':{'phase':'Running'}}", "{'status':{'phase':'Succeeded'}}", 0, 0},
        {"{'status':{'phase':'Running'}}", "{'status':{'phase':'Running','source':{'a':1}}}", 0, 0},
    };
    DF_JSON cJSON *plan = json("{'status':{'timeline':[{'name':'initialized','at':'" NOON "'}]}}");
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_JSON cJSON *before = json(cases[i].before), *run = json(cases[i].now);
        int64_t due_us = -1;
        assert_int_equal(df_run_due_us(before, run, plan, noon() + cases[i].at_us, &due_us, NULL),
                         0);
        assert_int_equal(due_us, cases[i].due_us ? noon() + cases[i].due_us : 0);
    }
}

static void a_step_names_its_run_and_the_same_executor(void **state)
{
    (void)state;
    static const struct {
        const char *spec;
        bool is_step;
    } cases[] = {
        {"{'runRef':{'name':'net-7'},'executorRef':{'name':'net','uid':'u'}}", true},
        {"{'runRef':{'name':'net-8'},'executorRef':{'name':'net','uid':'u'}}", false},
        {"{'runRef':{'name':'net-7'},'executorRef':{'name':'net','uid':'v'}}", false},
        {"{'runRef':{'name':'net-7'},'executorRef':{'name':'lan','uid':'u'}}", false},
        {"{'runRef':{'name':'net-7'},'executorRef':{'name':'net'}}", false},
        {"{'executorRef':{'name':'net','uid':'u'}}", false},
        {"{}", false},
    };
    DF_JSON cJSON *run = json("{'metadata':{'name':'net-7'},'spec':{'executorRef':{'name':'net',"
                              "'uid':'u'}}}");
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_JSON cJSON *task = cJSON_CreateObject();
        assert_int_equal(df_json_set(task, "spec", json(cases[i].spec), NULL), 0);
        assert_int_equal(df_run_has_step(run, task), cases[i].is_step);
    }
    assert_false(df_run_has_step(run, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            a_run_that_learned_only_its_tool_is_written_when_that_has_run_for_a_second),
        cmocka_unit_test(a_run_is_decided_as_the_table_says),
        cmocka_unit_test(waiting_for_an_approval_ends_with_the_plan),
        cmocka_unit_test(a_run_that_waits_for_long_says_so_once),
        cmocka_unit_test(a_canceled_run_ends_when_nothing_of_its_step_is_left),
        cmocka_unit_test(every_combination_keeps_the_promises),
        cmocka_unit_test(a_step_names_its_run_and_the_same_executor),
        cmocka_unit_test(the_plan_step_of_a_destroy_plans_the_destruction),
        cmocka_unit_test(a_run_is_pending_until_it_says_otherwise),
    };
    return cmocka_run_group_tests_name("model_run", tests, NULL, NULL);
}
