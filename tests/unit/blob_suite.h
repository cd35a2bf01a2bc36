/*
 * blob_suite.h - what every backend of blobs must do, written against blob.h alone.
 *
 * A test program includes this behind cmocka.h, defines  static struct df_blob *suite_open(const
 * char *dir);  which opens the backend that belongs to dir (fails the test otherwise), and
 * blob_test(f) and blob_kill_test(f), which make an entry of the list of tests: *state is a
 * directory, the backend is empty. BLOB_SUITE is all of them; those of BLOB_KILL_SUITE kill
 * writers, which may leave something behind.
 */
#ifndef DF_TEST_BLOB_SUITE_H
#define DF_TEST_BLOB_SUITE_H

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>

#include "common/base/clock.h"
#include "common/base/limits.h"
#include "common/blob/blob.h"
#include "tests/unit/killed.h"
#include "tests/unit/scratch.h"

static struct df_blob *suite_open(const char *dir);

#define BLOBS DF_BLOB struct df_blob

static void put(struct df_blob *b, const char *key, const char *content)
{
    struct df_err err = {0};
    if (df_blob_put(b, key, content, strlen(content), &err) < 0)
        fail_msg("%s", err.message);
}

static void assert_content(struct df_blob *b, const char *key, const char *want)
{
    struct df_err err = {0};
    DF_BUF struct df_buf got = DF_BUF_INIT(1 * DF_MIB);
    assert_int_equal(df_blob_get(b, key, &got, &err), 0);
    assert_string_equal(df_buf_str(&got), want);
}

static void assert_absent(struct df_blob *b, const char *key)
{
    struct df_err err = {0};
    DF_BUF struct df_buf got = DF_BUF_INIT(1 * DF_MIB);
    assert_int_equal(df_blob_get(b, key, &got, &err), -1);
    assert_int_equal(err.cls, DF_ERR_NOT_FOUND);
}

static void assert_keys(struct df_blob *b, const char *prefix, const char *want)
{
    struct df_err err = {0};
    DF_STRS struct df_strs keys = {0};
    assert_int_equal(df_blob_list(b, prefix, &keys, &err), 0);
    DF_FREE char *got = df_strs_join(&keys, " ");
    assert_string_equal(got, want);
}

struct seen {
    struct df_strs keys;
    int64_t bytes;
};

static int note_seen(void *arg, const struct df_blob_info *info, struct df_err *err)
{
    struct seen *s = arg;
    s->bytes += info->size;
    (void)df_strs_add(&s->keys, info->key);
    return df_strs_check(&s->keys, err);
}

static int refuse_seen(void *arg, const struct df_blob_info *info, struct df_err *err)
{
    (void)arg;
    return df_fail(err, DF_ERR_USER, "enough: %s", info->key);
}

/* Nothing unfinished lies about. */
static void assert_tmp_is_empty(struct df_blob *b)
{
    assert_int_equal(rmdir(df_blob_tmp_dir(b)), 0);
    assert_int_equal(mkdir(df_blob_tmp_dir(b), 0700), 0);
}

static void a_blob_is_what_was_put_last(void **state)
{
    BLOBS *b = suite_open(*state);
    put(b, "state/x/1", "one");
    assert_content(b, "state/x/1", "one");
    put(b, "state/x/1", "two");
    put(b, "empty", "");
    assert_content(b, "state/x/1", "two");
    assert_content(b, "empty", "");
    assert_tmp_is_empty(b);
}

static void blobs_outlive_the_process_and_its_unfinished_files_do_not(void **state)
{
    struct df_err err = {0};
    struct df_blob *b = suite_open(*state);
    put(b, "a/b", "kept");
    DF_FREE char *left = df_fs_join(df_blob_tmp_dir(b), "put-123456");
    assert_int_equal(df_fs_replace(left, "half", 4, 0600, &err), 0);
    df_blob_close(b);
    BLOBS *again = suite_open(*state);
    assert_content(again, "a/b", "kept");
    assert_tmp_is_empty(again);
}

static void each_blob_is_given_with_what_it_takes(void **state)
{
    struct df_err err = {0};
    BLOBS *b = suite_open(*state);
    struct seen all = {0}, some = {0}, none = {0};
    char *large = malloc(100 * DF_KIB);
    assert_non_null(large);
    assert_int_equal(df_random(large, 100 * DF_KIB, &err), 0);
    put(b, "logs/a", "some");
    put(b, "logs.b", "other");
    assert_int_equal(df_blob_put(b, "state/x/1", large, 100 * DF_KIB, &err), 0);
    assert_int_equal(df_blob_each(b, "", note_seen, &all, &err), 0);
    assert_int_equal(all.keys.len, 3);
    assert_true(df_strs_has(&all.keys, "logs/a") && df_strs_has(&all.keys, "state/x/1"));
    assert_in_range(all.bytes, 100 * DF_KIB, 110 * DF_KIB);
    assert_int_equal(df_blob_each(b, "logs", note_seen, &some, &err), 0);
    assert_int_equal(some.keys.len, 1);
    assert_in_range(some.bytes, 4, DF_KIB);
    assert_int_equal(df_blob_each(b, "nothing", note_seen, &none, &err), 0);
    assert_int_equal(none.keys.len, 0);
    assert_int_equal(df_blob_each(b, "logs", refuse_seen, NULL, &err), -1);
    assert_string_equal(err.message, "enough: logs/a");
    assert_int_equal(df_blob_each(b, "../x", note_seen, &none, &err), -1);
    df_strs_free(&all.keys);
    df_strs_free(&some.keys);
    free(large);
}

static void keys_that_could_lead_astray_are_refused(void **state)
{
    static const char *const keys[] = {"",       ".",        "..",   "/",  "/etc/passwd", "../x",
                                       "a/../b", "a/./b",    "a//b", "a/", "a b",         "a\nb",
                                       "a:b",    "\xc3\xa9", "a\\b", "a*", "a/..",        "~root"};
    BLOBS *b = suite_open(*state);
    for (size_t i = 0; i < DF_ARRAY_SIZE(keys); i++) {
        struct df_err err = {0};
        int fd = -1;
        int64_t size = 0;
        DF_BUF struct df_buf out = DF_BUF_INIT(10);
        assert_int_equal(df_blob_put(b, keys[i], "x", 1, &err), -1);
        assert_int_equal(err.cls, DF_ERR_USER);
        assert_int_equal(df_blob_create(b, keys[i], "x", 1, &err), -1);
        assert_int_equal(df_blob_append(b, keys[i], 0, "x", 1, &size, &err), -1);
        assert_int_equal(df_blob_get(b, keys[i], &out, &err), -1);
        assert_int_equal(df_blob_open_read(b, keys[i], &fd, NULL, &err), -1);
        assert_int_equal(df_blob_delete(b, keys[i], &err), -1);
        assert_int_equal(df_blob_delete_all(b, keys[i], &err), -1);
        assert_int_equal(err.cls, DF_ERR_USER);
    }
    assert_keys(b, "", "");
}

static void a_key_may_use_all_of_its_alphabet_and_length_but_no_more(void **state)
{
    struct df_err err = {0};
    BLOBS *b = suite_open(*state);
    put(b, "aZ09._-/...a/..b", "x");
    assert_content(b, "aZ09._-/...a/..b", "x");
    char key[DF_LIMIT_BLOB_KEY + 2];
    for (size_t i = 0; i < sizeof(key) - 1; i++)
        key[i] = i % 100 == 99 ? '/' : 'k';
    key[DF_LIMIT_BLOB_KEY] = '\0';
    put(b, key, "long");
    assert_content(b, key, "long");
    key[DF_LIMIT_BLOB_KEY] = 'k';
    key[DF_LIMIT_BLOB_KEY + 1] = '\0';
    assert_int_equal(df_blob_put(b, key, "x", 1, &err), -1);
    assert_int_equal(err.cls, DF_ERR_USER);
}

static void create_refuses_what_exists_and_leaves_it_alone(void **state)
{
    struct df_err err = {0};
    BLOBS *b = suite_open(*state);
    assert_int_equal(df_blob_create(b, "l/lock", "me", 2, &err), 0);
    assert_int_equal(df_blob_create(b, "l/lock", "you", 3, &err), -1);
    assert_int_equal(err.cls, DF_ERR_CONFLICT);
    assert_content(b, "l/lock", "me");
    assert_tmp_is_empty(b);
    assert_int_equal(df_blob_delete(b, "l/lock", &err), 0);
    assert_int_equal(df_blob_create(b, "l/lock", "you", 3, &err), 0);
}

struct race {
    struct df_blob *blobs;
    pthread_barrier_t start;
    int won;
};

static void *create_once(void *arg)
{
    struct race *r = arg;
    (void)pthread_barrier_wait(&r->start);
    if (df_blob_create(r->blobs, "deep/in/there", "x", 1, NULL) == 0)
        (void)__atomic_add_fetch(&r->won, 1, __ATOMIC_SEQ_CST);
    return NULL;
}

static void of_many_who_create_the_same_blob_one_wins(void **state)
{
    BLOBS *b = suite_open(*state);
    for (int round = 0; round < 20; round++) {
        struct race r = {.blobs = b};
        pthread_t threads[8];
        assert_int_equal(pthread_barrier_init(&r.start, NULL, DF_ARRAY_SIZE(threads)), 0);
        for (size_t i = 0; i < DF_ARRAY_SIZE(threads); i++)
            assert_int_equal(pthread_create(&threads[i], NULL, create_once, &r), 0);
        for (size_t i = 0; i < DF_ARRAY_SIZE(threads); i++)
            assert_int_equal(pthread_join(threads[i], NULL), 0);
        (void)pthread_barrier_destroy(&r.start);
        assert_int_equal(r.won, 1);
        assert_int_equal(df_blob_delete_all(b, "deep", NULL), 0);
    }
}

static char *incoming(struct df_blob *b, const char *content)
{
    struct df_err err = {0};
    char *path = df_fs_join(df_blob_tmp_dir(b), "incoming");
    assert_int_equal(df_fs_replace(path, content, strlen(content), 0644, &err), 0);
    return path;
}

static void a_file_is_moved_into_place(void **state)
{
    struct df_err err = {0};
    BLOBS *b = suite_open(*state);
    DF_FREE char *path = incoming(b, "content");
    assert_int_equal(df_blob_put_file(b, "new/place", path, &err), 0);
    assert_content(b, "new/place", "content");
    assert_false(df_fs_exists(path));
    DF_FREE char *second = incoming(b, "changed");
    assert_int_equal(df_blob_put_file(b, "new/place", second, &err), 0);
    assert_content(b, "new/place", "changed");
    assert_false(df_fs_exists(second));
    assert_tmp_is_empty(b);
}

static void a_file_that_is_missing_or_a_link_is_not_moved(void **state)
{
    struct df_err err = {0};
    BLOBS *b = suite_open(*state);
    DF_FREE char *path = df_fs_join(df_blob_tmp_dir(b), "link");
    assert_int_equal(df_blob_put_file(b, "x", path, &err), -1);
    assert_int_equal(err.cls, DF_ERR_NOT_FOUND);
    assert_int_equal(symlink("/etc/passwd", path), 0);
    assert_int_equal(df_blob_put_file(b, "x", path, &err), -1);
    assert_absent(b, "x");
}

static void what_is_absent_or_a_directory_is_not_found(void **state)
{
    struct df_err err = {0};
    BLOBS *b = suite_open(*state);
    put(b, "dir/file", "x");
    static const char *const keys[] = {"none", "dir", "dir/none", "dir/file/below"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(keys); i++) {
        int64_t size = -1;
        assert_absent(b, keys[i]);
        assert_int_equal(df_blob_size(b, keys[i], &size, &err), 0);
        assert_int_equal(size, 0);
    }
}

static void a_blob_larger_than_the_buffer_is_a_limit(void **state)
{
    struct df_err err = {0};
    BLOBS *b = suite_open(*state);
    put(b, "x", "123456");
    DF_BUF struct df_buf five = DF_BUF_INIT(5);
    assert_int_equal(df_blob_get(b, "x", &five, &err), -1);
    assert_int_equal(err.cls, DF_ERR_LIMIT);
    DF_BUF struct df_buf six = DF_BUF_INIT(6);
    assert_int_equal(df_blob_get(b, "x", &six, &err), 0);
}

static void an_open_blob_is_read_to_its_end_although_it_was_replaced(void **state)
{
    struct df_err err = {0};
    BLOBS *b = suite_open(*state);
    put(b, "x", "old");
    DF_CLOSE int fd = -1;
    int64_t size = 0;
    assert_int_equal(df_blob_open_read(b, "x", &fd, &size, &err), 0);
    assert_int_equal(size, 3);
    put(b, "x", "newer");
    DF_BUF struct df_buf got = DF_BUF_INIT(10);
    assert_int_equal(df_fs_read_fd(fd, &got, &err), 0);
    assert_string_equal(df_buf_str(&got), "old");
}

static void the_list_is_sorted_and_below_its_prefix_alone(void **state)
{
    BLOBS *b = suite_open(*state);
    static const char *const keys[] = {"b/2", "b/10", "a", "b/1/x", "bb/1", "b/1/a"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(keys); i++)
        put(b, keys[i], "x");
    assert_keys(b, "b", "b/1/a b/1/x b/10 b/2");
    assert_keys(b, "", "a b/1/a b/1/x b/10 b/2 bb/1");
    assert_keys(b, "a", "");
    assert_keys(b, "none", "");
}

static void deleting_what_is_absent_is_success(void **state)
{
    struct df_err err = {0};
    BLOBS *b = suite_open(*state);
    put(b, "d/x", "x");
    assert_int_equal(df_blob_delete(b, "d/x", &err), 0);
    assert_int_equal(df_blob_delete(b, "d/x", &err), 0);
    assert_int_equal(df_blob_delete(b, "none/x", &err), 0);
    assert_absent(b, "d/x");
}

/* Agrees to one content alone. */
struct agreed {
    const char *content;
    int asked;
};

static bool agree(void *arg, const struct df_buf *content)
{
    struct agreed *a = arg;
    a->asked++;
    return df_streq(df_buf_str(content), a->content);
}

static void a_blob_goes_on_condition_of_its_content(void **state)
{
    struct df_err err = {0};
    struct agreed two = {"two", 0};
    const struct df_blob_condition c = {.max = 5, .agrees = agree, .arg = &two};
    enum df_blob_removal what;
    BLOBS *b = suite_open(*state);
    assert_int_equal(df_blob_delete_if(b, "x/y", &c, &what, &err), 0);
    assert_int_equal(what, DF_BLOB_ABSENT);
    assert_int_equal(two.asked, 0);
    put(b, "x/y", "one");
    assert_int_equal(df_blob_delete_if(b, "x/y", &c, &what, &err), 0);
    assert_int_equal(what, DF_BLOB_STAYS);
    assert_content(b, "x/y", "one");
    put(b, "x/y", "longer");
    assert_int_equal(df_blob_delete_if(b, "x/y", &c, &what, &err), -1);
    assert_int_equal(err.cls, DF_ERR_LIMIT);
    assert_content(b, "x/y", "longer");
    assert_int_equal(two.asked, 1);
    put(b, "x/y", "two");
    assert_int_equal(df_blob_delete_if(b, "x/y", &c, &what, &err), 0);
    assert_int_equal(what, DF_BLOB_REMOVED);
    assert_absent(b, "x/y");
}

static void a_whole_prefix_can_be_deleted_and_used_again(void **state)
{
    struct df_err err = {0};
    BLOBS *b = suite_open(*state);
    put(b, "d/x", "x");
    put(b, "d/e/y", "y");
    put(b, "dd/z", "z");
    assert_int_equal(df_blob_delete_all(b, "d", &err), 0);
    assert_int_equal(df_blob_delete_all(b, "d", &err), 0);
    assert_keys(b, "", "dd/z");
    put(b, "d/e/y", "again");
    assert_content(b, "d/e/y", "again");
}

static void a_stream_grows_at_its_end_alone(void **state)
{
    struct df_err err = {0};
    BLOBS *b = suite_open(*state);
    int64_t size = -1;
    assert_int_equal(df_blob_append(b, "s/log", 0, "one", 3, &size, &err), 0);
    assert_int_equal(size, 3);
    assert_int_equal(df_blob_append(b, "s/log", 3, "two", 3, &size, &err), 0);
    assert_int_equal(size, 6);
    static const int64_t wrong[] = {0, 3, 5, 7, 1000, -1, INT64_MAX};
    for (size_t i = 0; i < DF_ARRAY_SIZE(wrong); i++) {
        size = -1;
        assert_int_equal(df_blob_append(b, "s/log", wrong[i], "x", 1, &size, &err), -1);
        assert_int_equal(err.cls, DF_ERR_CONFLICT);
        assert_int_equal(size, 6);
    }
    assert_int_equal(df_blob_append(b, "s/log", 6, "", 0, &size, &err), 0);
    assert_content(b, "s/log", "onetwo");
}

static void a_stream_does_not_begin_in_its_middle(void **state)
{
    struct df_err err = {0};
    BLOBS *b = suite_open(*state);
    int64_t size = -1;
    assert_int_equal(df_blob_append(b, "s/log", 5, "x", 1, &size, &err), -1);
    assert_int_equal(err.cls, DF_ERR_CONFLICT);
    assert_int_equal(size, 0);
    assert_absent(b, "s/log");
}

static void append_for_ever(const struct child *c)
{
    struct df_blob *b = suite_open(c->dir);
    struct df_err err = {0};
    int64_t size = 0;
    if (df_blob_size(b, "log", &size, &err) < 0)
        _exit(1);
    for (uint32_t i = (uint32_t)(size / 4) + 1;; i++) {
        if (df_blob_append(b, "log", 4 * (int64_t)(i - 1), &i, 4, &size, &err) < 0)
            _exit(1);
        acknowledge(c, i);
    }
}

static void a_stream_is_read_from_any_place_as_far_as_there_is_room(void **state)
{
    static const struct {
        int64_t offset;
        size_t room;
        const char *want;
    } cases[] = {{0, 100, "onetwothree"},
                 {3, 100, "twothree"},
                 {4, 4, "woth"},
                 {10, 1, "e"},
                 {11, 5, ""},
                 {12, 5, ""},
                 {0, 0, ""}};
    struct df_err err = {0};
    BLOBS *b = suite_open(*state);
    int64_t size = 0;
    assert_int_equal(df_blob_append(b, "s/log", 0, "one", 3, &size, &err), 0);
    assert_int_equal(df_blob_append(b, "s/log", 3, "twothree", 8, &size, &err), 0);
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_BUF struct df_buf out = DF_BUF_INIT(2 + cases[i].room);
        (void)df_buf_adds(&out, "> ");
        assert_int_equal(df_blob_read_at(b, "s/log", cases[i].offset, &out, &size, &err), 0);
        assert_string_equal(df_buf_str(&out) + 2, cases[i].want);
        assert_int_equal(size, 11);
    }
    DF_BUF struct df_buf none = DF_BUF_INIT(10);
    assert_int_equal(df_blob_read_at(b, "s/none", 0, &none, &size, &err), -1);
    assert_int_equal(err.cls, DF_ERR_NOT_FOUND);
}

static void a_killed_appender_loses_nothing_that_it_acknowledged(void **state)
{
    uint32_t seen = 0;
    for (int round = 0; round < 15; round++) {
        uint32_t acknowledged = killed_child(*state, append_for_ever);
        struct df_err err = {0};
        BLOBS *b = suite_open(*state);
        DF_BUF struct df_buf got = DF_BUF_INIT(1 * DF_MIB);
        if (df_blob_get(b, "log", &got, &err) < 0)
            assert_int_equal(err.cls, DF_ERR_NOT_FOUND);
        seen = acknowledged > seen ? acknowledged : seen;
        assert_true(got.len / 4 >= seen);
        assert_int_equal(got.len % 4, 0);
        for (uint32_t i = 0; i < got.len / 4; i++) {
            uint32_t number;
            memcpy(&number, got.data + (size_t)4 * i, 4);
            assert_int_equal(number, i + 1);
        }
    }
}

static void replace_for_ever(const struct child *c)
{
    struct df_blob *b = suite_open(c->dir);
    struct df_err err = {0};
    static uint32_t content[5000];
    for (uint32_t i = 1;; i++) {
        for (size_t k = 0; k < DF_ARRAY_SIZE(content); k++)
            content[k] = i;
        if (df_blob_put(b, "x/y", content, sizeof(content), &err) < 0)
            _exit(1);
        acknowledge(c, i);
    }
}

static void a_killed_writer_leaves_one_version_whole(void **state)
{
    uint32_t ever = 0;
    for (int round = 0; round < 15; round++) {
        uint32_t acknowledged = killed_child(*state, replace_for_ever);
        ever |= acknowledged;
        struct df_err err = {0};
        BLOBS *b = suite_open(*state);
        DF_BUF struct df_buf got = DF_BUF_INIT(1 * DF_MIB);
        if (df_blob_get(b, "x/y", &got, &err) < 0) {
            assert_int_equal(ever, 0);
            continue;
        }
        assert_int_equal(got.len, 20000);
        uint32_t first;
        memcpy(&first, got.data, 4);
        assert_true(!acknowledged || first == acknowledged || first == acknowledged + 1);
        for (size_t k = 0; k < 5000; k++)
            assert_memory_equal(got.data + 4 * k, &first, 4);
    }
}

#define BLOB_SUITE                                                                                 \
    blob_test(a_blob_is_what_was_put_last),                                                        \
        blob_test(blobs_outlive_the_process_and_its_unfinished_files_do_not),                      \
        blob_test(each_blob_is_given_with_what_it_takes),                                          \
        blob_test(keys_that_could_lead_astray_are_refused),                                        \
        blob_test(a_key_may_use_all_of_its_alphabet_and_length_but_no_more),                       \
        blob_test(create_refuses_what_exists_and_leaves_it_alone),                                 \
        blob_test(of_many_who_create_the_same_blob_one_wins),                                      \
        blob_test(a_file_is_moved_into_place),                                                     \
        blob_test(a_file_that_is_missing_or_a_link_is_not_moved),                                  \
        blob_test(what_is_absent_or_a_directory_is_not_found),                                     \
        blob_test(a_blob_larger_than_the_buffer_is_a_limit),                                       \
        blob_test(an_open_blob_is_read_to_its_end_although_it_was_replaced),                       \
        blob_test(the_list_is_sorted_and_below_its_prefix_alone),                                  \
        blob_test(deleting_what_is_absent_is_success),                                             \
        blob_test(a_blob_goes_on_condition_of_its_content),                                        \
        blob_test(a_whole_prefix_can_be_deleted_and_used_again),                                   \
        blob_test(a_stream_grows_at_its_end_alone),                                                \
        blob_test(a_stream_does_not_begin_in_its_middle),                                          \
        blob_test(a_stream_is_read_from_any_place_as_far_as_there_is_room)

#define BLOB_KILL_SUITE                                                                            \
    blob_kill_test(a_killed_appender_loses_nothing_that_it_acknowledged),                          \
        blob_kill_test(a_killed_writer_leaves_one_version_whole)

#endif
