/* A run that waits for a person, in the phase WaitingApproval. Flyte calls this a condition; the
 * cases are Flyte's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "spawner/model/stamp.h"
#include "tests/unit/control_loop.h"

static void await_phase(struct world *w, const char *phase)
{
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", phase);
}

/* A run whose plan is made. */
static void ask(struct world *w)
{
    make_executor(w, "net", "");
    start(w);
    run(w, "net", ASKING);
    play_plan(w, "net-1", "net-1-plan");
}

/* "True/WaitingApproval" */
static char *condition(struct world *w, int which)
{
    DF_JSON cJSON *doc = get(w, DF_KIND_RUN, "net-1");
    const cJSON *c = cJSON_GetArrayItem(df_json_at(doc, "status.conditions"), which);
    return df_strf("%s/%s", df_json_str(c, "status"), df_json_str(c, "reason"));
}

static void assert_conditions(struct world *w, const char *progressing, const char *succeeded,
                              const char *failed)
{
    const char *const expected[] = {progressing, succeeded, failed};
    for (int i = 0; i < 3; i++) {
        DF_FREE char *found = condition(w, i);
        assert_string_equal(found, expected[i]);
    }
}

static enum df_task_phase phase_of(struct world *w)
{
    DF_JSON cJSON *doc = get(w, DF_KIND_RUN, "net-1");
    return df_task_phase(doc);
}

static void it_is_paused_until_somebody_decides_and_keeps_who_that_was(void **state)
{
    struct world *w = *state;
    ask(w);
    await_phase(w, "WaitingApproval");
    assert_conditions(w, "True/WaitingApproval", "False/WaitingApproval", "False/WaitingApproval");
    assert_int_equal(phase_of(w), DF_TASK_PHASE_PAUSED);
    assert_int_equal(decide(w, "net-1", true, DF_VERBS_WRITE, "ann", NULL), 0);
    struct runner r = claim(w, "net-1-apply");
    report(&r, APPLIED);
    await_phase(w, "Succeeded");
    assert_conditions(w, "False/Applied", "True/Applied", "False/Applied");
    assert_int_equal(phase_of(w), DF_TASK_PHASE_SUCCEEDED);
    assert_value(w, DF_KIND_RUN, "net-1", "status.approvedBy", "ann");
    assert_value(w, DF_KIND_RUN, "net-1", "spec.decision.by", "ann");
}

/* The reason is the plan's age (Flyte: ConditionTimedOut). */
static void it_ends_with_its_plan_and_a_decision_that_comes_later_changes_nothing(void **state)
{
    struct world *w = *state;
    struct df_err err = {0};
    w->config.plan_life_s = 1;
    ask(w);
    await_phase(w, "Failed");
    assert_conditions(w, "False/PlanExpired", "False/PlanExpired", "True/PlanExpired");
    assert_int_equal(df_reason_fault("PlanExpired"), DF_FAULT_USER);
    assert_int_equal(decide(w, "net-1", true, DF_VERBS_WRITE, "ann", &err), -1);
    assert_string_equal(err.reason, "WrongState");
    await_settled(w);
    assert_conditions(w, "False/PlanExpired", "False/PlanExpired", "True/PlanExpired");
    DF_JSON cJSON *apply = get(w, DF_KIND_TASK_ACTION, "net-1-apply");
    assert_null(apply);
}

static int set_deleted(cJSON *run, void *arg, struct df_err *err)
{
    char at[DF_TIME_LEN];
    (void)arg;
    return df_json_set_str(df_json_object_at(run, "metadata"), "deletionTimestamp",
                           df_time_format(df_real_us(), at), err);
}

/* There is nothing that would have to end first. */
static void it_goes_at_once_when_it_is_deleted(void **state)
{
    struct world *w = *state;
    ask(w);
    await_phase(w, "WaitingApproval");
    assert_int_equal(
        df_store_modify(w->s.store, DF_KIND_RUN, "net-1", set_deleted, NULL, NULL, NULL), 0);
    for (;;) {
        uint64_t mark = changes_mark(w);
        DF_JSON cJSON *doc = get(w, DF_KIND_RUN, "net-1");
        if (!doc)
            break;
        wait_for_change(w, mark);
    }
    assert_int_equal(fake_look(w, "net-1-plan").cancels, 0);
}

static void one_that_asks_for_nothing_has_failed(void **state)
{
    struct world *w = *state;
    DF_JSON cJSON *empty = json("{'metadata':{'name':'net-1'},'spec':{}}");
    start(w);
    assert_int_equal(df_store_create(w->s.store, DF_KIND_RUN, empty, NULL, NULL), 0);
    await_phase(w, "Failed");
    assert_conditions(w, "False/InvalidDocument", "False/InvalidDocument", "True/InvalidDocument");
}

/* A run of an executor that wants two approvals, whose plan is made. */
static void ask_two(struct world *w)
{
    make_executor(w, "net", "'requiredApprovals':2");
    start(w);
    run(w, "net", ASKING);
    play_plan(w, "net-1", "net-1-plan");
    await_phase(w, "WaitingApproval");
}

static void two_people_approve_and_the_first_alone_decides_nothing(void **state)
{
    struct world *w = *state;
    ask_two(w);
    assert_int_equal(decide(w, "net-1", true, DF_VERBS_WRITE, "ann", NULL), 0);
    await_value(w, DF_KIND_RUN, "net-1", "status.message", "1 of 2 approvals: approved by ann");
    assert_value(w, DF_KIND_RUN, "net-1", "status.phase", "WaitingApproval");
    assert_value(w, DF_KIND_RUN, "net-1", "spec.decision", "");
    const struct df_decision bob = {true, DF_VERBS_WRITE, "bob", "CHG-1", NULL};
    assert_int_equal(df_request_decide(&w->s, "net-1", &bob, NULL, NULL), 0);
    struct runner r = claim(w, "net-1-apply");
    report(&r, APPLIED);
    await_phase(w, "Succeeded");
    DF_JSON cJSON *doc = get(w, DF_KIND_RUN, "net-1");
    assert_int_equal(cJSON_GetArraySize(df_json_at(doc, "status.decisions")), 2);
    assert_true(df_approval_is_of(doc, "ann") && df_approval_is_of(doc, "bob"));
    assert_value(w, DF_KIND_RUN, "net-1", "spec.decision.by", "bob");
    assert_value(w, DF_KIND_RUN, "net-1", "spec.decision.reason", "CHG-1");
}

static void nobody_approves_twice(void **state)
{
    struct world *w = *state;
    ask_two(w);
    for (int i = 0; i < 3; i++)
        assert_int_equal(decide(w, "net-1", true, DF_VERBS_ADMIN, "ann", NULL), 0);
    await_value(w, DF_KIND_RUN, "net-1", "status.message", "1 of 2 approvals: approved by ann");
    assert_value(w, DF_KIND_RUN, "net-1", "status.phase", "WaitingApproval");
    assert_value(w, DF_KIND_RUN, "net-1", "spec.decision", "");
}

static void one_of_several_approvers_has_a_name(void **state)
{
    struct world *w = *state;
    struct df_err err = {0};
    ask_two(w);
    assert_int_equal(decide(w, "net-1", true, DF_VERBS_ADMIN, DF_STAMP_NOBODY, &err), -1);
    assert_string_equal(err.reason, "UnknownApprover");
}

static void one_person_discards_what_others_have_approved(void **state)
{
    struct world *w = *state;
    ask_two(w);
    assert_int_equal(decide(w, "net-1", true, DF_VERBS_WRITE, "ann", NULL), 0);
    assert_int_equal(decide(w, "net-1", false, DF_VERBS_WRITE, "bob", NULL), 0);
    await_phase(w, "Discarded");
    DF_JSON cJSON *apply = get(w, DF_KIND_TASK_ACTION, "net-1-apply");
    assert_null(apply);
}

/* `approval: automatic` and autoApprove are the word of one person. */
static void several_approvals_are_not_given_in_advance(void **state)
{
    struct world *w = *state;
    struct df_err err = {0};
    w->config.approval.required = 2;
    make_executor(w, "net", "'approval':'automatic'");
    start(w);
    DF_JSON cJSON *body = json(AUTO);
    const struct df_run_request quick = {
        .body = body, .rights = {DF_VERBS_ADMIN, DF_ROLE_ADMIN}, .actor = "ann"};
    assert_int_equal(df_request_create_run(&w->s, "net", &quick, NULL, &err), -1);
    assert_int_equal(err.cls, DF_ERR_DENIED);
    assert_non_null(strstr(err.message, "approval.requiredApprovals"));
    run(w, "net", ASKING);
    play_plan(w, "net-1", "net-1-plan");
    await_phase(w, "WaitingApproval");
}

/* What was looked at is what is approved. */
static void an_approval_of_another_plan_is_refused(void **state)
{
    struct world *w = *state;
    struct df_err err = {0};
    ask(w);
    await_phase(w, "WaitingApproval");
    const struct df_decision d = {true, DF_VERBS_ADMIN, "ann", NULL, "0123"};
    assert_int_equal(df_request_decide(&w->s, "net-1", &d, NULL, &err), -1);
    assert_string_equal(err.reason, "PlanChanged");
    assert_value(w, DF_KIND_RUN, "net-1", "spec.decision", "");
}

/* An executor of bob and the group net-lead, whose plan waits. */
static void ask_approvers(struct world *w)
{
    make_executor(w, "net",
                  "'approval':'automatic','approvers':{'users':['bob'],'groups':['net-lead']}");
    start(w);
    run(w, "net", ASKING);
    play_plan(w, "net-1", "net-1-plan");
    await_phase(w, "WaitingApproval");
}

static int decide_of(struct world *w, bool approves, const char *actor, const char *groups,
                     struct df_err *err)
{
    DF_JSON cJSON *list = groups ? json(groups) : NULL;
    const struct df_decision d = {
        .approves = approves, .verbs = DF_VERBS_WRITE, .actor = actor, .groups = list};
    return df_request_decide(&w->s, "net-1", &d, NULL, err);
}

static void only_approvers_approve(void **state)
{
    static const struct {
        const char *actor, *groups, *said;
    } others[] = {
        {"eve", "['net-leads','NET-LEAD']", "(users: bob; groups: net-lead)"},
        {"net-lead", "[]", "net-lead is none of them;"},
        {"ann", NULL, "bring no groups: name them in users"},
        {NULL, NULL, "who asks is none of them"},
    };
    struct world *w = *state;
    ask_approvers(w);
    for (size_t i = 0; i < DF_ARRAY_SIZE(others); i++) {
        struct df_err err = {0};
        assert_int_equal(decide_of(w, true, others[i].actor, others[i].groups, &err), -1);
        assert_string_equal(err.reason, "NotApprover");
        assert_int_equal(err.cls, DF_ERR_DENIED);
        assert_non_null(strstr(err.message, others[i].said));
    }
    assert_value(w, DF_KIND_RUN, "net-1", "status.phase", "WaitingApproval");
    assert_int_equal(decide_of(w, true, "cyd", "['all','net-lead']", NULL), 0);
    (void)claim(w, "net-1-apply");
    await_value(w, DF_KIND_RUN, "net-1", "status.approvedBy", "cyd");
}

static void who_is_no_approver_may_discard(void **state)
{
    struct world *w = *state;
    ask_approvers(w);
    assert_int_equal(decide_of(w, false, "eve", NULL, NULL), 0);
    await_phase(w, "Discarded");
}

static void no_run_approves_itself_where_there_are_approvers(void **state)
{
    struct world *w = *state;
    struct df_err err = {0};
    ask_approvers(w);
    DF_JSON cJSON *body = json(AUTO);
    const struct df_run_request quick = {
        .body = body, .rights = {DF_VERBS_ADMIN, DF_ROLE_ADMIN}, .actor = "bob"};
    assert_int_equal(df_request_create_run(&w->s, "net", &quick, NULL, &err), -1);
    assert_string_equal(err.reason, "NotApprover");
}

/* Until this member of the run's status has the text in it. Returns the document. */
static cJSON *await_text(struct world *w, const char *member, const char *text)
{
    for (;;) {
        uint64_t mark = changes_mark(w);
        cJSON *doc = get(w, DF_KIND_RUN, "net-1");
        const char *is = df_json_str(df_json_at(doc, "status"), member);
        if (is && strstr(is, text))
            return doc;
        cJSON_Delete(doc);
        wait_for_change(w, mark);
    }
}

static void a_run_that_waits_for_long_says_so_once(void **state)
{
    struct world *w = *state;
    w->config.approval.reminder_s = 1;
    ask(w);
    DF_JSON cJSON *said = await_text(w, "remindedAt", "T");
    assert_string_equal(df_run_phase(said), "WaitingApproval");
    assert_int_equal(decide(w, "net-1", true, DF_VERBS_WRITE, "ann", NULL), 0);
    struct runner r = claim(w, "net-1-apply");
    report(&r, APPLIED);
    await_phase(w, "Succeeded");
    assert_value(w, DF_KIND_RUN, "net-1", "status.remindedAt",
                 df_json_str(said, "status.remindedAt"));
}

static void a_destroy_needs_more_people_where_the_executor_says_so(void **state)
{
    struct world *w = *state;
    make_executor(w, "net", "'approval':'automatic','destroyApprovals':2");
    start(w);
    run(w, "net", ASKING);
    play_plan(w, "net-1", "net-1-plan");
    struct runner r = claim(w, "net-1-apply");
    report(&r, APPLIED);
    await_phase(w, "Succeeded");
    run(w, "net", "{'action':'destroy'}");
    play_plan(w, "net-2", "net-2-plan");
    await_value(w, DF_KIND_RUN, "net-2", "status.phase", "WaitingApproval");
    assert_int_equal(decide(w, "net-2", true, DF_VERBS_ADMIN, "ann", NULL), 0);
    await_value(w, DF_KIND_RUN, "net-2", "status.message", "1 of 2 approvals: approved by ann");
    assert_int_equal(decide(w, "net-2", true, DF_VERBS_ADMIN, "bob", NULL), 0);
    (void)claim(w, "net-2-apply");
}

/* On a day that is neither today nor a neighbour of it. */
static char *window_of_another_day(void)
{
    static const char *const days[] = {"thu", "fri", "sat", "sun", "mon", "tue", "wed"};
    int64_t today = df_real_us() / INT64_C(86400000000);
    return df_strf("'applyWindow':{'days':['%s'],'from':'10:00','to':'11:00'}",
                   days[(today + 3) % 7]);
}

static void a_plan_that_is_approved_waits_for_its_window(void **state)
{
    struct world *w = *state;
    DF_FREE char *window = window_of_another_day();
    make_executor(w, "net", window);
    start(w);
    run(w, "net", ASKING);
    play_plan(w, "net-1", "net-1-plan");
    await_phase(w, "WaitingApproval");
    assert_int_equal(decide(w, "net-1", true, DF_VERBS_WRITE, "ann", NULL), 0);
    DF_JSON cJSON *doc = await_text(w, "message", "waits for applyWindow of executor net");
    assert_string_equal(df_json_str(doc, "spec.decision.by"), "ann");
    DF_JSON cJSON *apply = get(w, DF_KIND_TASK_ACTION, "net-1-apply");
    assert_null(apply);
    assert_int_equal(df_request_cancel_run(&w->s, "net-1", DF_VERBS_WRITE, "ann", NULL, NULL, NULL),
                     0);
    await_phase(w, "Canceled");
}

/* ---- plans that need no look because of what they do ---- */

#define COVERED "'automaticFor':{'changes':['create','update'],'exceptTypes':['iam']}"

/* The runner of the plan reports these kinds and types of what it changes. */
static void plan_changes(struct world *w, const char *spec, const char *kinds, const char *types)
{
    make_executor(w, "net", spec);
    start(w);
    run(w, "net", ASKING);
    struct runner r = claim(w, "net-1-plan");
    assert_true(r.lists_changes == (strstr(spec, "automaticFor") != NULL));
    put_plan(&r, "net-1");
    DF_JSON cJSON *task = get(w, DF_KIND_TASK_ACTION, "net-1-plan");
    DF_FREE char *body =
        df_strf("{'exitCode':0,'reason':'Planned','hasChanges':true,'plan':{'sha256':'%s'},"
                "'planChanges':{'kinds':%s,'types':%s}}",
                df_json_str(task, "status.plan.sha256"), kinds, types);
    report(&r, body);
}

static void a_plan_that_only_creates_and_updates_is_applied_and_the_run_says_why(void **state)
{
    struct world *w = *state;
    plan_changes(w, COVERED, "['create','update']", "['net']");
    struct runner r = claim(w, "net-1-apply");
    report(&r, APPLIED);
    await_phase(w, "Succeeded");
    DF_JSON cJSON *doc = get(w, DF_KIND_RUN, "net-1");
    const cJSON *decisions = df_json_at(doc, "status.decisions");
    assert_int_equal(cJSON_GetArraySize(decisions), 1);
    assert_string_equal(df_json_str(decisions->child, "reason"), "automatic: only create, update");
    assert_string_equal(df_json_str(decisions->child, "plan"),
                        df_json_str(doc, "status.planDigest"));
    assert_null(df_json_at(decisions->child, "by"));
    assert_value(w, DF_KIND_RUN, "net-1", "status.approvedBy", "");
}

static void a_plan_that_does_more_waits_for_a_person(void **state)
{
    struct world *w = *state;
    plan_changes(w, COVERED, "['create','replace']", "['net']");
    await_phase(w, "WaitingApproval");
    assert_int_equal(decide(w, "net-1", true, DF_VERBS_WRITE, "ann", NULL), 0);
    (void)claim(w, "net-1-apply");
    DF_JSON cJSON *doc = get(w, DF_KIND_RUN, "net-1");
    const cJSON *decisions = df_json_at(doc, "status.decisions");
    assert_int_equal(cJSON_GetArraySize(decisions), 1);
    assert_string_equal(df_json_str(decisions->child, "by"), "ann");
}

static void a_plan_of_an_excepted_type_waits_for_a_person(void **state)
{
    plan_changes(*state, COVERED, "['create']", "['net','iam']");
    await_phase(*state, "WaitingApproval");
}

static void a_runner_that_says_nothing_of_the_changes_leaves_it_to_a_person(void **state)
{
    plan_changes(*state, COVERED, "null", "null");
    await_phase(*state, "WaitingApproval");
}

static void where_people_are_wanted_no_plan_is_covered(void **state)
{
    plan_changes(*state, COVERED ",'requiredApprovals':2", "['create']", "['net']");
    await_phase(*state, "WaitingApproval");
}

int main(void)
{
    df_log_setup(DF_LOG_ERROR, false, "test");
    const struct CMUnitTest tests[] = {
        TEST(it_is_paused_until_somebody_decides_and_keeps_who_that_was),
        TEST(it_ends_with_its_plan_and_a_decision_that_comes_later_changes_nothing),
        TEST(it_goes_at_once_when_it_is_deleted),
        TEST(one_that_asks_for_nothing_has_failed),
        TEST(two_people_approve_and_the_first_alone_decides_nothing),
        TEST(nobody_approves_twice),
        TEST(one_of_several_approvers_has_a_name),
        TEST(one_person_discards_what_others_have_approved),
        TEST(several_approvals_are_not_given_in_advance),
        TEST(an_approval_of_another_plan_is_refused),
        TEST(only_approvers_approve),
        TEST(who_is_no_approver_may_discard),
        TEST(no_run_approves_itself_where_there_are_approvers),
        TEST(a_run_that_waits_for_long_says_so_once),
        TEST(a_destroy_needs_more_people_where_the_executor_says_so),
        TEST(a_plan_that_is_approved_waits_for_its_window),
        TEST(a_plan_that_only_creates_and_updates_is_applied_and_the_run_says_why),
        TEST(a_plan_that_does_more_waits_for_a_person),
        TEST(a_plan_of_an_excepted_type_waits_for_a_person),
        TEST(a_runner_that_says_nothing_of_the_changes_leaves_it_to_a_person),
        TEST(where_people_are_wanted_no_plan_is_covered),
    };
    return cmocka_run_group_tests_name("approvals", tests, NULL, NULL);
}
