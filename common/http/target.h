/*
 * target.h - where an exchange of http.c goes: a parsed URL and what its parts allow.
 * Internal to common/http. Thread rule: one target, one thread.
 */
#ifndef DF_HTTP_TARGET_H
#define DF_HTTP_TARGET_H

#include <curl/curl.h>

#include "common/base/err.h"

struct df_http_target {
    CURLU *url;    /* owned */
    char *shown;   /* owned: for messages, without query and fragment */
    char *origin;  /* owned: "https://host:port" as asked first, where credentials may go */
    bool trusted;  /* url still has that origin */
    bool secure;   /* url is https */
    bool loopback; /* the host is this machine */
};

void df_http_target_free(struct df_http_target *t);
#define DF_HTTP_TARGET DF_CLEANUP(df_http_target_free)

/* Class USER: no URL, a scheme that is not spoken, credentials inside. */
int df_http_target_parse(const char *url, bool allow_file, struct df_http_target *ret,
                         struct df_err *err) DF_MUST_CHECK;

/* Moves t to where a Location header points, relative to where it is. Class USER when it leads to
 * another scheme than http(s) or from https to http. */
int df_http_target_redirect(struct df_http_target *t, const char *location,
                            struct df_err *err) DF_MUST_CHECK;

#endif
