#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/unit/scratch.h"

static void put(const char *path, const char *text)
{
    struct df_err err = {0};
    if (df_fs_replace(path, text, strlen(text), 0600, &err) < 0)
        fail_msg("%s", err.message);
}

static void assert_content(const char *path, const char *text)
{
    DF_BUF struct df_buf b = DF_BUF_INIT(DF_MIB);
    assert_int_equal(df_fs_read(path, &b, NULL), 0);
    assert_string_equal(df_buf_str(&b), text);
}

/* ---- reading ---- */

static void a_file_is_read_up_to_the_cap_and_not_beyond(void **state)
{
    DF_FREE char *path = df_fs_join(*state, "f");
    put(path, "12345");
    DF_BUF struct df_buf fits = DF_BUF_INIT(5), small = DF_BUF_INIT(4), more = DF_BUF_INIT(100);
    struct df_err err = {0};
    assert_int_equal(df_fs_read(path, &fits, &err), 0);
    assert_string_equal(df_buf_str(&fits), "12345");
    assert_int_equal(df_fs_read(path, &small, &err), -1);
    assert_int_equal(err.cls, DF_ERR_LIMIT);
    assert_non_null(strstr(err.message, path));
    assert_non_null(strstr(err.message, "more than 4 bytes"));
    assert_int_equal(df_buf_adds(&more, "0"), 0);
    assert_int_equal(df_fs_read(path, &more, &err), 0);
    assert_string_equal(df_buf_str(&more), "012345");
}

static void files_of_every_size_around_a_block_are_read_whole(void **state)
{
    DF_FREE char *path = df_fs_join(*state, "f");
    static const size_t sizes[] = {0, 1, 65535, 65536, 65537, 131072, 200000};
    DF_FREE char *bytes = calloc(1, 200000);
    for (size_t i = 0; i < 200000; i++)
        bytes[i] = (char)(i * 7);
    for (size_t i = 0; i < DF_ARRAY_SIZE(sizes); i++) {
        DF_BUF struct df_buf b = DF_BUF_INIT(200000);
        assert_int_equal(df_fs_replace(path, bytes, sizes[i], 0600, NULL), 0);
        assert_int_equal(df_fs_read(path, &b, NULL), 0);
        assert_int_equal(b.len, sizes[i]);
        assert_memory_equal(df_buf_str(&b), bytes, sizes[i]);
    }
}

static void a_file_without_a_name_leaves_nothing(void **state)
{
    (void)state;
    assert_int_equal(df_fs_mkdirs("quiet", 0700, NULL), 0);
    DF_CLOSE int fd = -1;
    assert_int_equal(df_fs_unnamed("quiet", &fd, NULL), 0);
    assert_int_equal(df_fs_write_all(fd, "x", 1, NULL), 0);
    assert_int_equal(rmdir("quiet"), 0); /* empty */
    struct df_err err = {0};
    assert_int_equal(df_fs_unnamed("quiet", &fd, &err), -1);
    assert_non_null(strstr(err.message, "quiet/"));
}

static void what_cannot_be_read_is_named(void **state)
{
    DF_FREE char *path = df_fs_join(*state, "absent");
    DF_BUF struct df_buf b = DF_BUF_INIT(100);
    struct df_err err = {0};
    assert_int_equal(df_fs_read(path, &b, &err), -1);
    assert_int_equal(err.cls, DF_ERR_NOT_FOUND);
    assert_non_null(strstr(err.message, path));
    assert_int_equal(df_fs_read(*state, &b, &err), -1);
    assert_non_null(strstr(err.message, *state));
}

static void a_secret_that_others_may_read_is_not_taken(void **state)
{
    DF_FREE char *path = df_fs_join(*state, "secret");
    DF_FREE char *link = df_fs_join(*state, "link");
    DF_BUF struct df_buf b = DF_BUF_INIT(100);
    static const mode_t open_to_others[] = {0644, 0640, 0604, 0620, 0602, 0610};
    put(path, "secret");
    assert_int_equal(df_fs_read_private(path, &b, NULL), 0);
    assert_string_equal(df_buf_str(&b), "secret");
    for (size_t i = 0; i < DF_ARRAY_SIZE(open_to_others); i++) {
        struct df_err err = {0};
        assert_int_equal(chmod(path, open_to_others[i]), 0);
        assert_int_equal(df_fs_read_private(path, &b, &err), -1);
        assert_string_equal(err.reason, "NotPrivate");
        assert_non_null(strstr(err.message, path));
    }
    struct df_err err = {0};
    assert_int_equal(chmod(path, 0600), 0);
    assert_int_equal(symlink(path, link), 0);
    assert_int_equal(df_fs_read_private(link, &b, &err), -1);
    assert_int_equal(err.os_errno, ELOOP);
    assert_int_equal(df_fs_read_private(*state, &b, NULL), -1);
}

static void nothing(int signo)
{
    (void)signo;
}

/* A writer that is slow and a stream of signals without SA_RESTART: short reads and EINTR. */
static void reading_survives_signals_and_short_reads(void **state)
{
    (void)state;
    int p[2];
    struct sigaction act = {.sa_handler = nothing}, old;
    assert_int_equal(sigaction(SIGUSR1, &act, &old), 0);
    assert_int_equal(pipe2(p, O_CLOEXEC), 0);
    pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        for (int i = 0; i < 200; i++) {
            (void)kill(parent, SIGUSR1);
            (void)!write(p[1], "x", 1);
        }
        _exit(0);
    }
    (void)close(p[1]);
    DF_BUF struct df_buf b = DF_BUF_INIT(1000);
    assert_int_equal(df_fs_read_fd(p[0], &b, NULL), 0);
    assert_int_equal(b.len, 200);
    (void)close(p[0]);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(sigaction(SIGUSR1, &old, NULL), 0);
}

/* ---- writing ---- */

static void writing_survives_signals_and_short_writes(void **state)
{
    (void)state;
    int p[2];
    struct sigaction act = {.sa_handler = nothing}, old;
    assert_int_equal(sigaction(SIGUSR1, &act, &old), 0);
    assert_int_equal(pipe2(p, O_CLOEXEC), 0);
    pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        char bytes[1000];
        size_t sum = 0;
        (void)close(p[1]);
        for (ssize_t n; (n = read(p[0], bytes, sizeof(bytes))) > 0; sum += (size_t)n)
            (void)kill(parent, SIGUSR1);
        _exit(sum == 500000 ? 0 : 1);
    }
    (void)close(p[0]);
    DF_FREE char *bytes = calloc(1, 500000);
    assert_int_equal(df_fs_write_all(p[1], bytes, 500000, NULL), 0);
    (void)close(p[1]);
    int status = -1;
    while (waitpid(pid, &status, 0) < 0)
        assert_int_equal(errno, EINTR);
    assert_int_equal(status, 0);
    assert_int_equal(sigaction(SIGUSR1, &old, NULL), 0);
}

static void what_is_left_of_a_file_is_copied_up_to_a_limit(void **state)
{
    DF_FREE char *from = df_fs_join(*state, "from"), *to = df_fs_join(*state, "to");
    DF_FREE char *bytes = calloc(1, 150000);
    DF_BUF struct df_buf copy = DF_BUF_INIT(200000);
    struct df_err err = {0};
    int64_t left = 149999;
    assert_non_null(bytes);
    for (size_t i = 0; i < 150000; i++)
        bytes[i] = (char)('a' + i % 7);
    assert_int_equal(df_fs_write(from, bytes, 150000, 0600, NULL), 0);
    DF_CLOSE int in = open(from, O_RDONLY | O_CLOEXEC);
    DF_CLOSE int out = open(to, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(lseek(in, 1, SEEK_SET), 1);
    assert_int_equal(df_fs_copy(in, out, &left, NULL), 0);
    assert_int_equal(left, 0);
    assert_int_equal(df_fs_read(to, &copy, NULL), 0);
    assert_int_equal(copy.len, 149999);
    assert_memory_equal(copy.data, bytes + 1, copy.len);
    assert_int_equal(lseek(in, 149998, SEEK_SET), 149998);
    left = 1;
    assert_int_equal(df_fs_copy(in, out, &left, &err), -1);
    assert_int_equal(err.cls, DF_ERR_LIMIT);
    assert_int_equal(df_fs_copy(in, out, NULL, NULL), 0);
}

static void a_file_is_replaced_whole_with_its_mode(void **state)
{
    DF_FREE char *path = df_fs_join(*state, "f");
    struct stat st;
    put(path, "old");
    assert_int_equal(df_fs_replace(path, "new content", 11, 0640, NULL), 0);
    assert_content(path, "new content");
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    assert_int_equal(df_fs_write(path, "", 0, 0600, NULL), 0);
    assert_content(path, "");
}

static void creating_leaves_what_is_there_alone(void **state)
{
    DF_FREE char *path = df_fs_join(*state, "f");
    struct df_err err = {0};
    assert_int_equal(df_fs_create(path, "first", 5, 0600, &err), 0);
    assert_int_equal(df_fs_create(path, "second", 6, 0600, &err), -1);
    assert_int_equal(err.cls, DF_ERR_CONFLICT);
    assert_content(path, "first");
    assert_int_equal(unlink(path), 0);
    /* Nothing temporary is left: the directory can be removed. */
    assert_int_equal(rmdir(*state), 0);
    assert_int_equal(mkdir(*state, 0700), 0);
}

/* A limit on the size of files is a disk that is full. */
static void a_full_disk_leaves_the_old_content_and_nothing_else(void **state)
{
    DF_FREE char *path = df_fs_join(*state, "f");
    put(path, "old");
    DF_FREE char *bytes = calloc(1, 100000);
    pid_t pid = fork();
    if (pid == 0) {
        struct rlimit limit = {1000, 1000};
        struct df_err err = {0};
        (void)signal(SIGXFSZ, SIG_IGN);
        (void)setrlimit(RLIMIT_FSIZE, &limit);
        int result = df_fs_replace(path, bytes, 100000, 0600, &err);
        _exit(result == -1 && err.cls == DF_ERR_LIMIT ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_content(path, "old");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(*state), 0);
    assert_int_equal(mkdir(*state, 0700), 0);
}

static void readers_see_the_old_content_or_the_new(void **state)
{
    DF_FREE char *path = df_fs_join(*state, "f");
    char a[5000], b[5000];
    memset(a, 'a', sizeof(a));
    memset(b, 'b', sizeof(b));
    assert_int_equal(df_fs_replace(path, a, sizeof(a), 0600, NULL), 0);
    pid_t pid = fork();
    if (pid == 0) {
        for (int i = 0; i < 300; i++)
            if (df_fs_replace(path, i % 2 ? a : b, sizeof(a), 0600, NULL) < 0)
                _exit(1);
        _exit(0);
    }
    int status = -1;
    while (waitpid(pid, &status, WNOHANG) == 0) {
        DF_BUF struct df_buf seen = DF_BUF_INIT(10000);
        assert_int_equal(df_fs_read(path, &seen, NULL), 0);
        assert_int_equal(seen.len, sizeof(a));
        assert_true(memcmp(seen.data, a, sizeof(a)) == 0 || memcmp(seen.data, b, sizeof(b)) == 0);
    }
    assert_int_equal(status, 0);
}

/* ---- directories ---- */

static void directories_are_made_with_their_parents(void **state)
{
    DF_FREE char *deep = df_strf("%s/a//b/c/", (char *)*state);
    DF_FREE char *file = df_strf("%s/file", (char *)*state);
    DF_FREE char *below = df_strf("%s/file/x", (char *)*state);
    struct df_err err = {0};
    assert_int_equal(df_fs_mkdirs(deep, 0700, &err), 0);
    assert_int_equal(df_fs_mkdirs(deep, 0700, &err), 0);
    assert_true(df_fs_exists(deep));
    put(file, "x");
    assert_int_equal(df_fs_mkdirs(file, 0700, &err), -1);
    assert_non_null(strstr(err.message, "is not a directory"));
    assert_int_equal(df_fs_mkdirs(below, 0700, &err), -1);
    assert_int_equal(df_fs_mkdirs("", 0700, &err), -1);
    assert_int_equal(df_fs_mkdirs("/", 0700, &err), 0);
}

static void a_tree_is_removed_without_following_links(void **state)
{
    DF_FREE char *outside = df_fs_join(*state, "outside"), *tree = df_fs_join(*state, "tree");
    DF_FREE char *kept = df_fs_join(outside, "kept"), *sub = df_fs_join(tree, "sub");
    DF_FREE char *link = df_fs_join(sub, "link"), *dangling = df_fs_join(tree, "dangling");
    DF_FREE char *fifo = df_fs_join(tree, "fifo"), *file = df_fs_join(sub, "f");
    assert_int_equal(df_fs_mkdirs(outside, 0700, NULL), 0);
    assert_int_equal(df_fs_mkdirs(sub, 0700, NULL), 0);
    put(kept, "kept");
    put(file, "f");
    assert_int_equal(symlink(outside, link), 0);
    assert_int_equal(symlink("nowhere", dangling), 0);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_int_equal(df_fs_remove_tree(tree, NULL), 0);
    assert_false(df_fs_exists(tree));
    assert_content(kept, "kept");
    assert_int_equal(df_fs_remove_tree(tree, NULL), 0);
    /* The name itself may be a link, or a file. */
    assert_int_equal(symlink(outside, tree), 0);
    assert_int_equal(df_fs_remove_tree(tree, NULL), 0);
    assert_content(kept, "kept");
    assert_int_equal(df_fs_remove_tree(kept, NULL), 0);
    assert_false(df_fs_exists(kept));
}

static void a_directory_is_new_and_empty_whatever_was_in_its_place(void **state)
{
    DF_FREE char *path = df_fs_join(*state, "new"), *inside = df_fs_join(path, "f");
    DF_FREE char *other = df_fs_join(*state, "other"), *kept = df_fs_join(other, "f");
    struct df_err err = {0};
    struct stat st;
    assert_int_equal(mkdir(other, 0700), 0);
    put(kept, "kept");
    for (int i = 0; i < 5; i++) {
        if (i == 1)
            assert_int_equal(symlink(other, path), 0);
        else if (i == 2)
            assert_int_equal(mkfifo(path, 0600), 0);
        else if (i == 3)
            put(path, "a file");
        else if (i == 4) {
            assert_int_equal(mkdir(path, 0700), 0);
            put(inside, "old");
            assert_int_equal(chmod(path, 0), 0);
        }
        if (df_fs_renew_dir(path, &err) < 0)
            fail_msg("%d: %s", i, err.message);
        assert_int_equal(lstat(path, &st), 0);
        assert_int_equal(st.st_mode & ~(mode_t)S_ISGID, S_IFDIR | 0700);
        assert_int_equal(rmdir(path), 0);
    }
    assert_content(kept, "kept");
}

static void directories_that_may_not_be_written_are_removed_as_well(void **state)
{
    DF_FREE char *tree = df_fs_join(*state, "tree"), *sub = df_fs_join(tree, "sub");
    DF_FREE char *locked = df_fs_join(tree, "locked"), *file = df_fs_join(sub, "f");
    assert_int_equal(df_fs_mkdirs(sub, 0700, NULL), 0);
    assert_int_equal(df_fs_mkdirs(locked, 0700, NULL), 0);
    put(file, "x");
    assert_int_equal(chmod(file, 0400), 0);
    assert_int_equal(chmod(sub, 0555), 0);
    assert_int_equal(chmod(locked, 0), 0);
    assert_int_equal(chmod(tree, 0555), 0);
    /* Root may write everywhere: let somebody else try it. */
    pid_t pid = fork();
    if (pid == 0) {
        struct df_err err = {0};
        if (geteuid() == 0 &&
            (chown(*state, 12345, 12345) < 0 || chown(tree, 12345, 12345) < 0 ||
             chown(sub, 12345, 12345) < 0 || chown(locked, 12345, 12345) < 0 ||
             chown(file, 12345, 12345) < 0 || setgid(12345) < 0 || setuid(12345) < 0))
            _exit(2);
        if (df_fs_remove_tree(tree, &err) < 0)
            print_error("%s\n", err.message);
        _exit(df_fs_exists(tree) ? 1 : 0);
    }
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* Deeper than descriptors, and longer than a path may be. */
static void a_tree_of_any_depth_is_removed_with_few_descriptors(void **state)
{
    DF_FREE char *tree = df_fs_join(*state, "tree");
    assert_int_equal(mkdir(tree, 0700), 0);
    int fd = open(tree, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < 3000; i++) {
        assert_true(fd >= 0);
        assert_int_equal(mkdirat(fd, "deeper", 0700), 0);
        int file = openat(fd, "deep-0", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
        assert_true(file >= 0);
        (void)close(file);
        int next = openat(fd, "deeper", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_int_equal(fchmod(fd, 0500), 0);
        (void)close(fd);
        fd = next;
    }
    (void)close(fd);
    struct rlimit old, low;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    low = (struct rlimit){256, old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    struct df_err err = {0};
    int result = df_fs_remove_tree(tree, &err);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    assert_string_equal(err.message, "");
    assert_int_equal(result, 0);
    assert_false(df_fs_exists(tree));
}

static void paths_are_joined_with_one_slash(void **state)
{
    (void)state;
    DF_FREE char *a = df_fs_join("a", "b"), *b = df_fs_join("/", "b"), *c = df_fs_join("a/", "b");
    assert_string_equal(a, "a/b");
    assert_string_equal(b, "/b");
    assert_string_equal(c, "a/b");
}

static void syncing_what_is_no_directory_fails(void **state)
{
    DF_FREE char *path = df_fs_join(*state, "f");
    put(path, "x");
    struct df_err err = {0};
    assert_int_equal(df_fs_sync_dir(*state, &err), 0);
    assert_int_equal(df_fs_sync_dir(path, &err), -1);
    assert_non_null(strstr(err.message, path));
}

static void a_path_that_is_missing_is_out_of_memory(void **state)
{
    (void)state;
    DF_FREE char *path = df_fs_join(NULL, "x");
    assert_null(path);
    DF_BUF struct df_buf b = DF_BUF_INIT(1);
    int fd = -1;
    struct df_err errs[9] = {0};
    int results[] = {df_fs_read(path, &b, &errs[0]),
                     df_fs_read_plain(path, &b, &errs[1]),
                     df_fs_replace(path, "", 0, 0600, &errs[2]),
                     df_fs_unnamed(path, &fd, &errs[3]),
                     df_fs_lock(path, 0600, &fd, &errs[4]),
                     df_fs_sync_dir(path, &errs[5]),
                     df_fs_mkdirs(path, 0700, &errs[6]),
                     df_fs_remove_tree(path, &errs[7]),
                     df_fs_renew_dir(path, &errs[8])};
    for (size_t i = 0; i < DF_ARRAY_SIZE(results); i++) {
        assert_int_equal(results[i], -1);
        assert_string_equal(errs[i].message, "out of memory");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scratch_test(a_file_is_read_up_to_the_cap_and_not_beyond),
        scratch_test(files_of_every_size_around_a_block_are_read_whole),
        scratch_test(a_file_without_a_name_leaves_nothing),
        scratch_test(what_cannot_be_read_is_named),
        scratch_test(a_secret_that_others_may_read_is_not_taken),
        scratch_test(reading_survives_signals_and_short_reads),
        scratch_test(writing_survives_signals_and_short_writes),
        scratch_test(what_is_left_of_a_file_is_copied_up_to_a_limit),
        scratch_test(a_file_is_replaced_whole_with_its_mode),
        scratch_test(creating_leaves_what_is_there_alone),
        scratch_test(a_full_disk_leaves_the_old_content_and_nothing_else),
        scratch_test(readers_see_the_old_content_or_the_new),
        scratch_test(directories_are_made_with_their_parents),
        scratch_test(a_tree_is_removed_without_following_links),
        scratch_test(a_directory_is_new_and_empty_whatever_was_in_its_place),
        scratch_test(directories_that_may_not_be_written_are_removed_as_well),
        scratch_test(a_tree_of_any_depth_is_removed_with_few_descriptors),
        scratch_test(paths_are_joined_with_one_slash),
        scratch_test(syncing_what_is_no_directory_fails),
        scratch_test(a_path_that_is_missing_is_out_of_memory),
    };
    return cmocka_run_group_tests_name("fs", tests, NULL, NULL);
}
