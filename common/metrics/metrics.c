/*
 * metrics.c - a list of metrics, each with its series by label values: declaring, counting, and
 * writing them in the Prometheus text format.
 */
#include "common/metrics/metrics.h"

#include <math.h>
#include <pthread.h>

#include "common/base/limits.h"

enum type { COUNTER, GAUGE, HISTOGRAM };

/* One set of label values. */
struct series {
    char *labels; /* as given by the caller; "" without labels */
    double value; /* counter, gauge; of a histogram the sum */
    /* Histogram: the number of values in each bucket alone (not cumulative); the last one counts
     * the values above all bounds. */
    uint64_t *buckets;
};

struct df_metric {
    enum type type;
    const char *name, *help, *labels;
    const double *bounds;
    size_t bound_count;
    struct series *series;
    size_t count, cap;
    struct df_metric *next;
};

/* All metrics of the process, in the order in which they were declared. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct df_metric *all;

/* ---- series --------------------------------------------------------------------------------- */

static struct series *find_series(struct df_metric *m, const char *labels)
{
    for (size_t i = 0; i < m->count; i++) {
        if (df_streq(m->series[i].labels, labels))
            return &m->series[i];
    }
    return NULL;
}

static struct series *append_series(struct df_metric *m, char *labels)
{
    if (m->count == m->cap) {
        size_t cap = m->cap ? 2 * m->cap : 4;
        struct series *grown = realloc(m->series, cap * sizeof(*grown));
        if (!grown)
            return NULL;
        m->series = grown;
        m->cap = cap;
    }
    struct series s = {.labels = labels};
    if (m->type == HISTOGRAM && !(s.buckets = calloc(m->bound_count + 1, sizeof(*s.buckets))))
        return NULL;
    m->series[m->count] = s;
    return &m->series[m->count++];
}

/* Returns "other,other", one for each label; the caller frees. */
static char *other_labels(const struct df_metric *m)
{
    DF_BUF struct df_buf b = DF_BUF_INIT(DF_LIMIT_METRIC_LABELS);
    (void)df_buf_adds(&b, "other");
    for (const char *p = m->labels; (p = strchr(p, ',')); p++)
        (void)df_buf_adds(&b, ",other");
    return df_buf_take(&b);
}

/* Returns the series with these label values, created if needed. NULL if out of memory. */
static struct series *series_at(struct df_metric *m, const char *labels)
{
    struct series *s = find_series(m, m->labels && labels ? labels : "");
    if (s)
        return s;
    bool full = m->count >= DF_LIMIT_METRIC_SERIES - 1;
    char *own = full ? other_labels(m) : strdup(m->labels && labels ? labels : "");
    if (!own)
        return NULL;
    s = full ? find_series(m, own) : NULL;
    if (!s && (s = append_series(m, own)))
        return s;
    free(own);
    return s;
}

/* ---- declaring ------------------------------------------------------------------------------ */

static struct df_metric *find_metric(const char *name, struct df_metric ***ret_end)
{
    struct df_metric **end = &all;
    for (; *end; end = &(*end)->next) {
        if (df_streq((*end)->name, name))
            return *end;
    }
    *ret_end = end;
    return NULL;
}

static struct df_metric *declare_metric(const struct df_metric *form)
{
    struct df_metric **end = NULL;
    (void)pthread_mutex_lock(&lock);
    struct df_metric *m = find_metric(form->name, &end);
    if (!m && (m = malloc(sizeof(*m)))) {
        *m = *form;
        *end = m;
        if (!m->labels) /* without labels the series exists from the start, as zero */
            (void)series_at(m, NULL);
    }
    (void)pthread_mutex_unlock(&lock);
    return m;
}

struct df_metric *df_metric_counter(const char *name, const char *help, const char *labels)
{
    return declare_metric(
        &(struct df_metric){.type = COUNTER, .name = name, .help = help, .labels = labels});
}

struct df_metric *df_metric_gauge(const char *name, const char *help, const char *labels)
{
    return declare_metric(
        &(struct df_metric){.type = GAUGE, .name = name, .help = help, .labels = labels});
}

struct df_metric *df_metric_histogram(const char *name, const char *help, const char *labels,
                                      const double *bounds, size_t n)
{
    return declare_metric(&(struct df_metric){.type = HISTOGRAM,
                                              .name = name,
                                              .help = help,
                                              .labels = labels,
                                              .bounds = bounds,
                                              .bound_count = n});
}

/* ---- counting ------------------------------------------------------------------------------- */

void df_metric_add(struct df_metric *m, const char *label_values, double by)
{
    if (!m)
        return;
    (void)pthread_mutex_lock(&lock);
    struct series *s = series_at(m, label_values);
    if (s)
        s->value += by;
    (void)pthread_mutex_unlock(&lock);
}

void df_metric_set(struct df_metric *m, const char *label_values, double to)
{
    if (!m)
        return;
    (void)pthread_mutex_lock(&lock);
    struct series *s = series_at(m, label_values);
    if (s)
        s->value = to;
    (void)pthread_mutex_unlock(&lock);
}

void df_metric_observe(struct df_metric *m, const char *label_values, double value)
{
    if (!m)
        return;
    if (m->type != HISTOGRAM)
        DF_BUG("%s is not a histogram", m->name);
    size_t bucket = 0;
    while (bucket < m->bound_count && value > m->bounds[bucket])
        bucket++;
    (void)pthread_mutex_lock(&lock);
    struct series *s = series_at(m, label_values);
    if (s && s->buckets) {
        s->buckets[bucket]++;
        s->value += value;
    }
    (void)pthread_mutex_unlock(&lock);
}

/* ---- writing -------------------------------------------------------------------------------- */

static void put_number(struct df_buf *out, double d)
{
    char text[40];
    if (isnan(d) || isinf(d)) {
        (void)df_buf_adds(out, isnan(d) ? "NaN" : d > 0 ? "+Inf" : "-Inf");
        return;
    }
    /* Print the shorter form if it reads back as the same number. */
    (void)snprintf(text, sizeof(text), "%.15g", d);
    if (strtod(text, NULL) != d)
        (void)snprintf(text, sizeof(text), "%.17g", d);
    (void)df_buf_adds(out, text);
}

static void put_escaped(struct df_buf *out, const char *s, size_t n, bool quotes)
{
    for (size_t i = 0; i < n; i++) {
        if (s[i] == '\n')
            (void)df_buf_adds(out, "\\n");
        else if (s[i] == '\\' || (quotes && s[i] == '"'))
            (void)df_buf_addf(out, "\\%c", s[i]);
        else
            (void)df_buf_addc(out, s[i]);
    }
}

/* Writes name="value" pairs; the last name gets the rest of the values. */
static void put_pairs(struct df_buf *out, const char *names, const char *values)
{
    for (bool more = true; more;) {
        size_t name = strcspn(names, ",");
        more = names[name] == ',';
        size_t value = more ? strcspn(values, ",") : strlen(values);
        (void)df_buf_addf(out, "%.*s=\"", (int)name, names);
        put_escaped(out, values, value, true);
        (void)df_buf_adds(out, more ? "\"," : "\"");
        names += name + more;
        values += value + (values[value] == ',');
    }
}

/* Writes name_suffix{labels,le="bound"}; bound may be NULL. */
static void put_head(struct df_buf *out, const struct df_metric *m, const char *suffix,
                     const struct series *s, const double *bound)
{
    (void)df_buf_addf(out, "%s%s", m->name, suffix);
    if (m->labels || bound)
        (void)df_buf_addc(out, '{');
    if (m->labels)
        put_pairs(out, m->labels, s->labels);
    if (bound) {
        (void)df_buf_adds(out, m->labels ? ",le=\"" : "le=\"");
        put_number(out, *bound);
        (void)df_buf_addc(out, '"');
    }
    if (m->labels || bound)
        (void)df_buf_addc(out, '}');
    (void)df_buf_addc(out, ' ');
}

static void put_histogram(struct df_buf *out, const struct df_metric *m, const struct series *s)
{
    uint64_t so_far = 0;
    for (size_t i = 0; i <= m->bound_count; i++) {
        double bound = i < m->bound_count ? m->bounds[i] : INFINITY;
        so_far += s->buckets[i];
        put_head(out, m, "_bucket", s, &bound);
        (void)df_buf_addf(out, "%llu\n", (unsigned long long)so_far);
    }
    put_head(out, m, "_sum", s, NULL);
    put_number(out, s->value);
    (void)df_buf_addc(out, '\n');
    put_head(out, m, "_count", s, NULL);
    (void)df_buf_addf(out, "%llu\n", (unsigned long long)so_far);
}

static void put_metric(struct df_buf *out, const struct df_metric *m)
{
    static const char *const types[] = {"counter", "gauge", "histogram"};
    (void)df_buf_addf(out, "# HELP %s ", m->name);
    put_escaped(out, m->help, strlen(m->help), false);
    (void)df_buf_addf(out, "\n# TYPE %s %s\n", m->name, types[m->type]);
    for (size_t i = 0; i < m->count; i++) {
        if (m->type == HISTOGRAM) {
            put_histogram(out, m, &m->series[i]);
            continue;
        }
        put_head(out, m, "", &m->series[i], NULL);
        put_number(out, m->series[i].value);
        (void)df_buf_addc(out, '\n');
    }
}

int df_metrics_write(struct df_buf *out, struct df_err *err)
{
    (void)pthread_mutex_lock(&lock);
    for (const struct df_metric *m = all; m; m = m->next)
        put_metric(out, m);
    (void)pthread_mutex_unlock(&lock);
    return df_buf_check(out, err);
}
