#include "spawner/cli/sse.h"

#include "common/base/limits.h"

void df_sse_init(struct df_sse *s, df_sse_fn fn, void *arg)
{
    *s = (struct df_sse){.fn = fn,
                         .arg = arg,
                         .line = DF_BUF_INIT(DF_LIMIT_SSE_EVENT),
                         .data = DF_BUF_INIT(DF_LIMIT_SSE_EVENT)};
}

void df_sse_free(struct df_sse *s)
{
    df_buf_free(&s->line);
    df_buf_free(&s->data);
}

static int dispatch(struct df_sse *s)
{
    int result = 0;
    if (s->data.len) {
        s->data.data[s->data.len - 1] = '\0'; /* the newline after the last data line */
        const struct df_sse_event event = {.name = s->name[0] ? s->name : "message",
                                           .id = s->id,
                                           .data = s->data.data,
                                           .len = s->data.len - 1};
        result = s->fn(s->arg, &event);
    }
    df_buf_clear(&s->data);
    s->name[0] = '\0';
    return result;
}

static void field(struct df_sse *s, const char *line)
{
    size_t n = strcspn(line, ":");
    const char *value = line + n + (line[n] == ':');
    value += *value == ' ';
    if (n == 4 && df_starts_with(line, "data")) {
        (void)df_buf_adds(&s->data, value);
        (void)df_buf_addc(&s->data, '\n');
    } else if (n == 5 && df_starts_with(line, "event")) {
        (void)snprintf(s->name, sizeof(s->name), "%s", value);
    } else if (n == 2 && df_starts_with(line, "id")) {
        (void)snprintf(s->id, sizeof(s->id), "%s", value);
    }
}

static int end_of_line(struct df_sse *s, struct df_err *err)
{
    int result = 0;
    if (s->line.len)
        field(s, df_buf_str(&s->line));
    else
        result = dispatch(s);
    df_buf_clear(&s->line);
    return df_buf_check(&s->data, err) < 0 ? -1 : result;
}

int df_sse_feed(struct df_sse *s, const char *bytes, size_t n, struct df_err *err)
{
    for (const char *end = bytes + n; bytes < end;) {
        if (s->after_cr && *bytes == '\n')
            bytes++;
        s->after_cr = false;
        const char *eol = bytes;
        while (eol < end && *eol != '\n' && *eol != '\r')
            eol++;
        if (df_buf_add(&s->line, bytes, (size_t)(eol - bytes)) < 0)
            return df_buf_check(&s->line, err);
        bytes = eol;
        if (bytes == end)
            break;
        s->after_cr = *bytes++ == '\r';
        if (end_of_line(s, err) < 0)
            return -1;
    }
    return 0;
}
