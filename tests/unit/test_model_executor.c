#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/buf.h"
#include "spawner/model/model.h"

static const char *const states[] = {"provision", "provisioned", "destroy", "destroyed"};
static const char *const statuses[] = {"ready", "queued",  "in_progress", "done",
                                       "error", "pending", "unknown"};

static cJSON *executor_with(const char *state, const char *status, bool may_hold_resources)
{
    cJSON *j = cJSON_CreateObject(), *s = df_json_object_at(j, "status");
    assert_int_equal(df_json_set_str(df_json_object_at(j, "metadata"), "name", "net", NULL), 0);
    assert_int_equal(df_json_set_str(s, "state", state, NULL), 0);
    assert_int_equal(df_json_set_str(s, "status", status, NULL), 0);
    assert_int_equal(df_json_add_bool(s, "mayHoldResources", may_hold_resources, NULL), 0);
    return j;
}

/* ---- what is offered: each state with each verbs, as docs/objects.md has it ---- */

static const struct {
    const char *state, *status;
    bool holds;
    const char *write, *admin;
} offers[] = {
    {"provision", "ready", false, "execute dryrun delete", "execute dryrun edit delete"},
    {"provision", "ready", true, "execute dryrun", "execute dryrun edit destroy"},
    {"provision", "error", true, "execute dryrun", "execute dryrun edit destroy"},
    {"provision", "error", false, "execute dryrun delete", "execute dryrun edit destroy delete"},
    {"provisioned", "done", true, "execute dryrun", "execute dryrun destroy edit"},
    {"provisioned", "done", false, "execute dryrun delete", "execute dryrun destroy edit delete"},
    {"provisioned", "ready", true, "execute dryrun", "execute dryrun destroy edit"},
    {"provisioned", "error", true, "execute dryrun", "execute dryrun destroy edit"},
    {"destroy", "ready", true, "recreate dryrun", "recreate dryrun destroy edit"},
    {"destroy", "error", true, "recreate dryrun", "recreate dryrun destroy edit"},
    {"destroyed", "done", false, "recreate dryrun", "recreate dryrun delete"},
    {"provision", "queued", false, "cancel", "cancel"},
    {"provisioned", "queued", true, "cancel", "cancel"},
    {"provision", "in_progress", false, "cancel", "cancel"},
    {"provisioned", "in_progress", true, "cancel", "cancel"},
    {"destroy", "in_progress", true, "cancel", "cancel"},
    {"provisioned", "pending", true, "cancel", "cancel"},
    {"destroy", "pending", true, "cancel", "cancel"},
};

static void assert_offers(const cJSON *executor, df_verbs verbs, const char *expected)
{
    const char *words[9];
    DF_BUF struct df_buf b = DF_BUF_INIT(200);
    df_executor_actions(executor, verbs, words);
    for (size_t i = 0; words[i]; i++)
        assert_int_equal(df_buf_addf(&b, "%s%s", i ? " " : "", words[i]), 0);
    assert_string_equal(df_buf_str(&b), expected);
}

static void every_role_is_offered_what_the_contract_says(void **state)
{
    (void)state;
    for (size_t i = 0; i < DF_ARRAY_SIZE(offers); i++) {
        DF_JSON cJSON *e = executor_with(offers[i].state, offers[i].status, offers[i].holds);
        assert_offers(e, 0, "");
        assert_offers(e, DF_VERBS_READ, "");
        assert_offers(e, DF_VERBS_WRITE, offers[i].write);
        assert_offers(e, DF_VERBS_ADMIN, offers[i].admin);
    }
}

static void an_executor_without_status_is_new(void **state)
{
    (void)state;
    DF_JSON cJSON *e = cJSON_CreateObject();
    assert_offers(e, DF_VERBS_ADMIN, "execute dryrun edit delete");
}

/* Is the word of an offer accepted by the function that stands behind it? */
static bool is_accepted(const char *word, const cJSON *e, df_verbs verbs, struct df_err *err)
{
    if (df_streq(word, "execute") || df_streq(word, "recreate"))
        return df_executor_check_action(e, DF_ACTION_PROVISION, verbs, err) == 0;
    if (df_streq(word, "dryrun"))
        return df_executor_check_action(e, DF_ACTION_DRY_RUN, verbs, err) == 0;
    if (df_streq(word, "destroy"))
        return df_executor_check_action(e, DF_ACTION_DESTROY, verbs, err) == 0;
    if (df_streq(word, "edit"))
        return df_executor_check_edit(e, verbs, err) == 0;
    if (df_streq(word, "delete"))
        return df_executor_check_delete(e, verbs, err) == 0;
    /* There is a run to cancel whenever the executor is busy. */
    return df_streq(word, "cancel");
}

static bool is_offered(const char *word, const char *const *words)
{
    for (; *words; words++)
        if (df_streq(*words, word))
            return true;
    return false;
}

/* Every state x status x role: all that is offered is accepted, and an executor at rest accepts no
 * more than it offers. */
static void what_is_offered_is_accepted_and_the_rest_is_refused_with_a_reason(void **state)
{
    (void)state;
    static const char *const all[] = {"execute", "dryrun", "destroy", "edit", "delete"};
    static const df_verbs sets[] = {0,
                                    DF_VERBS_READ,
                                    DF_VERBS_WRITE,
                                    DF_VERBS_ADMIN,
                                    DF_VERB_VIEW | DF_VERB_PLAN,
                                    DF_VERB_VIEW | DF_VERB_APPLY,
                                    DF_VERB_VIEW | DF_VERB_DESTROY,
                                    DF_VERB_EDIT | DF_VERB_CANCEL};
    for (size_t i = 0; i < 4 * 7 * 2 * DF_ARRAY_SIZE(sets); i++) {
        const char *status = statuses[i / 4 % 7];
        df_verbs verbs = sets[i / 56];
        DF_JSON cJSON *e = executor_with(states[i % 4], status, i / 28 % 2);
        bool busy = df_streq(status, "queued") || df_streq(status, "in_progress") ||
                    df_streq(status, "pending");
        const char *words[9];
        df_executor_actions(e, verbs, words);
        for (size_t w = 0; words[w]; w++)
            assert_true(is_accepted(words[w], e, verbs, NULL));
        for (size_t w = 0; w < DF_ARRAY_SIZE(all); w++) {
            struct df_err err = {0};
            bool accepted = is_accepted(all[w], e, verbs, &err);
            bool offered = is_offered(all[w], words) ||
                           (df_streq(all[w], "execute") && is_offered("recreate", words));
            assert_true(accepted == offered || (busy && accepted));
            if (!accepted)
                assert_true(err.cls == DF_ERR_DENIED || df_streq(err.reason, "WrongState"));
        }
    }
}

static void a_busy_executor_takes_runs_into_its_queue(void **state)
{
    (void)state;
    static const struct {
        const char *state, *status;
        enum df_action action;
        bool accepted;
    } cases[] = {
        {"provision", "queued", DF_ACTION_PROVISION, true},
        {"provision", "in_progress", DF_ACTION_DRY_RUN, true},
        /* behind the run that provisions it, there will be something to destroy */
        {"provision", "in_progress", DF_ACTION_DESTROY, true},
        {"provisioned", "pending", DF_ACTION_DESTROY, true},
        {"destroy", "in_progress", DF_ACTION_DESTROY, false},
        {"destroy", "pending", DF_ACTION_DESTROY, false},
        {"destroy", "in_progress", DF_ACTION_PROVISION, true},
        {"destroyed", "queued", DF_ACTION_DESTROY, true},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_JSON cJSON *e = executor_with(cases[i].state, cases[i].status, true);
        struct df_err err = {0};
        int result = df_executor_check_action(e, cases[i].action, DF_VERBS_ADMIN, &err);
        assert_int_equal(result, cases[i].accepted ? 0 : -1);
        assert_int_equal(df_executor_check_edit(e, DF_VERBS_ADMIN, &err), -1);
        assert_int_equal(df_executor_check_delete(e, DF_VERBS_ADMIN, &err), -1);
    }
}

static void refusals_name_the_way_out(void **state)
{
    (void)state;
    struct df_err err = {0};
    DF_JSON cJSON *fresh = executor_with("provision", "ready", false);
    DF_JSON cJSON *live = executor_with("provisioned", "done", true);
    assert_int_equal(df_executor_check_action(fresh, DF_ACTION_DESTROY, DF_VERBS_WRITE, &err), -1);
    assert_int_equal(err.cls, DF_ERR_DENIED);
    assert_string_equal(err.message,
                        "destroy needs the role admin; yours is write: on executor net "
                        "you may not destroy");
    assert_int_equal(df_executor_check_action(fresh, DF_ACTION_DESTROY, DF_VERBS_ADMIN, &err), -1);
    assert_int_equal(err.cls, DF_ERR_CONFLICT);
    assert_string_equal(err.message,
                        "executor net is provision/ready: nothing was provisioned; delete it "
                        "instead");
    assert_int_equal(df_executor_check_delete(live, DF_VERBS_ADMIN, &err), -1);
    assert_non_null(strstr(err.message, "destroy it first"));
}

/* ---- what runs do to it ---- */

struct pass {
    const char *phase;
    bool applying; /* the run has its apply step */
    const char *state, *status;
};

struct story {
    const char *what, *action;
    const char *state, *status; /* at the beginning */
    bool holds;
    struct pass passes[6];
    bool holds_after;
};

static const struct story stories[] = {
    {"a first provision",
     "provision",
     "provision",
     "ready",
     false,
     {{"Pending", false, "provision", "queued"},
      {"Running", false, "provision", "in_progress"},
      {"WaitingApproval", false, "provision", "pending"},
      {"Running", true, "provision", "in_progress"},
      {"Succeeded", true, "provisioned", "done"}},
     true},
    {"a first provision that was approved beforehand",
     "provision",
     "provision",
     "ready",
     false,
     {{"Running", false, "provision", "in_progress"},
      {"Running", true, "provision", "in_progress"},
      {"Succeeded", true, "provisioned", "done"}},
     true},
    {"a provision without changes",
     "provision",
     "provisioned",
     "done",
     true,
     {{"Pending", false, "provisioned", "queued"},
      {"Running", false, "provisioned", "in_progress"},
      {"Succeeded", false, "provisioned", "done"}},
     true},
    {"a first plan that failed",
     "provision",
     "provision",
     "ready",
     false,
     {{"Running", false, "provision", "in_progress"}, {"Failed", false, "provision", "error"}},
     false},
    {"a first apply that failed",
     "provision",
     "provision",
     "ready",
     false,
     {{"Running", true, "provision", "in_progress"}, {"Failed", true, "provision", "error"}},
     true},
    {"an apply that was canceled",
     "provision",
     "provisioned",
     "done",
     true,
     {{"Running", true, "provisioned", "in_progress"}, {"Canceled", true, "provisioned", "error"}},
     true},
    {"a plan that was discarded",
     "provision",
     "provision",
     "ready",
     false,
     {{"Running", false, "provision", "in_progress"},
      {"WaitingApproval", false, "provision", "pending"},
      {"Discarded", false, "provision", "ready"}},
     false},
    {"a plan that was canceled",
     "provision",
     "provisioned",
     "error",
     true,
     {{"Running", false, "provisioned", "in_progress"},
      {"Canceled", false, "provisioned", "error"}},
     true},
    {"a destroy",
     "destroy",
     "provisioned",
     "done",
     true,
     {{"Pending", false, "provisioned", "queued"},
      {"Running", false, "destroy", "in_progress"},
      {"WaitingApproval", false, "destroy", "pending"},
      {"Running", true, "destroy", "in_progress"},
      {"Succeeded", true, "destroyed", "done"}},
     false},
    {"a destroy with nothing to do",
     "destroy",
     "provision",
     "error",
     true,
     {{"Running", false, "destroy", "in_progress"}, {"Succeeded", false, "destroyed", "done"}},
     false},
    {"a destroy that was discarded",
     "destroy",
     "provisioned",
     "done",
     true,
     {{"Running", false, "destroy", "in_progress"},
      {"WaitingApproval", false, "destroy", "pending"},
      {"Discarded", false, "provisioned", "done"}},
     true},
    {"a destroy whose plan failed",
     "destroy",
     "provisioned",
     "done",
     true,
     {{"Running", false, "destroy", "in_progress"}, {"Failed", false, "provisioned", "error"}},
     true},
    {"a destroy that failed half-way",
     "destroy",
     "provisioned",
     "done",
     true,
     {{"Running", true, "destroy", "in_progress"}, {"Failed", true, "destroy", "error"}},
     true},
    {"that destroy again",
     "destroy",
     "destroy",
     "error",
     true,
     {{"Running", true, "destroy", "in_progress"}, {"Succeeded", true, "destroyed", "done"}},
     false},
    {"or made again instead",
     "provision",
     "destroy",
     "error",
     true,
     {{"Pending", false, "destroy", "queued"},
      {"Running", false, "provisioned", "in_progress"},
      {"Succeeded", true, "provisioned", "done"}},
     true},
    {"made again after it was destroyed",
     "provision",
     "destroyed",
     "done",
     false,
     {{"Pending", false, "destroyed", "queued"},
      {"Running", false, "provision", "in_progress"},
      {"Succeeded", true, "provisioned", "done"}},
     true},
    {"made again, but the plan failed",
     "provision",
     "destroyed",
     "done",
     false,
     {{"Running", false, "provision", "in_progress"}, {"Failed", false, "destroyed", "error"}},
     false},
    {"canceled before its turn",
     "provision",
     "provisioned",
     "done",
     true,
     {{"Pending", false, "provisioned", "queued"}, {"Canceled", false, "provisioned", "done"}},
     true},
    {"a dry-run",
     "dry-run",
     "provisioned",
     "error",
     true,
     {{"Pending", false, "provisioned", "error"},
      {"Running", false, "provisioned", "error"},
      {"Succeeded", false, "provisioned", "error"}},
     true},
    {"a dry-run that failed",
     "dry-run",
     "provision",
     "ready",
     false,
     {{"Running", false, "provision", "ready"}, {"Failed", false, "provision", "ready"}},
     false},
};

static cJSON *run_in(const char *name, const char *action, const struct pass *p)
{
    cJSON *run = cJSON_CreateObject(), *status = df_json_object_at(run, "status");
    (void)df_json_set_str(df_json_object_at(run, "metadata"), "name", name, NULL);
    (void)df_json_set_str(df_json_object_at(run, "spec"), "action", action, NULL);
    (void)df_json_set_str(status, "phase", p->phase, NULL);
    cJSON *steps = df_json_array_at(status, "steps");
    for (int i = 0; i < (strcmp(p->phase, "Pending") != 0) + p->applying; i++) {
        cJSON *step = cJSON_CreateObject();
        (void)df_json_append(steps, step, NULL);
        (void)df_json_add_str(step, "name", i ? "apply" : "plan", NULL);
    }
    return run;
}

static void follow_twice(cJSON *executor, const cJSON *run)
{
    struct df_err err = {0};
    assert_int_equal(df_executor_follow_run(executor, run, false, &err), 0);
    DF_JSON cJSON *once = cJSON_Duplicate(executor, true);
    assert_int_equal(df_executor_follow_run(executor, run, false, &err), 0);
    assert_true(df_json_equal(once, executor));
}

/* An apply after which the state has no resource: what is known of the executor then, by what was
 * known before. */
static void an_empty_state_counts_only_if_nothing_was_left_before(void **state)
{
    (void)state;
    static const struct pass running = {"Running", true, "", ""},
                             applied = {"Succeeded", true, "", ""},
                             failed = {"Failed", true, "", ""};
    static const struct {
        bool held_before;
        const struct pass *end;
        bool holds_after;
    } rows[] = {{false, &applied, false}, {true, &applied, true}, {false, &failed, true}};
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        struct df_err err = {0};
        DF_JSON cJSON *e = executor_with("provision", "ready", rows[i].held_before);
        DF_JSON cJSON *run = run_in("net-1", "provision", &running);
        DF_JSON cJSON *ended = run_in("net-1", "provision", rows[i].end);
        assert_int_equal(df_executor_follow_run(e, run, false, &err), 0);
        assert_int_equal(df_executor_expect_resources(e, run, &err), 0);
        assert_true(df_json_bool(e, "status.mayHoldResources", false));
        assert_int_equal(df_executor_follow_run(e, ended, true, &err), 0);
        assert_int_equal(df_json_bool(e, "status.mayHoldResources", false), rows[i].holds_after);
        assert_int_equal(df_executor_check_delete(e, DF_VERBS_WRITE, &err),
                         rows[i].holds_after ? -1 : 0);
    }
}

static void a_run_moves_its_executor_as_the_stories_tell(void **state)
{
    (void)state;
    for (size_t i = 0; i < DF_ARRAY_SIZE(stories); i++) {
        const struct story *s = &stories[i];
        DF_JSON cJSON *e = executor_with(s->state, s->status, s->holds);
        for (const struct pass *p = s->passes; p->phase; p++) {
            DF_JSON cJSON *run = run_in("net-1", s->action, p);
            follow_twice(e, run);
            if (!df_streq(df_json_str(e, "status.state"), p->state) ||
                !df_streq(df_json_str(e, "status.status"), p->status))
                fail_msg("%s, %s: %s/%s", s->what, p->phase, df_json_str(e, "status.state"),
                         df_json_str(e, "status.status"));
            assert_string_equal(df_json_str(e, "status.lastRun.phase"), p->phase);
        }
        if (df_json_bool(e, "status.mayHoldResources", false) != s->holds_after)
            fail_msg("%s: mayHoldResources", s->what);
        assert_null(df_json_at(e, "status.activeRun"));
        assert_null(df_json_at(e, "status.before"));
    }
}

/* The edit was mended while a run was on its way that was canceled then. */
static void an_executor_is_not_called_refused_again_after_a_run_that_changed_nothing(void **state)
{
    static const struct pass waits = {"Pending", false, "", ""}, ends = {"Canceled", false, "", ""};
    (void)state;
    DF_JSON cJSON *e = executor_with("provision", "refused", false);
    DF_JSON cJSON *run = run_in("net-1", "provision", &waits);
    DF_JSON cJSON *canceled = run_in("net-1", "provision", &ends);
    follow_twice(e, run);
    assert_string_equal(df_json_str(e, "status.status"), "queued");
    follow_twice(e, canceled);
    assert_string_equal(df_json_str(e, "status.status"), "ready");
}

static void a_run_that_waits_behind_another_changes_nothing(void **state)
{
    (void)state;
    DF_JSON cJSON *e = executor_with("provisioned", "done", true);
    static const struct pass running = {.phase = "Running"}, ended = {.phase = "Canceled"};
    static const struct pass done = {.phase = "Succeeded", .applying = true};
    DF_JSON cJSON *first = run_in("net-1", "provision", &running);
    DF_JSON cJSON *second = run_in("net-2", "destroy", &ended);
    cJSON_DeleteItemFromObjectCaseSensitive(df_json_object_at(second, "status"), "steps");
    follow_twice(e, first);
    follow_twice(e, second);
    assert_string_equal(df_json_str(e, "status.state"), "provisioned");
    assert_string_equal(df_json_str(e, "status.status"), "in_progress");
    assert_string_equal(df_json_str(e, "status.lastRun.name"), "net-1");
    DF_JSON cJSON *first_done = run_in("net-1", "provision", &done);
    follow_twice(e, first_done);
    assert_string_equal(df_json_str(e, "status.status"), "done");
}

static void an_end_whose_beginning_was_not_seen_counts_all_the_same(void **state)
{
    (void)state;
    DF_JSON cJSON *e = executor_with("provision", "ready", false);
    static const struct pass done = {.phase = "Succeeded", .applying = true};
    DF_JSON cJSON *run = run_in("net-1", "provision", &done);
    follow_twice(e, run);
    assert_string_equal(df_json_str(e, "status.state"), "provisioned");
    assert_string_equal(df_json_str(e, "status.status"), "done");
}

static void
after_a_run_of_an_unknown_action_the_executor_is_free_and_its_status_unknown(void **state)
{
    (void)state;
    static const struct pass pending = {.phase = "Pending"}, running = {.phase = "Running"};
    static const struct pass ended = {.phase = "Failed"};
    for (int began = 0; began < 2; began++) {
        DF_JSON cJSON *e = executor_with("provision", "ready", false);
        DF_JSON cJSON *begun = run_in("net-1", "provision", began ? &running : &pending);
        DF_JSON cJSON *unknown = run_in("net-1", "dance", &ended);
        if (!began)
            cJSON_DeleteItemFromObjectCaseSensitive(df_json_object_at(unknown, "status"), "steps");
        follow_twice(e, begun);
        follow_twice(e, unknown);
        assert_string_equal(df_json_str(e, "status.state"), "provision");
        /* What its steps did is not known. */
        assert_string_equal(df_json_str(e, "status.status"), began ? "unknown" : "error");
        assert_null(df_json_at(e, "status.activeRun"));
        assert_int_equal(df_json_bool(e, "status.mayHoldResources", false), began);
        static const struct pass done = {.phase = "Succeeded", .applying = true};
        DF_JSON cJSON *next = run_in("net-2", "provision", &done);
        follow_twice(e, next);
        assert_string_equal(df_json_str(e, "status.status"), "done");
    }
}

static void every_story_leaves_an_executor_at_rest(void **state)
{
    (void)state;
    static const char *const finals[] = {"Succeeded", "Failed", "Canceled", "Discarded"};
    static const char *const acts[] = {"provision", "destroy"};
    for (size_t i = 0; i < 4 * 7 * 2 * 4 * 2; i++) {
        const char *word = statuses[i / 4 % 7];
        DF_JSON cJSON *e = executor_with(states[i % 4], word, true);
        struct pass running = {.phase = "Running", .applying = i / 224};
        struct pass end = {.phase = finals[i / 56 % 4], .applying = i / 224};
        DF_JSON cJSON *begun = run_in("net-1", acts[i / 28 % 2], &running);
        DF_JSON cJSON *ended = run_in("net-1", acts[i / 28 % 2], &end);
        if (df_streq(word, "queued") || df_streq(word, "in_progress") || df_streq(word, "pending"))
            continue;
        follow_twice(e, begun);
        follow_twice(e, ended);
        const char *now = df_json_str(e, "status.status");
        assert_false(df_streq(now, "in_progress") || df_streq(now, "queued") ||
                     df_streq(now, "pending"));
        const char *words[9];
        df_executor_actions(e, DF_VERBS_ADMIN, words);
        assert_non_null(words[0]);
    }
}

static void an_adopted_executor_holds_resources_whatever_it_was(void **state)
{
    (void)state;
    static const struct {
        const char *state, *status, *then_state, *then_status;
    } cases[] = {{"provision", "ready", "provisioned", "done"},
                 {"provision", "error", "provisioned", "done"},
                 {"destroyed", "done", "provisioned", "done"},
                 {"provisioned", "error", "provisioned", "error"},
                 {"destroy", "error", "destroy", "error"}};
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        struct df_err err = {0};
        DF_JSON cJSON *e = executor_with(cases[i].state, cases[i].status, false);
        assert_int_equal(df_executor_check_push(e, &err), 0);
        assert_int_equal(df_executor_adopt(e, &err), 0);
        assert_string_equal(df_json_str(e, "status.state"), cases[i].then_state);
        assert_string_equal(df_json_str(e, "status.status"), cases[i].then_status);
        assert_true(df_json_bool(e, "status.mayHoldResources", false));
        assert_int_equal(df_executor_check_delete(e, DF_VERBS_ADMIN, &err), -1);
        assert_int_equal(df_executor_check_action(e, DF_ACTION_DESTROY, DF_VERBS_ADMIN, &err), 0);
    }
}

static void an_executor_that_is_adopted_during_a_run_is_provisioned_when_the_run_leaves_it(void **s)
{
    (void)s;
    struct df_err err = {0};
    DF_JSON cJSON *e = executor_with("provision", "ready", false);
    static const struct pass running = {.phase = "Running"}, discarded = {.phase = "Discarded"};
    DF_JSON cJSON *begun = run_in("net-1", "provision", &running);
    DF_JSON cJSON *ended = run_in("net-1", "provision", &discarded);
    follow_twice(e, begun);
    assert_int_equal(df_executor_check_push(e, &err), -1);
    assert_int_equal(df_executor_adopt(e, &err), 0);
    assert_string_equal(df_json_str(e, "status.status"), "in_progress");
    follow_twice(e, ended);
    assert_string_equal(df_json_str(e, "status.state"), "provisioned");
    assert_true(df_json_bool(e, "status.mayHoldResources", false));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_role_is_offered_what_the_contract_says),
        cmocka_unit_test(an_executor_without_status_is_new),
        cmocka_unit_test(what_is_offered_is_accepted_and_the_rest_is_refused_with_a_reason),
        cmocka_unit_test(a_busy_executor_takes_runs_into_its_queue),
        cmocka_unit_test(refusals_name_the_way_out),
        cmocka_unit_test(a_run_moves_its_executor_as_the_stories_tell),
        cmocka_unit_test(an_empty_state_counts_only_if_nothing_was_left_before),
        cmocka_unit_test(an_executor_is_not_called_refused_again_after_a_run_that_changed_nothing),
        cmocka_unit_test(a_run_that_waits_behind_another_changes_nothing),
        cmocka_unit_test(an_end_whose_beginning_was_not_seen_counts_all_the_same),
        cmocka_unit_test(
            after_a_run_of_an_unknown_action_the_executor_is_free_and_its_status_unknown),
        cmocka_unit_test(every_story_leaves_an_executor_at_rest),
        cmocka_unit_test(an_adopted_executor_holds_resources_whatever_it_was),
        cmocka_unit_test(
            an_executor_that_is_adopted_during_a_run_is_provisioned_when_the_run_leaves_it),
    };
    return cmocka_run_group_tests_name("model_executor", tests, NULL, NULL);
}
