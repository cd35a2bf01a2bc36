#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/crypto/crypto.h"
#include "common/crypto/jwt.h"
#include "common/terrakube/token.h"

#define SECRET "dGVzdC1vbmx5LWludGVybmFsLXNlY3JldC0wMTIzNDU2Nzg5YWI="
#define SECRET_BYTES "test-only-internal-secret-0123456789ab"
#define NOW_S INT64_C(1795237862)
#define US INT64_C(1000000)

/* Of a ~/.terraformrc that the executor of 2.28.0 wrote. */
#define RECORDED                                                                                   \
    "eyJ0eXAiOiJKV1QiLCJhbGciOiJIUzI1NiJ9."                                                        \
    "eyJpc3MiOiJUZXJyYWt1YmVJbnRlcm5hbCIsInN1YiI6IlRlcnJha3ViZUludGVybmFsIChUT0tFTikiLCJhdWQiOi"   \
    "JUZXJyYWt1YmVJbnRlcm5hbCIsImVtYWlsIjoibm8tcmVwbHlAdGVycmFrdWJlLmlvIiwiZW1haWxfdmVyaWZpZWQi"   \
    "OnRydWUsIm5hbWUiOiJUZXJyYWt1YmVJbnRlcm5hbCBDbGllbnQiLCJpYXQiOjE3OTUyMzc4NjIsImV4cCI6MTc5Nz"   \
    "gyOTg2Mn0.flQHlee-hns1ur9f4F1oI-72pKVFBHzCQ_4hi8SeOHU"

static void a_token_is_the_one_that_the_java_executor_was_seen_to_make(void **state)
{
    (void)state;
    DF_BUF struct df_buf token = DF_BUF_INIT(DF_LIMIT_TOKEN);
    assert_int_equal(
        df_terrakube_token_make(SECRET, NULL, NOW_S * US, INT64_C(30) * 86400, &token, NULL), 0);
    assert_string_equal(df_buf_str(&token), RECORDED);
}

static void a_token_names_its_workspace_and_lives_as_long_as_it_is_asked_to(void **state)
{
    (void)state;
    DF_BUF struct df_buf token = DF_BUF_INIT(DF_LIMIT_TOKEN);
    DF_JSON cJSON *claims = NULL;
    assert_int_equal(df_terrakube_token_make(SECRET, "f3a0ffe5", NOW_S * US, 60, &token, NULL), 0);
    assert_int_equal(df_jwt_peek(df_buf_str(&token), &claims, NULL), 0);
    assert_string_equal(df_json_str(claims, "workspaceId"), "f3a0ffe5");
    assert_int_equal(df_json_int(claims, "exp", 0), NOW_S + 60);
}

static void a_secret_may_have_either_alphabet_padding_or_none(void **state)
{
    (void)state;
    static const char *const same[] = {
        "-_-_-_-_-_-_-_-_-_-_-_-_-_-_-_-_-_-_-_-_-_8",
        "+/+/+/+/+/+/+/+/+/+/+/+/+/+/+/+/+/+/+/+/+/8=",
        "+/+/+/+/+/+/+/+/+/+/+/+/+/+/+/+/+/+/+/+/+/8=\n",
        "-_-_-_-_-_-_-_-_-_-_-_-_-_-_-_-_-_-_-_-_-_-", /* its last two bits are of no byte */
    };
    DF_BUF struct df_buf first = DF_BUF_INIT(DF_LIMIT_TOKEN);
    assert_int_equal(df_terrakube_token_make(same[0], NULL, NOW_S * US, 60, &first, NULL), 0);
    for (size_t i = 1; i < DF_ARRAY_SIZE(same); i++) {
        DF_BUF struct df_buf token = DF_BUF_INIT(DF_LIMIT_TOKEN);
        assert_int_equal(df_terrakube_token_make(same[i], NULL, NOW_S * US, 60, &token, NULL), 0);
        assert_string_equal(df_buf_str(&token), df_buf_str(&first));
    }
}

static void assert_no_secret(const char *secret, const char *said)
{
    DF_BUF struct df_buf token = DF_BUF_INIT(DF_LIMIT_TOKEN);
    struct df_err err = {0};
    assert_int_equal(df_terrakube_token_make(secret, NULL, NOW_S * US, 60, &token, &err), -1);
    assert_int_equal(err.cls, DF_ERR_USER);
    assert_non_null(strstr(err.message, "InternalSecret"));
    assert_non_null(strstr(err.message, said));
    assert_null(strstr(err.message, secret));
}

static void a_secret_that_is_short_or_no_base64_is_refused_without_being_shown(void **state)
{
    (void)state;
    assert_no_secret("c2hvcnQ=", "32");
    assert_no_secret("not base64 at all, but long enough for a secret!", "not base64");
}

/* Header and payload of a token. The caller frees. */
static char *unsigned_token(const char *claims, const char *alg)
{
    DF_BUF struct df_buf out = DF_BUF_INIT(DF_LIMIT_TOKEN);
    DF_FREE char *header = df_strf("{\"alg\":\"%s\"}", alg);
    assert_non_null(header);
    assert_int_equal(df_base64_encode(header, strlen(header), true, &out, NULL), 0);
    (void)df_buf_addc(&out, '.');
    assert_int_equal(df_base64_encode(claims, strlen(claims), true, &out, NULL), 0);
    return df_buf_take(&out);
}

#define OF_API                                                                                     \
    "{\"iss\":\"TERRAKUBE_INTERNAL\",\"aud\":[\"TERRAKUBE_INTERNAL\"],\"exp\":1795237872}"

/* Signed elsewhere, over the parts above, with a secret of 64 bytes. */
static const char long_secret[] =
    "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDEyMw==";
static const struct {
    const char *alg, *signature;
} signed_elsewhere[] = {
    {"HS256", "X0t5f9VBOfmkBJsInXSB6xwXZJFbWDKWP87mEXZXdAM"},
    {"HS384", "-7XYkFeSrbvXvLiGDL8IYkpVq2rcqrBSZMO6nbypJVT3MoLPvRVmaustMrQKuTfb"},
    {"HS512",
     "GmDUkpy8bVC0_kFSFDIhdWy7ziAFPf60lfu2oaBP73au_j0xkiSZHIqULYUWLUvAduHZcQkSsri_Fxux2LeIBA"},
};

static void a_token_of_the_api_is_taken_with_each_of_the_three_digests(void **state)
{
    (void)state;
    for (size_t i = 0; i < DF_ARRAY_SIZE(signed_elsewhere); i++) {
        DF_FREE char *part = unsigned_token(OF_API, signed_elsewhere[i].alg);
        DF_FREE char *token = df_strf("%s.%s", part, signed_elsewhere[i].signature);
        struct df_err err = {0};
        if (df_terrakube_token_check(long_secret, token, NOW_S * US, &err) < 0)
            fail_msg("%s: %s", signed_elsewhere[i].alg, err.message);
        assert_int_equal(df_terrakube_token_check(SECRET, token, NOW_S * US, &err), -1);
        assert_string_equal(err.reason, "TokenSignature");
    }
}

static void assert_refused(const char *alg, const char *claims, int64_t now_s, const char *reason)
{
    static const char key[] = SECRET_BYTES;
    DF_FREE char *part = unsigned_token(claims, alg);
    unsigned char mac[DF_SHA256_LEN];
    DF_BUF struct df_buf signature = DF_BUF_INIT(DF_KIB);
    assert_int_equal(df_hmac_sha256(key, sizeof(key) - 1, part, strlen(part), mac, NULL), 0);
    assert_int_equal(df_base64_encode(mac, sizeof(mac), true, &signature, NULL), 0);
    DF_FREE char *token = df_strf("%s.%s", part, df_buf_str(&signature));
    struct df_err err = {0};
    int result = df_terrakube_token_check(SECRET, token, now_s * US, &err);
    if (!reason) {
        assert_int_equal(result, 0);
        return;
    }
    assert_int_equal(result, -1);
    assert_int_equal(err.cls, DF_ERR_DENIED);
    assert_string_equal(err.reason, reason);
}

static void a_token_of_another_algorithm_issuer_or_time_is_refused(void **state)
{
    (void)state;
    assert_refused("HS256", OF_API, NOW_S, NULL);
    assert_refused("HS256", OF_API, NOW_S + 10 + DF_JWT_LEEWAY_S, "TokenExpired");
    assert_refused("none", OF_API, NOW_S, "TokenAlgorithm");
    assert_refused("RS256", OF_API, NOW_S, "TokenAlgorithm");
    assert_refused("HS512", OF_API, NOW_S, "TokenSignature");
    assert_refused("HS256",
                   "{\"iss\":\"TerrakubeInternal\",\"aud\":\"TERRAKUBE_INTERNAL\","
                   "\"exp\":1795237872}",
                   NOW_S, "TokenIssuer");
    assert_refused("HS256", "{\"iss\":\"TERRAKUBE_INTERNAL\",\"exp\":1795237872}", NOW_S,
                   "TokenAudience");
    assert_refused("HS256", "{\"iss\":\"TERRAKUBE_INTERNAL\",\"aud\":[\"TERRAKUBE_INTERNAL\"]}",
                   NOW_S, "TokenMalformed");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_is_the_one_that_the_java_executor_was_seen_to_make),
        cmocka_unit_test(a_token_names_its_workspace_and_lives_as_long_as_it_is_asked_to),
        cmocka_unit_test(a_secret_may_have_either_alphabet_padding_or_none),
        cmocka_unit_test(a_secret_that_is_short_or_no_base64_is_refused_without_being_shown),
        cmocka_unit_test(a_token_of_the_api_is_taken_with_each_of_the_three_digests),
        cmocka_unit_test(a_token_of_another_algorithm_issuer_or_time_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
