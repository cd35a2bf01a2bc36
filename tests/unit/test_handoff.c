/* What a handoff says: which step to claim, or to wait for one. */
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "common/base/exit.h"
#include "common/base/fs.h"
#include "common/base/log.h"
#include "common/http/http.h"
#include "runner/step.h"
#include "runner/stop.h"
#include "tests/unit/json_words.h"
#include "tests/unit/scratch.h"
#include "tests/unit/step_server.h"

#define STANDBY "'standby':'standby-1','tokenFile':'token'"

struct fixture {
    void *dir;
    struct step_server server;
    pthread_t helper;
    int64_t offered_us;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    if (!f || enter_scratch(&f->dir) < 0 || chdir(f->dir) < 0)
        return -1;
    server_start(&f->server);
    *state = f;
    return df_fs_replace("token", "claim\n", 6, 0600, NULL);
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    server_end(&f->server);
    void *dir = f->dir;
    free(f);
    return chdir("/") < 0 ? -1 : leave_scratch(&dir);
}

/* Runs the step of this handoff, which gets the address of the server. */
static int run(const struct fixture *f, const char *members)
{
    DF_FREE char *text = df_strf("{'server':'http://127.0.0.1:%u','terminationLog':'term'%s%s}",
                                 f->server.port, *members ? "," : "", members);
    DF_JSON cJSON *handoff = json(text);
    DF_FREE char *document = df_json_print(handoff);
    const struct df_step_options o = {
        .handoff_fd = -1, .handoff_file = "handoff.json", .work_dir = "work"};
    assert_int_equal(df_fs_replace("handoff.json", document, strlen(document), 0600, NULL), 0);
    assert_int_equal(df_fs_replace("term", "", 0, 0600, NULL), 0);
    return df_step(&o);
}

static void refuse_claims(struct fixture *f, unsigned times, int status)
{
    f->server.refuse = "/claim";
    f->server.refuse_times = times;
    f->server.refuse_status = status;
    f->server.refuse_body = status == 204 ? "" : "{}";
}

static void assert_left(const char *path, const char *expected)
{
    DF_BUF struct df_buf b = DF_BUF_INIT(DF_MIB);
    assert_int_equal(df_fs_read(path, &b, NULL), 0);
    if (!strstr(df_buf_str(&b), expected) || (!*expected && b.len))
        fail_msg("%s: %s", path, df_buf_str(&b));
}

static void a_handoff_says_one_thing_to_claim_and_how(void **state)
{
    const struct fixture *f = *state;
    static const char *const cases[][2] = {
        {"", "one of token, tokenFile"},
        {"'uid':'u-1'", "one of token, tokenFile"},
        {"'uid':'u-1','token':'claim','tokenFile':'token'", "one of token, tokenFile"},
        {"'tokenFile':'token'", "no server or uid or standby"},
        {"'token':'claim'", "no server or uid or standby"},
        {"'standby':'standby-1','token':'claim'", "must have tokenFile and no uid"},
        {"'uid':'u-1'," STANDBY, "must have tokenFile and no uid"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        assert_int_equal(run(f, cases[i][0]), DF_EXIT_INPUT);
        assert_left("term", cases[i][1]);
    }
    assert_int_equal(f->server.requests, 0);
}

static void a_standby_runner_without_a_step_ends_well_and_leaves_nothing(void **state)
{
    struct fixture *f = *state;
    refuse_claims(f, 1, 410);
    assert_int_equal(run(f, STANDBY), DF_EXIT_OK);
    assert_left("term", "");
    assert_false(df_fs_exists("work/result.json"));
    assert_int_equal(f->server.asked, 1);
    assert_int_equal(f->server.requests, 1);
}

static void a_standby_runner_that_another_one_replaced_fails(void **state)
{
    struct fixture *f = *state;
    refuse_claims(f, 1, 409);
    assert_int_equal(run(f, STANDBY), DF_EXIT_INPUT);
    assert_left("term", "given to another runner");
}

static void *send_sigterm(void *arg)
{
    struct fixture *f = arg;
    SERVER_WAIT(&f->server, f->server.asked >= 3);
    (void)kill(getpid(), SIGTERM);
    return NULL;
}

static void a_standby_runner_that_is_told_to_end_does(void **state)
{
    struct fixture *f = *state;
    refuse_claims(f, UINT_MAX, 204);
    assert_int_equal(pthread_create(&f->helper, NULL, send_sigterm, f), 0);
    assert_int_equal(run(f, STANDBY), DF_EXIT_OK);
    (void)pthread_join(f->helper, NULL);
    assert_left("term", "");
}

static void *offer_step(void *arg)
{
    struct fixture *f = arg;
    SERVER_WAIT(&f->server, f->server.asked >= 3);
    server_lock(&f->server);
    f->offered_us = df_real_us();
    f->server.refuse_times = 0;
    server_unlock(&f->server);
    return NULL;
}

static int64_t time_of(const cJSON *result, const char *name)
{
    int64_t at = 0;
    const cJSON *entry;
    cJSON_ArrayForEach (entry, df_json_at(result, "timeline"))
        if (df_streq(df_json_str(entry, "name"), name))
            assert_int_equal(df_time_parse(df_json_str(entry, "at"), &at, NULL), 0);
    return at;
}

/* What the server gives is no step that could run, so that its result is a failure. */
static void the_step_of_a_standby_runner_starts_when_it_is_received(void **state)
{
    struct fixture *f = *state;
    DF_JSON cJSON *result = NULL;
    refuse_claims(f, UINT_MAX, 204);
    assert_int_equal(pthread_create(&f->helper, NULL, offer_step, f), 0);
    assert_int_not_equal(run(f, STANDBY), DF_EXIT_OK);
    (void)pthread_join(f->helper, NULL);
    assert_int_equal(f->server.results, 1);
    assert_int_equal(
        df_json_parse(df_buf_str(&f->server.result), f->server.result.len, &result, NULL), 0);
    assert_string_equal(df_json_str(result, "step"), "u-1");
    assert_true(time_of(result, "started") >= f->offered_us);
    assert_true(time_of(result, "claimed") >= time_of(result, "started"));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    df_log_setup(DF_LOG_ERROR, false, "test");
    df_stop_block(); /* before any thread exists */
    if (df_http_global_init(NULL) < 0)
        return 1;
    const struct CMUnitTest tests[] = {
        TEST(a_handoff_says_one_thing_to_claim_and_how),
        TEST(a_standby_runner_without_a_step_ends_well_and_leaves_nothing),
        TEST(a_standby_runner_that_another_one_replaced_fails),
        TEST(a_standby_runner_that_is_told_to_end_does),
        TEST(the_step_of_a_standby_runner_starts_when_it_is_received),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
