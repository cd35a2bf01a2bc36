/*
 * log.c - lines of the program's own log: what is in each of them, escaped, and written at once.
 */
#include "common/base/log.h"

#include <stdarg.h>

#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/limits.h"
#include "common/base/parse.h"

static struct {
    enum df_log_level level;
    bool json;
    const char *component;
    int fd;
    char action[32], trace[33], span[17];
} setup = {.level = DF_LOG_INFO, .component = "dayfly", .fd = STDERR_FILENO};

static _Thread_local struct {
    char run[128], step[128];
    char component[64], span[17];
} context;

static const char *const level_names[] = {"debug", "info", "warn", "error"};

void df_log_setup(enum df_log_level level, bool json, const char *component)
{
    setup.level = level;
    setup.json = json;
    setup.component = component;
}

int df_log_level_parse(const char *word, enum df_log_level *ret, struct df_err *err)
{
    for (size_t i = 0; i < DF_ARRAY_SIZE(level_names); i++) {
        if (df_streq(word, level_names[i])) {
            *ret = (enum df_log_level)i;
            return 0;
        }
    }
    return df_fail(err, DF_ERR_USER, "log level \"%s\" is not one of debug, info, warn, error",
                   word);
}

int df_log_setup_environment(bool json, const char *component, struct df_err *err)
{
    const char *level = getenv("LOG_LEVEL"), *format = getenv("LOG_FORMAT");
    enum df_log_level chosen = DF_LOG_INFO;
    bool is_json = df_streq(format, "json"), is_known = is_json || df_streq(format, "text");
    int failed = df_str_empty(level) ? 0 : df_log_level_parse(level, &chosen, err);
    df_log_setup(chosen, is_known ? is_json : json, component);
    if (failed)
        return df_err_wrap(err, "LOG_LEVEL");
    if (!is_known && !df_str_empty(format))
        return df_fail(err, DF_ERR_USER, "LOG_FORMAT: \"%s\" is not one of text, json", format);
    return 0;
}

void df_log_to(int fd)
{
    setup.fd = fd;
}

void df_log_context(const char *run, const char *step)
{
    (void)snprintf(context.run, sizeof(context.run), "%s", run ? run : "");
    (void)snprintf(context.step, sizeof(context.step), "%s", step ? step : "");
}

void df_log_action(const char *action)
{
    df_copy(setup.action, sizeof(setup.action), action ? action : "");
}

void df_log_trace(const char *trace, const char *span)
{
    df_copy(setup.trace, sizeof(setup.trace), trace ? trace : "");
    df_copy(setup.span, sizeof(setup.span), span ? span : "");
}

void df_log_component(const char *name, const char *span)
{
    df_copy(context.component, sizeof(context.component), name ? name : "");
    df_copy(context.span, sizeof(context.span), span ? span : "");
}

/* quoted: the text stands in quotes, which must not end in it. */
static void add_escaped(struct df_buf *b, const char *s, bool quoted)
{
    bool utf8 = df_is_utf8(s, strlen(s));
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        bool c1 = c == 0xc2 && (unsigned char)s[1] >= 0x80 && (unsigned char)s[1] < 0xa0;
        if (quoted && (c == '"' || c == '\\'))
            (void)df_buf_addf(b, "\\%c", c);
        else if (utf8 && c1) /* an 8-bit control character, which some terminals execute */
            (void)df_buf_addf(b, "\\u%04x", (unsigned char)*++s);
        else if (c < 0x20 || c == 0x7f || (c >= 0x80 && !utf8))
            (void)df_buf_addf(b, "\\u%04x", c);
        else
            (void)df_buf_addc(b, *s);
    }
}

static void add_field(struct df_buf *b, const char *name, const char *value)
{
    if (df_str_empty(value))
        return;
    (void)df_buf_addf(b, setup.json ? ",\"%s\":\"" : " %s=\"", name);
    add_escaped(b, value, true);
    (void)df_buf_addc(b, '"');
}

static void build_line(struct df_buf *b, const char *ts, const char *level, const char *msg)
{
    if (setup.json) {
        (void)df_buf_addf(b, "{\"ts\":\"%s\",\"level\":\"%s\"", ts, level);
        add_field(b, "component", *context.component ? context.component : setup.component);
        add_field(b, "msg", msg);
        add_field(b, "action", setup.action);
        add_field(b, "trace_id", setup.trace);
        add_field(b, "span_id", *context.span ? context.span : setup.span);
    } else { /* a person has one action before his eyes, and no use for ids */
        (void)df_buf_addf(b, "%s %-5s ", ts, level);
        add_escaped(b, msg, false);
        add_field(b, "component", context.component);
    }
    add_field(b, "run", context.run);
    add_field(b, "step", context.step);
    (void)df_buf_adds(b, setup.json ? "}\n" : "\n");
}

void df_log(enum df_log_level level, const char *fmt, ...)
{
    if (level < setup.level)
        return;
    char msg[2048], ts[DF_TIME_LEN];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(msg, sizeof(msg), fmt, ap);
    va_end(ap);
    DF_BUF struct df_buf line = DF_BUF_INIT(DF_LIMIT_LOG_RECORD);
    build_line(&line, df_time_format(df_real_us(), ts), level_names[level], msg);
    /* Nothing sensible can be done when the log itself fails. */
    if (!line.failed && write(setup.fd, line.data, line.len) < 0)
        return;
}

/* Run and step are names of documents: they need no escapes. */
static size_t render_fatal(char *out, size_t size, const char *ts, const char *msg)
{
    int n = snprintf(out, size,
                     setup.json ? "{\"ts\":\"%s\",\"level\":\"error\",\"component\":\"%s\","
                                  "\"msg\":\"%s\",\"run\":\"%s\",\"step\":\"%s\"}\n"
                                : "%s error %s: %s run=\"%s\" step=\"%s\"\n",
                     ts, setup.component, msg, context.run, context.step);
    return n < 0 ? 0 : (size_t)n < size ? (size_t)n : size - 1;
}

void df_log_fatal(const char *msg)
{
    char line[3 * DF_KIB], ts[DF_TIME_LEN];
    size_t n = render_fatal(line, sizeof(line), df_time_format(df_real_us(), ts), msg);
    if (write(setup.fd, line, n) < 0)
        return; /* as in df_log() */
}

#define GATE_PAUSE_US INT64_C(60000000)

bool df_log_gate_passes(struct df_log_gate *g, int64_t now_us, unsigned *ret_skipped)
{
    int64_t next_us = __atomic_load_n(&g->next_us, __ATOMIC_ACQUIRE);
    bool passes = now_us >= next_us &&
                  __atomic_compare_exchange_n(&g->next_us, &next_us, now_us + GATE_PAUSE_US, false,
                                              __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    *ret_skipped = passes ? __atomic_exchange_n(&g->skipped, 0, __ATOMIC_ACQ_REL) : 0;
    if (!passes)
        (void)__atomic_add_fetch(&g->skipped, 1, __ATOMIC_ACQ_REL);
    return passes;
}
