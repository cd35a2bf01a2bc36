/* The registry of engines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/limits.h"
#include "spawner/engine/engine.h"

/* ---- the registry ---- */

static const struct df_engine_kind kind_a = {.name = "a"}, kind_b = {.name = "b"};

static void an_unknown_engine_is_refused_with_the_names_of_the_known(void **state)
{
    (void)state;
    struct df_engine a = {.kind = &kind_a}, b = {.kind = &kind_b}, *got = NULL;
    struct df_engine_registry r = {0};
    struct df_err err = {0};
    assert_int_equal(df_engine_register(&r, &a, NULL), 0);
    assert_int_equal(df_engine_register(&r, &b, NULL), 0);
    assert_int_equal(df_engine_get(&r, "b", &got, NULL), 0);
    assert_ptr_equal(got, &b);
    assert_int_equal(df_engine_get(&r, "x", &got, &err), -1);
    assert_int_equal(err.cls, DF_ERR_USER);
    assert_string_equal(err.message, "unsupported execution engine: \"x\" (registered: [a b])");
}

static void an_engine_is_registered_once_and_the_table_has_an_end(void **state)
{
    (void)state;
    struct df_engine a = {.kind = &kind_a};
    struct df_engine_kind kinds[9];
    struct df_engine many[9];
    char names[9][8];
    struct df_engine_registry r = {0}, full = {0};
    struct df_err err = {0};
    assert_int_equal(df_engine_register(&r, &a, NULL), 0);
    assert_int_equal(df_engine_register(&r, &a, &err), -1);
    assert_int_equal(err.cls, DF_ERR_CONFLICT);
    for (size_t i = 0; i < 9; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "e%zu", i);
        kinds[i] = (struct df_engine_kind){.name = names[i]};
        many[i] = (struct df_engine){.kind = &kinds[i]};
        assert_int_equal(df_engine_register(&full, &many[i], &err), i < 8 ? 0 : -1);
    }
    assert_int_equal(err.cls, DF_ERR_LIMIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_unknown_engine_is_refused_with_the_names_of_the_known),
        cmocka_unit_test(an_engine_is_registered_once_and_the_table_has_an_end),
    };
    return cmocka_run_group_tests_name("registry", tests, NULL, NULL);
}
