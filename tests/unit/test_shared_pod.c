/* One pod for a plan and its apply: who may join, what is written, what comes next, and when an
 * offer is over. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "spawner/model/labels.h"
#include "spawner/model/shared_pod.h"
#include "tests/unit/json_words.h"
#include "tests/unit/task_steps.h"

#define PLAN                                                                                       \
    "{'metadata':{'name':'net-1-plan','uid':'p','labels':{'dayfly.dev/live':'true'}},"             \
    "'spec':{'engine':'job','graceSeconds':9,"                                                     \
    "'keepsPodFor':{'taskAction':'net-1-apply','timeoutSeconds':60}},"                             \
    "'status':{'engineRef':{'kind':'Job','name':'net-1-plan','uid':'j'},"                          \
    "'claimedBy':{'podUid':'pod'},'hasChanges':true,"                                              \
    "'conditions':[{'type':'Succeeded','status':'True'}]}}"
#define APPLY                                                                                      \
    "{'metadata':{'name':'net-1-apply','uid':'a'},"                                                \
    "'spec':{'engine':'job','graceSeconds':9,'timeoutSeconds':60},'status':{}}"

/* Puts a value to a path of the document; "": takes the member away. */
static void change(cJSON *doc, const char *path, const char *value)
{
    char parents[64];
    (void)snprintf(parents, sizeof(parents), "%s", path);
    char *member = strrchr(parents, '.');
    *member++ = '\0';
    cJSON *at = (cJSON *)(uintptr_t)df_json_at(doc, parents);
    assert_non_null(at);
    if (*value)
        assert_int_equal(df_json_set(at, member, json(value), NULL), 0);
    else
        cJSON_DeleteItemFromObjectCaseSensitive(at, member);
}

/* ---- who may join ---- */

static const struct {
    const char *of, *path, *value;
} obstacles[] = {
    {"plan", "spec.keepsPodFor", ""},
    {"plan", "spec.keepsPodFor.taskAction", "'net-2-apply'"},
    {"plan", "spec.engine", "'local'"},
    {"plan", "status.conditions", "[{'type':'Failed','status':'True'}]"},
    {"plan", "status.conditions", "[]"},
    {"plan", "metadata.deletionTimestamp", "'2026-01-01T00:00:00Z'"},
    {"plan", "metadata.labels", "{}"},
    {"plan", "status.claimedBy", "{'host':'h'}"},
    {"plan", "status.engineRef", ""},
    {"plan", "status.engineRef.hostUid", "'x'"},
    {"apply", "status.engineRef", "{'kind':'Job'}"},
    {"apply", "metadata.name", "'other'"},
    {"apply", "spec.timeoutSeconds", "61"}, /* the Job's deadline would end it */
    {"apply", "spec.graceSeconds", "10"},
};

static void an_apply_joins_the_pod_that_stays_for_it(void **state)
{
    (void)state;
    DF_JSON cJSON *plan = json(PLAN), *apply = json(APPLY);
    assert_true(df_shared_pod_may_join(apply, plan));
    assert_false(df_shared_pod_may_join(apply, NULL));
}

static void each_obstacle_keeps_it_from_joining(void **state)
{
    (void)state;
    for (size_t i = 0; i < DF_ARRAY_SIZE(obstacles); i++) {
        DF_JSON cJSON *plan = json(PLAN), *apply = json(APPLY);
        change(df_streq(obstacles[i].of, "plan") ? plan : apply, obstacles[i].path,
               obstacles[i].value);
        if (df_shared_pod_may_join(apply, plan))
            fail_msg("%s %s: %s", obstacles[i].of, obstacles[i].path, obstacles[i].value);
    }
}

static void offer(cJSON *apply, const cJSON *plan)
{
    cJSON *ref = NULL;
    assert_int_equal(df_shared_pod_ref(plan, &ref, NULL), 0);
    assert_true(df_shared_pod_is_of_plan(ref));
    assert_int_equal(df_json_set(df_json_object_at(apply, "status"), "engineRef", ref, NULL), 0);
}

static void the_reference_of_the_apply_names_job_step_and_pod(void **state)
{
    (void)state;
    DF_JSON cJSON *plan = json(PLAN), *apply = json(APPLY);
    assert_null(df_shared_pod_host(apply));
    offer(apply, plan);
    DF_JSON cJSON *want =
        json("{'kind':'Job','name':'net-1-plan','uid':'j','hostUid':'p','podUid':'pod'}");
    assert_true(df_json_equal(df_json_at(apply, "status.engineRef"), want));
    assert_string_equal(df_shared_pod_host(apply), "p");
    assert_false(df_shared_pod_may_join(apply, plan));
}

static void who_leaves_begins_anew(void **state)
{
    (void)state;
    DF_JSON cJSON *plan = json(PLAN), *apply = json(APPLY);
    offer(apply, plan);
    assert_int_equal(df_task_add_time(apply, "queued", EPOCH, NULL), 0);
    assert_int_equal(df_task_add_time(apply, "created", EPOCH, NULL), 0);
    df_shared_pod_leave(apply);
    assert_null(df_json_at(apply, "status.engineRef"));
    assert_int_equal(cJSON_GetArraySize(df_json_at(apply, "status.timeline")), 1);
    assert_int_equal(df_task_age_us(apply, EPOCH + SECOND), 0);
}

static void a_step_with_resources_of_its_own_keeps_them(void **state)
{
    (void)state;
    DF_JSON cJSON *apply = json(APPLY);
    change(apply, "status.engineRef", "{'kind':'Job'}");
    df_shared_pod_leave(apply);
    assert_non_null(df_json_at(apply, "status.engineRef"));
}

/* ---- what comes next ---- */

#define JOINED                                                                                     \
    "{'metadata':{'labels':{'dayfly.dev/unfinished':'true'}},'status':{'engineRef':{'hostUid':"    \
    "'p'}}}"
#define RUN_WITH(status) "{'spec':{},'status':{'phase':'" status "'}}"

static const struct {
    const char *what, *path, *value; /* of the plan; or NULL */
    const char *run, *apply;
    enum df_shared_pod_next next;
} nexts[] = {
    {"the apply is not there yet", NULL, NULL, RUN_WITH("Running"), NULL, DF_SHARED_POD_WAITS},
    {"the apply has not begun", NULL, NULL, RUN_WITH("Running"), APPLY, DF_SHARED_POD_WAITS},
    {"the apply was offered", NULL, NULL, RUN_WITH("Running"), JOINED, DF_SHARED_POD_APPLY},
    {"also if the run is gone", NULL, NULL, NULL, JOINED, DF_SHARED_POD_APPLY},
    {"the apply is over", NULL, NULL, RUN_WITH("Running"),
     "{'status':{'engineRef':{'hostUid':'p'}}}", DF_SHARED_POD_ENDS},
    {"the apply is elsewhere", NULL, NULL, RUN_WITH("Running"),
     "{'status':{'engineRef':{'name':'x'}}}", DF_SHARED_POD_ENDS},
    {"the apply gets a Job", NULL, NULL, RUN_WITH("Running"),
     "{'metadata':{'labels':{'dayfly.dev/live':'true'}},'status':{}}", DF_SHARED_POD_ENDS},
    {"the apply is canceled", NULL, NULL, RUN_WITH("Running"), "{'spec':{'cancel':{}}}",
     DF_SHARED_POD_ENDS},
    {"somebody must approve", NULL, NULL, RUN_WITH("WaitingApproval"), NULL, DF_SHARED_POD_ENDS},
    {"the run is over", NULL, NULL, RUN_WITH("Failed"), NULL, DF_SHARED_POD_ENDS},
    {"the run is canceled", NULL, NULL, "{'spec':{'cancel':{}},'status':{'phase':'Running'}}", NULL,
     DF_SHARED_POD_ENDS},
    {"the run is gone", NULL, NULL, NULL, NULL, DF_SHARED_POD_ENDS},
    {"nothing to change", "status.hasChanges", "false", RUN_WITH("Running"), NULL,
     DF_SHARED_POD_ENDS},
    {"the plan failed", "status.conditions", "[{'type':'Failed','status':'True'}]",
     RUN_WITH("Running"), NULL, DF_SHARED_POD_ENDS},
    {"its pod stays for nobody", "spec.keepsPodFor", "", RUN_WITH("Running"), NULL,
     DF_SHARED_POD_ENDS},
};

static void what_comes_next_follows_from_plan_run_and_apply(void **state)
{
    (void)state;
    for (size_t i = 0; i < DF_ARRAY_SIZE(nexts); i++) {
        DF_JSON cJSON *plan = json(PLAN), *run = nexts[i].run ? json(nexts[i].run) : NULL;
        DF_JSON cJSON *apply = nexts[i].apply ? json(nexts[i].apply) : NULL;
        if (nexts[i].path)
            change(plan, nexts[i].path, nexts[i].value);
        if (df_shared_pod_next(plan, run, apply) != nexts[i].next)
            fail_msg("%s", nexts[i].what);
    }
}

/* ---- an offer, and a pod that is lent ---- */

static const struct {
    const char *what;
    struct step step;
    enum df_engine_phase phase;
    bool gives_up;
    int64_t second;
    enum df_task_next next;
} offers[] = {
    {"waits for the pod", {0}, RUNNING, false, 1, DF_TASK_WAIT},
    {"is over with the pod", {0}, ENDED, false, 1, DF_TASK_CREATE},
    {"which ended well", {0}, ENDED, true, 1, DF_TASK_CREATE},
    {"is over without Job and pod", {0}, ABSENT, false, 1, DF_TASK_CREATE},
    {"is over after the pending deadline", {0}, RUNNING, false, PENDING_S, DF_TASK_CREATE},
    {"however often attempts were lost before", {.failures = 9}, ENDED, 0, 1, DF_TASK_CREATE},
    {"is canceled", {.canceled = true}, RUNNING, false, CANCEL_S, DF_TASK_CANCEL},
    {"was canceled", {.canceled = true}, ENDED, false, CANCEL_S, DF_TASK_FAIL},
    {"was taken, and the pod is gone", {.claimed = true}, ENDED, false, 9, DF_TASK_FAIL},
    {"was taken, and the pod lives", {.claimed = true}, RUNNING, false, 9, DF_TASK_WAIT},
};

static cJSON *make_offer(const struct step *s)
{
    cJSON *task = make_step(s);
    change(task, "status.engineRef", "{'name':'net-1-plan','hostUid':'p','podUid':'pod'}");
    return task;
}

static void an_offer_is_over_when_the_pod_cannot_take_it_any_more(void **state)
{
    (void)state;
    for (size_t i = 0; i < DF_ARRAY_SIZE(offers); i++) {
        DF_JSON cJSON *task = make_offer(&offers[i].step);
        struct df_engine_observation seen = observed(offers[i].phase, false);
        seen.gives_up = offers[i].gives_up;
        if (df_task_next(task, &seen, EPOCH + offers[i].second * SECOND).next != offers[i].next)
            fail_msg("an offer %s", offers[i].what);
    }
}

#define STANDBY_S 30

/* A standby runner claims within seconds; the pod of a plan has the whole time. */
static void an_offer_to_a_standby_runner_is_over_sooner(void **state)
{
    (void)state;
    static const struct {
        const char *host;
        bool gives_up;
        int64_t over_s;
    } hosts[] = {
        {"{'name':'standby-1','hostUid':'standby-1'}", false, STANDBY_S},
        {"{'name':'net-1-plan','hostUid':'p','podUid':'pod'}", false, PENDING_S},
        {"{'name':'standby-1','hostUid':'standby-1'}", true, 0},
        {"{'name':'net-1-plan','hostUid':'p','podUid':'pod'}", true, 0},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(hosts); i++) {
        DF_JSON cJSON *task = make_offer(&(struct step){0});
        struct df_engine_observation seen = observed(STARTING, false);
        int64_t over_us = EPOCH + hosts[i].over_s * SECOND;
        change(task, "status.engineRef", hosts[i].host);
        seen.gives_up = hosts[i].gives_up;
        assert_int_equal(df_task_next(task, &seen, over_us).next, DF_TASK_CREATE);
        struct df_task_verdict v = df_task_next(task, &seen, over_us - 1);
        assert_int_equal(v.next, seen.gives_up ? DF_TASK_CREATE : DF_TASK_WAIT);
        assert_int_equal(v.wake_us, seen.gives_up ? 0 : over_us);
    }
}

static void an_offer_to_a_standby_runner_ends_no_later_than_any_other(void **state)
{
    (void)state;
    DF_JSON cJSON *task = make_offer(&(struct step){0});
    struct df_engine_observation seen = observed(RUNNING, false);
    change(task, "status.engineRef", "{'name':'standby-1','hostUid':'standby-1'}");
    change(task, "spec.pendingSeconds", "9");
    assert_int_equal(df_task_next(task, &seen, EPOCH).wake_us, EPOCH + 9 * SECOND);
}

/* While the engine could not be reached, nobody saw whether the runner had come. */
static void an_offer_to_a_standby_runner_outlives_a_time_without_the_engine(void **state)
{
    (void)state;
    DF_JSON cJSON *task = make_offer(&(struct step){0});
    struct df_engine_observation seen = observed(RUNNING, false);
    int64_t back_us = EPOCH + STANDBY_S * SECOND;
    change(task, "status.engineRef", "{'name':'standby-1','hostUid':'standby-1'}");
    seen.reachable_since_us = back_us;
    struct df_task_verdict v = df_task_next(task, &seen, back_us);
    assert_int_equal(v.next, DF_TASK_WAIT);
    assert_int_equal(v.wake_us, back_us + MARGIN_S * SECOND);
}

static void an_offer_that_nobody_took_is_no_lost_attempt(void **state)
{
    (void)state;
    DF_JSON cJSON *task = make_offer(&(struct step){0});
    struct df_engine_observation seen = observed(ENDED, false);
    assert_int_equal(df_task_count_lost_attempt(task, &seen, EPOCH, NULL), 0);
    assert_null(df_json_at(task, "status.systemFailures"));
}

static void a_plan_whose_pod_is_lent_leaves_the_pod_alone(void **state)
{
    (void)state;
    DF_JSON cJSON *plan = make_step(&(struct step){.end = DF_OUTCOME_SUCCEEDED, .claimed = true});
    struct df_engine_observation seen = observed(RUNNING, false);
    int64_t late = EPOCH + 99999 * SECOND;
    assert_int_equal(df_task_next(plan, &seen, late).next, DF_TASK_CANCEL);
    seen.serves_other_step = true;
    struct df_task_verdict v = df_task_next(plan, &seen, late);
    assert_int_equal(v.next, DF_TASK_WAIT);
    assert_int_equal(v.wake_us, late + 60 * SECOND); /* if nobody wakes it */
}

static void a_plan_whose_pod_is_lent_cleans_nothing_when_it_has_ended(void **state)
{
    (void)state;
    DF_JSON cJSON *plan = make_step(&(struct step){.end = DF_OUTCOME_SUCCEEDED, .claimed = true});
    struct df_engine_observation seen = observed(ENDED, false);
    assert_int_equal(df_task_next(plan, &seen, EPOCH).next, DF_TASK_CLEAN);
    seen.serves_other_step = true;
    assert_int_equal(df_task_next(plan, &seen, EPOCH).next, DF_TASK_WAIT);
    assert_non_null(df_json_object_at(plan, "metadata"));
    change(plan, "metadata.deletionTimestamp", "'2026-01-01T00:00:00Z'");
    assert_int_equal(df_task_next(plan, &seen, EPOCH).next, DF_TASK_WAIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_apply_joins_the_pod_that_stays_for_it),
        cmocka_unit_test(each_obstacle_keeps_it_from_joining),
        cmocka_unit_test(the_reference_of_the_apply_names_job_step_and_pod),
        cmocka_unit_test(who_leaves_begins_anew),
        cmocka_unit_test(a_step_with_resources_of_its_own_keeps_them),
        cmocka_unit_test(what_comes_next_follows_from_plan_run_and_apply),
        cmocka_unit_test(an_offer_is_over_when_the_pod_cannot_take_it_any_more),
        cmocka_unit_test(an_offer_to_a_standby_runner_is_over_sooner),
        cmocka_unit_test(an_offer_to_a_standby_runner_ends_no_later_than_any_other),
        cmocka_unit_test(an_offer_to_a_standby_runner_outlives_a_time_without_the_engine),
        cmocka_unit_test(an_offer_that_nobody_took_is_no_lost_attempt),
        cmocka_unit_test(a_plan_whose_pod_is_lent_leaves_the_pod_alone),
        cmocka_unit_test(a_plan_whose_pod_is_lent_cleans_nothing_when_it_has_ended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
