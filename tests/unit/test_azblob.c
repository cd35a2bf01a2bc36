/* What the answers of Azure Blob Storage mean that Azurite does not give. Those that it gives are in
 * tests/tools/blob_bucket.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

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

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_conflict_is_sorted_by_its_code),
        cmocka_unit_test(an_answer_is_told_with_the_way_out),
    };
    if (df_http_global_init(NULL) < 0)
        return 1;
    return cmocka_run_group_tests_name("azblob", tests, NULL, NULL);
}
