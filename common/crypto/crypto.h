/*
 * crypto.h - digests, encodings and authenticated encryption over OpenSSL.
 * Thread rule: any thread; one context, one thread.
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
/* From the start of the file to its end; size may be NULL. */
int df_sha256_file_hex(int fd, char out[DF_SHA256_HEX], int64_t *ret_size,
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

/* Standard base64 with padding (url: the URL alphabet without). Decoding refuses foreign bytes,
 * class USER. */
int df_base64_encode(const void *bytes, size_t n, bool url, struct df_buf *out,
                     struct df_err *err) DF_MUST_CHECK;
int df_base64_decode(const char *text, size_t n, bool url, struct df_buf *out,
                     struct df_err *err) DF_MUST_CHECK;

/* AES-256-GCM with a random nonce in front of the text and the tag behind it; aad binds it to its
 * place. Opening what was changed, or with another key or aad: class DENIED. */
#define DF_KEY_LEN 32
int df_aead_seal(const unsigned char key[DF_KEY_LEN], const char *aad, const void *bytes, size_t n,
                 struct df_buf *out, struct df_err *err) DF_MUST_CHECK;
int df_aead_open(const unsigned char key[DF_KEY_LEN], const char *aad, const void *bytes, size_t n,
                 struct df_buf *out, struct df_err *err) DF_MUST_CHECK;

/* The same for files of any size: chunks of 1 MiB, each bound to its number and to being the last,
 * so that cut, moved, repeated or swapped chunks fail. Reads in_fd (a regular file) from its start,
 * writes to out_fd's current offset. What df_open_file wrote before it failed is genuine but not
 * whole: drop it. The format is described in seal.c. */
int df_seal_file(const unsigned char key[DF_KEY_LEN], const char *aad, int in_fd, int out_fd,
                 struct df_err *err) DF_MUST_CHECK;
int df_open_file(const unsigned char key[DF_KEY_LEN], const char *aad, int in_fd, int out_fd,
                 struct df_err *err) DF_MUST_CHECK;

/* A key of a purpose ("plan", "vault") out of the master key: HKDF-SHA-256 without salt, info
 * "dayfly/<purpose>". The caller wipes it. */
int df_derive_key(const unsigned char master[DF_KEY_LEN], const char *purpose,
                  unsigned char out[DF_KEY_LEN], struct df_err *err) DF_MUST_CHECK;

/* The text of a key, as it lies in a key file: 64 hex digits and a newline. */
#define DF_KEY_TEXT (2 * (size_t)DF_KEY_LEN + 1)
/* A new random key as text, and a NUL. The caller wipes it. */
int df_key_make(char out[DF_KEY_TEXT + 1], struct df_err *err) DF_MUST_CHECK;
/* -1 when it is no such text. The caller wipes the key. */
int df_key_parse(const char *text, size_t n, unsigned char out[DF_KEY_LEN]) DF_MUST_CHECK;

/* Loads the 32-byte key file (64 hex digits and a newline, mode 0600 or stricter), making it when
 * absent. Class SYSTEM when it is damaged or readable by others: it is never replaced. */
int df_key_file(const char *path, unsigned char out[DF_KEY_LEN], struct df_err *err) DF_MUST_CHECK;

#endif
