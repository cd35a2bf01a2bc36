/* What a running service knows of the store of its blobs, over a backend that fails as the test
 * says. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/blob/backend.h"

/* ---- the backend ---- */

static struct {
    struct df_err reads, writes; /* class NONE: they work */
    int read, put, removed;      /* calls */
    bool is_empty;               /* there is nothing to remove */
} store;

static int result_of(const struct df_err *why, int *calls, struct df_err *err)
{
    ++*calls;
    return why->cls ? df_err_pass(err, why) : 0;
}

static int store_put(struct df_blob *b, const char *key, const struct df_blob_content *content,
                     enum df_blob_how how, struct df_err *err)
{
    (void)b, (void)key, (void)content, (void)how;
    return result_of(&store.writes, &store.put, err);
}

static int store_append(struct df_blob *b, const char *key, int64_t offset, const void *bytes,
                        size_t n, int64_t *ret_size, struct df_err *err)
{
    (void)b, (void)key, (void)offset, (void)bytes, (void)n, (void)ret_size;
    return result_of(&store.writes, &store.put, err);
}

static int store_get(struct df_blob *b, const char *key, int64_t offset, struct df_buf *out,
                     int64_t *ret_size, struct df_err *err)
{
    (void)b, (void)key, (void)offset, (void)out, (void)ret_size;
    return result_of(&store.reads, &store.read, err);
}

static int store_open_read(struct df_blob *b, const char *key, int *ret_fd, int64_t *ret_size,
                           struct df_err *err)
{
    (void)b, (void)key, (void)ret_fd, (void)ret_size;
    return result_of(&store.reads, &store.read, err);
}

static int store_size(struct df_blob *b, const char *key, int64_t *ret_size, struct df_err *err)
{
    (void)b, (void)key, (void)ret_size;
    return result_of(&store.reads, &store.read, err);
}

static int store_remove(struct df_blob *b, const char *key, const struct df_blob_condition *c,
                        enum df_blob_removal *ret, struct df_err *err)
{
    (void)b, (void)key;
    if (c && store.reads.cls)
        return result_of(&store.reads, &store.read, err);
    *ret = store.is_empty ? DF_BLOB_ABSENT : DF_BLOB_REMOVED;
    return result_of(&store.writes, &store.removed, err);
}

static int store_list(struct df_blob *b, const char *prefix, struct df_strs *out,
                      struct df_err *err)
{
    (void)b, (void)prefix, (void)out;
    return result_of(&store.reads, &store.read, err);
}

static int store_each(struct df_blob *b, const char *prefix, df_blob_visit visit, void *arg,
                      struct df_err *err)
{
    const struct df_blob_info info = {"state/x/1", 1, 1};
    (void)b, (void)prefix;
    return result_of(&store.reads, &store.read, err) < 0 ? -1 : visit(arg, &info, err);
}

static void store_close(struct df_blob *b)
{
    free(b);
}

static const struct df_blob_ops ops = {
    .close = store_close,
    .put = store_put,
    .append = store_append,
    .get = store_get,
    .open_read = store_open_read,
    .size = store_size,
    .remove = store_remove,
    .list = store_list,
    .each = store_each,
};

static struct df_err failure(enum df_err_class cls, const char *reason)
{
    struct df_err err = {0};
    (void)df_fail_reason(&err, cls, reason, "GET heads/state/x/1 of s3://b: HTTP 403");
    return err;
}

/* ---- the service ---- */

static char told[4096]; /* a line each */

static void tell(void *arg, enum df_err_class cls, const char *message)
{
    size_t n = strlen(told);
    (void)arg;
    (void)snprintf(told + n, sizeof(told) - n, "%s: %s\n", cls == DF_ERR_NONE ? "works" : "fails",
                   message);
}

static struct df_blob *open_blobs(void)
{
    struct df_blob *b = calloc(1, sizeof(*b));
    assert_non_null(b);
    b->ops = &ops;
    memset(&store, 0, sizeof(store));
    told[0] = '\0';
    return b;
}

static struct df_blob *open_served(bool is_remote)
{
    struct df_blob *b = open_blobs();
    struct df_err err = {0};
    const struct df_blob_service service = {
        .place = "s3://b", .is_remote = is_remote, .tell = tell};
    assert_int_equal(df_blob_serve(b, &service, &err), 0);
    return b;
}

/* Each call of a direction once. */
static int call(struct df_blob *b, bool write, size_t which, struct df_err *err)
{
    DF_BUF struct df_buf out = DF_BUF_INIT(100);
    DF_STRS struct df_strs keys = {0};
    int64_t size = 0;
    int fd = -1;
    if (write)
        return which == 0   ? df_blob_put(b, "k", "x", 1, err)
               : which == 1 ? df_blob_create(b, "k", "x", 1, err)
               : which == 2 ? df_blob_append(b, "k", 0, "x", 1, &size, err)
                            : df_blob_delete(b, "k", err);
    return which == 0   ? df_blob_get(b, "k", &out, err)
           : which == 1 ? df_blob_open_read(b, "k", &fd, NULL, err)
           : which == 2 ? df_blob_size(b, "k", &size, err)
                        : df_blob_list(b, "", &keys, err);
}

enum { CALLS = 4 };

static int read_one(struct df_blob *b)
{
    return call(b, false, 0, NULL);
}

static int write_one(struct df_blob *b)
{
    return call(b, true, 0, NULL);
}

static void assert_health(struct df_blob *b, const char *want)
{
    struct df_err err = {0};
    if (!want) {
        assert_int_equal(df_blob_check(b, &err), 0);
        return;
    }
    assert_int_equal(df_blob_check(b, &err), -1);
    if (!strstr(err.message, want))
        fail_msg("\"%s\" is not in \"%s\"", want, err.message);
}

/* ---- tests ---- */

static void what_the_store_refuses_a_service_is_no_refusal_of_its_caller(void **state)
{
    (void)state;
    const struct df_err refusals[] = {
        failure(DF_ERR_DENIED, ""), failure(DF_ERR_DENIED, "Forbidden"), failure(DF_ERR_USER, "")};
    DF_BLOB struct df_blob *b = open_served(true);
    for (size_t i = 0; i < DF_ARRAY_SIZE(refusals) * CALLS * 2; i++) {
        struct df_err err = {0};
        store.reads = store.writes = refusals[i / (CALLS * 2)];
        assert_int_equal(call(b, i % 2, i / 2 % CALLS, &err), -1);
        assert_int_equal(err.cls, DF_ERR_RETRY);
        assert_string_equal(err.reason, "StorageRefused");
        assert_string_equal(err.message, refusals[0].message);
    }
}

static void a_file_that_may_not_be_opened_is_a_refusal_too(void **state)
{
    (void)state;
    DF_BLOB struct df_blob *b = open_served(false);
    struct df_err err = {0};
    (void)df_fail_errno(&store.reads, EACCES, "open x");
    assert_int_equal(call(b, false, 1, &err), -1);
    assert_int_equal(err.cls, DF_ERR_RETRY);
    assert_int_equal(err.os_errno, 0); /* of it the server would make a 500 */
    assert_string_equal(err.reason, "StorageRefused");
}

static void before_a_service_works_with_it_a_refusal_is_what_it_was(void **state)
{
    (void)state;
    DF_BLOB struct df_blob *b = open_blobs();
    struct df_err err = {0};
    store.reads = failure(DF_ERR_DENIED, "");
    assert_int_equal(call(b, false, 0, &err), -1);
    assert_int_equal(err.cls, DF_ERR_DENIED);
    assert_string_equal(err.reason, "");
    assert_health(b, NULL);
}

static void a_key_that_is_none_stays_the_fault_of_the_caller(void **state)
{
    (void)state;
    DF_BLOB struct df_blob *b = open_served(true);
    struct df_err err = {0};
    assert_int_equal(df_blob_put(b, "../x", "x", 1, &err), -1);
    assert_int_equal(err.cls, DF_ERR_USER);
    assert_health(b, NULL);
}

static void reads_and_writes_are_remembered_apart(void **state)
{
    (void)state;
    DF_BLOB struct df_blob *b = open_served(true);
    store.writes = failure(DF_ERR_RETRY, "");
    assert_int_equal(write_one(b), -1);
    assert_int_equal(read_one(b), 0);
    assert_health(b, "s3://b cannot be written since 2");
    store.reads = failure(DF_ERR_SYSTEM, "");
    assert_int_equal(read_one(b), -1);
    assert_health(b, "s3://b cannot be read and written since 2");
    store.writes = (struct df_err){0};
    assert_int_equal(write_one(b), 0);
    assert_health(b, "s3://b cannot be read since 2");
    assert_health(b, "HTTP 403");
    store.reads = (struct df_err){0};
    assert_int_equal(read_one(b), 0);
    assert_health(b, NULL);
}

static void the_service_is_told_once_that_it_fails_and_once_that_it_works(void **state)
{
    (void)state;
    DF_BLOB struct df_blob *b = open_served(true);
    assert_int_equal(read_one(b), 0);
    assert_string_equal(told, "");
    store.reads = failure(DF_ERR_DENIED, "");
    for (int i = 0; i < 3; i++)
        assert_int_equal(read_one(b), -1);
    store.reads = (struct df_err){0};
    for (int i = 0; i < 3; i++)
        assert_int_equal(read_one(b), 0);
    assert_string_equal(told,
                        "fails: s3://b cannot be read: GET heads/state/x/1 of s3://b: HTTP 403\n"
                        "works: s3://b can be read again after 0 s\n");
}

static void what_tells_of_one_blob_or_of_this_replica_says_nothing_of_the_store(void **state)
{
    (void)state;
    const struct df_err others[] = {failure(DF_ERR_SYSTEM, "BlobDamaged"),
                                    failure(DF_ERR_SYSTEM, "UnknownKey"),
                                    failure(DF_ERR_RETRY, "NotLeader"), failure(DF_ERR_LIMIT, "")};
    DF_BLOB struct df_blob *b = open_served(true);
    for (int failed = 0; failed < 2; failed++) {
        for (size_t i = 0; i < DF_ARRAY_SIZE(others); i++) {
            store.reads = others[i];
            assert_int_equal(read_one(b), -1);
            assert_health(b, failed ? "cannot be read" : NULL);
        }
        store.reads = failure(DF_ERR_RETRY, "");
        assert_int_equal(read_one(b), -1);
    }
}

static void what_is_not_there_and_what_another_was_faster_with_is_an_answer(void **state)
{
    (void)state;
    const enum df_err_class classes[] = {DF_ERR_NOT_FOUND, DF_ERR_CONFLICT};
    DF_BLOB struct df_blob *b = open_served(true);
    for (size_t i = 0; i < DF_ARRAY_SIZE(classes); i++) {
        store.reads = failure(DF_ERR_RETRY, "");
        assert_int_equal(read_one(b), -1);
        assert_health(b, "cannot be read");
        store.reads = failure(classes[i], "");
        assert_int_equal(read_one(b), -1);
        assert_health(b, NULL);
    }
}

static void a_disk_that_is_full_cannot_be_written(void **state)
{
    (void)state;
    DF_BLOB struct df_blob *b = open_served(false);
    (void)df_fail_errno(&store.writes, ENOSPC, "write x");
    assert_int_equal(write_one(b), -1);
    assert_health(b, "cannot be written");
}

static int refuse(void *arg, const struct df_blob_info *info, struct df_err *err)
{
    (void)arg, (void)info;
    return df_fail(err, DF_ERR_DENIED, "not this one");
}

static void a_visitor_that_ends_a_walk_says_nothing_of_the_store(void **state)
{
    (void)state;
    DF_BLOB struct df_blob *b = open_served(true);
    struct df_err err = {0};
    assert_int_equal(df_blob_each(b, "", refuse, NULL, &err), -1);
    assert_int_equal(err.cls, DF_ERR_DENIED);
    assert_string_equal(err.message, "not this one");
    assert_health(b, NULL);
    store.reads = failure(DF_ERR_DENIED, "");
    assert_int_equal(df_blob_each(b, "", refuse, NULL, &err), -1);
    assert_string_equal(err.reason, "StorageRefused");
    assert_health(b, "cannot be read");
}

static void a_removal_of_nothing_does_not_say_that_it_can_be_written(void **state)
{
    (void)state;
    struct df_err err = {0};
    DF_BLOB struct df_blob *b = open_served(true);
    store.writes = failure(DF_ERR_RETRY, "");
    assert_int_equal(write_one(b), -1);
    store.writes = (struct df_err){0};
    store.is_empty = true;
    assert_int_equal(df_blob_delete(b, "k", &err), 0);
    assert_health(b, "cannot be written");
    store.is_empty = false;
    assert_int_equal(df_blob_delete(b, "k", &err), 0);
    assert_health(b, NULL);
}

static void a_removal_that_fails_in_its_look_does_not_say_that_it_cannot_be_written(void **state)
{
    (void)state;
    struct df_err err = {0};
    enum df_blob_removal removal;
    const struct df_blob_condition any = {.max = 1};
    DF_BLOB struct df_blob *b = open_served(true);
    store.reads = failure(DF_ERR_RETRY, "");
    assert_int_equal(df_blob_delete_if(b, "k", &any, &removal, &err), -1);
    assert_health(b, "cannot be read since");
    store.reads = (struct df_err){0};
    store.writes = failure(DF_ERR_RETRY, "");
    assert_int_equal(df_blob_delete_if(b, "k", &any, &removal, &err), -1);
    assert_health(b, "cannot be read and written since");
}

static void a_probe_finds_what_nobody_asked_for(void **state)
{
    (void)state;
    DF_BLOB struct df_blob *b = open_served(true);
    store.reads = failure(DF_ERR_RETRY, "");
    df_blob_probe(b);
    assert_health(b, "cannot be read");
    store.reads = (struct df_err){0};
    df_blob_probe(b);
    assert_health(b, NULL);
    assert_int_equal(store.put + store.removed, 0);
}

static void a_probe_writes_only_if_writes_failed(void **state)
{
    (void)state;
    DF_BLOB struct df_blob *b = open_served(true);
    store.writes = failure(DF_ERR_RETRY, "");
    assert_int_equal(write_one(b), -1);
    df_blob_probe(b);
    assert_health(b, "cannot be written");
    assert_int_equal(store.removed, 0); /* nothing was put */
    store.writes = (struct df_err){0};
    df_blob_probe(b);
    assert_health(b, NULL);
    assert_int_equal(store.removed, 1);
    df_blob_probe(b);
    assert_int_equal(store.removed, 1);
}

static void a_probe_asks_a_store_on_this_machine_only_after_a_failure(void **state)
{
    (void)state;
    DF_BLOB struct df_blob *b = open_served(false);
    df_blob_probe(b);
    assert_int_equal(store.read + store.put, 0);
    store.reads = failure(DF_ERR_SYSTEM, "");
    assert_int_equal(read_one(b), -1);
    store.reads = (struct df_err){0};
    df_blob_probe(b);
    assert_health(b, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_store_refuses_a_service_is_no_refusal_of_its_caller),
        cmocka_unit_test(a_file_that_may_not_be_opened_is_a_refusal_too),
        cmocka_unit_test(before_a_service_works_with_it_a_refusal_is_what_it_was),
        cmocka_unit_test(a_key_that_is_none_stays_the_fault_of_the_caller),
        cmocka_unit_test(reads_and_writes_are_remembered_apart),
        cmocka_unit_test(the_service_is_told_once_that_it_fails_and_once_that_it_works),
        cmocka_unit_test(what_tells_of_one_blob_or_of_this_replica_says_nothing_of_the_store),
        cmocka_unit_test(what_is_not_there_and_what_another_was_faster_with_is_an_answer),
        cmocka_unit_test(a_disk_that_is_full_cannot_be_written),
        cmocka_unit_test(a_visitor_that_ends_a_walk_says_nothing_of_the_store),
        cmocka_unit_test(a_removal_of_nothing_does_not_say_that_it_can_be_written),
        cmocka_unit_test(a_removal_that_fails_in_its_look_does_not_say_that_it_cannot_be_written),
        cmocka_unit_test(a_probe_finds_what_nobody_asked_for),
        cmocka_unit_test(a_probe_writes_only_if_writes_failed),
        cmocka_unit_test(a_probe_asks_a_store_on_this_machine_only_after_a_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
