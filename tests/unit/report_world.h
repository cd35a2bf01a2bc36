/*
 * report_world.h - a runner's report and the server that it goes to. Include behind cmocka.h.
 */
#ifndef DF_TEST_REPORT_WORLD_H
#define DF_TEST_REPORT_WORLD_H

#include "common/http/http.h"
#include "runner/report/report.h"
#include "tests/unit/scratch.h"
#include "tests/unit/step_server.h"

enum { LONG_MS = 60000 };

struct fixture {
    char *dir;
    char *endpoint;
    struct step_server server;
    struct df_report *report;
    volatile bool stop; /* for calls that take one */
    df_report_prepare *prepare;
    void *prepare_arg;
};

static inline void write_endpoint(const struct fixture *f)
{
    DF_FREE char *url = df_strf("http://127.0.0.1:%u\n", f->server.port);
    assert_int_equal(df_fs_replace(f->endpoint, url, strlen(url), 0600, NULL), 0);
}

static inline void open_report(struct fixture *f, int64_t give_up_ms)
{
    DF_FREE char *url = df_strf("http://127.0.0.1:%u/", f->server.port);
    const struct df_report_spawner o = {.server = url,
                                        .claim_id = "0123456789abcdef0123456789abcdef",
                                        .endpoint_file = f->endpoint,
                                        .uid = "u-1",
                                        .claim_token = "claim",
                                        .spool_dir = f->dir,
                                        .give_up_ms = give_up_ms};
    assert_int_equal(df_report_to_spawner(&o, &f->report, NULL), 0);
}

static inline int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    void *dir = NULL;
    if (!f || enter_scratch(&dir) < 0)
        return -1;
    f->dir = dir;
    f->endpoint = df_fs_join(dir, "endpoint");
    server_start(&f->server);
    open_report(f, LONG_MS);
    *state = f;
    return 0;
}

static inline int teardown(void **state)
{
    struct fixture *f = *state;
    df_report_free(f->report);
    server_end(&f->server);
    free(f->endpoint);
    void *dir = f->dir;
    free(f);
    return leave_scratch(&dir);
}

static inline int claim(struct fixture *f, struct df_err *err)
{
    cJSON *step = NULL;
    int result = df_report_claim(f->report, NULL, LONG_MS, &step, err);
    df_json_wipe(step);
    return result;
}

static inline int setup_claimed(void **state)
{
    return setup(state) < 0 ? -1 : claim(*state, NULL);
}

static inline void reopen(struct fixture *f, int64_t give_up_ms)
{
    df_report_free(f->report);
    open_report(f, give_up_ms);
}

static inline void say(struct fixture *f, const char *text)
{
    assert_int_equal(df_report_log(f->report, text, strlen(text), NULL), 0);
}

static inline int finish(struct fixture *f, struct df_err *err)
{
    DF_JSON cJSON *result = cJSON_CreateObject();
    (void)df_json_add_num(result, "exitCode", 0, NULL);
    return df_report_result(f->report, result, err);
}

/* A stream whose bytes tell where they belong. */
static inline char byte_at(uint64_t at)
{
    return at % 80 == 79 ? '\n' : (char)('!' + at * 2654435761U / 65536 % 90);
}

#define with_server(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
#define with_step(f) cmocka_unit_test_setup_teardown(f, setup_claimed, teardown)

#endif
