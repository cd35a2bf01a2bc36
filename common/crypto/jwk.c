/*
 * jwk.c - reads the RSA, P-256 and Ed25519 keys of a JSON Web Key Set into OpenSSL keys; keys that
 * are not for signatures or not supported are skipped. Read df_jwk_set_parse() first.
 */
#include "common/crypto/jwk.h"

#include <errno.h>

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/param_build.h>

#include "common/base/limits.h"
#include "common/crypto/crypto.h"

#define RSA_BITS_MIN 2048 /* RFC 7518, 3.3 */
#define RSA_BITS_MAX 8192 /* verifying with longer keys is slow enough to be an attack */
#define P256_BYTES 32
#define ED25519_BYTES 32

static void cleanup_bn(BIGNUM **n)
{
    BN_free(*n);
}

static void cleanup_bld(OSSL_PARAM_BLD **b)
{
    OSSL_PARAM_BLD_free(*b);
}

static void cleanup_params(OSSL_PARAM **p)
{
    OSSL_PARAM_free(*p);
}

static void cleanup_pkey_ctx(EVP_PKEY_CTX **c)
{
    EVP_PKEY_CTX_free(*c);
}

/* ---- numbers and keys ---- */

/* The reason if reading a valid key fails. */
static const char no_memory[] = "out of memory";

/* Decodes a member from base64url. -1: absent, malformed, or longer than in any supported key. */
static int decode_member(const cJSON *jwk, const char *member, struct df_buf *out)
{
    const char *text = df_json_str(jwk, member);
    return text ? df_base64_decode(text, strlen(text), true, out, NULL) : -1;
}

static EVP_PKEY *build_key(const char *type, OSSL_PARAM_BLD *parts)
{
    DF_CLEANUP(cleanup_params) OSSL_PARAM *params = OSSL_PARAM_BLD_to_param(parts);
    DF_CLEANUP(cleanup_pkey_ctx) EVP_PKEY_CTX *c = EVP_PKEY_CTX_new_from_name(NULL, type, NULL);
    EVP_PKEY *key = NULL;
    if (!params || !c || EVP_PKEY_fromdata_init(c) != 1 ||
        EVP_PKEY_fromdata(c, &key, EVP_PKEY_PUBLIC_KEY, params) != 1)
        return NULL;
    DF_CLEANUP(cleanup_pkey_ctx) EVP_PKEY_CTX *check = EVP_PKEY_CTX_new(key, NULL);
    if (check && EVP_PKEY_public_check(check) == 1)
        return key;
    EVP_PKEY_free(key);
    return NULL;
}

static const char *read_rsa(const cJSON *jwk, EVP_PKEY **ret)
{
    DF_BUF struct df_buf n = DF_BUF_INIT(RSA_BITS_MAX / 8 + 1);
    DF_BUF struct df_buf e = DF_BUF_INIT(8);
    bool decoded = decode_member(jwk, "n", &n) == 0 && decode_member(jwk, "e", &e) == 0;
    if (n.failed == ENOMEM || e.failed == ENOMEM)
        return no_memory;
    if (!decoded)
        return "its n or e is missing, damaged or too long";
    DF_CLEANUP(cleanup_bn) BIGNUM *modulus = BN_bin2bn((unsigned char *)n.data, (int)n.len, NULL);
    DF_CLEANUP(cleanup_bn) BIGNUM *exponent = BN_bin2bn((unsigned char *)e.data, (int)e.len, NULL);
    DF_CLEANUP(cleanup_bld) OSSL_PARAM_BLD *parts = OSSL_PARAM_BLD_new();
    if (!modulus || !exponent || !parts ||
        OSSL_PARAM_BLD_push_BN(parts, OSSL_PKEY_PARAM_RSA_N, modulus) != 1 ||
        OSSL_PARAM_BLD_push_BN(parts, OSSL_PKEY_PARAM_RSA_E, exponent) != 1)
        return no_memory;
    if (BN_num_bits(modulus) < RSA_BITS_MIN)
        return "its modulus has less than 2048 bits";
    if (BN_num_bits(exponent) > 33 || BN_is_one(exponent) || !BN_is_odd(exponent))
        return "its exponent is none that RSA keys have";
    *ret = build_key("RSA", parts);
    return *ret ? NULL : "it is no RSA key";
}

static const char *read_p256(const cJSON *jwk, EVP_PKEY **ret)
{
    if (!df_streq(df_json_str(jwk, "crv"), "P-256"))
        return "its curve is not P-256";
    DF_BUF struct df_buf point = DF_BUF_INIT(1 + 2 * P256_BYTES);
    (void)df_buf_addc(&point, 4); /* uncompressed: both coordinates follow */
    bool decoded = decode_member(jwk, "x", &point) == 0 && point.len == 1 + P256_BYTES &&
                   decode_member(jwk, "y", &point) == 0 && point.len == 1 + 2 * P256_BYTES;
    if (point.failed == ENOMEM)
        return no_memory;
    if (!decoded)
        return "its x or y is not of 32 bytes";
    DF_CLEANUP(cleanup_bld) OSSL_PARAM_BLD *parts = OSSL_PARAM_BLD_new();
    if (!parts ||
        OSSL_PARAM_BLD_push_utf8_string(parts, OSSL_PKEY_PARAM_GROUP_NAME, "P-256", 0) != 1 ||
        OSSL_PARAM_BLD_push_octet_string(parts, OSSL_PKEY_PARAM_PUB_KEY, point.data, point.len) !=
            1)
        return no_memory;
    *ret = build_key("EC", parts);
    return *ret ? NULL : "its point is not on the curve";
}

static const char *read_ed25519(const cJSON *jwk, EVP_PKEY **ret)
{
    if (!df_streq(df_json_str(jwk, "crv"), "Ed25519"))
        return "its curve is not Ed25519";
    DF_BUF struct df_buf x = DF_BUF_INIT(ED25519_BYTES);
    bool decoded = decode_member(jwk, "x", &x) == 0 && x.len == ED25519_BYTES;
    if (x.failed == ENOMEM)
        return no_memory;
    if (!decoded)
        return "its x is not of 32 bytes";
    *ret = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, (unsigned char *)x.data, x.len);
    return *ret ? NULL : no_memory;
}

/* One algorithm for each kind of key. read: returns NULL and sets *ret, or says why it cannot. */
static const struct {
    const char *type, *alg;
    enum df_jwk_kind kind;
    const char *(*read)(const cJSON *jwk, EVP_PKEY **ret);
} algorithms[] = {{"RSA", "RS256", DF_JWK_RSA, read_rsa},
                  {"EC", "ES256", DF_JWK_P256, read_p256},
                  {"OKP", "EdDSA", DF_JWK_ED25519, read_ed25519}};

enum df_jwk_kind df_jwk_kind_of(const char *alg)
{
    for (size_t i = 0; i < DF_ARRAY_SIZE(algorithms); i++)
        if (df_streq(algorithms[i].alg, alg))
            return algorithms[i].kind;
    return DF_JWK_UNUSABLE;
}

/* ---- the set ---- */

/* Members that declare the use of a key are optional; if present, they must allow signatures. */
static bool is_for_signatures(const cJSON *jwk)
{
    const char *use = df_json_str(jwk, "use");
    const cJSON *ops = df_json_at(jwk, "key_ops");
    if (use && !df_streq(use, "sig"))
        return false;
    return !ops || df_json_has_string(ops, "verify");
}

/* -1: out of memory. */
static int read_key(const cJSON *jwk, struct df_jwk *k)
{
    const char *type = df_json_str(jwk, "kty"), *alg = df_json_str(jwk, "alg");
    const char *why = "it is for none of " DF_JWK_ALGORITHMS;
    for (size_t i = 0; i < DF_ARRAY_SIZE(algorithms); i++) {
        if (!df_streq(type, algorithms[i].type) || (alg && !df_streq(alg, algorithms[i].alg)))
            continue;
        why = algorithms[i].read(jwk, &k->key);
        k->kind = k->key ? algorithms[i].kind : DF_JWK_UNUSABLE;
    }
    if (!k->key)
        (void)snprintf(k->why, sizeof(k->why), "%s", why);
    ERR_clear_error();
    return why == no_memory ? -1 : 0;
}

static int add_key(struct df_jwk_set *set, const cJSON *jwk, struct df_err *err)
{
    const char *kid = df_json_str(jwk, "kid");
    if (!is_for_signatures(jwk))
        return 0;
    struct df_jwk k = {.kid = strdup(kid ? kid : "")};
    if (!k.kid)
        return df_fail_oom(err);
    int result = read_key(jwk, &k);
    set->keys[set->count++] = k;
    return result == 0 ? 0 : df_fail_oom(err);
}

static bool has_usable(const struct df_jwk_set *set)
{
    for (size_t i = 0; i < set->count; i++)
        if (set->keys[i].kind != DF_JWK_UNUSABLE)
            return true;
    return false;
}

static int fill(struct df_jwk_set *set, const cJSON *keys, struct df_err *err)
{
    int count = cJSON_GetArraySize(keys);
    if (!cJSON_IsArray(keys))
        return df_fail(err, DF_ERR_USER, "the key set has no list of keys");
    if (count > DF_LIMIT_JWKS_KEYS)
        return df_fail(err, DF_ERR_LIMIT, "the key set has more than %d keys", DF_LIMIT_JWKS_KEYS);
    set->keys = calloc((size_t)count + 1, sizeof(*set->keys));
    if (!set->keys)
        return df_fail_oom(err);
    const cJSON *jwk;
    cJSON_ArrayForEach (jwk, keys) {
        if (add_key(set, jwk, err) < 0)
            return -1;
    }
    return has_usable(set)
               ? 0
               : df_fail(err, DF_ERR_USER, "the key set has no key for any of " DF_JWK_ALGORITHMS);
}

int df_jwk_set_parse(const char *text, size_t n, struct df_jwk_set **ret, struct df_err *err)
{
    DF_JSON cJSON *doc = NULL;
    if (n > DF_LIMIT_JWKS)
        return df_fail(err, DF_ERR_LIMIT, "the key set has more than %zu bytes", DF_LIMIT_JWKS);
    if (df_json_parse(text, n, &doc, err) < 0)
        return df_err_wrap(err, "key set");
    struct df_jwk_set *set = calloc(1, sizeof(*set));
    if (!set)
        return df_fail_oom(err);
    if (fill(set, df_json_at(doc, "keys"), err) < 0) {
        df_jwk_set_free(set);
        return -1;
    }
    *ret = set;
    return 0;
}

void df_jwk_set_free(struct df_jwk_set *set)
{
    for (size_t i = 0; set && i < set->count; i++) {
        free(set->keys[i].kid);
        EVP_PKEY_free(set->keys[i].key);
    }
    if (set)
        free(set->keys);
    free(set);
}

static const struct df_jwk *find_only(const struct df_jwk_set *set, enum df_jwk_kind kind)
{
    const struct df_jwk *only = NULL;
    for (size_t i = 0; i < set->count; i++) {
        if (set->keys[i].kind != kind)
            continue;
        if (only)
            return NULL;
        only = &set->keys[i];
    }
    return only;
}

const struct df_jwk *df_jwk_find(const struct df_jwk_set *set, const char *kid,
                                 enum df_jwk_kind kind)
{
    const struct df_jwk *any = NULL;
    if (!kid)
        return find_only(set, kind);
    for (size_t i = 0; i < set->count; i++) {
        if (!df_streq(set->keys[i].kid, kid))
            continue;
        if (set->keys[i].kind == kind)
            return &set->keys[i];
        any = any ? any : &set->keys[i];
    }
    return any;
}
