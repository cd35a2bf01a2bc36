/* The log of a workflow: what its pods print. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/workflow_world.h"

/* The texts of the parts; NULL: there is no such part. */
static void print_parts(struct world *w, const char *name, const char *first, const char *second)
{
    lock(w);
    struct fake_step *s = fake_find(&w->engine, name);
    s->parts[0][0] = first ? "pod-1" : NULL;
    s->parts[0][1] = first;
    s->parts[1][0] = second ? "pod-2" : NULL;
    s->parts[1][1] = second;
    unlock(w);
}

static void assert_log(struct world *w, const char *name, const char *expected)
{
    DF_FREE char *uid = value_of(w, DF_KIND_TASK_ACTION, name, "metadata.uid");
    DF_BUF struct df_buf log = DF_BUF_INIT(DF_KIB);
    int64_t end = 0;
    assert_int_equal(df_step_read(&w->s, uid, DF_STREAM_LOG, 0, &log, &end, NULL), 0);
    assert_string_equal(df_buf_str(&log), expected);
}

static void await_log(struct world *w, const char *name, int64_t size)
{
    DF_FREE char *uid = value_of(w, DF_KIND_TASK_ACTION, name, "metadata.uid");
    for (int64_t now = 0; now < size; (void)usleep(2000))
        assert_int_equal(df_step_log_size(&w->s, uid, &now, NULL), 0);
}

static void what_a_workflow_prints_is_its_log_while_it_runs_and_when_it_has_ended(void **state)
{
    struct world *w = *state;
    begin_workflow(w, "restart");
    print_parts(w, "restart", "one\n", NULL);
    df_control_notify(w->s.control, "restart");
    await_log(w, "restart", 4);
    print_parts(w, "restart", "one\ntwo\n", NULL);
    end_processes(w, "restart", 0, "");
    await_reason(w, "restart", "Completed");
    assert_log(w, "restart", "one\ntwo\n");
}

/* More than a frame of the stream takes, at once. */
static void what_was_printed_between_two_looks_may_be_long(void **state)
{
    struct world *w = *state;
    const size_t n = 3 * DF_MIB / 2;
    DF_FREE char *text = calloc(1, n + 1);
    assert_non_null(text);
    for (size_t i = 0; i < n; i++)
        text[i] = i % 64 == 63 ? '\n' : (char)('a' + i / 64 % 26);
    begin_workflow(w, "restart");
    print_parts(w, "restart", text, NULL);
    end_processes(w, "restart", 0, "");
    await_reason(w, "restart", "Completed");
    DF_FREE char *uid = value_of(w, DF_KIND_TASK_ACTION, "restart", "metadata.uid");
    DF_BUF struct df_buf log = DF_BUF_INIT(2 * DF_MIB);
    int64_t end = 0;
    assert_int_equal(df_step_read(&w->s, uid, DF_STREAM_LOG, 0, &log, &end, NULL), 0);
    assert_int_equal(end, n);
    assert_memory_equal(df_buf_str(&log), text, n);
}

static void each_pod_has_its_part_of_the_log(void **state)
{
    struct world *w = *state;
    begin_workflow(w, "restart");
    print_parts(w, "restart", "one\n", NULL);
    df_control_notify(w->s.control, "restart");
    await_log(w, "restart", 4);
    print_parts(w, "restart", "one\nand more\n", "again\n");
    end_processes(w, "restart", 0, "");
    await_reason(w, "restart", "Completed");
    assert_log(w, "restart", "one\nand more\nagain\n");
    DF_FREE char *parts = value_of(w, DF_KIND_TASK_ACTION, "restart", "status.logParts");
    assert_string_equal(parts,
                        "[{\"name\":\"pod-1\",\"offset\":0},{\"name\":\"pod-2\",\"offset\":13}]");
}

static void the_log_of_a_pod_that_is_gone_stays(void **state)
{
    struct world *w = *state;
    begin_workflow(w, "restart");
    print_parts(w, "restart", "a long first text\n", NULL);
    df_control_notify(w->s.control, "restart");
    await_log(w, "restart", 18);
    lock(w);
    fake_find(&w->engine, "restart")->parts[0][0] = "pod-2";
    fake_find(&w->engine, "restart")->parts[0][1] = "short\n";
    unlock(w);
    end_processes(w, "restart", 0, "");
    await_reason(w, "restart", "Completed");
    assert_log(w, "restart", "a long first text\nshort\n");
}

struct recorded {
    const char *name;
    int64_t offset;
};

static int record_part(cJSON *task, void *arg, struct df_err *err)
{
    const struct recorded *r = arg;
    cJSON *parts = df_json_array_at(df_json_object_at(task, "status"), "logParts");
    return df_json_append(
        parts, df_json_object(DF_STR("name", r->name), DF_NUM("offset", r->offset)), err);
}

/* The service ended between the two writes. */
static void a_part_that_was_recorded_and_not_copied_is_copied_once(void **state)
{
    struct world *w = *state;
    struct recorded part = {"pod-1", 0};
    ask(w, "restart", APP);
    assert_int_equal(
        df_store_modify(w->s.store, DF_KIND_TASK_ACTION, "restart", record_part, &part, NULL, NULL),
        0);
    print_parts(w, "restart", "one\n", NULL);
    start(w);
    (void)await_start(w, "restart");
    end_processes(w, "restart", 0, "");
    await_reason(w, "restart", "Completed");
    assert_log(w, "restart", "one\n");
}

static void set_output_error(struct world *w, enum df_err_class cls)
{
    lock(w);
    w->engine.output_error = (struct df_err){.cls = cls, .message = "no output"};
    unlock(w);
}

static void the_end_of_a_workflow_waits_for_an_output_that_comes_late(void **state)
{
    struct world *w = *state;
    begin_workflow(w, "restart");
    print_parts(w, "restart", "one\n", "two\n");
    set_output_error(w, DF_ERR_RETRY);
    end_processes(w, "restart", 0, "");
    await_log(w, "restart", 4);
    assert_value(w, DF_KIND_TASK_ACTION, "restart", "status.reason", "");
    set_output_error(w, DF_ERR_NONE);
    df_control_notify(w->s.control, "restart");
    await_reason(w, "restart", "Completed");
    assert_log(w, "restart", "one\ntwo\n");
}

static void an_output_that_may_not_be_read_keeps_no_workflow_from_its_end(void **state)
{
    struct world *w = *state;
    begin_workflow(w, "restart");
    print_parts(w, "restart", "one\n", "two\n");
    set_output_error(w, DF_ERR_DENIED);
    end_processes(w, "restart", 0, "");
    await_reason(w, "restart", "Completed");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_a_workflow_prints_is_its_log_while_it_runs_and_when_it_has_ended),
        TEST(what_was_printed_between_two_looks_may_be_long),
        TEST(each_pod_has_its_part_of_the_log),
        TEST(the_log_of_a_pod_that_is_gone_stays),
        TEST(a_part_that_was_recorded_and_not_copied_is_copied_once),
        TEST(the_end_of_a_workflow_waits_for_an_output_that_comes_late),
        TEST(an_output_that_may_not_be_read_keeps_no_workflow_from_its_end),
    };
    return cmocka_run_group_tests_name("workflow_log", tests, NULL, NULL);
}
