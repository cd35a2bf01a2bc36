/* What people write with kubectl, as the control loop finds it in the store: documents without
 * status, and notes that nobody signed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "spawner/control/hourly.h"
#include "spawner/control/loop.h"
#include "spawner/model/accepted.h"
#include "spawner/model/errored_states.h"
#include "spawner/steps/errored.h"
#include "tests/unit/applied_words.h"

/* ---- taking in ---- */

static void an_applied_executor_is_taken_in_as_one_that_was_sent(void **state)
{
    struct world *w = *state;
    start(w);
    apply_executor(w, "net");
    await_condition(w, DF_KIND_EXECUTOR, "net", "Succeeded", "True", "Accepted");
    assert_value(w, DF_KIND_EXECUTOR, "net", "status.state", "provision");
    assert_value(w, DF_KIND_EXECUTOR, "net", "status.revision", "1");
    assert_value(w, DF_KIND_EXECUTOR, "net", "status.creator", "kubernetes");
    patch(w, DF_KIND_EXECUTOR, "net", "spec", "description", "'other'");
    await_value(w, DF_KIND_EXECUTOR, "net", "status.revision", "2");
    assert_value(w, DF_KIND_EXECUTOR, "net", "status.observedGeneration", "2");
}

static void an_executor_that_is_no_valid_document_is_refused_until_it_is_mended(void **state)
{
    struct world *w = *state;
    start(w);
    apply(w, DF_KIND_EXECUTOR, "net", "{'source':{'url':'nowhere'}}");
    await_condition(w, DF_KIND_EXECUTOR, "net", "Failed", "True", "InvalidDocument");
    DF_JSON cJSON *body = json("{'action':'provision'}");
    struct df_err err = {0};
    assert_int_equal(
        df_request_create_run(
            &w->s, "net",
            &(struct df_run_request){body, NULL, {DF_VERBS_ADMIN, DF_ROLE_ADMIN}, "tester"}, NULL,
            &err),
        -1);
    assert_string_equal(err.reason, "WrongState");
    assert_non_null(strstr(err.message, "spec.source.url"));
    patch(w, DF_KIND_EXECUTOR, "net", "spec", "source", "{'url':'file:///nowhere'}");
    await_condition(w, DF_KIND_EXECUTOR, "net", "Succeeded", "True", "Accepted");
    run(w, "net", ASKING);
}

static void an_applied_run_keeps_its_name_and_gets_number_and_snapshot(void **state)
{
    struct world *w = *state;
    start(w);
    apply_executor(w, "net");
    apply(w, DF_KIND_RUN, "first", RUN_NET);
    (void)await_start(w, "first-plan");
    assert_value(w, DF_KIND_RUN, "first", "spec.number", "1");
    assert_value(w, DF_KIND_RUN, "first", "spec.requestedBy", "kubernetes");
    assert_value(w, DF_KIND_RUN, "first", "spec.snapshot.source.url", "file:///nowhere");
    await_value(w, DF_KIND_EXECUTOR, "net", "status.activeRun", "first");
}

static void a_run_waits_for_the_executor_that_is_applied_behind_it(void **state)
{
    struct world *w = *state;
    start(w);
    apply(w, DF_KIND_RUN, "first", RUN_NET);
    apply_executor(w, "net");
    (void)await_start(w, "first-plan");
}

static void a_run_is_woken_by_the_executor_that_it_waits_for_and_by_no_other(void **state)
{
    struct world *w = *state;
    int64_t wake_us = 0;
    apply(w, DF_KIND_RUN, "first", RUN_NET);
    apply_executor(w, "other");
    assert_int_equal(df_reconcile_run(w->s.control, "first", &wake_us, NULL), 0);
    assert_int_equal(df_reconcile_executor(w->s.control, "other", &wake_us, NULL), 0);
    assert_true(df_queue_is_idle(w->s.control->queue));
    apply_executor(w, "net");
    assert_int_equal(df_reconcile_executor(w->s.control, "net", &wake_us, NULL), 0);
    assert_false(df_queue_is_idle(w->s.control->queue));
    struct df_queue_key key;
    assert_true(df_queue_get(w->s.control->queue, &key));
    assert_int_equal(key.kind, DF_KIND_RUN);
    assert_string_equal(key.name, "first");
}

static void of_too_many_runs_that_wait_the_newest_are_woken(void **state)
{
    struct world *w = *state;
    struct df_memory *m = &w->s.memory;
    DF_JSON cJSON *doc = json("{'metadata':{'name':'run','uid':'u'}}");
    char run[64] = "";
    for (size_t i = 0; i <= DF_LIMIT_AWAITING; i++) {
        char executor[64];
        (void)snprintf(executor, sizeof(executor), "e%zu", i);
        df_memory_await_executor(m, doc, executor);
        df_memory_await_executor(m, doc, executor); /* a second pass */
    }
    assert_int_equal(memories(w, DF_MEMORY_EXECUTOR), DF_LIMIT_AWAITING);
    assert_false(df_memory_take_awaiting(m, "e0", run));
    assert_true(df_memory_take_awaiting(m, "e1", run));
    assert_string_equal(run, "run");
    assert_false(df_memory_take_awaiting(m, "e1", run));
}

static void a_run_that_cannot_be_is_refused_with_the_reason(void **state)
{
    static const struct {
        const char *spec, *message;
    } cases[] = {
        {"{'executorRef':{'name':'net'},'action':'dance'}", "spec.action"},
        {"{'executorRef':{'name':'net'},'action':'destroy'}", "nothing"},
        {"{'executorRef':{'name':'net'},'action':'provision','placement':{'image':'A B'}}",
         "not an image"},
    };
    struct world *w = *state;
    start(w);
    apply_executor(w, "net");
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_FREE char *name = df_strf("bad-%zu", i);
        apply(w, DF_KIND_RUN, name, cases[i].spec);
        await_value(w, DF_KIND_RUN, name, "status.phase", "Failed");
        await_condition(w, DF_KIND_RUN, name, "Failed", "True", "InvalidDocument");
        DF_FREE char *message = value_of(w, DF_KIND_RUN, name, "status.message");
        if (!strstr(message, cases[i].message))
            fail_msg("\"%s\" does not say \"%s\"", message, cases[i].message);
    }
}

/* Keeps an errored state of a step that nobody knows. */
static void keep_errored(struct world *w, const char *executor)
{
    static const char text[] = "{}";
    DF_FREE char *uid = value_of(w, DF_KIND_EXECUTOR, executor, "metadata.uid");
    DF_FREE char *path = df_strf("%s/kept", df_blob_tmp_dir(w->s.blobs));
    assert_int_equal(df_fs_replace(path, text, strlen(text), 0600, NULL), 0);
    assert_int_equal(df_state_keep_errored(w->s.states, uid, "3f", path, NULL), 0);
}

static void an_applied_run_is_refused_while_an_errored_state_is_kept(void **state)
{
    struct world *w = *state;
    start(w);
    apply_executor(w, "net");
    await_condition(w, DF_KIND_EXECUTOR, "net", "Succeeded", "True", "Accepted");
    keep_errored(w, "net");
    assert_int_equal(df_errored_note(&w->s, "net", NULL, NULL), 0);
    apply(w, DF_KIND_RUN, "first", RUN_NET);
    await_condition(w, DF_KIND_RUN, "first", "Failed", "True", "ErroredStatePending");
    assert_value(w, DF_KIND_RUN, "first", "status.phase", "Failed");
    DF_JSON cJSON *doc = get(w, DF_KIND_RUN, "first");
    assert_true(df_doc_is_refused(doc));
    assert_null(get(w, DF_KIND_TASK_ACTION, "first-plan"));
}

static void an_errored_state_that_no_executor_names_is_named_within_the_hour(void **state)
{
    struct world *w = *state;
    struct df_periodic *hourly = NULL;
    start(w);
    apply_executor(w, "net");
    await_condition(w, DF_KIND_EXECUTOR, "net", "Succeeded", "True", "Accepted");
    keep_errored(w, "net");
    assert_int_equal(df_hourly_start(&w->s, &hourly, NULL), 0);
    for (bool named = false; !named;) {
        uint64_t mark = changes_mark(w);
        DF_JSON cJSON *executor = get(w, DF_KIND_EXECUTOR, "net");
        named = df_errored_is_kept(executor);
        if (!named)
            wait_for_change(w, mark);
    }
    df_periodic_stop(hourly);
}

/* The API server does not say who wrote a resource: it gets what `write` gets. */
static void who_writes_a_resource_chooses_no_pod(void **state)
{
#define TEMPLATE "'placement':{'podTemplate':{'spec':{'hostPID':true}}}"
#define EXECUTOR(more) "{'source':{'url':'file:///nowhere','kind':'directory'}," more "}"
#define WORKFLOW "'action':'workflow','targetResource':'deployment/a','workflow':"
    static const struct {
        enum df_kind kind;
        const char *name, *spec, *message;
    } cases[] = {
        {DF_KIND_RUN, "evil-1", "{'executorRef':{'name':'net'},'action':'provision'," TEMPLATE "}",
         "no admission webhook says who applied it (kubernetes.webhook), so the rules of the "
         "role write apply: "
         "placement.podTemplate: a caller with the role write may not set it for a Run; "
         "the operator can add it to placement.allow.write.run.fields of the service's "
         "configuration, or a caller with the role admin can set it"},
        {DF_KIND_EXECUTOR, "evil-2", EXECUTOR(TEMPLATE),
         "placement.podTemplate: a caller with the role write may not set it for an Executor"},
        {DF_KIND_EXECUTOR, "evil-3",
         EXECUTOR("'environment':[{'name':'EPHEMERAL_CONFIG_SERVICE_ACCOUNT','value':'boss'}]"),
         "spec.environment: Terrakube's keys: placement.serviceAccountName: a caller with the role "
         "write may not take the service account \"boss\""},
        {DF_KIND_TASK_ACTION, "evil-4", "{" WORKFLOW "{'executionBundle':'evil:1'}}",
         "workflow.executionBundle: a caller with the role write may not take the image"},
    };
    struct world *w = *state;
    start(w);
    apply_executor(w, "net");
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        apply(w, cases[i].kind, cases[i].name, cases[i].spec);
        await_condition(w, cases[i].kind, cases[i].name, "Failed", "True", "PlacementDenied");
        DF_JSON cJSON *doc = get(w, cases[i].kind, cases[i].name);
        const char *message = df_task_message(doc);
        if (!message || !strstr(message, cases[i].message))
            fail_msg("\"%s\" does not say \"%s\"", message, cases[i].message);
        assert_true(df_doc_is_refused(doc));
    }
    assert_value(w, DF_KIND_EXECUTOR, "evil-2", "status.status", "refused");
    DF_JSON cJSON *body = json("{'action':'provision'}");
    struct df_err err = {0};
    assert_int_equal(
        df_request_create_run(
            &w->s, "evil-2",
            &(struct df_run_request){body, NULL, {DF_VERBS_ADMIN, DF_ROLE_ADMIN}, "tester"}, NULL,
            &err),
        -1);
    assert_string_equal(err.reason, "WrongState");
    /* An admin who sends it by REST takes it over. */
    DF_JSON cJSON *old = get(w, DF_KIND_EXECUTOR, "evil-2");
    DF_JSON cJSON *doc = json("{'metadata':{'name':'evil-2'},'spec':" EXECUTOR(TEMPLATE) "}");
    err = (struct df_err){0};
    if (df_request_change_executor(
            &w->s, &(struct df_document_request){doc, NULL, DF_ROLE_ADMIN, "ann", DF_VERBS_ADMIN},
            old, false, NULL, &err) < 0)
        fail_msg("%s", err.message);
    assert_value(w, DF_KIND_EXECUTOR, "evil-2", "status.status", "ready");
    run(w, "evil-2", ASKING);
}

/* The definitions of the resources have no such field, but a lax one may let it pass. */
static void a_run_brings_no_snapshot_of_its_own(void **state)
{
    struct world *w = *state;
    start(w);
    apply_executor(w, "net");
    apply(w, DF_KIND_RUN, "first",
          "{'executorRef':{'name':'net'},'action':'provision','snapshot':{" TEMPLATE "}}");
    await_value(w, DF_KIND_RUN, "first", "spec.number", "1");
    DF_JSON cJSON *run = get(w, DF_KIND_RUN, "first");
    assert_non_null(df_json_at(run, "spec.snapshot.source"));
    assert_null(df_json_at(run, "spec.snapshot.placement"));
}

static void the_service_passes_over_names_that_people_took(void **state)
{
    struct world *w = *state;
    make_executor(w, "net", "");
    apply(w, DF_KIND_RUN, "net-1", RUN_NET);
    apply(w, DF_KIND_RUN, "net-2", RUN_NET);
    DF_JSON cJSON *made = make_run(w, "net", ASKING);
    assert_string_equal(df_json_str(made, "metadata.name"), "net-3");
    assert_int_equal(df_json_int(made, "spec.number", 0), 3);
    start(w);
}

/* ---- one storage, two executors ---- */

enum { ROUNDS = 100 };

/* An executor whose state is in the place that belongs to this round. */
static char *spec_in_place(int round)
{
    return df_strf("{'source':{'url':'file:///nowhere','kind':'directory'},'storage':{'type':'s3',"
                   "'path':'place/%d','config':{'bucket':'b','region':'r'}}}",
                   round);
}

struct client {
    struct world *w;
    pthread_barrier_t *both_begin;
    int round, result;
    struct df_err err;
};

/* As a client of the REST API does. */
static void *send_executor(void *arg)
{
    struct client *c = arg;
    DF_FREE char *spec = spec_in_place(c->round);
    DF_FREE char *text = df_strf("{'metadata':{'name':'sent-%d'},'spec':%s}", c->round, spec);
    DF_JSON cJSON *doc = json(text);
    (void)pthread_barrier_wait(c->both_begin);
    c->result = df_request_create_executor(
        &c->w->s, &(struct df_document_request){doc, NULL, DF_ROLE_ADMIN, "tester"}, NULL, &c->err);
    return NULL;
}

/* Applies one executor while a client sends another. True if the client's was accepted. */
static bool apply_beside_client(struct world *w, int round, const char *name)
{
    pthread_barrier_t both_begin;
    struct client c = {.w = w, .both_begin = &both_begin, .round = round};
    pthread_t thread;
    DF_FREE char *spec = spec_in_place(round);
    assert_int_equal(pthread_barrier_init(&both_begin, NULL, 2), 0);
    assert_int_equal(pthread_create(&thread, NULL, send_executor, &c), 0);
    (void)pthread_barrier_wait(&both_begin);
    apply(w, DF_KIND_EXECUTOR, name, spec);
    (void)pthread_join(thread, NULL);
    (void)pthread_barrier_destroy(&both_begin);
    if (c.result < 0)
        assert_string_equal(c.err.reason, "StorageInUse");
    return c.result == 0;
}

static void of_an_applied_and_a_sent_executor_one_gets_the_storage(void **state)
{
    struct world *w = *state;
    start(w);
    for (int round = 0; round < ROUNDS; round++) {
        DF_FREE char *name = df_strf("applied-%d", round);
        bool sent = apply_beside_client(w, round, name);
        await_value(w, DF_KIND_EXECUTOR, name, "status.observedGeneration", "1");
        DF_JSON cJSON *applied = get(w, DF_KIND_EXECUTOR, name);
        if (sent != df_doc_is_refused(applied))
            fail_msg("round %d: %s executor has the storage", round, sent ? "each" : "no");
    }
}

/* ---- what a newer version left ---- */

static void a_run_of_an_unknown_action_is_not_executed_and_frees_the_queue(void **state)
{
    struct world *w = *state;
    make_executor(w, "net", "");
    run(w, "net", AUTO);
    run(w, "net", AUTO);
    patch(w, DF_KIND_RUN, "net-1", "spec", "action", "'dance'");
    start(w);
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Failed");
    assert_value(w, DF_KIND_RUN, "net-1", "status.reason", "InvalidDocument");
    assert_value(w, DF_KIND_RUN, "net-1", "status.message",
                 "spec.action: \"dance\" is not an action: provision, dry-run, destroy or state");
    assert_null(get(w, DF_KIND_TASK_ACTION, "net-1-plan"));
    (void)await_start(w, "net-2-plan");
    await_value(w, DF_KIND_EXECUTOR, "net", "status.activeRun", "net-2");
    assert_value(w, DF_KIND_EXECUTOR, "net", "status.before.status", "ready");
}

/* Two steps of one executor never run at once. */
static void a_run_of_an_unknown_action_ends_after_its_step_that_is_under_way(void **state)
{
    struct world *w = *state;
    begin(w, AUTO);
    run(w, "net", AUTO);
    struct runner r = claim(w, "net-1-plan");
    patch(w, DF_KIND_RUN, "net-1", "spec", "action", "'dance'");
    assert_int_equal(df_request_cancel_run(&w->s, "net-1", DF_VERBS_WRITE, "ann", NULL, NULL, NULL),
                     0);
    await_cancel(w, "net-1-plan");
    assert_null(get(w, DF_KIND_TASK_ACTION, "net-2-plan"));
    report(&r, "{'exitCode':1,'reason':'Canceled','message':'interrupted'}");
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Failed");
    assert_value(w, DF_KIND_RUN, "net-1", "status.reason", "InvalidDocument");
    (void)await_start(w, "net-2-plan");
}

/* ---- steps that nobody made, or that were made by half ---- */

static void a_step_that_was_made_by_half_is_made_anew(void **state)
{
    struct world *w = *state;
    make_executor(w, "net", "");
    run(w, "net", ASKING);
    apply(w, DF_KIND_TASK_ACTION, "net-1-plan",
          "{'action':'plan','engine':'forged','runRef':{'name':'net-1'}}");
    start(w);
    df_control_notify(w->s.control, "net-1-plan");
    (void)await_start(w, "net-1-plan");
    assert_value(w, DF_KIND_TASK_ACTION, "net-1-plan", "spec.source.url", "file:///nowhere");
}

static void a_step_that_no_run_waits_for_is_refused_and_the_run_to_ask_for_named(void **state)
{
    static const struct {
        const char *name, *action, *run;
    } cases[] = {{"one", "plan", "a Run with action: dry-run"},
                 {"two", "plan-destroy", "a Run with action: destroy"},
                 {"three", "apply", "a Run with action: provision"}};
    struct world *w = *state;
    start(w);
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_FREE char *spec = df_strf("{'action':'%s','runRef':{'name':'none'}}", cases[i].action);
        apply(w, DF_KIND_TASK_ACTION, cases[i].name, spec);
        await_condition(w, DF_KIND_TASK_ACTION, cases[i].name, "Failed", "True", "InvalidDocument");
        DF_JSON cJSON *task = get(w, DF_KIND_TASK_ACTION, cases[i].name);
        assert_non_null(strstr(df_task_message(task), cases[i].run));
    }
}

/* ---- notes ---- */

static void a_decision_and_a_cancel_that_nobody_signed_are_signed(void **state)
{
    struct world *w = *state;
    begin_planned(w);
    patch(w, DF_KIND_RUN, "net-1", "spec", "decision", "{'verdict':'discarded'}");
    await_value(w, DF_KIND_RUN, "net-1", "status.phase", "Discarded");
    assert_value(w, DF_KIND_RUN, "net-1", "spec.decision.by", "kubernetes");
    run(w, "net", ASKING);
    (void)await_start(w, "net-2-plan");
    patch(w, DF_KIND_RUN, "net-2", "spec", "cancel", "{}");
    await_value(w, DF_KIND_RUN, "net-2", "spec.cancel.by", "kubernetes");
}

/* ---- names ---- */

static void a_stamped_document_names_who_wrote_it(void **state)
{
    struct world *w = *state;
    begin_stamped(w);
    assert_value(w, DF_KIND_EXECUTOR, "net", "status.creator", "ann");
    assert_value(w, DF_KIND_RUN, "first", "spec.requestedBy", "eve");
    assert_value(w, DF_KIND_RUN, "first", "spec.requestedRole", "write");
    decide_as(w, "first", "write bob");
    await_value(w, DF_KIND_RUN, "first", "spec.decision.by", "bob");
    (void)await_start(w, "first-apply");
    assert_true(is_audited(w, "ann", "admin", "create", "done"));
    assert_true(is_audited(w, "eve", "write", "provision", "done"));
    assert_true(is_audited(w, "bob", "write", "approve", "done"));
}

static void a_stamp_counts_for_nothing_without_the_policy(void **state)
{
    struct world *w = *state;
    start(w);
    apply_as(w, DF_KIND_EXECUTOR, "net", "{" SOURCE "}", "admin ceo");
    await_value(w, DF_KIND_EXECUTOR, "net", "status.creator", "kubernetes");
}

static void a_role_is_that_of_the_stamp(void **state)
{
    struct world *w = *state;
    w->config.approval.skips = DF_ROLE_ADMIN;
    believe_stamps(w);
    start(w);
    apply_as(w, DF_KIND_EXECUTOR, "net", "{" SOURCE "}", "admin ann");
    apply_as(w, DF_KIND_RUN, "quick",
             "{'executorRef':{'name':'net'},'action':'provision','autoApprove':true}", "write eve");
    await_condition(w, DF_KIND_RUN, "quick", "Failed", "True", "InvalidDocument");
    DF_FREE char *message = value_of(w, DF_KIND_RUN, "quick", "status.message");
    assert_non_null(strstr(message, "needs the role admin"));
    assert_true(is_audited(w, "eve", "write", "create", "refused"));
}

/* With one worker the passes over an earlier run come before those over a later one. */
static void a_new_run_that_brings_its_decision_is_refused_and_was_approved_by_nobody(void **state)
{
    static const char *const names[] = {"first", "second", "third"};
    struct world *w = *state;
    w->config.workers = 1;
    believe_stamps(w);
    start(w);
    apply_as(w, DF_KIND_EXECUTOR, "net", "{" SOURCE "}", "admin ann");
    for (size_t i = 0; i < DF_ARRAY_SIZE(names); i++) {
        apply_as(w, DF_KIND_RUN, names[i],
                 "{'executorRef':{'name':'net'},'action':'provision',"
                 "'decision':{'verdict':'approved'}}",
                 "write eve");
        await_condition(w, DF_KIND_RUN, names[i], "Failed", "True", "InvalidDocument");
    }
    assert_true(is_audited(w, "eve", "write", "create", "refused"));
    assert_value(w, DF_KIND_RUN, "first", "spec.decision.at", "");
    DF_JSON cJSON *entries = NULL;
    const cJSON *e;
    assert_int_equal(df_store_audit_list(w->s.store, NULL, NULL, 100, &entries, NULL, NULL), 0);
    cJSON_ArrayForEach (e, entries)
        assert_string_not_equal(df_json_str(e, "action"), "approve");
}

static void a_requesters_own_approval_is_taken_away_and_somebody_elses_counts(void **state)
{
    struct world *w = *state;
    w->config.approval.separate = true;
    begin_stamped(w);
    decide_as(w, "first", "admin eve");
    await_message(w, "first", "the decision of eve is refused, SelfApproval");
    assert_value(w, DF_KIND_RUN, "first", "spec.decision", "");
    assert_value(w, DF_KIND_RUN, "first", "status.phase", "WaitingApproval");
    assert_true(is_audited(w, "eve", "admin", "approve", "refused"));
    decide_as(w, "first", "write bob");
    await_value(w, DF_KIND_RUN, "first", "spec.decision.by", "bob");
    (void)await_start(w, "first-apply");
    await_value(w, DF_KIND_RUN, "first", "status.approvedBy", "bob");
}

static void a_separate_approver_has_a_name(void **state)
{
    struct world *w = *state;
    w->config.approval.separate = true;
    begin_stamped(w);
    patch(w, DF_KIND_RUN, "first", "spec", "decision", "{'verdict':'approved'}");
    await_message(w, "first", "the approver is not known by name");
    assert_value(w, DF_KIND_RUN, "first", "spec.decision", "");
    assert_value(w, DF_KIND_RUN, "first", "status.phase", "WaitingApproval");
}

/* Each of several approvals makes room in the spec for the next. */
static void approvals_by_kubectl_are_counted_until_there_are_enough(void **state)
{
    struct world *w = *state;
    w->config.approval.required = 2;
    begin_stamped(w);
    decide_as(w, "first", "write ann");
    await_message(w, "first", "1 of 2 approvals: approved by ann");
    assert_value(w, DF_KIND_RUN, "first", "spec.decision", "");
    decide_as(w, "first", "write ann");
    await_value(w, DF_KIND_RUN, "first", "spec.decision", "");
    assert_value(w, DF_KIND_RUN, "first", "status.phase", "WaitingApproval");
    decide_as(w, "first", "write bob");
    (void)await_start(w, "first-apply");
    await_value(w, DF_KIND_RUN, "first", "status.approvedBy", "bob");
    DF_JSON cJSON *doc = get(w, DF_KIND_RUN, "first");
    assert_int_equal(df_approval_count(doc), 2);
}

/* The stamp has a name and no groups. */
static void an_approver_by_kubectl_is_named(void **state)
{
    struct world *w = *state;
    begin_stamped(w);
    patch(w, DF_KIND_EXECUTOR, "net", "spec", "approvers",
          "{'users':['bob'],'groups':['ann','net-lead']}");
    await_value(w, DF_KIND_EXECUTOR, "net", "status.observedGeneration", "2");
    decide_as(w, "first", "admin ann");
    await_message(w, "first", "the decision of ann is refused, NotApprover");
    assert_value(w, DF_KIND_RUN, "first", "status.phase", "WaitingApproval");
    decide_as(w, "first", "write bob");
    (void)await_start(w, "first-apply");
    await_value(w, DF_KIND_RUN, "first", "status.approvedBy", "bob");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_applied_executor_is_taken_in_as_one_that_was_sent),
        TEST(an_executor_that_is_no_valid_document_is_refused_until_it_is_mended),
        TEST(an_applied_run_keeps_its_name_and_gets_number_and_snapshot),
        TEST(a_run_waits_for_the_executor_that_is_applied_behind_it),
        TEST(a_run_is_woken_by_the_executor_that_it_waits_for_and_by_no_other),
        TEST(of_too_many_runs_that_wait_the_newest_are_woken),
        TEST(a_run_that_cannot_be_is_refused_with_the_reason),
        TEST(an_applied_run_is_refused_while_an_errored_state_is_kept),
        TEST(an_errored_state_that_no_executor_names_is_named_within_the_hour),
        TEST(who_writes_a_resource_chooses_no_pod),
        TEST(a_run_brings_no_snapshot_of_its_own),
        TEST(the_service_passes_over_names_that_people_took),
        TEST(of_an_applied_and_a_sent_executor_one_gets_the_storage),
        TEST(a_run_of_an_unknown_action_is_not_executed_and_frees_the_queue),
        TEST(a_run_of_an_unknown_action_ends_after_its_step_that_is_under_way),
        TEST(a_step_that_was_made_by_half_is_made_anew),
        TEST(a_step_that_no_run_waits_for_is_refused_and_the_run_to_ask_for_named),
        TEST(a_decision_and_a_cancel_that_nobody_signed_are_signed),
        TEST(a_stamped_document_names_who_wrote_it),
        TEST(a_stamp_counts_for_nothing_without_the_policy),
        TEST(a_role_is_that_of_the_stamp),
        TEST(a_new_run_that_brings_its_decision_is_refused_and_was_approved_by_nobody),
        TEST(a_requesters_own_approval_is_taken_away_and_somebody_elses_counts),
        TEST(a_separate_approver_has_a_name),
        TEST(approvals_by_kubectl_are_counted_until_there_are_enough),
        TEST(an_approver_by_kubectl_is_named),
    };
    return cmocka_run_group_tests_name("applied", tests, NULL, NULL);
}
