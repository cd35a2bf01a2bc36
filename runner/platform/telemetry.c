/*
 * telemetry.c - the metrics of an action and where they go, its root span, and the notice of its
 * failure.
 */
#include "runner/platform/telemetry.h"

#include <inttypes.h>

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/metrics/metrics.h"
#include "runner/platform/deliver.h"
#include "runner/platform/scrape.h"

struct df_telemetry {
    const struct df_platform_input *in;
    struct df_http *http;     /* NULL: nothing is to be sent */
    struct df_scrape *scrape; /* NULL: not served */
    struct df_spans spans;
    struct df_trace_ids ids;
    uint64_t next_id;                     /* of a span */
    const struct df_component *component; /* borrowed: whose writes come; NULL: the action's */
    int64_t started_us, started_mono_us;
    struct df_metric *duration, *status, *health, *errors;
};

/* ---- metrics ---- */

enum status { RUNNING = 1, SUCCESS, PARTIAL, FAILURE }; /* executor_action_status; 0: pending */

static void declare(struct df_telemetry *t)
{
    static const double bounds[] = {1, 5, 15, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200};
    t->duration =
        df_metric_histogram("executor_action_duration_seconds", "How long actions took, by result.",
                            "action,result", bounds, DF_ARRAY_SIZE(bounds));
    t->status = df_metric_gauge("executor_action_status",
                                "0 pending, 1 running, 2 success, 3 partial, 4 failure.", NULL);
    t->health = df_metric_gauge("executor_component_health",
                                "1 healthy, 0.5 progressing or degraded, 0 missing or failed.",
                                "component");
    t->errors = df_metric_counter("executor_errors_total", "Errors, by their type.", "type");
}

static double health_of(const struct df_platform_input *in, const struct df_component *c)
{
    if (c->state == DF_COMPONENT_FAILED || df_streq(c->health, "Missing"))
        return 0;
    if (c->state == DF_COMPONENT_DONE)
        return in->action != DF_PLATFORM_TEARDOWN; /* then it is gone */
    if (c->state == DF_COMPONENT_SKIPPED && !*c->health)
        return 0;
    return c->state == DF_COMPONENT_SKIPPED && df_streq(c->health, "Healthy") ? 1 : 0.5;
}

void df_telemetry_component(struct df_telemetry *t, const struct df_component *c)
{
    if (!df_input_only_shows(t->in)) /* what is not done has no health */
        df_metric_set(t->health, c->node->name, health_of(t->in, c));
}

void df_telemetry_error(struct df_telemetry *t, const char *type)
{
    df_metric_add(t->errors, df_str_empty(type) ? "Unknown" : type, 1);
}

/* ---- spans ---- */

const char *df_telemetry_trace(const struct df_telemetry *t)
{
    return t->ids.trace;
}

const char *df_telemetry_root(const struct df_telemetry *t)
{
    return t->ids.own;
}

/* The first is random; the others count on from it, which cannot fail. */
void df_telemetry_new_span(struct df_telemetry *t, struct df_span_id *ret)
{
    (void)snprintf(ret->hex, sizeof(ret->hex), "%016" PRIx64, t->next_id++);
}

void df_telemetry_span(struct df_telemetry *t, const struct df_span *span)
{
    struct df_span told = *span;
    if (!told.parent)
        told.parent = t->ids.own;
    df_spans_add(&t->spans, &told);
}

void df_telemetry_enter(struct df_telemetry *t, const struct df_component *c)
{
    t->component = c;
    df_log_component(c ? c->node->name : NULL, c ? c->span.hex : NULL);
}

void df_telemetry_write(struct df_telemetry *t, const char *verb, const struct df_kube_at *at,
                        int64_t from_us, const char *error)
{
    struct df_span_id id;
    if (!t->spans.endpoint)
        return;
    DF_FREE char *name = df_strf("%s %s", verb, at->resource->plural);
    DF_JSON cJSON *attributes =
        df_json_object(DF_STR("namespace", at->name_space), DF_STR("name", at->name));
    df_telemetry_new_span(t, &id);
    df_telemetry_span(t, &(struct df_span){.id = id.hex,
                                           .parent = t->component ? t->component->span.hex : NULL,
                                           .name = name ? name : verb,
                                           .from_us = from_us,
                                           .to_us = df_real_us(),
                                           .attributes = attributes,
                                           .error = error});
}

/* ---- start ---- */

static int make_ids(struct df_telemetry *t, struct df_err *err)
{
    t->ids = t->in->trace;
    if (df_random(&t->next_id, sizeof(t->next_id), err) < 0 ||
        (!*t->ids.trace && df_random_hex(t->ids.trace, 16, err) < 0) ||
        (!*t->ids.own && df_random_hex(t->ids.own, 8, err) < 0))
        return -1;
    return 0;
}

static void start_scrape(struct df_telemetry *t)
{
    struct df_err err = {0};
    if (df_scrape_start(t->in->metrics_addr, &t->scrape, &err) < 0)
        df_warn("METRICS_ADDR: the metrics are not served: %s", err.message);
    else
        df_info("metrics are served on port %u, at /metrics", df_scrape_port(t->scrape));
}

static int fill(struct df_telemetry *t, struct df_err *err)
{
    const struct df_http_options options = {.ca_file = NULL};
    const struct df_platform_input *in = t->in;
    bool sends = in->otlp_endpoint || in->pushgateway_url || in->alertmanager_url;
    if (make_ids(t, err) < 0 || (sends && df_http_new(&options, &t->http, err) < 0))
        return -1;
    t->started_us = df_real_us();
    t->started_mono_us = df_mono_us();
    t->spans =
        (struct df_spans){.endpoint = in->otlp_endpoint, .trace = t->ids.trace, .http = t->http};
    return 0;
}

int df_telemetry_start(const struct df_platform_input *in, struct df_telemetry **ret,
                       struct df_err *err)
{
    struct df_telemetry *t = calloc(1, sizeof(*t));
    if (!t)
        return df_fail_oom(err);
    t->in = in;
    if (fill(t, err) < 0) {
        df_telemetry_free(t);
        return -1;
    }
    df_log_trace(t->ids.trace, t->ids.own);
    declare(t);
    df_metric_set(t->status, NULL, RUNNING);
    if (in->metrics_addr)
        start_scrape(t);
    *ret = t;
    return 0;
}

/* ---- end ---- */

static void end_root(struct df_telemetry *t, enum df_result result, const char *summary)
{
    const struct df_platform_input *in = t->in;
    DF_JSON cJSON *attributes =
        df_json_object(DF_STR("name", in->name), DF_STR("environment", in->environment),
                       DF_STR("scope", in->scope.text), DF_STR("result", df_result_name(result)));
    df_spans_add(&t->spans,
                 &(struct df_span){.id = t->ids.own,
                                   .parent = t->ids.parent,
                                   .name = df_platform_action_names[in->action],
                                   .from_us = t->started_us,
                                   .to_us = df_real_us(),
                                   .attributes = attributes,
                                   .error = result == DF_RESULT_SUCCESS ? NULL : summary});
}

static void end_metrics(struct df_telemetry *t, enum df_result result)
{
    static const enum status ends_as[] = {SUCCESS, FAILURE, PARTIAL, FAILURE, FAILURE};
    char labels[64];
    (void)snprintf(labels, sizeof(labels), "%s,%s", df_platform_action_names[t->in->action],
                   df_result_name(result));
    df_metric_observe(t->duration, labels, (double)(df_mono_us() - t->started_mono_us) / 1e6);
    df_metric_set(t->status, NULL, ends_as[result]);
}

static int push(struct df_telemetry *t, const char *text, struct df_err *err)
{
    DF_FREE char *name = df_url_escape(t->in->name ? t->in->name : "unknown");
    DF_FREE char *path = df_strf("/metrics/job/dayfly-platform/instance/%s", name ? name : "");
    return df_deliver(t->http,
                      &(struct df_delivery){.what = "metrics",
                                            .method = "PUT",
                                            .base = t->in->pushgateway_url,
                                            .path = name ? path : NULL,
                                            .type = "text/plain; version=0.0.4",
                                            .body = text},
                      err);
}

static void leave_metrics(struct df_telemetry *t)
{
    const char *file = t->in->metrics_textfile;
    struct df_err err = {0};
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_LIMIT_METRICS_TEXT);
    if (!file && !t->in->pushgateway_url)
        return;
    if (df_metrics_write(&text, &err) < 0)
        df_warn("the metrics cannot be written: %s", err.message);
    else if (file && df_fs_write(file, text.data, text.len, 0644, &err) < 0)
        df_warn("METRICS_TEXTFILE: %s", err.message);
    if (!text.failed && t->in->pushgateway_url && push(t, df_buf_str(&text), &err) < 0)
        df_warn("PUSHGATEWAY_URL: %s", err.message);
}

static cJSON *make_alert(const struct df_telemetry *t, enum df_result result, const char *summary)
{
    char at[DF_TIME_LEN];
    const struct df_platform_input *in = t->in;
    cJSON *labels =
        df_json_object(DF_STR("alertname", "DayflyPlatformActionFailed"),
                       DF_STR("action", df_platform_action_names[in->action]),
                       DF_STR("environment", in->environment), DF_STR("name", in->name),
                       DF_STR("result", df_result_name(result)),
                       DF_STR("severity", result == DF_RESULT_PARTIAL ? "warning" : "critical"));
    return df_json_object(DF_ITEM("labels", labels),
                          DF_ITEM("annotations", df_json_object(DF_STR("summary", summary))),
                          DF_STR("startsAt", df_time_format(df_real_us(), at)));
}

static int give_notice(struct df_telemetry *t, enum df_result result, const char *summary,
                       struct df_err *err)
{
    DF_JSON cJSON *alerts = cJSON_CreateArray();
    if (df_json_append(alerts, make_alert(t, result, summary), err) < 0)
        return -1;
    DF_FREE char *body = df_json_print(alerts);
    return df_deliver(t->http,
                      &(struct df_delivery){.what = "the notice of a failure",
                                            .method = "POST",
                                            .base = t->in->alertmanager_url,
                                            .path = "/api/v2/alerts",
                                            .body = body},
                      err);
}

void df_telemetry_end(struct df_telemetry *t, enum df_result result, const char *summary)
{
    struct df_err err = {0};
    char own[64];
    (void)snprintf(own, sizeof(own), "%s ended with %s", df_platform_action_names[t->in->action],
                   df_result_name(result));
    const char *told = df_str_empty(summary) ? own : summary;
    /* Who gave an invalid input reads it at once: nobody else needs a notice. */
    bool is_news = result != DF_RESULT_SUCCESS && result != DF_RESULT_INVALID;
    end_metrics(t, result);
    leave_metrics(t);
    end_root(t, result, told);
    if (df_spans_flush(&t->spans, &err) < 0)
        df_warn("OTEL_EXPORTER_OTLP_ENDPOINT: %s", err.message);
    if (is_news && t->in->alertmanager_url && give_notice(t, result, told, &err) < 0)
        df_warn("ALERTMANAGER_URL: %s", err.message);
}

void df_telemetry_free(struct df_telemetry *t)
{
    if (!t)
        return;
    df_scrape_stop(t->scrape);
    df_spans_free(&t->spans);
    df_http_free(t->http);
    free(t);
}
