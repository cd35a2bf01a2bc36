/* A service without Terrakube (`make TERRAKUBE=0`) says so where somebody would miss it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "spawner/spawner.h"
#include "spawner/terrakube/upstream.h"
#include "tests/unit/without_words.h"

static void the_service_is_not_terrakubes_executor(void **state)
{
    (void)state;
    struct df_spawner s = {0};
    struct df_err err = {0};
    assert_refused(df_terrakube_upstream.open(&s, &err), &err, "terrakube.listen: ");
    assert_null(s.upstream_data);
    assert_refused(df_terrakube_upstream.check(NULL, &err), &err, "terrakube.listen: ");
}

static void a_step_that_another_build_took_is_refused(void **state)
{
    (void)state;
    cJSON *part = NULL;
    struct df_err err = {0};
    assert_refused(df_terrakube_upstream.step_part(NULL, NULL, &part, &err), &err,
                   "use a build with it");
    assert_null(part);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_service_is_not_terrakubes_executor),
        cmocka_unit_test(a_step_that_another_build_took_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
