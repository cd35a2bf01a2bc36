/* Blobs over an object store; what every backend does is in blob_suite.h. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define blob_test(f) scratch_test(f)
#define blob_kill_test(f) scratch_test(f)
#include "tests/unit/chunked_suite.h"
#include "tests/unit/object_dir.h"

/* ---- the store of a test: <state>/objects --------------------------------------------------- */

/* The sizes of Kubernetes, which the suite counts on. */
static struct df_blob *open_in(const char *state, const char *directory)
{
    static const struct df_blob_sizes sizes = {.chunk = (int64_t)(512 * DF_KIB),
                                               .stream_chunk = (int64_t)(64 * DF_KIB),
                                               .no_chunks = (int64_t)(16 * DF_KIB),
                                               .blob = (int64_t)DF_LIMIT_BLOB_KUBE};
    DF_FREE char *objects = df_fs_join(state, "objects");
    struct df_err err = {0};
    struct df_blob *b = NULL;
    if (object_dir_open(objects, directory, &sizes, &b, &err) < 0)
        fail_msg("%s", err.message);
    return b;
}

static struct df_blob *suite_open(const char *dir)
{
    return open_in(dir, dir);
}

static void list_chunks(const char *state, struct df_strs *ret)
{
    DF_FREE char *objects = df_fs_join(state, "objects");
    DIR *d = opendir(objects);
    assert_non_null(d);
    for (const struct dirent *e; (e = readdir(d));)
        if (object_is_a(e->d_name, DF_OBJECT_CHUNK))
            (void)df_strs_add(ret, e->d_name);
    (void)closedir(d);
}

static void delete_chunk(const char *state, const char *name)
{
    DF_FREE char *path = df_strf("%s/objects/%s", state, name);
    assert_int_equal(unlink(path), 0);
}

static void copy_chunk(const char *state, const char *from, const char *to)
{
    DF_FREE char *source = df_strf("%s/objects/%s", state, from);
    DF_FREE char *target = df_strf("%s/objects/%s", state, to);
    assert_int_equal(link(source, target), 0);
}

/* ---- a failure at any operation ------------------------------------------------------------- */

enum { CHUNK = 64 * 1024 }; /* of a stream */

static int put_other(struct df_blob *b, struct df_err *err)
{
    DF_FREE char *bytes = noise(600000, 2);
    return df_blob_put(b, "x/y", bytes, 600000, err);
}

static int create_other(struct df_blob *b, struct df_err *err)
{
    DF_FREE char *bytes = noise(600000, 2);
    return df_blob_create(b, "x/y", bytes, 600000, err);
}

/* Fills three chunks of a stream of one and a half. */
static int append_more(struct df_blob *b, struct df_err *err)
{
    DF_FREE char *bytes = noise(CHUNK * 9 / 2, 1);
    int64_t size = 0;
    return df_blob_append(b, "x/y", CHUNK * 3 / 2, bytes + CHUNK * 3 / 2, CHUNK * 3, &size, err);
}

static int delete_it(struct df_blob *b, struct df_err *err)
{
    return df_blob_delete(b, "x/y", err);
}

/* What there may be of the blob; chunks -1: it is absent. */
struct content {
    size_t n;
    uint64_t seed;
    int chunks;
};

static const struct content absent = {0, 0, -1};

static bool is_content(struct df_blob *b, const struct content *c)
{
    struct df_err err = {0};
    DF_BUF struct df_buf got = DF_BUF_INIT(4 * MIB);
    DF_FREE char *want = noise(c->n, c->seed);
    if (df_blob_get(b, "x/y", &got, &err) < 0) {
        assert_int_equal(err.cls, DF_ERR_NOT_FOUND);
        return c->chunks < 0;
    }
    return c->chunks >= 0 && got.len == c->n && memcmp(got.data, want, c->n) == 0;
}

static void make_content(struct df_blob *b, const struct content *c)
{
    DF_FREE char *bytes = noise(c->n, c->seed);
    if (c->n == (size_t)CHUNK * 3 / 2)
        append(b, "x/y", 0, bytes, c->n);
    else if (c->chunks >= 0)
        put_noise(b, "x/y", c->n, c->seed);
}

static void assert_swept(const char *dir, struct df_blob *b, const struct content *c)
{
    static const struct df_clock later = {later_mono_us, later_real_us, NULL};
    struct df_clock clock = later;
    hours_later = 2;
    df_clock_install(&clock);
    assert_keys(b, "x", c->chunks < 0 ? "" : "x/y");
    df_clock_install(NULL);
    assert_int_equal(count_chunks(dir), c->chunks < 0 ? 0 : c->chunks);
    assert_true(is_content(b, c));
}

struct change {
    const char *what;
    int (*act)(struct df_blob *b, struct df_err *err);
    struct content before, after;
};

/* False: all was done before operation number `at`. */
static bool fails_at(const char *dir, const struct change *c, long at, enum object_fault how)
{
    struct df_err err = {0};
    {
        BLOBS *b = suite_open(dir);
        make_content(b, &c->before);
        object_fault.calls = 0;
        object_fault.fail_at = at;
        object_fault.how = how;
        int result = c->act(b, &err);
        object_fault.fail_at = 0;
        if (result == 0 && object_fault.calls < at)
            return false;
        if (result == 0 && !is_content(b, &c->after))
            fail_msg("%s, failed at %ld: acknowledged and not there", c->what, at);
    }
    BLOBS *b = suite_open(dir);
    bool changed = is_content(b, &c->after);
    if (!changed && !is_content(b, &c->before))
        fail_msg("%s, failed at %ld: neither old nor new", c->what, at);
    assert_swept(dir, b, changed ? &c->after : &c->before);
    /* Whoever had no answer comes again. */
    if (c->act(b, &err) < 0)
        assert_true(changed && err.cls == DF_ERR_CONFLICT);
    assert_true(is_content(b, &c->after));
    return true;
}

static void wherever_a_writer_fails_the_blob_is_old_or_new_and_its_chunks_are_swept(void **state)
{
    const struct change changes[] = {
        {"put", put_other, absent, {600000, 2, 2}},
        {"replace", put_other, {MIB, 1, 2}, {600000, 2, 2}},
        {"replace what has no chunks", put_other, {100, 1, 0}, {600000, 2, 2}},
        {"create", create_other, absent, {600000, 2, 2}},
        {"append", append_more, {CHUNK * 3 / 2, 1, 1}, {CHUNK * 9 / 2, 1, 4}},
        {"delete", delete_it, {MIB, 1, 2}, absent},
    };
    const size_t faults = OBJECT_SENT_TWICE + 1;
    for (size_t i = 0; i < faults * DF_ARRAY_SIZE(changes); i++) {
        long at = 1;
        for (bool more = true; more; at++) {
            DF_FREE char *dir = df_strf("%s/%zu-%ld", (char *)*state, i, at);
            assert_int_equal(mkdir(dir, 0700), 0);
            more = fails_at(dir, &changes[i / faults], at, (enum object_fault)(i % faults));
        }
        assert_true(at > 3); /* it was tried */
    }
}

/* ---- how many requests ---------------------------------------------------------------------- */

static void a_frame_costs_one_request_and_one_for_each_chunk_that_it_fills(void **state)
{
    DF_FREE char *bytes = noise(4 * CHUNK, 1);
    DF_FREE char *second = df_fs_join(*state, "second");
    BLOBS *b = suite_open(*state);
    object_fault.calls = 0;
    append(b, "s", 0, bytes, 10);
    assert_int_equal(object_fault.calls, 1);
    append(b, "s", 10, bytes, 10);
    assert_int_equal(object_fault.calls, 1 + 1);
    append(b, "s", 20, bytes, 3 * CHUNK);
    assert_int_equal(object_fault.calls, 1 + 1 + 1 + 3);
    BLOBS *other = open_in(*state, second); /* which did not write the head */
    object_fault.calls = 0;
    append(other, "s", 20 + 3 * CHUNK, bytes, 10);
    assert_int_equal(object_fault.calls, 2);
}

static void who_created_a_blob_removes_it_without_a_look(void **state)
{
    DF_FREE char *second = df_fs_join(*state, "second");
    struct df_err err = {0};
    BLOBS *b = suite_open(*state);
    BLOBS *other = open_in(*state, second);
    assert_int_equal(df_blob_create(b, "lock", "mine", 4, &err), 0);
    object_fault.calls = 0;
    assert_int_equal(df_blob_delete(b, "lock", &err), 0);
    assert_int_equal(object_fault.calls, 1);
    /* Another one has replaced it: what was put here says nothing any more. */
    assert_int_equal(df_blob_create(b, "lock", "mine", 4, &err), 0);
    assert_int_equal(df_blob_delete(other, "lock", &err), 0);
    assert_int_equal(df_blob_create(other, "lock", "theirs", 6, &err), 0);
    assert_int_equal(df_blob_delete(b, "lock", &err), 0);
    assert_int_equal(df_blob_create(other, "lock", "theirs", 6, &err), 0);
}

static void who_created_a_blob_removes_it_on_condition_without_a_look(void **state)
{
    DF_FREE char *second = df_fs_join(*state, "second");
    struct df_err err = {0};
    struct intruder nobody = {0};
    BLOBS *b = suite_open(*state), *other = open_in(*state, second);
    assert_int_equal(df_blob_create(b, "lock", "mine", 4, &err), 0);
    object_fault.calls = 0;
    assert_true(delete_mine(b, &nobody));
    assert_int_equal(object_fault.calls, 1);
    assert_absent(b, "lock");
    /* It does not stay for what was there before. */
    assert_int_equal(df_blob_create(b, "lock", "theirs", 6, &err), 0);
    assert_int_equal(df_blob_delete(other, "lock", &err), 0);
    assert_int_equal(df_blob_create(other, "lock", "mine", 4, &err), 0);
    assert_true(delete_mine(b, &nobody));
    assert_absent(b, "lock");
}

static long calls_of_put(struct df_blob *b, size_t n, uint64_t seed)
{
    object_fault.calls = 0;
    put_noise(b, "plan", n, seed);
    return object_fault.calls;
}

static long calls_of_delete(struct df_blob *b)
{
    struct df_err err = {0};
    object_fault.calls = 0;
    assert_int_equal(df_blob_delete(b, "plan", &err), 0);
    return object_fault.calls;
}

static void what_this_process_put_it_replaces_and_removes_without_a_look(void **state)
{
    enum { HEAD = 1, CHUNKS = 2 };
    DF_FREE char *second = df_fs_join(*state, "second");
    BLOBS *b = suite_open(*state), *other = open_in(*state, second);
    assert_int_equal(calls_of_put(b, MIB, 1), CHUNKS + HEAD);
    assert_int_equal(calls_of_put(b, MIB, 2), CHUNKS + HEAD + CHUNKS);
    assert_int_equal(calls_of_delete(b), HEAD + CHUNKS);
    assert_absent(b, "plan");
    /* What others did since is found all the same. */
    put_noise(b, "plan", 10, 3);
    put_noise(other, "plan", MIB, 4);
    put_noise(b, "plan", MIB, 5);
    assert_noise(other, "plan", MIB, 5);
    assert_int_equal(count_chunks(*state), CHUNKS);
    put_noise(other, "plan", 10, 6);
    (void)calls_of_delete(b);
    assert_absent(other, "plan");
    put_noise(b, "plan", 10, 7);
    (void)calls_of_delete(other);
    put_noise(b, "plan", MIB, 8);
    assert_noise(other, "plan", MIB, 8);
    (void)calls_of_delete(other);
    (void)calls_of_delete(b);
    assert_int_equal(count_chunks(*state), 0);
    /* Its end is not kept: it is read again to grow. */
    put_noise(b, "plan", 10, 9);
    append(b, "plan", 10, "more", 4);
    DF_BUF struct df_buf got = DF_BUF_INIT(MIB);
    assert_int_equal(df_blob_get(other, "plan", &got, NULL), 0);
    DF_FREE char *want = noise(10, 9);
    assert_memory_equal(got.data, want, 10);
    assert_string_equal(got.data + 10, "more");
}

static void what_does_not_fit_into_memory_any_more_is_read_again(void **state)
{
    struct df_err err = {0};
    BLOBS *b = suite_open(*state);
    for (int i = 0; i < 3 * DF_LIMIT_BLOB_OUTLINES; i++) {
        DF_FREE char *key = df_strf("plans/%d", i);
        put(b, key, "x");
    }
    for (int i = 0; i < 3 * DF_LIMIT_BLOB_OUTLINES; i++) {
        DF_FREE char *key = df_strf("plans/%d", i);
        assert_int_equal(df_blob_delete(b, key, &err), 0);
    }
    assert_keys(b, "", "");
}

static void ignore(void *arg, enum df_err_class cls, const char *message)
{
    (void)arg, (void)cls, (void)message;
}

static void a_removal_says_whether_the_look_or_the_removal_failed(void **state)
{
    static const char *const words[] = {"cannot be read since", "cannot be written since"};
    static const struct df_blob_service service = {.place = "b", .is_remote = true, .tell = ignore};
    BLOBS *writer = suite_open(*state);
    put(writer, "plan", "x");
    for (long at = 1; at <= 2; at++) {
        DF_FREE char *name = df_strf("%s/reader-%ld", (char *)*state, at);
        BLOBS *b = open_in(*state, name);
        struct df_err err = {0};
        assert_int_equal(df_blob_serve(b, &service, &err), 0);
        object_fault.calls = 0;
        object_fault.how = OBJECT_DIES_BEFORE;
        object_fault.fail_at = at;
        assert_int_equal(df_blob_delete(b, "plan", &err), -1);
        object_fault.fail_at = 0;
        assert_int_equal(df_blob_check(b, &err), -1);
        assert_non_null(strstr(err.message, words[at - 1]));
    }
}

static void what_follows_a_stream_fetches_nothing_before_its_offset(void **state)
{
    struct df_err err = {0};
    DF_FREE char *bytes = noise(8 * CHUNK, 1);
    DF_BUF struct df_buf got = DF_BUF_INIT(MIB);
    int64_t size = 0;
    BLOBS *b = suite_open(*state);
    append(b, "s", 0, bytes, 7 * CHUNK + 5);
    object_fault.calls = 0;
    assert_int_equal(df_blob_read_at(b, "s", 7 * CHUNK + 1, &got, &size, &err), 0);
    assert_int_equal(object_fault.calls, 1);
    assert_int_equal(df_blob_read_at(b, "s", 6 * CHUNK + 1, &got, &size, &err), 0);
    assert_int_equal(object_fault.calls, 1 + 2);
    assert_int_equal(got.len, 4 + CHUNK - 1 + 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BLOB_SUITE,
        BLOB_KILL_SUITE,
        CHUNKED_SUITE,
        scratch_test(wherever_a_writer_fails_the_blob_is_old_or_new_and_its_chunks_are_swept),
        scratch_test(a_frame_costs_one_request_and_one_for_each_chunk_that_it_fills),
        scratch_test(who_created_a_blob_removes_it_without_a_look),
        scratch_test(who_created_a_blob_removes_it_on_condition_without_a_look),
        scratch_test(what_this_process_put_it_replaces_and_removes_without_a_look),
        scratch_test(what_does_not_fit_into_memory_any_more_is_read_again),
        scratch_test(a_removal_says_whether_the_look_or_the_removal_failed),
        scratch_test(what_follows_a_stream_fetches_nothing_before_its_offset),
    };
    return cmocka_run_group_tests_name("chunked blob", tests, NULL, NULL);
}
