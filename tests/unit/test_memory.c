/* What the kernel killed for want of memory, as the two kinds of cgroups tell it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runner/memory.h"
#include "tests/unit/scratch.h"

static void kills_are_counted_in_both_kinds_of_cgroups(void **state)
{
    static const struct {
        const char *file, *text;
        int64_t kills;
    } rows[] = {
        {"memory.events", "low 0\nhigh 0\nmax 12\noom 2\noom_kill 2\noom_group_kill 0\n", 2},
        {"memory.events", "low 0\noom 1\noom_kill 0\n", 0},
        {"memory.events", "", 0},
        {"memory.events", "oom_kill many\n", 0},
        {"memory/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 7\n", 7},
        {"memory/memory.oom_control", "oom_kill_disable 1\n", 0},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        DF_FREE char *root = df_strf("%s/%zu", (const char *)*state, i);
        DF_FREE char *memory = df_fs_join(root, "memory");
        DF_FREE char *path = df_fs_join(root, rows[i].file);
        assert_int_equal(df_fs_mkdirs(memory, 0700, NULL), 0);
        assert_int_equal(df_fs_write(path, rows[i].text, strlen(rows[i].text), 0600, NULL), 0);
        if (df_memory_kills(root) != rows[i].kills)
            fail_msg("%zu: %lld", i, (long long)df_memory_kills(root));
    }
}

static void where_nobody_tells_nothing_was_killed(void **state)
{
    assert_int_equal(df_memory_kills(*state), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scratch_test(kills_are_counted_in_both_kinds_of_cgroups),
        scratch_test(where_nobody_tells_nothing_was_killed),
    };
    return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
