#include "runner/platform/spans.h"

#include <inttypes.h>

#include "runner/platform/deliver.h"

enum { INTERNAL = 1, STATUS_OK = 1, STATUS_ERROR = 2 }; /* numbers of OTLP */

void df_spans_free(struct df_spans *s)
{
    cJSON_Delete(DF_TAKE(s->waiting));
}

/* ---- one span ---- */

static cJSON *make_attribute(const char *key, const char *value)
{
    return df_json_object(DF_STR("key", key),
                          DF_ITEM("value", df_json_object(DF_STR("stringValue", value))));
}

static cJSON *make_attributes(const cJSON *from)
{
    DF_JSON cJSON *all = cJSON_CreateArray();
    for (const cJSON *a = from ? from->child : NULL; a; a = a->next) {
        if (cJSON_IsString(a) &&
            df_json_append(all, make_attribute(a->string, a->valuestring), NULL) < 0)
            return NULL;
    }
    return DF_TAKE(all);
}

static cJSON *make_span(const struct df_spans *s, const struct df_span *span)
{
    char from[32], to[32];
    (void)snprintf(from, sizeof(from), "%" PRId64 "000", span->from_us);
    (void)snprintf(to, sizeof(to), "%" PRId64 "000", span->to_us);
    cJSON *status = df_json_object(DF_NUM("code", span->error ? STATUS_ERROR : STATUS_OK),
                                   DF_STR("message", span->error));
    return df_json_object(
        DF_STR("traceId", s->trace), DF_STR("spanId", span->id),
        DF_STR("parentSpanId", *span->parent ? span->parent : NULL), DF_STR("name", span->name),
        DF_NUM("kind", INTERNAL), DF_STR("startTimeUnixNano", from), DF_STR("endTimeUnixNano", to),
        DF_ITEM("attributes", make_attributes(span->attributes)), DF_ITEM("status", status));
}

/* ---- a batch of them ---- */

static cJSON *array_of(cJSON *item)
{
    DF_JSON cJSON *array = cJSON_CreateArray();
    return df_json_append(array, item, NULL) < 0 ? NULL : DF_TAKE(array);
}

static cJSON *make_batch(cJSON *spans)
{
    DF_JSON cJSON *own = cJSON_CreateArray();
    if (df_json_append(own, make_attribute("service.name", "dayfly-platform"), NULL) < 0 ||
        df_json_append(own, make_attribute("service.version", DF_VERSION), NULL) < 0) {
        cJSON_Delete(spans);
        return NULL;
    }
    cJSON *scope = df_json_object(
        DF_ITEM("scope", df_json_object(DF_STR("name", "dayfly"), DF_STR("version", DF_VERSION))),
        DF_ITEM("spans", spans));
    cJSON *resource =
        df_json_object(DF_ITEM("resource", df_json_object(DF_ITEM("attributes", DF_TAKE(own)))),
                       DF_ITEM("scopeSpans", array_of(scope)));
    return df_json_object(DF_ITEM("resourceSpans", array_of(resource)));
}

static void send_waiting(struct df_spans *s)
{
    DF_JSON cJSON *batch = make_batch(DF_TAKE(s->waiting));
    DF_FREE char *body = df_json_print(batch);
    s->is_down = df_deliver(s->http,
                            &(struct df_delivery){.what = "spans",
                                                  .method = "POST",
                                                  .base = s->endpoint,
                                                  .path = "/v1/traces",
                                                  .body = body},
                            &s->why) < 0;
    s->lost += s->is_down ? s->n : 0;
    s->n = 0;
}

static void drop_waiting(struct df_spans *s)
{
    cJSON_Delete(DF_TAKE(s->waiting));
    s->lost += s->n;
    s->n = 0;
}

void df_spans_add(struct df_spans *s, const struct df_span *span)
{
    if (!s->endpoint)
        return;
    if (!s->waiting)
        s->waiting = cJSON_CreateArray();
    if (df_json_append(s->waiting, make_span(s, span), &s->why) < 0)
        s->lost++;
    else
        s->n++;
    if (s->n == DF_LIMIT_SPANS && s->is_down)
        drop_waiting(s);
    else if (s->n == DF_LIMIT_SPANS)
        send_waiting(s);
}

int df_spans_flush(struct df_spans *s, struct df_err *err)
{
    if (s->n)
        send_waiting(s);
    if (!s->lost)
        return 0;
    (void)df_err_wrap(&s->why, "spans lost: %zu", s->lost);
    return df_err_pass(err, &s->why);
}
