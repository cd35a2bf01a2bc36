/*
 * target.h - the parsed URL of an exchange, and what its parts allow. Internal to common/http.
 * Thread rule: a target is used by one thread at a time.
 */
#ifndef DF_HTTP_TARGET_H
#define DF_HTTP_TARGET_H

#include <curl/curl.h>

#include "common/base/err.h"

struct df_http_target {
    CURLU *url;    /* owned */
    char *shown;   /* owned: for messages, without query and fragment */
    char *origin;  /* owned: the original "https://host:port", the only one that gets credentials */
    bool trusted;  /* url still has that origin */
    bool secure;   /* url is https */
    bool loopback; /* the host is this machine, by its address or as localhost */
    bool link_local; /* the host is an address of the link, as those of metadata services are */
};

void df_http_target_free(struct df_http_target *t);
#define DF_HTTP_TARGET DF_CLEANUP(df_http_target_free)

/* USER: not a URL, an unsupported scheme, or credentials in the URL. */
int df_http_target_parse(const char *url, bool allow_file, struct df_http_target *ret,
                         struct df_err *err) DF_MUST_CHECK;

/* Moves t to the target of a Location header, relative to its current URL. USER if the scheme is
 * not http(s), or would change from https to http; if the new host is this machine and the last one
 * was not, or is another address of the link. Names are not resolved for that. */
int df_http_target_redirect(struct df_http_target *t, const char *location,
                            struct df_err *err) DF_MUST_CHECK;

#endif
