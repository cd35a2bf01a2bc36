/*
 * shared_key.h - the signature "Shared Key" of Azure's Blob service, version 2015-02-21 and later.
 * Source: "Authorize with Shared Key" of the documentation of Azure Storage.
 * Thread rule: pure functions.
 */
#ifndef DF_AZURE_SHARED_KEY_H
#define DF_AZURE_SHARED_KEY_H

#include "common/http/http.h"

/* What of a request is signed. All borrowed; texts that a request does not have are "". */
struct df_azure_request {
    const char *verb;
    size_t content_length;
    const char *content_md5, *content_type, *if_match, *if_none_match;
    const char *headers; /* x-ms-..., each "name:value\n", lower-case and sorted by name */
    const char *path;    /* of the URL, as it is sent */
    const struct df_http_parameter *query; /* sorted by name */
    size_t query_len;
};

/* Appends the value of the header Authorization to out. key: the account's, in base64; USER if it
 * is not. */
int df_azure_sign(const struct df_azure_request *r, const char *account, const char *key,
                  struct df_buf *out, struct df_err *err) DF_MUST_CHECK;

#endif
