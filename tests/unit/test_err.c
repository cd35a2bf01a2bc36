#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "common/base/fs.h"

static void a_failure_says_what_and_of_which_class(void **state)
{
    (void)state;
    struct df_err err = {0};
    assert_int_equal(df_fail(&err, DF_ERR_USER, "%s is %d", "x", 5), -1);
    assert_int_equal(err.cls, DF_ERR_USER);
    assert_string_equal(err.message, "x is 5");
    assert_string_equal(err.reason, "");
    assert_int_equal(df_fail_reason(&err, DF_ERR_CONFLICT, "Busy", "later"), -1);
    assert_int_equal(err.cls, DF_ERR_CONFLICT);
    assert_string_equal(err.reason, "Busy");
    assert_int_equal(df_fail(&err, DF_ERR_USER, "again"), -1);
    assert_string_equal(err.reason, "");
}

static void an_allocation_that_is_missing_is_out_of_memory(void **state)
{
    (void)state;
    struct df_err err = {0};
    assert_int_equal(df_check_alloc(state, &err), 0);
    assert_int_equal(err.cls, DF_ERR_NONE);
    assert_int_equal(df_check_alloc(NULL, &err), -1);
    assert_string_equal(err.message, "out of memory");
}

static void a_failure_that_was_kept_apart_is_passed_on_whole(void **state)
{
    (void)state;
    struct df_err err = {0}, why = {0};
    (void)df_fail_reason(&why, DF_ERR_CONFLICT, "Busy", "later");
    assert_int_equal(df_err_pass(&err, &why), -1);
    assert_memory_equal(&err, &why, sizeof(err));
}

static void what_was_needed_on_the_way_is_not_what_was_asked_for(void **state)
{
    (void)state;
    static const struct {
        enum df_err_class from, to;
    } cases[] = {{DF_ERR_NOT_FOUND, DF_ERR_RETRY},
                 {DF_ERR_CONFLICT, DF_ERR_RETRY},
                 {DF_ERR_DENIED, DF_ERR_DENIED},
                 {DF_ERR_USER, DF_ERR_USER}};
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        struct df_err err = {0}, why = {.cls = cases[i].from, .message = "no token"};
        assert_int_equal(df_err_pass_needed(&err, &why), -1);
        assert_int_equal(err.cls, cases[i].to);
        assert_string_equal(err.message, "no token");
    }
}

static void nobody_needs_to_listen(void **state)
{
    (void)state;
    assert_int_equal(df_fail(NULL, DF_ERR_USER, "x"), -1);
    assert_int_equal(df_fail_reason(NULL, DF_ERR_USER, "R", "x"), -1);
    assert_int_equal(df_fail_errno(NULL, ENOENT, "x"), -1);
    assert_int_equal(df_fail_oom(NULL), -1);
    assert_int_equal(df_err_wrap(NULL, "x"), -1);
    assert_int_equal(df_err_reason(NULL, "R"), -1);
    assert_int_equal(df_err_pass(NULL, &(struct df_err){.cls = DF_ERR_USER}), -1);
    assert_int_equal(df_err_pass_needed(NULL, &(struct df_err){.cls = DF_ERR_NOT_FOUND}), -1);
}

static void an_errno_becomes_a_class_and_words(void **state)
{
    (void)state;
    static const struct {
        int os_errno;
        enum df_err_class cls;
    } cases[] = {
        {ENOENT, DF_ERR_NOT_FOUND},   {ESRCH, DF_ERR_NOT_FOUND},   {EACCES, DF_ERR_DENIED},
        {EPERM, DF_ERR_DENIED},       {EROFS, DF_ERR_DENIED},      {EEXIST, DF_ERR_CONFLICT},
        {ENOSPC, DF_ERR_LIMIT},       {EDQUOT, DF_ERR_LIMIT},      {EMFILE, DF_ERR_LIMIT},
        {ENFILE, DF_ERR_LIMIT},       {EFBIG, DF_ERR_LIMIT},       {ENOMEM, DF_ERR_LIMIT},
        {EAGAIN, DF_ERR_RETRY},       {EINTR, DF_ERR_RETRY},       {ETIMEDOUT, DF_ERR_RETRY},
        {ECONNREFUSED, DF_ERR_RETRY}, {ECONNRESET, DF_ERR_RETRY},  {ECONNABORTED, DF_ERR_RETRY},
        {EHOSTUNREACH, DF_ERR_RETRY}, {ENETUNREACH, DF_ERR_RETRY}, {EPIPE, DF_ERR_RETRY},
        {EIO, DF_ERR_SYSTEM},         {EINVAL, DF_ERR_SYSTEM},     {12345, DF_ERR_SYSTEM},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        struct df_err err = {0};
        assert_int_equal(df_fail_errno(&err, cases[i].os_errno, "open %s", "f"), -1);
        assert_int_equal(err.cls, cases[i].cls);
        assert_int_equal(err.os_errno, cases[i].os_errno);
        assert_true(df_starts_with(err.message, "open f: "));
        assert_true(strlen(err.message) > strlen("open f: "));
    }
}

static void context_is_put_in_front_and_keeps_the_rest(void **state)
{
    (void)state;
    struct df_err err = {0};
    (void)df_fail_reason(&err, DF_ERR_LIMIT, "DiskFull", "write");
    err.os_errno = ENOSPC;
    assert_int_equal(df_err_wrap(&err, "step %d", 1), -1);
    assert_int_equal(df_err_wrap(&err, "run"), -1);
    assert_string_equal(err.message, "run: step 1: write");
    assert_int_equal(err.cls, DF_ERR_LIMIT);
    assert_int_equal(err.os_errno, ENOSPC);
    assert_string_equal(err.reason, "DiskFull");
}

static void the_first_reason_stays(void **state)
{
    (void)state;
    struct df_err err = {0};
    (void)df_fail(&err, DF_ERR_SYSTEM, "x");
    assert_int_equal(df_err_reason(&err, "First"), -1);
    assert_int_equal(df_err_reason(&err, "Second"), -1);
    assert_string_equal(err.reason, "First");
}

static void long_messages_are_cut_and_stay_strings(void **state)
{
    (void)state;
    struct df_err err = {0};
    char longer[3000];
    memset(longer, 'x', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    (void)df_fail(&err, DF_ERR_USER, "%s", longer);
    assert_int_equal(strlen(err.message), sizeof(err.message) - 1);
    (void)df_err_wrap(&err, "%s", longer);
    assert_int_equal(strlen(err.message), sizeof(err.message) - 1);
    (void)df_fail_errno(&err, ENOENT, "%s", longer);
    assert_int_equal(strlen(err.message), sizeof(err.message) - 1);
    (void)df_fail_reason(&err, DF_ERR_USER, longer, "x");
    assert_int_equal(strlen(err.reason), sizeof(err.reason) - 1);
}

static void an_error_may_be_retold_from_its_own_parts(void **state)
{
    (void)state;
    struct df_err err = {0};
    (void)df_fail_reason(&err, DF_ERR_USER, "Old", "inner");
    (void)df_fail_reason(&err, DF_ERR_SYSTEM, err.reason, "outer: %s", err.message);
    assert_string_equal(err.reason, "Old");
    assert_string_equal(err.message, "outer: inner");
    (void)df_fail(&err, DF_ERR_USER, "%s because of %s", err.message, err.reason);
    assert_string_equal(err.message, "outer: inner because of Old");
}

static void every_class_has_a_name(void **state)
{
    (void)state;
    static const char *const names[] = {"none",  "user",  "denied", "not-found", "conflict",
                                        "retry", "limit", "system", "bug"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(names); i++)
        assert_string_equal(df_err_class_name((enum df_err_class)i), names[i]);
    assert_string_equal(df_err_class_name((enum df_err_class)99), "bug");
}

static void a_bug_prints_its_place_and_aborts(void **state)
{
    (void)state;
    int out[2];
    DF_BUF struct df_buf text = DF_BUF_INIT(1000);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        (void)dup2(out[1], STDERR_FILENO);
        (void)signal(SIGABRT, SIG_DFL);
        DF_BUG("number %d", 7);
    }
    (void)close(out[1]);
    int status = 0;
    /* To the end: it is written in pieces. */
    assert_int_equal(df_fs_read_fd(out[0], &text, NULL), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    (void)close(out[0]);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    assert_non_null(strstr(df_buf_str(&text), "test_err.c:"));
    assert_non_null(strstr(df_buf_str(&text), "number 7"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failure_says_what_and_of_which_class),
        cmocka_unit_test(an_allocation_that_is_missing_is_out_of_memory),
        cmocka_unit_test(a_failure_that_was_kept_apart_is_passed_on_whole),
        cmocka_unit_test(what_was_needed_on_the_way_is_not_what_was_asked_for),
        cmocka_unit_test(nobody_needs_to_listen),
        cmocka_unit_test(an_errno_becomes_a_class_and_words),
        cmocka_unit_test(context_is_put_in_front_and_keeps_the_rest),
        cmocka_unit_test(the_first_reason_stays),
        cmocka_unit_test(long_messages_are_cut_and_stay_strings),
        cmocka_unit_test(an_error_may_be_retold_from_its_own_parts),
        cmocka_unit_test(every_class_has_a_name),
        cmocka_unit_test(a_bug_prints_its_place_and_aborts),
    };
    return cmocka_run_group_tests_name("err", tests, NULL, NULL);
}
