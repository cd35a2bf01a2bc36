#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "common/base/clock.h"
#include "tests/unit/killed.h"
#include "tests/unit/store_crowd.h"
#include "tests/unit/store_suite.h"

static char *database_in(const char *dir)
{
    return df_fs_join(dir, "dayfly.db");
}

static struct df_store *suite_open(const char *dir)
{
    struct df_err err = {0};
    struct df_store *s = NULL;
    DF_FREE char *path = database_in(dir);
    if (df_store_sqlite_open(path, &s, &err) < 0)
        fail_msg("%s", err.message);
    return s;
}

/* ---- files that are not ours ---------------------------------------------------------------- */

static void read_file(const char *path, struct df_buf *b)
{
    struct df_err err = {0};
    if (df_fs_read(path, b, &err) < 0)
        fail_msg("%s", err.message);
}

static void write_file(const char *path, const void *bytes, size_t n)
{
    struct df_err err = {0};
    if (df_fs_replace(path, bytes, n, 0600, &err) < 0)
        fail_msg("%s", err.message);
}

/* Refused with its name, the words and a way out; not a byte of it changed. */
static void assert_left_alone(const char *path, const char *words)
{
    struct df_err err = {0};
    struct df_store *s = NULL;
    DF_BUF struct df_buf before = DF_BUF_INIT(64 * DF_MIB);
    DF_BUF struct df_buf after = DF_BUF_INIT(64 * DF_MIB);
    read_file(path, &before);
    assert_int_equal(df_store_sqlite_open(path, &s, &err), -1);
    assert_int_equal(err.cls, DF_ERR_SYSTEM);
    assert_non_null(strstr(err.message, path));
    if (!strstr(err.message, words) || !strstr(err.message, "--data-directory"))
        fail_msg("%s", err.message);
    read_file(path, &after);
    assert_int_equal(before.len, after.len);
    assert_memory_equal(df_buf_str(&before), df_buf_str(&after), before.len);
}

static void a_file_that_is_no_database_is_left_alone(void **state)
{
    static const char *const contents[] = {
        "", "hello", "SQLite format 3",
        ("a text long enough to be looked at as the header of a "
         "database: it is longer than one hundred bytes, surely")};
    DF_FREE char *path = database_in(*state);
    for (size_t i = 0; i < DF_ARRAY_SIZE(contents); i++) {
        write_file(path, contents[i], strlen(contents[i]));
        assert_left_alone(path, "is not a dayfly database");
    }
}

static void execute(const char *path, const char *sql)
{
    sqlite3 *db = NULL;
    char *why = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, &why) != SQLITE_OK)
        fail_msg("%s", why);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void a_database_of_another_program_is_left_alone(void **state)
{
    DF_FREE char *path = database_in(*state);
    execute(path, "CREATE TABLE theirs (x); PRAGMA application_id = 42");
    assert_left_alone(path, "is not a dayfly database");
}

static void a_database_of_a_newer_version_is_left_alone(void **state)
{
    DF_FREE char *path = database_in(*state);
    df_store_close(suite_open(*state));
    execute(path, "PRAGMA user_version = 7");
    assert_left_alone(path, "schema version 7");
}

static void a_directory_is_no_database(void **state)
{
    struct df_err err = {0};
    struct df_store *s = NULL;
    assert_int_equal(df_store_sqlite_open(*state, &s, &err), -1);
    assert_int_equal(err.cls, DF_ERR_SYSTEM);
    assert_non_null(strstr(err.message, *state));
    assert_non_null(strstr(err.message, "not a regular file"));
}

static void a_path_into_nowhere_is_named(void **state)
{
    struct df_err err = {0};
    struct df_store *s = NULL;
    DF_FREE char *path = df_fs_join(*state, "none/dayfly.db");
    assert_int_equal(df_store_sqlite_open(path, &s, &err), -1);
    assert_non_null(strstr(err.message, path));
}

static void fill_some_pages(const char *dir)
{
    STORE *s = suite_open(dir);
    for (int i = 0; i < 200; i++) {
        DF_FREE char *name = df_strf("run-%d", i);
        make(s, DF_KIND_RUN, name, "{\"a\":\"b\"}");
    }
}

/* A process that was killed while it copied the log into the file: the first page is there already,
 * and it counts pages that are not. */
static void a_log_that_was_taken_over_by_half_is_taken_over_again(void **state)
{
    DF_FREE char *path = database_in(*state);
    DF_FREE char *wal = df_strf("%s-wal", path);
    DF_BUF struct df_buf before = DF_BUF_INIT(64 * DF_MIB), log = DF_BUF_INIT(64 * DF_MIB);
    DF_BUF struct df_buf after = DF_BUF_INIT(64 * DF_MIB);
    struct df_store *s = suite_open(*state);
    for (int i = 0; i < 20; i++) {
        DF_FREE char *name = df_strf("run-%d", i);
        make(s, DF_KIND_RUN, name, "{\"a\":\"b\"}");
    }
    read_file(path, &before);
    read_file(wal, &log);
    df_store_close(s);
    read_file(path, &after);
    assert_true(after.len > before.len && before.len > 4096);
    memcpy(before.data, after.data, 4096);
    write_file(path, before.data, before.len);
    write_file(wal, log.data, log.len);
    STORE *again = suite_open(*state);
    DF_JSON cJSON *last = NULL;
    assert_int_equal(df_store_get(again, DF_KIND_RUN, "run-19", &last, NULL), 0);
}

static void a_damaged_database_is_recognised_and_left_alone(void **state)
{
    DF_FREE char *path = database_in(*state);
    fill_some_pages(*state);
    DF_BUF struct df_buf whole = DF_BUF_INIT(64 * DF_MIB);
    read_file(path, &whole);
    assert_true(whole.len > 20 * 4096);
    /* Each page's head in turn, behind the first one. */
    for (size_t page = 1; page < whole.len / 4096; page += 3) {
        DF_FREE char *damaged = malloc(whole.len);
        assert_non_null(damaged);
        memcpy(damaged, whole.data, whole.len);
        memset(damaged + 4096 * page, 0xa5, 64);
        write_file(path, damaged, whole.len);
        assert_left_alone(path, "is damaged");
    }
    write_file(path, whole.data, whole.len / 2);
    assert_left_alone(path, "is damaged");
}

/* A database may come with a backup that somebody forged. */
static void what_a_forged_database_brings_along_is_refused_and_never_executed(void **state)
{
    static const char *const additions[] = {
        "CREATE TRIGGER t AFTER INSERT ON documents BEGIN DELETE FROM documents; END",
        "CREATE VIEW v AS SELECT body FROM documents",
        "CREATE TABLE theirs (x)",
        "CREATE INDEX i ON documents (name) WHERE body > 'a'",
    };
    DF_FREE char *path = database_in(*state);
    struct df_err err = {0};
    df_store_close(suite_open(*state));
    assert_int_equal(df_store_sqlite_check(path, &err), 0);
    for (size_t i = 0; i < DF_ARRAY_SIZE(additions); i++) {
        DF_FREE char *name = df_strf("net-%zu", i);
        execute(path, additions[i]);
        assert_int_equal(df_store_sqlite_check(path, &err), -1);
        assert_non_null(strstr(err.message, "that dayfly does not make"));
        STORE *s = suite_open(*state); /* a service whose disk was written to */
        make(s, DF_KIND_RUN, name, "{}");
        DF_JSON cJSON *first = NULL;
        assert_int_equal(df_store_get(s, DF_KIND_RUN, "net-0", &first, &err), 0);
    }
}

static void a_log_without_its_database_is_not_played_into_a_new_one(void **state)
{
    struct df_err err = {0};
    struct df_store *s = NULL;
    DF_FREE char *path = database_in(*state);
    DF_FREE char *wal = df_strf("%s-wal", path);
    write_file(wal, "log", 3);
    assert_int_equal(df_store_sqlite_open(path, &s, &err), -1);
    assert_int_equal(err.cls, DF_ERR_SYSTEM);
    assert_non_null(strstr(err.message, wal));
    assert_false(df_fs_exists(path));
}

static void what_an_interrupted_first_start_left_is_no_hindrance(void **state)
{
    DF_FREE char *left = df_fs_join(*state, "dayfly.db.new");
    write_file(left, "half", 4);
    STORE *s = suite_open(*state);
    make(s, DF_KIND_RUN, "net", "{}");
    assert_false(df_fs_exists(left));
}

static void a_path_with_signs_that_mean_something_in_a_uri_works(void **state)
{
    struct df_err err = {0};
    DF_FREE char *path = df_fs_join(*state, "a b?mode=memory#%41&x.db");
    for (int i = 0; i < 2; i++) {
        STORE *s = NULL;
        if (df_store_sqlite_open(path, &s, &err) < 0)
            fail_msg("%s", err.message);
    }
    assert_true(df_fs_exists(path));
}

static void a_database_that_may_not_be_written_is_named(void **state)
{
    const uid_t nobody = 65534;
    bool is_root = geteuid() == 0; /* whom no mode stops */
    struct df_err err = {0};
    struct df_store *s = NULL;
    DF_FREE char *path = database_in(*state);
    df_store_close(suite_open(*state));
    if (is_root) {
        assert_int_equal(chown(*state, nobody, nobody), 0);
        assert_int_equal(chown(path, nobody, nobody), 0);
        assert_int_equal(seteuid(nobody), 0);
    }
    assert_int_equal(chmod(path, 0400), 0);
    assert_int_equal(df_store_sqlite_open(path, &s, &err), -1);
    assert_int_equal(err.cls, DF_ERR_SYSTEM);
    assert_non_null(strstr(err.message, path));
    assert_int_equal(chmod(path, 0000), 0);
    assert_int_equal(df_store_sqlite_open(path, &s, &err), -1);
    assert_non_null(strstr(err.message, path));
    assert_int_equal(is_root ? seteuid(0) : 0, 0);
}

/* ---- trouble while it runs ------------------------------------------------------------------ */

/* Creates until the file may not grow any more; then the store must still read and say why. */
static void fill_the_disk(const char *dir)
{
    struct df_err err = {0};
    const struct rlimit small = {512 * 1024, 512 * 1024};
    (void)signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &small) < 0)
        _exit(1);
    struct df_store *s = suite_open(dir);
    int made_so_far = 0;
    for (;; made_so_far++) {
        DF_FREE char *name = df_strf("run-%d", made_so_far);
        DF_JSON cJSON *doc = document(name, "{\"a\":\"b\"}", "{}");
        DF_FREE char *padding = malloc(20001);
        memset(padding, 'x', 20000);
        padding[20000] = '\0';
        if (df_json_add_str(cJSON_GetObjectItem(doc, "spec"), "x", padding, NULL) < 0)
            _exit(2);
        if (df_store_create(s, DF_KIND_RUN, doc, NULL, &err) < 0)
            break;
    }
    DF_JSON cJSON *list = NULL;
    if (err.cls != DF_ERR_LIMIT || made_so_far < 5)
        _exit(3);
    if (df_store_list(s, DF_KIND_RUN, NULL, &list, NULL, &err) < 0 ||
        cJSON_GetArraySize(list) != made_so_far)
        _exit(4);
    _exit(made_so_far + 100);
}

static void a_full_disk_is_a_limit_and_costs_nothing_that_was_stored(void **state)
{
    pid_t pid = fork();
    if (pid == 0)
        fill_the_disk(*state);
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) > 100);
    STORE *s = suite_open(*state);
    DF_JSON cJSON *list = NULL;
    assert_int_equal(df_store_list(s, DF_KIND_RUN, NULL, &list, NULL, NULL), 0);
    assert_int_equal(cJSON_GetArraySize(list), WEXITSTATUS(status) - 100);
    make(s, DF_KIND_RUN, "afterwards", "{}");
}

static void write_for_ever(const struct child *c)
{
    struct df_err err = {0};
    struct df_store *s = suite_open(c->dir);
    DF_JSON cJSON *doc = NULL;
    if (df_store_get(s, DF_KIND_RUN, "counter", &doc, &err) < 0)
        doc = made(s, DF_KIND_RUN, "counter", "{}", "{}");
    for (uint32_t i = (uint32_t)df_json_int(doc, "spec.n", 0) + 1;; i++) {
        /* Two documents and a label change with the counter. */
        DF_FREE char *name = df_strf("run-%u", i);
        make(s, DF_KIND_RUN, name, "{\"a\":\"b\"}");
        if (df_store_modify(s, DF_KIND_RUN, "counter", add_one, NULL, NULL, &err) < 0)
            _exit(1);
        acknowledge(c, i);
        DF_FREE char *old = df_strf("run-%u", i - 10);
        if (i > 10 && df_store_remove(s, DF_KIND_RUN, old, NULL, &err) < 0)
            _exit(1);
    }
}

static void a_killed_writer_loses_nothing_that_it_acknowledged(void **state)
{
    uint32_t seen = 0;
    for (int round = 0; round < 15; round++) {
        uint32_t acknowledged = killed_child(*state, write_for_ever);
        seen = acknowledged > seen ? acknowledged : seen;
        STORE *s = suite_open(*state); /* checks every page, too */
        if (!seen)
            continue;
        DF_JSON cJSON *counter = got(s, DF_KIND_RUN, "counter");
        int64_t n = df_json_int(counter, "spec.n", -1);
        assert_true(n >= seen);
        DF_FREE char *name = df_strf("run-%lld", (long long)n);
        cJSON_Delete(got(s, DF_KIND_RUN, name));
        /* A run made just before the counter went on may be there: the next round must cope. */
        DF_FREE char *ahead = df_strf("run-%lld", (long long)n + 1);
        (void)df_store_remove(s, DF_KIND_RUN, ahead, NULL, NULL);
        DF_FREE char *behind = df_strf("run-%lld", (long long)n - 10);
        (void)df_store_remove(s, DF_KIND_RUN, behind, NULL, NULL);
        DF_JSON cJSON *list = NULL;
        assert_int_equal(df_store_list(s, DF_KIND_RUN,
                                       &(struct df_store_list_options){.label = "a=b"}, &list, NULL,
                                       NULL),
                         0);
        assert_int_equal(cJSON_GetArraySize(list), n < 10 ? n : 10);
    }
}

static void a_killed_first_start_leaves_no_half_database(void **state)
{
    for (int round = 0; round < 10; round++) {
        DF_FREE char *dir = df_strf("%s/%d", (char *)*state, round);
        assert_int_equal(mkdir(dir, 0700), 0);
        pid_t pid = fork();
        if (pid == 0) {
            df_store_close(suite_open(dir));
            _exit(0);
        }
        (void)usleep((unsigned)round * 150);
        (void)kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        STORE *s = suite_open(dir);
        make(s, DF_KIND_RUN, "net", "{}");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_SUITE,
        STORE_CROWD_SUITE,
        scratch_test(a_file_that_is_no_database_is_left_alone),
        scratch_test(a_database_of_another_program_is_left_alone),
        scratch_test(a_database_of_a_newer_version_is_left_alone),
        scratch_test(a_directory_is_no_database),
        scratch_test(a_path_into_nowhere_is_named),
        scratch_test(a_log_that_was_taken_over_by_half_is_taken_over_again),
        scratch_test(a_damaged_database_is_recognised_and_left_alone),
        scratch_test(what_a_forged_database_brings_along_is_refused_and_never_executed),
        scratch_test(a_log_without_its_database_is_not_played_into_a_new_one),
        scratch_test(what_an_interrupted_first_start_left_is_no_hindrance),
        scratch_test(a_path_with_signs_that_mean_something_in_a_uri_works),
        scratch_test(a_database_that_may_not_be_written_is_named),
        scratch_test(a_full_disk_is_a_limit_and_costs_nothing_that_was_stored),
        scratch_test(a_killed_writer_loses_nothing_that_it_acknowledged),
        scratch_test(a_killed_first_start_leaves_no_half_database),
    };
    return cmocka_run_group_tests_name("store", tests, NULL, NULL);
}
