/* What a run or step waits for: steps/waits.h writes it into the document, and model/task.c ends
 * it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/blob/backend.h"
#include "common/blob/health.h"
#include "spawner/model/waiting.h"
#include "spawner/steps/waits.h"
#include "tests/unit/step_world.h"

#define LONG_US INT64_C(60000000)
#define STEP "net-1-plan"

static const char one, other; /* things that fail */

static struct df_wait_case of(const void *what)
{
    return (struct df_wait_case){.kind = DF_KIND_TASK_ACTION, .name = STEP, .what = what};
}

static void fail_since(struct world *w, const struct df_wait_case *c, int64_t ago_us,
                       enum df_err_class cls, const char *reason)
{
    struct df_err why = {0};
    (void)df_fail_reason(&why, cls, reason, "the bucket is away");
    df_wait_failed(&w->s, c, df_real_us() - ago_us, &why);
}

static void fails(struct world *w, const void *what)
{
    const struct df_wait_case c = of(what);
    fail_since(w, &c, LONG_US, DF_ERR_RETRY, "SecretSourceUnavailable");
}

static void passes(struct world *w, const void *what)
{
    const struct df_wait_case c = of(what);
    df_wait_passed(&w->s, &c);
}

static bool is_told(struct world *w)
{
    DF_JSON cJSON *task = get(w, DF_KIND_TASK_ACTION, STEP);
    return df_waiting_of(task) != NULL;
}

static void a_wait_is_told_with_its_cause_and_its_beginning_by_step_and_run(void **state)
{
    struct world *w = *state;
    (void)await_start(w, STEP);
    int64_t before_us = df_real_us() - LONG_US;
    fails(w, &one);
    DF_JSON cJSON *task = get(w, DF_KIND_TASK_ACTION, STEP);
    assert_string_equal(df_json_str(task, "status.waiting.message"), "the bucket is away");
    assert_string_equal(df_json_str(task, "status.waiting.reason"), "SecretSourceUnavailable");
    assert_in_range(df_waiting_since(task), before_us, before_us + LONG_US);
    await_value(w, DF_KIND_RUN, "net-1", "status.waiting.message", "the bucket is away");
    passes(w, &one);
    assert_false(is_told(w));
    await_value(w, DF_KIND_RUN, "net-1", "status.message", "");
}

static void a_wait_begins_with_its_first_failure(void **state)
{
    struct world *w = *state;
    const struct df_wait_case c = of(&one);
    (void)await_start(w, STEP);
    fail_since(w, &c, 0, DF_ERR_RETRY, "");
    assert_false(is_told(w)); /* it may be over in a moment */
    fail_since(w, &c, LONG_US, DF_ERR_RETRY, "");
    assert_false(is_told(w));
    passes(w, &one);
    fail_since(w, &c, LONG_US, DF_ERR_RETRY, "");
    assert_true(is_told(w));
}

static void a_refusal_and_a_race_are_no_wait(void **state)
{
    struct world *w = *state;
    const struct df_wait_case c = of(&one);
    (void)await_start(w, STEP);
    fail_since(w, &c, LONG_US, DF_ERR_DENIED, "");
    fail_since(w, &c, LONG_US, DF_ERR_USER, "");
    fail_since(w, &c, LONG_US, DF_ERR_CONFLICT, "StepOver");
    fail_since(w, &c, LONG_US, DF_ERR_RETRY, "Conflict");
    assert_false(is_told(w));
    fail_since(w, &c, LONG_US, DF_ERR_SYSTEM, "");
    assert_true(is_told(w));
}

static void a_wait_is_over_when_nothing_fails_any_more(void **state)
{
    struct world *w = *state;
    (void)await_start(w, STEP);
    fails(w, &one);
    fails(w, &other);
    passes(w, &one);
    assert_true(is_told(w));
    passes(w, &other);
    assert_false(is_told(w));
}

static void a_log_that_still_fails_does_not_keep_the_reason_of_a_wait_that_is_over(void **state)
{
    struct world *w = *state;
    struct df_wait_case log = of(&other);
    (void)await_start(w, STEP);
    log.is_optional = true;
    fails(w, &one);
    fail_since(w, &log, LONG_US, DF_ERR_RETRY, "");
    passes(w, &one);
    fail_since(w, &log, LONG_US, DF_ERR_RETRY, "");
    assert_true(is_told(w));
    assert_value(w, DF_KIND_TASK_ACTION, STEP, "status.waiting.reason", "");
}

static void what_can_end_the_step_replaces_what_cannot(void **state)
{
    struct world *w = *state;
    struct df_wait_case log = of(&other);
    (void)await_start(w, STEP);
    log.is_optional = true;
    fail_since(w, &log, LONG_US, DF_ERR_RETRY, "SecretSourceUnavailable");
    DF_JSON cJSON *before = get(w, DF_KIND_TASK_ACTION, STEP);
    assert_non_null(df_waiting_of(before));
    assert_null(df_json_str(before, "status.waiting.reason"));
    fails(w, &one);
    assert_value(w, DF_KIND_TASK_ACTION, STEP, "status.waiting.reason", "SecretSourceUnavailable");
}

static void a_wait_that_was_told_before_a_restart_ends_with_the_next_success(void **state)
{
    struct world *w = *state;
    (void)await_start(w, STEP);
    fails(w, &one);
    df_memory_forget(&w->s.memory, DF_KIND_TASK_ACTION, STEP); /* as a new process begins */
    DF_JSON cJSON *task = get(w, DF_KIND_TASK_ACTION, STEP);
    df_memory_adopt_wait(&w->s.memory, task);
    passes(w, &other);
    assert_false(is_told(w));
}

static void an_ended_step_waits_for_nothing(void **state)
{
    struct world *w = *state;
    struct runner r = claim(w, STEP);
    fails(w, &one);
    assert_true(is_told(w));
    assert_int_equal(try_result(&r, "{'exitCode':0,'reason':'NoChanges','hasChanges':false}", NULL),
                     0);
    assert_false(is_told(w));
    fails(w, &one);
    assert_false(is_told(w));
}

/* Filled with waits of a step that no pass of the control loop will ever end: those of one that
 * stands in the store go when its time is over, and on a slow machine that is before the list is
 * full. */
static void only_so_many_things_are_watched(void **state)
{
    struct world *w = *state;
    const struct df_wait_case c = of(&one);
    DF_JSON cJSON *elsewhere =
        json("{'kind':'TaskAction','metadata':{'name':'elsewhere','uid':'u'},'status':{'waiting':"
             "{'since':'2026-01-01T00:00:00Z','message':'m'}}}");
    (void)await_start(w, STEP);
    for (size_t i = 0; i < DF_LIMIT_WAITS + 2; i++)
        df_memory_adopt_wait(&w->s.memory, elsewhere);
    assert_int_equal(memories(w, DF_MEMORY_WAIT), DF_LIMIT_WAITS);
    fail_since(w, &c, 0, DF_ERR_RETRY, "");
    assert_false(df_memory_has_wait(&w->s.memory, &c));
    df_memory_forget(&w->s.memory, DF_KIND_TASK_ACTION, "elsewhere");
    assert_int_equal(memories(w, DF_MEMORY_WAIT), 0);
    fail_since(w, &c, 0, DF_ERR_RETRY, "");
    assert_true(df_memory_has_wait(&w->s.memory, &c));
}

/* ---- the end names the cause ---- */

static void an_end_that_blames_the_lock_names_what_the_step_waited_for(void **state)
{
    static const struct {
        const char *reason, *named;
    } cases[] = {{"StateUnavailable", "SecretSourceUnavailable"},
                 {"StateRefused", "SecretSourceUnavailable"},
                 {"RunnerFailed", "SecretSourceUnavailable"},
                 {"Canceled", NULL},
                 {"PlanFailed", NULL},
                 {"StateLocked", NULL}};
    struct world *w = *state;
    (void)await_start(w, STEP);
    fails(w, &one);
    DF_JSON cJSON *task = get(w, DF_KIND_TASK_ACTION, STEP);
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_JSON cJSON *result = cJSON_CreateObject(), *explained = NULL;
        assert_int_equal(df_json_add_str(result, "reason", cases[i].reason, NULL), 0);
        assert_int_equal(df_json_add_str(result, "message", "Error acquiring the lock", NULL), 0);
        assert_int_equal(df_wait_explain(&w->s, task, result, &explained, NULL), 0);
        const char *reason = df_json_str(explained, "reason");
        if (explained ? !df_streq(reason, cases[i].named) : cases[i].named != NULL)
            fail_msg("%s: %s", cases[i].reason, reason ? reason : "as it is");
        if (explained)
            assert_non_null(strstr(df_json_str(explained, "message"), "the bucket is away"));
    }
}

static void tell_nobody(void *arg, enum df_err_class cls, const char *message)
{
    (void)arg;
    (void)cls;
    (void)message;
}

/* The documents are on the same disk: what the step waits for was never written into its own. */
static void an_end_that_blames_the_state_names_the_full_disk_that_no_document_names(void **state)
{
    static const struct df_blob_service service = {.place = "/data", .tell = tell_nobody};
    struct world *w = *state;
    struct df_err full = {0};
    (void)await_start(w, STEP);
    DF_JSON cJSON *task = get(w, DF_KIND_TASK_ACTION, STEP), *explained = NULL;
    DF_JSON cJSON *result = json("{'reason':'StateUnavailable','message':'giving up'}");
    assert_int_equal(df_blob_serve(w->s.blobs, &service, NULL), 0);
    assert_int_equal(df_wait_explain(&w->s, task, result, &explained, NULL), 0);
    assert_null(explained);
    (void)df_fail_errno(&full, ENOSPC, "write");
    df_blob_health_note(w->s.blobs->health, DF_BLOB_WRITES, &full);
    assert_int_equal(df_wait_explain(&w->s, task, result, &explained, NULL), 0);
    assert_string_equal(df_json_str(explained, "reason"), "DiskFull");
    const char *message = df_json_str(explained, "message");
    assert_non_null(strstr(message, "waited in vain: /data cannot be written since "));
    assert_non_null(strstr(message, "No space left on device (the runner: giving up)"));
}

int main(void)
{
    df_log_setup(DF_LOG_ERROR, false, "test");
    const struct CMUnitTest tests[] = {
        TEST(a_wait_is_told_with_its_cause_and_its_beginning_by_step_and_run),
        TEST(a_wait_begins_with_its_first_failure),
        TEST(a_refusal_and_a_race_are_no_wait),
        TEST(a_wait_is_over_when_nothing_fails_any_more),
        TEST(a_log_that_still_fails_does_not_keep_the_reason_of_a_wait_that_is_over),
        TEST(what_can_end_the_step_replaces_what_cannot),
        TEST(a_wait_that_was_told_before_a_restart_ends_with_the_next_success),
        TEST(an_ended_step_waits_for_nothing),
        TEST(only_so_many_things_are_watched),
        TEST(an_end_that_blames_the_state_names_the_full_disk_that_no_document_names),
        TEST(an_end_that_blames_the_lock_names_what_the_step_waited_for),
    };
    return cmocka_run_group_tests_name("waits", tests, NULL, NULL);
}
