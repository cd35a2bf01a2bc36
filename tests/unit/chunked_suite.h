/*
 * chunked_suite.h - what blobs do in every object store (common/blob/chunked.h), whichever it is.
 *
 * Include behind blob_suite.h. The test program defines what looks into its store behind the back
 * of the blobs; *state is the directory of the test.
 */
#ifndef DF_TEST_CHUNKED_SUITE_H
#define DF_TEST_CHUNKED_SUITE_H

#include <sys/random.h>

#include "common/base/clock.h"
#include "tests/unit/blob_suite.h"

#define MIB ((size_t)1024 * 1024)

/* Blobs in the store of this test, with their temporary files in that directory. */
static struct df_blob *open_in(const char *state, const char *directory);
static void list_chunks(const char *state, struct df_strs *ret);
static void delete_chunk(const char *state, const char *name);
static void copy_chunk(const char *state, const char *from, const char *to);

static size_t count_chunks(const char *state)
{
    DF_STRS struct df_strs names = {0};
    list_chunks(state, &names);
    return names.len;
}

/* ---- large blobs ---------------------------------------------------------------------------- */

/* Bytes that cannot be compressed, the same for the same seed; the caller frees. */
static char *noise(size_t n, uint64_t seed)
{
    char *bytes = malloc(n + 1);
    assert_non_null(bytes);
    for (size_t i = 0; i < n; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        bytes[i] = (char)(seed >> 56);
    }
    return bytes;
}

static void put_noise(struct df_blob *b, const char *key, size_t n, uint64_t seed)
{
    struct df_err err = {0};
    DF_FREE char *bytes = noise(n, seed);
    if (df_blob_put(b, key, bytes, n, &err) < 0)
        fail_msg("%s", err.message);
}

static void assert_noise(struct df_blob *b, const char *key, size_t n, uint64_t seed)
{
    struct df_err err = {0};
    DF_FREE char *want = noise(n, seed);
    DF_BUF struct df_buf got = DF_BUF_INIT(n);
    int64_t size = 0;
    if (df_blob_get(b, key, &got, &err) < 0)
        fail_msg("%s", err.message);
    assert_int_equal(got.len, n);
    assert_memory_equal(got.data, want, n);
    assert_int_equal(df_blob_size(b, key, &size, &err), 0);
    assert_int_equal(size, n);
}

static void a_blob_of_any_size_is_what_was_put_last(void **state)
{
    static const struct {
        size_t size, chunks;
    } cases[] = {{MIB / 64 - 1, 0}, {MIB / 64, 1},    {MIB / 2, 1}, {MIB / 2 + 1, 2},
                 {MIB / 2 - 1, 1},  {3 * MIB + 7, 7}, {5, 0},       {MIB, 2}};
    BLOBS *b = suite_open(*state);
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        put_noise(b, "state/x/1", cases[i].size, i);
        assert_noise(b, "state/x/1", cases[i].size, i);
        assert_int_equal(count_chunks(*state), cases[i].chunks);
    }
}

static void a_large_file_is_moved_into_place(void **state)
{
    struct df_err err = {0};
    BLOBS *b = suite_open(*state);
    DF_FREE char *path = df_fs_join(df_blob_tmp_dir(b), "incoming");
    DF_FREE char *bytes = noise(2 * MIB, 7);
    assert_int_equal(df_fs_write(path, bytes, 2 * MIB, 0600, &err), 0);
    assert_int_equal(df_blob_put_file(b, "plans/p", path, &err), 0);
    assert_noise(b, "plans/p", 2 * MIB, 7);
    assert_false(df_fs_exists(path));
}

static void what_is_created_over_a_large_blob_leaves_no_chunks(void **state)
{
    struct df_err err = {0};
    BLOBS *b = suite_open(*state);
    put_noise(b, "l/lock", 2 * MIB, 1);
    DF_FREE char *bytes = noise(2 * MIB, 2);
    assert_int_equal(df_blob_create(b, "l/lock", bytes, 2 * MIB, &err), -1);
    assert_int_equal(err.cls, DF_ERR_CONFLICT);
    assert_noise(b, "l/lock", 2 * MIB, 1);
    assert_int_equal(count_chunks(*state), 4);
}

static void a_blob_may_fill_its_cap_and_no_more(void **state)
{
    struct df_err err = {0};
    BLOBS *b = suite_open(*state);
    DF_FREE char *path = df_fs_join(df_blob_tmp_dir(b), "incoming");
    int64_t size = 0;
    assert_int_equal(df_fs_write(path, "", 0, 0600, &err), 0);
    assert_int_equal(truncate(path, (off_t)DF_LIMIT_BLOB_KUBE + 1), 0);
    assert_int_equal(df_blob_put_file(b, "state/x/1", path, &err), -1);
    assert_int_equal(err.cls, DF_ERR_LIMIT);
    assert_true(df_fs_exists(path));
    assert_keys(b, "", "");
    assert_int_equal(count_chunks(*state), 0);
    assert_int_equal(truncate(path, (off_t)DF_LIMIT_BLOB_KUBE), 0);
    assert_int_equal(df_blob_put_file(b, "state/x/1", path, &err), 0);
    assert_int_equal(df_blob_size(b, "state/x/1", &size, &err), 0);
    assert_int_equal(size, DF_LIMIT_BLOB_KUBE);
    assert_int_equal(df_blob_append(b, "state/x/1", size, "x", 1, &size, &err), -1);
    assert_int_equal(err.cls, DF_ERR_LIMIT);
    assert_int_equal(df_blob_append(b, "state/x/1", size, "", 0, &size, &err), 0);
}

static void a_reader_meets_one_version_whole_while_another_writes(void **state)
{
    BLOBS *b = suite_open(*state);
    put_noise(b, "x", 2 * MIB, 0);
    pid_t pid = fork();
    if (pid == 0) {
        DF_FREE char *own = df_strf("%s/child", (char *)*state);
        struct df_blob *writer = open_in(*state, own);
        for (uint64_t i = 1; i <= 20; i++)
            put_noise(writer, "x", 2 * MIB, i);
        _exit(0);
    }
    uint64_t last = 0;
    for (int status = 0; waitpid(pid, &status, WNOHANG) == 0;) {
        struct df_err err = {0};
        DF_BUF struct df_buf got = DF_BUF_INIT(2 * MIB);
        if (df_blob_get(b, "x", &got, &err) < 0)
            fail_msg("%s", err.message);
        DF_FREE char *want = NULL;
        for (bool same = false; !same; last += !same) {
            assert_true(last <= 20);
            free(want);
            want = noise(2 * MIB, last);
            same = memcmp(got.data, want, 2 * MIB) == 0;
        }
    }
    assert_noise(b, "x", 2 * MIB, 20);
}

/* ---- streams -------------------------------------------------------------------------------- */

static void append(struct df_blob *b, const char *key, int64_t offset, const char *bytes, size_t n)
{
    struct df_err err = {0};
    int64_t size = 0;
    if (df_blob_append(b, key, offset, bytes, n, &size, &err) < 0)
        fail_msg("%s", err.message);
    assert_int_equal(size, offset + (int64_t)n);
}

static void a_long_stream_is_whole_and_read_from_any_place(void **state)
{
    static const size_t frames[] = {1,     65535, 65536, 10000, 200000, 0, 55536,
                                    65537, 3,     40000, 40000, 40000,  7};
    BLOBS *b = suite_open(*state);
    DF_FREE char *all = noise(MIB, 3);
    size_t at = 0;
    for (size_t i = 0; i < DF_ARRAY_SIZE(frames); at += frames[i++])
        append(b, "logs/a.log", (int64_t)at, all + at, frames[i]);
    assert_noise(b, "logs/a.log", at, 3);
    assert_int_equal(count_chunks(*state), at / 65536);
    for (size_t from = 0; from < at; from += 31337) {
        struct df_err err = {0};
        int64_t size = 0;
        DF_BUF struct df_buf got = DF_BUF_INIT(100000);
        assert_int_equal(df_blob_read_at(b, "logs/a.log", (int64_t)from, &got, &size, &err), 0);
        assert_int_equal(size, at);
        assert_int_equal(got.len, at - from < 100000 ? at - from : 100000);
        assert_memory_equal(got.data, all + from, got.len);
    }
}

static void a_blob_that_was_put_grows_as_a_stream(void **state)
{
    BLOBS *b = suite_open(*state);
    DF_FREE char *all = noise(2 * MIB, 4);
    put_noise(b, "x", MIB - 5, 4);
    append(b, "x", MIB - 5, all + MIB - 5, 4);
    append(b, "x", MIB - 1, all + MIB - 1, MIB);
    assert_noise(b, "x", 2 * MIB - 1, 4);
}

/* ---- two processes -------------------------------------------------------------------------- */

struct rivals {
    struct df_blob *backend[2];
    pthread_barrier_t start;
    int64_t offset;
    int won[2], lost[2];
    int64_t told[2]; /* the size that the loser was told */
};

struct rival {
    struct rivals *all;
    size_t me;
};

/* Enough for a chunk to become full, so that both make one. */
static void *append_once(void *arg)
{
    const struct rival *r = arg;
    struct df_err err = {0};
    DF_FREE char *bytes = noise(70000, r->me);
    (void)pthread_barrier_wait(&r->all->start);
    if (df_blob_append(r->all->backend[r->me], "s/log", r->all->offset, bytes, 70000,
                       &r->all->told[r->me], &err) == 0)
        r->all->won[r->me]++;
    else if (err.cls == DF_ERR_CONFLICT)
        r->all->lost[r->me]++;
    return NULL;
}

static void of_two_backends_that_append_at_one_place_one_wins(void **state)
{
    DF_FREE char *second = df_fs_join(*state, "second");
    BLOBS *a = suite_open(*state);
    BLOBS *b = open_in(*state, second);
    struct rivals all = {.backend = {a, b}};
    for (int round = 0; round < 20; round++) {
        pthread_t threads[2];
        struct rival rivals[2] = {{&all, 0}, {&all, 1}};
        assert_int_equal(pthread_barrier_init(&all.start, NULL, 2), 0);
        for (size_t i = 0; i < 2; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, append_once, &rivals[i]), 0);
        for (size_t i = 0; i < 2; i++)
            assert_int_equal(pthread_join(threads[i], NULL), 0);
        (void)pthread_barrier_destroy(&all.start);
        all.offset += 70000;
        assert_int_equal(all.won[0] + all.won[1], round + 1);
        assert_int_equal(all.lost[0] + all.lost[1], round + 1);
        assert_int_equal(all.told[0], all.offset);
        assert_int_equal(all.told[1], all.offset);
    }
    assert_int_equal(count_chunks(*state), all.offset / 65536);
}

static void what_one_backend_writes_another_sees(void **state)
{
    struct df_err err = {0};
    DF_FREE char *second = df_fs_join(*state, "second");
    BLOBS *a = suite_open(*state);
    BLOBS *b = open_in(*state, second);
    int64_t size = 0;
    append(a, "s/log", 0, "one", 3);
    append(b, "s/log", 3, "two", 3);
    assert_int_equal(df_blob_append(a, "s/log", 3, "x", 1, &size, &err), -1);
    assert_int_equal(size, 6);
    append(a, "s/log", 6, "three", 5);
    assert_content(b, "s/log", "onetwothree");
    assert_int_equal(df_blob_create(b, "lock", "b", 1, &err), 0);
    assert_int_equal(df_blob_create(a, "lock", "a", 1, &err), -1);
    assert_int_equal(err.cls, DF_ERR_CONFLICT);
    assert_int_equal(df_blob_delete(a, "lock", &err), 0);
    assert_absent(b, "lock");
}

/* Agrees to "mine", and the first time another one replaces the blob behind its back. */
struct intruder {
    struct df_blob *other; /* NULL: nobody does */
    const char *theirs;
    int asked;
};

static bool agree_to_mine(void *arg, const struct df_buf *content)
{
    struct intruder *i = arg;
    if (i->asked++ == 0 && i->other) {
        assert_int_equal(df_blob_delete(i->other, "lock", NULL), 0);
        assert_int_equal(df_blob_create(i->other, "lock", i->theirs, strlen(i->theirs), NULL), 0);
    }
    return df_streq(df_buf_str(content), "mine");
}

static bool delete_mine(struct df_blob *b, struct intruder *i)
{
    const struct df_blob_condition c = {.max = 10, .agrees = agree_to_mine, .arg = i};
    struct df_err err = {0};
    enum df_blob_removal what;
    if (df_blob_delete_if(b, "lock", &c, &what, &err) < 0)
        fail_msg("%s", err.message);
    assert_int_not_equal(what, DF_BLOB_ABSENT);
    return what == DF_BLOB_REMOVED;
}

static void what_replaced_a_blob_meanwhile_goes_only_if_that_is_agreed_to_as_well(void **state)
{
    DF_FREE char *second = df_fs_join(*state, "second"), *third = df_fs_join(*state, "third");
    struct df_err err = {0};
    BLOBS *creator = suite_open(*state), *other = open_in(*state, second);
    BLOBS *reader = open_in(*state, third);
    struct df_blob *const removers[] = {creator, reader};
    for (size_t i = 0; i < DF_ARRAY_SIZE(removers); i++) {
        struct intruder theirs = {other, "theirs", 0}, same = {other, "mine", 0};
        assert_int_equal(df_blob_create(creator, "lock", "mine", 4, &err), 0);
        assert_false(delete_mine(removers[i], &theirs));
        assert_int_equal(theirs.asked, 2);
        assert_content(creator, "lock", "theirs");
        assert_int_equal(df_blob_delete(other, "lock", &err), 0);
        assert_int_equal(df_blob_create(creator, "lock", "mine", 4, &err), 0);
        assert_true(delete_mine(removers[i], &same));
        assert_int_equal(same.asked, 2);
        assert_absent(creator, "lock");
    }
}

/* ---- what others did ------------------------------------------------------------------------ */

static int64_t hours_later;

static int64_t later_real_us(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000 + hours_later * 3600 * 1000000;
}

static int64_t later_mono_us(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000 + hours_later * 3600 * 1000000;
}

static int fill_random(void *bytes, size_t n)
{
    return getrandom(bytes, n, 0) == (ssize_t)n ? 0 : -1;
}

/* A chunk as a killed writer leaves it: a copy of one that is in use. */
static void make_orphan(const char *state)
{
    DF_STRS struct df_strs names = {0};
    list_chunks(state, &names);
    DF_FREE char *name = df_strf("%.36s-0123456789abcdef", names.items[0]);
    copy_chunk(state, names.items[0], name);
}

static void what_a_killed_writer_left_is_removed_an_hour_later_and_nothing_else(void **state)
{
    static const struct df_clock later = {later_mono_us, later_real_us, fill_random};
    BLOBS *b = suite_open(*state);
    put_noise(b, "x", 2 * MIB, 1);
    make_orphan(*state);
    assert_int_equal(count_chunks(*state), 5);
    assert_keys(b, "", "x");
    assert_int_equal(count_chunks(*state), 5);
    hours_later = 2;
    df_clock_install(&later);
    assert_keys(b, "", "x");
    df_clock_install(NULL);
    assert_int_equal(count_chunks(*state), 4);
    assert_noise(b, "x", 2 * MIB, 1);
}

static void a_blob_whose_chunk_is_gone_is_damaged_and_can_be_put_again(void **state)
{
    struct df_err err = {0};
    DF_STRS struct df_strs names = {0};
    BLOBS *b = suite_open(*state);
    put_noise(b, "state/x/1", MIB, 1);
    list_chunks(*state, &names);
    delete_chunk(*state, names.items[0]);
    DF_BUF struct df_buf got = DF_BUF_INIT(MIB);
    assert_int_equal(df_blob_get(b, "state/x/1", &got, &err), -1);
    assert_int_equal(err.cls, DF_ERR_SYSTEM);
    assert_non_null(strstr(err.message, "state/x/1"));
    put_noise(b, "state/x/1", MIB, 2);
    assert_noise(b, "state/x/1", MIB, 2);
}

#define CHUNKED_SUITE                                                                              \
    blob_test(a_blob_of_any_size_is_what_was_put_last),                                            \
        blob_test(a_large_file_is_moved_into_place),                                               \
        blob_test(what_is_created_over_a_large_blob_leaves_no_chunks),                             \
        blob_test(a_blob_may_fill_its_cap_and_no_more),                                            \
        blob_test(a_reader_meets_one_version_whole_while_another_writes),                          \
        blob_test(a_long_stream_is_whole_and_read_from_any_place),                                 \
        blob_test(a_blob_that_was_put_grows_as_a_stream),                                          \
        blob_test(of_two_backends_that_append_at_one_place_one_wins),                              \
        blob_test(what_replaced_a_blob_meanwhile_goes_only_if_that_is_agreed_to_as_well),          \
        blob_test(what_one_backend_writes_another_sees),                                           \
        blob_test(what_a_killed_writer_left_is_removed_an_hour_later_and_nothing_else),            \
        blob_test(a_blob_whose_chunk_is_gone_is_damaged_and_can_be_put_again)

#endif
