/* Blobs in a bucket of which single requests fail, at a known place: bucket.c and chunked.c over a
 * driver that keeps its objects in memory. The real drivers are tested by
 * tests/tools/blob_bucket.c. */
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/random.h>
#include <time.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "common/base/limits.h"
#include "common/blob/bucket.h"
#include "common/crypto/crypto.h"
#include "tests/unit/scratch.h"

enum { OBJECTS = 64 };

struct object {
    char name[DF_LIMIT_BUCKET_NAME];
    struct df_buf content;
    int64_t version; /* 0: there is none */
};

struct memory {
    struct df_bucket bucket;
    struct object objects[OBJECTS];
    int64_t versions;
};

/* What becomes of the next requests of one kind whose names begin with a prefix: '.' all is well,
 * 'b' it is not executed, 'a' it is, and its answer is lost, 'p' it is not, and the store asks for
 * a pause. */
static struct {
    const char *prefix, *puts, *removals;
} way;

static char next(const char **script, const char *name)
{
    bool ours = *script && **script && strncmp(name, way.prefix, strlen(way.prefix)) == 0;
    return ours ? *(*script)++ : '.';
}

static int no_answer(struct df_err *err)
{
    return df_fail(err, DF_ERR_RETRY, "no answer");
}

static bool paused; /* atomic: somebody was asked to wait */

static int not_now(struct df_err *err)
{
    (void)df_fail(err, DF_ERR_RETRY, "slow down");
    if (err)
        err->retry_after_s = 30;
    __atomic_store_n(&paused, true, __ATOMIC_RELEASE);
    return -1;
}

static struct object *find(struct df_bucket *b, const char *name)
{
    struct memory *m = (struct memory *)b;
    struct object *free_one = NULL;
    for (size_t i = 0; i < OBJECTS; i++) {
        struct object *o = &m->objects[i];
        if (o->version && df_streq(o->name, name))
            return o;
        free_one = o->version ? free_one : o;
    }
    assert_non_null(free_one);
    return free_one;
}

static bool is_other(const struct object *o, const struct df_bucket_version *wanted)
{
    DF_FREE char *version = o->version ? df_strf("%lld", (long long)o->version) : strdup("");
    return wanted && !df_streq(wanted->text, version);
}

/* Objects that may not be read, or that are not answered for; NULL: none. */
static const char *refused, *unanswered;

static int get(struct df_bucket *b, const char *name, struct df_buf *out,
               struct df_bucket_version *ret_version, struct df_err *err)
{
    const struct object *o = find(b, name);
    if (refused && df_streq(name, refused))
        return df_fail(err, DF_ERR_DENIED, "get %s: denied", name);
    if (unanswered && df_streq(name, unanswered))
        return no_answer(err);
    if (!o->version)
        return df_fail(err, DF_ERR_NOT_FOUND, "there is no %s", name);
    (void)snprintf(ret_version->text, sizeof(ret_version->text), "%lld", (long long)o->version);
    return df_buf_add(out, df_buf_str(&o->content), o->content.len);
}

static int put(struct df_bucket *b, const char *name, const void *bytes, size_t n,
               const struct df_bucket_version *version, struct df_err *err)
{
    struct object *o = find(b, name);
    char fate = next(&way.puts, name);
    if (fate == 'p')
        return not_now(err);
    if (fate == 'b')
        return no_answer(err);
    if (is_other(o, version))
        return df_fail(err, o->version ? DF_ERR_CONFLICT : DF_ERR_NOT_FOUND, "another version");
    df_buf_free(&o->content);
    o->content = DF_BUF_INIT(DF_LIMIT_BUCKET_OBJECT);
    (void)snprintf(o->name, sizeof(o->name), "%s", name);
    o->version = ++((struct memory *)b)->versions;
    assert_int_equal(df_buf_add(&o->content, bytes, n), 0);
    return fate == 'a' ? no_answer(err) : 0;
}

static int remove_one(struct df_bucket *b, const char *name,
                      const struct df_bucket_version *version, struct df_err *err)
{
    struct object *o = find(b, name);
    char fate = next(&way.removals, name);
    if (fate == 'b')
        return no_answer(err);
    if (!o->version)
        return df_fail(err, DF_ERR_NOT_FOUND, "there is no %s", name);
    if (is_other(o, version))
        return fate == 'a' ? no_answer(err) : df_fail(err, DF_ERR_CONFLICT, "another version");
    df_buf_free(&o->content);
    *o = (struct object){0};
    return fate == 'a' ? no_answer(err) : 0;
}

static int list(struct df_bucket *b, const char *prefix, char **after,
                const struct df_bucket_sink *sink, struct df_err *err)
{
    struct memory *m = (struct memory *)b;
    (void)after;
    for (size_t i = 0; i < OBJECTS; i++) {
        const struct object *o = &m->objects[i];
        if (o->version && df_starts_with(o->name, prefix) &&
            sink->item(sink->arg, o->name, (int64_t)o->content.len, 0, err) < 0)
            return -1;
    }
    return 0;
}

static void close_memory(struct df_bucket *b)
{
    struct memory *m = (struct memory *)b;
    for (size_t i = 0; i < OBJECTS; i++)
        df_buf_free(&m->objects[i].content);
    free(m->bucket.place);
    free(m);
}

static const struct df_bucket_ops ops = {
    .close = close_memory, .get = get, .put = put, .remove = remove_one, .list = list};

/* *ret: borrowed from the blobs. */
static struct df_blob *open_over(const char *directory, struct df_bucket **ret)
{
    static const unsigned char key[DF_KEY_LEN] = "the key of a test, 32 bytes long";
    static const struct df_blob_sizes sizes = {4096, 4096, 8192, (int64_t)DF_MIB, 1};
    struct df_err err = {0};
    DF_KEYRING keys = {0};
    struct df_blob *b = NULL;
    struct memory *m = calloc(1, sizeof(*m));
    assert_non_null(m);
    m->bucket = (struct df_bucket){&ops, strdup("memory"), false};
    assert_int_equal(df_keyring_add(&keys, key, &err), 0);
    const struct df_blob_bucket_options o = {
        .keys = &keys, .directory = directory, .sizes = &sizes};
    *ret = &m->bucket;
    if (df_blob_bucket_open(&m->bucket, &o, &b, &err) < 0)
        fail_msg("%s", err.message);
    return b;
}

static void the_proof_of_versions_survives_requests_that_fail(void **state)
{
    static const struct {
        const char *puts, *removals;
    } ways[] = {{"a", ""}, {"b", ""}, {"aa", ""}, {".b", ""}, {"..a", ""}, {"", "a"}, {"", "b"}};
    for (size_t i = 0; i < DF_ARRAY_SIZE(ways); i++) {
        struct df_bucket *bucket = NULL;
        way.prefix = "probe/";
        way.puts = ways[i].puts;
        way.removals = ways[i].removals;
        DF_BLOB struct df_blob *b = open_over(*state, &bucket);
        assert_true(bucket->removes_versions);
        assert_string_equal(way.puts, ""); /* all of it happened */
        assert_string_equal(way.removals, "");
    }
}

static void assert_content(struct df_blob *b, const char *key, char want, size_t n)
{
    struct df_err err = {0};
    DF_BUF struct df_buf got = DF_BUF_INIT(DF_MIB);
    if (df_blob_get(b, key, &got, &err) < 0)
        fail_msg("%s", err.message);
    assert_int_equal(got.len, n);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(got.data[i], want);
}

static int count(const struct df_bucket *b, const char *prefix)
{
    const struct memory *m = (const struct memory *)b;
    int n = 0;
    for (size_t i = 0; i < OBJECTS; i++)
        n += m->objects[i].version && df_starts_with(m->objects[i].name, prefix);
    return n;
}

/* The first attempt of a put expects that there is no blob yet. */
static void a_put_over_a_blob_succeeds_when_its_first_answers_are_lost(void **state)
{
    static const char *const scripts[] = {"b", "a", ".b", ".a", "bb", "b.b", "b.a"};
    static const size_t sizes[] = {100, 20000}; /* without chunks, and with some */
    struct df_bucket *bucket = NULL;
    DF_BLOB struct df_blob *b = open_over(*state, &bucket);
    char content[20000];
    for (size_t i = 0; i < DF_ARRAY_SIZE(scripts) * DF_ARRAY_SIZE(sizes); i++) {
        size_t n = sizes[i % DF_ARRAY_SIZE(sizes)];
        struct df_err err = {0};
        DF_FREE char *key = df_strf("states/%zu", i);
        memset(content, 'o', sizeof(content));
        way.puts = way.removals = "";
        assert_int_equal(df_blob_put(b, key, content, n, &err), 0);
        memset(content, 'n', sizeof(content));
        way.prefix = "heads/";
        way.puts = scripts[i / DF_ARRAY_SIZE(sizes)];
        if (df_blob_put(b, key, content, n, &err) < 0)
            fail_msg("%s: %s", scripts[i / DF_ARRAY_SIZE(sizes)], err.message);
        assert_string_equal(way.puts, "");
        assert_content(b, key, 'n', n);
        assert_int_equal(count(bucket, "chunks/"), n == 100 ? 0 : 5); /* none of other attempts */
        assert_int_equal(df_blob_delete(b, key, &err), 0);
    }
}

static void whose_a_created_blob_is_stays_unknown_when_the_answer_was_lost(void **state)
{
    struct df_bucket *bucket = NULL;
    struct df_err err = {0};
    DF_BLOB struct df_blob *b = open_over(*state, &bucket);
    way.prefix = "heads/";
    way.puts = "a"; /* it is executed, and recognised */
    assert_int_equal(df_blob_create(b, "lock", "mine", 4, &err), 0);
    way.puts = "b";
    assert_int_equal(df_blob_create(b, "lock", "theirs", 6, &err), -1);
    assert_int_equal(err.cls, DF_ERR_RETRY);
    assert_string_equal(err.reason, ""); /* the store's own word is no reason for a caller */
    assert_int_equal(df_blob_create(b, "lock", "theirs", 6, &err), -1);
    assert_int_equal(err.cls, DF_ERR_CONFLICT);
}

/* ---- what others put into the bucket -------------------------------------------------------- */

static int64_t hours_later;

static int64_t later_mono_us(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000 + hours_later * 3600 * 1000000;
}

static int64_t later_real_us(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000 + hours_later * 3600 * 1000000;
}

static int fill_random(void *bytes, size_t n)
{
    return getrandom(bytes, n, 0) == (ssize_t)n ? 0 : -1;
}

static int no_clock(void **state)
{
    df_clock_install(NULL);
    refused = unanswered = NULL;
    return leave_scratch(state);
}

#define LATER(f) cmocka_unit_test_setup_teardown(f, enter_scratch, no_clock)

static void put_object(struct df_bucket *bucket, const char *name, const void *bytes, size_t n)
{
    assert_int_equal(put(bucket, name, bytes, n, NULL, NULL), 0);
}

/* A chunk of this blob that its head does not name. */
static void make_orphan(struct df_bucket *bucket, const char *of)
{
    char hex[DF_SHA256_HEX];
    assert_int_equal(df_sha256_hex(of, strlen(of), hex, NULL), 0);
    DF_FREE char *name = df_strf("chunks/dfb-%.32s-0123456789abcdef", hex);
    put_object(bucket, name, "x", 1);
}

/* An hour later, with the sweep of that time. */
static void list_later(struct df_blob *b)
{
    DF_STRS struct df_strs keys = {0};
    struct df_err err = {0};
    hours_later += 2;
    if (df_blob_list(b, "", &keys, &err) < 0)
        fail_msg("%s", err.message);
}

static struct {
    int lines;
    enum df_err_class cls;
    char last[2048];
} told;

static void tell(void *arg, enum df_err_class cls, const char *message)
{
    (void)arg;
    told.lines++;
    told.cls = cls;
    (void)snprintf(told.last, sizeof(told.last), "%s", message);
}

/* Three ways in which a head does not open; "c" is as it was. */
static void spoil_heads(struct df_bucket *bucket)
{
    DF_BUF struct df_buf other = DF_BUF_INIT(DF_LIMIT_BUCKET_OBJECT);
    struct df_bucket_version version;
    assert_int_equal(get(bucket, "heads/c", &other, &version, NULL), 0);
    put_object(bucket, "heads/a", "garbage", 7);
    put_object(bucket, "heads/b", other.data, other.len); /* sealed, and for another place */
    refused = "heads/d";
}

static struct df_blob *open_with_blobs(const char *directory, struct df_bucket **ret_bucket)
{
    static const struct df_blob_service service = {.place = "memory", .tell = tell};
    static const struct df_clock later = {later_mono_us, later_real_us, fill_random};
    struct df_blob *b = open_over(directory, ret_bucket);
    char content[12 * 1024];
    memset(content, 'x', sizeof(content));
    memset(&told, 0, sizeof(told));
    way.puts = way.removals = "";
    df_clock_install(&later);
    assert_int_equal(df_blob_serve(b, &service, NULL), 0);
    for (char key[] = "a"; *key <= 'd'; ++*key)
        assert_int_equal(df_blob_put(b, key, content, sizeof(content), NULL), 0);
    return b;
}

static void a_head_that_does_not_open_keeps_its_chunks_and_no_others(void **state)
{
    struct df_bucket *bucket = NULL;
    DF_BLOB struct df_blob *b = open_with_blobs(*state, &bucket);
    int chunks = count(bucket, "chunks/");
    spoil_heads(bucket);
    for (char key[] = "a"; *key <= 'd'; ++*key)
        make_orphan(bucket, key);
    assert_int_equal(count(bucket, "chunks/"), chunks + 4);
    list_later(b);
    assert_int_equal(count(bucket, "chunks/"), chunks + 3); /* that of "c" is gone */
    assert_content(b, "c", 'x', 12288);
    refused = NULL; /* as if it had been given back its rights */
    assert_content(b, "d", 'x', 12288);
    list_later(b);
    assert_int_equal(count(bucket, "chunks/"), chunks + 2);
}

static void heads_that_do_not_open_are_told_once_and_again_when_they_are_others(void **state)
{
    struct df_bucket *bucket = NULL;
    DF_BLOB struct df_blob *b = open_with_blobs(*state, &bucket);
    list_later(b);
    assert_int_equal(told.lines, 0);
    spoil_heads(bucket);
    for (int i = 0; i < 3; i++)
        list_later(b);
    assert_int_equal(told.lines, 1);
    assert_int_equal(told.cls, DF_ERR_RETRY);
    assert_non_null(strstr(told.last, "memory: unused chunks of "));
    assert_non_null(strstr(told.last, " (and of 2 others) are not removed"));
    refused = NULL;
    list_later(b);
    assert_int_equal(told.lines, 2);
    assert_non_null(strstr(told.last, " (and of 1 other) are not removed"));
}

/* Nothing is known of any head then. */
static void a_head_that_the_store_does_not_answer_for_ends_the_sweep(void **state)
{
    struct df_bucket *bucket = NULL;
    DF_BLOB struct df_blob *b = open_with_blobs(*state, &bucket);
    make_orphan(bucket, "c");
    int chunks = count(bucket, "chunks/");
    unanswered = "heads/a";
    df_blob_hasten(b);
    list_later(b);
    assert_int_equal(count(bucket, "chunks/"), chunks);
    unanswered = NULL;
    list_later(b);
    assert_int_equal(count(bucket, "chunks/"), chunks - 1);
    assert_int_equal(told.lines, 0);
}

/* ---- a service that is asked to stop -------------------------------------------------------- */

static void in_haste_nothing_is_repeated(void **state)
{
    struct df_bucket *bucket = NULL;
    struct df_err err = {0};
    DF_BLOB struct df_blob *b = open_over(*state, &bucket);
    df_blob_hasten(b);
    way.prefix = "heads/";
    way.puts = "bb";
    assert_int_equal(df_blob_put(b, "states/1", "x", 1, &err), -1);
    assert_int_equal(err.cls, DF_ERR_RETRY);
    assert_string_equal(way.puts, "b");
    way.puts = "";
    assert_int_equal(df_blob_put(b, "states/1", "x", 1, &err), 0); /* once, all is done as ever */
}

static void *put_one(void *arg)
{
    struct df_err err = {0};
    return df_blob_put(arg, "states/1", "x", 1, &err) < 0 && err.cls == DF_ERR_RETRY ? arg : NULL;
}

/* It would wait for half a minute each time, six times. */
static void haste_ends_the_pause_that_the_store_asked_for(void **state)
{
    struct df_bucket *bucket = NULL;
    pthread_t thread;
    void *failed = NULL;
    DF_BLOB struct df_blob *b = open_over(*state, &bucket);
    way.prefix = "heads/";
    way.puts = "ppp";
    assert_int_equal(pthread_create(&thread, NULL, put_one, b), 0);
    while (!__atomic_load_n(&paused, __ATOMIC_ACQUIRE))
        (void)poll(NULL, 0, 1);
    df_blob_hasten(b);
    assert_int_equal(pthread_join(thread, &failed), 0);
    assert_ptr_equal(failed, b);
    assert_string_equal(way.puts, "pp");
    way.puts = "";
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scratch_test(the_proof_of_versions_survives_requests_that_fail),
        scratch_test(a_put_over_a_blob_succeeds_when_its_first_answers_are_lost),
        scratch_test(whose_a_created_blob_is_stays_unknown_when_the_answer_was_lost),
        scratch_test(in_haste_nothing_is_repeated),
        scratch_test(haste_ends_the_pause_that_the_store_asked_for),
        LATER(a_head_that_does_not_open_keeps_its_chunks_and_no_others),
        LATER(heads_that_do_not_open_are_told_once_and_again_when_they_are_others),
        LATER(a_head_that_the_store_does_not_answer_for_ends_the_sweep),
    };
    return cmocka_run_group_tests_name("bucket", tests, NULL, NULL);
}
