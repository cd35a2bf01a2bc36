/*
 * blob_kube - what every home of blobs must do (tests/unit/blob_suite.h), and what only the home in
 * Kubernetes can show. How it is run: cluster_words.h, test_kube_homes.py.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define blob_test(f) cmocka_unit_test_setup_teardown(f, enter, leave)
#define blob_kill_test(f) cmocka_unit_test_setup_teardown(f, enter, leave_orphans)
#include "tests/unit/blob_suite.h"

#include "common/crypto/crypto.h"
#include "tests/unit/cluster_words.h"

#define MIB ((size_t)1024 * 1024)
#define LABEL "dayfly.dev/blob"

static struct df_blob *open_in(const char *directory)
{
    struct df_err err = {0};
    struct df_blob *b = NULL;
    const struct df_blob_kube_options o = {client(), name_space, directory};
    if (df_blob_kube_open(&o, &b, &err) < 0)
        fail_msg("%s", err.message);
    return b;
}

static struct df_blob *suite_open(const char *dir)
{
    return open_in(dir);
}

/* The names of all heads (Secrets) or chunks (ConfigMaps). */
static void list_heads(struct df_strs *ret)
{
    list_names(&df_kube_secrets, LABEL "=head", ret);
}

static void list_chunks(struct df_strs *ret)
{
    list_names(&df_kube_config_maps, LABEL "=chunk", ret);
}

static size_t count_chunks(void)
{
    DF_STRS struct df_strs names = {0};
    list_chunks(&names);
    return names.len;
}

static size_t delete_all_objects(void)
{
    return delete_objects(&df_kube_secrets, LABEL) + delete_objects(&df_kube_config_maps, LABEL);
}

/* ---- before and after each test ------------------------------------------------------------- */

static int enter(void **state)
{
    return enter_scratch(state);
}

static int leave_orphans(void **state)
{
    (void)delete_all_objects();
    return leave_scratch(state);
}

/* Nothing but heads and the chunks they name is there: without the blobs nothing is left. */
static int leave(void **state)
{
    struct df_err err = {0};
    DF_STRS struct df_strs keys = {0};
    DF_BLOB struct df_blob *b = suite_open(*state);
    int result = df_blob_list(b, "", &keys, &err);
    for (size_t i = 0; result == 0 && i < keys.len; i++)
        result = df_blob_delete(b, keys.items[i], &err);
    size_t left = delete_all_objects();
    if (result < 0 || left)
        print_error("%zu objects are left: %s\n", left, err.message);
    return leave_scratch(state) < 0 || result < 0 || left ? -1 : 0;
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
        assert_int_equal(count_chunks(), cases[i].chunks);
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
    assert_int_equal(count_chunks(), 4);
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
    assert_int_equal(delete_all_objects(), 0);
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
        struct df_blob *writer = open_in(own);
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
    assert_int_equal(count_chunks(), at / 65536);
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
    struct df_blob *home[2];
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
    if (df_blob_append(r->all->home[r->me], "s/log", r->all->offset, bytes, 70000,
                       &r->all->told[r->me], &err) == 0)
        r->all->won[r->me]++;
    else if (err.cls == DF_ERR_CONFLICT)
        r->all->lost[r->me]++;
    return NULL;
}

static void of_two_homes_that_append_at_one_place_one_wins(void **state)
{
    DF_FREE char *second = df_fs_join(*state, "second");
    BLOBS *a = suite_open(*state);
    BLOBS *b = open_in(second);
    struct rivals all = {.home = {a, b}};
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
    assert_int_equal(count_chunks(), all.offset / 65536);
}

static void what_one_home_writes_another_sees(void **state)
{
    struct df_err err = {0};
    DF_FREE char *second = df_fs_join(*state, "second");
    BLOBS *a = suite_open(*state);
    BLOBS *b = open_in(second);
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

static void copy_chunk(const char *from, const char *to)
{
    struct df_err err = {0};
    DF_JSON cJSON *chunk = NULL;
    struct df_kube_at at = object_at(&df_kube_config_maps, from);
    struct df_kube_at all = object_at(&df_kube_config_maps, NULL);
    assert_int_equal(df_kube_get(client(), &at, &chunk, &err), 0);
    cJSON *metadata = cJSON_GetObjectItemCaseSensitive(chunk, "metadata");
    cJSON_DeleteItemFromObjectCaseSensitive(metadata, "resourceVersion");
    cJSON_DeleteItemFromObjectCaseSensitive(metadata, "uid");
    assert_int_equal(df_json_set_str(metadata, "name", to, &err), 0);
    if (df_kube_create(client(), &all, chunk, NULL, &err) < 0)
        fail_msg("%s", err.message);
}

/* A chunk as a killed writer leaves it: a copy of one that is in use. */
static void make_orphan(void)
{
    DF_STRS struct df_strs names = {0};
    list_chunks(&names);
    DF_FREE char *name = df_strf("%.36s-0123456789abcdef", names.items[0]);
    copy_chunk(names.items[0], name);
}

static void what_a_killed_writer_left_is_removed_an_hour_later_and_nothing_else(void **state)
{
    static const struct df_clock later = {later_mono_us, later_real_us, NULL};
    struct df_clock clock = later;
    BLOBS *b = suite_open(*state);
    put_noise(b, "x", 2 * MIB, 1);
    make_orphan();
    assert_int_equal(count_chunks(), 5);
    assert_keys(b, "", "x");
    assert_int_equal(count_chunks(), 5);
    hours_later = 2;
    df_clock_install(&clock);
    assert_keys(b, "", "x");
    df_clock_install(NULL);
    assert_int_equal(count_chunks(), 4);
    assert_noise(b, "x", 2 * MIB, 1);
}

static void a_blob_whose_chunk_is_gone_is_damaged_and_can_be_put_again(void **state)
{
    struct df_err err = {0};
    DF_STRS struct df_strs names = {0};
    BLOBS *b = suite_open(*state);
    put_noise(b, "state/x/1", MIB, 1);
    list_chunks(&names);
    delete_object(&df_kube_config_maps, names.items[0]);
    DF_BUF struct df_buf got = DF_BUF_INIT(MIB);
    assert_int_equal(df_blob_get(b, "state/x/1", &got, &err), -1);
    assert_int_equal(err.cls, DF_ERR_SYSTEM);
    assert_non_null(strstr(err.message, "state/x/1"));
    put_noise(b, "state/x/1", MIB, 2);
    assert_noise(b, "state/x/1", MIB, 2);
}

/* What a state holds is seen by those alone who may see Secrets. */
static void chunks_show_nothing_of_their_content(void **state)
{
    struct df_err err = {0};
    DF_STRS struct df_strs names = {0};
    DF_JSON cJSON *chunk = NULL;
    DF_BUF struct df_buf bytes = DF_BUF_INIT(MIB);
    BLOBS *b = suite_open(*state);
    DF_FREE char *text = malloc(MIB / 4);
    assert_non_null(text);
    for (size_t i = 0; i + 8 <= MIB / 4; i += 8)
        memcpy(text + i, "hunter2,", 8);
    assert_int_equal(df_blob_put(b, "state/x/1", text, MIB / 4, &err), 0);
    list_chunks(&names);
    assert_int_equal(names.len, 1);
    struct df_kube_at at = object_at(&df_kube_config_maps, names.items[0]);
    assert_int_equal(df_kube_get(client(), &at, &chunk, &err), 0);
    const char *content = df_json_str(chunk, "binaryData.content");
    assert_int_equal(df_base64_decode(content, strlen(content), false, &bytes, &err), 0);
    assert_true(bytes.len > 28);
    assert_null(memmem(bytes.data, bytes.len, "hunter2", 7));
    /* Nor is it but compressed. */
    static const unsigned char zstd[] = {0x28, 0xb5, 0x2f, 0xfd};
    assert_null(memmem(bytes.data, bytes.len, zstd, sizeof(zstd)));
}

static void a_chunk_with_another_ones_content_is_damaged(void **state)
{
    struct df_err err = {0};
    DF_STRS struct df_strs names = {0};
    BLOBS *b = suite_open(*state);
    put_noise(b, "state/x/1", MIB, 1);
    list_chunks(&names);
    delete_object(&df_kube_config_maps, names.items[1]);
    copy_chunk(names.items[0], names.items[1]);
    DF_BUF struct df_buf got = DF_BUF_INIT(MIB);
    assert_int_equal(df_blob_get(b, "state/x/1", &got, &err), -1);
    assert_int_equal(err.cls, DF_ERR_SYSTEM);
    assert_non_null(strstr(err.message, names.items[1]));
}

static void a_head_that_somebody_changed_is_damaged(void **state)
{
    static const char *const changes[] = {
        "{\"metadata\":{\"annotations\":{\"dayfly.dev/size\":\"99\"}}}",
        "{\"metadata\":{\"annotations\":{\"dayfly.dev/size\":\"-1\"}}}",
        "{\"metadata\":{\"annotations\":{\"dayfly.dev/size\":null}}}",
        "{\"metadata\":{\"annotations\":{\"dayfly.dev/key\":\"other\"}}}",
        "{\"metadata\":{\"annotations\":{\"dayfly.dev/chunk-size\":\"0\"}}}",
        "{\"metadata\":{\"annotations\":{\"dayfly.dev/chunks\":\"abc\"}}}",
        "{\"data\":{\"content\":\"eHh4eA==\"}}",
        "{\"data\":{\"content\":null}}",
        "{\"data\":{\"key\":null}}",
        "{\"data\":{\"key\":\"eHh4eA==\"}}",
        "{\"data\":null}",
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(changes); i++) {
        struct df_err err = {0};
        DF_STRS struct df_strs names = {0};
        DF_JSON cJSON *change = NULL;
        BLOBS *b = suite_open(*state);
        put(b, "x", "hunter2");
        list_heads(&names);
        struct df_kube_at at = object_at(&df_kube_secrets, names.items[0]);
        assert_int_equal(df_json_parse(changes[i], strlen(changes[i]), &change, &err), 0);
        const struct df_kube_patch patch = {.type = DF_KUBE_PATCH_MERGE, .body = change};
        if (df_kube_patch(client(), &at, &patch, NULL, &err) < 0)
            fail_msg("%s", err.message);
        DF_BUF struct df_buf got = DF_BUF_INIT(100);
        assert_int_equal(df_blob_get(b, "x", &got, &err), -1);
        assert_int_equal(err.cls, DF_ERR_SYSTEM);
        assert_non_null(strstr(err.message, names.items[0]));
        delete_object(&df_kube_secrets, names.items[0]);
    }
}

/* Who moves into a cluster with the data directory of before must not lose what is in it. */
static void blobs_that_lie_in_the_directory_are_left_alone(void **state)
{
    struct df_err err = {0};
    struct df_blob *before = NULL;
    assert_int_equal(df_blob_open(*state, &before, &err), 0);
    put(before, "state/x/1", "kept");
    df_blob_close(before);
    BLOBS *b = suite_open(*state);
    put(b, "state/x/2", "in the cluster");
    assert_keys(b, "", "state/x/2");
    assert_int_equal(df_blob_open(*state, &before, &err), 0);
    assert_content(before, "state/x/1", "kept");
    assert_keys(before, "", "state/x/1");
    df_blob_close(before);
}

static void a_namespace_that_is_not_there_is_named(void **state)
{
    struct df_err err = {0};
    const struct df_blob_kube_options o = {client(), "no-such-namespace", *state};
    BLOBS *b = NULL;
    assert_int_equal(df_blob_kube_open(&o, &b, &err), 0);
    assert_int_equal(df_blob_put(b, "x", "hunter2", 7, &err), -1);
    assert_non_null(strstr(err.message, "no-such-namespace"));
    assert_null(strstr(err.message, "hunter2"));
}

int main(void)
{
    if (!find_cluster())
        return 2;
    const struct CMUnitTest tests[] = {
        BLOB_SUITE,
        BLOB_KILL_SUITE,
        blob_test(a_blob_of_any_size_is_what_was_put_last),
        blob_test(a_large_file_is_moved_into_place),
        blob_test(what_is_created_over_a_large_blob_leaves_no_chunks),
        blob_test(a_blob_may_fill_its_cap_and_no_more),
        blob_test(a_reader_meets_one_version_whole_while_another_writes),
        blob_test(a_long_stream_is_whole_and_read_from_any_place),
        blob_test(a_blob_that_was_put_grows_as_a_stream),
        blob_test(of_two_homes_that_append_at_one_place_one_wins),
        blob_test(what_one_home_writes_another_sees),
        blob_test(what_a_killed_writer_left_is_removed_an_hour_later_and_nothing_else),
        blob_test(a_blob_whose_chunk_is_gone_is_damaged_and_can_be_put_again),
        blob_test(chunks_show_nothing_of_their_content),
        blob_test(a_chunk_with_another_ones_content_is_damaged),
        blob_test(a_head_that_somebody_changed_is_damaged),
        blob_test(blobs_that_lie_in_the_directory_are_left_alone),
        blob_test(a_namespace_that_is_not_there_is_named),
    };
    int result = cmocka_run_group_tests_name("blob in Kubernetes", tests, NULL, NULL);
    df_kube_free(client());
    return result;
}
