/* How a standby runner gets its step, and what it is from then on. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/report_world.h"

static void become_standby(struct fixture *f)
{
    DF_FREE char *url = df_strf("http://127.0.0.1:%u", f->server.port);
    DF_FREE char *token = df_fs_join(f->dir, "token");
    assert_int_equal(df_fs_replace(token, "claim\n", 6, 0600, NULL), 0);
    const struct df_report_spawner o = {.server = url,
                                        .claim_id = "0123456789abcdef0123456789abcdef",
                                        .runner = "standby-1",
                                        .prepare = f->prepare,
                                        .prepare_arg = f->prepare_arg,
                                        .token_file = token,
                                        .spool_dir = f->dir,
                                        .give_up_ms = LONG_MS};
    df_report_free(f->report);
    assert_int_equal(df_report_to_spawner(&o, &f->report, NULL), 0);
}

static void refuse(struct fixture *f, unsigned times, int status)
{
    f->server.refuse = "/claim";
    f->server.refuse_times = times;
    f->server.refuse_status = status;
    f->server.refuse_body = status == 204 ? "" : "{}";
}

static int ask_for_step(struct fixture *f, const volatile bool *stop, cJSON **ret,
                        struct df_err *err)
{
    return df_report_claim(f->report, stop, INT64_MAX, ret, err);
}

static void check_wait(struct fixture *f, int status)
{
    cJSON *step = NULL;
    become_standby(f);
    refuse(f, 3, status);
    assert_int_equal(ask_for_step(f, NULL, &step, NULL), 0);
    assert_string_equal(df_json_str(step, "uid"), "u-1");
    df_json_wipe(step);
    assert_int_equal(f->server.asked, 4);
    say(f, "of the step\n"); /* the server takes that with the step's uid and token only */
    assert_int_equal(finish(f, NULL), 0);
    assert_int_equal(f->server.ends[SERVER_LOG], 12);
    assert_int_equal(f->server.results, 1);
}

static void a_standby_runner_asks_until_there_is_a_step_and_is_its_runner_then(void **state)
{
    check_wait(*state, 204);
}

static void a_standby_runner_asks_while_the_spawner_is_away(void **state)
{
    check_wait(*state, 503);
}

static void a_standby_runner_whose_answer_was_lost_gets_the_step_again(void **state)
{
    struct fixture *f = *state;
    cJSON *step = NULL;
    become_standby(f);
    f->server.lose_every = 2;
    refuse(f, 1, 204);
    assert_int_equal(ask_for_step(f, NULL, &step, NULL), 0);
    assert_string_equal(df_json_str(step, "uid"), "u-1");
    assert_int_equal(f->server.claims, 2); /* with one id */
    df_json_wipe(step);
}

static void a_standby_runner_that_is_over_has_no_step(void **state)
{
    struct fixture *f = *state;
    cJSON *step = NULL;
    become_standby(f);
    refuse(f, 1, 410);
    assert_int_equal(ask_for_step(f, NULL, &step, NULL), 0);
    assert_null(step);
    assert_int_equal(f->server.asked, 1);
}

static void *stop_when_asked(void *arg)
{
    struct fixture *f = arg;
    SERVER_WAIT(&f->server, f->server.asked >= 2);
    __atomic_store_n(&f->stop, true, __ATOMIC_RELAXED);
    return NULL;
}

static void a_standby_runner_that_is_stopped_has_no_step(void **state)
{
    struct fixture *f = *state;
    static const int statuses[] = {204, 503};
    for (size_t i = 0; i < DF_ARRAY_SIZE(statuses); i++) {
        pthread_t thread;
        cJSON *step = NULL;
        become_standby(f);
        f->stop = false;
        f->server.asked = 0;
        refuse(f, UINT_MAX, statuses[i]);
        assert_int_equal(pthread_create(&thread, NULL, stop_when_asked, f), 0);
        assert_int_equal(ask_for_step(f, &f->stop, &step, NULL), 0);
        (void)pthread_join(thread, NULL);
        assert_null(step);
    }
}

static void a_runner_that_waits_for_a_time_has_no_step_then(void **state)
{
    struct fixture *f = *state;
    cJSON *step = NULL;
    become_standby(f);
    refuse(f, UINT_MAX, 204);
    assert_int_equal(df_report_claim(f->report, NULL, 1, &step, NULL), 0);
    assert_null(step);
}

static void any_other_refusal_of_a_standby_runner_is_a_failure(void **state)
{
    struct fixture *f = *state;
    static const struct {
        int status;
        enum df_err_class cls;
    } rows[] = {{409, DF_ERR_CONFLICT}, {401, DF_ERR_DENIED}};
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        struct df_err err = {0};
        cJSON *step = NULL;
        become_standby(f);
        refuse(f, 1, rows[i].status);
        assert_int_equal(ask_for_step(f, NULL, &step, &err), -1);
        assert_int_equal(err.cls, rows[i].cls);
        assert_null(step);
    }
}

/* In the middle of an upgrade. */
static void a_standby_runner_asks_again_behind_a_replica_that_knows_none(void **state)
{
    struct fixture *f = *state;
    cJSON *step = NULL;
    become_standby(f);
    refuse(f, 2, 404);
    assert_int_equal(ask_for_step(f, NULL, &step, NULL), 0);
    assert_non_null(step);
    df_json_wipe(step);
}

/* ---- what it may get ready ---- */

static void keep_preparation(void *arg, cJSON *doc)
{
    cJSON **kept = arg;
    assert_null(*kept); /* once */
    *kept = doc;
}

static void check_preparation(struct fixture *f, const char *answer, cJSON **kept)
{
    cJSON *step = NULL;
    f->prepare = keep_preparation;
    f->prepare_arg = kept;
    become_standby(f);
    refuse(f, 3, 202);
    f->server.refuse_body = answer;
    assert_int_equal(ask_for_step(f, NULL, &step, NULL), 0);
    assert_string_equal(df_json_str(step, "uid"), "u-1");
    assert_int_equal(f->server.asked, 4);
    assert_int_equal(f->server.asked_to_prepare, 1);
    df_json_wipe(step);
}

static void a_standby_runner_hears_once_what_to_get_ready_and_asks_on(void **state)
{
    DF_JSON cJSON *kept = NULL;
    check_preparation(*state, "{\"tools\":{\"searchPath\":true}}", &kept);
    assert_true(df_json_bool(kept, "tools.searchPath", false));
}

static void a_preparation_that_cannot_be_read_is_none(void **state)
{
    DF_JSON cJSON *kept = NULL;
    check_preparation(*state, "{", &kept);
    assert_null(kept);
}

static void only_a_standby_runner_asks_what_to_get_ready(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(claim(f, NULL), 0);
    assert_int_equal(f->server.asked_to_prepare, 0);
}

int main(void)
{
    if (df_http_global_init(NULL) < 0)
        return 1;
    const struct CMUnitTest tests[] = {
        with_server(a_standby_runner_asks_until_there_is_a_step_and_is_its_runner_then),
        with_server(a_standby_runner_asks_while_the_spawner_is_away),
        with_server(a_standby_runner_whose_answer_was_lost_gets_the_step_again),
        with_server(a_standby_runner_that_is_over_has_no_step),
        with_server(a_standby_runner_that_is_stopped_has_no_step),
        with_server(a_runner_that_waits_for_a_time_has_no_step_then),
        with_server(any_other_refusal_of_a_standby_runner_is_a_failure),
        with_server(a_standby_runner_asks_again_behind_a_replica_that_knows_none),
        with_server(a_standby_runner_hears_once_what_to_get_ready_and_asks_on),
        with_server(a_preparation_that_cannot_be_read_is_none),
        with_server(only_a_standby_runner_asks_what_to_get_ready),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
