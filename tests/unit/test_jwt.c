#include "tests/unit/jwt_maker.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "common/crypto/jwks.h"

#define ISSUER "https://kubernetes.default.svc"
#define AUDIENCE "dayfly/4b1d"
#define NOW_S 1790000000
#define GOOD                                                                                       \
    "{'iss':'" ISSUER "','aud':['" AUDIENCE "'],'exp':1790000600,'iat':1789999990,"                \
    "'nbf':1789999990,'sub':'somebody'}"

static struct signer rsa = {.kid = "r1", .alg = "RS256"};
static struct signer rsa_next = {.kid = "r2", .alg = "RS256"};
static struct signer ec = {.kid = "e1", .alg = "ES256"};
static struct signer p384 = {.kid = "e384", .alg = "ES256"};
static struct signer short_rsa = {.kid = "short", .alg = "RS256"};
static struct signer ed = {.kid = "d1", .alg = "EdDSA"};
static struct df_jwk_set *all;

static const struct df_jwt_expect expect = {ISSUER, AUDIENCE, NOW_S *(int64_t)1000000};

static int make_keys(void **state)
{
    (void)state;
    rsa.key = EVP_PKEY_Q_keygen(NULL, NULL, "RSA", (size_t)2048);
    rsa_next.key = EVP_PKEY_Q_keygen(NULL, NULL, "RSA", (size_t)2048);
    short_rsa.key = EVP_PKEY_Q_keygen(NULL, NULL, "RSA", (size_t)1024);
    ec.key = EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-256");
    p384.key = EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-384");
    ed.key = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
    const struct signer *const signers[] = {&rsa, &ec, &p384, &short_rsa, &ed};
    DF_FREE char *text = set_of(signers, DF_ARRAY_SIZE(signers));
    return df_jwk_set_parse(text, strlen(text), &all, NULL);
}

static int free_keys(void **state)
{
    (void)state;
    EVP_PKEY_free(rsa.key);
    EVP_PKEY_free(rsa_next.key);
    EVP_PKEY_free(short_rsa.key);
    EVP_PKEY_free(ec.key);
    EVP_PKEY_free(ed.key);
    EVP_PKEY_free(p384.key);
    df_jwk_set_free(all);
    return 0;
}

static void assert_refused(const char *token, const char *reason)
{
    struct df_err err = {0};
    cJSON *claims = NULL;
    assert_int_equal(df_jwt_verify(token, all, &expect, &claims, &err), -1);
    if (strcmp(err.reason, reason) != 0)
        fail_msg("%s instead of %s: %s", err.reason, reason, err.message);
    assert_int_equal(err.cls, DF_ERR_DENIED);
    assert_null(claims);
    assert_true(strlen(token) < 16 || !strstr(err.message, token));
}

static void assert_taken(const char *token)
{
    struct df_err err = {0};
    DF_JSON cJSON *claims = NULL;
    if (df_jwt_verify(token, all, &expect, &claims, &err) < 0)
        fail_msg("%s", err.message);
    assert_string_equal(df_json_str(claims, "sub"), "somebody");
}

/* ---- the pure part ---- */

static void tokens_of_each_algorithm_are_taken(void **state)
{
    (void)state;
    DF_FREE char *r = sign(&rsa, GOOD);
    DF_FREE char *e = sign(&ec, GOOD);
    DF_FREE char *d = sign(&ed, GOOD);
    assert_taken(r);
    assert_taken(e);
    assert_taken(d);
}

/* The key pair of RFC 8037, appendix A. */
static void the_ed25519_key_of_the_standard_verifies_its_own_signatures_alone(void **state)
{
    (void)state;
    static const char set[] = "{\"keys\":[{\"kid\":\"k\",\"kty\":\"OKP\",\"crv\":\"Ed25519\","
                              "\"x\":\"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo\"}]}";
    static const unsigned char secret[] = {0x9d, 0x61, 0xb1, 0x9d, 0xef, 0xfd, 0x5a, 0x60,
                                           0xba, 0x84, 0x4a, 0xf4, 0x92, 0xec, 0x2c, 0xc4,
                                           0x44, 0x49, 0xc5, 0x69, 0x7b, 0x32, 0x69, 0x19,
                                           0x70, 0x3b, 0xac, 0x03, 0x1c, 0xae, 0x7f, 0x60};
    struct signer standard = {.kid = "k", .alg = "EdDSA"};
    standard.key = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, secret, sizeof(secret));
    struct df_jwk_set *keys = NULL;
    cJSON *claims = NULL;
    struct df_err err = {0};
    assert_int_equal(df_jwk_set_parse(set, strlen(set), &keys, &err), 0);
    DF_FREE char *good = sign(&standard, GOOD);
    DF_FREE char *other = sign(&(struct signer){ed.key, "k", "EdDSA"}, GOOD);
    assert_int_equal(df_jwt_verify(good, keys, &expect, &claims, &err), 0);
    cJSON_Delete(claims);
    assert_int_equal(df_jwt_verify(other, keys, &expect, &claims, &err), -1);
    assert_string_equal(err.reason, "TokenSignature");
    df_jwk_set_free(keys);
    EVP_PKEY_free(standard.key);
}

static void what_a_token_says_of_itself_is_told_whoever_signed_it(void **state)
{
    (void)state;
    DF_FREE char *token = sign(&short_rsa, "{'iss':'somebody','aud':['a']}");
    DF_JSON cJSON *payload = NULL;
    struct df_err err = {0};
    assert_int_equal(df_jwt_peek(token, &payload, NULL), 0);
    assert_string_equal(df_json_str(payload, "iss"), "somebody");
    assert_int_equal(df_jwt_peek("not a token", &payload, &err), -1);
    assert_string_equal(err.reason, "TokenMalformed");
}

static void an_audience_may_be_a_string_and_one_of_several(void **state)
{
    (void)state;
    DF_FREE char *one =
        sign(&rsa, "{'iss':'" ISSUER "','aud':'" AUDIENCE "','exp':1790000600,'sub':'somebody'}");
    DF_FREE char *many = sign(&rsa, "{'iss':'" ISSUER "','aud':['vault','" AUDIENCE
                                    "'],'exp':1790000600,'sub':'somebody'}");
    assert_taken(one);
    assert_taken(many);
}

static void claims_that_do_not_fit_are_refused_with_their_reason(void **state)
{
    (void)state;
#define CLAIMS(iss, aud, times) "{'iss':" iss ",'aud':" aud "," times ",'sub':'somebody'}"
#define I "'" ISSUER "'"
#define A "'" AUDIENCE "'"
    static const struct {
        const char *payload, *reason;
    } cases[] = {
        {CLAIMS("'https://elsewhere'", A, "'exp':1790000600"), "TokenIssuer"},
        {CLAIMS("7", A, "'exp':1790000600"), "TokenIssuer"},
        {"{'aud':" A ",'exp':1790000600}", "TokenIssuer"},
        {CLAIMS(I, "'dayfly/other'", "'exp':1790000600"), "TokenAudience"},
        {CLAIMS(I, "['dayfly','dayfly/4b1']", "'exp':1790000600"), "TokenAudience"},
        {CLAIMS(I, "[]", "'exp':1790000600"), "TokenAudience"},
        {CLAIMS(I, "{'a':" A "}", "'exp':1790000600"), "TokenAudience"},
        {"{'iss':" I ",'exp':1790000600}", "TokenAudience"},
        {CLAIMS(I, A, "'exp':1789999970"), "TokenExpired"},
        {CLAIMS(I, A, "'exp':0"), "TokenExpired"},
        {CLAIMS(I, A, "'exp':-1e300"), "TokenExpired"},
        {CLAIMS(I, A, "'iat':1"), "TokenMalformed"},
        {CLAIMS(I, A, "'exp':'1790000600'"), "TokenMalformed"},
        {CLAIMS(I, A, "'exp':null"), "TokenMalformed"},
        {CLAIMS(I, A, "'exp':1790000600,'nbf':1790000031"), "TokenNotYetValid"},
        {CLAIMS(I, A, "'exp':1790000600,'iat':1790000031"), "TokenNotYetValid"},
        {CLAIMS(I, A, "'exp':1790000600,'nbf':true"), "TokenMalformed"},
        {"{'iss':'x','iss':" I ",'aud':" A ",'exp':1790000600}", "TokenDuplicateClaim"},
        {"{'iss':" I ",'aud':" A ",'exp':1,'exp':1790000600}", "TokenDuplicateClaim"},
        {"[]", "TokenMalformed"},
        {"{'iss':", "TokenMalformed"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_FREE char *token = sign(i % 2 ? &ec : &rsa, cases[i].payload);
        assert_refused(token, cases[i].reason);
    }
}

static void clocks_may_differ_by_the_leeway_and_not_by_more(void **state)
{
    (void)state;
    DF_FREE char *late = sign(&rsa, CLAIMS(I, A, "'exp':1789999971"));
    DF_FREE char *early = sign(&rsa, CLAIMS(I, A, "'exp':1790000600,'nbf':1790000030.0"));
    assert_taken(late);
    assert_taken(early);
}

static void headers_that_do_not_fit_are_refused_with_their_reason(void **state)
{
    (void)state;
    static const struct {
        const struct signer *by;
        const char *header, *reason;
    } cases[] = {
        {&rsa, "{'alg':'none','kid':'r1'}", "TokenAlgorithm"},
        {&rsa, "{'alg':'None'}", "TokenAlgorithm"},
        {&rsa, "{'alg':'HS256','kid':'r1'}", "TokenAlgorithm"},
        {&rsa, "{'alg':'RS512','kid':'r1'}", "TokenAlgorithm"},
        {&rsa, "{'alg':'PS256','kid':'r1'}", "TokenAlgorithm"},
        {&rsa, "{'alg':5,'kid':'r1'}", "TokenAlgorithm"},
        {&rsa, "{'kid':'r1'}", "TokenAlgorithm"},
        {&rsa_next, "{'alg':'RS256'}", "TokenKeyUnknown"},
        {&rsa, "{'alg':'RS256','kid':'r9'}", "TokenKeyUnknown"},
        {&rsa, "{'alg':'RS256','kid':7}", "TokenMalformed"},
        {&rsa, "{'alg':'RS256','kid':'e1'}", "TokenAlgorithm"},
        {&ec, "{'alg':'ES256','kid':'r1'}", "TokenAlgorithm"},
        {&p384, "{'alg':'ES256','kid':'e384'}", "TokenAlgorithm"},
        {&short_rsa, "{'alg':'RS256','kid':'short'}", "TokenAlgorithm"},
        {&rsa_next, "{'alg':'RS256','kid':'r1'}", "TokenSignature"},
        {&rsa, "{'alg':'RS256','kid':'r1','crit':['exp']}", "TokenMalformed"},
        {&rsa, "{'alg':'none','alg':'RS256','kid':'r1'}", "TokenDuplicateClaim"},
        {&rsa, "'RS256'", "TokenMalformed"},
        {&rsa, "", "TokenMalformed"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_FREE char *token = token_of(cases[i].by, cases[i].header, GOOD);
        assert_refused(token, cases[i].reason);
    }
}

/* OpenID Connect Core 1.0, 10.1: with one key neither token nor set need name it. */
static void a_token_without_a_key_id_is_taken_where_its_issuer_has_one_key_of_the_kind(void **state)
{
    (void)state;
    static const char header[] = "{'alg':'RS256'}";
    DF_FREE char *token = token_of(&rsa, header, GOOD);
    assert_taken(token);
    const struct signer *const signers[] = {&rsa, &rsa_next};
    DF_FREE char *two = set_of(signers, DF_ARRAY_SIZE(signers));
    DF_FREE char *jwk = jwk_of(&rsa);
    char *kid = strstr(jwk, "\"kid\":");
    assert_non_null(kid);
    memcpy(kid, "\"x5t\":", strlen("\"x5t\":"));
    DF_FREE char *unnamed = df_strf("{\"keys\":[%s]}", jwk);
    struct df_jwk_set *keys = NULL;
    cJSON *claims = NULL;
    struct df_err err = {0};
    assert_int_equal(df_jwk_set_parse(two, strlen(two), &keys, NULL), 0);
    assert_int_equal(df_jwt_verify(token, keys, &expect, &claims, &err), -1);
    assert_string_equal(err.reason, "TokenKeyUnknown");
    df_jwk_set_free(keys);
    assert_int_equal(df_jwk_set_parse(unnamed, strlen(unnamed), &keys, NULL), 0);
    assert_int_equal(df_jwt_verify(token, keys, &expect, &claims, &err), 0);
    cJSON_Delete(claims);
    df_jwk_set_free(keys);
}

static void a_public_key_does_not_serve_as_an_hmac_secret(void **state)
{
    (void)state;
    BIO *bio = BIO_new(BIO_s_mem());
    assert_int_equal(PEM_write_bio_PUBKEY(bio, rsa.key), 1);
    char *pem = NULL;
    long pem_len = BIO_get_mem_data(bio, &pem);
    DF_FREE char *good = token_of(&rsa, "{'alg':'HS256','kid':'r1'}", GOOD);
    *strrchr(good, '.') = '\0';
    unsigned char mac[32];
    unsigned n = 0;
    assert_non_null(
        HMAC(EVP_sha256(), pem, (int)pem_len, (unsigned char *)good, strlen(good), mac, &n));
    DF_FREE char *signature = b64(mac, n);
    DF_FREE char *token = df_strf("%s.%s", good, signature);
    BIO_free(bio);
    assert_refused(token, "TokenAlgorithm");
}

static void texts_that_are_no_tokens_are_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {"",        ".",           "..",        "a.b",
                                        "a.b.c.d", "a.b.c",       "e30..",     "e30.e30.*",
                                        "....",    "e30=.e30.AA", "e+0.e30.AA"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(texts); i++)
        assert_refused(texts[i], "TokenMalformed");
}

static void every_changed_character_is_noticed(void **state)
{
    (void)state;
    DF_FREE char *token = sign(&ec, GOOD);
    for (size_t i = 0; token[i]; i++) {
        char was = token[i];
        if (was == '.')
            continue;
        token[i] = was == 'A' ? 'B' : 'A';
        DF_JSON cJSON *claims = NULL;
        struct df_err err = {0};
        assert_int_equal(df_jwt_verify(token, all, &expect, &claims, &err), -1);
        assert_int_equal(err.cls, DF_ERR_DENIED);
        token[i] = was;
    }
    assert_taken(token);
}

static void a_signature_of_another_length_is_refused(void **state)
{
    (void)state;
    DF_FREE char *token = sign(&ec, GOOD);
    DF_FREE char *der_token = NULL;
    struct signer der = ec;
    der.alg = "";
    DF_FREE char *text = strndup(token, (size_t)(strrchr(token, '.') - token));
    DF_FREE char *signature = signature_of(&der, text);
    der_token = df_strf("%s.%s", text, signature);
    assert_refused(der_token, "TokenSignature");
    DF_FREE char *none = df_strf("%s.", text);
    assert_refused(none, "TokenSignature");
}

static void a_giant_token_is_refused_unread(void **state)
{
    (void)state;
    DF_FREE char *token = malloc(DF_LIMIT_TOKEN + 2);
    memset(token, 'A', DF_LIMIT_TOKEN + 1);
    token[DF_LIMIT_TOKEN + 1] = '\0';
    assert_refused(token, "TokenTooLarge");
    token[DF_LIMIT_TOKEN] = '\0';
    assert_refused(token, "TokenMalformed");
}

/* ---- key sets ---- */

static void key_sets_that_are_none_are_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "[]",
        "{}",
        "{'keys':{}}",
        "{'keys':[]}",
        "{'keys':[7,null,{}]}",
        "{'keys':[{'kty':'oct','kid':'x','k':'AAAA'}]}",
        "{'keys':[{'kty':'RSA','kid':'x','n':'AQAB','e':'AQAB'}]}",
        "{'keys':[{'kty':'RSA','kid':'x','n':'!','e':'AQAB'}]}",
        "{'keys':[{'kty':'EC','kid':'x','crv':'P-256','x':'AAAA','y':'AAAA'}]}",
        "{'keys':[{'kty':'EC','kid':'x','crv':'P-256',"
        "'x':'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE',"
        "'y':'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE'}]}",
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(texts); i++) {
        DF_FREE char *text = quoted(texts[i]);
        struct df_jwk_set *set = NULL;
        struct df_err err = {0};
        assert_int_equal(df_jwk_set_parse(text, strlen(text), &set, &err), -1);
        assert_int_equal(err.cls, DF_ERR_USER);
    }
}

static void a_key_that_is_for_something_else_is_left_out(void **state)
{
    (void)state;
    static const char *const changes[][2] = {
        {"\"use\":\"sig\"", "\"use\":\"enc\""},
        {"\"use\":\"sig\"", "\"key_ops\":[\"sign\"]"},
        {"\"alg\":\"RS256\"", "\"alg\":\"RS512\""},
    };
    DF_FREE char *jwk = jwk_of(&rsa);
    for (size_t i = 0; i < DF_ARRAY_SIZE(changes); i++) {
        char *at = strstr(jwk, changes[i][0]);
        assert_non_null(at);
        DF_FREE char *text = df_strf("{\"keys\":[%.*s%s%s]}", (int)(at - jwk), jwk, changes[i][1],
                                     at + strlen(changes[i][0]));
        struct df_jwk_set *set = NULL;
        assert_int_equal(df_jwk_set_parse(text, strlen(text), &set, NULL), -1);
    }
}

static void key_sets_are_capped(void **state)
{
    (void)state;
    struct df_jwk_set *set = NULL;
    struct df_err err = {0};
    DF_FREE char *jwk = jwk_of(&ec);
    DF_BUF struct df_buf b = DF_BUF_INIT(DF_MIB);
    (void)df_buf_adds(&b, "{\"keys\":[");
    for (int i = 0; i <= DF_LIMIT_JWKS_KEYS; i++)
        (void)df_buf_addf(&b, "%s%s", i ? "," : "", jwk);
    (void)df_buf_adds(&b, "]}");
    assert_int_equal(df_jwk_set_parse(b.data, b.len, &set, &err), -1);
    assert_int_equal(err.cls, DF_ERR_LIMIT);

    DF_FREE char *blanks = malloc(DF_LIMIT_JWKS + 1);
    memset(blanks, ' ', DF_LIMIT_JWKS + 1);
    assert_int_equal(df_jwk_set_parse(blanks, DF_LIMIT_JWKS + 1, &set, &err), -1);
    assert_int_equal(err.cls, DF_ERR_LIMIT);
}

static void of_two_keys_of_one_name_the_one_of_the_right_kind_counts(void **state)
{
    (void)state;
    struct signer twin = rsa;
    twin.kid = "e1";
    const struct signer *const signers[] = {&twin, &ec};
    DF_FREE char *text = set_of(signers, 2);
    struct df_jwk_set *set = NULL;
    DF_FREE char *token = sign(&ec, GOOD);
    DF_JSON cJSON *claims = NULL;
    assert_int_equal(df_jwk_set_parse(text, strlen(text), &set, NULL), 0);
    assert_int_equal(df_jwt_verify(token, set, &expect, &claims, NULL), 0);
    df_jwk_set_free(set);
}

/* ---- the source of the keys ---- */

static int64_t mono_us, real_us = NOW_S * (int64_t)1000000;

static int64_t get_mono(void)
{
    return __atomic_load_n(&mono_us, __ATOMIC_RELAXED);
}

static int64_t get_real(void)
{
    return real_us;
}

static int no_random(void *bytes, size_t n)
{
    memset(bytes, 0, n);
    return 0;
}

static const struct df_clock test_clock = {get_mono, get_real, no_random};

struct issuer {
    char *keys; /* owned */
    int fetches, discoveries;
    bool away;
};

static int fetch(void *arg, const char *path, struct df_buf *ret, struct df_err *err)
{
    struct issuer *i = arg;
    bool discovery = df_streq(path, DF_JWKS_DISCOVERY);
    *(discovery ? &i->discoveries : &i->fetches) += 1;
    if (i->away)
        return df_fail(err, DF_ERR_RETRY, "the issuer is away");
    return df_buf_adds(ret, discovery ? "{\"issuer\":\"" ISSUER "\"}" : i->keys);
}

static void publish(struct issuer *i, const struct signer *s)
{
    free(i->keys);
    i->keys = set_of(&s, 1);
}

static struct df_jwks *open_jwks(struct issuer *i)
{
    struct df_jwks *j = NULL;
    const struct df_jwks_options o = {.fetch = fetch, .arg = i};
    mono_us = 1;
    df_clock_install(&test_clock);
    assert_int_equal(df_jwks_new(&o, &j, NULL), 0);
    return j;
}

static void close_jwks(struct df_jwks *j, struct issuer *i)
{
    df_jwks_free(j);
    free(i->keys);
    df_clock_install(NULL);
}

/* "" when it is taken, else the reason. */
static const char *verdict(struct df_jwks *j, const struct signer *s)
{
    static char reason[48];
    struct df_err err = {0};
    DF_JSON cJSON *claims = NULL;
    DF_FREE char *token = sign(s, GOOD);
    int result = df_jwks_verify(j, token, AUDIENCE, &claims, &err);
    (void)snprintf(reason, sizeof(reason), "%s", result == 0 ? "" : err.reason);
    return reason;
}

static void later(int64_t seconds)
{
    mono_us += seconds * 1000000;
}

static void the_keys_are_fetched_once(void **state)
{
    (void)state;
    struct issuer i = {0};
    struct df_jwks *j = open_jwks(&i);
    publish(&i, &rsa);
    for (int n = 0; n < 5; n++)
        assert_string_equal(verdict(j, &rsa), "");
    assert_int_equal(i.fetches, 1);
    assert_int_equal(i.discoveries, 1);
    close_jwks(j, &i);
}

static void a_configured_issuer_is_not_asked_for(void **state)
{
    (void)state;
    struct issuer i = {0};
    struct df_jwks *j = NULL;
    const struct df_jwks_options o = {.fetch = fetch, .arg = &i, .issuer = "https://other"};
    df_clock_install(&test_clock);
    assert_int_equal(df_jwks_new(&o, &j, NULL), 0);
    publish(&i, &rsa);
    assert_string_equal(verdict(j, &rsa), "TokenIssuer");
    assert_int_equal(i.discoveries, 0);
    close_jwks(j, &i);
}

static void a_rotated_key_is_fetched_when_a_token_names_it(void **state)
{
    (void)state;
    struct issuer i = {0};
    struct df_jwks *j = open_jwks(&i);
    publish(&i, &rsa);
    assert_string_equal(verdict(j, &rsa), "");
    publish(&i, &rsa_next);
    later(DF_JWKS_PAUSE_S);
    assert_string_equal(verdict(j, &rsa_next), "");
    assert_int_equal(i.fetches, 2);
    assert_string_equal(verdict(j, &rsa), "TokenKeysUnavailable"); /* too early to look again */
    later(DF_JWKS_PAUSE_S);
    assert_string_equal(verdict(j, &rsa), "TokenKeyUnknown");
    close_jwks(j, &i);
}

static void unknown_keys_are_looked_for_once_in_a_while_only(void **state)
{
    (void)state;
    struct issuer i = {0};
    struct df_jwks *j = open_jwks(&i);
    publish(&i, &rsa);
    assert_string_equal(verdict(j, &rsa), "");
    later(DF_JWKS_PAUSE_S);
    assert_string_equal(verdict(j, &rsa_next), "TokenKeyUnknown");
    for (int n = 0; n < 100; n++)
        assert_string_equal(verdict(j, &rsa_next), "TokenKeysUnavailable");
    assert_string_equal(verdict(j, &rsa), "");
    assert_int_equal(i.fetches, 2);
    close_jwks(j, &i);
}

static void an_issuer_that_is_away_at_first_is_asked_again_later(void **state)
{
    (void)state;
    struct issuer i = {.away = true};
    struct df_jwks *j = open_jwks(&i);
    publish(&i, &rsa);
    for (int n = 0; n < 3; n++)
        assert_string_equal(verdict(j, &rsa), "TokenKeysUnavailable");
    assert_int_equal(i.discoveries, 1);
    i.away = false;
    later(DF_JWKS_PAUSE_S);
    assert_string_equal(verdict(j, &rsa), "");
    close_jwks(j, &i);
}

static void old_keys_are_fetched_anew_and_stay_good_while_that_fails(void **state)
{
    (void)state;
    struct issuer i = {0};
    struct df_jwks *j = open_jwks(&i);
    publish(&i, &rsa);
    assert_string_equal(verdict(j, &rsa), "");
    later(DF_JWKS_AGE_S);
    i.away = true;
    assert_string_equal(verdict(j, &rsa), "");
    assert_string_equal(verdict(j, &rsa), "");
    assert_int_equal(i.fetches, 2);
    i.away = false;
    publish(&i, &rsa_next);
    later(DF_JWKS_PAUSE_S);
    assert_string_not_equal(verdict(j, &rsa), ""); /* taken back */
    assert_int_equal(i.fetches, 3);
    close_jwks(j, &i);
}

static void *ask_many_times(void *arg)
{
    for (int n = 0; n < 50; n++) {
        DF_JSON cJSON *claims = NULL;
        DF_FREE char *token = sign(&ec, GOOD);
        if (df_jwks_verify(arg, token, AUDIENCE, &claims, NULL) < 0)
            return arg;
    }
    return NULL;
}

static void many_threads_share_one_fetch(void **state)
{
    (void)state;
    struct issuer i = {0};
    struct df_jwks *j = open_jwks(&i);
    publish(&i, &ec);
    pthread_t threads[4];
    for (size_t n = 0; n < DF_ARRAY_SIZE(threads); n++)
        assert_int_equal(pthread_create(&threads[n], NULL, ask_many_times, j), 0);
    for (size_t n = 0; n < DF_ARRAY_SIZE(threads); n++) {
        void *failed = NULL;
        assert_int_equal(pthread_join(threads[n], &failed), 0);
        assert_null(failed);
    }
    assert_int_equal(i.fetches, 1);
    close_jwks(j, &i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_of_each_algorithm_are_taken),
        cmocka_unit_test(the_ed25519_key_of_the_standard_verifies_its_own_signatures_alone),
        cmocka_unit_test(what_a_token_says_of_itself_is_told_whoever_signed_it),
        cmocka_unit_test(an_audience_may_be_a_string_and_one_of_several),
        cmocka_unit_test(claims_that_do_not_fit_are_refused_with_their_reason),
        cmocka_unit_test(clocks_may_differ_by_the_leeway_and_not_by_more),
        cmocka_unit_test(headers_that_do_not_fit_are_refused_with_their_reason),
        cmocka_unit_test(
            a_token_without_a_key_id_is_taken_where_its_issuer_has_one_key_of_the_kind),
        cmocka_unit_test(a_public_key_does_not_serve_as_an_hmac_secret),
        cmocka_unit_test(texts_that_are_no_tokens_are_refused),
        cmocka_unit_test(every_changed_character_is_noticed),
        cmocka_unit_test(a_signature_of_another_length_is_refused),
        cmocka_unit_test(a_giant_token_is_refused_unread),
        cmocka_unit_test(key_sets_that_are_none_are_refused),
        cmocka_unit_test(a_key_that_is_for_something_else_is_left_out),
        cmocka_unit_test(key_sets_are_capped),
        cmocka_unit_test(of_two_keys_of_one_name_the_one_of_the_right_kind_counts),
        cmocka_unit_test(the_keys_are_fetched_once),
        cmocka_unit_test(a_configured_issuer_is_not_asked_for),
        cmocka_unit_test(a_rotated_key_is_fetched_when_a_token_names_it),
        cmocka_unit_test(unknown_keys_are_looked_for_once_in_a_while_only),
        cmocka_unit_test(an_issuer_that_is_away_at_first_is_asked_again_later),
        cmocka_unit_test(old_keys_are_fetched_anew_and_stay_good_while_that_fails),
        cmocka_unit_test(many_threads_share_one_fetch),
    };
    return cmocka_run_group_tests(tests, make_keys, free_keys);
}
