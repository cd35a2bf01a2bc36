/*
 * download.h - downloads of documents and files, repeated after temporary failures. Thread rule: as
 * for the df_http.
 */
#ifndef DF_HTTP_DOWNLOAD_H
#define DF_HTTP_DOWNLOAD_H

#include "common/http/http.h"

struct df_download {
    const char *url;
    int fd;            /* the file, which is emptied before each try; -1: into the answer */
    int64_t max_bytes; /* of the file: class LIMIT beyond; answers have the limit of http.h */
    const volatile bool *stop; /* or NULL */
};

/* *ret: the answer, if there is no file; or NULL. An exchange without a byte for 30 s is a failure.
 * Errors of df_http_send() and df_http_check(); messages name the URL. */
int df_download(struct df_http *http, const struct df_download *d, struct df_buf *ret,
                struct df_err *err) DF_MUST_CHECK;

#endif
