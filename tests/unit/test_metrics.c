#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/limits.h"
#include "common/metrics/metrics.h"

/* The lines of one metric in the exposition: all metrics of the process stand in it. */
static void lines_of(const char *name, struct df_buf *ret)
{
    struct df_err err = {0};
    DF_BUF struct df_buf all = DF_BUF_INIT(4 * DF_MIB);
    assert_int_equal(df_metrics_write(&all, &err), 0);
    for (const char *line = df_buf_str(&all); *line;) {
        size_t n = strcspn(line, "\n") + 1;
        const char *text = df_starts_with(line, "# ") ? line + 7 : line;
        size_t length = strlen(name);
        if (strncmp(text, name, length) == 0 && strchr(" {_", text[length]))
            assert_int_equal(df_buf_add(ret, line, n), 0);
        line += n;
    }
}

static void assert_lines(const char *name, const char *want)
{
    DF_BUF struct df_buf got = DF_BUF_INIT(4 * DF_MIB);
    lines_of(name, &got);
    assert_string_equal(df_buf_str(&got), want);
}

static void a_counter_counts_each_set_of_labels(void **state)
{
    (void)state;
    struct df_metric *m = df_metric_counter("t_requests_total", "Requests.", "method,code");
    assert_lines("t_requests_total", "# HELP t_requests_total Requests.\n"
                                     "# TYPE t_requests_total counter\n");
    df_metric_add(m, "GET,200", 1);
    df_metric_add(m, "POST,201", 1);
    df_metric_add(m, "GET,200", 2);
    assert_lines("t_requests_total", "# HELP t_requests_total Requests.\n"
                                     "# TYPE t_requests_total counter\n"
                                     "t_requests_total{method=\"GET\",code=\"200\"} 3\n"
                                     "t_requests_total{method=\"POST\",code=\"201\"} 1\n");
}

static void a_metric_without_labels_is_there_from_the_start(void **state)
{
    (void)state;
    struct df_metric *m = df_metric_gauge("t_depth", "Depth.", NULL);
    assert_lines("t_depth", "# HELP t_depth Depth.\n# TYPE t_depth gauge\nt_depth 0\n");
    df_metric_set(m, NULL, 2.5);
    df_metric_add(m, NULL, -0.5);
    df_metric_add(m, "ignored", 1);
    assert_lines("t_depth", "# HELP t_depth Depth.\n# TYPE t_depth gauge\nt_depth 3\n");
}

static void a_histogram_is_cumulative(void **state)
{
    (void)state;
    static const double bounds[] = {0.1, 1, 10};
    struct df_metric *m =
        df_metric_histogram("t_seconds", "Time.", "stage", bounds, DF_ARRAY_SIZE(bounds));
    static const double values[] = {0.05, 0.1, 0.5, 10, 11};
    for (size_t i = 0; i < DF_ARRAY_SIZE(values); i++)
        df_metric_observe(m, "plan", values[i]);
    assert_lines("t_seconds", "# HELP t_seconds Time.\n"
                              "# TYPE t_seconds histogram\n"
                              "t_seconds_bucket{stage=\"plan\",le=\"0.1\"} 2\n"
                              "t_seconds_bucket{stage=\"plan\",le=\"1\"} 3\n"
                              "t_seconds_bucket{stage=\"plan\",le=\"10\"} 4\n"
                              "t_seconds_bucket{stage=\"plan\",le=\"+Inf\"} 5\n"
                              "t_seconds_sum{stage=\"plan\"} 21.65\n"
                              "t_seconds_count{stage=\"plan\"} 5\n");
}

static void a_histogram_without_labels_has_only_its_bounds(void **state)
{
    (void)state;
    static const double bounds[] = {1};
    struct df_metric *m = df_metric_histogram("t_bytes", "Bytes.", NULL, bounds, 1);
    df_metric_observe(m, NULL, 1);
    assert_lines("t_bytes", "# HELP t_bytes Bytes.\n"
                            "# TYPE t_bytes histogram\n"
                            "t_bytes_bucket{le=\"1\"} 1\n"
                            "t_bytes_bucket{le=\"+Inf\"} 1\n"
                            "t_bytes_sum 1\n"
                            "t_bytes_count 1\n");
}

static void signs_that_mean_something_are_escaped(void **state)
{
    (void)state;
    struct df_metric *m = df_metric_counter("t_odd_total", "a\\b\n\"c\"", "first,last");
    df_metric_add(m, "q\"b\\n\n,rest,of it", 1);
    df_metric_add(m, "alone", 1);
    assert_lines("t_odd_total", "# HELP t_odd_total a\\\\b\\n\"c\"\n"
                                "# TYPE t_odd_total counter\n"
                                "t_odd_total{first=\"q\\\"b\\\\n\\n\",last=\"rest,of it\"} 1\n"
                                "t_odd_total{first=\"alone\",last=\"\"} 1\n");
}

static void numbers_are_written_so_that_they_read_back(void **state)
{
    static const struct {
        double value;
        const char *want;
    } cases[] = {
        {0, "t_number 0\n"},
        {0.1, "t_number 0.1\n"},
        {1e21, "t_number 1e+21\n"},
        {123456789012345, "t_number 123456789012345\n"},
        {9007199254740991, "t_number 9007199254740991\n"},
        {1.0 / 3, "t_number 0.33333333333333331\n"},
        {-1.0 / 0.0, "t_number -Inf\n"},
        {1.0 / 0.0, "t_number +Inf\n"},
    };
    (void)state;
    struct df_metric *m = df_metric_gauge("t_number", "N.", NULL);
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        df_metric_set(m, NULL, cases[i].value);
        DF_BUF struct df_buf got = DF_BUF_INIT(1000);
        lines_of("t_number", &got);
        assert_string_equal(strstr(df_buf_str(&got), "gauge\n") + strlen("gauge\n"), cases[i].want);
    }
}

static void a_name_declared_twice_is_one_metric(void **state)
{
    (void)state;
    struct df_metric *m = df_metric_counter("t_twice_total", "Twice.", NULL);
    assert_ptr_equal(df_metric_counter("t_twice_total", "Twice.", NULL), m);
}

static void nothing_is_a_metric_too(void **state)
{
    (void)state;
    df_metric_add(NULL, "x", 1);
    df_metric_set(NULL, NULL, 1);
    df_metric_observe(NULL, NULL, 1);
}

static void too_many_sets_go_to_other(void **state)
{
    (void)state;
    struct df_metric *m = df_metric_counter("t_flood_total", "Flood.", "a,b");
    for (int i = 0; i < DF_LIMIT_METRIC_SERIES + 500; i++) {
        char labels[32];
        (void)snprintf(labels, sizeof(labels), "x%d,y", i);
        df_metric_add(m, labels, 1);
    }
    df_metric_add(m, "x5,y", 1);
    DF_BUF struct df_buf got = DF_BUF_INIT(4 * DF_MIB);
    lines_of("t_flood_total", &got);
    int lines = 0;
    for (const char *p = df_buf_str(&got); (p = strchr(p, '\n')); p++)
        lines++;
    assert_int_equal(lines, 2 + DF_LIMIT_METRIC_SERIES);
    assert_non_null(strstr(df_buf_str(&got), "{a=\"other\",b=\"other\"} 501\n"));
    assert_non_null(strstr(df_buf_str(&got), "{a=\"x5\",b=\"y\"} 2\n"));
}

static void an_exposition_that_does_not_fit_is_a_limit(void **state)
{
    (void)state;
    struct df_err err = {0};
    (void)df_metric_gauge("t_depth", "Depth.", NULL);
    DF_BUF struct df_buf small = DF_BUF_INIT(10);
    assert_int_equal(df_metrics_write(&small, &err), -1);
    assert_int_equal(err.cls, DF_ERR_LIMIT);
}

static void *count_a_lot(void *arg)
{
    struct df_metric *m = arg;
    for (int i = 0; i < 1000; i++) {
        char labels[8];
        (void)snprintf(labels, sizeof(labels), "%d", i % 7);
        df_metric_add(m, labels, 1);
        (void)df_metric_counter("t_threads_total", "Threads.", "n");
    }
    return NULL;
}

static void threads_may_count_and_read_at_once(void **state)
{
    (void)state;
    struct df_metric *m = df_metric_counter("t_threads_total", "Threads.", "n");
    pthread_t threads[4];
    for (size_t i = 0; i < DF_ARRAY_SIZE(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, count_a_lot, m), 0);
    for (int i = 0; i < 20; i++) {
        DF_BUF struct df_buf out = DF_BUF_INIT(4 * DF_MIB);
        assert_int_equal(df_metrics_write(&out, NULL), 0);
    }
    for (size_t i = 0; i < DF_ARRAY_SIZE(threads); i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    DF_BUF struct df_buf got = DF_BUF_INIT(4 * DF_MIB);
    lines_of("t_threads_total", &got);
    assert_non_null(strstr(df_buf_str(&got), "{n=\"6\"} 568\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_counter_counts_each_set_of_labels),
        cmocka_unit_test(a_metric_without_labels_is_there_from_the_start),
        cmocka_unit_test(a_histogram_is_cumulative),
        cmocka_unit_test(a_histogram_without_labels_has_only_its_bounds),
        cmocka_unit_test(signs_that_mean_something_are_escaped),
        cmocka_unit_test(numbers_are_written_so_that_they_read_back),
        cmocka_unit_test(a_name_declared_twice_is_one_metric),
        cmocka_unit_test(nothing_is_a_metric_too),
        cmocka_unit_test(too_many_sets_go_to_other),
        cmocka_unit_test(an_exposition_that_does_not_fit_is_a_limit),
        cmocka_unit_test(threads_may_count_and_read_at_once),
    };
    return cmocka_run_group_tests_name("metrics", tests, NULL, NULL);
}
