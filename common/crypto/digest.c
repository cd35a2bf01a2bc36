#include "common/crypto/ssl.h"

#include <openssl/hmac.h>

#include <errno.h>

#include "common/base/parse.h"
#include "common/crypto/crypto.h"

struct df_sha256_ctx {
    EVP_MD_CTX *md;
};

int df_fail_ssl(struct df_err *err, const char *what)
{
    char text[256];
    ERR_error_string_n(ERR_get_error(), text, sizeof(text));
    ERR_clear_error();
    return df_fail(err, DF_ERR_SYSTEM, "%s: %s", what, text);
}

int df_sha256(const void *bytes, size_t n, unsigned char out[DF_SHA256_LEN], struct df_err *err)
{
    if (EVP_Digest(bytes, n, out, NULL, EVP_sha256(), NULL) != 1)
        return df_fail_ssl(err, "SHA-256");
    return 0;
}

int df_sha256_hex(const void *bytes, size_t n, char out[DF_SHA256_HEX], struct df_err *err)
{
    unsigned char digest[DF_SHA256_LEN];
    if (df_sha256(bytes, n, digest, err) < 0)
        return -1;
    df_hex(digest, sizeof(digest), out);
    return 0;
}

int df_sha256_new(struct df_sha256_ctx **ret, struct df_err *err)
{
    DF_FREE struct df_sha256_ctx *c = calloc(1, sizeof(*c));
    if (!c)
        return df_fail_oom(err);
    c->md = EVP_MD_CTX_new();
    if (!c->md)
        return df_fail_oom(err);
    if (EVP_DigestInit_ex(c->md, EVP_sha256(), NULL) != 1) {
        EVP_MD_CTX_free(c->md);
        return df_fail_ssl(err, "SHA-256");
    }
    *ret = DF_TAKE(c);
    return 0;
}

void df_sha256_free(struct df_sha256_ctx *c)
{
    if (!c)
        return;
    EVP_MD_CTX_free(c->md);
    free(c);
}

int df_sha256_update(struct df_sha256_ctx *c, const void *bytes, size_t n, struct df_err *err)
{
    return EVP_DigestUpdate(c->md, bytes, n) == 1 ? 0 : df_fail_ssl(err, "SHA-256");
}

int df_sha256_final_hex(struct df_sha256_ctx *c, char out[DF_SHA256_HEX], struct df_err *err)
{
    unsigned char digest[DF_SHA256_LEN];
    if (EVP_DigestFinal_ex(c->md, digest, NULL) != 1)
        return df_fail_ssl(err, "SHA-256");
    df_hex(digest, sizeof(digest), out);
    return 0;
}

/* Digests the whole file from its start, whatever the descriptor's offset is. */
static int digest_file(EVP_MD_CTX *md, int fd, int64_t *ret_size, struct df_err *err)
{
    enum { PIECE = 128 * 1024 };
    DF_FREE char *piece = malloc(PIECE);
    if (!piece)
        return df_fail_oom(err);
    int64_t at = 0;
    for (;;) {
        ssize_t n = pread(fd, piece, PIECE, at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return df_fail_errno(err, errno, "read");
        if (n == 0)
            break;
        if (EVP_DigestUpdate(md, piece, (size_t)n) != 1)
            return df_fail_ssl(err, "digest");
        at += n;
    }
    *ret_size = at;
    return 0;
}

static int digest_of_file(const EVP_MD *type, int fd, unsigned char *out, int64_t *ret_size,
                          struct df_err *err)
{
    DF_CLEANUP(df_cleanup_md_ctx) EVP_MD_CTX *md = EVP_MD_CTX_new();
    if (!md)
        return df_fail_oom(err);
    if (EVP_DigestInit_ex(md, type, NULL) != 1)
        return df_fail_ssl(err, "digest");
    if (digest_file(md, fd, ret_size, err) < 0)
        return -1;
    return EVP_DigestFinal_ex(md, out, NULL) == 1 ? 0 : df_fail_ssl(err, "digest");
}

int df_sha256_file_hex(int fd, char out[DF_SHA256_HEX], int64_t *ret_size, struct df_err *err)
{
    unsigned char digest[DF_SHA256_LEN];
    int64_t size = 0;
    if (digest_of_file(EVP_sha256(), fd, digest, &size, err) < 0)
        return -1;
    df_hex(digest, sizeof(digest), out);
    if (ret_size)
        *ret_size = size;
    return 0;
}

int df_hmac_sha256(const void *key, size_t key_len, const void *bytes, size_t n,
                   unsigned char out[DF_SHA256_LEN], struct df_err *err)
{
    return HMAC(EVP_sha256(), key, (int)key_len, bytes, n, out, NULL) ? 0
                                                                      : df_fail_ssl(err, "HMAC");
}

int df_md5(const void *bytes, size_t n, unsigned char out[DF_MD5_LEN], struct df_err *err)
{
    return EVP_Digest(bytes, n, out, NULL, EVP_md5(), NULL) == 1 ? 0 : df_fail_ssl(err, "MD5");
}

int df_md5_file(int fd, unsigned char out[DF_MD5_LEN], struct df_err *err)
{
    int64_t size = 0;
    return digest_of_file(EVP_md5(), fd, out, &size, err);
}
