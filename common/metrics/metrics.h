/*
 * metrics.h - counters, gauges and histograms in the Prometheus text format.
 *
 * Metrics are declared once, at start, and exist until the process ends. Label values are from
 * fixed sets (phase, reason, route, code), never names of executors or runs. Thread rule: any
 * thread.
 */
#ifndef DF_METRICS_H
#define DF_METRICS_H

#include "common/base/buf.h"

struct df_metric; /* opaque */

/* Declares a metric. name, help and bounds are borrowed and must outlive the process's use of it
 * (literals). labels: comma-separated label names, or NULL: then the metric is shown from the
 * start, as 0. Declaring a name again returns the same metric. bounds: ascending, without the last
 * one, +Inf. NULL if out of memory; every other function accepts NULL and does nothing. */
struct df_metric *df_metric_counter(const char *name, const char *help, const char *labels);
struct df_metric *df_metric_gauge(const char *name, const char *help, const char *labels);
struct df_metric *df_metric_histogram(const char *name, const char *help, const char *labels,
                                      const double *bounds, size_t n);

/* label_values: comma-separated like the names ("GET,200"), or NULL; the last label gets the rest,
 * commas included. A metric has at most DF_LIMIT_METRIC_SERIES series; further ones are counted as
 * "other". */
void df_metric_add(struct df_metric *m, const char *label_values, double by);
void df_metric_set(struct df_metric *m, const char *label_values, double to);
void df_metric_observe(struct df_metric *m, const char *label_values, double value);

/* Appends all metrics in the text format to out. */
int df_metrics_write(struct df_buf *out, struct df_err *err) DF_MUST_CHECK;

#endif
