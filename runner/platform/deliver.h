/*
 * deliver.h - one document for somebody who watches an action: a collector of spans, a
 * Pushgateway, an Alertmanager. Thread rule: that of the df_http.
 */
#ifndef DF_PLATFORM_DELIVER_H
#define DF_PLATFORM_DELIVER_H

#include "common/http/http.h"

struct df_delivery {
    const char *what;   /* "the spans", for messages */
    const char *method; /* "POST" */
    const char *base;   /* the URL that the user gave; a slash at its end does not matter */
    const char *path;   /* "/v1/traces"; NULL counts as out of memory */
    const char *type;   /* NULL: JSON */
    const char *body;   /* NULL counts as out of memory */
};
/* Sends it once, with a short timeout. Errors of df_http_send() and df_http_check(). */
int df_deliver(struct df_http *http, const struct df_delivery *d, struct df_err *err) DF_MUST_CHECK;

#endif
