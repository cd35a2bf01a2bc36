#include <hiredis/hiredis.h>
#include <hiredis/hiredis_ssl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "common/redis/tls.h"

#include <arpa/inet.h>

#include "common/base/limits.h"

struct df_redis_tls {
    SSL_CTX *ctx;
    const struct df_strs *names; /* borrowed */
};

static void cleanup_bio(BIO **b)
{
    BIO_free_all(*b);
}
static void cleanup_ssl(SSL **s)
{
    SSL_free(*s);
}
static void cleanup_x509(X509 **c)
{
    X509_free(*c);
}

static int trust(SSL_CTX *ctx, const char *pem, struct df_err *err)
{
    DF_CLEANUP(cleanup_bio) BIO *b = BIO_new_mem_buf(pem, -1);
    bool good = b != NULL;
    size_t added = 0;
    for (; good; added++) {
        DF_CLEANUP(cleanup_x509) X509 *c = PEM_read_bio_X509(b, NULL, NULL, NULL);
        if (!c)
            break;
        good = X509_STORE_add_cert(SSL_CTX_get_cert_store(ctx), c) == 1;
    }
    ERR_clear_error();
    if (!good)
        return df_fail_oom(err);
    /* A trusted certificate ends the chain, self-signed or not. */
    (void)X509_STORE_set_flags(SSL_CTX_get_cert_store(ctx), X509_V_FLAG_PARTIAL_CHAIN);
    return added ? 0
                 : df_fail(err, DF_ERR_USER,
                           "no PEM certificate is in the text of Redis' authorities");
}

int df_redis_tls_new(const char *ca_pem, const struct df_strs *names, struct df_redis_tls **ret,
                     struct df_err *err)
{
    DF_FREE struct df_redis_tls *t = calloc(1, sizeof(*t));
    SSL_CTX *ctx = t ? SSL_CTX_new(TLS_client_method()) : NULL;
    if (!ctx)
        return df_fail_oom(err);
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
    int result = SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) != 1 ? df_fail_oom(err)
                 : ca_pem                                                ? trust(ctx, ca_pem, err)
                 : SSL_CTX_set_default_verify_paths(ctx) == 1            ? 0
                                                                         : df_fail_oom(err);
    if (result < 0) {
        SSL_CTX_free(ctx);
        return -1;
    }
    *t = (struct df_redis_tls){ctx, names};
    *ret = DF_TAKE(t);
    return 0;
}

void df_redis_tls_free(struct df_redis_tls *t)
{
    if (t)
        SSL_CTX_free(t->ctx);
    free(t);
}

static bool is_address(const char *host)
{
    unsigned char bytes[16];
    return inet_pton(AF_INET, host, bytes) == 1 || inet_pton(AF_INET6, host, bytes) == 1;
}

static bool is_of(X509 *c, const char *name)
{
    return is_address(name)
               ? X509_check_ip_asc(c, name, 0) == 1
               : X509_check_host(c, name, 0, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT, NULL) == 1;
}

static int check_name(const struct df_redis_tls *t, const SSL *ssl, const char *host,
                      struct df_err *err)
{
    DF_CLEANUP(cleanup_x509) X509 *c = SSL_get1_peer_certificate(ssl);
    bool good = c && is_of(c, host);
    for (size_t i = 0; c && !good && i < t->names->len; i++)
        good = is_of(c, t->names->items[i]);
    return good ? 0
                : df_fail(err, DF_ERR_DENIED,
                          "the certificate of Redis %s is neither for it nor for a configured host",
                          host);
}

static int fail_handshake(const SSL *ssl, const redisContext *c, const char *host,
                          struct df_err *err)
{
    long verdict = SSL_get_verify_result(ssl);
    ERR_clear_error();
    if (verdict != X509_V_OK)
        return df_fail(err, DF_ERR_DENIED, "the certificate of Redis %s is not trusted: %s", host,
                       X509_verify_cert_error_string(verdict));
    return df_fail(err, DF_ERR_RETRY, "TLS with Redis %s: %s; does it speak TLS at port %d?", host,
                   c->errstr, c->tcp.port);
}

int df_redis_tls_begin(const struct df_redis_tls *t, redisContext *c, const char *host,
                       struct df_err *err)
{
    DF_CLEANUP(cleanup_ssl) SSL *ssl = SSL_new(t->ctx);
    char name[DF_LIMIT_HOST + 1]; /* the macro takes no const */
    df_copy(name, sizeof(name), host);
    if (!ssl || (!is_address(host) && SSL_set_tlsext_host_name(ssl, name) != 1))
        return df_fail_oom(err);
    if (redisInitiateSSL(c, ssl) != REDIS_OK)
        return fail_handshake(ssl, c, host, err);
    const SSL *owned_by_c = DF_TAKE(ssl);
    return check_name(t, owned_by_c, host, err);
}
