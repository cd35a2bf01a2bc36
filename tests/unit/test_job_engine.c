/* What the engine `job` asks the API server for, and how often. Cases of kubernaut's job engine
 * whose subject is a request have their ids here; the others are in test_workflow_job.c. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/limits.h"
#include "tests/unit/job_world.h"

/* How often it was asked for what begins so. */
static int asked(struct world *w, const char *request)
{
    int n = 0;
    (void)pthread_mutex_lock(&w->server.lock);
    const char *p = df_buf_str(&w->server.seen);
    for (; (p = strstr(p, request)); p++)
        n++;
    (void)pthread_mutex_unlock(&w->server.lock);
    return n;
}

#define DELETE "DELETE /apis/batch/v1/namespaces/build/jobs/" NAME
#define DONE "{'succeeded':1,'conditions':[{'type':'Complete','status':'True'}]}"

/* UT-WE-014-050, JOB-001 */
static void it_is_called_job(void **state)
{
    (void)state;
    static const struct objects none = {"", "", ""};
    struct world w;
    open_world(&w, &none);
    assert_string_equal(w.engine->kind->name, "job");
    close_world(&w);
}

/* UT-WE-014-033, JOB-008, UT-WE-374-004: what was never made, or has vanished, is an answer. */
static void what_is_not_there_is_absent(void **state)
{
    (void)state;
    static const struct objects none = {"", "", ""};
    struct world w;
    open_world(&w, &none);
    for (int was_created = 0; was_created <= 1; was_created++) {
        struct df_engine_step step = step_of(&w, "test-wfe", was_created);
        struct df_engine_observation seen;
        struct df_err err = {0};
        if (w.engine->ops->workflow->step.status(w.engine, &step, &seen, &err) < 0)
            fail_msg("%s", err.message);
        assert_int_equal(seen.phase, DF_ENGINE_ABSENT);
        assert_true(seen.is_gone);
    }
    assert_int_equal(asked(&w, "GET /apis/batch/v1/namespaces/build/jobs/" NAME), 1);
    close_world(&w);
}

/* UT-WE-014-040 and -041, JOB-009 to -011 */
static void a_cleanup_removes_its_own_job_and_no_other(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        struct objects objects;
        int deletes;
    } rows[] = {
        {"none", {"", "", ""}, 0},
        {"its own", {JOB("wfe-cleanup", "u1", DONE), "", ""}, 1},
        {"another's", {JOB("wfe-other", "u2", DONE), "", ""}, 0},
        {"one of its name", {JOB("wfe-cleanup", "u2", DONE), "", ""}, 0},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        struct world w;
        struct df_err err = {0};
        open_world(&w, &rows[i].objects);
        struct df_engine_step step = step_of(&w, "wfe-cleanup", true);
        if (w.engine->ops->workflow->step.cleanup(w.engine, &step, &err) < 0)
            fail_msg("%s: %s", rows[i].what, err.message);
        if (asked(&w, DELETE) != rows[i].deletes)
            fail_msg("%s: %d deletes", rows[i].what, asked(&w, DELETE));
        close_world(&w);
    }
}

#define CREATION(name, uid, count)                                                                 \
    "{'metadata':{'name':'" name "','namespace':'build','uid':'" name "','resourceVersion':'6'},"  \
    "'involvedObject':{'kind':'Job','name':'" NAME "','uid':'" uid "'},'type':'Normal',"           \
    "'reason':'SuccessfulCreate','count':" count "}"
#define POD                                                                                        \
    "{'metadata':{'name':'" NAME "-abcde','namespace':'build','uid':'p2','resourceVersion':'7',"   \
    "'creationTimestamp':'2026-11-21T12:00:30Z'," LABELS(                                          \
        "test-wfe", "u1") "},'spec':{'containers':[{'name':'workflow'}]},'status':{'phase':"       \
                          "'Succeeded'}}"

/* JOB-025, with an earlier Job of the same name; and one list for each kind, however often it
 * looks. */
static void retries_are_counted_from_the_watch_for_this_job_alone(void **state)
{
    (void)state;
    static const struct objects objects = {
        JOB("test-wfe", "u1", DONE), POD,
        CREATION("a", "j2", "1") "," CREATION("b", "j2", "2") "," CREATION("c", "j1", "5")};
    struct world w;
    open_world(&w, &objects);
    struct df_engine_step step = step_of(&w, "test-wfe", true);
    for (int i = 0; i < 5; i++) {
        DF_JSON cJSON *result = NULL;
        struct df_engine_observation seen;
        struct df_err err = {0};
        if (w.engine->ops->workflow->step.status(w.engine, &step, &seen, &err) < 0 ||
            w.engine->ops->workflow->step.result(w.engine, &step, &result, &err) < 0)
            fail_msg("%s", err.message);
        assert_int_equal(seen.phase, DF_ENGINE_ENDED);
        assert_int_equal(seen.exit_code, 0);
        assert_int_equal(df_json_int(result, "executionStatus.retryCount", -1), 2);
    }
    assert_int_equal(asked(&w, "GET "), 6); /* a list and a watch of Jobs, pods and Events */
    close_world(&w);
}

#define NO_ACCOUNT                                                                                 \
    "{'metadata':{'name':'a','namespace':'build','uid':'a','resourceVersion':'6'},"                \
    "'involvedObject':{'kind':'Job','name':'" NAME "','uid':'j2'},'type':'Warning',"               \
    "'reason':'FailedCreate','message':'pods \\\"x\\\" is forbidden: error looking up service "    \
    "account build/runner: serviceaccount \\\"runner\\\" not found'}"

static void why_a_workflow_has_no_pod_is_told_with_the_keys_of_a_workflow(void **state)
{
    (void)state;
    static const struct objects objects = {JOB("test-wfe", "u1", "{}"), "", NO_ACCOUNT};
    struct world w;
    struct df_engine_observation seen;
    open_world(&w, &objects);
    struct df_engine_step step = step_of(&w, "test-wfe", true);
    assert_int_equal(w.engine->ops->workflow->step.status(w.engine, &step, &seen, NULL), 0);
    assert_string_equal(seen.reason, "ServiceAccountMissing");
    assert_non_null(strstr(seen.cause, "spec.workflow.serviceAccountName"));
    assert_null(strstr(seen.cause, "placement"));
    close_world(&w);
}

static void a_workflow_whose_pods_end_one_after_the_other_is_given_up(void **state)
{
    (void)state;
    static const struct {
        struct objects objects;
        bool gives_up;
    } rows[] = {
        {{JOB("test-wfe", "u1", "{'active':1}"), POD, CREATION("a", "j2", "3")}, false},
        {{JOB("test-wfe", "u1", "{'active':1}"), POD, CREATION("a", "j2", "4")}, true},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        struct world w;
        struct df_engine_observation seen;
        open_world(&w, &rows[i].objects);
        struct df_engine_step step = step_of(&w, "test-wfe", true);
        assert_int_equal(w.engine->ops->workflow->step.status(w.engine, &step, &seen, NULL), 0);
        assert_true(seen.gives_up == rows[i].gives_up);
        assert_true(df_streq(seen.reason, "PodsExhausted") == rows[i].gives_up);
        close_world(&w);
    }
}

#define STEP_META(name, uid, more)                                                                 \
    "{'metadata':{'name':'" name "','namespace':'build','uid':'" uid "','resourceVersion':'5',"    \
    "'creationTimestamp':'2026-11-21T12:00:00Z','labels':{'dayfly.dev/step-uid':'u1'}" more "}"
#define DELETED ",'deletionTimestamp':'2026-11-21T12:02:00Z','deletionGracePeriodSeconds':30"
#define STEP_JOB(uid, more) STEP_META("net-1-apply", uid, more) ",'status':{'active':1}}"
#define STEP_POD(more)                                                                             \
    STEP_META("net-1-apply-abcde", "p1", more)                                                     \
    ",'spec':{'containers':[{'name':'runner'}]},'status':{'phase':'Running'}}"

/* The watch of pods may be ahead of that of Jobs: whose deletion it was is asked for. */
static void a_pod_that_goes_with_its_job_is_not_taken_for_a_deleted_pod(void **state)
{
    (void)state;
    static const struct {
        const char *pod, *job_now, *reason;
    } rows[] = {
        {STEP_POD(DELETED), "", "JobDeleted"},
        {STEP_POD(DELETED), STEP_JOB("j1", DELETED), "JobDeleted"},
        {STEP_POD(DELETED), STEP_JOB("j9", ""), "JobDeleted"}, /* of that name anew */
        {STEP_POD(DELETED), STEP_JOB("j1", ""), "PodDeleted"},
        {"", "", "JobDeleted"},
        {"", STEP_JOB("j1", ""), "PodDeleted"},
        {STEP_POD(""), "", ""}, /* nothing is asked for while the pod lives */
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        const struct objects objects = {STEP_JOB("j1", ""), rows[i].pod, "", rows[i].job_now};
        struct world w;
        struct df_engine_observation seen;
        open_world(&w, &objects);
        struct df_engine_step step = {.name = "net-1-apply",
                                      .uid = "u1",
                                      .runner.action = "apply",
                                      .pending_seconds = 120,
                                      .was_created = true,
                                      .was_claimed = true};
        assert_int_equal(w.engine->ops->runner->step.status(w.engine, &step, &seen, NULL), 0);
        assert_string_equal(seen.reason, rows[i].reason);
        assert_int_equal(asked(&w, "GET /apis/batch/v1/namespaces/build/jobs/net-1-apply"),
                         *rows[i].reason != '\0');
        close_world(&w);
    }
}

struct hold {
    struct kube_server *server;
    bool are_told;
};

static void tell_lists(struct hold *h)
{
    (void)pthread_mutex_lock(&h->server->lock);
    h->are_told = true;
    (void)pthread_cond_broadcast(&h->server->changed);
    (void)pthread_mutex_unlock(&h->server->lock);
}

static void *tell_lists_later(void *arg)
{
    (void)usleep(100000);
    tell_lists(arg);
    return NULL;
}

static void the_first_look_waits_for_the_lists(void **state)
{
    (void)state;
    struct world w;
    struct hold hold = {.server = &w.server};
    const struct objects objects = {STEP_JOB("j1", ""), STEP_POD(""), "",
                                    .are_told = &hold.are_told};
    struct df_engine_observation seen;
    pthread_t later;
    open_world(&w, &objects);
    struct df_engine_step step = {
        .name = "net-1-apply", .uid = "u1", .runner.action = "apply", .was_created = true};
    assert_int_equal(pthread_create(&later, NULL, tell_lists_later, &hold), 0);
    assert_int_equal(w.engine->ops->runner->step.status(w.engine, &step, &seen, NULL), 0);
    assert_int_equal(seen.phase, DF_ENGINE_RUNNING);
    (void)pthread_join(later, NULL);
    close_world(&w);
}

/* What nobody knows yet is neither absent nor lost. */
static void a_look_without_lists_is_to_be_repeated(void **state)
{
    (void)state;
    struct world w;
    struct hold hold = {.server = &w.server};
    const struct objects objects = {"", "", "", .are_told = &hold.are_told};
    struct df_engine_observation seen;
    struct df_err err = {0};
    open_world(&w, &objects);
    struct df_engine_step step = {.name = "net-1-apply",
                                  .uid = "u1",
                                  .runner.action = "apply",
                                  .was_created = true,
                                  .was_claimed = true};
    assert_int_equal(w.engine->ops->runner->step.status(w.engine, &step, &seen, &err), -1);
    assert_int_equal(err.cls, DF_ERR_RETRY);
    assert_string_equal(err.reason, "NotListedYet");
    tell_lists(&hold);
    close_world(&w);
}

#define POD_WITH(name, uid, owners)                                                                \
    "{'metadata':{'name':'" name "','namespace':'build','uid':'" uid                               \
    "','resourceVersion':'5','creationTimestamp':'2026-11-21T12:00:00Z',"                          \
    "'labels':{'dayfly.dev/step-uid':'u1','batch.kubernetes.io/controller-uid':'j2'},"             \
    "'ownerReferences':[" owners "]},'spec':{'containers':[]},'status':{'phase':'Running'}}"
#define OWNED(uid, controller)                                                                     \
    "{'apiVersion':'batch/v1','kind':'Job','name':'net-1-apply','uid':'" uid                       \
    "','controller':" controller "}"
#define LOOK "fieldSelector=metadata.name%3D"

struct claimant {
    struct df_engine_pod pod;
    const char *pod_now;       /* as in struct objects */
    enum df_err_class refused; /* NONE: it is the step's */
    int requests;
};

static void check_claimant(struct world *w, struct objects *objects, const struct claimant *c)
{
    DF_JSON cJSON *ref = json("{'kind':'Job','name':'net-1-apply','namespace':'build','uid':'j2'}");
    const struct df_engine_step step = {.name = "net-1-apply", .uid = "u1", .ref = ref};
    struct df_err err = {0};
    int before = asked(w, LOOK);
    objects->pod_now = c->pod_now;
    int result = w->engine->ops->runner->check_pod(w->engine, &step, &c->pod, &err);
    if (result != (c->refused == DF_ERR_NONE ? 0 : -1) || err.cls != c->refused)
        fail_msg("%s %s: %d %s %s", c->pod.name, c->pod.uid, result, err.reason, err.message);
    assert_string_equal(err.reason, c->refused == DF_ERR_DENIED ? "PodNotOfStep" : "");
    assert_int_equal(asked(w, LOOK) - before, c->requests);
}

static void only_the_pod_that_the_job_controls_may_claim(void **state)
{
    (void)state;
    static struct objects objects = {
        .jobs = "",
        .pods =
            POD_WITH("own", "p1", OWNED("j2", "true")) "," POD_WITH("bare", "p2", "") "," POD_WITH(
                "of-another", "p3", OWNED("j3", "true")) "," POD_WITH("half", "p4",
                                                                      OWNED("j2", "false")),
        .events = ""};
    static const char late[] = POD_WITH("late", "p5", OWNED("j2", "true"));
    static const char foreign[] = POD_WITH("late", "p5", OWNED("j3", "true"));
    static const struct claimant cases[] = {
        {{"own", "p1"}, NULL, DF_ERR_NONE, 0}, /* no request in the usual case */
        {{"bare", "p2"}, NULL, DF_ERR_DENIED, 0},
        {{"of-another", "p3"}, NULL, DF_ERR_DENIED, 0},
        {{"half", "p4"}, NULL, DF_ERR_DENIED, 0},
        {{"own", "p9"}, "", DF_ERR_DENIED, 1}, /* another pod had that name */
        {{"late", "p5"}, late, DF_ERR_NONE, 1},
        {{"late", "p6"}, late, DF_ERR_DENIED, 1},
        {{"late", "p5"}, foreign, DF_ERR_DENIED, 1},
        {{"late", "p5"}, "", DF_ERR_DENIED, 1},
    };
    struct world w;
    open_world(&w, &objects);
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++)
        check_claimant(&w, &objects, &cases[i]);
    close_world(&w);
}

static void a_claim_is_to_be_repeated_while_nobody_knows_whose_pod_it_is(void **state)
{
    (void)state;
    static const struct objects objects = {"", "", ""}; /* no pod is told */
    DF_JSON cJSON *ref = json("{'kind':'Job','name':'net-1-apply','uid':'j2'}");
    struct df_engine_step step = {.name = "net-1-apply", .uid = "u1"};
    const struct df_engine_pod pod = {"late", "p5"};
    struct world w;
    open_world(&w, &objects);
    for (int is_recorded = 0; is_recorded <= 1; is_recorded++) {
        struct df_err err = {0};
        step.ref = is_recorded ? ref : NULL;
        assert_int_equal(w.engine->ops->runner->check_pod(w.engine, &step, &pod, &err), -1);
        assert_int_equal(err.cls, DF_ERR_RETRY);
        assert_int_equal(asked(&w, LOOK) > 0, is_recorded);
    }
    close_world(&w);
}

/* Its grace period is for a tool that stores its state. */
static void a_canceled_pod_goes_at_once_only_if_it_has_not_claimed(void **state)
{
    (void)state;
    static const struct objects objects = {"", POD_WITH("own", "p1", OWNED("j2", "true")), "", ""};
    struct df_engine_step step = {.name = "net-1-apply", .uid = "u1", .was_created = true};
    struct world w;
    open_world(&w, &objects);
    for (int claims = 1; claims >= 0; claims--) {
        step.was_claimed = claims;
        assert_int_equal(w.engine->ops->runner->step.cancel(w.engine, &step, NULL), 0);
        assert_int_equal(asked(&w, "DELETE /api/v1/namespaces/build/pods/own"), !claims);
    }
    close_world(&w);
}

/* ---- one pod for two steps ---- */

#define SHARED_JOB                                                                                 \
    "{'metadata':{'name':'net-1-plan','namespace':'build','uid':'j2','resourceVersion':'5',"       \
    "'creationTimestamp':'2026-11-21T12:00:00Z','labels':{'dayfly.dev/step-uid':'u1'}},"           \
    "'status':{}}"
#define SHARED_POD(state)                                                                          \
    "{'metadata':{'name':'net-1-plan-abcde','namespace':'build','uid':'p1',"                       \
    "'resourceVersion':'5','creationTimestamp':'2026-11-21T12:00:00Z','labels':{"                  \
    "'dayfly.dev/step-uid':'u1'}},'spec':{'containers':[{'name':'runner'}]},"                      \
    "'status':{'phase':'Running','containerStatuses':[{'name':'runner','state':" state "}]}}"
#define LEFT(message) SHARED_POD("{'terminated':{'exitCode':0,'message':'" message "'}}")

/* The plan, and the apply that was offered to its pod. */
static struct df_engine_step plan_of_pod(void)
{
    return (struct df_engine_step){.name = "net-1-plan",
                                   .uid = "u1",
                                   .was_created = true,
                                   .was_claimed = true,
                                   .runner.pod = "p1"};
}

static struct df_engine_step apply_in_pod(const cJSON *ref, bool was_claimed)
{
    return (struct df_engine_step){.name = "net-1-apply",
                                   .uid = "u2",
                                   .ref = ref,
                                   .was_created = true,
                                   .was_claimed = was_claimed};
}

static cJSON *shared_ref(void)
{
    return json("{'kind':'Job','name':'net-1-plan','namespace':'build','uid':'j2','hostUid':'u1',"
                "'podUid':'p1'}");
}

static struct df_engine_observation look(struct world *w, const struct df_engine_step *step)
{
    struct df_engine_observation seen;
    struct df_err err = {0};
    if (w->engine->ops->runner->step.status(w->engine, step, &seen, &err) < 0)
        fail_msg("%s", err.message);
    return seen;
}

/* The termination message has the result of one of the two. */
static void a_result_in_a_shared_pod_is_that_of_the_step_it_names(void **state)
{
    (void)state;
    static const struct {
        const char *pod;
        bool is_of_plan, is_of_apply;
    } rows[] = {
        {LEFT("{\\'exitCode\\':0,\\'step\\':\\'u1\\'}"), true, false},
        {LEFT("{\\'exitCode\\':0,\\'step\\':\\'u2\\'}"), false, true},
        {LEFT("{\\'exitCode\\':0}"), true, false}, /* of an older runner */
        {LEFT("no result"), false, false},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        DF_JSON cJSON *ref = shared_ref();
        struct objects objects = {SHARED_JOB, rows[i].pod, ""};
        struct df_engine_step plan = plan_of_pod(), apply = apply_in_pod(ref, true);
        struct world w;
        open_world(&w, &objects);
        struct df_engine_observation of_plan = look(&w, &plan), of_apply = look(&w, &apply);
        DF_JSON cJSON *result = NULL;
        assert_int_equal(of_plan.phase, DF_ENGINE_ENDED);
        assert_int_equal(of_apply.phase, DF_ENGINE_ENDED);
        assert_int_equal(of_plan.has_result, rows[i].is_of_plan);
        assert_int_equal(of_apply.has_result, rows[i].is_of_apply);
        assert_int_equal(w.engine->ops->runner->step.result(w.engine, &apply, &result, NULL) == 0,
                         rows[i].is_of_apply);
        assert_true(of_apply.is_gone); /* the Job is the plan's */
        assert_false(of_plan.is_gone);
        close_world(&w);
    }
}

static void a_step_in_a_shared_pod_lives_and_dies_with_it(void **state)
{
    (void)state;
    static const struct {
        struct objects objects;
        enum df_engine_phase phase;
        const char *reason; /* once it was claimed */
    } rows[] = {
        {{SHARED_JOB, SHARED_POD("{'running':{}}"), ""}, DF_ENGINE_RUNNING, ""},
        {{SHARED_JOB, "", ""}, DF_ENGINE_ENDED, "PodDeleted"},
        {{"", "", "", .job_now = ""}, DF_ENGINE_ENDED, "JobDeleted"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        DF_JSON cJSON *ref = shared_ref();
        struct world w;
        open_world(&w, &rows[i].objects);
        for (int claimed = 0; claimed <= 1; claimed++) {
            struct df_engine_step apply = apply_in_pod(ref, claimed);
            struct df_engine_observation seen = look(&w, &apply);
            assert_int_equal(seen.phase, rows[i].phase);
            assert_string_equal(seen.reason, rows[i].reason);
            assert_int_equal(seen.is_gone, rows[i].phase != DF_ENGINE_RUNNING);
            assert_false(seen.is_unrecorded);
        }
        close_world(&w);
    }
}

static void the_end_of_a_step_in_a_shared_pod_leaves_the_job_to_its_owner(void **state)
{
    (void)state;
    static const struct objects objects = {SHARED_JOB, LEFT("x"), "", .job_now = SHARED_JOB};
    DF_JSON cJSON *ref = shared_ref();
    struct df_engine_step apply = apply_in_pod(ref, true), plan = plan_of_pod();
    struct world w;
    open_world(&w, &objects);
    apply.is_deleted = plan.is_deleted = true;
    assert_int_equal(w.engine->ops->runner->step.cleanup(w.engine, &apply, NULL), 0);
    assert_int_equal(asked(&w, "DELETE"), 0);
    assert_int_equal(w.engine->ops->runner->step.cleanup(w.engine, &plan, NULL), 0);
    assert_int_equal(asked(&w, "DELETE /apis/batch/v1/namespaces/build/jobs/net-1-plan"), 1);
    close_world(&w);
}

static void a_cancel_of_a_step_in_a_shared_pod_ends_the_pod(void **state)
{
    (void)state;
    static const struct objects objects = {SHARED_JOB, SHARED_POD("{'running':{}}"), "",
                                           .job_now = SHARED_JOB};
    DF_JSON cJSON *ref = shared_ref();
    struct world w;
    open_world(&w, &objects);
    for (int claims = 1; claims >= 0; claims--) {
        struct df_engine_step apply = apply_in_pod(ref, claims);
        assert_int_equal(w.engine->ops->runner->step.cancel(w.engine, &apply, NULL), 0);
        assert_int_equal(asked(&w, "DELETE /apis/batch/v1/namespaces/build/jobs/net-1-plan"),
                         2 - claims);
        assert_int_equal(asked(&w, "DELETE /api/v1/namespaces/build/pods/net-1-plan-abcde"),
                         !claims);
    }
    close_world(&w);
}

#define OLD "/apis/batch/v1/namespaces/old/jobs"
#define NEW "/apis/batch/v1/namespaces/build/jobs"

/* The configuration named another namespace when the step was started. */
static void a_step_ends_in_the_namespace_in_which_it_was_started(void **state)
{
    (void)state;
    static const struct objects objects = {JOB("test-wfe", "u1", "{}"), "", ""};
    DF_JSON cJSON *ref = json("{'kind':'Job','name':'" NAME "','namespace':'old','uid':'j2'}");
    struct world w;
    open_world(&w, &objects);
    struct df_engine_step step = step_of(&w, "test-wfe", true);
    assert_int_equal(asked(&w, "GET " OLD), 0);
    step.ref = ref;
    assert_int_equal(w.engine->ops->runner->step.cancel(w.engine, &step, NULL), 0);
    assert_int_equal(asked(&w, "DELETE " OLD "/" NAME), 1);
    assert_int_equal(asked(&w, "DELETE " NEW), 0);
    (void)pthread_mutex_lock(&w.server.lock);
    while (w.server.watches < 6) /* of both namespaces: the end of its pod is noticed */
        (void)pthread_cond_wait(&w.server.changed, &w.server.lock);
    (void)pthread_mutex_unlock(&w.server.lock);
    assert_true(asked(&w, "GET " OLD "?") > 0);
    close_world(&w);
}

static void steps_in_too_many_namespaces_are_refused(void **state)
{
    (void)state;
    static const struct objects none = {"", "", ""};
    struct world w;
    open_world(&w, &none);
    for (int i = 1; i <= DF_LIMIT_STEP_NAMESPACES; i++) {
        struct df_engine_step step = step_of(&w, "test-wfe", false);
        DF_JSON cJSON *ref = cJSON_CreateObject();
        DF_FREE char *name_space = df_strf("n%d", i);
        struct df_err err = {0};
        assert_int_equal(df_json_add_str(ref, "namespace", name_space, NULL), 0);
        step.ref = ref;
        for (int again = 0; again <= 1; again++)
            assert_int_equal(w.engine->ops->runner->step.cancel(w.engine, &step, &err),
                             i < DF_LIMIT_STEP_NAMESPACES ? 0 : -1);
        assert_int_equal(err.cls, i < DF_LIMIT_STEP_NAMESPACES ? DF_ERR_NONE : DF_ERR_LIMIT);
    }
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_called_job),
        cmocka_unit_test(what_is_not_there_is_absent),
        cmocka_unit_test(a_cleanup_removes_its_own_job_and_no_other),
        cmocka_unit_test(retries_are_counted_from_the_watch_for_this_job_alone),
        cmocka_unit_test(why_a_workflow_has_no_pod_is_told_with_the_keys_of_a_workflow),
        cmocka_unit_test(a_workflow_whose_pods_end_one_after_the_other_is_given_up),
        cmocka_unit_test(a_pod_that_goes_with_its_job_is_not_taken_for_a_deleted_pod),
        cmocka_unit_test(the_first_look_waits_for_the_lists),
        cmocka_unit_test(a_look_without_lists_is_to_be_repeated),
        cmocka_unit_test(only_the_pod_that_the_job_controls_may_claim),
        cmocka_unit_test(a_claim_is_to_be_repeated_while_nobody_knows_whose_pod_it_is),
        cmocka_unit_test(a_canceled_pod_goes_at_once_only_if_it_has_not_claimed),
        cmocka_unit_test(a_result_in_a_shared_pod_is_that_of_the_step_it_names),
        cmocka_unit_test(a_step_in_a_shared_pod_lives_and_dies_with_it),
        cmocka_unit_test(the_end_of_a_step_in_a_shared_pod_leaves_the_job_to_its_owner),
        cmocka_unit_test(a_cancel_of_a_step_in_a_shared_pod_ends_the_pod),
        cmocka_unit_test(a_step_ends_in_the_namespace_in_which_it_was_started),
        cmocka_unit_test(steps_in_too_many_namespaces_are_refused),
    };
    return cmocka_run_group_tests_name("job_engine", tests, NULL, NULL);
}
