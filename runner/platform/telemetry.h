/*
 * telemetry.h - what an action tells while it runs and when it ends, besides its log: the four
 * metrics of the Executor Specification, spans by OTLP/HTTP (JSON), a notice to Alertmanager.
 *
 * Nothing here fails an action: what cannot be delivered is logged as a warning. Thread rule: main
 * thread; the metrics' listener has a thread of its own.
 */
#ifndef DF_PLATFORM_TELEMETRY_H
#define DF_PLATFORM_TELEMETRY_H

#include "common/kube/kube.h"
#include "runner/platform/component.h"
#include "runner/platform/spans.h"

struct df_telemetry; /* opaque */

/* Begins the action's root span, which the log names from now on (df_log_trace()), sets
 * executor_action_status to 1, and serves the metrics at in->metrics_addr if there is one. An input
 * without a trace or span gets new ones. in is borrowed for its life, and may lack what is wrong in
 * it. */
int df_telemetry_start(const struct df_platform_input *in, struct df_telemetry **ret,
                       struct df_err *err) DF_MUST_CHECK;

/* The trace's and the root span's id, for log lines and for annotations. Borrowed. */
const char *df_telemetry_trace(const struct df_telemetry *t);
const char *df_telemetry_root(const struct df_telemetry *t);
/* A new id for a span that will be told by df_telemetry_span(). */
void df_telemetry_new_span(struct df_telemetry *t, struct df_span_id *ret);

/* Tells of a span that is over. Its parent may be NULL: the root. */
void df_telemetry_span(struct df_telemetry *t, const struct df_span *span);

/* Log lines and the spans of writes are the component's from now on; NULL: the action's. c is
 * borrowed until the next call. */
void df_telemetry_enter(struct df_telemetry *t, const struct df_component *c);
/* Tells of a write to the API server that is over. verb: "patch". error: NULL if it was done. */
void df_telemetry_write(struct df_telemetry *t, const char *verb, const struct df_kube_at *at,
                        int64_t from_us, const char *error);

/* The gauge executor_component_health: 1 healthy, 0.5 progressing or degraded, 0 missing or failed.
 * What a teardown is done with is missing. A dry run sets none. */
void df_telemetry_component(struct df_telemetry *t, const struct df_component *c);
/* The counter executor_errors_total{type}. */
void df_telemetry_error(struct df_telemetry *t, const char *type);

/* Ends the root span; sends what is left of spans; sets duration and status (of an invalid input:
 * failure); writes the textfile, pushes to the gateway; gives notice of a failure (1, 2, 4) with
 * `summary`, one sentence or NULL. The metrics are served until df_telemetry_free(). */
void df_telemetry_end(struct df_telemetry *t, enum df_result result, const char *summary);
/* NULL is fine. */
void df_telemetry_free(struct df_telemetry *t);

#endif
