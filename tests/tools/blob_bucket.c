/*
 * blob_bucket - what every backend of blobs must do (tests/unit/blob_suite.h), what every object
 * store must (chunked_suite.h), and what only a bucket can show. tests/integration/test_buckets.py
 * runs it against real servers: BUCKET_KIND (s3, gs or azblob), BUCKET_ENDPOINT, BUCKET, and the
 * credentials of S3 and Azure as their programs take them.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define blob_test(f) scratch_test(f)
#define blob_kill_test(f) scratch_test(f)
#include "tests/unit/chunked_suite.h"

#include "common/blob/azblob.h"
#include "common/blob/bucket_owner.h"
#include "common/blob/gcs.h"
#include "common/blob/s3.h"
#include "common/http/http.h"

/* ---- the store of a test: its own prefix in the bucket -------------------------------------- */

static const char *prefix_of(const char *state)
{
    return strrchr(state, '/') + 1;
}

static bool is_kind(const char *kind)
{
    return df_streq(getenv("BUCKET_KIND"), kind);
}

struct where {
    const char *bucket, *prefix, *region, *endpoint;
};

static struct where where_of(const char *state)
{
    return (struct where){getenv("BUCKET"), prefix_of(state), "us-east-1",
                          getenv("BUCKET_ENDPOINT")};
}

static int new_driver(const struct where *w, struct df_bucket **ret, struct df_err *err)
{
    const struct df_s3_options s3 = {.bucket = w->bucket,
                                     .prefix = w->prefix,
                                     .region = w->region,
                                     .endpoint = w->endpoint,
                                     .path_style = true};
    const struct df_gcs_options gcs = {
        .bucket = w->bucket, .prefix = w->prefix, .endpoint = w->endpoint, .anonymous = true};
    DF_FREE char *place = df_strf("%s/%s", w->bucket, w->prefix);
    const struct df_azblob_options azblob = {.account = "dayflytest",
                                             .place = place,
                                             .endpoint = w->endpoint,
                                             .ca_file = getenv("BUCKET_CA")};
    return is_kind("s3")   ? df_s3_bucket_new(&s3, ret, err)
           : is_kind("gs") ? df_gcs_bucket_new(&gcs, ret, err)
                           : df_azblob_bucket_new(&azblob, ret, err);
}

/* A driver of the test's own: what it does happens behind the back of the blobs. */
static struct df_bucket *driver(const char *state)
{
    const struct where w = where_of(state);
    struct df_err err = {0};
    struct df_bucket *b = NULL;
    if (new_driver(&w, &b, &err) < 0)
        fail_msg("%s", err.message);
    return b;
}

static const unsigned char first_key[DF_KEY_LEN] = "the first key of these tests...";
static const unsigned char second_key[DF_KEY_LEN] = "the second key of these tests..";

/* The sizes of Kubernetes, which the suite counts on. */
static int open_with(const char *state, const char *directory, const struct df_keyring *keys,
                     struct df_blob **ret, struct df_err *err)
{
    const struct df_blob_sizes sizes = {.chunk = (int64_t)(512 * DF_KIB),
                                        .stream_chunk = (int64_t)(64 * DF_KIB),
                                        .no_chunks = (int64_t)(16 * DF_KIB),
                                        .blob = (int64_t)DF_LIMIT_BLOB_KUBE,
                                        .at_once = getenv("BUCKET_AT_ONCE") ? 3 : 1};
    const struct df_blob_bucket_options o = {keys, directory, &sizes};
    return df_blob_bucket_open(driver(state), &o, ret, err);
}

static struct df_blob *open_in(const char *state, const char *directory)
{
    DF_KEYRING keys = {0};
    struct df_err err = {0};
    struct df_blob *b = NULL;
    assert_int_equal(df_keyring_add(&keys, first_key, &err), 0);
    if (open_with(state, directory, &keys, &b, &err) < 0)
        fail_msg("%s", err.message);
    return b;
}

static struct df_blob *suite_open(const char *dir)
{
    return open_in(dir, dir);
}

static void get_object(const char *state, const char *name, struct df_buf *out)
{
    struct df_err err = {0};
    struct df_bucket_version version;
    struct df_bucket *b = driver(state);
    if (b->ops->get(b, name, out, &version, &err) < 0)
        fail_msg("%s", err.message);
    b->ops->close(b);
}

static void copy_object(const char *state, const char *from, const char *to)
{
    struct df_err err = {0};
    DF_BUF struct df_buf content = DF_BUF_INIT(2 * MIB);
    struct df_bucket *b = driver(state);
    get_object(state, from, &content);
    if (b->ops->put(b, to, df_buf_str(&content), content.len, NULL, &err) < 0)
        fail_msg("%s", err.message);
    b->ops->close(b);
}

static int add_chunk_name(void *arg, const char *name, int64_t size, int64_t made_us,
                          struct df_err *err)
{
    (void)size, (void)made_us;
    (void)df_strs_add(arg, name + strlen("chunks/"));
    return df_strs_check(arg, err);
}

static void list_chunks(const char *state, struct df_strs *ret)
{
    struct df_err err = {0};
    const struct df_bucket_sink sink = {add_chunk_name, ret};
    struct df_bucket *b = driver(state);
    DF_FREE char *after = NULL;
    do {
        while (b->ops->list(b, "chunks/", &after, &sink, &err) < 0)
            if (err.cls != DF_ERR_RETRY) /* on a bad way; a page is told whole or not at all */
                fail_msg("%s", err.message);
    } while (after);
    b->ops->close(b);
}

static void delete_chunk(const char *state, const char *name)
{
    struct df_err err = {0};
    DF_FREE char *chunk = df_strf("chunks/%s", name);
    struct df_bucket *b = driver(state);
    assert_int_equal(b->ops->remove(b, chunk, NULL, &err), 0);
    b->ops->close(b);
}

static void copy_chunk(const char *state, const char *from, const char *to)
{
    DF_FREE char *source = df_strf("chunks/%s", from);
    DF_FREE char *target = df_strf("chunks/%s", to);
    copy_object(state, source, target);
}

/* ---- what only a bucket shows ---- */

static void assert_sealed(const char *state, const char *name)
{
    DF_BUF struct df_buf bytes = DF_BUF_INIT(2 * MIB);
    static const unsigned char zstd[] = {0x28, 0xb5, 0x2f, 0xfd};
    get_object(state, name, &bytes);
    assert_true(bytes.len > 28);
    assert_null(memmem(bytes.data, bytes.len, "hunter2", 7));
    assert_null(memmem(bytes.data, bytes.len, zstd, sizeof(zstd)));
}

static void nothing_in_the_bucket_can_be_read_without_the_key(void **state)
{
    struct df_err err = {0};
    DF_STRS struct df_strs names = {0};
    BLOBS *b = suite_open(*state);
    DF_FREE char *text = malloc(MIB / 4);
    assert_non_null(text);
    for (size_t i = 0; i + 8 <= MIB / 4; i += 8)
        memcpy(text + i, "hunter2,", 8);
    assert_int_equal(df_blob_put(b, "state/x/1", text, MIB / 4, &err), 0);
    put(b, "state/x/2", "hunter2");
    list_chunks(*state, &names);
    assert_int_equal(names.len, 1);
    DF_FREE char *chunk = df_strf("chunks/%s", names.items[0]);
    assert_sealed(*state, chunk);
    assert_sealed(*state, "heads/state/x/2");
}

/* The new key stands first; what the old one sealed is not rewritten. */
static void a_new_key_seals_and_the_old_one_still_opens(void **state)
{
    struct df_err err = {0};
    DF_KEYRING both = {0};
    DF_KEYRING second = {0};
    assert_int_equal(df_keyring_add(&both, second_key, &err), 0);
    assert_int_equal(df_keyring_add(&both, first_key, &err), 0);
    assert_int_equal(df_keyring_add(&second, second_key, &err), 0);
    BLOBS *before = suite_open(*state);
    put(before, "state/x/1", "old");
    BLOBS *b = NULL;
    assert_int_equal(open_with(*state, *state, &both, &b, &err), 0);
    assert_content(b, "state/x/1", "old");
    put(b, "state/x/2", "new");
    BLOBS *after = NULL;
    assert_int_equal(open_with(*state, *state, &second, &after, &err), 0);
    assert_content(after, "state/x/2", "new");
    DF_BUF struct df_buf got = DF_BUF_INIT(100);
    assert_int_equal(df_blob_get(after, "state/x/1", &got, &err), -1);
    assert_int_equal(err.cls, DF_ERR_SYSTEM);
    assert_string_equal(err.reason, "UnknownKey");
    assert_non_null(strstr(err.message, "state/x/1"));
}

static void an_object_that_was_moved_or_changed_is_refused(void **state)
{
    struct df_err err = {0};
    BLOBS *b = suite_open(*state);
    put(b, "state/x/1", "one");
    put(b, "state/x/2", "two");
    copy_object(*state, "heads/state/x/1", "heads/state/x/2");
    DF_BUF struct df_buf got = DF_BUF_INIT(100);
    assert_int_equal(df_blob_get(b, "state/x/2", &got, &err), -1);
    assert_int_equal(err.cls, DF_ERR_SYSTEM);
    assert_string_equal(err.reason, "BlobDamaged");
    assert_non_null(strstr(err.message, "state/x/2"));
}

/* More than a page of a list, which S3 cuts at a thousand. */
static void more_blobs_than_a_page_holds_are_listed(void **state)
{
    enum { COUNT = 1003 };
    struct df_err err = {0};
    DF_STRS struct df_strs keys = {0};
    BLOBS *b = suite_open(*state);
    put(b, "runs/seed", "x");
    struct df_bucket *behind = driver(*state);
    for (int i = 1; i < COUNT; i++) {
        DF_FREE char *name = df_strf("heads/runs/%04d", i);
        assert_int_equal(behind->ops->put(behind, name, "x", 1, NULL, &err), 0);
    }
    behind->ops->close(behind);
    assert_int_equal(df_blob_list(b, "runs", &keys, &err), 0);
    assert_int_equal(keys.len, COUNT);
}

static bool is_there(const char *state, const char *name)
{
    struct df_err err = {0};
    DF_BUF struct df_buf content = DF_BUF_INIT(2 * MIB);
    struct df_bucket_version version;
    struct df_bucket *b = driver(state);
    bool found = b->ops->get(b, name, &content, &version, &err) == 0;
    b->ops->close(b);
    return found;
}

/* Names that somebody else gave lead nowhere, even when they lie below ours and are old. */
static void objects_of_others_are_left_alone(void **state)
{
    static const struct df_clock later = {later_mono_us, later_real_us, fill_random};
    static const char *const names[] = {
        "chunks/of-others", "chunks/dfb-0123456789abcdef0123456789abcdeX-0123456789abcdef"};
    struct df_err err = {0};
    BLOBS *b = suite_open(*state);
    put(b, "x", "ours");
    struct df_bucket *behind = driver(*state);
    for (size_t i = 0; i < DF_ARRAY_SIZE(names); i++)
        assert_int_equal(behind->ops->put(behind, names[i], "x", 1, NULL, &err), 0);
    behind->ops->close(behind);
    hours_later = 2;
    df_clock_install(&later);
    assert_keys(b, "", "x");
    df_clock_install(NULL);
    for (size_t i = 0; i < DF_ARRAY_SIZE(names); i++)
        assert_true(is_there(*state, names[i]));
}

/* ---- whose a place is ---- */

enum { CLAIMANTS = 4 };

struct claimant {
    const char *state;
    char id[8];
    int result;
    struct df_err err;
};

static int claim(const char *state, const char *id, const char *former, struct df_err *err)
{
    struct df_bucket *b = driver(state);
    struct df_bucket_owner *owner = NULL;
    int result = df_bucket_claim(b, id, former, &owner, err);
    df_bucket_owner_free(owner);
    b->ops->close(b);
    return result;
}

static void *claim_beside_others(void *arg)
{
    struct claimant *c = arg;
    c->result = claim(c->state, c->id, NULL, &c->err);
    return NULL;
}

static void of_installations_that_come_at_once_one_has_the_place(void **state)
{
    struct claimant all[CLAIMANTS] = {0};
    pthread_t threads[CLAIMANTS];
    int winners = 0;
    for (int i = 0; i < CLAIMANTS; i++) {
        all[i].state = *state;
        (void)snprintf(all[i].id, sizeof(all[i].id), "id-%d", i);
        assert_int_equal(pthread_create(&threads[i], NULL, claim_beside_others, &all[i]), 0);
    }
    for (int i = 0; i < CLAIMANTS; i++) {
        (void)pthread_join(threads[i], NULL);
        winners += all[i].result == 0;
        if (all[i].result < 0)
            assert_string_equal(all[i].err.reason, "ForeignBlobs");
    }
    assert_int_equal(winners, 1);
}

static void a_place_is_taken_over_from_the_installation_that_is_named_alone(void **state)
{
    struct df_err err = {0};
    assert_int_equal(claim(*state, "first", NULL, &err), 0);
    assert_int_equal(claim(*state, "first", NULL, &err), 0);
    assert_int_equal(claim(*state, "second", "third", &err), -1);
    assert_int_equal(err.cls, DF_ERR_USER);
    assert_non_null(strstr(err.message, "blobs.takeOver: first"));
    assert_non_null(strstr(err.message, "installation first, not to third, which blobs.takeOver"));
    assert_int_equal(claim(*state, "second", "first", &err), 0);
    assert_int_equal(claim(*state, "second", "first", &err), 0); /* the key may stay */
    assert_int_equal(claim(*state, "first", NULL, &err), -1);
}

static struct df_blob *open_as(const char *state, const char *id, const char *former)
{
    DF_KEYRING keys = {0};
    struct df_err err = {0};
    struct df_blob *b = NULL;
    const struct df_blob_bucket_options o = {
        .keys = &keys, .directory = state, .owner = id, .former = former};
    assert_int_equal(df_keyring_add(&keys, first_key, &err), 0);
    if (df_blob_bucket_open(driver(state), &o, &b, &err) < 0)
        fail_msg("%s", err.message);
    return b;
}

static void assert_taken_over(const struct df_err *err)
{
    assert_int_equal(err->cls, DF_ERR_SYSTEM);
    assert_string_equal(err->reason, "StorageTakenOver");
    if (!strstr(err->message, "installation second took") ||
        !strstr(err->message, "blobs.takeOver: second"))
        fail_msg("%s", err->message);
}

/* It may write for a minute; it may read for ever. */
static void who_lost_a_place_stops_to_write_there(void **state)
{
    static const struct df_clock later = {later_mono_us, later_real_us, fill_random};
    struct df_err err = {0};
    int64_t size = 0;
    BLOBS *first = open_as(*state, "first", NULL);
    put(first, "x", "of the first");
    BLOBS *second = open_as(*state, "second", "first");
    put(second, "x", "of the second");
    hours_later = 1;
    df_clock_install(&later);
    assert_int_equal(df_blob_put(first, "x", "late", 4, &err), -1);
    assert_taken_over(&err);
    assert_int_equal(df_blob_create(first, "y", "late", 4, &err), -1);
    assert_taken_over(&err);
    assert_int_equal(df_blob_append(first, "z", 0, "late", 4, &size, &err), -1);
    assert_taken_over(&err);
    assert_int_equal(df_blob_delete(first, "x", &err), -1);
    assert_taken_over(&err);
    assert_content(first, "x", "of the second");
    put(second, "y", "goes on");
    df_clock_install(NULL);
    assert_keys(second, "", "x y");
}

static void who_asks_whose_a_place_is_hears_it_at_once(void **state)
{
    struct df_err err = {0};
    BLOBS *first = open_as(*state, "first", NULL);
    assert_int_equal(df_blob_check_owner(first, true, &err), 0);
    BLOBS *second = open_as(*state, "second", "first");
    assert_int_equal(df_blob_check_owner(second, true, &err), 0);
    assert_int_equal(df_blob_check_owner(first, true, &err), -1);
    assert_taken_over(&err);
    assert_int_equal(df_blob_put(first, "x", "late", 4, &err), -1);
    assert_taken_over(&err);
}

static void a_mark_that_was_removed_is_nobodys(void **state)
{
    struct df_err err = {0};
    BLOBS *first = open_as(*state, "first", NULL);
    struct df_bucket *behind = driver(*state);
    assert_int_equal(behind->ops->remove(behind, "owner", NULL, &err), 0);
    behind->ops->close(behind);
    assert_int_equal(df_blob_check_owner(first, true, &err), 0);
    put(first, "x", "ours");
}

/* It is no mark, and nobody's who could be named: nothing is overwritten. */
static void an_object_of_this_name_that_is_empty_is_no_free_place(void **state)
{
    struct df_err err = {0};
    struct df_bucket *behind = driver(*state);
    assert_int_equal(behind->ops->put(behind, "owner", "", 0, NULL, &err), 0);
    behind->ops->close(behind);
    assert_int_equal(claim(*state, "first", NULL, &err), -1);
    assert_string_equal(err.reason, "ForeignBlobs");
}

static void assert_open_fails(const struct where *w, const char *word)
{
    struct df_err err = {0};
    DF_KEYRING keys = {0};
    struct df_bucket *bucket = NULL;
    BLOBS *b = NULL;
    const struct df_blob_bucket_options o = {&keys, "/nonexistent", NULL};
    assert_int_equal(df_keyring_add(&keys, first_key, &err), 0);
    if (new_driver(w, &bucket, &err) == 0)
        assert_int_equal(df_blob_bucket_open(bucket, &o, &b, &err), -1);
    assert_int_equal(err.cls, DF_ERR_USER);
    if (!strstr(err.message, word))
        fail_msg("no \"%s\" in: %s", word, err.message);
}

static void a_bucket_that_is_not_there_is_named_at_once(void **state)
{
    struct where w = where_of(*state);
    w.bucket = "no-such-bucket";
    assert_open_fails(&w, "/no-such-bucket/");
}

static void options_that_cannot_be_are_refused_by_name(void **state)
{
    const struct where good = where_of(*state);
    struct where w = good;
    w.bucket = "Upper_Case";
    assert_open_fails(&w, is_kind("azblob") ? "\"Upper_Case\" is not the name of a container"
                                            : "\"Upper_Case\" is not the name of a bucket");
    w = good;
    w.prefix = "a/../b";
    assert_open_fails(&w, "\"a/../b\" is not a prefix");
    w = good;
    w.endpoint = "ftp://x";
    assert_open_fails(&w, "\"ftp://x\" is not an endpoint");
    w.endpoint = "https://acme.blob.core.windows.net/?sig=x";
    assert_open_fails(&w, "with neither a user nor a query");
    w.endpoint = "https://key:s3cret@minio.example";
    assert_open_fails(&w, "with neither a user nor a query");
    w = good;
    w.region = "eu central";
    if (is_kind("s3"))
        assert_open_fails(&w, "\"eu central\" is not a region");
}

/* ---- what somebody else did to an object of Azure ---- */

enum { HALF_A_MINUTE_MS = 30000 };

/* Of a shared access signature: such a request needs no signature of its own. */
static void do_behind(const char *state, const char *name, const char *what, const char *header)
{
    const struct where w = where_of(state);
    struct df_err err = {0};
    DF_HTTP struct df_http *h = NULL;
    DF_HTTP_RESPONSE struct df_http_response res = {0};
    DF_STRS struct df_strs headers = {0};
    DF_FREE char *url = df_strf("%s/%s/%s/%s?comp=%s&%s", w.endpoint, w.bucket, w.prefix, name,
                                what, getenv("AZURE_STORAGE_SAS_TOKEN"));
    const struct df_http_options o = {0};
    struct df_http_request req = DF_HTTP_REQUEST("PUT", url);
    (void)df_strs_add(&headers, "Content-Length: 0");
    (void)df_strs_add(&headers, "x-ms-version: 2021-12-02");
    (void)df_strs_add(&headers, "x-ms-lease-duration: -1");
    (void)df_strs_add(&headers, header);
    req.headers = &headers;
    req.timeout_ms = HALF_A_MINUTE_MS;
    if (df_http_new(&o, &h, &err) < 0 || df_http_send(h, &req, &res, &err) < 0)
        fail_msg("%s", err.message);
    if (res.status >= 300)
        fail_msg("%s: %d %s", what, res.status, df_buf_str(&res.body));
}

static void put_object(const char *state, const char *name)
{
    struct df_bucket *b = driver(state);
    assert_int_equal(b->ops->put(b, name, "one", 3, NULL, NULL), 0);
    b->ops->close(b);
}

static void assert_refused(const struct df_err *err, enum df_err_class cls, const char *code)
{
    if (err->cls != cls || !strstr(err->message, code))
        fail_msg("class %d instead of %d: %s", (int)err->cls, (int)cls, err->message);
}

static void an_object_that_somebody_leased_is_denied(void **state)
{
    struct df_err put_err = {0}, remove_err = {0};
    put_object(*state, "heads/a");
    do_behind(*state, "heads/a", "lease", "x-ms-lease-action: acquire");
    struct df_bucket *b = driver(*state);
    assert_int_equal(b->ops->put(b, "heads/a", "two", 3, NULL, &put_err), -1);
    assert_int_equal(b->ops->remove(b, "heads/a", NULL, &remove_err), -1);
    b->ops->close(b);
    assert_refused(&put_err, DF_ERR_DENIED, "LeaseIdMissing");
    assert_refused(&remove_err, DF_ERR_DENIED, "LeaseIdMissing");
}

static void an_object_with_snapshots_is_not_removed(void **state)
{
    struct df_err err = {0};
    put_object(*state, "heads/a");
    do_behind(*state, "heads/a", "snapshot", "x-ms-meta-by: somebody");
    struct df_bucket *b = driver(*state);
    assert_int_equal(b->ops->remove(b, "heads/a", NULL, &err), -1);
    b->ops->close(b);
    assert_refused(&err, DF_ERR_USER, "SnapshotsPresent");
}

static void an_archived_object_is_not_read(void **state)
{
    struct df_err err = {0};
    struct df_bucket_version version;
    DF_BUF struct df_buf content = DF_BUF_INIT(MIB);
    put_object(*state, "heads/a");
    do_behind(*state, "heads/a", "tier", "x-ms-access-tier: Archive");
    struct df_bucket *b = driver(*state);
    assert_int_equal(b->ops->get(b, "heads/a", &content, &version, &err), -1);
    b->ops->close(b);
    assert_refused(&err, DF_ERR_USER, "BlobArchived");
}

/* ---- on a way on which requests fail ---- */

enum { RECORDS = 150, LOCKS = 30, RIVALS = 3 };

/* As the writers of logs do: a call whose outcome is unknown is repeated; a conflict tells how much
 * of it is there. */
static void append_record(struct df_blob *b, const char *key, int64_t *size, const char *text)
{
    int64_t end = *size + (int64_t)strlen(text);
    for (int i = 0; i < 20; i++) {
        struct df_err err = {0};
        int64_t now = 0;
        if (df_blob_append(b, key, *size, text, strlen(text), &now, &err) == 0 ||
            (err.cls == DF_ERR_CONFLICT && now == end)) {
            *size = end;
            return;
        }
        if (err.cls != DF_ERR_RETRY)
            fail_msg("%s", err.message);
    }
    fail_msg("twenty failures in a row");
}

static void a_stream_has_each_record_once_and_in_order(void **state)
{
    struct df_err err = {0};
    DF_BUF struct df_buf want = DF_BUF_INIT(MIB), got = DF_BUF_INIT(MIB);
    BLOBS *b = suite_open(*state);
    int64_t size = 0;
    for (int i = 0; i < RECORDS; i++) {
        DF_FREE char *record = df_strf("record %d of a log, which is a line\n", i);
        append_record(b, "logs/x/1", &size, record);
        (void)df_buf_adds(&want, record);
    }
    while (df_blob_get(b, "logs/x/1", &got, &err) < 0 && err.cls == DF_ERR_RETRY)
        df_buf_clear(&got);
    assert_string_equal(df_buf_str(&got), df_buf_str(&want));
    df_buf_free(&got);
}

struct contender {
    const char *state;
    char *directory;
    pthread_t thread;
    bool won[LOCKS];
};

/* RETRY leaves open whose it is: the rival looks. */
static void *create_all(void *arg)
{
    struct contender *r = arg;
    BLOBS *b = open_in(r->state, r->directory);
    for (int i = 0; i < LOCKS; i++) {
        DF_FREE char *key = df_strf("locks/%d", i);
        DF_BUF struct df_buf there = DF_BUF_INIT(1000);
        struct df_err err = {0};
        while (df_blob_create(b, key, r->directory, strlen(r->directory), &err) < 0 &&
               err.cls == DF_ERR_RETRY)
            continue;
        while (df_blob_get(b, key, &there, &err) < 0)
            df_buf_clear(&there);
        r->won[i] = df_streq(df_buf_str(&there), r->directory);
    }
    return NULL;
}

static void of_rivals_for_a_lock_one_has_it(void **state)
{
    struct contender rivals[RIVALS] = {0};
    for (int i = 0; i < RIVALS; i++) {
        rivals[i].state = *state;
        rivals[i].directory = df_strf("%s/%d", (const char *)*state, i);
        assert_int_equal(mkdir(rivals[i].directory, 0700), 0);
        assert_int_equal(pthread_create(&rivals[i].thread, NULL, create_all, &rivals[i]), 0);
    }
    for (int i = 0; i < RIVALS; i++)
        assert_int_equal(pthread_join(rivals[i].thread, NULL), 0);
    for (int lock = 0; lock < LOCKS; lock++) {
        int owners = 0;
        for (int i = 0; i < RIVALS; i++)
            owners += rivals[i].won[lock];
        assert_int_equal(owners, 1);
    }
    for (int i = 0; i < RIVALS; i++)
        free(rivals[i].directory);
}

static void a_large_blob_arrives_whole(void **state)
{
    BLOBS *b = suite_open(*state);
    for (uint64_t i = 0; i < 5; i++)
        put_noise(b, "plans/x/1", 3 * MIB, i);
    assert_noise(b, "plans/x/1", 3 * MIB, 4);
    assert_int_equal(count_chunks(*state), 6);
}

static const struct CMUnitTest usual[] = {
    BLOB_SUITE,
    BLOB_KILL_SUITE,
    CHUNKED_SUITE,
    blob_test(nothing_in_the_bucket_can_be_read_without_the_key),
    blob_test(a_new_key_seals_and_the_old_one_still_opens),
    blob_test(an_object_that_was_moved_or_changed_is_refused),
    blob_test(more_blobs_than_a_page_holds_are_listed),
    blob_test(objects_of_others_are_left_alone),
    blob_test(of_installations_that_come_at_once_one_has_the_place),
    blob_test(a_place_is_taken_over_from_the_installation_that_is_named_alone),
    blob_test(who_lost_a_place_stops_to_write_there),
    blob_test(who_asks_whose_a_place_is_hears_it_at_once),
    blob_test(a_mark_that_was_removed_is_nobodys),
    blob_test(an_object_of_this_name_that_is_empty_is_no_free_place),
    blob_test(a_bucket_that_is_not_there_is_named_at_once),
    blob_test(options_that_cannot_be_are_refused_by_name),
};

static const struct CMUnitTest others[] = {
    blob_test(an_object_that_somebody_leased_is_denied),
    blob_test(an_object_with_snapshots_is_not_removed),
    blob_test(an_archived_object_is_not_read),
};

static const struct CMUnitTest trouble[] = {
    blob_test(a_stream_has_each_record_once_and_in_order),
    blob_test(of_rivals_for_a_lock_one_has_it),
    blob_test(a_large_blob_arrives_whole),
};

static const struct CMUnitTest simple[] = {
    blob_test(a_blob_is_what_was_put_last),
    blob_test(a_stream_grows_at_its_end_alone),
    blob_test(the_list_is_sorted_and_below_its_prefix_alone),
};

/* blob_bucket [trouble|clock|others] */
int main(int argc, char **argv)
{
    const char *which = argc > 1 ? argv[1] : "";
    if (!getenv("BUCKET_ENDPOINT") || df_http_global_init(NULL) < 0)
        return 2;
    if (df_streq(which, "trouble"))
        return cmocka_run_group_tests_name("a bucket in trouble", trouble, NULL, NULL);
    if (df_streq(which, "clock"))
        return cmocka_run_group_tests_name("a bucket with another clock", simple, NULL, NULL);
    if (df_streq(which, "others"))
        return cmocka_run_group_tests_name("a bucket that others use", others, NULL, NULL);
    return cmocka_run_group_tests_name("blobs in a bucket", usual, NULL, NULL);
}
