/* What a service says of a bucket that it cannot use: which key of the configuration mends it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/blob/s3.h"
#include "common/http/http.h"
#include "tests/unit/answering_server.h"
#include "tests/unit/scratch.h"

#define FAULT(code, more)                                                                          \
    "<?xml version=\"1.0\"?><Error><Code>" code "</Code><Message>What it means.</Message>" more    \
    "</Error>"
#define SECRET "hunter2/secret+key"

static struct df_s3_options options_for(const char *endpoint)
{
    return (struct df_s3_options){.bucket = "blobs",
                                  .prefix = "prod",
                                  .region = "us-east-1",
                                  .endpoint = endpoint,
                                  .names_keys = true};
}

static struct df_err removal_fails(const struct df_s3_options *o)
{
    struct df_bucket *b = NULL;
    struct df_err err = {0};
    if (df_s3_bucket_new(o, &b, &err) == 0) {
        assert_int_equal(b->ops->remove(b, "heads/state/x", NULL, &err), -1);
        b->ops->close(b);
    }
    return err;
}

static struct df_err removal_answered(unsigned status, const char *body)
{
    struct answering_server server = {0};
    answering_open(&server);
    will_answer(&server, status, body);
    struct df_s3_options o = options_for(server.url);
    o.path_style = true;
    struct df_err err = removal_fails(&o);
    answering_close(&server);
    return err;
}

static void assert_says(const struct df_err *err, const char *words)
{
    if (!strstr(err->message, words) || strstr(err->message, SECRET))
        fail_msg("no \"%s\" in: %s", words, err->message);
}

static char *keys_of_environment[] = {(char[]){"AWS_ACCESS_KEY_ID=AKIDTEST"},
                                      (char[]){"AWS_SECRET_ACCESS_KEY=" SECRET}, NULL};

static void an_answer_is_told_with_the_way_out(void **state)
{
    static const struct {
        unsigned status;
        const char *body, *words;
        enum df_err_class cls;
    } rows[] = {
        {404, FAULT("NoSuchBucket", ""), "; name a bucket that exists in blobs.location",
         DF_ERR_USER},
        {400, FAULT("AuthorizationHeaderMalformed", "<Region>eu-north-1</Region>"),
         "; set blobs.s3.region to eu-north-1", DF_ERR_USER},
        {301, FAULT("PermanentRedirect", ""), "; set blobs.s3.region to eu-west-3", DF_ERR_USER},
        {400, FAULT("AuthorizationHeaderMalformed", ""),
         "; set blobs.s3.region, which is us-east-1, to that of the bucket", DF_ERR_USER},
        {403, FAULT("AccessDenied", ""),
         "; the keys need s3:GetObject, s3:PutObject and s3:DeleteObject on its objects, and "
         "s3:ListBucket on the bucket",
         DF_ERR_DENIED},
    };
    (void)state;
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        struct df_err err = removal_answered(rows[i].status, rows[i].body);
        assert_int_equal(err.cls, rows[i].cls);
        assert_says(&err, rows[i].words);
        assert_true(!strstr(rows[i].body, "NoSuchBucket") ==
                    !strstr(err.message, "a bucket that exists"));
    }
}

static void keys_that_are_refused_are_told_by_where_they_come_from(void **state)
{
    static const char *const codes[] = {FAULT("SignatureDoesNotMatch", ""),
                                        FAULT("InvalidAccessKeyId", ""), FAULT("AccessDenied", "")};
    DF_FREE char *file = df_fs_join(*state, "credentials");
    DF_FREE char *words = df_strf("; the keys come from the profile \"prod\" of %s", file);
    static const char text[] =
        "[prod]\naws_access_key_id = AKID\naws_secret_access_key = " SECRET "\n";
    assert_int_equal(df_fs_replace(file, text, strlen(text), 0600, NULL), 0);
    DF_FREE char *variable = df_strf("AWS_SHARED_CREDENTIALS_FILE=%s", file);
    char profile[] = "AWS_PROFILE=prod", *keys_of_profile[] = {variable, profile, NULL};
    for (size_t i = 0; i < DF_ARRAY_SIZE(codes); i++) {
        environ = keys_of_environment;
        struct df_err err = removal_answered(403, codes[i]);
        assert_says(&err, "; the keys come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY of the "
                          "environment");
        environ = keys_of_profile;
        err = removal_answered(403, codes[i]);
        assert_says(&err, words);
    }
    environ = keys_of_environment;
}

static void an_endpoint_that_is_an_address_needs_the_path_style(void **state)
{
    static const char *const endpoints[] = {"http://127.0.0.1:9000", "https://[::1]:9000"};
    (void)state;
    for (size_t i = 0; i < DF_ARRAY_SIZE(endpoints); i++) {
        const struct df_s3_options o = options_for(endpoints[i]);
        struct df_err err = removal_fails(&o);
        assert_int_equal(err.cls, DF_ERR_USER);
        assert_says(&err, "blobs.s3.pathStyle: must be true, because the host of ");
        assert_says(&err, endpoints[i]);
    }
}

static void a_host_of_the_bucket_that_is_not_there_may_want_the_path_style(void **state)
{
    struct df_s3_options o = options_for("http://minio.invalid:9000");
    (void)state;
    struct df_err err = removal_fails(&o);
    assert_says(&err, "blobs.minio.invalid");
    assert_says(&err, "set blobs.s3.pathStyle: true");
    o.path_style = true;
    err = removal_fails(&o);
    assert_null(strstr(err.message, "pathStyle"));
}

static void a_wrong_option_is_told_by_its_key(void **state)
{
    struct df_s3_options o = options_for("minio:9000");
    (void)state;
    struct df_err err = removal_fails(&o);
    assert_says(&err, "blobs.s3.endpoint: \"minio:9000\" is not an endpoint, which begins with "
                      "https://");
    o = options_for(NULL);
    o.region = "eu central";
    err = removal_fails(&o);
    assert_says(&err, "blobs.s3.region: \"eu central\" is not a region");
    o = options_for(NULL);
    o.bucket = "Upper";
    err = removal_fails(&o);
    assert_says(&err, "blobs.location: \"Upper\" is not the name of a bucket");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_is_told_with_the_way_out),
        scratch_test(keys_that_are_refused_are_told_by_where_they_come_from),
        cmocka_unit_test(an_endpoint_that_is_an_address_needs_the_path_style),
        cmocka_unit_test(a_host_of_the_bucket_that_is_not_there_may_want_the_path_style),
        cmocka_unit_test(a_wrong_option_is_told_by_its_key),
    };
    environ = keys_of_environment;
    if (df_http_global_init(NULL) < 0)
        return 1;
    return cmocka_run_group_tests_name("s3", tests, NULL, NULL);
}
