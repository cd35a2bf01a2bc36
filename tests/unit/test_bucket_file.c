/* Where an object of a bucket is saved. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/fs.h"
#include "common/blob/driver.h"

static void it_has_what_came_since_it_was_emptied(void **state)
{
    struct df_err err = {0};
    struct df_driver_file f;
    DF_BUF struct df_buf content = DF_BUF_INIT(100);
    DF_CLOSE int fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    (void)state;
    assert_int_equal(df_fs_write_all(fd, "of an attempt before", 20, &err), 0);
    assert_int_equal(df_driver_file_begin(&f, fd, 6, &err), 0);
    assert_int_equal(df_driver_file_take(&f, "abc", 3), 0);
    assert_int_equal(df_driver_file_take(&f, "def", 3), 0);
    assert_int_equal(df_driver_file_end(&f, &err), 0);
    assert_int_equal(df_fs_read_at(fd, 0, 100, &content, &err), 0);
    assert_string_equal(df_buf_str(&content), "abcdef");
}

static void it_has_a_limit(void **state)
{
    struct df_err err = {0};
    struct df_driver_file f;
    DF_CLOSE int fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    (void)state;
    assert_int_equal(df_driver_file_begin(&f, fd, 5, &err), 0);
    assert_int_equal(df_driver_file_take(&f, "abc", 3), 0);
    assert_int_equal(df_driver_file_take(&f, "def", 3), -1);
    assert_int_equal(df_driver_file_end(&f, &err), -1);
    assert_int_equal(err.cls, DF_ERR_LIMIT);
}

static void a_full_disk_is_told(void **state)
{
    struct df_err err = {0};
    struct df_driver_file f = {.left = 5};
    (void)state;
    f.fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    assert_true(f.fd >= 0);
    assert_int_equal(df_driver_file_take(&f, "abc", 3), -1);
    assert_int_equal(df_driver_file_end(&f, &err), -1);
    assert_int_equal(err.os_errno, ENOSPC);
    (void)close(f.fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_has_what_came_since_it_was_emptied),
        cmocka_unit_test(it_has_a_limit),
        cmocka_unit_test(a_full_disk_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
