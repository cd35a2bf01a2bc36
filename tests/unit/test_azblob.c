/* What the answers of Azure Blob Storage mean that Azurite does not give. Those that it gives are
 * in tests/tools/blob_bucket.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "common/blob/azblob.h"
#include "common/http/http.h"
#include "tests/unit/answering_server.h"

#define FAULT(code)                                                                                \
    "<?xml version=\"1.0\"?><Error><Code>" code "</Code><Message>What it means.</Message></Error>"

/* Asks for the removal of a blob, once. */
static struct df_err removal_answered(unsigned status, const char *body)
{
    struct answering_server server = {0};
    struct df_bucket *b = NULL;
    struct df_err err = {0};
    answering_open(&server);
    will_answer(&server, status, body);
    const struct df_azblob_options o = {.account = "acme",
                                        .place = "blobs/prod",
                                        .endpoint = server.url,
                                        .key = "a2V5",
                                        .names_keys = true};
    assert_int_equal(df_azblob_bucket_new(&o, &b, NULL), 0);
    assert_int_equal(b->ops->remove(b, "heads/state/x", NULL, &err), -1);
    assert_int_equal(server.n_asked, 1);
    b->ops->close(b);
    answering_close(&server);
    return err;
}

static void a_conflict_is_sorted_by_its_code(void **state)
{
    static const struct {
        const char *code, *body;
        enum df_err_class cls;
    } rows[] = {
#define ROW(code, cls) {code, FAULT(code), cls}
        ROW("ContainerBeingDeleted", DF_ERR_USER),
        ROW("ContainerDisabled", DF_ERR_USER),
        ROW("InvalidBlobType", DF_ERR_USER),
        ROW("ResourceTypeMismatch", DF_ERR_USER),
        ROW("BlobImmutableDueToPolicy", DF_ERR_DENIED),
        ROW("BlobAlreadyExists", DF_ERR_CONFLICT),
        ROW("PendingCopyOperation", DF_ERR_RETRY),
        ROW("BlobBeingRehydrated", DF_ERR_RETRY),
        ROW("AccountBeingCreated", DF_ERR_RETRY),
        ROW("NotKnownYet", DF_ERR_RETRY),
#undef ROW
        {"HTTP 409", "<html>a proxy's page</html>", DF_ERR_RETRY},
        {"HTTP 409", "", DF_ERR_RETRY},
    };
    (void)state;
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        const struct df_err err = removal_answered(409, rows[i].body);
        if (err.cls != rows[i].cls || !strstr(err.message, rows[i].code) ||
            !strstr(err.message, "azblob://acme/blobs/prod"))
            fail_msg("%s: class %d: %s", rows[i].code, (int)err.cls, err.message);
    }
}

static void an_answer_is_told_with_the_way_out(void **state)
{
    static const struct {
        unsigned status;
        const char *body, *words;
    } rows[] = {
        {404, FAULT("ContainerNotFound"), "; name a container that exists in blobs.location"},
        {403, FAULT("AuthorizationPermissionMismatch"),
         "; the identity needs the role Storage Blob Data Contributor on the container"},
        {403, FAULT("AuthenticationFailed"), "; correct the key, signature or identity of the"},
    };
    (void)state;
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        struct df_err err = removal_answered(rows[i].status, rows[i].body);
        if (!strstr(err.message, rows[i].words))
            fail_msg("%s", err.message);
    }
}

/* ---- what is sent again ---- */

static struct df_bucket *bucket_at(struct answering_server *server)
{
    struct df_bucket *b = NULL;
    answering_open(server);
    const struct df_azblob_options o = {.account = "acme",
                                        .place = "blobs",
                                        .endpoint = server->url,
                                        .key = "a2V5",
                                        .makes_container = true};
    assert_int_equal(df_azblob_bucket_new(&o, &b, NULL), 0);
    return b;
}

static int64_t late_us(void)
{
    return INT64_C(1795000000000000);
}

/* The server's answers have the real time. */
static void a_refusal_with_another_time_is_answered_once_with_that_time(void **state)
{
    static const struct df_clock late = {.mono_us = late_us, .real_us = late_us};
    struct answering_server server = {0};
    struct df_bucket *b = bucket_at(&server);
    (void)state;
    will_answer(&server, 403, FAULT("AuthenticationFailed"));
    df_clock_install(&late);
    assert_int_equal(b->ops->remove(b, "heads/x", NULL, NULL), -1);
    assert_int_equal(server.n_asked, 2);
    assert_int_equal(b->ops->remove(b, "heads/x", NULL, NULL), -1);
    assert_int_equal(server.n_asked, 3); /* the time is known by now */
    df_clock_install(NULL);
    b->ops->close(b);
    answering_close(&server);
}

static void a_container_that_is_not_there_is_made_once(void **state)
{
    struct answering_server server = {0};
    struct df_bucket *b = bucket_at(&server);
    struct df_err err = {0};
    (void)state;
    will_answer(&server, 404, FAULT("ContainerNotFound"));
    will_answer(&server, 201, "");
    will_answer(&server, 404, FAULT("ContainerNotFound"));
    assert_int_equal(b->ops->put(b, "x", "x", 1, NULL, &err), -1);
    assert_int_equal(err.cls, DF_ERR_USER);
    assert_int_equal(server.n_asked, 3);
    assert_string_equal(server.asked[0].url, "/blobs/x");
    assert_string_equal(server.asked[1].url, "/blobs");
    assert_string_equal(server.asked[1].query, "restype=container");
    assert_string_equal(server.asked[2].url, "/blobs/x");
    b->ops->close(b);
    answering_close(&server);
}

static void a_container_that_may_not_be_made_is_what_failed(void **state)
{
    struct answering_server server = {0};
    struct df_bucket *b = bucket_at(&server);
    struct df_err err = {0};
    (void)state;
    will_answer(&server, 404, FAULT("ContainerNotFound"));
    will_answer(&server, 403, FAULT("AuthorizationFailure"));
    assert_int_equal(b->ops->put(b, "x", "x", 1, NULL, &err), -1);
    assert_int_equal(err.cls, DF_ERR_DENIED);
    assert_non_null(strstr(err.message, "PUT the container of azblob://acme/blobs: HTTP 403"));
    b->ops->close(b);
    answering_close(&server);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_conflict_is_sorted_by_its_code),
        cmocka_unit_test(an_answer_is_told_with_the_way_out),
        cmocka_unit_test(a_refusal_with_another_time_is_answered_once_with_that_time),
        cmocka_unit_test(a_container_that_is_not_there_is_made_once),
        cmocka_unit_test(a_container_that_may_not_be_made_is_what_failed),
    };
    if (df_http_global_init(NULL) < 0)
        return 1;
    return cmocka_run_group_tests_name("azblob", tests, NULL, NULL);
}
