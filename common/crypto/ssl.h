/*
 * ssl.h - what the files of crypto/ share: OpenSSL's contexts as owned locals, its errors as ours.
 * Include it first: OpenSSL's headers name a parameter `rand`, which banned.h forbids from then on.
 */
#ifndef DF_CRYPTO_SSL_H
#define DF_CRYPTO_SSL_H

#include <openssl/err.h>
#include <openssl/evp.h>

#include "common/base/err.h"

static inline void df_cleanup_md_ctx(EVP_MD_CTX **c)
{
    EVP_MD_CTX_free(*c);
}

static inline void df_cleanup_cipher_ctx(EVP_CIPHER_CTX **c)
{
    EVP_CIPHER_CTX_free(*c);
}

/* Fails with SYSTEM and OpenSSL's message; empties its error queue. */
int df_fail_ssl(struct df_err *err, const char *what);

#endif
