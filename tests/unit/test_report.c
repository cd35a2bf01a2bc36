/* What a runner reports: claim, progress, artifacts and result. */
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "tests/unit/json_words.h"
#include "tests/unit/report_world.h"

/* --- claim ----------------------------------------------------------------------------------- */

static void a_claim_gives_the_step_document(void **state)
{
    struct fixture *f = *state;
    cJSON *step = NULL;
    assert_int_equal(df_report_claim(f->report, NULL, LONG_MS, &step, NULL), 0);
    assert_string_equal(df_json_str(step, "name"), "net-1-plan");
    df_json_wipe(step);
}

static void a_claim_whose_answer_was_lost_is_repeated_with_the_same_id(void **state)
{
    struct fixture *f = *state;
    f->server.lose_every = 1;
    struct df_err err = {0};
    volatile bool stop = false;
    cJSON *step = NULL;
    assert_int_equal(df_report_claim(f->report, &stop, 300, &step, &err), -1);
    assert_int_equal(err.cls, DF_ERR_RETRY);
    server_lock(&f->server);
    assert_true(f->server.claims > 1); /* another id would have been a 409 and the end */
    server_unlock(&f->server);
}

static void refusals_of_a_claim_are_final(void **state)
{
    struct fixture *f = *state;
    static const struct {
        int status;
        const char *body;
        enum df_err_class cls;
        const char *reason;
    } rows[] = {
        {409, "{\"type\":\"AlreadyClaimed\"}", DF_ERR_CONFLICT, "AlreadyClaimed"},
        {410, "{}", DF_ERR_CONFLICT, "StepOver"},
        {401, "{\"type\":\"Unauthorized\"}", DF_ERR_DENIED, "Unauthorized"},
        {404, "{\"type\":\"NotFound\"}", DF_ERR_NOT_FOUND, "NotFound"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        reopen(f, LONG_MS);
        f->server.refuse = "/claim";
        f->server.refuse_times = 1;
        f->server.refuse_status = rows[i].status;
        f->server.refuse_body = rows[i].body;
        struct df_err err = {0};
        assert_int_equal(claim(f, &err), -1);
        assert_int_equal(err.cls, rows[i].cls);
        assert_string_equal(err.reason, rows[i].reason);
        assert_int_equal(f->server.refuse_times, 0);
    }
}

static void a_claim_is_tried_again_while_the_spawner_is_away_or_busy(void **state)
{
    struct fixture *f = *state;
    f->server.refuse = "/claim";
    f->server.refuse_times = 3;
    f->server.refuse_status = 503;
    assert_int_equal(claim(f, NULL), 0);
}

static void a_claim_does_not_go_through_a_proxy_of_the_environment(void **state)
{
    const struct fixture *f = *state;
    DF_STRS struct df_strs machine = {0};
    DF_FREE char *proxy = df_strf("http://127.0.0.1:%u", f->server.port);
    (void)df_strs_set_env(&machine, "http_proxy", proxy);
    char **before = environ;
    const struct df_report_spawner o = {.server = "http://spawner.invalid",
                                        .claim_id = "0123456789abcdef0123456789abcdef",
                                        .uid = "u-1",
                                        .claim_token = "claim",
                                        .spool_dir = f->dir,
                                        .give_up_ms = LONG_MS};
    struct df_report *report = NULL;
    struct df_err err = {0};
    volatile bool stop = false;
    cJSON *step = NULL;
    environ = machine.items;
    assert_int_equal(df_report_to_spawner(&o, &report, NULL), 0);
    assert_int_equal(df_report_claim(report, &stop, 100, &step, &err), -1);
    environ = before;
    df_report_free(report);
    assert_int_equal(err.cls, DF_ERR_RETRY); /* nobody has that name; the proxy would answer */
}

static void a_claim_finds_a_spawner_that_came_back_on_another_port(void **state)
{
    struct fixture *f = *state;
    server_close(&f->server);
    server_open(&f->server);
    write_endpoint(f);
    assert_int_equal(claim(f, NULL), 0);
}

static void a_claim_waits_no_longer_than_told(void **state)
{
    struct fixture *f = *state;
    server_close(&f->server);
    struct df_err err = {0};
    cJSON *step = NULL;
    assert_int_equal(df_report_claim(f->report, NULL, 50, &step, &err), -1);
    assert_int_equal(err.cls, DF_ERR_RETRY);
    volatile bool stop = true;
    reopen(f, LONG_MS);
    assert_int_equal(df_report_claim(f->report, &stop, LONG_MS, &step, &err), -1);
    assert_int_equal(err.cls, DF_ERR_RETRY);
}

static void an_answer_that_is_no_step_document_fails_the_claim(void **state)
{
    struct fixture *f = *state;
    static const char *const bodies[] = {"", "<html>", "{\"name\":\"x\"}", "[]"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(bodies); i++) {
        reopen(f, LONG_MS);
        f->server.refuse = "/claim";
        f->server.refuse_times = 1;
        f->server.refuse_status = 200;
        f->server.refuse_body = bodies[i];
        assert_int_equal(claim(f, NULL), -1);
    }
}

/* --- over ------------------------------------------------------------------------------------ */

static void a_step_that_is_over_is_told_so_by_call_and_descriptor(void **state)
{
    struct fixture *f = *state;
    struct pollfd over = {.fd = df_report_over_fd(f->report), .events = POLLIN};
    assert_int_equal(poll(&over, 1, 0), 0);
    assert_false(df_report_is_over(f->report));
    server_lock(&f->server);
    f->server.over = true;
    server_unlock(&f->server);
    say(f, "hello?\n");
    assert_int_equal(poll(&over, 1, LONG_MS), 1);
    assert_true(df_report_is_over(f->report));
    struct df_err err = {0};
    assert_int_equal(finish(f, &err), -1);
    assert_string_equal(err.reason, "StepOver");
}

static void a_step_with_nothing_to_say_also_learns_that_it_is_over(void **state)
{
    struct fixture *f = *state;
    server_lock(&f->server);
    f->server.over = true;
    server_unlock(&f->server);
    struct pollfd over = {.fd = df_report_over_fd(f->report), .events = POLLIN};
    assert_int_equal(poll(&over, 1, LONG_MS), 1);
}

/* --- progress -------------------------------------------------------------------------------- */

static void progress(struct fixture *f, const char *name, const char *tool)
{
    DF_JSON cJSON *body = cJSON_CreateObject();
    cJSON *mark = cJSON_CreateObject();
    (void)df_json_add_str(mark, "name", name, NULL);
    (void)df_json_append(df_json_array_at(body, "timeline"), mark, NULL);
    (void)df_json_add_str(body, "tool", tool, NULL);
    df_report_progress(f->report, body, strcmp(name, "initialized") == 0);
}

static void progress_is_sent_and_merged_while_it_waits(void **state)
{
    struct fixture *f = *state;
    progress(f, "sourced", NULL);
    SERVER_WAIT(&f->server, f->server.progress.len > 0);
    assert_string_equal(df_buf_str(&f->server.progress),
                        "{\"timeline\":[{\"name\":\"sourced\"}]}\n");
    server_close(&f->server);
    df_buf_clear(&f->server.progress);
    progress(f, "initialized", "old");
    progress(f, "executed", NULL);
    progress(f, "stored", "new");
    server_open(&f->server);
    write_endpoint(f);
    SERVER_WAIT(&f->server, strstr(df_buf_str(&f->server.progress), "stored") != NULL);
    /* One body or, if the first was on its way already, more: in order, each mark once. */
    static const char *const marks[] = {"initialized", "executed", "stored"};
    const char *at = df_buf_str(&f->server.progress);
    for (size_t i = 0; i < DF_ARRAY_SIZE(marks); i++) {
        at = strstr(at, marks[i]);
        assert_non_null(at);
        assert_null(strstr(at + 1, marks[i]));
    }
    assert_non_null(strstr(at, "\"tool\":\"new\"") || strstr(df_buf_str(&f->server.progress), "new")
                        ? at
                        : NULL);
}

static void progress_that_changes_no_phase_goes_with_what_does(void **state)
{
    struct fixture *f = *state;
    progress(f, "started", NULL);
    progress(f, "sourced", NULL);
    progress(f, "initialized", NULL);
    SERVER_WAIT(&f->server, f->server.progress.len > 0);
    assert_string_equal(df_buf_str(&f->server.progress),
                        "{\"timeline\":[{\"name\":\"started\"},{\"name\":\"sourced\"},"
                        "{\"name\":\"initialized\"}]}\n");
}

static int count_lines(const char *text)
{
    int n = 0;
    for (; *text; text++)
        n += *text == '\n';
    return n;
}

static void progress_that_comes_in_a_burst_is_few_posts(void **state)
{
    struct fixture *f = *state;
    progress(f, "started", NULL);
    SERVER_WAIT(&f->server, f->server.progress.len > 0);
    for (int i = 0; i < 50; i++)
        progress(f, i == 49 ? "last" : "more", NULL);
    SERVER_WAIT(&f->server, strstr(df_buf_str(&f->server.progress), "last") != NULL);
    assert_in_range(count_lines(df_buf_str(&f->server.progress)), 2, 5);
}

static void progress_that_is_refused_is_not_repeated(void **state)
{
    struct fixture *f = *state;
    f->server.refuse = "/progress";
    f->server.refuse_times = 1;
    f->server.refuse_status = 400;
    progress(f, "odd", NULL);
    SERVER_WAIT(&f->server, f->server.refuse_times == 0);
    say(f, "still there\n");
    SERVER_WAIT(&f->server, f->server.ends[SERVER_LOG] == 12);
    assert_int_equal(f->server.progress.len, 0);
}

/* --- artifacts ------------------------------------------------------------------------------- */

static char *make_file(struct fixture *f, size_t n)
{
    char *path = df_fs_join(f->dir, "artifact");
    char *bytes = malloc(n + 1);
    for (size_t i = 0; i < n; i++)
        bytes[i] = byte_at(i);
    assert_int_equal(df_fs_replace(path, bytes, n, 0600, NULL), 0);
    free(bytes);
    return path;
}

static void an_artifact_is_stored_whole_through_lost_answers_and_busy_times(void **state)
{
    struct fixture *f = *state;
    DF_FREE char *path = make_file(f, 5 * DF_MIB + 3);
    server_lock(&f->server);
    f->server.lose_every = f->server.requests + 1;
    f->server.refuse = "/artifacts";
    f->server.refuse_times = 2;
    f->server.refuse_status = 503;
    server_unlock(&f->server);
    assert_int_equal(df_report_put_artifact(f->report, "plan", path, df_mono_ms() + LONG_MS, NULL),
                     0);
    assert_int_equal(f->server.artifact.len, 5 * DF_MIB + 3);
    for (size_t i = 0; i < f->server.artifact.len; i++)
        assert_int_equal(f->server.artifact.data[i], byte_at(i));
}

static void an_artifact_that_is_refused_fails_with_the_reason(void **state)
{
    struct fixture *f = *state;
    DF_FREE char *path = make_file(f, 10);
    f->server.refuse = "/artifacts";
    f->server.refuse_times = 1;
    f->server.refuse_status = 413;
    f->server.refuse_body = "{\"type\":\"BundleTooLarge\",\"title\":\"too large\"}";
    struct df_err err = {0};
    assert_int_equal(df_report_put_artifact(f->report, "plan", path, df_mono_ms() + LONG_MS, &err),
                     -1);
    assert_int_equal(err.cls, DF_ERR_LIMIT);
    assert_string_equal(err.reason, "BundleTooLarge");
}

static void an_artifact_waits_no_longer_than_told(void **state)
{
    struct fixture *f = *state;
    DF_FREE char *path = make_file(f, 10);
    server_close(&f->server);
    struct df_err err = {0};
    assert_int_equal(df_report_put_artifact(f->report, "plan", path, df_mono_ms() + 50, &err), -1);
    assert_int_equal(err.cls, DF_ERR_RETRY);
}

static void refuse_for_ever(struct fixture *f, const char *what)
{
    server_lock(&f->server);
    f->server.refuse = what;
    f->server.refuse_times = INT32_MAX;
    f->server.refuse_status = 503;
    server_unlock(&f->server);
}

static void a_plan_is_not_tried_on_when_the_step_is_told_to_stop(void **state)
{
    struct fixture *f = *state;
    DF_FREE char *path = make_file(f, 10);
    struct df_err err = {0};
    refuse_for_ever(f, "/artifacts");
    f->stop = true;
    df_report_heed(f->report, &f->stop);
    assert_int_equal(df_report_put_artifact(f->report, "plan", path, INT64_MAX, &err), -1);
    assert_int_equal(df_report_put_artifact(f->report, "outputs", path, INT64_MAX, &err), -1);
}

static void an_errored_state_is_tried_on_when_the_step_is_told_to_stop(void **state)
{
    struct fixture *f = *state;
    DF_FREE char *path = make_file(f, 10);
    server_lock(&f->server);
    f->server.refuse = "/artifacts";
    f->server.refuse_times = 3;
    f->server.refuse_status = 503;
    server_unlock(&f->server);
    f->stop = true;
    df_report_heed(f->report, &f->stop);
    assert_int_equal(
        df_report_put_artifact(f->report, "errored-state", path, df_mono_ms() + LONG_MS, NULL), 0);
}

static void a_result_does_not_wait_for_a_log_that_is_refused_when_the_step_must_stop(void **state)
{
    struct fixture *f = *state;
    reopen(f, INT64_C(1000) * 3600 * 24); /* the drain alone would outlive the limit of tests/run */
    assert_int_equal(claim(f, NULL), 0);
    refuse_for_ever(f, "/streams");
    f->stop = true;
    df_report_heed(f->report, &f->stop);
    say(f, "what nobody takes\n");
    assert_int_equal(finish(f, NULL), 0);
}

static void an_artifact_that_does_not_exist_is_named(void **state)
{
    struct fixture *f = *state;
    struct df_err err = {0};
    assert_int_equal(df_report_put_artifact(f->report, "plan", "/nowhere/plan", 0, &err), -1);
    assert_non_null(strstr(err.message, "/nowhere/plan"));
}

static void a_plan_is_fetched_whole_though_downloads_break_off(void **state)
{
    struct fixture *f = *state;
    for (size_t i = 0; i < 3 * DF_MIB; i++)
        (void)df_buf_addc(&f->server.plan, byte_at(i));
    f->server.short_plans = 2;
    DF_FREE char *to = df_fs_join(f->dir, "plan");
    assert_int_equal(df_report_get_artifact(f->report, "plan", to, df_mono_ms() + LONG_MS, NULL),
                     0);
    DF_BUF struct df_buf got = DF_BUF_INIT(64 * DF_MIB);
    assert_int_equal(df_fs_read(to, &got, NULL), 0);
    assert_int_equal(got.len, f->server.plan.len);
    assert_memory_equal(got.data, f->server.plan.data, got.len);
    struct stat st;
    assert_int_equal(stat(to, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    /* A file that is there is somebody else's. */
    struct df_err err = {0};
    assert_int_equal(df_report_get_artifact(f->report, "plan", to, df_mono_ms() + LONG_MS, &err),
                     -1);
    assert_int_equal(err.cls, DF_ERR_CONFLICT);
}

static void a_plan_that_is_refused_fails_with_the_protocol_s_reason(void **state)
{
    struct fixture *f = *state;
    static const struct {
        int status;
        const char *reason;
        enum df_err_class cls;
    } rows[] = {{409, "PlanCorrupt", DF_ERR_CONFLICT},
                {409, "PlanOfOtherRun", DF_ERR_CONFLICT},
                {409, "PlanExpired", DF_ERR_CONFLICT},
                {409, "PlanUsed", DF_ERR_CONFLICT},
                {404, "PlanMissing", DF_ERR_NOT_FOUND}};
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        DF_FREE char *body = df_strf("{\"type\":\"%s\",\"title\":\"no\"}", rows[i].reason);
        DF_FREE char *to = df_strf("%s/plan-%zu", f->dir, i);
        server_lock(&f->server);
        f->server.refuse = "/artifacts";
        f->server.refuse_times = 1;
        f->server.refuse_status = rows[i].status;
        f->server.refuse_body = body;
        server_unlock(&f->server);
        struct df_err err = {0};
        assert_int_equal(
            df_report_get_artifact(f->report, "plan", to, df_mono_ms() + LONG_MS, &err), -1);
        assert_string_equal(err.reason, rows[i].reason);
        assert_int_equal(err.cls, rows[i].cls);
    }
}

/* --- result ---------------------------------------------------------------------------------- */

static void the_result_comes_last_and_says_how_much_came_before(void **state)
{
    struct fixture *f = *state;
    say(f, "0123456789\n");
    assert_int_equal(df_report_event(f->report, "{}\n", 3, NULL), 0);
    assert_int_equal(finish(f, NULL), 0);
    assert_int_equal(f->server.ends[SERVER_LOG], 11);
    assert_string_equal(df_buf_str(&f->server.result),
                        "{\"exitCode\":0,\"logBytes\":11,\"eventBytes\":3}");
}

static void a_result_whose_answer_was_lost_is_repeated(void **state)
{
    struct fixture *f = *state;
    server_lock(&f->server);
    f->server.lose_every = f->server.requests + 1;
    server_unlock(&f->server);
    assert_int_equal(finish(f, NULL), 0);
    assert_true(f->server.results >= 2);
}

static void a_result_finds_a_spawner_that_came_back_elsewhere(void **state)
{
    struct fixture *f = *state;
    server_close(&f->server);
    server_open(&f->server);
    write_endpoint(f);
    say(f, "while it was away\n");
    assert_int_equal(finish(f, NULL), 0);
    assert_int_equal(f->server.ends[SERVER_LOG], 18);
}

/* Another service took the old port and knows nobody; the spawner is elsewhere. */
static void a_stranger_on_the_old_port_is_not_believed(void **state)
{
    struct fixture *f = *state;
    f->server.refuse = "/";
    f->server.refuse_times = 1000000;
    f->server.refuse_status = 404;
    struct step_server elsewhere;
    server_start(&elsewhere);
    DF_FREE char *url = df_strf("http://127.0.0.1:%u", elsewhere.port);
    assert_int_equal(df_fs_replace(f->endpoint, url, strlen(url), 0600, NULL), 0);
    assert_int_equal(finish(f, NULL), 0);
    assert_int_equal(elsewhere.results, 1);
    df_report_free(f->report);
    f->report = NULL;
    server_end(&elsewhere);
}

static void a_result_is_given_up_after_the_time_for_it(void **state)
{
    struct fixture *f = *state;
    reopen(f, 100);
    f->server.claim_id[0] = '\0';
    assert_int_equal(claim(f, NULL), 0);
    server_close(&f->server);
    say(f, "nobody hears\n");
    struct df_err err = {0};
    assert_int_equal(finish(f, &err), -1);
    assert_int_equal(err.cls, DF_ERR_RETRY);
}

static void a_result_does_not_wait_for_ever_for_a_log_that_is_not_taken(void **state)
{
    struct fixture *f = *state;
    reopen(f, 400);
    f->server.claim_id[0] = '\0';
    assert_int_equal(claim(f, NULL), 0);
    server_lock(&f->server);
    f->server.refuse = "/streams";
    f->server.refuse_times = 1000000;
    f->server.refuse_status = 500;
    server_unlock(&f->server);
    say(f, "never taken\n");
    assert_int_equal(finish(f, NULL), 0);
}

static void a_step_that_was_not_claimed_has_no_result(void **state)
{
    struct fixture *f = *state;
    struct df_err err = {0};
    assert_int_equal(finish(f, &err), -1);
    assert_int_equal(err.cls, DF_ERR_CONFLICT);
}

/* --- the other home -------------------------------------------------------------------------- */

static void assert_file(const char *dir, const char *name, const char *content)
{
    DF_FREE char *path = df_fs_join(dir, name);
    DF_BUF struct df_buf b = DF_BUF_INIT(DF_MIB);
    assert_int_equal(df_fs_read(path, &b, NULL), 0);
    assert_string_equal(df_buf_str(&b), content);
}

static void a_directory_takes_everything_in_files(void **state)
{
    struct fixture f = {.dir = *state};
    assert_int_equal(df_report_to_directory(f.dir, &f.report, NULL), 0);
    say(&f, "a line\n");
    assert_int_equal(df_report_event(f.report, "{\"type\":\"version\"}\n", 19, NULL), 0);
    progress(&f, "sourced", "tofu");
    DF_FREE char *path = make_file(&f, 0);
    assert_int_equal(df_fs_replace(path, "bundle", 6, 0600, NULL), 0);
    assert_int_equal(df_report_put_artifact(f.report, "plan", path, 0, NULL), 0);
    DF_FREE char *to = df_fs_join(f.dir, "fetched");
    assert_int_equal(df_report_get_artifact(f.report, "plan", to, 0, NULL), 0);
    assert_false(df_report_is_over(f.report));
    assert_int_equal(df_report_over_fd(f.report), -1);
    assert_int_equal(finish(&f, NULL), 0);
    df_report_free(f.report);
    assert_file(f.dir, "log", "a line\n");
    assert_file(f.dir, "events", "{\"type\":\"version\"}\n");
    assert_file(f.dir, "progress", "{\"timeline\":[{\"name\":\"sourced\"}],\"tool\":\"tofu\"}\n");
    assert_file(f.dir, "plan", "bundle");
    assert_file(f.dir, "fetched", "bundle");
    DF_FREE char *result_path = df_fs_join(f.dir, "result.json");
    DF_JSON cJSON *result = NULL;
    assert_int_equal(df_json_load(result_path, DF_MIB, &result, NULL), 0);
    assert_int_equal(df_json_int(result, "logBytes", -1), 7);
    assert_int_equal(df_json_int(result, "eventBytes", -1), 19);
}

static void a_directory_without_a_plan_says_so(void **state)
{
    struct fixture f = {.dir = *state};
    assert_int_equal(df_report_to_directory(f.dir, &f.report, NULL), 0);
    struct df_err err = {0};
    DF_FREE char *to = df_fs_join(f.dir, "fetched");
    assert_int_equal(df_report_get_artifact(f.report, "plan", to, 0, &err), -1);
    assert_string_equal(err.reason, "PlanMissing");
    cJSON *step = NULL;
    assert_int_equal(df_report_claim(f.report, NULL, 0, &step, &err), -1);
    assert_int_equal(err.cls, DF_ERR_USER);
    df_report_free(f.report);
}

static void a_directory_that_does_not_exist_is_an_error(void **state)
{
    (void)state;
    struct df_report *r = NULL;
    struct df_err err = {0};
    assert_int_equal(df_report_to_directory("/nowhere/at/all", &r, &err), -1);
    assert_non_null(strstr(err.message, "/nowhere/at/all"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_server(a_claim_gives_the_step_document),
        with_server(a_claim_whose_answer_was_lost_is_repeated_with_the_same_id),
        with_server(refusals_of_a_claim_are_final),
        with_server(a_claim_is_tried_again_while_the_spawner_is_away_or_busy),
        with_server(a_claim_does_not_go_through_a_proxy_of_the_environment),
        with_server(a_claim_finds_a_spawner_that_came_back_on_another_port),
        with_server(a_claim_waits_no_longer_than_told),
        with_server(an_answer_that_is_no_step_document_fails_the_claim),
        with_step(a_step_that_is_over_is_told_so_by_call_and_descriptor),
        with_step(a_step_with_nothing_to_say_also_learns_that_it_is_over),
        with_step(progress_is_sent_and_merged_while_it_waits),
        with_step(progress_that_changes_no_phase_goes_with_what_does),
        with_step(progress_that_comes_in_a_burst_is_few_posts),
        with_step(progress_that_is_refused_is_not_repeated),
        with_step(an_artifact_is_stored_whole_through_lost_answers_and_busy_times),
        with_step(an_artifact_that_is_refused_fails_with_the_reason),
        with_step(a_plan_is_not_tried_on_when_the_step_is_told_to_stop),
        with_step(an_errored_state_is_tried_on_when_the_step_is_told_to_stop),
        with_step(a_result_does_not_wait_for_a_log_that_is_refused_when_the_step_must_stop),
        with_step(an_artifact_waits_no_longer_than_told),
        with_step(an_artifact_that_does_not_exist_is_named),
        with_step(a_plan_is_fetched_whole_though_downloads_break_off),
        with_step(a_plan_that_is_refused_fails_with_the_protocol_s_reason),
        with_step(the_result_comes_last_and_says_how_much_came_before),
        with_step(a_result_whose_answer_was_lost_is_repeated),
        with_step(a_result_finds_a_spawner_that_came_back_elsewhere),
        with_step(a_stranger_on_the_old_port_is_not_believed),
        with_server(a_result_is_given_up_after_the_time_for_it),
        with_server(a_result_does_not_wait_for_ever_for_a_log_that_is_not_taken),
        with_server(a_step_that_was_not_claimed_has_no_result),
        scratch_test(a_directory_takes_everything_in_files),
        scratch_test(a_directory_without_a_plan_says_so),
        cmocka_unit_test(a_directory_that_does_not_exist_is_an_error),
    };
    struct df_err err = {0};
    if (df_http_global_init(&err) < 0)
        return 1;
    return cmocka_run_group_tests_name("report", tests, NULL, NULL);
}
