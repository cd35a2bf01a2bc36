#include "common/crypto/ssl.h"

#include <arpa/inet.h>

#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "common/crypto/chain.h"

static void cleanup_stack(STACK_OF(X509) * *s)
{
    sk_X509_pop_free(*s, X509_free);
}
static void cleanup_store(X509_STORE **s)
{
    X509_STORE_free(*s);
}
static void cleanup_ctx(X509_STORE_CTX **c)
{
    X509_STORE_CTX_free(*c);
}
#define OWN_STACK DF_CLEANUP(cleanup_stack)
#define OWN_STORE DF_CLEANUP(cleanup_store)
#define OWN_CTX DF_CLEANUP(cleanup_ctx)

/* Reads all certificates of a PEM text; it must have at least one. */
static int read_all(const char *pem, const char *what, STACK_OF(X509) * *ret, struct df_err *err)
{
    OWN_STACK STACK_OF(X509) *all = sk_X509_new_null();
    BIO *b = BIO_new_mem_buf(pem, -1);
    X509 *c = NULL;
    bool full = !all || !b;
    while (!full && (c = PEM_read_bio_X509(b, NULL, NULL, NULL)) != NULL)
        full = sk_X509_push(all, c) <= 0;
    BIO_free(b);
    ERR_clear_error();
    if (full) {
        X509_free(c);
        return df_fail_oom(err);
    }
    if (sk_X509_num(all) == 0)
        return df_fail(err, DF_ERR_USER, "%s: no PEM certificate is in it", what);
    *ret = DF_TAKE(all);
    return 0;
}

static int64_t time_of(const ASN1_TIME *t)
{
    struct tm tm = {0};
    return ASN1_TIME_to_tm(t, &tm) == 1 ? (int64_t)timegm(&tm) * 1000000 : 0;
}

static X509_STORE *add_trusted(const STACK_OF(X509) * authorities)
{
    X509_STORE *store = X509_STORE_new();
    bool good = store != NULL;
    for (int i = 0; good && i < sk_X509_num(authorities); i++)
        good = X509_STORE_add_cert(store, sk_X509_value(authorities, i)) == 1;
    /* A trusted certificate ends the chain, self-signed or not. */
    good = good && X509_STORE_set_flags(store, X509_V_FLAG_PARTIAL_CHAIN) == 1;
    if (!good)
        X509_STORE_free(store);
    return good ? store : NULL;
}

static bool set_expectation(X509_STORE_CTX *ctx, const char *name, int64_t now_us)
{
    unsigned char bytes[16];
    X509_VERIFY_PARAM *p = X509_STORE_CTX_get0_param(ctx);
    bool is_ip = inet_pton(AF_INET, name, bytes) == 1 || inet_pton(AF_INET6, name, bytes) == 1;
    X509_VERIFY_PARAM_set_time(p, (time_t)(now_us / 1000000));
    X509_VERIFY_PARAM_set_hostflags(p, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
    return (is_ip ? X509_VERIFY_PARAM_set1_ip_asc(p, name)
                  : X509_VERIFY_PARAM_set1_host(p, name, 0)) == 1;
}

/* Fails with OpenSSL's message and the certificate it is about. */
static int fail_verify(X509_STORE_CTX *ctx, const char *name, struct df_err *err)
{
    X509 *c = X509_STORE_CTX_get_current_cert(ctx);
    int code = X509_STORE_CTX_get_error(ctx);
    char subject[200] = "";
    if (c)
        (void)X509_NAME_oneline(X509_get_subject_name(c), subject, (int)sizeof(subject));
    ERR_clear_error();
    if (code == X509_V_ERR_HOSTNAME_MISMATCH || code == X509_V_ERR_IP_ADDRESS_MISMATCH)
        return df_fail(err, DF_ERR_USER, "it is not for the name %s", name);
    return df_fail(err, DF_ERR_USER, "%s (%s)", X509_verify_cert_error_string(code), subject);
}

int df_chain_check(const char *chain, const char *authorities, const char *name, int64_t now_us,
                   int64_t *ret_until_us, struct df_err *err)
{
    OWN_STACK STACK_OF(X509) *own = NULL, *trusted = NULL;
    if (read_all(chain, "the certificate", &own, err) < 0 ||
        read_all(authorities ? authorities : chain, "the authority", &trusted, err) < 0)
        return -1;
    OWN_STORE X509_STORE *store = add_trusted(trusted);
    OWN_CTX X509_STORE_CTX *ctx = X509_STORE_CTX_new();
    if (!store || !ctx || X509_STORE_CTX_init(ctx, store, sk_X509_value(own, 0), own) != 1 ||
        !set_expectation(ctx, name, now_us))
        return df_fail_ssl(err, "look at the certificate");
    if (X509_verify_cert(ctx) != 1)
        return fail_verify(ctx, name, err);
    *ret_until_us = time_of(X509_get0_notAfter(sk_X509_value(own, 0)));
    return 0;
}
