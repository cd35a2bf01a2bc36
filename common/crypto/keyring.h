/*
 * keyring.h - the keys of content at rest: the first seals, every one opens. So a key is replaced
 * by putting the new one in front; what the old one sealed stays readable without being rewritten.
 *
 * Sealed content is "dfk1", 8 bytes that name the key (derived from it), and AES-256-GCM as
 * df_aead_seal() writes it. Thread rule: any thread, once it is filled.
 */
#ifndef DF_KEYRING_H
#define DF_KEYRING_H

#include "common/base/limits.h"
#include "common/crypto/crypto.h"

struct df_keyring {
    struct df_keyring_key {
        unsigned char id[8];
        unsigned char key[DF_KEY_LEN];
    } keys[DF_LIMIT_KEYRING];
    size_t len; /* >= 1 before it seals */
};

/* Adds a key behind the others (copied). LIMIT if there are too many. */
int df_keyring_add(struct df_keyring *r, const unsigned char key[DF_KEY_LEN],
                   struct df_err *err) DF_MUST_CHECK;
void df_keyring_wipe(struct df_keyring *r); /* empty afterwards */
#define DF_KEYRING DF_CLEANUP(df_keyring_wipe) struct df_keyring

/* Appends the sealed bytes to out; aad binds them to their place. */
int df_keyring_seal(const struct df_keyring *r, const char *aad, const void *bytes, size_t n,
                    struct df_buf *out, struct df_err *err) DF_MUST_CHECK;

/* The index of the key that sealed this content, by its first bytes; r->len: none of the ring, or
 * it is not sealed. */
size_t df_keyring_find(const struct df_keyring *r, const void *bytes, size_t n);

/* Appends the opened bytes to out. DENIED: no key of the ring sealed them (reason "UnknownKey"), or
 * bytes or aad differ. */
int df_keyring_open(const struct df_keyring *r, const char *aad, const void *bytes, size_t n,
                    struct df_buf *out, struct df_err *err) DF_MUST_CHECK;

#endif
