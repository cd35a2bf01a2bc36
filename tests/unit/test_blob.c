/* The directory's own tests; what every backend does is in blob_suite.h. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>

#include <cmocka.h>

#define blob_test(f) scratch_test(f)
#define blob_kill_test(f) scratch_test(f)
#include "tests/unit/blob_suite.h"

static struct df_blob *suite_open(const char *dir)
{
    struct df_err err = {0};
    struct df_blob *b = NULL;
    if (df_blob_open(dir, &b, &err) < 0)
        fail_msg("%s", err.message);
    return b;
}

static mode_t mode_of(const char *dir, const char *key)
{
    DF_FREE char *path = df_strf("%s/data/%s", dir, key);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    return st.st_mode & 07777;
}

static void files_are_for_their_owner_alone(void **state)
{
    struct df_err err = {0};
    BLOBS *b = suite_open(*state);
    int64_t size = 0;
    put(b, "state/x/1", "one");
    assert_int_equal(df_blob_append(b, "s/log", 0, "one", 3, &size, &err), 0);
    DF_FREE char *path = incoming(b, "content");
    assert_int_equal(df_blob_put_file(b, "new/place", path, &err), 0);
    static const char *const keys[] = {"state/x/1", "s/log", "new/place"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(keys); i++)
        assert_int_equal(mode_of(*state, keys[i]), 0600);
}

static void files_that_are_no_blobs_are_not_listed(void **state)
{
    struct df_err err = {0};
    BLOBS *b = suite_open(*state);
    put(b, "d/x", "x");
    DF_FREE char *backup = df_strf("%s/data/d/x~", (char *)*state);
    DF_FREE char *link = df_strf("%s/data/d/l", (char *)*state);
    assert_int_equal(df_fs_replace(backup, "x", 1, 0600, &err), 0);
    assert_int_equal(symlink("/", link), 0);
    assert_keys(b, "d", "d/x");
}

static void a_file_in_place_of_the_directory_is_named(void **state)
{
    struct df_err err = {0};
    struct df_blob *b = NULL;
    DF_FREE char *path = df_fs_join(*state, "file");
    assert_int_equal(df_fs_replace(path, "x", 1, 0600, &err), 0);
    assert_int_equal(df_blob_open(path, &b, &err), -1);
    assert_non_null(strstr(err.message, path));
    assert_null(b);
}

/* In a child whose files may not grow past 64 KiB: the kernel's answer is that of a full disk. */
static void work_on_a_full_disk(const struct child *c)
{
    struct df_blob *b = NULL;
    struct df_err err = {0};
    char big[100 * 1024];
    memset(big, 'x', sizeof(big));
    const struct rlimit small = {64 * 1024, 64 * 1024};
    (void)signal(SIGXFSZ, SIG_IGN);
    int64_t size = 0;
    if (setrlimit(RLIMIT_FSIZE, &small) < 0 || df_blob_open(c->dir, &b, &err) < 0)
        _exit(1);
    if (df_blob_put(b, "x", big, sizeof(big), &err) == 0 || err.cls != DF_ERR_LIMIT)
        _exit(2);
    if (df_blob_create(b, "y", big, sizeof(big), &err) == 0 || err.cls != DF_ERR_LIMIT)
        _exit(3);
    if (df_blob_append(b, "log", 5, big, sizeof(big), &size, &err) == 0 || err.cls != DF_ERR_LIMIT)
        _exit(4);
    if (df_blob_append(b, "log", 5, "next", 4, &size, &err) < 0 || size != 9)
        _exit(5);
    df_blob_close(b);
    _exit(0);
}

static void a_full_disk_is_a_limit_and_leaves_nothing_half_written(void **state)
{
    struct df_err err = {0};
    BLOBS *b = suite_open(*state);
    put(b, "x", "old");
    int64_t size = 0;
    assert_int_equal(df_blob_append(b, "log", 0, "first", 5, &size, &err), 0);
    pid_t pid = fork();
    if (pid == 0)
        work_on_a_full_disk(&(struct child){.dir = *state});
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_content(b, "x", "old");
    assert_content(b, "log", "firstnext");
    assert_absent(b, "y");
    assert_tmp_is_empty(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BLOB_SUITE,
        BLOB_KILL_SUITE,
        scratch_test(files_are_for_their_owner_alone),
        scratch_test(files_that_are_no_blobs_are_not_listed),
        scratch_test(a_file_in_place_of_the_directory_is_named),
        scratch_test(a_full_disk_is_a_limit_and_leaves_nothing_half_written),
    };
    return cmocka_run_group_tests_name("blob", tests, NULL, NULL);
}
