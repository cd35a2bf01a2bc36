/* What the engine `ansible` says of a job that was launched, and how often it asks. Ids are those
 * of kubernaut's cases. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "spawner/engine/ansible/awx_poll.h"
#include "tests/unit/ansible_world.h"

/* ---- status ---- */

static const struct {
    const char *status, *stdout_text;
    enum df_engine_phase phase;
    int exit_code;
    const char *reason, *cause, *summary, *summary_reason;
} states[] = {
    {"new", NULL, DF_ENGINE_PENDING, -1, "", "Unknown AWX job status: new", "Unknown",
     "AWXJobUnknown"},
    {"pending", NULL, DF_ENGINE_PENDING, -1, "", "AWX job is queued", "Unknown", "AWXJobPending"},
    {"waiting", NULL, DF_ENGINE_PENDING, -1, "", "AWX job is queued", "Unknown", "AWXJobPending"},
    {"running", NULL, DF_ENGINE_RUNNING, -1, "", "", "Unknown", "AWXJobRunning"},
    {"successful", "ok", DF_ENGINE_ENDED, 0, "", "", "True", "AWXJobSuccessful"},
    {"failed", NULL, DF_ENGINE_ENDED, -1, "WorkflowFailed",
     "AWXJobFailed: AWX job execution failed", "False", "AWXJobFailed"},
    /* UT-WE-015-002b */
    {"failed", "TASK [restart] fatal: connection refused", DF_ENGINE_ENDED, -1, "WorkflowFailed",
     "AWXJobFailed: TASK [restart] fatal: connection refused", "False", "AWXJobFailed"},
    {"error", NULL, DF_ENGINE_ENDED, -1, "WorkflowFailed",
     "AWXJobError: AWX job encountered an internal error", "False", "AWXJobError"},
    {"canceled", NULL, DF_ENGINE_ENDED, -1, "WorkflowFailed",
     "AWXJobCanceled: AWX job was canceled", "False", "AWXJobCanceled"},
    {"unknown-state", NULL, DF_ENGINE_PENDING, -1, "", "unknown-state", "Unknown", "AWXJobUnknown"},
};

/* UT-WE-015-002, (unknown) */
static void a_step_is_as_awx_says(void **state)
{
    struct world *w = *state;
    w->step.pending_seconds = 0;
    for (size_t i = 0; i < DF_ARRAY_SIZE(states); i++) {
        DF_FREE char *uid = df_strf("uid-%zu", i);
        DF_JSON cJSON *result = NULL;
        be(w, "we-1", uid);
        start(w);
        int job = AWX_FIRST + (int)i;
        awx_move(&w->awx, job, states[i].status);
        if (states[i].stdout_text)
            awx_print(&w->awx, job, states[i].stdout_text);
        struct df_engine_observation o = observe(w);
        assert_int_equal(o.phase, states[i].phase);
        assert_int_equal(o.exit_code, states[i].exit_code);
        assert_string_equal(o.reason, states[i].reason);
        assert_non_null(strstr(o.cause, states[i].cause));
        assert_true(o.since_us > 0);
        assert_false(o.is_gone);
        assert_int_equal(ops_of(w)->result(w->engine, &w->step, &result, NULL), 0);
        assert_string_equal(df_json_str(result, "executionStatus.status"), states[i].summary);
        assert_string_equal(df_json_str(result, "executionStatus.reason"),
                            states[i].summary_reason);
        assert_true(!df_json_at(result, "failureDetails") ==
                    (strcmp(states[i].reason, "WorkflowFailed") != 0));
    }
}

/* The contract's map of reasons. Nobody tells whether a job that failed had begun. */
static void a_job_that_failed_is_a_failure_of_its_execution(void **state)
{
    struct world *w = *state;
    DF_JSON cJSON *result = NULL, *of_gone = NULL;
    start(w);
    awx_move(&w->awx, 42, "failed");
    awx_print(&w->awx, 42, "fatal: unreachable");
    assert_int_equal(ops_of(w)->result(w->engine, &w->step, &result, NULL), 0);
    assert_at(result, "failureDetails",
              "{'failedTaskName':'','failedTaskIndex':0,'reason':'TaskFailed',"
              "'message':'fatal: unreachable','wasExecutionFailure':true}");
    be(w, "we-1", "uid-2");
    start(w);
    awx_forget(&w->awx, "jobs", 43);
    assert_int_equal(ops_of(w)->result(w->engine, &w->step, &of_gone, NULL), 0);
    assert_at(of_gone, "failureDetails.reason", "'Unknown'");
    assert_at(of_gone, "failureDetails.wasExecutionFailure", "true");
}

/* (no ref) */
static void a_step_without_a_reference_is_absent(void **state)
{
    struct world *w = *state;
    struct df_err err = {0};
    cJSON *result = NULL;
    assert_int_equal(observe(w).phase, DF_ENGINE_ABSENT);
    assert_int_equal(ops_of(w)->result(w->engine, &w->step, &result, &err), -1);
    assert_int_equal(err.cls, DF_ERR_NOT_FOUND);
    assert_int_equal(ops_of(w)->cancel(w->engine, &w->step, NULL), 0);
    assert_int_equal(awx_count(&w->awx, NULL, ""), 0);
}

static void a_reference_that_is_no_job_of_awx_is_told(void **state)
{
    struct world *w = *state;
    DF_JSON cJSON *ref = json("{'name':'wfe-1'}");
    struct df_engine_observation o;
    struct df_err err = {0};
    w->step.ref = ref;
    assert_int_equal(ops_of(w)->status(w->engine, &w->step, &o, &err), -1);
    assert_message(&err, "execution ref \"wfe-1\"");
}

static void a_job_that_was_deleted_in_awx_has_ended(void **state)
{
    struct world *w = *state;
    start(w);
    awx_forget(&w->awx, "jobs", 42);
    struct df_engine_observation o = observe(w);
    assert_int_equal(o.phase, DF_ENGINE_ENDED);
    assert_int_equal(o.exit_code, -1);
    assert_string_equal(o.reason, "JobDeleted");
    assert_non_null(strstr(o.cause, "AWXJobGone"));
    assert_int_equal(clean(w, NULL), 0);
}

#define NO_BACKEND "<html>default backend - 404</html>"

static void a_404_of_a_proxy_ends_no_job_and_deletes_no_credential(void **state)
{
    struct world *w = *state;
    struct df_engine_observation o;
    struct df_err err = {0};
    plan_gitea(w);
    start(w);
    awx_move(&w->awx, 42, "running");
    awx_break(&w->awx, "GET", "jobs/42/", 404, NO_BACKEND);
    int result = ops_of(w)->status(w->engine, &w->step, &o, &err);
    assert_failed(result, &err, DF_ERR_RETRY, "", "this is not AWX's answer");
    while (ops_of(w)->status(w->engine, &w->step, &o, NULL) < 0)
        (void)usleep(1000);
    assert_int_equal(o.phase, DF_ENGINE_RUNNING);
    awx_break(&w->awx, "POST", "jobs/42/cancel/", 404, NO_BACKEND);
    result = ops_of(w)->cancel(w->engine, &w->step, &err);
    assert_failed(result, &err, DF_ERR_RETRY, "", "AWX cancel returned 404");
    assert_int_equal(ops_of(w)->cancel(w->engine, &w->step, NULL), 0);
    awx_break(&w->awx, "DELETE", "credentials/", 404, NO_BACKEND);
    result = w->engine->ops->workflow->release(w->engine, &w->step, &err);
    assert_failed(result, &err, DF_ERR_RETRY, "", "AWX delete credential returned 404");
    assert_int_equal(awx_size(&w->awx, "credentials"), 1);
}

static void a_job_that_is_queued_for_too_long_is_given_up(void **state)
{
    struct world *w = *state;
    start(w);
    w->step.pending_seconds = 1; /* it was created in the past */
    struct df_engine_observation o = observe(w);
    assert_int_equal(o.phase, DF_ENGINE_PENDING);
    assert_true(o.gives_up);
    assert_string_equal(o.reason, "Unschedulable");
    w->step.pending_seconds = INT64_C(1000000000);
    assert_false(observe(w).gives_up);
}

static void a_job_that_failed_shows_no_output_that_may_have_secrets(void **state)
{
    struct world *w = *state;
    plan_gitea(w);
    start(w);
    awx_move(&w->awx, 42, "failed");
    awx_print(&w->awx, 42, "secret123");
    assert_string_equal(observe(w).cause, "AWXJobFailed: AWX job execution failed");
}

static void a_result_has_the_reference_the_summary_and_our_credentials(void **state)
{
    struct world *w = *state;
    DF_JSON cJSON *result = NULL;
    plan_gitea(w);
    start(w);
    awx_move(&w->awx, 42, "successful");
    assert_int_equal(ops_of(w)->result(w->engine, &w->step, &result, NULL), 0);
    assert_int_equal(cJSON_GetArraySize(result), 4);
    const cJSON *note = cJSON_GetObjectItemCaseSensitive(df_json_at(result, "annotations"),
                                                         "kubernaut.ai/awx-ephemeral-credentials");
    DF_FREE char *ids = df_json_print(df_json_at(w->ref, "credentials"));
    DF_FREE char *listed = df_strf("[%s]", cJSON_GetStringValue(note));
    assert_string_equal(listed, ids);
    assert_true(df_json_equal(df_json_at(result, "engineRef"), w->ref));
    assert_true(df_json_equal(df_json_at(result, "ephemeralCredentialIDs"),
                              df_json_at(w->ref, "credentials")));
    assert_at(result, "executionStatus",
              "{'status':'True','reason':'AWXJobSuccessful',"
              "'message':'AWX job completed successfully'}");
}

/* ---- AWX is away ---- */

static void assert_away(int result, const struct df_err *err)
{
    assert_int_equal(result, -1);
    assert_int_equal(err->cls, DF_ERR_RETRY);
    assert_message(err, "AWX");
}

static void awx_away_is_a_failure_that_names_it(void **state)
{
    static const int statuses[] = {500, 502, 503, 429, AWX_LOST};
    struct world *w = *state;
    for (size_t i = 0; i < DF_ARRAY_SIZE(statuses); i++) {
        DF_FREE char *uid = df_strf("uid-%zu", i);
        struct df_engine_observation o;
        struct df_err errors[6] = {0};
        cJSON *json_out = NULL;
        be(w, "we-1", uid);
        start(w);
        awx_set_away(&w->awx, statuses[i]);
        assert_away(ops_of(w)->status(w->engine, &w->step, &o, &errors[0]), &errors[0]);
        assert_message(&errors[0], "get AWX job");
        assert_away(ops_of(w)->result(w->engine, &w->step, &json_out, &errors[1]), &errors[1]);
        assert_away(ops_of(w)->cancel(w->engine, &w->step, &errors[2]), &errors[2]);
        assert_away(clean(w, &errors[3]), &errors[3]);
        w->step.ref = NULL;
        assert_away(clean(w, &errors[4]), &errors[4]);
        assert_away(ops_of(w)->create(w->engine, &w->step, &json_out, &errors[5]), &errors[5]);
        awx_set_away(&w->awx, 0);
    }
}

static void a_failure_is_remembered_and_not_asked_for_again_and_again(void **state)
{
    struct world *w = *state;
    struct df_engine_observation o;
    struct df_err err = {0};
    start(w);
    awx_set_away(&w->awx, 503);
    for (int i = 0; i < 5; i++)
        assert_away(ops_of(w)->status(w->engine, &w->step, &o, &err), &err);
    assert_int_equal(awx_count(&w->awx, "GET", "jobs/42/"), 1);
}

static void who_waits_is_told_when_a_job_changes(void **state)
{
    struct world *w = *state;
    start(w);
    awx_move(&w->awx, 42, "running");
    assert_int_equal(observe(w).phase, DF_ENGINE_RUNNING);
    assert_int_equal(observe(w).phase, DF_ENGINE_RUNNING);
    assert_int_equal(awx_count(&w->awx, "GET", "jobs/42/"), 1);
    awx_move(&w->awx, 42, "successful");
    while (atomic_load(&w->notified) == 0)
        (void)usleep(1000);
    assert_int_equal(observe(w).phase, DF_ENGINE_ENDED);
    assert_int_equal(awx_count(&w->awx, "GET", "jobs/42/"), 2);
}

static void the_end_of_a_long_output_is_in_the_message_of_the_step(void **state)
{
    struct world *w = *state;
    DF_FREE char *text = df_strf("%02000d\nfatal: no such host\n", 0);
    start(w);
    awx_print(&w->awx, 42, text);
    awx_move(&w->awx, 42, "failed");
    struct df_engine_observation o = observe(w);
    assert_non_null(strstr(o.cause, "fatal: no such host"));
}

static void a_job_whose_output_is_late_ends_with_it(void **state)
{
    struct world *w = *state;
    char now[DF_TIME_LEN];
    start(w);
    awx_print(&w->awx, 42, "PLAY [all]\n");
    awx_set(&w->awx, "jobs", 42, "event_processing_finished", cJSON_CreateFalse());
    awx_set(&w->awx, "jobs", 42, "finished", cJSON_CreateString(df_time_format(df_real_us(), now)));
    awx_move(&w->awx, 42, "failed");
    assert_int_equal(observe(w).phase, DF_ENGINE_RUNNING);
    awx_print(&w->awx, 42, "PLAY [all]\nfatal: no such host\n");
    awx_set(&w->awx, "jobs", 42, "event_processing_finished", cJSON_CreateTrue());
    while (observe(w).phase != DF_ENGINE_ENDED)
        (void)usleep(1000);
    assert_non_null(strstr(observe(w).cause, "fatal: no such host"));
}

static void a_job_begins_once_whatever_the_clock_of_awx_does(void **state)
{
    struct world *w = *state;
    start(w);
    awx_set(&w->awx, "jobs", 42, "created", cJSON_CreateString("2058-01-01T00:00:00Z"));
    int64_t since_us = observe(w).since_us;
    awx_move(&w->awx, 42, "running");
    while (observe(w).phase != DF_ENGINE_RUNNING)
        (void)usleep(1000);
    assert_int_equal(observe(w).since_us, since_us);
}

/* ---- the token ---- */

static void replace_token(struct world *w, const char *data)
{
    remove_object(w, &df_kube_secrets, "awx");
    put_object(w, &df_kube_secrets, "awx", data);
}

static void a_token_that_was_replaced_is_read_again(void **state)
{
    struct world *w = *state;
    start(w);
    assert_int_equal(ops_of(w)->cancel(w->engine, &w->step, NULL), 0);
    int asked = awx_count(&w->awx, NULL, "");
    replace_token(w, "{'api.token':'new-token\\n'}");
    awx_set_token(&w->awx, "new-token");
    assert_int_equal(ops_of(w)->cancel(w->engine, &w->step, NULL), 0);
    assert_int_equal(awx_count(&w->awx, NULL, ""), asked + 2); /* 401, and again */
    assert_int_equal(ops_of(w)->cancel(w->engine, &w->step, NULL), 0);
    assert_int_equal(awx_count(&w->awx, NULL, ""), asked + 3);
}

/* How often a Secret was read. */
static int secrets_read(struct world *w)
{
    (void)pthread_mutex_lock(&w->server.lock);
    int n = (int)df_json_int(w->memory.counts, "GET secrets", 0);
    (void)pthread_mutex_unlock(&w->server.lock);
    return n;
}

static void start_another(struct world *w, const char *name, const char *uid)
{
    be(w, name, uid);
    w->step.was_created = false;
    start(w);
}

static void workflows_share_token_and_connection(void **state)
{
    struct world *w = *state;
    start_another(w, "we-1", "uid-1");
    start_another(w, "we-2", "uid-2");
    assert_int_equal(awx_count(&w->awx, "POST", LAUNCH), 2);
    assert_int_equal(awx_count(&w->awx, "GET", ""), 2); /* the template: no earlier job */
    assert_int_equal(secrets_read(w), 1);
    assert_int_equal(awx_connections(&w->awx, 1), 3); /* a launch has its own */
}

static void a_workflow_begins_with_the_token_that_replaced_another(void **state)
{
    struct world *w = *state;
    start(w);
    replace_token(w, "{'api.token':'new-token'}");
    awx_set_token(&w->awx, "new-token");
    start_another(w, "we-2", "uid-2");
    start_another(w, "we-3", "uid-3");
    assert_int_equal(awx_count(&w->awx, "POST", LAUNCH), 3);
    assert_int_equal(secrets_read(w), 2);
    awx_set_token(&w->awx, "newest-token"); /* the Secret has it later */
    be(w, "we-4", "uid-4");
    assert_no_start(w, DF_ERR_USER, "NotAllowed", "AWX refuses the token");
    assert_int_equal(secrets_read(w), 3);
    replace_token(w, "{'api.token':'newest-token'}");
    start(w);
    assert_int_equal(secrets_read(w), 4);
}

static void what_a_workflow_has_sent_is_forgotten_when_it_has_begun(void **state)
{
    struct world *w = *state;
    plan_gitea(w);
    start(w);
    plan(w, "{" CONFIG "}");
    be(w, "we-2", "uid-2");
    awx_break(&w->awx, "GET", "job_templates/", 400, "secret123 of test-token");
    assert_no_start(w, DF_ERR_USER, "InvalidStep", "returned 400: secret123 of ***");
}

static void a_token_that_is_not_there_is_named_and_waited_for(void **state)
{
    struct world *w = *state;
    replace_token(w, "{'token':'test-token'}");
    assert_no_start(w, DF_ERR_RETRY, "",
                    "the token of AWX, key api.token of the Secret build/awx: "
                    "it lacks this key");
    remove_object(w, &df_kube_secrets, "awx");
    assert_no_start(w, DF_ERR_RETRY, "", "the token of AWX, key api.token of the Secret build/awx");
    assert_int_equal(awx_count(&w->awx, NULL, ""), 0);
    put_object(w, &df_kube_secrets, "awx", "{'api.token':'test-token'}");
    start(w);
}

/* ---- output ---- */

struct heard_output {
    char part[64];
    struct df_buf text;
    int begins, answer;
};

static int hear_part(void *arg, const char *part, struct df_err *err)
{
    struct heard_output *h = arg;
    (void)err;
    df_copy(h->part, sizeof(h->part), part);
    h->begins++;
    return h->answer;
}

static int hear_text(void *arg, const char *bytes, size_t n, struct df_err *err)
{
    struct heard_output *h = arg;
    (void)err;
    return df_buf_add(&h->text, bytes, n);
}

static void the_output_is_one_part_of_the_jobs_name(void **state)
{
    struct world *w = *state;
    struct heard_output h = {.text = DF_BUF_INIT(DF_KIB)};
    const struct df_output_reader to = {hear_part, hear_text, &h};
    const struct df_workflow_ops *ops = w->engine->ops->workflow;
    assert_int_equal(ops->output(w->engine, &w->step, &to, NULL), 0);
    assert_int_equal(h.begins, 0);
    start(w);
    assert_int_equal(ops->output(w->engine, &w->step, &to, NULL), 0); /* nothing yet */
    assert_string_equal(df_buf_str(&h.text), "");
    awx_print(&w->awx, 42, "PLAY [all]\n");
    assert_int_equal(ops->output(w->engine, &w->step, &to, NULL), 0);
    assert_string_equal(h.part, "awx-job-42");
    assert_string_equal(df_buf_str(&h.text), "PLAY [all]\n");
    h.answer = 1;
    int asked = awx_count(&w->awx, NULL, "");
    assert_int_equal(ops->output(w->engine, &w->step, &to, NULL), 0);
    assert_int_equal(awx_count(&w->awx, NULL, ""), asked);
    df_buf_free(&h.text);
}

/* AWX stores what was printed in any order: a line may come before others. */
static void only_output_without_a_gap_is_taken_while_a_job_runs(void **state)
{
    struct world *w = *state;
    struct heard_output h = {.text = DF_BUF_INIT(DF_KIB)};
    const struct df_output_reader to = {hear_part, hear_text, &h};
    const struct df_workflow_ops *ops = w->engine->ops->workflow;
    start(w);
    awx_move(&w->awx, 42, "running");
    awx_print(&w->awx, 42, "one\nthree\n");
    awx_set(&w->awx, "jobs", 42, "count", cJSON_CreateNumber(2));
    awx_set(&w->awx, "jobs", 42, "newest", cJSON_CreateNumber(3));
    assert_int_equal(ops->output(w->engine, &w->step, &to, NULL), 0);
    assert_string_equal(df_buf_str(&h.text), "");
    awx_print(&w->awx, 42, "one\ntwo\nthree\n");
    awx_set(&w->awx, "jobs", 42, "count", cJSON_CreateNumber(3));
    assert_int_equal(ops->output(w->engine, &w->step, &to, NULL), 0);
    assert_string_equal(df_buf_str(&h.text), "one\ntwo\nthree\n");
    df_buf_free(&h.text);
}

/* It may have a gap at its end. */
static void output_that_grows_while_it_is_read_is_not_taken(void **state)
{
    struct world *w = *state;
    struct heard_output h = {.text = DF_BUF_INIT(DF_KIB)};
    const struct df_output_reader to = {hear_part, hear_text, &h};
    const struct df_workflow_ops *ops = w->engine->ops->workflow;
    start(w);
    awx_move(&w->awx, 42, "running");
    awx_print(&w->awx, 42, "one\nthree\n");
    awx_break(&w->awx, "GET", "jobs/42/job_events/", 200,
              "{\"count\":1,\"results\":[{\"counter\":1}]}");
    awx_set(&w->awx, "jobs", 42, "count", cJSON_CreateNumber(3));
    assert_int_equal(ops->output(w->engine, &w->step, &to, NULL), 0);
    assert_string_equal(df_buf_str(&h.text), "");
    df_buf_free(&h.text);
}

/* Also if AWX has lost an event. */
static void the_output_of_a_job_that_has_ended_is_awxs_own(void **state)
{
    struct world *w = *state;
    struct heard_output h = {.text = DF_BUF_INIT(DF_KIB)};
    const struct df_output_reader to = {hear_part, hear_text, &h};
    start(w);
    awx_move(&w->awx, 42, "successful");
    awx_print(&w->awx, 42, "one\n");
    awx_set(&w->awx, "jobs", 42, "newest", cJSON_CreateNumber(2));
    assert_int_equal(w->engine->ops->workflow->output(w->engine, &w->step, &to, NULL), 0);
    assert_string_equal(df_buf_str(&h.text), "one\n");
    assert_int_equal(awx_count(&w->awx, "GET", "jobs/42/job_events/"), 0);
    df_buf_free(&h.text);
}

/* ---- a clock of the test ---- */

static atomic_llong test_us;

static int64_t read_test_clock(void)
{
    return atomic_load(&test_us);
}

static int64_t real_us(void)
{
    return 1;
}

static int no_random(void *bytes, size_t n)
{
    memset(bytes, 1, n);
    return 0;
}

static int give_token(void *arg, char **ret, struct df_err *err)
{
    (void)arg;
    return df_check_alloc(*ret = strdup("test-token"), err);
}

/* ---- AWX's clock ---- */

static int64_t noon_us(void)
{
    int64_t us = 0;
    assert_int_equal(df_time_parse("2026-11-29T12:00:00Z", &us, NULL), 0);
    return us;
}

/* What AWX says of a job: {headers, body}. */
static void say_job(struct kube_server *s, const struct kube_request *r, struct kube_reply *a)
{
    const char *const *said = s->arg;
    (void)r;
    kube_say(a, 200, said[0], said[1]);
}

static struct df_awx_seen look_at(const char *headers, const char *body)
{
    const struct df_awx_watched watched = {.uid = "uid-1", .step = "we-1", .job = 42};
    const char *said[] = {headers, body};
    struct kube_server server;
    struct df_awx_seen seen;
    struct df_awx *awx = NULL;
    kube_start(&server, say_job, said);
    DF_FREE char *url = df_strf("http://127.0.0.1:%u", server.port);
    const struct df_awx_options options = {.url = url, .token = give_token};
    assert_int_equal(df_awx_new(&options, &awx, NULL), 0);
    df_awx_look(awx, &watched, &seen);
    assert_int_equal(seen.why.cls, DF_ERR_NONE);
    df_awx_free(awx);
    kube_stop(&server);
    return seen;
}

static void a_job_runs_until_awx_has_stored_its_output(void **state)
{
    static const struct df_clock clock = {read_test_clock, noon_us, no_random};
    static const struct {
        const char *rest;
        bool runs;
    } rows[] = {
        {"\"finished\":\"2026-11-29T11:59:59Z\",\"event_processing_finished\":false", true},
        {"\"finished\":\"2026-11-29T11:59:59Z\",\"event_processing_finished\":true", false},
        {"\"finished\":\"2026-11-29T11:59:59Z\"", false},
        {"\"finished\":\"2026-11-29T11:59:40Z\",\"event_processing_finished\":false", false},
        {"\"finished\":null,\"event_processing_finished\":false", false},
    };
    (void)state;
    df_clock_install(&clock);
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        DF_FREE char *body = df_strf("{\"status\":\"failed\",%s}", rows[i].rest);
        struct df_awx_seen seen = look_at("", body);
        assert_int_equal(!df_awx_has_ended(&seen), rows[i].runs);
        assert_false(seen.is_queued);
    }
    df_clock_install(NULL);
}

static void the_time_of_a_job_is_by_our_clock_and_never_in_the_future(void **state)
{
    static const struct df_clock clock = {read_test_clock, noon_us, no_random};
    static const struct {
        const char *date, *created;
        int ago_seconds;
    } rows[] = {
        {"Date: Sun, 29 Nov 2026 12:00:01 GMT\r\n", "2026-11-29T11:59:00Z", 60},
        {"Date: Sun, 29 Nov 2026 10:00:00 GMT\r\n", "2026-11-29T09:59:00Z", 60}, /* it is behind */
        {"Date: Sun, 29 Nov 2026 14:00:00 GMT\r\n", "2026-11-29T13:59:00Z", 60}, /* it is ahead */
        {"Date: Sun, 29 Nov 2026 12:00:00 GMT\r\n", "2058-01-01T00:00:00Z", 0},
        {"", "2058-01-01T00:00:00Z", 0},
    };
    (void)state;
    df_clock_install(&clock);
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        DF_FREE char *body =
            df_strf("{\"status\":\"running\",\"created\":\"%s\"}", rows[i].created);
        struct df_awx_seen seen = look_at(rows[i].date, body);
        assert_int_equal(noon_us() - seen.created_us, rows[i].ago_seconds * INT64_C(1000000));
    }
    df_clock_install(NULL);
}

/* ---- the pace ---- */

/* Goes on by so much, wakes the thread, and waits for this number of requests. */
static void go_on(struct awx_memory *m, struct df_awx_poll *p, int64_t us, int requests)
{
    (void)atomic_fetch_add(&test_us, us);
    df_awx_poll_soon(p, "nobody");
    awx_await(m, "GET", "jobs/42/", requests);
    (void)usleep(2000); /* a request that is one too many comes now, and is counted at the end */
}

static void awx_is_asked_no_more_often_than_the_pace_allows(void **state)
{
    static const struct df_clock clock = {read_test_clock, real_us, no_random};
    const struct df_awx_watched watched = {.uid = "uid-1", .step = "we-1", .job = 42};
    const struct df_awx_seen seen = {.job = {.phase = DF_WORKFLOW_RUNNING}};
    struct awx_memory m;
    struct df_awx_poll *p = NULL;
    (void)state;
    df_clock_install(&clock);
    awx_open(&m);
    (void)awx_keep(&m, "jobs", json("{'id':42,'status':'running'}"));
    const struct df_awx_options o = {.url = m.url, .token = give_token};
    assert_int_equal(df_awx_poll_new(&o, NULL, NULL, &p, NULL), 0);
    assert_int_equal(df_awx_poll_add(p, &watched, &seen, NULL), 0);
    for (int i = 1; i <= 10; i++) /* each time a little too early: it is the second one that asks */
        go_on(&m, p, DF_WORKFLOW_PACE_MIN_US - 1, i / 2);
    go_on(&m, p, 100 * DF_WORKFLOW_PACE_MAX_US, 6); /* now it has run for long */
    for (int i = 1; i <= 4; i++)
        go_on(&m, p, DF_WORKFLOW_PACE_MAX_US - 1, 6 + i / 2);
    df_awx_poll_soon(p, "uid-1"); /* as after a cancel */
    go_on(&m, p, DF_WORKFLOW_PACE_MIN_US - 1, 8);
    awx_move(&m, 42, "successful");
    go_on(&m, p, 1, 9);
    assert_int_equal(awx_count(&m, NULL, ""), 9);
    struct df_awx_seen last = {0};
    while (!df_awx_has_ended(&last))
        assert_true(df_awx_poll_find(p, "uid-1", &last));
    go_on(&m, p, DF_AWX_KEEP_US, 9);
    while (df_awx_poll_find(p, "uid-1", &last)) /* until it is forgotten */
        (void)usleep(1000);
    df_awx_poll_free(p);
    assert_int_equal(awx_count(&m, NULL, ""), 9);
    awx_close(&m);
    df_clock_install(NULL);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, open_world, close_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_step_is_as_awx_says),
        TEST(a_job_that_failed_is_a_failure_of_its_execution),
        TEST(a_step_without_a_reference_is_absent),
        TEST(a_reference_that_is_no_job_of_awx_is_told),
        TEST(a_job_that_was_deleted_in_awx_has_ended),
        TEST(a_404_of_a_proxy_ends_no_job_and_deletes_no_credential),
        TEST(a_job_that_is_queued_for_too_long_is_given_up),
        TEST(a_job_that_failed_shows_no_output_that_may_have_secrets),
        TEST(a_result_has_the_reference_the_summary_and_our_credentials),
        TEST(awx_away_is_a_failure_that_names_it),
        TEST(a_failure_is_remembered_and_not_asked_for_again_and_again),
        TEST(who_waits_is_told_when_a_job_changes),
        TEST(a_token_that_was_replaced_is_read_again),
        TEST(workflows_share_token_and_connection),
        TEST(a_workflow_begins_with_the_token_that_replaced_another),
        TEST(what_a_workflow_has_sent_is_forgotten_when_it_has_begun),
        TEST(a_token_that_is_not_there_is_named_and_waited_for),
        TEST(the_output_is_one_part_of_the_jobs_name),
        TEST(only_output_without_a_gap_is_taken_while_a_job_runs),
        TEST(output_that_grows_while_it_is_read_is_not_taken),
        TEST(the_output_of_a_job_that_has_ended_is_awxs_own),
        TEST(a_job_begins_once_whatever_the_clock_of_awx_does),
        TEST(the_end_of_a_long_output_is_in_the_message_of_the_step),
        TEST(a_job_whose_output_is_late_ends_with_it),
        cmocka_unit_test(a_job_runs_until_awx_has_stored_its_output),
        cmocka_unit_test(the_time_of_a_job_is_by_our_clock_and_never_in_the_future),
        cmocka_unit_test(awx_is_asked_no_more_often_than_the_pace_allows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
