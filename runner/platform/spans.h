/*
 * spans.h - spans on their way to a collector: OTLP over HTTP, as JSON.
 *
 * They are sent when DF_LIMIT_SPANS of them have come together, and on request. What a collector
 * does not take is lost; it is not asked again then until the last request, so that one that hangs
 * delays an action twice at most. Thread rule: main thread.
 */
#ifndef DF_PLATFORM_SPANS_H
#define DF_PLATFORM_SPANS_H

#include "common/http/http.h"
#include "common/json/json.h"

/* All borrowed. */
struct df_span {
    const char *id, *parent, *name; /* ids: 16 hex digits; parent "": none */
    int64_t from_us, to_us;         /* real */
    const cJSON *attributes;        /* an object of strings; or NULL */
    const char *error;              /* why it failed; NULL: it did not */
};

struct df_spans {
    const char *endpoint; /* borrowed; NULL: spans are not kept */
    const char *trace;    /* borrowed */
    struct df_http *http; /* borrowed */
    cJSON *waiting;       /* owned array of n; or NULL */
    size_t n, lost;
    bool is_down;      /* the collector did not take the last batch */
    struct df_err why; /* something was lost */
};
/* Ends without sending what waits. */
void df_spans_free(struct df_spans *s);

/* What is lost is counted. */
void df_spans_add(struct df_spans *s, const struct df_span *span);

/* Sends what waits, once. The message tells how many spans were lost since the start, and why. */
int df_spans_flush(struct df_spans *s, struct df_err *err) DF_MUST_CHECK;

#endif
