#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/parse.h"
#include "runner/report/termination.h"
#include "tests/unit/scratch.h"

static cJSON *result_with(const char *message, int times)
{
    cJSON *r = cJSON_CreateObject();
    assert_int_equal(df_json_add_num(r, "exitCode", 2, NULL), 0);
    assert_int_equal(df_json_add_str(r, "reason", "ApplyFailed", NULL), 0);
    assert_int_equal(df_json_add_str(r, "message", message, NULL), 0);
    for (int i = 0; i < times; i++) {
        cJSON *one = cJSON_CreateObject();
        assert_int_equal(df_json_add_str(one, "name", "executed", NULL), 0);
        assert_int_equal(df_json_add_time(one, "at", i, NULL), 0);
        assert_int_equal(df_json_append(df_json_array_at(r, "timeline"), one, NULL), 0);
    }
    return r;
}

static cJSON *read_back(const cJSON *result)
{
    DF_FREE char *text = NULL;
    cJSON *back = NULL;
    assert_int_equal(df_termination_text(result, &text, NULL), 0);
    assert_true(strlen(text) <= DF_TERMINATION_MAX);
    assert_int_equal(df_json_parse(text, strlen(text), &back, NULL), 0);
    assert_int_equal(df_json_int(back, "exitCode", -1), 2);
    assert_string_equal(df_json_str(back, "reason"), "ApplyFailed");
    return back;
}

static void a_result_that_fits_is_kept_whole(void **state)
{
    (void)state;
    DF_JSON cJSON *r = result_with("it broke", 3);
    DF_JSON cJSON *back = read_back(r);
    assert_true(df_json_equal(r, back));
}

static void a_long_result_loses_its_timeline_before_its_message(void **state)
{
    (void)state;
    DF_JSON cJSON *r = result_with("it broke", 200);
    DF_JSON cJSON *back = read_back(r);
    assert_null(df_json_at(back, "timeline"));
    assert_string_equal(df_json_str(back, "message"), "it broke");
}

static void a_long_message_is_cut_and_stays_text(void **state)
{
    (void)state;
    static const char *const units[] = {"x", "\"", "\n", "\xC3\xA4", "\xF0\x9F\x98\x80", "\x01"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(units); i++) {
        DF_BUF struct df_buf message = DF_BUF_INIT(64 * DF_KIB);
        while (message.len < 20000)
            (void)df_buf_adds(&message, units[i]);
        DF_JSON cJSON *r = result_with(df_buf_str(&message), 5);
        DF_JSON cJSON *back = read_back(r);
        const char *kept = df_json_str(back, "message");
        size_t n = strlen(kept);
        assert_true(n > 500 && n % strlen(units[i]) == 0);
        assert_true(df_is_utf8(kept, n));
        assert_memory_equal(kept, df_buf_str(&message), n);
    }
}

static void a_result_of_every_length_around_the_cap_is_within_it(void **state)
{
    (void)state;
    char message[4200];
    for (size_t n = 3900; n < sizeof(message) - 1; n++) {
        memset(message, 'x', n);
        message[n] = '\0';
        DF_JSON cJSON *r = result_with(message, 0);
        DF_JSON cJSON *back = read_back(r);
        DF_FREE char *whole = df_json_print(r);
        assert_int_equal(df_json_equal(r, back), strlen(whole) <= DF_TERMINATION_MAX);
    }
}

static void what_cannot_be_cut_is_an_error(void **state)
{
    (void)state;
    DF_JSON cJSON *r = result_with("", 0);
    DF_FREE char *large = malloc(5000);
    DF_FREE char *text = NULL;
    struct df_err err = {0};
    memset(large, 'x', 4999);
    large[4999] = '\0';
    assert_int_equal(df_json_set_str(r, "reason", large, NULL), 0);
    assert_int_equal(df_termination_text(r, &text, &err), -1);
    assert_int_equal(err.cls, DF_ERR_LIMIT);
}

/* The kubelet mounts the file: it may be written, not replaced, and is not ours to make. */
static void the_file_is_written_in_place_and_never_made(void **state)
{
    DF_FREE char *path = df_fs_join(*state, "log");
    DF_FREE char *link_path = df_fs_join(*state, "link");
    DF_JSON cJSON *r = result_with("it broke", 0);
    DF_BUF struct df_buf b = DF_BUF_INIT(DF_MIB);
    struct df_err err = {0};
    assert_int_equal(df_termination_write(path, r, &err), -1);
    assert_int_equal(err.cls, DF_ERR_NOT_FOUND);
    assert_int_equal(df_fs_replace(path, "older and longer", 16, 0600, NULL), 0);
    assert_int_equal(symlink(path, link_path), 0);
    assert_int_equal(df_termination_write(link_path, r, &err), -1);
    assert_int_equal(df_termination_write(path, r, NULL), 0);
    assert_int_equal(df_fs_read(path, &b, NULL), 0);
    assert_string_equal(df_buf_str(&b),
                        "{\"exitCode\":2,\"reason\":\"ApplyFailed\",\"message\":\"it broke\"}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_result_that_fits_is_kept_whole),
        cmocka_unit_test(a_long_result_loses_its_timeline_before_its_message),
        cmocka_unit_test(a_long_message_is_cut_and_stays_text),
        cmocka_unit_test(a_result_of_every_length_around_the_cap_is_within_it),
        cmocka_unit_test(what_cannot_be_cut_is_an_error),
        scratch_test(the_file_is_written_in_place_and_never_made),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
