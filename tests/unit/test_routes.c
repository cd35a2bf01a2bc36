#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "spawner/api/handlers.h"
#include "spawner/api/openapi.h"
#include "spawner/api/routes.h"
#include "spawner/http/problem.h"

/* ---- the target ---- */

static void a_path_is_split_and_decoded_once(void **state)
{
    (void)state;
    struct df_target t;
    assert_int_equal(df_target_parse("/v1/runs/a%2Db/log?follow=true&x=a+b%2B&flag", &t, NULL), 0);
    assert_int_equal(t.segment_count, 4);
    assert_string_equal(t.segments[2], "a-b");
    assert_string_equal(df_target_query(&t, "follow"), "true");
    assert_string_equal(df_target_query(&t, "x"), "a b+");
    assert_string_equal(df_target_query(&t, "flag"), "");
    assert_null(df_target_query(&t, "other"));
    df_target_free(&t);
}

static void what_was_decoded_is_not_decoded_again(void **state)
{
    (void)state;
    struct df_target t;
    assert_int_equal(df_target_parse("/v1/runs/%252e%252e", &t, NULL), 0);
    assert_string_equal(t.segments[2], "%2e%2e");
    df_target_free(&t);
}

static void the_absolute_form_means_its_path(void **state)
{
    (void)state;
    struct df_target t;
    assert_int_equal(df_target_parse("http://127.0.0.1:1/v1/runs?limit=1", &t, NULL), 0);
    assert_int_equal(t.segment_count, 2);
    assert_string_equal(df_target_query(&t, "limit"), "1");
    df_target_free(&t);
}

static void tricks_with_paths_and_queries_are_refused(void **state)
{
    (void)state;
    static const char *const raw[] = {
        "",
        "*",
        "v1/runs",
        "http://host",
        "http://host?x",
        "/v1/runs/..",
        "/v1/./runs",
        "/v1/runs/%2e%2e",
        "/v1/runs/%2E",
        "/v1/runs/a%2fb",
        "/v1/runs/a%2Fb",
        "/v1/runs/a%00b",
        "/v1/runs/a%0ab",
        "/v1/runs/a%7f",
        "/v1/runs/a\tb",
        "/v1/runs/a%",
        "/v1/runs/a%4",
        "/v1/runs/a%4g",
        "/v1/runs/a%zz",
        "/v1/runs/%ff",
        "/v1/runs/%c0%af",
        "/v1/runs/%ed%a0%80",
        "/v1/runs?a=1&a=2",
        "/v1/runs?a=%00",
        "/v1/runs?a=%",
        "/v1/runs?%ff=1",
        "/v1/runs?1&2&3&4&5&6&7&8&9&10&11&12&13&14&15&16&17",
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(raw); i++) {
        struct df_target t = {0};
        struct df_err err = {0};
        if (df_target_parse(raw[i], &t, &err) == 0)
            fail_msg("accepted: %s", raw[i]);
        assert_int_equal(err.cls, DF_ERR_USER);
        assert_string_equal(err.reason, "BadTarget");
    }
}

static void a_path_deeper_than_any_route_is_counted_and_not_kept(void **state)
{
    (void)state;
    struct df_target t;
    assert_int_equal(df_target_parse("/1/2/3/4/5/6/7/8/9/10/11/12", &t, NULL), 0);
    assert_int_equal(t.segment_count, DF_TARGET_SEGMENTS + 1);
    df_target_free(&t);
}

/* ---- the table ---- */

static int find(const char *method, const char *raw, const struct df_route **ret,
                const char *params[DF_ROUTE_PARAMS], char allow[64], struct df_target *t,
                struct df_err *err)
{
    assert_int_equal(df_target_parse(raw, t, NULL), 0);
    return df_route_find(&df_routes, method, t, ret, params, allow, err);
}

static void every_route_is_found_by_its_own_pattern(void **state)
{
    (void)state;
    const size_t count = df_routes.count;
    const struct df_route *routes = df_routes.rows;
    assert_true(count > 40);
    for (size_t i = 0; i < count; i++) {
        char raw[256] = "", allow[64];
        for (const char *p = routes[i].pattern; *p; p++) {
            size_t n = strlen(raw);
            raw[n] = *p == '{' ? 'x' : *p;
            if (*p == '{')
                p += strcspn(p, "}");
        }
        const struct df_route *found = NULL;
        const char *params[DF_ROUTE_PARAMS] = {0};
        struct df_target t;
        assert_int_equal(find(routes[i].method, raw, &found, params, allow, &t, NULL), 0);
        if (found != &routes[i])
            fail_msg("%s %s finds %s", routes[i].method, raw, found->pattern);
        assert_int_equal(params[0] != NULL, strchr(routes[i].pattern, '{') != NULL);
        df_target_free(&t);
    }
}

static void all_parameters_of_a_route_fit_into_one_url(void **state)
{
    (void)state;
    for (size_t i = 0; i < df_routes.count; i++) {
        char *raw = df_strf("/x?%s", df_routes.rows[i].query ? df_routes.rows[i].query : "");
        struct df_target t = {0};
        assert_non_null(raw);
        for (char *p = raw; *p; p++)
            *p = *p == ' ' ? '&' : *p;
        if (df_target_parse(raw, &t, NULL) < 0)
            fail_msg("refused: %s of %s", raw, df_routes.rows[i].pattern);
        df_target_free(&t);
        free(raw);
    }
}

static void a_route_is_sound(void **state)
{
    (void)state;
    const size_t count = df_routes.count;
    const struct df_route *routes = df_routes.rows;
    for (size_t i = 0; i < count; i++) {
        const struct df_route *r = &routes[i];
        assert_non_null(r->handler);
        assert_int_equal(r->body == DF_BODY_NONE, r->body_max == 0);
        assert_true(!r->audit || r->kind);
        /* Whoever changes something is recorded; runners speak for themselves. */
        bool asks = r->handler == df_review_admission; /* and changes no document */
        bool changes = strcmp(r->method, "GET") != 0 && !asks;
        if (changes && r->access != DF_ACCESS_STEP && !r->audit)
            fail_msg("%s %s is not audited", r->method, r->pattern);
        /* What anyone may call must not change anything. */
        assert_true(r->access != DF_ACCESS_ANYONE || !changes);
        /* Who sends a body is known before it is read. */
        assert_true(r->access != DF_ACCESS_STEP || r->gate);
        assert_true(r->access != DF_ACCESS_ANYONE || r->body == DF_BODY_NONE || r->gate);
    }
}

static void head_works_where_get_does(void **state)
{
    (void)state;
    const struct df_route *found = NULL;
    const char *params[DF_ROUTE_PARAMS];
    char allow[64];
    struct df_target t;
    assert_int_equal(find("HEAD", "/v1/runs/x", &found, params, allow, &t, NULL), 0);
    assert_string_equal(found->method, "GET");
    df_target_free(&t);
}

static void a_wrong_method_is_told_the_right_ones(void **state)
{
    (void)state;
    const struct df_route *found = NULL;
    const char *params[DF_ROUTE_PARAMS];
    char allow[64];
    struct df_target t;
    struct df_err err = {0};
    assert_int_equal(find("BREW", "/v1/executors/x", &found, params, allow, &t, &err), -1);
    assert_int_equal(df_problem_status(&err), 405);
    assert_string_equal(allow, "GET, HEAD, PUT, PATCH, DELETE");
    df_target_free(&t);
    assert_int_equal(find("get", "/v1/executors/x", &found, params, allow, &t, &err), -1);
    df_target_free(&t);
    assert_int_equal(find("PUT", "/v1/executors/x/state", &found, params, allow, &t, &err), -1);
    assert_string_equal(allow, "GET, HEAD, POST, DELETE, LOCK, UNLOCK");
    df_target_free(&t);
}

static void paths_that_are_none_of_ours_are_not_found(void **state)
{
    (void)state;
    static const char *const raw[] = {"/",
                                      "/v1",
                                      "/v1/",
                                      "/v1/runs/",
                                      "//v1/runs",
                                      "/v1//runs",
                                      "/v1/runs//log",
                                      "/V1/runs",
                                      "/v1/runs/x/log/",
                                      "/v1/runs/x/logs",
                                      "/v1/runss",
                                      "/v1/run",
                                      "/1/2/3/4/5/6/7/8/9",
                                      "/v1/executors/x/state/errored/y/push/z/z/z"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(raw); i++) {
        const struct df_route *found = NULL;
        const char *params[DF_ROUTE_PARAMS];
        char allow[64];
        struct df_target t;
        struct df_err err = {0};
        if (find("GET", raw[i], &found, params, allow, &t, &err) == 0)
            fail_msg("found: %s", raw[i]);
        assert_int_equal(df_problem_status(&err), 404);
        df_target_free(&t);
    }
}

static void a_query_parameter_is_matched_as_a_whole_word(void **state)
{
    (void)state;
    const struct df_route r = {.query = "limit cursor namePrefix"};
    assert_true(df_route_has_query(&r, "limit"));
    assert_true(df_route_has_query(&r, "cursor"));
    assert_true(df_route_has_query(&r, "namePrefix"));
    assert_false(df_route_has_query(&r, "lim"));
    assert_false(df_route_has_query(&r, "name"));
    assert_false(df_route_has_query(&r, "cursors"));
    assert_false(df_route_has_query(&r, ""));
    assert_false(df_route_has_query(&(struct df_route){0}, "limit"));
}

/* ---- problems ---- */

static void failures_become_the_status_of_their_reason_or_class(void **state)
{
    (void)state;
    static const struct {
        enum df_err_class cls;
        int os_errno;
        const char *reason;
        int status;
    } cases[] = {
        {DF_ERR_USER, 0, "", 400},
        {DF_ERR_USER, 0, "InvalidDocument", 400},
        {DF_ERR_USER, 0, "UnsupportedMediaType", 415},
        {DF_ERR_USER, 0, "IdempotencyKeyReused", 422},
        {DF_ERR_DENIED, 0, "Unauthorized", 401},
        {DF_ERR_DENIED, 0, "", 403},
        {DF_ERR_DENIED, EACCES, "", 500}, /* our own file */
        {DF_ERR_DENIED, 0, "PlanCorrupt", 409},
        {DF_ERR_NOT_FOUND, 0, "", 404},
        {DF_ERR_CONFLICT, 0, "WrongState", 409},
        {DF_ERR_CONFLICT, 0, "AlreadyClaimed", 409},
        {DF_ERR_CONFLICT, 0, "StepOver", 410},
        {DF_ERR_CONFLICT, 0, "PreconditionFailed", 412},
        {DF_ERR_CONFLICT, 0, "StateLocked", 423},
        {DF_ERR_RETRY, 0, "", 503},
        {DF_ERR_LIMIT, 0, "", 413},
        {DF_ERR_LIMIT, ENOSPC, "", 507},
        {DF_ERR_LIMIT, EDQUOT, "", 507},
        {DF_ERR_LIMIT, EMFILE, "", 503},
        {DF_ERR_SYSTEM, EIO, "", 500},
        {DF_ERR_BUG, 0, "", 500},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        struct df_err err = {.cls = cases[i].cls, .os_errno = cases[i].os_errno};
        (void)snprintf(err.reason, sizeof(err.reason), "%s", cases[i].reason);
        if (df_problem_status(&err) != cases[i].status)
            fail_msg("case %zu: %d", i, df_problem_status(&err));
    }
    struct df_err oom = {0};
    (void)df_fail_oom(&oom);
    assert_int_equal(df_problem_status(&oom), 503);
}

static cJSON *written(const struct df_err *problem, const cJSON *extra)
{
    DF_BUF struct df_buf out = DF_BUF_INIT(8192);
    cJSON *doc = NULL;
    assert_int_equal(df_problem_write(problem, extra, &out, NULL), 0);
    assert_int_equal(df_json_parse(df_buf_str(&out), out.len, &doc, NULL), 0);
    return doc;
}

static void a_problem_has_a_stable_type_and_the_message(void **state)
{
    (void)state;
    struct df_err err = {0};
    (void)df_fail_reason(&err, DF_ERR_CONFLICT, "Gap", "the stream ends at %d", 7);
    DF_JSON cJSON *extra = cJSON_CreateObject();
    assert_int_equal(df_json_add_num(extra, "offset", 7, NULL), 0);
    DF_JSON cJSON *doc = written(&err, extra);
    assert_string_equal(df_json_str(doc, "type"), "https://dayfly.dev/problems/Gap");
    assert_string_equal(df_json_str(doc, "detail"), "the stream ends at 7");
    assert_string_equal(df_json_str(doc, "title"), "Conflict");
    assert_int_equal(df_json_int(doc, "status", 0), 409);
    assert_int_equal(df_json_int(doc, "offset", 0), 7);
}

static void a_failure_without_a_reason_has_the_one_of_its_status(void **state)
{
    (void)state;
    struct df_err err = {0};
    (void)df_fail(&err, DF_ERR_NOT_FOUND, "no run x");
    DF_JSON cJSON *doc = written(&err, NULL);
    assert_string_equal(df_json_str(doc, "type"), "https://dayfly.dev/problems/NotFound");
}

static void a_message_cut_inside_a_character_is_still_json(void **state)
{
    (void)state;
    struct df_err err = {.cls = DF_ERR_USER, .message = "caf\xc3"};
    DF_JSON cJSON *cut = written(&err, NULL);
    assert_string_equal(df_json_str(cut, "detail"), "caf");
    struct df_err foreign = {.cls = DF_ERR_USER, .message = "a\xff\xfe\xfd\xfc\xfb z"};
    DF_JSON cJSON *odd = written(&foreign, NULL);
    assert_string_equal(df_json_str(odd, "detail"), "a????? z");
}

static void the_program_carries_its_openapi_file(void **state)
{
    (void)state;
    static const char begin[] = "openapi: 3.1.0\n";
    assert_true(df_openapi_len() > 1000);
    assert_memory_equal(df_openapi, begin, sizeof(begin) - 1);
    assert_int_equal(df_openapi[df_openapi_len() - 1], '\n');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_path_is_split_and_decoded_once),
        cmocka_unit_test(what_was_decoded_is_not_decoded_again),
        cmocka_unit_test(the_absolute_form_means_its_path),
        cmocka_unit_test(tricks_with_paths_and_queries_are_refused),
        cmocka_unit_test(a_path_deeper_than_any_route_is_counted_and_not_kept),
        cmocka_unit_test(every_route_is_found_by_its_own_pattern),
        cmocka_unit_test(all_parameters_of_a_route_fit_into_one_url),
        cmocka_unit_test(a_route_is_sound),
        cmocka_unit_test(head_works_where_get_does),
        cmocka_unit_test(a_wrong_method_is_told_the_right_ones),
        cmocka_unit_test(paths_that_are_none_of_ours_are_not_found),
        cmocka_unit_test(a_query_parameter_is_matched_as_a_whole_word),
        cmocka_unit_test(failures_become_the_status_of_their_reason_or_class),
        cmocka_unit_test(a_problem_has_a_stable_type_and_the_message),
        cmocka_unit_test(a_failure_without_a_reason_has_the_one_of_its_status),
        cmocka_unit_test(a_message_cut_inside_a_character_is_still_json),
        cmocka_unit_test(the_program_carries_its_openapi_file),
    };
    return cmocka_run_group_tests_name("routes", tests, NULL, NULL);
}
