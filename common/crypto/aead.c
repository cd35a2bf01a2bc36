#include "common/crypto/ssl.h"

#include <limits.h>

#include "common/base/clock.h"
#include "common/crypto/aead.h"
#include "common/crypto/crypto.h"

static int start_cipher(EVP_CIPHER_CTX *c, int encrypt, const unsigned char *key,
                        const unsigned char *nonce, const char *aad)
{
    int n = 0;
    return EVP_CipherInit_ex(c, EVP_aes_256_gcm(), NULL, key, nonce, encrypt) == 1 &&
           EVP_CipherUpdate(c, NULL, &n, (const unsigned char *)aad, (int)strlen(aad)) == 1;
}

int df_gcm_seal(const unsigned char key[DF_KEY_LEN], const unsigned char nonce[DF_GCM_NONCE],
                const char *aad, unsigned char *bytes, size_t n, struct df_err *err)
{
    DF_CLEANUP(df_cleanup_cipher_ctx) EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
    if (!c)
        return df_fail_oom(err);
    int done = 0, rest = 0;
    if (!start_cipher(c, 1, key, nonce, aad) ||
        EVP_EncryptUpdate(c, bytes, &done, bytes, (int)n) != 1 ||
        EVP_EncryptFinal_ex(c, bytes + done, &rest) != 1 ||
        EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_GET_TAG, DF_GCM_TAG, bytes + n) != 1)
        return df_fail_ssl(err, "seal");
    return 0;
}

int df_gcm_open(const unsigned char key[DF_KEY_LEN], const unsigned char nonce[DF_GCM_NONCE],
                const char *aad, unsigned char *bytes, size_t n, struct df_err *err)
{
    DF_CLEANUP(df_cleanup_cipher_ctx) EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
    if (!c)
        return df_fail_oom(err);
    int done = 0, rest = 0;
    if (!start_cipher(c, 0, key, nonce, aad) ||
        EVP_DecryptUpdate(c, bytes, &done, bytes, (int)n) != 1 ||
        EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_SET_TAG, DF_GCM_TAG, bytes + n) != 1)
        return df_fail_ssl(err, "open sealed bytes");
    if (EVP_DecryptFinal_ex(c, bytes + done, &rest) == 1)
        return 0;
    explicit_bzero(bytes, n);
    return df_fail(err, DF_ERR_DENIED,
                   "the sealed bytes were changed, or belong to another key or place");
}

int df_aead_seal_here(const unsigned char key[DF_KEY_LEN], const char *aad, struct df_buf *b,
                      struct df_err *err)
{
    size_t n = b->len - DF_AEAD_BEFORE;
    if (b->len < DF_AEAD_BEFORE)
        DF_BUG("%zu bytes to seal have no room for a nonce", b->len);
    if (n > INT_MAX)
        return df_fail(err, DF_ERR_LIMIT, "%zu bytes are too many to seal at once", n);
    if (!df_buf_reserve(b, DF_GCM_TAG))
        return df_buf_check(b, err);
    unsigned char *bytes = (unsigned char *)b->data;
    if (df_random(bytes, DF_GCM_NONCE, err) < 0 ||
        df_gcm_seal(key, bytes, aad, bytes + DF_GCM_NONCE, n, err) < 0) {
        explicit_bzero(bytes, b->len);
        return -1;
    }
    b->len += DF_GCM_TAG;
    b->data[b->len] = '\0';
    return 0;
}

int df_aead_seal(const unsigned char key[DF_KEY_LEN], const char *aad, const void *bytes, size_t n,
                 struct df_buf *out, struct df_err *err)
{
    if (n > INT_MAX)
        return df_fail(err, DF_ERR_LIMIT, "%zu bytes are too many to seal at once", n);
    unsigned char *to = (unsigned char *)df_buf_reserve(out, DF_GCM_NONCE + n + DF_GCM_TAG);
    if (!to)
        return df_buf_check(out, err);
    if (df_random(to, DF_GCM_NONCE, err) < 0)
        return -1;
    if (n)
        memcpy(to + DF_GCM_NONCE, bytes, n);
    if (df_gcm_seal(key, to, aad, to + DF_GCM_NONCE, n, err) < 0) {
        explicit_bzero(to, DF_GCM_NONCE + n);
        return -1;
    }
    out->len += DF_GCM_NONCE + n + DF_GCM_TAG;
    out->data[out->len] = '\0';
    return 0;
}

static int fail_cut(struct df_err *err)
{
    return df_fail(err, DF_ERR_DENIED, "the sealed bytes are cut");
}

int df_aead_open_here(const unsigned char key[DF_KEY_LEN], const char *aad, struct df_buf *b,
                      const char **ret_text, size_t *ret_n, struct df_err *err)
{
    if (b->len < DF_GCM_NONCE + DF_GCM_TAG || b->len > INT_MAX)
        return fail_cut(err);
    unsigned char *bytes = (unsigned char *)b->data;
    size_t n = b->len - DF_GCM_NONCE - DF_GCM_TAG;
    if (df_gcm_open(key, bytes, aad, bytes + DF_GCM_NONCE, n, err) < 0)
        return -1;
    *ret_text = b->data + DF_GCM_NONCE;
    *ret_n = n;
    return 0;
}

int df_aead_open(const unsigned char key[DF_KEY_LEN], const char *aad, const void *bytes, size_t n,
                 struct df_buf *out, struct df_err *err)
{
    if (n < DF_GCM_NONCE + DF_GCM_TAG || n > INT_MAX)
        return fail_cut(err);
    size_t behind_nonce = n - DF_GCM_NONCE, length = behind_nonce - DF_GCM_TAG;
    unsigned char *to = (unsigned char *)df_buf_reserve(out, behind_nonce);
    if (!to)
        return df_buf_check(out, err);
    memcpy(to, (const unsigned char *)bytes + DF_GCM_NONCE, behind_nonce);
    if (df_gcm_open(key, bytes, aad, to, length, err) < 0)
        return -1;
    out->len += length;
    out->data[out->len] = '\0';
    return 0;
}
