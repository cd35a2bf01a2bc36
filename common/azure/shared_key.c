#include "common/azure/shared_key.h"

#include "common/base/limits.h"
#include "common/crypto/crypto.h"

enum { KEY_MAX = 256 };

static int print_request(const struct df_azure_request *r, const char *account, struct df_buf *out,
                         struct df_err *err)
{
    (void)df_buf_addf(out, "%s\n\n\n", r->verb); /* no Content-Encoding, no Content-Language */
    if (r->content_length)
        (void)df_buf_addf(out, "%zu", r->content_length);
    (void)df_buf_addf(out, "\n%s\n%s\n\n\n%s\n%s\n\n\n", r->content_md5, r->content_type,
                      r->if_match, r->if_none_match);
    (void)df_buf_addf(out, "%s/%s%s", r->headers, account, r->path);
    for (size_t i = 0; i < r->query_len; i++)
        (void)df_buf_addf(out, "\n%s:%s", r->query[i].name, r->query[i].value);
    return df_buf_check(out, err);
}

int df_azure_sign(const struct df_azure_request *r, const char *account, const char *key,
                  struct df_buf *out, struct df_err *err)
{
    DF_CLEANUP(df_buf_wipe) struct df_buf secret = DF_BUF_INIT(KEY_MAX);
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_LIMIT_URL + 4 * DF_KIB);
    unsigned char digest[DF_SHA256_LEN];
    if (df_base64_decode(key, strlen(key), false, &secret, NULL) < 0 || !secret.len)
        return df_fail(err, DF_ERR_USER,
                       "AZURE_STORAGE_KEY is not the key of a storage account: "
                       "it must be base64");
    if (print_request(r, account, &text, err) < 0 ||
        df_hmac_sha256(secret.data, secret.len, text.data, text.len, digest, err) < 0)
        return -1;
    (void)df_buf_addf(out, "SharedKey %s:", account);
    return df_base64_encode(digest, sizeof(digest), false, out, err);
}
