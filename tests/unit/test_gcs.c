/* What a service says of a bucket of Google that it cannot use. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/blob/gcs.h"
#include "common/http/http.h"
#include "tests/unit/answering_server.h"

#define FAULT "{\"error\":{\"code\":0,\"message\":\"What it means.\"}}"

static struct df_err put_answered(unsigned status, bool names_keys)
{
    const struct df_bucket_version none = {""};
    struct answering_server server = {0};
    struct df_bucket *b = NULL;
    struct df_err err = {0};
    answering_open(&server);
    will_answer(&server, status, FAULT);
    const struct df_gcs_options o = {
        .bucket = "acme", .endpoint = server.url, .anonymous = true, .names_keys = names_keys};
    assert_int_equal(df_gcs_bucket_new(&o, &b, NULL), 0);
    assert_int_equal(b->ops->put(b, "probe/x", "x", 1, &none, &err), -1);
    b->ops->close(b);
    answering_close(&server);
    return err;
}

static void an_answer_is_told_with_the_way_out(void **state)
{
    static const struct {
        unsigned status;
        const char *words;
        enum df_err_class cls;
    } rows[] = {
        {404, "; name a bucket that exists in blobs.location", DF_ERR_USER},
        {401, "; the credentials of the environment (GOOGLE_APPLICATION_CREDENTIALS",
         DF_ERR_DENIED},
        {403, "; the account needs the role roles/storage.objectUser on the bucket", DF_ERR_DENIED},
    };
    (void)state;
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        struct df_err err = put_answered(rows[i].status, true);
        assert_int_equal(err.cls, rows[i].cls);
        if (!strstr(err.message, rows[i].words))
            fail_msg("%s", err.message);
        err = put_answered(rows[i].status, false); /* of a bucket that no key names */
        assert_int_equal(err.cls, rows[i].cls);
        assert_null(strchr(err.message, ';'));
    }
}

static void a_wrong_option_is_told_by_its_key(void **state)
{
    struct df_bucket *b = NULL;
    struct df_err err = {0};
    struct df_gcs_options o = {
        .bucket = "acme", .endpoint = "gcs:4443", .anonymous = true, .names_keys = true};
    (void)state;
    assert_int_equal(df_gcs_bucket_new(&o, &b, &err), -1);
    assert_non_null(strstr(err.message, "blobs.gs.endpoint: \"gcs:4443\" is not an endpoint"));
    o.bucket = "Acme";
    assert_int_equal(df_gcs_bucket_new(&o, &b, &err), -1);
    assert_non_null(strstr(err.message, "blobs.location: \"Acme\" is not the name of a bucket"));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_is_told_with_the_way_out),
        cmocka_unit_test(a_wrong_option_is_told_by_its_key),
    };
    if (df_http_global_init(NULL) < 0)
        return 1;
    return cmocka_run_group_tests_name("gcs", tests, NULL, NULL);
}
