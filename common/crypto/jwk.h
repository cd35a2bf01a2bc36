/*
 * jwk.h - one key of a key set; used inside common/crypto only. Include it first: it brings
 * OpenSSL's headers, see ssl.h.
 */
#ifndef DF_CRYPTO_JWK_H
#define DF_CRYPTO_JWK_H

#include "common/crypto/ssl.h"

#include "common/crypto/jwt.h"

enum df_jwk_kind { DF_JWK_UNUSABLE, DF_JWK_RSA, DF_JWK_P256, DF_JWK_ED25519 };

#define DF_JWK_ALGORITHMS "RS256, ES256 and EdDSA"

struct df_jwk {
    enum df_jwk_kind kind;
    char *kid;     /* owned; "": it has none */
    EVP_PKEY *key; /* owned; NULL: UNUSABLE */
    char why[160]; /* UNUSABLE */
};

struct df_jwk_set {
    struct df_jwk *keys;
    size_t count;
};

/* The kind of key that signs by this algorithm of a token; UNUSABLE: it is none of
 * DF_JWK_ALGORITHMS. alg may be NULL. */
enum df_jwk_kind df_jwk_kind_of(const char *alg);

/* Returns the first key of this kid and kind; otherwise the first of this kid, of any kind;
 * otherwise NULL. kid NULL: the only key of this kind, if there is one (OpenID Connect Core 1.0,
 * 10.1: a token need not name it). */
const struct df_jwk *df_jwk_find(const struct df_jwk_set *set, const char *kid,
                                 enum df_jwk_kind kind);

#endif
