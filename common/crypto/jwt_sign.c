#include <openssl/pem.h>

#include "common/crypto/crypto.h"
#include "common/crypto/jwt.h"
#include "common/crypto/ssl.h"

static void cleanup_bio(BIO **b)
{
    BIO_free_all(*b);
}

static void cleanup_pkey(EVP_PKEY **k)
{
    EVP_PKEY_free(*k);
}

static void cleanup_md_ctx(EVP_MD_CTX **c)
{
    EVP_MD_CTX_free(*c);
}

static int no_passphrase(char *buffer, int size, int writing, void *arg)
{
    (void)buffer, (void)size, (void)writing, (void)arg;
    return -1;
}

static int add_part(struct df_buf *out, const cJSON *part, struct df_err *err)
{
    DF_FREE char *text = df_json_print(part);
    return text ? df_base64_encode(text, strlen(text), true, out, err) : df_fail_oom(err);
}

static int add_header(struct df_buf *out, const char *kid, struct df_err *err)
{
    DF_JSON cJSON *header =
        df_json_object(DF_STR("alg", "RS256"), DF_STR("typ", "JWT"), DF_STR("kid", kid));
    if (!header)
        return df_fail_oom(err);
    return add_part(out, header, err);
}

/* Signs what stands in out from begin on. */
static int add_signature(struct df_buf *out, size_t begin, EVP_PKEY *key, struct df_err *err)
{
    DF_CLEANUP(cleanup_md_ctx) EVP_MD_CTX *c = EVP_MD_CTX_new();
    unsigned char signature[1024];
    size_t n = sizeof(signature);
    if (!c || EVP_DigestSignInit(c, NULL, EVP_sha256(), NULL, key) != 1 ||
        EVP_DigestSign(c, signature, &n, (const unsigned char *)df_buf_str(out) + begin,
                       out->len - begin) != 1)
        return df_fail_ssl(err, "sign a token");
    (void)df_buf_addc(out, '.');
    return df_base64_encode(signature, n, true, out, err);
}

int df_jwt_sign(const cJSON *claims, const char *key_pem, const char *kid, struct df_buf *out,
                struct df_err *err)
{
    DF_CLEANUP(cleanup_bio) BIO *b = BIO_new_mem_buf(key_pem, -1);
    DF_CLEANUP(cleanup_pkey)
    EVP_PKEY *key = b ? PEM_read_bio_PrivateKey(b, NULL, no_passphrase, NULL) : NULL;
    if (!key || !EVP_PKEY_is_a(key, "RSA") || EVP_PKEY_get_size(key) > 1024)
        return df_fail(err, DF_ERR_USER, "the private key is not an RSA key in PEM");
    size_t begin = out->len;
    if (add_header(out, kid, err) < 0)
        return -1;
    (void)df_buf_addc(out, '.');
    return add_part(out, claims, err) < 0 ? -1 : add_signature(out, begin, key, err);
}

int df_jwt_sign_secret(const cJSON *claims, const void *secret, size_t secret_len,
                       struct df_buf *out, struct df_err *err)
{
    static const char header[] = "{\"typ\":\"JWT\",\"alg\":\"HS256\"}";
    unsigned char signature[DF_SHA256_LEN];
    size_t begin = out->len;
    if (df_base64_encode(header, strlen(header), true, out, err) < 0)
        return -1;
    (void)df_buf_addc(out, '.');
    if (add_part(out, claims, err) < 0 ||
        df_hmac_sha256(secret, secret_len, df_buf_str(out) + begin, out->len - begin, signature,
                       err) < 0)
        return -1;
    (void)df_buf_addc(out, '.');
    return df_base64_encode(signature, sizeof(signature), true, out, err);
}
