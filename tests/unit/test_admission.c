/* Who may start: limits and order, without anything that runs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "spawner/model/admission.h"

/* ---- a world of lines ---- */

/* "name namespace class target priority": class "-" for none. A name that ends with "!" is of an
 * apply, whose run has its plan. Made in the order of the lines. */
static cJSON *task_of(const char *line, int64_t second)
{
    char name[32], name_space[32], class_name[32], target[32], at[40];
    int priority = 0;
    assert_int_equal(
        sscanf(line, "%31s %31s %31s %31s %d", name, name_space, class_name, target, &priority), 5);
    (void)snprintf(at, sizeof(at), "2026-01-01T00:00:%02dZ", (int)second);
    cJSON *task = cJSON_CreateObject();
    cJSON *metadata = df_json_object_at(task, "metadata"), *spec = df_json_object_at(task, "spec");
    assert_int_equal(df_json_add_str(metadata, "name", name, NULL), 0);
    assert_int_equal(df_json_add_str(metadata, "namespace", name_space, NULL), 0);
    assert_int_equal(df_json_add_str(metadata, "creationTimestamp", at, NULL), 0);
    assert_int_equal(df_json_add_str(spec, "targetResource", target, NULL), 0);
    if (!df_streq(class_name, "-"))
        assert_int_equal(df_json_add_str(spec, "class", class_name, NULL), 0);
    if (priority)
        assert_int_equal(df_json_add_num(spec, "priority", priority, NULL), 0);
    if (name[strlen(name) - 1] == '!')
        assert_int_equal(df_json_add_str(spec, "planFrom", "its-plan", NULL), 0);
    return task;
}

static void arrive(struct df_admission *a, const char *line, int64_t second)
{
    DF_JSON cJSON *task = task_of(line, second);
    struct df_admission_step *step = df_admission_step_of(task);
    assert_non_null(step);
    assert_int_equal(df_admission_add(a, step, NULL), 0);
}

/* How many live, as the store would say: "all 3", "namespace a 1", "class gpu 0". */
struct living {
    int all;
    const char *name_space;
    int in_namespace;
    const char *class_name;
    int of_class;
    int asked;
};

static int count(void *arg, enum df_admission_by by, const char *of, int64_t *ret,
                 struct df_err *err)
{
    struct living *l = arg;
    l->asked++;
    if (l->all < 0)
        return df_fail(err, DF_ERR_SYSTEM, "the store is away");
    *ret = by == DF_ADMISSION_ALL                                        ? l->all
           : by == DF_ADMISSION_NAMESPACE && df_streq(of, l->name_space) ? l->in_namespace
           : by == DF_ADMISSION_CLASS && df_streq(of, l->class_name)     ? l->of_class
                                                                         : 0;
    return 0;
}

static void add_starters(const struct df_admission *a, char *to, size_t size)
{
    size_t n = 0;
    to[0] = '\0';
    for (size_t i = 0; i < a->len; i++)
        if (a->steps[i]->may_start)
            n += (size_t)snprintf(to + n, size - n, "%s%s", n ? " " : "", a->steps[i]->name);
}

/* ---- the table ---- */

static const struct row {
    const char *what;
    const char *waiting[6];
    struct living living;
    int64_t steps, per_namespace;
    const char *classes;
    const char *start; /* in this order */
} rows[] = {
    {"free places go to the oldest",
     {"a n - x 0", "b n - y 0", "c n - z 0"},
     {.all = 1},
     3,
     99,
     "{}",
     "a b"},
    {"no place, nobody", {"a n - x 0"}, {.all = 3}, 3, 99, "{}", ""},
    {"more run than a lowered limit allows", {"a n - x 0"}, {.all = 9}, 3, 99, "{}", ""},
    {"a higher priority goes before an older step",
     {"a n - x 0", "b n - y 5", "c n - z -1"},
     {.all = 2},
     3,
     99,
     "{}",
     "b"},
    {"each target has its turn before any has its second",
     {"a1 n - x 0", "a2 n - x 0", "a3 n - x 0", "b1 n - y 0", "c1 n - z 0"},
     {.all = 0},
     4,
     99,
     "{}",
     "a1 b1 c1 a2"},
    {"priority is stronger than a turn",
     {"a1 n - x 1", "a2 n - x 1", "b1 n - y 0"},
     {.all = 0},
     2,
     99,
     "{}",
     "a1 a2"},
    {"what has begun is finished before anything begins, the oldest first",
     {"a n - x 0", "b n - y 0", "c! n - z 0", "d! n - v 0"},
     {.all = 0},
     3,
     99,
     "{}",
     "c! d! a"},
    {"an apply does not go before a plan of higher priority",
     {"a n - x 1", "b! n - y 0", "c! n - z -1", "d n - v 0"},
     {.all = 0},
     3,
     99,
     "{}",
     "a b! d"},
    {"an apply of a full class holds back no plan",
     {"a n - x 0", "b! n gpu y 0", "c! m - z 0"},
     {.name_space = "m", .in_namespace = 2, .class_name = "gpu", .of_class = 1},
     9,
     2,
     "{\"gpu\":{\"limit\":1}}",
     "a"},
    {"a full namespace holds back its own alone",
     {"a n - x 0", "b m - y 0"},
     {.name_space = "n", .in_namespace = 2},
     9,
     2,
     "{}",
     "b"},
    {"a namespace is filled, not overfilled",
     {"a n - x 0", "b n - y 0", "c n - z 0"},
     {.name_space = "n", .in_namespace = 1},
     9,
     2,
     "{}",
     "a"},
    {"a full class holds back its own alone",
     {"a n gpu x 0", "b n - y 0", "c n big z 0"},
     {.class_name = "gpu", .of_class = 1},
     9,
     99,
     "{\"gpu\":{\"limit\":1}}",
     "b c"},
    {"what a class keeps does not use up a place",
     {"a n gpu x 0", "b n - y 0"},
     {.all = 2, .class_name = "gpu", .of_class = 1},
     3,
     99,
     "{\"gpu\":{\"limit\":1}}",
     "b"},
    {"all three limits at once",
     {"a n gpu x 0", "b n gpu y 0", "c n - z 0", "d m gpu w 0", "e m - v 0"},
     {.all = 1},
     4,
     2,
     "{\"gpu\":{\"limit\":2}}",
     "a b e"},
};

static void the_table_of_limits_and_orders_holds(void **state)
{
    (void)state;
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        const struct row *r = &rows[i];
        struct df_admission a = {0};
        struct living living = r->living;
        char starters[128];
        DF_JSON cJSON *classes = cJSON_Parse(r->classes);
        const struct df_admission_limits limits = {r->steps, r->per_namespace, classes};
        for (int64_t n = 0; n < 6 && r->waiting[n]; n++)
            arrive(&a, r->waiting[n], n);
        assert_int_equal(df_admission_decide(&a, &limits, count, &living, NULL), 0);
        add_starters(&a, starters, sizeof(starters));
        if (!df_streq(starters, r->start))
            fail_msg("%s: \"%s\" instead of \"%s\"", r->what, starters, r->start);
        df_admission_free(&a);
    }
}

/* ---- over time ---- */

static const struct df_admission_limits one = {1, 99, NULL};

static void start_next(struct df_admission *a, const char *name)
{
    struct living nobody = {0};
    assert_int_equal(df_admission_decide(a, &one, count, &nobody, NULL), 0);
    struct df_admission_step *step = df_admission_find(a, name);
    assert_non_null(step);
    if (!step->may_start)
        fail_msg("%s is not the next", name);
    free(df_admission_take(a, step));
}

static void who_had_a_turn_comes_behind_who_waits_though_his_step_is_older(void **state)
{
    (void)state;
    struct df_admission a = {0};
    arrive(&a, "a1 n - x 0", 0);
    arrive(&a, "b1 n - y 0", 9);
    arrive(&a, "c1 n - z 0", 8);
    start_next(&a, "a1");
    arrive(&a, "a2 n - x 0", 1);
    start_next(&a, "c1");
    start_next(&a, "b1");
    start_next(&a, "a2");
    df_admission_free(&a);
}

static void an_apply_takes_no_turn_and_gives_its_executor_none(void **state)
{
    (void)state;
    struct df_admission a = {0};
    arrive(&a, "x1 n - x 0", 0);
    start_next(&a, "x1");
    arrive(&a, "x1! n - x 0", 1);
    arrive(&a, "x2 n - x 0", 2);
    arrive(&a, "y1 n - y 0", 3);
    start_next(&a, "x1!");
    start_next(&a, "x2");
    arrive(&a, "x3 n - x 0", 1);
    start_next(&a, "y1");
    start_next(&a, "x3");
    df_admission_free(&a);
}

static void who_leaves_without_a_turn_costs_nobody_his(void **state)
{
    (void)state;
    struct df_admission a = {0};
    arrive(&a, "a1 n - x 0", 0);
    arrive(&a, "a2 n - x 0", 1);
    arrive(&a, "a3 n - x 0", 2);
    struct df_admission_step *last = df_admission_find(&a, "a3");
    free(df_admission_take(&a, last));
    arrive(&a, "b1 n - y 0", 3);
    start_next(&a, "a1");
    start_next(&a, "b1");
    start_next(&a, "a2");
    assert_null(df_admission_find(&a, "a3"));
    df_admission_free(&a);
}

/* ---- what it costs, and what is told ---- */

static void limits_that_cannot_bind_are_not_counted_and_others_once(void **state)
{
    (void)state;
    struct df_admission a = {0};
    struct living living = {0};
    const struct df_admission_limits loose = {10, 10, NULL}, tight = {10, 9, NULL};
    for (int64_t i = 0; i < 30; i++) {
        char line[64];
        (void)snprintf(line, sizeof(line), "s%02d n gpu t%d 0", (int)i, (int)i);
        arrive(&a, line, i);
    }
    assert_int_equal(df_admission_decide(&a, &loose, count, &living, NULL), 0);
    assert_int_equal(living.asked, 1);
    assert_int_equal(df_admission_decide(&a, &tight, count, &living, NULL), 0);
    assert_int_equal(living.asked, 3);
    df_admission_free(&a);
}

static void a_count_that_fails_is_no_decision(void **state)
{
    (void)state;
    struct df_admission a = {0};
    struct living away = {.all = -1};
    struct df_err err = {0};
    arrive(&a, "a n - x 0", 0);
    assert_int_equal(df_admission_decide(&a, &one, count, &away, &err), -1);
    assert_string_equal(err.message, "the store is away");
    df_admission_free(&a);
}

static void who_waits_is_told_how_many_run_and_how_many_are_before(void **state)
{
    (void)state;
    static const struct {
        const char *name, *text;
    } told[] = {
        {"a", "12 steps run, the limit is 12 (limits.steps); it is the next"},
        {"d", "12 steps run, the limit is 12 (limits.steps); 3 before this one"},
        {"b", "1 step of the class gpu runs, the limit is 1 (classes.gpu.limit); it is the next"},
        {"c",
         "2 steps in the namespace m run, the limit is 2 (limits.perNamespace); it is the next"},
        /* The first limit that holds it back: of all, the namespace, the class. */
        {"e",
         "2 steps in the namespace m run, the limit is 2 (limits.perNamespace); 1 before this one"},
    };
    struct df_admission a = {0};
    DF_JSON cJSON *classes = cJSON_Parse("{\"gpu\":{\"limit\":1}}");
    const struct df_admission_limits limits = {12, 2, classes};
    struct living full = {.all = 12}, some = {3, "m", 2, "gpu", 1, 0};
    arrive(&a, "a n - v 0", 0);
    arrive(&a, "b n gpu w 0", 1);
    arrive(&a, "c m - x 0", 2);
    arrive(&a, "d n - y 0", 3);
    arrive(&a, "e m gpu z 0", 4);
    for (size_t i = 0; i < DF_ARRAY_SIZE(told); i++) {
        char text[200];
        assert_int_equal(df_admission_decide(&a, &limits, count, i < 2 ? &full : &some, NULL), 0);
        df_admission_describe(&a, df_admission_find(&a, told[i].name), text, sizeof(text));
        assert_string_equal(text, told[i].text);
    }
    df_admission_free(&a);
}

static void ten_thousand_that_wait_are_kept_in_order(void **state)
{
    (void)state;
    struct df_admission a = {0};
    struct living nobody = {0};
    for (int i = 0; i < 10000; i++) {
        char line[64];
        (void)snprintf(line, sizeof(line), "s%d n - t%d %d", i, i, (i * 7919) % 100);
        arrive(&a, line, i % 60);
    }
    assert_int_equal(df_admission_decide(&a, &one, count, &nobody, NULL), 0);
    for (size_t i = 1; i < a.len; i++)
        assert_true(a.steps[i - 1]->priority >= a.steps[i]->priority);
    assert_true(a.steps[0]->may_start);
    assert_false(a.steps[1]->may_start);
    df_admission_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_of_limits_and_orders_holds),
        cmocka_unit_test(who_had_a_turn_comes_behind_who_waits_though_his_step_is_older),
        cmocka_unit_test(an_apply_takes_no_turn_and_gives_its_executor_none),
        cmocka_unit_test(who_leaves_without_a_turn_costs_nobody_his),
        cmocka_unit_test(limits_that_cannot_bind_are_not_counted_and_others_once),
        cmocka_unit_test(a_count_that_fails_is_no_decision),
        cmocka_unit_test(who_waits_is_told_how_many_run_and_how_many_are_before),
        cmocka_unit_test(ten_thousand_that_wait_are_kept_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
