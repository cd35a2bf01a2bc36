/*
 * aead.h - AES-256-GCM in place, shared by aead.c (one piece) and seal.c (files).
 */
#ifndef DF_CRYPTO_AEAD_H
#define DF_CRYPTO_AEAD_H

#include "common/crypto/crypto.h"

#define DF_GCM_NONCE DF_AEAD_BEFORE
#define DF_GCM_TAG ((size_t)16)

/* Encrypts n bytes (at most INT_MAX) in place and writes the tag after them: bytes has space for n
 * + DF_GCM_TAG. A nonce must never be used twice with the same key. */
int df_gcm_seal(const unsigned char key[DF_KEY_LEN], const unsigned char nonce[DF_GCM_NONCE],
                const char *aad, unsigned char *bytes, size_t n, struct df_err *err) DF_MUST_CHECK;

/* Decrypts n bytes in place; the tag follows them. DENIED if anything differs; then the bytes are
 * zeroed. */
int df_gcm_open(const unsigned char key[DF_KEY_LEN], const unsigned char nonce[DF_GCM_NONCE],
                const char *aad, unsigned char *bytes, size_t n, struct df_err *err) DF_MUST_CHECK;

#endif
