#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "common/providers/lockfile.h"
#include "runner/tofu/package.h"
#include "runner/tofu/trust.h"
#include "tests/unit/scratch.h"

static void put(const char *dir, const char *name, const char *text, size_t n)
{
    DF_FREE char *path = df_fs_join(dir, name);
    struct df_err err = {0};
    if (!path || df_fs_write(path, text, n, 0755, &err) < 0)
        fail_msg("%s", err.message);
}

/* ---- lock files ---- */

static int read_lock(const char *dir, const char *text, struct df_lockfile *ret, struct df_err *err)
{
    put(dir, DF_LOCKFILE, text, strlen(text));
    return df_lockfile_read(dir, ret, err);
}

static void a_lock_file_is_read_as_the_tools_write_it(void **state)
{
    DF_LOCKED struct df_lockfile l = {0};
    struct df_err err = {0};
    assert_int_equal(read_lock(*state,
                               "# This file is maintained automatically by \"tofu init\".\n"
                               "provider \"registry.opentofu.org/hashicorp/aws\" {\n"
                               "  version     = \"5.0.1\"\n  constraints = \"~> 5.0\"\n"
                               "  hashes = [\n    \"h1:aa=\",\n    \"zh:bb\",\n  ]\n}\n\n"
                               "provider \"localhost:8443/a/b\" {\n  version = \"1.0.0-rc1\"\n}\n",
                               &l, &err),
                     0);
    assert_int_equal(l.len, 2);
    const struct df_locked_provider *p =
        df_lockfile_find(&l, "registry.opentofu.org/hashicorp/aws");
    assert_non_null(p);
    assert_string_equal(p->version, "5.0.1");
    assert_int_equal(p->hashes.len, 2);
    assert_true(df_strs_has(&p->hashes, "h1:aa=") && df_strs_has(&p->hashes, "zh:bb"));
    p = df_lockfile_find(&l, "localhost:8443/a/b");
    assert_non_null(p);
    assert_int_equal(p->hashes.len, 0);
    assert_null(df_lockfile_find(&l, "a/b/c"));
}

static void a_module_without_a_lock_file_has_no_locked_providers(void **state)
{
    DF_LOCKED struct df_lockfile l = {0};
    struct df_err err = {0};
    assert_int_equal(df_lockfile_read(*state, &l, &err), 0);
    assert_int_equal(l.len, 0);
}

/* Sources and versions become parts of paths. */
static void a_lock_file_that_would_lead_elsewhere_is_refused(void **state)
{
    static const struct {
        const char *text, *said;
    } table[] = {
        {"provider \"a/b\" {\n  version = \"1.0.0\"\n}\n", "line 1: \"a/b\" is not the source"},
        {"provider \"a/b/c/d\" {}\n", "not the source"},
        {"provider \"a/../c\" {}\n", "not the source"},
        {"provider \"/b/c\" {}\n", "not the source"},
        {"provider \"a/b/\" {}\n", "not the source"},
        {"provider a {}\n", "not the source"},
        {"provider \"a/b/c\" {\n  version = \"../../x\"\n}\n",
         "line 2: \"../../x\" is not the version"},
        {"provider \"a/b/c\" {\n  version = \"1/2\"\n}\n", "not the version"},
        {"provider \"a/b/c\" {\n  version = x\n}\n", "not the version"},
        {"provider \"a/b/c\" {\n}\n", "provider a/b/c has no version"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(table); i++) {
        DF_LOCKED struct df_lockfile l = {0};
        struct df_err err = {0};
        assert_int_equal(read_lock(*state, table[i].text, &l, &err), -1);
        assert_int_equal(err.cls, DF_ERR_USER);
        if (!strstr(err.message, table[i].said))
            fail_msg("%s\nsays %s\nnot %s", table[i].text, err.message, table[i].said);
    }
}

static void a_lock_file_has_a_limit(void **state)
{
    DF_LOCKED struct df_lockfile l = {0};
    struct df_err err = {0};
    DF_BUF struct df_buf text = DF_BUF_INIT(2 * DF_LIMIT_LOCKFILE);
    for (int i = 0; i <= DF_LIMIT_LOCKED_PROVIDERS; i++)
        (void)df_buf_addf(&text, "provider \"a/b/c%d\" {\nversion = \"1.0.0\"\n}\n", i);
    assert_int_equal(read_lock(*state, df_buf_str(&text), &l, &err), -1);
    assert_int_equal(err.cls, DF_ERR_LIMIT);
    while (text.len <= DF_LIMIT_LOCKFILE)
        (void)df_buf_adds(&text, "# filled up ----------------------------------------------\n");
    assert_int_equal(read_lock(*state, df_buf_str(&text), &l, &err), -1);
    assert_int_equal(err.cls, DF_ERR_LIMIT);
}

/* ---- packages ---- */

/* Of "one\n" in a and "two\n" in b/c, computed elsewhere. */
#define KNOWN "h1:lgfg06jx0zM/ME1yC5BXyMmwxfZnFfCAirwWds2B4xE="

static char *make_package(const char *dir)
{
    char *package = df_fs_join(dir, "package");
    DF_FREE char *below = df_fs_join(package, "b");
    struct df_err err = {0};
    if (df_fs_mkdirs(below, 0755, &err) < 0)
        fail_msg("%s", err.message);
    put(package, "a", "one\n", 4);
    put(below, "c", "two\n", 4);
    return package;
}

static void check_h1(int (*ask)(const char *, char *, struct df_err *), const char *package,
                     const char *expected)
{
    char h1[DF_PACKAGE_H1];
    struct df_err err = {0};
    if (ask(package, h1, &err) < 0)
        fail_msg("%s", err.message);
    assert_string_equal(h1, expected);
}

#define OTHER "h1:0000000000000000000000000000000000000000000="

static int recall(const char *package, char *ret, struct df_err *err)
{
    bool is_recorded;
    return df_package_recall(package, ret, &is_recorded, err);
}

static void a_package_has_the_checksum_that_lock_files_record(void **state)
{
    DF_FREE char *package = make_package(*state);
    check_h1(df_package_digest, package, KNOWN);
    check_h1(recall, package, KNOWN);
}

static void what_a_record_says_is_believed_of_the_very_same_files_alone(void **state)
{
    DF_FREE char *package = make_package(*state);
    DF_FREE char *record = df_strf("%s.h1", package);
    char h1[DF_PACKAGE_H1];
    struct df_err err = {0};
    check_h1(recall, package, KNOWN);
    assert_false(df_fs_exists(record)); /* nobody said that it is whole */
    df_package_record(package, OTHER);
    check_h1(recall, package, OTHER);
    put(package, "a", "changed\n", 8);
    assert_int_equal(recall(package, h1, &err), 0);
    assert_string_not_equal(h1, OTHER);
    DF_FREE char *forged = df_strf("%s %064d\n", KNOWN, 0);
    put(*state, "package.h1", forged, strlen(forged));
    assert_int_equal(recall(package, h1, &err), 0);
    assert_string_not_equal(h1, KNOWN);
}

static void a_copy_of_a_package_has_its_files_and_follows_no_link(void **state)
{
    DF_FREE char *package = make_package(*state);
    DF_FREE char *copy = df_fs_join(*state, "copy");
    DF_FREE char *other = df_fs_join(*state, "other");
    DF_FREE char *fifo = df_fs_join(package, "fifo");
    struct df_err err = {0};
    struct stat st;
    assert_int_equal(df_package_copy(package, copy, &err), 0);
    check_h1(df_package_digest, copy, KNOWN);
    DF_FREE char *program = df_fs_join(copy, "a");
    assert_int_equal(stat(program, &st), 0);
    assert_int_equal(st.st_mode & 0500, 0500); /* whatever a module made of the first one's mode */
    assert_int_equal(df_package_copy(package, copy, &err), -1); /* what is there stays */
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_int_equal(df_package_copy(package, other, &err), -1);
    assert_int_equal(unlink(fifo), 0);
    assert_int_equal(symlink("/etc/passwd", fifo), 0);
    assert_int_equal(df_package_copy(package, other, &err), -1);
    assert_false(df_fs_exists(other));
}

static void what_is_no_package_has_no_checksum(void **state)
{
    char h1[DF_PACKAGE_H1];
    struct df_err err = {0};
    DF_FREE char *package = make_package(*state);
    DF_FREE char *link = df_fs_join(package, "link");
    DF_FREE char *empty = df_fs_join(*state, "empty");
    assert_int_equal(df_fs_mkdirs(empty, 0755, &err), 0);
    assert_int_equal(df_package_digest(empty, h1, &err), -1);
    assert_non_null(strstr(err.message, "has no files"));
    assert_int_equal(symlink("/etc/passwd", link), 0);
    assert_int_equal(df_package_digest(package, h1, &err), -1);
    assert_non_null(strstr(err.message, "link is not a file"));
    assert_int_equal(unlink(link), 0);
    put(package, "a\n0123  b", "", 0); /* a line of another file */
    assert_int_equal(df_package_digest(package, h1, &err), -1);
    assert_non_null(strstr(err.message, "control character"));
}

/* ---- certificates ---- */

static void a_mirror_s_certificates_are_trusted_besides_the_others(void **state)
{
    DF_FREE char *own = df_fs_join(*state, "own");
    DF_FREE char *both = df_fs_join(*state, "both");
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_MIB);
    struct df_err err = {0};
    put(*state, "own", "first", 5);
    assert_int_equal(df_trust_write(own, "second", both, &err), 0);
    assert_int_equal(df_fs_read(both, &text, &err), 0);
    assert_string_equal(df_buf_str(&text), "first\nsecond");
    DF_FREE char *large = calloc(1, DF_LIMIT_TRUST);
    assert_non_null(large);
    put(*state, "own", large, DF_LIMIT_TRUST);
    assert_int_equal(df_trust_write(own, "second", both, &err), -1);
    assert_int_equal(err.cls, DF_ERR_LIMIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scratch_test(a_lock_file_is_read_as_the_tools_write_it),
        scratch_test(a_module_without_a_lock_file_has_no_locked_providers),
        scratch_test(a_lock_file_that_would_lead_elsewhere_is_refused),
        scratch_test(a_lock_file_has_a_limit),
        scratch_test(a_package_has_the_checksum_that_lock_files_record),
        scratch_test(what_a_record_says_is_believed_of_the_very_same_files_alone),
        scratch_test(a_copy_of_a_package_has_its_files_and_follows_no_link),
        scratch_test(what_is_no_package_has_no_checksum),
        scratch_test(a_mirror_s_certificates_are_trusted_besides_the_others),
    };
    return cmocka_run_group_tests_name("providers", tests, NULL, NULL);
}
