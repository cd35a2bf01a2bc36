/*
 * crypto.h - digests, encodings and authenticated encryption over OpenSSL. Thread rule: any thread;
 * a context is used by one thread at a time.
 */
#ifndef DF_CRYPTO_H
#define DF_CRYPTO_H

#include "common/base/buf.h"

#define DF_SHA256_LEN 32
#define DF_SHA256_HEX 65 /* 64 digits and the NUL */
#define DF_MD5_LEN 16

int df_sha256(const void *bytes, size_t n, unsigned char out[DF_SHA256_LEN],
              struct df_err *err) DF_MUST_CHECK;
int df_sha256_hex(const void *bytes, size_t n, char out[DF_SHA256_HEX],
                  struct df_err *err) DF_MUST_CHECK;
/* Digests the file from its start to its end; ret_size may be NULL. */
int df_sha256_file_hex(int fd, char out[DF_SHA256_HEX], int64_t *ret_size,
                       struct df_err *err) DF_MUST_CHECK;
int df_hmac_sha256(const void *key, size_t key_len, const void *bytes, size_t n,
                   unsigned char out[DF_SHA256_LEN], struct df_err *err) DF_MUST_CHECK;
int df_md5(const void *bytes, size_t n, unsigned char out[DF_MD5_LEN],
           struct df_err *err) DF_MUST_CHECK;
int df_md5_file(int fd, unsigned char out[DF_MD5_LEN], struct df_err *err) DF_MUST_CHECK;

/* Incremental SHA-256. */
struct df_sha256_ctx; /* opaque */
int df_sha256_new(struct df_sha256_ctx **ret, struct df_err *err) DF_MUST_CHECK;
void df_sha256_free(struct df_sha256_ctx *c);
int df_sha256_update(struct df_sha256_ctx *c, const void *bytes, size_t n,
                     struct df_err *err) DF_MUST_CHECK;
int df_sha256_final_hex(struct df_sha256_ctx *c, char out[DF_SHA256_HEX],
                        struct df_err *err) DF_MUST_CHECK;

/* Standard base64 with padding, or with url the URL alphabet without. Decoding refuses other bytes
 * with class USER. */
int df_base64_encode(const void *bytes, size_t n, bool url, struct df_buf *out,
                     struct df_err *err) DF_MUST_CHECK;
int df_base64_decode(const char *text, size_t n, bool url, struct df_buf *out,
                     struct df_err *err) DF_MUST_CHECK;

/* AES-256-GCM with a random nonce before the text and the tag after it. aad binds the text to its
 * purpose. Opening fails with DENIED if text, key or aad differ. */
#define DF_KEY_LEN 32
int df_aead_seal(const unsigned char key[DF_KEY_LEN], const char *aad, const void *bytes, size_t n,
                 struct df_buf *out, struct df_err *err) DF_MUST_CHECK;
int df_aead_open(const unsigned char key[DF_KEY_LEN], const char *aad, const void *bytes, size_t n,
                 struct df_buf *out, struct df_err *err) DF_MUST_CHECK;
/* The same in place. Sealing: b has the text behind DF_AEAD_BEFORE bytes of anything, and then the
 * sealed bytes. Opening: b has the sealed bytes; the text is a part of it, borrowed. */
#define DF_AEAD_BEFORE ((size_t)12)
int df_aead_seal_here(const unsigned char key[DF_KEY_LEN], const char *aad, struct df_buf *b,
                      struct df_err *err) DF_MUST_CHECK;
int df_aead_open_here(const unsigned char key[DF_KEY_LEN], const char *aad, struct df_buf *b,
                      const char **ret_text, size_t *ret_n, struct df_err *err) DF_MUST_CHECK;

/* The same for files of any size: chunks of 1 MiB, each bound to its number and to whether it is
 * the last, so that cut, moved, repeated or swapped chunks fail. Reads in_fd (a regular file) from
 * its start, or from where the sealed bytes begin, and writes at out_fd's current offset. What
 * df_open_file() wrote before it failed is genuine but incomplete: discard it. seal.c describes the
 * format. df_sealed_file(): does the file begin as a sealed one does? */
int df_seal_file(const unsigned char key[DF_KEY_LEN], const char *aad, int in_fd, int out_fd,
                 struct df_err *err) DF_MUST_CHECK;
int df_open_file(const unsigned char key[DF_KEY_LEN], const char *aad, int in_fd, int64_t begin,
                 int out_fd, struct df_err *err) DF_MUST_CHECK;
/* The size of a file of n bytes when it is sealed. */
int64_t df_sealed_size(int64_t n);
int df_sealed_file(int fd, bool *ret, struct df_err *err) DF_MUST_CHECK;

/* Derives the key for a purpose ("plan", "vault") from the master key: HKDF-SHA-256 without salt,
 * info "dayfly/<purpose>". The caller wipes it. */
int df_derive_key(const unsigned char master[DF_KEY_LEN], const char *purpose,
                  unsigned char out[DF_KEY_LEN], struct df_err *err) DF_MUST_CHECK;

/* The length of a key's text in a key file: 64 hex digits and a newline. */
#define DF_KEY_TEXT (2 * (size_t)DF_KEY_LEN + 1)
/* Makes a random key as text with a NUL. The caller wipes it. */
int df_key_make(char out[DF_KEY_TEXT + 1], struct df_err *err) DF_MUST_CHECK;
/* -1 if it is not the text of a key. The caller wipes the key. */
int df_key_parse(const char *text, size_t n, unsigned char out[DF_KEY_LEN]) DF_MUST_CHECK;

/* Loads the 32-byte key file (64 hex digits and a newline, mode 0600 or stricter), creating it if
 * absent. SYSTEM if it is damaged or readable by others; it is never replaced. */
int df_key_file(const char *path, unsigned char out[DF_KEY_LEN], struct df_err *err) DF_MUST_CHECK;

#endif
