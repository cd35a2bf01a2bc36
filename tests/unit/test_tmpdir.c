/* Where the temporary files of a step lie: a provider must find room for its socket there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cmocka.h>

#include "common/process/tmpdir.h"
#include "tests/unit/scratch.h"

/* A work directory whose name has n bytes. */
static char *work_dir_of(const char *parent, size_t n)
{
    DF_FREE char *rest = calloc(1, n + 1);
    memset(rest, 'w', n - strlen(parent) - 1);
    return df_strf("%s/%s", parent, rest);
}

static void a_short_work_directory_keeps_its_temporary_files_in_itself(void **state)
{
    (void)state;
    DF_FREE char *path = NULL;
    assert_int_equal(df_tmpdir_path("/w", &path, NULL), 0);
    assert_string_equal(path, "/w/tmp");
}

static void wherever_they_lie_a_provider_can_listen_there(void **state)
{
    for (size_t n = 40; n < 250; n++) {
        DF_FREE char *work = work_dir_of(*state, n);
        assert_int_equal(df_fs_mkdirs(work, 0700, NULL), 0);
        DF_FREE char *dir = NULL;
        assert_int_equal(df_tmpdir_make(work, &dir, NULL), 0);
        DF_FREE char *below = df_strf("%s/plugin-dir4294967295", dir);
        assert_int_equal(mkdir(below, 0700), 0);
        struct sockaddr_un a = {.sun_family = AF_UNIX};
        int written = snprintf(a.sun_path, sizeof(a.sun_path), "%s/plugin4294967295", below);
        assert_in_range(written, 1, sizeof(a.sun_path) - 1);
        DF_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(bind(fd, (const struct sockaddr *)&a, sizeof(a)), 0);
        assert_int_equal(df_tmpdir_remove(work, NULL), 0);
        assert_false(df_fs_exists(dir));
    }
}

static void two_work_directories_never_share_theirs(void **state)
{
    DF_FREE char *a = work_dir_of(*state, 200), *b = work_dir_of(*state, 201);
    DF_FREE char *of_a = NULL, *of_b = NULL;
    assert_int_equal(df_tmpdir_path(a, &of_a, NULL), 0);
    assert_int_equal(df_tmpdir_path(b, &of_b, NULL), 0);
    assert_string_not_equal(of_a, of_b);
}

static void what_an_earlier_runner_left_is_gone(void **state)
{
    DF_FREE char *work = work_dir_of(*state, 200);
    DF_FREE char *dir = NULL, *again = NULL;
    struct stat st;
    assert_int_equal(df_tmpdir_make(work, &dir, NULL), 0);
    DF_FREE char *left = df_fs_join(dir, "left");
    assert_int_equal(df_fs_write(left, "x", 1, 0600, NULL), 0);
    assert_int_equal(df_tmpdir_make(work, &again, NULL), 0);
    assert_string_equal(again, dir);
    assert_false(df_fs_exists(left));
    assert_int_equal(stat(dir, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    assert_int_equal(df_tmpdir_remove(work, NULL), 0);
    assert_int_equal(df_tmpdir_remove(work, NULL), 0);
}

static void a_link_that_somebody_put_there_is_not_followed(void **state)
{
    DF_FREE char *work = work_dir_of(*state, 200);
    DF_FREE char *dir = NULL, *made = NULL, *victim = df_fs_join(*state, "victim");
    DF_FREE char *file = df_fs_join(victim, "file");
    struct stat st;
    assert_int_equal(df_fs_mkdirs(victim, 0700, NULL), 0);
    assert_int_equal(df_fs_write(file, "mine", 4, 0600, NULL), 0);
    assert_int_equal(df_tmpdir_path(work, &dir, NULL), 0);
    assert_int_equal(symlink(victim, dir), 0);
    assert_int_equal(df_tmpdir_make(work, &made, NULL), 0);
    assert_int_equal(lstat(made, &st), 0);
    assert_true(S_ISDIR(st.st_mode));
    assert_true(df_fs_exists(file));
    assert_int_equal(df_tmpdir_remove(work, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scratch_test(a_short_work_directory_keeps_its_temporary_files_in_itself),
        scratch_test(wherever_they_lie_a_provider_can_listen_there),
        scratch_test(two_work_directories_never_share_theirs),
        scratch_test(what_an_earlier_runner_left_is_gone),
        scratch_test(a_link_that_somebody_put_there_is_not_followed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
