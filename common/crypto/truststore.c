/*
 * truststore.c - writes the certificates of a truststore as PEM. df_truststore_read() near the end
 * tells the formats apart: JKS by its magic number, PEM by "-----BEGIN ", everything else must be
 * PKCS#12. Keys are skipped, together with their own certificates: those are no authorities.
 */
#include "common/crypto/ssl.h"

#include <openssl/crypto.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>

#include "common/base/fs.h"
#include "common/crypto/truststore.h"

static void cleanup_bio(BIO **b)
{
    BIO_free_all(*b);
}
static void cleanup_x509(X509 **c)
{
    X509_free(*c);
}
static void cleanup_pkcs12(PKCS12 **p)
{
    PKCS12_free(*p);
}
static void cleanup_stack(STACK_OF(X509) * *s)
{
    sk_X509_pop_free(*s, X509_free);
}
#define OWN_BIO DF_CLEANUP(cleanup_bio) BIO
#define OWN_X509 DF_CLEANUP(cleanup_x509) X509

static int add_pem(X509 *c, struct df_buf *out, struct df_err *err)
{
    OWN_BIO *b = BIO_new(BIO_s_mem());
    char *text = NULL;
    if (!b || PEM_write_bio_X509(b, c) != 1)
        return df_fail_ssl(err, "write a certificate");
    long n = BIO_get_mem_data(b, &text);
    (void)df_buf_add(out, text, n > 0 ? (size_t)n : 0);
    return df_buf_check(out, err);
}

static int add_der(const unsigned char *der, size_t n, struct df_buf *out, struct df_err *err)
{
    OWN_X509 *c = d2i_X509(NULL, &der, (long)n);
    ERR_clear_error();
    return c ? add_pem(c, out, err)
             : df_fail(err, DF_ERR_USER, "it has a certificate that cannot be read");
}

/* ---- PEM ---- */

static int read_pem(const void *bytes, size_t n, struct df_buf *out, struct df_err *err)
{
    OWN_BIO *b = BIO_new_mem_buf(bytes, (int)n);
    if (!b)
        return df_fail_oom(err);
    for (;;) {
        OWN_X509 *c = PEM_read_bio_X509(b, NULL, NULL, NULL);
        if (!c)
            break;
        if (add_pem(c, out, err) < 0)
            return -1;
    }
    ERR_clear_error();
    return 0;
}

/* ---- PKCS#12 ---- */

static int read_pkcs12(const unsigned char *bytes, size_t n, const char *password,
                       struct df_buf *out, struct df_err *err)
{
    DF_CLEANUP(cleanup_pkcs12) PKCS12 *p = d2i_PKCS12(NULL, &bytes, (long)n);
    DF_CLEANUP(cleanup_stack) STACK_OF(X509) *trusted = NULL;
    EVP_PKEY *key = NULL;
    OWN_X509 *own = NULL; /* of the key, and so not an authority */
    if (!p) {
        ERR_clear_error();
        return df_fail(err, DF_ERR_USER, "it is neither PEM nor PKCS#12 nor JKS");
    }
    if (PKCS12_mac_present(p) && PKCS12_verify_mac(p, password, -1) != 1 &&
        (*password || PKCS12_verify_mac(p, NULL, 0) != 1)) {
        ERR_clear_error();
        return df_fail(err, DF_ERR_USER, "its password is another one");
    }
    int good = PKCS12_parse(p, password, &key, &own, &trusted);
    EVP_PKEY_free(key);
    if (good != 1) {
        (void)df_fail_ssl(err, "it is PKCS#12 of a kind that OpenSSL 3 does not take");
        if (err)
            err->cls = DF_ERR_USER;
        return -1;
    }
    for (int i = 0; i < sk_X509_num(trusted); i++)
        if (add_pem(sk_X509_value(trusted, i), out, err) < 0)
            return -1;
    return 0;
}

/* ---- JKS: sun.security.provider.JavaKeyStore ---- */

#define JKS_MAGIC 0xfeedfeedU
#define JKS_KEY 1
#define JKS_TRUSTED 2
#define JKS_DIGEST ((size_t)20)

struct cursor {
    const unsigned char *p;
    size_t left;
    bool is_cut; /* something was longer than what is left */
};

static const unsigned char *take(struct cursor *c, size_t n)
{
    const unsigned char *p = c->p;
    c->is_cut = c->is_cut || n > c->left;
    if (c->is_cut)
        return NULL;
    c->p += n;
    c->left -= n;
    return p;
}

static uint32_t take_number(struct cursor *c, size_t bytes)
{
    const unsigned char *p = take(c, bytes);
    uint32_t v = 0;
    for (size_t i = 0; p && i < bytes; i++)
        v = v << 8 | p[i];
    return v;
}

/* A certificate with its type in front ("X.509"), which version 1 does not write. */
static const unsigned char *take_certificate(struct cursor *c, uint32_t version, size_t *ret_n)
{
    if (version > 1)
        (void)take(c, take_number(c, 2));
    *ret_n = take_number(c, 4);
    return take(c, *ret_n);
}

static int read_entry(struct cursor *c, uint32_t version, struct df_buf *out, struct df_err *err)
{
    uint32_t tag = take_number(c, 4);
    size_t n = 0;
    (void)take(c, take_number(c, 2)); /* alias */
    (void)take(c, 8);                 /* date */
    if (tag == JKS_TRUSTED) {
        const unsigned char *der = take_certificate(c, version, &n);
        return der ? add_der(der, n, out, err) : 0;
    }
    if (tag != JKS_KEY)
        return df_fail(err, DF_ERR_USER, "it is JKS with an entry of unknown kind %u", tag);
    (void)take(c, take_number(c, 4)); /* the key */
    for (uint32_t chain = take_number(c, 4); chain && !c->is_cut; chain--)
        (void)take_certificate(c, version, &n);
    return 0;
}

/* The digest: SHA-1 over the password in UTF-16, a few words, and all that stands before it. */
static int check_jks(const unsigned char *bytes, size_t n, const char *password, struct df_err *err)
{
    DF_CLEANUP(df_cleanup_md_ctx) EVP_MD_CTX *c = EVP_MD_CTX_new();
    unsigned char made[EVP_MAX_MD_SIZE];
    static const char words[] = "Mighty Aphrodite";
    bool good = c && EVP_DigestInit_ex(c, EVP_sha1(), NULL) == 1;
    for (const char *p = password; good && *p; p++)
        good = EVP_DigestUpdate(c, (const unsigned char[]){0, (unsigned char)*p}, 2) == 1;
    good = good && EVP_DigestUpdate(c, words, sizeof(words) - 1) == 1 &&
           EVP_DigestUpdate(c, bytes, n - JKS_DIGEST) == 1 &&
           EVP_DigestFinal_ex(c, made, NULL) == 1;
    if (!good)
        return df_fail_ssl(err, "check the digest");
    return CRYPTO_memcmp(made, bytes + n - JKS_DIGEST, JKS_DIGEST) == 0
               ? 0
               : df_fail(err, DF_ERR_USER, "its password is another one, or it is damaged");
}

static int read_jks(const unsigned char *bytes, size_t n, const char *password, struct df_buf *out,
                    struct df_err *err)
{
    if (n < 12 + JKS_DIGEST)
        return df_fail(err, DF_ERR_USER, "it is JKS that was cut short");
    if (*password && check_jks(bytes, n, password, err) < 0)
        return -1;
    struct cursor c = {.p = bytes + 4, .left = n - 4 - JKS_DIGEST};
    uint32_t version = take_number(&c, 4);
    for (uint32_t entries = take_number(&c, 4); entries && !c.is_cut; entries--)
        if (read_entry(&c, version, out, err) < 0)
            return -1;
    return c.is_cut ? df_fail(err, DF_ERR_USER, "it is JKS that was cut short") : 0;
}

int df_truststore_read(const void *bytes, size_t n, const char *password, struct df_buf *out,
                       struct df_err *err)
{
    struct cursor c = {.p = bytes, .left = n};
    size_t before = out->len;
    if (n > INT32_MAX)
        return df_fail(err, DF_ERR_LIMIT, "it has %zu bytes", n);
    if (!password)
        password = "";
    bool is_pem = memmem(bytes, n, "-----BEGIN ", strlen("-----BEGIN ")) != NULL;
    int result = take_number(&c, 4) == JKS_MAGIC ? read_jks(bytes, n, password, out, err)
                 : is_pem                        ? read_pem(bytes, n, out, err)
                                                 : read_pkcs12(bytes, n, password, out, err);
    if (result == 0 && out->len == before)
        return df_fail(err, DF_ERR_USER, "no certificate is in it");
    return result;
}

int df_truststore_system(struct df_buf *out, struct df_err *err)
{
    /* Where distributions have them (Go, crypto/x509/root_linux.go). */
    static const char *const bundles[] = {
        "/etc/ssl/certs/ca-certificates.crt",
        "/etc/pki/tls/certs/ca-bundle.crt",
        "/etc/ssl/ca-bundle.pem",
        "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
        "/etc/ssl/cert.pem",
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(bundles); i++)
        if (df_fs_exists(bundles[i]))
            return df_fs_read(bundles[i], out, err);
    return 0;
}
