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

/* ---- what a 404 means ---- */

static struct df_bucket *bucket_at(struct answering_server *server)
{
    struct df_bucket *b = NULL;
    answering_open(server);
    const struct df_gcs_options o = {.bucket = "acme", .endpoint = server->url, .anonymous = true};
    assert_int_equal(df_gcs_bucket_new(&o, &b, NULL), 0);
    return b;
}

static void a_download_that_is_not_there_is_looked_for(void **state)
{
    static const struct {
        unsigned status; /* of the list */
        const char *body;
        enum df_err_class cls;
    } rows[] = {{200, "{}", DF_ERR_NOT_FOUND},
                {200, "{\"items\":[{\"name\":\"heads/xy\"}]}", DF_ERR_NOT_FOUND},
                {200, "{\"items\":[{\"name\":\"heads/x\"}]}", DF_ERR_RETRY},
                {404, "A page of somebody", DF_ERR_RETRY},
                {404, FAULT, DF_ERR_USER}}; /* the bucket is gone */
    (void)state;
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        struct answering_server server = {0};
        struct df_bucket *b = bucket_at(&server);
        struct df_bucket_version version;
        struct df_err err = {0};
        DF_BUF struct df_buf out = DF_BUF_INIT(DF_KIB);
        will_answer(&server, 404, "No such object");
        will_answer(&server, rows[i].status, rows[i].body);
        assert_int_equal(b->ops->get(b, "heads/x", &out, &version, &err), -1);
        assert_int_equal(err.cls, rows[i].cls);
        assert_int_equal(server.n_asked, 2);
        assert_string_equal(server.asked[0].query, "alt=media");
        assert_string_equal(server.asked[1].query,
                            "fields=items(name)&maxResults=1&prefix=heads/x");
        b->ops->close(b);
        answering_close(&server);
    }
}

static void so_is_a_version(void **state)
{
    struct answering_server server = {0};
    struct df_bucket *b = bucket_at(&server);
    struct df_err err = {0};
    DF_BUF struct df_buf out = DF_BUF_INIT(DF_KIB);
    (void)state;
    will_answer(&server, 404, "No such object");
    will_answer(&server, 404, FAULT);
    will_answer(&server, 200, "{}");
    assert_int_equal(b->ops->get_kept(b, "heads/x", "17", 0, &out, &err), -1);
    assert_int_equal(err.cls, DF_ERR_NOT_FOUND);
    assert_string_equal(server.asked[1].query, "fields=generation&generation=17");
    b->ops->close(b);
    answering_close(&server);
}

static int no_version(void *arg, const struct df_bucket_kept *kept, struct df_err *err)
{
    (void)arg, (void)kept, (void)err;
    fail_msg("there is none");
    return -1;
}

static void a_list_of_versions_needs_a_bucket(void **state)
{
    const struct df_bucket_kept_sink sink = {no_version, NULL};
    struct answering_server server = {0};
    struct df_bucket *b = bucket_at(&server);
    struct df_err err = {0};
    (void)state;
    will_answer(&server, 404, FAULT);
    assert_int_equal(b->ops->list_kept(b, "heads/x", 10, &sink, &err), -1);
    assert_int_equal(err.cls, DF_ERR_USER);
    b->ops->close(b);
    answering_close(&server);
}

/* ---- options ---- */

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
        cmocka_unit_test(a_download_that_is_not_there_is_looked_for),
        cmocka_unit_test(so_is_a_version),
        cmocka_unit_test(a_list_of_versions_needs_a_bucket),
        cmocka_unit_test(a_wrong_option_is_told_by_its_key),
    };
    if (df_http_global_init(NULL) < 0)
        return 1;
    return cmocka_run_group_tests_name("gcs", tests, NULL, NULL);
}
