/*
 * certificate.c - PEM in and out, then the creation of an authority and of server certificates,
 * then the checks of existing ones.
 */
#include "common/crypto/ssl.h"

#include <arpa/inet.h>

#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "common/base/clock.h"
#include "common/crypto/certificate.h"

#define DAY_S ((long)24 * 3600)
#define AUTHORITY_DAYS 3650
#define SERVER_DAYS 365
#define SKEW_S 3600 /* clock difference of a client that is tolerated */

static void cleanup_bio(BIO **b)
{
    BIO_free(*b);
}
static void cleanup_x509(X509 **c)
{
    X509_free(*c);
}
static void cleanup_pkey(EVP_PKEY **k)
{
    EVP_PKEY_free(*k);
}
#define OWN_BIO DF_CLEANUP(cleanup_bio)
#define OWN_X509 DF_CLEANUP(cleanup_x509)
#define OWN_PKEY DF_CLEANUP(cleanup_pkey)

/* ---- PEM ---- */

/* Prevents OpenSSL's passphrase prompt, which would block on the terminal. */
static int no_passphrase(char *buf, int size, int writing, void *arg)
{
    (void)buf, (void)size, (void)writing, (void)arg;
    return -1;
}

static X509 *read_certificate(const char *pem)
{
    OWN_BIO BIO *b = BIO_new_mem_buf(pem, -1);
    X509 *c = b ? PEM_read_bio_X509(b, NULL, no_passphrase, NULL) : NULL;
    ERR_clear_error();
    return c;
}

static EVP_PKEY *read_key(const char *pem)
{
    OWN_BIO BIO *b = BIO_new_mem_buf(pem, -1);
    EVP_PKEY *k = b ? PEM_read_bio_PrivateKey(b, NULL, no_passphrase, NULL) : NULL;
    ERR_clear_error();
    return k;
}

static int take_bio(BIO *b, struct df_buf *to, struct df_err *err)
{
    char *bytes = NULL;
    long n = BIO_get_mem_data(b, &bytes);
    (void)df_buf_add(to, bytes, n > 0 ? (size_t)n : 0);
    return df_buf_check(to, err);
}

static int write_pair(EVP_PKEY *k, X509 *c, struct df_buf *key, struct df_buf *certificate,
                      struct df_err *err)
{
    OWN_BIO BIO *kb = BIO_new(BIO_s_secmem());
    OWN_BIO BIO *cb = BIO_new(BIO_s_mem());
    if (!kb || !cb || PEM_write_bio_PrivateKey(kb, k, NULL, NULL, 0, NULL, NULL) != 1 ||
        PEM_write_bio_X509(cb, c) != 1)
        return df_fail_ssl(err, "write a certificate");
    return take_bio(kb, key, err) < 0 ? -1 : take_bio(cb, certificate, err);
}

/* ---- creation ---- */

static int add_extension(X509 *c, X509V3_CTX *ctx, int nid, const char *value)
{
    X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, ctx, nid, value);
    int ok = e ? X509_add_ext(c, e, -1) : 0;
    X509_EXTENSION_free(e);
    return ok;
}

static int set_serial(X509 *c)
{
    unsigned char bytes[16];
    if (df_random(bytes, sizeof(bytes), NULL) < 0)
        return 0;
    bytes[0] &= 0x7f; /* positive, and at most 20 bytes (RFC 5280) */
    BIGNUM *n = BN_bin2bn(bytes, sizeof(bytes), NULL);
    int ok = n && BN_to_ASN1_INTEGER(n, X509_get_serialNumber(c)) != NULL;
    BN_free(n);
    return ok;
}

/* Sets the fields that both kinds of certificates have. issuer NULL: self-signed. */
static int set_fields(X509 *c, EVP_PKEY *key, const char *subject, X509 *issuer, long days)
{
    time_t now = (time_t)(df_real_us() / 1000000);
    X509_NAME *name = X509_get_subject_name(c);
    const X509_NAME *by = issuer ? X509_get_subject_name(issuer) : name;
    return X509_set_version(c, X509_VERSION_3) == 1 && set_serial(c) &&
           X509_time_adj_ex(X509_getm_notBefore(c), 0, -SKEW_S, &now) &&
           X509_time_adj_ex(X509_getm_notAfter(c), 0, days * DAY_S, &now) &&
           X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, (const unsigned char *)subject, -1,
                                      -1, 0) == 1 &&
           X509_set_issuer_name(c, by) == 1 && X509_set_pubkey(c, key) == 1;
}

int df_certificate_authority(const char *name, struct df_buf *key, struct df_buf *certificate,
                             struct df_err *err)
{
    OWN_PKEY EVP_PKEY *k = EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-256");
    OWN_X509 X509 *c = X509_new();
    X509V3_CTX ctx;
    X509V3_set_ctx_nodb(&ctx);
    X509V3_set_ctx(&ctx, c, c, NULL, NULL, 0);
    if (!k || !c || !set_fields(c, k, name, NULL, AUTHORITY_DAYS) ||
        !add_extension(c, &ctx, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") ||
        !add_extension(c, &ctx, NID_key_usage, "critical,keyCertSign,cRLSign") ||
        !add_extension(c, &ctx, NID_subject_key_identifier, "hash") ||
        !X509_sign(c, k, EVP_sha256()))
        return df_fail_ssl(err, "make a certificate authority");
    return write_pair(k, c, key, certificate, err);
}

static bool is_ip(const char *name)
{
    unsigned char bytes[16];
    return inet_pton(AF_INET, name, bytes) == 1 || inet_pton(AF_INET6, name, bytes) == 1;
}

/* Adds the name as a structure: in OpenSSL's textual form a comma would separate names. */
static int add_name(GENERAL_NAMES *all, const char *name)
{
    GENERAL_NAME *one = GENERAL_NAME_new();
    ASN1_OCTET_STRING *ip = is_ip(name) ? a2i_IPADDRESS(name) : NULL;
    ASN1_IA5STRING *dns = ip ? NULL : ASN1_IA5STRING_new();
    bool ok = one && (ip || (dns && ASN1_STRING_set(dns, name, -1) == 1));
    if (ok) {
        GENERAL_NAME_set0_value(one, ip ? GEN_IPADD : GEN_DNS, ip ? (void *)ip : (void *)dns);
        if (sk_GENERAL_NAME_push(all, one) > 0)
            return 1;
    } else {
        ASN1_OCTET_STRING_free(ip);
        ASN1_IA5STRING_free(dns);
    }
    GENERAL_NAME_free(one);
    return 0;
}

static int add_names(X509 *c, const struct df_strs *names)
{
    GENERAL_NAMES *all = sk_GENERAL_NAME_new_null();
    int ok = all != NULL;
    for (size_t i = 0; ok && i < names->len; i++)
        ok = add_name(all, names->items[i]);
    ok = ok && X509_add1_ext_i2d(c, NID_subject_alt_name, all, 0, X509V3_ADD_DEFAULT) == 1;
    sk_GENERAL_NAME_pop_free(all, GENERAL_NAME_free);
    return ok;
}

int df_certificate_issue(const char *authority_key, const char *authority_certificate,
                         const struct df_strs *names, struct df_buf *key,
                         struct df_buf *certificate, struct df_err *err)
{
    OWN_PKEY EVP_PKEY *by_key = read_key(authority_key);
    OWN_X509 X509 *by = read_certificate(authority_certificate);
    if (!by_key || !by || X509_check_private_key(by, by_key) != 1)
        return df_fail(err, DF_ERR_USER, "the authority's key and certificate are damaged");
    OWN_PKEY EVP_PKEY *k = EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-256");
    OWN_X509 X509 *c = X509_new();
    X509V3_CTX ctx;
    X509V3_set_ctx_nodb(&ctx);
    X509V3_set_ctx(&ctx, by, c, NULL, NULL, 0);
    if (!k || !c || !set_fields(c, k, "dayfly", by, SERVER_DAYS) || !add_names(c, names) ||
        !add_extension(c, &ctx, NID_basic_constraints, "critical,CA:FALSE") ||
        !add_extension(c, &ctx, NID_key_usage, "critical,digitalSignature") ||
        !add_extension(c, &ctx, NID_ext_key_usage, "serverAuth") ||
        !add_extension(c, &ctx, NID_authority_key_identifier, "keyid:always") ||
        !X509_sign(c, by_key, EVP_sha256()))
        return df_fail_ssl(err, "make a server certificate");
    return write_pair(k, c, key, certificate, err);
}

/* ---- checks ---- */

static bool has_names(X509 *c, const struct df_strs *names)
{
    for (size_t i = 0; i < names->len; i++) {
        const char *name = names->items[i];
        int there = is_ip(name)
                        ? X509_check_ip_asc(c, name, 0)
                        : X509_check_host(c, name, 0, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT, NULL);
        if (there != 1)
            return false;
    }
    return true;
}

bool df_certificate_fits(const char *certificate, const char *authority,
                         const struct df_strs *names, int64_t until_us)
{
    OWN_X509 X509 *c = read_certificate(certificate);
    OWN_X509 X509 *by = read_certificate(authority);
    time_t until = (time_t)(until_us / 1000000);
    bool fits = c && by && X509_verify(c, X509_get0_pubkey(by)) == 1 &&
                X509_cmp_time(X509_get0_notAfter(c), &until) > 0 && has_names(c, names);
    ERR_clear_error();
    return fits;
}

int df_certificate_check_pair(const char *certificate, const char *key, struct df_err *err)
{
    OWN_X509 X509 *c = read_certificate(certificate);
    OWN_PKEY EVP_PKEY *k = read_key(key);
    if (!c)
        return df_fail(err, DF_ERR_USER, "the certificate is not in PEM format");
    if (!k)
        return df_fail(err, DF_ERR_USER, "the key is not in PEM format, or has a passphrase");
    int match = X509_check_private_key(c, k);
    ERR_clear_error();
    return match == 1 ? 0 : df_fail(err, DF_ERR_USER, "the key does not belong to the certificate");
}
