/* What the engine `tekton` asks the API server for, and what it makes of the answers. Cases of
 * kubernaut's Tekton engine whose subject is a request have their ids here; the others are in
 * test_pipeline_run.c and test_pipeline_status.c. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/crypto/crypto.h"
#include "spawner/engine/tekton/tekton.h"
#include "tests/unit/kube_server.h"
#include "tests/unit/kube_words.h"

#define NAME "wfe-c00449355dfb987a" /* of this target: */
#define TARGET "default/deployment/my-app"

/* What there is in the cluster, in JSON with ' for "; NULL: it is not there. */
struct cluster {
    const unsigned char *key; /* of the service's proofs; or NULL */
    const char *run, *job, *task_runs;
    const char *refusal; /* of a POST: the message of a 400 */
    bool is_unserved;    /* Tekton is not installed */
    bool ends_watches;   /* at once */
};

struct world {
    struct cluster cluster;
    struct kube_server server;
    struct df_kube *kube;
    struct df_engine *engine;
    const struct df_step_ops *ops;
    cJSON *workflow;
    struct df_buf bodies; /* of PATCH and DELETE */
    int notified, reads;  /* of the run; behind the server's lock */
};

static void say(struct kube_reply *a, int status, const char *text)
{
    DF_FREE char *body = strdup(text);
    for (char *p = body; *p; p++)
        *p = *p == '\'' ? '"' : *p;
    kube_say(a, status, "", body);
}

static void answer_post(const struct cluster *c, const struct kube_request *r, struct kube_reply *a)
{
    if (c->refusal)
        kube_status(a, 400, "BadRequest", c->refusal);
    else if (c->run)
        kube_status(a, 409, "AlreadyExists", "pipelineruns already exists");
    else {
        DF_JSON cJSON *run = cJSON_Parse(r->body);
        (void)!df_json_set_str(df_json_object_at(run, "metadata"), "uid", "r1", NULL);
        DF_FREE char *text = df_json_print(run);
        kube_say(a, 201, "", text);
    }
}

static void answer_list(const struct cluster *c, const char *target, struct kube_reply *a)
{
    const char *items = strstr(target, "/taskruns") ? c->task_runs : c->run;
    DF_FREE char *text =
        df_strf("{'metadata':{'resourceVersion':'10'},'items':[%s]}", items ? items : "");
    say(a, 200, text);
}

static void answer(struct kube_server *s, const struct kube_request *r, struct kube_reply *a)
{
    struct world *w = s->arg;
    const struct cluster *c = &w->cluster;
    const char *one = strstr(r->target, "/jobs/") ? c->job : c->run;
    w->reads += df_streq(r->method, "GET") && strstr(r->target, "/pipelineruns/" NAME);
    if (strstr(r->target, "tekton.dev") && c->is_unserved)
        kube_say(a, 404, "", "404 page not found");
    else if (strstr(r->target, "watch=true")) {
        kube_stream(a);
        a->hold = !c->ends_watches;
        a->close = c->ends_watches;
    } else if (df_streq(r->method, "POST"))
        answer_post(c, r, a);
    else if (!df_streq(r->method, "GET")) {
        (void)df_buf_addf(&w->bodies, "%s %s\n", r->method, r->body);
        kube_say(a, 200, "", "{}");
    } else if (!strstr(r->target, "/" NAME))
        answer_list(c, r->target, a);
    else if (one)
        say(a, 200, one);
    else
        kube_status(a, 404, "NotFound", "it is not found");
}

static void count_notice(void *arg, const char *name)
{
    struct world *w = arg;
    if (!df_streq(name, NAME))
        return;
    (void)pthread_mutex_lock(&w->server.lock);
    w->notified++;
    (void)pthread_cond_broadcast(&w->server.changed);
    (void)pthread_mutex_unlock(&w->server.lock);
}

static void open_world(struct world *w, struct cluster cluster)
{
    *w = (struct world){.cluster = cluster, .bodies = DF_BUF_INIT(DF_MIB)};
    kube_start(&w->server, answer, w);
    w->kube = kube_client(&w->server);
    w->workflow = json("{'executionBundle':'registry.example/bundle:v1'}");
    const struct df_tekton_options o = {.kube = w->kube,
                                        .name_space = "build",
                                        .key = cluster.key,
                                        .notify = count_notice,
                                        .notify_arg = w};
    assert_int_equal(df_engine_tekton_new(&o, &w->engine, NULL), 0);
    w->ops = &w->engine->ops->workflow->step;
}

static void close_world(struct world *w)
{
    w->engine->ops->close(w->engine);
    df_kube_free(w->kube);
    kube_stop(&w->server);
    cJSON_Delete(w->workflow);
    df_buf_free(&w->bodies);
}

static struct df_engine_step step_of(const struct world *w)
{
    return (struct df_engine_step){
        .name = "test-wfe",
        .uid = "u1",
        .pending_seconds = 120,
        .timeout_seconds = 1800,
        .workflow = {.spec = w->workflow, .target = TARGET, .name_space = "default"}};
}

static struct df_engine_observation seen_by(struct world *w, const struct df_engine_step *step)
{
    struct df_engine_observation seen = {0};
    struct df_err err = {0};
    if (w->ops->status(w->engine, step, &seen, &err) < 0)
        fail_msg("%s", err.message);
    return seen;
}

static void set_cluster(struct world *w, struct cluster cluster)
{
    (void)pthread_mutex_lock(&w->server.lock);
    w->cluster = cluster;
    (void)pthread_mutex_unlock(&w->server.lock);
}

#define LABELS(owner, uid)                                                                         \
    "'labels':{'kubernaut.ai/workflow-execution':'" owner "','kubernaut.ai/source-namespace':"     \
    "'default','dayfly.dev/step-uid':'" uid "'}"
#define RUN_OF(labels, made, status)                                                               \
    "{'metadata':{'name':'" NAME "','namespace':'build','uid':'r1','resourceVersion':'5',"         \
    "'creationTimestamp':'" made "'," labels                                                       \
    "},'spec':{'taskRunTemplate':{'serviceAccountName':'account'}},'status':{" status "}}"
#define LONG_AGO "2020-01-01T00:00:00Z"
#define FAR_AHEAD "2099-01-01T00:00:00Z"
#define OURS(status) RUN_OF(LABELS("test-wfe", "u1"), FAR_AHEAD, status)
#define OTHERS(status) RUN_OF(LABELS("other-wfe", "u2"), FAR_AHEAD, status)
#define CONDITION(status, reason, message)                                                         \
    "'startTime':'" LONG_AGO "','conditions':[{'type':'Succeeded','status':'" status               \
    "','reason':'" reason "','message':'" message "'}]"
#define RUNS CONDITION("Unknown", "Running", "")
#define DONE CONDITION("True", "Succeeded", "done")
#define BROKEN CONDITION("False", "Failed", "task b failed")

/* UT-WE-014-082, TEK-001 */
static void it_is_called_tekton_and_takes_workflows_alone(void **state)
{
    (void)state;
    struct world w;
    open_world(&w, (struct cluster){0});
    assert_string_equal(w.engine->kind->name, "tekton");
    assert_true(w.engine->kind->takes_workflows && w.engine->kind->needs_cluster);
    assert_false(w.engine->kind->takes_runs);
    assert_null(w.engine->ops->runner);
    close_world(&w);
}

/* UT-WE-014-060 */
static void a_run_is_created_and_referred_to(void **state)
{
    (void)state;
    struct world w;
    DF_JSON cJSON *ref = NULL;
    open_world(&w, (struct cluster){0});
    const struct df_engine_step step = step_of(&w);
    assert_int_equal(w.ops->create(w.engine, &step, &ref, NULL), 0);
    assert_json(ref,
                "{'kind':'PipelineRun','name':'" NAME "','namespace':'build','uid':'r1',"
                "'serviceAccountName':'kubernaut-workflow-runner'}",
                "ref");
    close_world(&w);
}

/* UT-WE-014-065, HandleAlreadyExists-2 and -3, UT-WE-190-005 to -007. kubernaut fails where we
 * replace or wait. */
static void a_run_in_the_way_is_adopted_replaced_or_waited_for(void **state)
{
    (void)state;
    static const struct {
        struct cluster cluster;
        int result;
        enum df_err_class class;
        const char *reason, *message, *sent;
    } rows[] = {
        {{.run = OURS(RUNS)}, 0, DF_ERR_NONE, "", "", ""},
        {{.run = OURS(DONE)}, 0, DF_ERR_NONE, "", "", ""},
        {{.run = OTHERS(DONE)},
         -1,
         DF_ERR_RETRY,
         "",
         "other-wfe, which has ended",
         "\"uid\":\"r1\""},
        {{.run = OTHERS(RUNS)},
         -1,
         DF_ERR_CONFLICT,
         "TargetLocked",
         "the PipelineRun build/" NAME " of other-wfe",
         ""},
        {{.run = OTHERS("")}, -1, DF_ERR_CONFLICT, "TargetLocked", "of other-wfe", ""},
        {{.run = RUN_OF("'labels':{}", FAR_AHEAD, DONE)},
         -1,
         DF_ERR_CONFLICT,
         "TargetLocked",
         "an unknown owner",
         ""},
        /* the same action of another service */
        {{.run = RUN_OF(LABELS("test-wfe", "u2"), FAR_AHEAD, RUNS)},
         -1,
         DF_ERR_CONFLICT,
         "TargetLocked",
         "of test-wfe",
         ""},
        {{.job = OTHERS("'active':1")},
         -1,
         DF_ERR_CONFLICT,
         "TargetLocked",
         "the Job build/" NAME " of other-wfe",
         ""},
        {{.job = OTHERS("'conditions':[{'type':'Complete','status':'True'}]")},
         0,
         DF_ERR_NONE,
         "",
         "",
         ""},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        struct world w;
        struct df_err err = {0};
        DF_JSON cJSON *ref = NULL;
        open_world(&w, rows[i].cluster);
        const struct df_engine_step step = step_of(&w);
        assert_int_equal(w.ops->create(w.engine, &step, &ref, &err), rows[i].result);
        assert_int_equal(err.cls, rows[i].class);
        assert_string_equal(err.reason, rows[i].reason);
        assert_message(&err, rows[i].message);
        assert_true(!*rows[i].sent == !w.bodies.len);
        assert_non_null(strstr(df_buf_str(&w.bodies), rows[i].sent));
        close_world(&w);
    }
}

/* Whoever reads a TaskAction knows the labels that its run will have. */
static void a_run_with_our_labels_that_somebody_else_made_is_not_adopted(void **state)
{
    (void)state;
    static const unsigned char key[DF_KEY_LEN] = {1};
    struct world w;
    struct df_err err = {0};
    DF_JSON cJSON *ref = NULL;
    open_world(&w, (struct cluster){.run = OURS(DONE), .key = key});
    const struct df_engine_step step = step_of(&w);
    assert_int_equal(w.ops->create(w.engine, &step, &ref, &err), -1);
    assert_string_equal(err.reason, "NameTaken");
    assert_null(ref);
    close_world(&w);
}

static void a_run_that_the_webhook_refuses_is_the_users_fault(void **state)
{
    (void)state;
    struct world w;
    struct df_err err = {0};
    cJSON *ref = NULL;
    open_world(&w, (struct cluster){.refusal = "admission webhook denied the request: bad param"});
    const struct df_engine_step step = step_of(&w);
    assert_int_equal(w.ops->create(w.engine, &step, &ref, &err), -1);
    assert_int_equal(err.cls, DF_ERR_USER);
    assert_string_equal(err.reason, "AdmissionRefused");
    assert_message(&err, "bad param");
    close_world(&w);
}

/* ---- observation ---- */

#define CHILDREN ",'childReferences':[{'kind':'TaskRun','name':'a'},{'kind':'TaskRun','name':'b'}]"
#define TASK_B                                                                                     \
    "{'metadata':{'name':'b'},'status':{'conditions':[{'type':'Succeeded','status':'False'}],"     \
    "'steps':[{'terminated':{'exitCode':3}}]}}"
#define TASK_A_WAITS                                                                               \
    "{'metadata':{'name':'a'},'status':{'conditions':[{'type':'Succeeded','status':'Unknown',"     \
    "'reason':'Pending','message':'0/1 nodes are available'}]}}"

static const struct {
    struct cluster cluster;
    enum df_engine_phase phase;
    int exit_code;
    const char *reason, *cause;
    bool gives_up;
} observations[] = {
    {{0}, DF_ENGINE_ABSENT, -1, "", "", false},
    {{.run = OTHERS(RUNS)}, DF_ENGINE_ABSENT, -1, "", "", false},
    {{.run = OURS("")}, DF_ENGINE_PENDING, -1, "", "waiting for Tekton", false},
    {{.run = RUN_OF(LABELS("test-wfe", "u1"), LONG_AGO, "")},
     DF_ENGINE_PENDING,
     -1,
     "EngineFailed",
     "waiting for Tekton",
     true},
    {{.run = OURS(RUNS)}, DF_ENGINE_RUNNING, -1, "", "", false},
    {{.run = OURS(RUNS CHILDREN), .task_runs = TASK_A_WAITS},
     DF_ENGINE_RUNNING,
     -1,
     "",
     "the task a waits: 0/1 nodes are available",
     false},
    {{.run = OURS(DONE)}, DF_ENGINE_ENDED, 0, "", "", false},
    {{.run = OURS(BROKEN)}, DF_ENGINE_ENDED, -1, "WorkflowFailed", "Failed: task b failed", false},
    {{.run = OURS(BROKEN CHILDREN), .task_runs = TASK_B},
     DF_ENGINE_ENDED,
     3,
     "WorkflowFailed",
     "the task b (exit code 3): Failed: task b failed",
     false},
    {{.run = OURS(CONDITION("False", "PipelineRunTimeout", "failed to finish within 30m0s"))},
     DF_ENGINE_ENDED,
     -1,
     "DeadlineExceeded",
     "PipelineRunTimeout: failed to finish",
     false},
};

static void a_run_is_observed_as_its_status_says(void **state)
{
    (void)state;
    for (size_t i = 0; i < DF_ARRAY_SIZE(observations); i++) {
        struct world w;
        open_world(&w, observations[i].cluster);
        const struct df_engine_step step = step_of(&w);
        const struct df_engine_observation seen = seen_by(&w, &step);
        assert_int_equal(seen.phase, observations[i].phase);
        assert_int_equal(seen.exit_code, observations[i].exit_code);
        assert_string_equal(seen.reason, observations[i].reason);
        if (!strstr(seen.cause, observations[i].cause))
            fail_msg("%s", seen.cause);
        assert_int_equal(seen.gives_up, observations[i].gives_up);
        close_world(&w);
    }
}

static void the_result_has_the_run_its_summary_and_its_failure(void **state)
{
    (void)state;
    struct world w;
    DF_JSON cJSON *result = NULL;
    cJSON *none = NULL;
    struct df_err err = {0};
    open_world(&w, (struct cluster){.run = OURS(BROKEN CHILDREN), .task_runs = TASK_B});
    const struct df_engine_step step = step_of(&w);
    assert_int_equal(w.ops->result(w.engine, &step, &result, NULL), 0);
    assert_at(result, "engineRef",
              "{'kind':'PipelineRun','name':'" NAME "','namespace':'build','uid':'r1',"
              "'serviceAccountName':'account'}");
    assert_at(result, "executionStatus.totalTasks", "2");
    assert_at(result, "failureDetails.exitCode", "3");
    set_cluster(&w, (struct cluster){.run = OTHERS(DONE)});
    assert_int_equal(w.ops->result(w.engine, &step, &none, &err), -1);
    assert_int_equal(err.cls, DF_ERR_NOT_FOUND);
    close_world(&w);
}

static void a_step_that_waits_learns_who_holds_its_target(void **state)
{
    (void)state;
    static const struct {
        struct cluster cluster;
        const char *reason, *cause;
    } rows[] = {
        {{.run = OTHERS(RUNS)}, "TargetLocked", "the PipelineRun build/" NAME " of other-wfe"},
        {{.job = OTHERS("'active':1")}, "TargetLocked", "the Job build/" NAME " of other-wfe"},
        {{.run = OTHERS(DONE)}, "", ""},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        struct world w;
        open_world(&w, rows[i].cluster);
        struct df_engine_step step = step_of(&w);
        step.workflow.was_locked = true;
        const struct df_engine_observation seen = seen_by(&w, &step);
        assert_string_equal(seen.reason, rows[i].reason);
        assert_string_equal(seen.cause, rows[i].cause);
        close_world(&w);
    }
}

/* ---- age ---- */

static bool may_go(void *arg, const char *step_uid)
{
    assert_string_equal(step_uid, "u1");
    return arg;
}

static void a_run_that_ended_long_ago_is_removed_once_its_step_has_ended(void **state)
{
    (void)state;
#define ENDED_AT(time) "'completionTime':'" time "'," DONE
    static char yes[] = "yes";
    static const struct {
        const char *run;
        void *may_go;
        const char *sent; /* "": nothing */
    } rows[] = {
        {OURS(ENDED_AT("2026-01-01T00:00:00Z")), yes, "\"preconditions\":{\"uid\":\"r1\"}"},
        {OURS(ENDED_AT("2026-01-01T00:00:00Z")), NULL, ""},
        {OURS(ENDED_AT("2999-01-01T00:00:00Z")), yes, ""},
        {OURS(RUNS), yes, ""},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        struct world w;
        open_world(&w, (struct cluster){.run = rows[i].run});
        assert_int_equal(w.engine->ops->sweep(w.engine, may_go, rows[i].may_go, NULL), 0);
        assert_true(!*rows[i].sent == !w.bodies.len);
        assert_non_null(strstr(df_buf_str(&w.bodies), rows[i].sent));
        close_world(&w);
    }
}

/* ---- cancel, cleanup ---- */

/* UT-WE-014-081, TEK-006. UT-WE-014-080, the removal of a run without an owner, is not ours. */
static void a_cancel_is_a_patch_and_a_cleanup_a_deletion_of_our_own_run(void **state)
{
    (void)state;
#define PATCH "PATCH {\"metadata\":{\"uid\":\"r1\"},\"spec\":{\"status\":\"Cancelled\"}}\n"
    static const struct {
        const char *run, *canceled, *cleaned;
        enum df_err_class cleanup;
    } rows[] = {
        {OURS(RUNS), PATCH, "", DF_ERR_CONFLICT},
        {OURS(""), PATCH, "", DF_ERR_CONFLICT},
        {OURS(DONE), "", "\"preconditions\":{\"uid\":\"r1\"}", DF_ERR_NONE},
        {OTHERS(RUNS), "", "", DF_ERR_NONE},
        {OTHERS(DONE), "", "", DF_ERR_NONE},
        {RUN_OF("'labels':{}", FAR_AHEAD, DONE), "", "", DF_ERR_NONE},
        {NULL, "", "", DF_ERR_NONE},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        struct world w;
        struct df_err err = {0};
        open_world(&w, (struct cluster){.run = rows[i].run});
        const struct df_engine_step step = step_of(&w);
        assert_int_equal(w.ops->cancel(w.engine, &step, NULL), 0);
        assert_string_equal(df_buf_str(&w.bodies), rows[i].canceled);
        df_buf_clear(&w.bodies);
        int result = w.ops->cleanup(w.engine, &step, &err);
        assert_int_equal(result, rows[i].cleanup ? -1 : 0);
        assert_int_equal(err.cls, rows[i].cleanup);
        assert_true(!*rows[i].cleaned == !w.bodies.len);
        assert_non_null(strstr(df_buf_str(&w.bodies), rows[i].cleaned));
        close_world(&w);
    }
}

/* ---- without Tekton ---- */

#define INSTALL "the cluster has no PipelineRuns (tekton.dev/v1): install Tekton"

static void without_tekton_a_new_step_waits_with_the_cause(void **state)
{
    (void)state;
    struct world w;
    struct df_err err = {0};
    DF_JSON cJSON *ref = NULL;
    open_world(&w, (struct cluster){.is_unserved = true});
    const struct df_engine_step step = step_of(&w);
    const struct df_engine_observation seen = seen_by(&w, &step);
    assert_int_equal(seen.phase, DF_ENGINE_ABSENT);
    assert_string_equal(seen.reason, "EngineFailed");
    assert_string_equal(seen.cause, INSTALL);
    assert_true(seen.takes_none);
    assert_int_equal(w.ops->create(w.engine, &step, &ref, &err), -1);
    assert_int_equal(err.cls, DF_ERR_RETRY);
    assert_string_equal(err.message, INSTALL);
    set_cluster(&w, (struct cluster){0});
    assert_int_equal(w.ops->create(w.engine, &step, &ref, NULL), 0);
    close_world(&w);
}

static int reads_of(struct world *w)
{
    (void)pthread_mutex_lock(&w->server.lock);
    int n = w->reads;
    (void)pthread_mutex_unlock(&w->server.lock);
    return n;
}

static void a_new_step_is_not_looked_for_where_tekton_is(void **state)
{
    (void)state;
    struct world w;
    DF_JSON cJSON *ref = NULL;
    open_world(&w, (struct cluster){0});
    struct df_engine_step step = step_of(&w);
    for (int i = 0; i < 3; i++) { /* before the first one it is not known where Tekton is */
        const struct df_engine_observation seen = seen_by(&w, &step);
        assert_int_equal(seen.phase, DF_ENGINE_ABSENT);
        assert_true(seen.is_gone && !seen.takes_none);
    }
    assert_int_equal(w.ops->create(w.engine, &step, &ref, NULL), 0);
    assert_int_equal(reads_of(&w), 1);
    step.workflow.was_locked = true;
    (void)seen_by(&w, &step);
    assert_true(reads_of(&w) > 1);
    int known = reads_of(&w);
    step.workflow.was_locked = false;
    step.was_created = true;
    (void)seen_by(&w, &step);
    assert_int_equal(reads_of(&w), known + 1);
    close_world(&w);
}

static void a_new_step_waits_once_tekton_is_gone(void **state)
{
    (void)state;
    struct world w;
    open_world(&w, (struct cluster){.ends_watches = true});
    const struct df_engine_step step = step_of(&w);
    assert_false(seen_by(&w, &step).takes_none);
    set_cluster(&w, (struct cluster){.ends_watches = true, .is_unserved = true});
    while (!seen_by(&w, &step).takes_none) /* a watch is told */
        (void)usleep(1000);
    set_cluster(&w, (struct cluster){.ends_watches = true});
    assert_false(seen_by(&w, &step).takes_none);
    close_world(&w);
}

static void a_step_continues_when_tekton_is_back(void **state)
{
    (void)state;
    struct world w;
    struct df_err err = {0};
    struct df_engine_observation seen = {0};
    open_world(&w, (struct cluster){.is_unserved = true});
    struct df_engine_step step = step_of(&w);
    step.was_created = true;
    assert_int_equal(w.ops->status(w.engine, &step, &seen, &err), -1);
    assert_int_equal(err.cls, DF_ERR_RETRY);
    assert_string_equal(err.message, INSTALL);
    set_cluster(&w, (struct cluster){.run = OURS(RUNS)});
    assert_int_equal(seen_by(&w, &step).phase, DF_ENGINE_RUNNING);
    /* The watches, which were refused before, tell of the run. */
    (void)pthread_mutex_lock(&w.server.lock);
    while (!w.notified)
        (void)pthread_cond_wait(&w.server.changed, &w.server.lock);
    (void)pthread_mutex_unlock(&w.server.lock);
    close_world(&w);
}

static void a_document_that_is_deleted_does_not_wait_for_tekton(void **state)
{
    (void)state;
    struct world w;
    open_world(&w, (struct cluster){.is_unserved = true});
    struct df_engine_step step = step_of(&w);
    step.was_created = step.is_deleted = true;
    assert_true(seen_by(&w, &step).is_gone);
    assert_int_equal(w.ops->cleanup(w.engine, &step, NULL), 0);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_called_tekton_and_takes_workflows_alone),
        cmocka_unit_test(a_run_is_created_and_referred_to),
        cmocka_unit_test(a_run_in_the_way_is_adopted_replaced_or_waited_for),
        cmocka_unit_test(a_run_with_our_labels_that_somebody_else_made_is_not_adopted),
        cmocka_unit_test(a_run_that_the_webhook_refuses_is_the_users_fault),
        cmocka_unit_test(a_run_is_observed_as_its_status_says),
        cmocka_unit_test(the_result_has_the_run_its_summary_and_its_failure),
        cmocka_unit_test(a_step_that_waits_learns_who_holds_its_target),
        cmocka_unit_test(a_run_that_ended_long_ago_is_removed_once_its_step_has_ended),
        cmocka_unit_test(a_cancel_is_a_patch_and_a_cleanup_a_deletion_of_our_own_run),
        cmocka_unit_test(without_tekton_a_new_step_waits_with_the_cause),
        cmocka_unit_test(a_new_step_is_not_looked_for_where_tekton_is),
        cmocka_unit_test(a_new_step_waits_once_tekton_is_gone),
        cmocka_unit_test(a_step_continues_when_tekton_is_back),
        cmocka_unit_test(a_document_that_is_deleted_does_not_wait_for_tekton),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
