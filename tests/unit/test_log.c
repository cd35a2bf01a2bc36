#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>

#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/json/json.h"
#include "tests/unit/scratch.h"

/* ---- what arrives on stderr ---- */

static int real_stderr = -1;

static void catch_stderr(const char *dir)
{
    DF_FREE char *path = df_fs_join(dir, "stderr");
    DF_CLOSE int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
    real_stderr = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
    assert_true(fd >= 0 && real_stderr >= 0);
    assert_int_equal(dup2(fd, STDERR_FILENO), STDERR_FILENO);
}

static void read_caught(const char *dir, struct df_buf *b)
{
    DF_FREE char *path = df_fs_join(dir, "stderr");
    assert_int_equal(dup2(real_stderr, STDERR_FILENO), STDERR_FILENO);
    (void)close(real_stderr);
    assert_int_equal(df_fs_read(path, b, NULL), 0);
}

static cJSON *parse_line(const char *line, size_t n)
{
    struct df_err err = {0};
    cJSON *j = NULL;
    if (df_json_parse(line, n, &j, &err) < 0)
        fail_msg("%.*s: %s", (int)n, line, err.message);
    return j;
}

static void a_json_line_says_when_what_and_where(void **state)
{
    df_log_setup(DF_LOG_INFO, true, "spawner");
    catch_stderr(*state);
    df_log_context("net-1", "net-1-plan");
    df_info("step %d started", 1);
    df_log_context(NULL, NULL);
    df_error("done");
    DF_BUF struct df_buf b = DF_BUF_INIT(DF_MIB);
    read_caught(*state, &b);
    size_t n = strcspn(df_buf_str(&b), "\n");
    DF_JSON cJSON *first = parse_line(df_buf_str(&b), n);
    DF_JSON cJSON *second = parse_line(df_buf_str(&b) + n + 1, b.len - n - 2);
    assert_int_equal(strlen(df_json_str(first, "ts")), 27);
    assert_string_equal(df_json_str(first, "level"), "info");
    assert_string_equal(df_json_str(first, "component"), "spawner");
    assert_string_equal(df_json_str(first, "msg"), "step 1 started");
    assert_string_equal(df_json_str(first, "run"), "net-1");
    assert_string_equal(df_json_str(first, "step"), "net-1-plan");
    assert_string_equal(df_json_str(second, "level"), "error");
    assert_null(df_json_str(second, "run"));
}

static void a_line_of_an_action_names_its_trace_and_what_it_works_on(void **state)
{
    df_log_setup(DF_LOG_INFO, true, "platform");
    df_log_action("deploy");
    df_log_trace("0123456789abcdef0123456789abcdef", "00000000000000aa");
    catch_stderr(*state);
    df_info("begins");
    df_log_component("cert-manager", "00000000000000bb");
    df_info("waits");
    df_log_component(NULL, NULL);
    df_log_action(NULL);
    df_log_trace(NULL, NULL);
    df_info("over");
    DF_BUF struct df_buf b = DF_BUF_INIT(DF_MIB);
    read_caught(*state, &b);
    const char *second = strchr(df_buf_str(&b), '\n') + 1, *third = strchr(second, '\n') + 1;
    DF_JSON cJSON *begins = parse_line(b.data, (size_t)(second - b.data - 1));
    DF_JSON cJSON *waits = parse_line(second, (size_t)(third - second - 1));
    assert_string_equal(df_json_str(begins, "action"), "deploy");
    assert_string_equal(df_json_str(begins, "component"), "platform");
    assert_string_equal(df_json_str(begins, "span_id"), "00000000000000aa");
    assert_string_equal(df_json_str(waits, "trace_id"), "0123456789abcdef0123456789abcdef");
    assert_string_equal(df_json_str(waits, "component"), "cert-manager");
    assert_string_equal(df_json_str(waits, "span_id"), "00000000000000bb");
    assert_null(strstr(third, "trace_id"));
    assert_null(strstr(third, "action"));
}

static void text_for_people_has_no_ids(void **state)
{
    df_log_setup(DF_LOG_INFO, false, "platform");
    df_log_trace("0123456789abcdef0123456789abcdef", "00000000000000aa");
    catch_stderr(*state);
    df_log_component("app", "00000000000000bb");
    df_info("waits");
    df_log_component(NULL, NULL);
    df_log_trace(NULL, NULL);
    DF_BUF struct df_buf b = DF_BUF_INIT(DF_MIB);
    read_caught(*state, &b);
    assert_true(df_ends_with(df_buf_str(&b), " info  waits component=\"app\"\n"));
}

/* Nothing reads a text line but a person; a field ends at a quote, a line at its end. */
static void text_for_people_has_its_quotes_as_they_are(void **state)
{
    df_log_setup(DF_LOG_INFO, false, "platform");
    catch_stderr(*state);
    df_log_component("a\"b\\c", NULL);
    df_info("\"prod\" matches \\d+\n\x1b");
    df_log_component(NULL, NULL);
    DF_BUF struct df_buf b = DF_BUF_INIT(DF_MIB);
    read_caught(*state, &b);
    assert_true(df_ends_with(df_buf_str(&b), " info  \"prod\" matches \\d+\\u000a\\u001b "
                                             "component=\"a\\\"b\\\\c\"\n"));
}

static void the_environment_sets_level_and_format(void **state)
{
    static const struct {
        const char *level, *format;
        bool json_else, shows_info, is_json;
    } cases[] = {
        {"LOG_LEVEL=", "LOG_FORMAT=", false, true, false},
        {"LOG_LEVEL=", "LOG_FORMAT=", true, true, true},
        {"LOG_LEVEL=error", "LOG_FORMAT=json", false, false, true},
        {"LOG_LEVEL=debug", "LOG_FORMAT=text", true, true, false},
    };
    char **before = environ;
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        const char *const variables[] = {cases[i].level, cases[i].format, NULL};
        environ = (char **)(uintptr_t)variables;
        int result = df_log_setup_environment(cases[i].json_else, "x", NULL);
        environ = before;
        assert_int_equal(result, 0);
        catch_stderr(*state);
        df_info("info");
        df_error("error");
        DF_BUF struct df_buf b = DF_BUF_INIT(DF_MIB);
        read_caught(*state, &b);
        assert_int_equal(strstr(df_buf_str(&b), "info") != NULL, cases[i].shows_info);
        assert_int_equal(*df_buf_str(&b) == '{', cases[i].is_json);
    }
}

static void other_words_in_the_environment_are_refused_by_the_variable(void **state)
{
    (void)state;
    static const char *const wrong[] = {"LOG_LEVEL=loud", "LOG_LEVEL=INFO", "LOG_FORMAT=xml"};
    char **before = environ;
    for (size_t i = 0; i < DF_ARRAY_SIZE(wrong); i++) {
        struct df_err err = {0};
        const char *const variables[] = {wrong[i], NULL};
        environ = (char **)(uintptr_t)variables;
        int result = df_log_setup_environment(false, "x", &err);
        environ = before;
        assert_int_equal(result, -1);
        assert_int_equal(strncmp(err.message, wrong[i], strcspn(wrong[i], "=")), 0);
        assert_non_null(strstr(err.message, strchr(wrong[i], '=') + 1));
    }
}

/* A line tells the fault, in the form that was asked for. */
static void a_wrong_level_leaves_the_format_and_the_other_way_round(void **state)
{
    static const struct {
        const char *level, *format;
        bool shows_info, is_json;
    } cases[] = {
        {"LOG_LEVEL=loud", "LOG_FORMAT=text", true, false},
        {"LOG_LEVEL=error", "LOG_FORMAT=xml", false, true},
    };
    char **before = environ;
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        const char *const variables[] = {cases[i].level, cases[i].format, NULL};
        environ = (char **)(uintptr_t)variables;
        int result = df_log_setup_environment(true, "x", NULL);
        environ = before;
        assert_int_equal(result, -1);
        catch_stderr(*state);
        df_info("info");
        df_error("error");
        DF_BUF struct df_buf b = DF_BUF_INIT(DF_MIB);
        read_caught(*state, &b);
        assert_int_equal(strstr(df_buf_str(&b), "info") != NULL, cases[i].shows_info);
        assert_int_equal(*df_buf_str(&b) == '{', cases[i].is_json);
    }
}

static void the_log_goes_where_it_is_told_to(void **state)
{
    DF_FREE char *path = df_fs_join(*state, "log");
    DF_CLOSE int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    df_log_setup(DF_LOG_INFO, false, "x");
    catch_stderr(*state);
    df_log_to(fd);
    df_info("there");
    df_log_to(STDERR_FILENO);
    DF_BUF struct df_buf b = DF_BUF_INIT(DF_MIB), caught = DF_BUF_INIT(DF_MIB);
    read_caught(*state, &caught);
    assert_int_equal(df_fs_read(path, &b, NULL), 0);
    assert_int_equal(caught.len, 0);
    assert_non_null(strstr(df_buf_str(&b), "there"));
}

static void lines_below_the_level_are_not_written(void **state)
{
    df_log_setup(DF_LOG_WARN, true, "x");
    catch_stderr(*state);
    df_debug("no");
    df_info("no");
    df_warn("yes");
    DF_BUF struct df_buf b = DF_BUF_INIT(DF_MIB);
    read_caught(*state, &b);
    assert_null(strstr(df_buf_str(&b), "no"));
    assert_non_null(strstr(df_buf_str(&b), "yes"));
}

static void no_input_can_forge_a_line(void **state)
{
    static const char *const hostile[] = {
        "a\nb",
        "a\r\nb",
        "\x1b[31mred",
        "\",\"level\":\"error",
        "\\",
        "\x7f",
        "\xff\xfe",
        ("\xc2\x9b"
         "31m"),
        "\xe2\x82",
        "ok \xc3\xa9",
    };
    for (int json = 0; json < 2; json++) {
        df_log_setup(DF_LOG_INFO, json, "x");
        catch_stderr(*state);
        for (size_t i = 0; i < DF_ARRAY_SIZE(hostile); i++) {
            df_log_context(hostile[i], NULL);
            df_info("%s", hostile[i]);
        }
        df_log_context(NULL, NULL);
        DF_BUF struct df_buf b = DF_BUF_INIT(DF_MIB);
        read_caught(*state, &b);
        size_t lines = 0;
        for (const char *p = df_buf_str(&b); *p; lines++) {
            size_t n = strcspn(p, "\n");
            for (size_t i = 0; i < n; i++)
                assert_true((unsigned char)p[i] >= 0x20 && p[i] != 0x7f);
            assert_null(memmem(p, n, "\xc2\x9b", 2));
            DF_JSON cJSON *j = json ? parse_line(p, n) : NULL;
            assert_true(!json || df_streq(df_json_str(j, "level"), "info"));
            p += n + 1;
        }
        assert_int_equal(lines, DF_ARRAY_SIZE(hostile));
    }
}

static void a_long_message_is_cut_to_a_whole_line(void **state)
{
    DF_FREE char *longer = malloc(100001);
    assert_non_null(longer);
    memset(longer, '\x01', 100000);
    longer[100000] = '\0';
    df_log_setup(DF_LOG_INFO, true, "x");
    catch_stderr(*state);
    df_log_context(longer, longer);
    df_info("%s", longer);
    df_log_context(NULL, NULL);
    DF_BUF struct df_buf b = DF_BUF_INIT(DF_MIB);
    read_caught(*state, &b);
    assert_true(b.len > 1000 && b.len <= DF_LIMIT_LOG_RECORD);
    DF_JSON cJSON *j = parse_line(df_buf_str(&b), b.len);
    assert_non_null(df_json_str(j, "msg"));
}

static void *write_lines(void *arg)
{
    df_log_context(arg, NULL);
    for (int i = 0; i < 500; i++)
        df_info("line %d of many", i);
    return NULL;
}

static void lines_of_threads_do_not_mix(void **state)
{
    pthread_t threads[4];
    static char names[4][4] = {"a", "b", "c", "d"};
    df_log_setup(DF_LOG_INFO, true, "x");
    catch_stderr(*state);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, write_lines, names[i]), 0);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    DF_BUF struct df_buf b = DF_BUF_INIT(4 * DF_MIB);
    read_caught(*state, &b);
    size_t lines = 0;
    for (const char *p = df_buf_str(&b); *p; lines++) {
        size_t n = strcspn(p, "\n");
        DF_JSON cJSON *j = parse_line(p, n);
        assert_int_equal(strlen(df_json_str(j, "run")), 1);
        p += n + 1;
    }
    assert_int_equal(lines, 2000);
}

static void words_of_levels_are_read(void **state)
{
    (void)state;
    static const char *const words[] = {"debug", "info", "warn", "error"};
    enum df_log_level level = DF_LOG_DEBUG;
    for (size_t i = 0; i < DF_ARRAY_SIZE(words); i++) {
        assert_int_equal(df_log_level_parse(words[i], &level, NULL), 0);
        assert_int_equal(level, i);
    }
    struct df_err err = {0};
    assert_int_equal(df_log_level_parse("loud", &level, &err), -1);
    assert_int_equal(err.cls, DF_ERR_USER);
    assert_int_equal(df_log_level_parse(NULL, &level, &err), -1);
    assert_int_equal(level, DF_LOG_ERROR);
}

static void a_line_that_repeats_is_written_once_and_then_each_minute_with_a_count(void **state)
{
    (void)state;
    struct df_log_gate gate = {0};
    unsigned skipped = 7;
    const int64_t second = 1000000;
    assert_true(df_log_gate_passes(&gate, 5 * second, &skipped));
    assert_int_equal(skipped, 0);
    for (int64_t at = 5; at < 65; at++)
        assert_false(df_log_gate_passes(&gate, at * second, &skipped));
    assert_true(df_log_gate_passes(&gate, 65 * second, &skipped));
    assert_int_equal(skipped, 60);
    assert_true(df_log_gate_passes(&gate, 500 * second, &skipped));
    assert_int_equal(skipped, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scratch_test(a_json_line_says_when_what_and_where),
        scratch_test(a_line_of_an_action_names_its_trace_and_what_it_works_on),
        scratch_test(text_for_people_has_no_ids),
        scratch_test(text_for_people_has_its_quotes_as_they_are),
        scratch_test(the_environment_sets_level_and_format),
        cmocka_unit_test(other_words_in_the_environment_are_refused_by_the_variable),
        scratch_test(a_wrong_level_leaves_the_format_and_the_other_way_round),
        scratch_test(the_log_goes_where_it_is_told_to),
        scratch_test(lines_below_the_level_are_not_written),
        scratch_test(no_input_can_forge_a_line),
        scratch_test(a_long_message_is_cut_to_a_whole_line),
        scratch_test(lines_of_threads_do_not_mix),
        scratch_test(words_of_levels_are_read),
        cmocka_unit_test(a_line_that_repeats_is_written_once_and_then_each_minute_with_a_count),
    };
    return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}
