/*
 * Each line goes to the redactor behind a prefix, as the tool writes one in front of each line of
 * text. The redactor leaves line breaks and prefixes alone, so each line that it is done with is
 * the text of the event that came first. A secret that has such a line itself is the exception:
 * then lines are missing at the end, and their events show nothing.
 */
#include "runner/report/held.h"

#include "common/base/limits.h"
#include "runner/report/events.h"

/* Any short one. */
static const char prefix[] = "a.b (c): ";

struct entry {
    cJSON *event;
    char *line;
    size_t n;
};

struct df_held {
    const struct df_redact_set *set;
    struct df_redact *text; /* NULL before the first line: many commands have none */
    struct df_buf masked; /* lines that the redactor is done with; the last one may be incomplete */
    struct entry *entries; /* count of them, owned, in the order of their lines */
    size_t count, cap;
    size_t bytes; /* of all lines */
    df_held_show *show;
    void *arg;
};

int df_held_new(const struct df_redact_set *set, df_held_show *show, void *arg,
                struct df_held **ret, struct df_err *err)
{
    struct df_held *h = calloc(1, sizeof *h);
    if (!h)
        return df_fail_oom(err);
    *h = (struct df_held){
        .set = set, .show = show, .arg = arg, .masked = DF_BUF_INIT(8 * DF_LIMIT_EVENT_LINE)};
    *ret = h;
    return 0;
}

static void free_entry(struct entry *e)
{
    df_json_wipe(e->event);
    df_str_wipe(&e->line);
}

static void drop_entries(struct df_held *h, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        h->bytes -= h->entries[i].n;
        free_entry(&h->entries[i]);
    }
    h->count -= count;
    if (h->count)
        memmove(h->entries, h->entries + count, h->count * sizeof *h->entries);
}

void df_held_free(struct df_held *h)
{
    if (!h)
        return;
    drop_entries(h, h->count);
    free(h->entries);
    df_redact_free(h->text);
    df_buf_free(&h->masked);
    free(h);
}

int df_held_widen(struct df_held *h, const struct df_redact_set *set, struct df_err *err)
{
    h->set = set;
    return h->text ? df_redact_widen(&h->text, set, err) : 0;
}

/* line: with its prefix, masked, without newline. */
static int show_entry(const struct df_held *h, const struct entry *e, const char *line,
                      struct df_err *err)
{
    const char *output = df_json_str(e->event, "hook.output");
    const char *masked = df_starts_with(line, prefix) ? line + strlen(prefix) : "***";
    if (df_streq(masked, output))
        return h->show(h->arg, e->event, e->line, e->n, err);
    if (df_event_set_progress(e->event, masked, err) < 0)
        return -1;
    return h->show(h->arg, e->event, NULL, 0, err);
}

/* Shows the events of all complete lines. */
static int show_lines(struct df_held *h, struct df_err *err)
{
    char *line = h->masked.data, *newline;
    size_t done = 0;
    int result = 0;
    while (result == 0 && done < h->count && line &&
           (newline = memchr(line, '\n', h->masked.len - (size_t)(line - h->masked.data)))) {
        *newline = '\0';
        result = show_entry(h, &h->entries[done++], line, err);
        line = newline + 1;
    }
    if (line)
        df_buf_consume(&h->masked, (size_t)(line - h->masked.data));
    drop_entries(h, done);
    return result;
}

static bool grow_entries(struct df_held *h)
{
    size_t cap = h->cap ? 2 * h->cap : 16;
    struct entry *more = reallocarray(h->entries, cap, sizeof *more);
    if (!more)
        return false;
    h->entries = more;
    h->cap = cap;
    return true;
}

static int add_entry(struct df_held *h, cJSON *event, const char *line, size_t n,
                     struct df_err *err)
{
    struct entry e = {.event = event, .line = strndup(line, n), .n = n};
    if (!e.line || (h->count == h->cap && !grow_entries(h))) {
        free_entry(&e);
        return df_fail_oom(err);
    }
    h->entries[h->count++] = e;
    h->bytes += n;
    return 0;
}

int df_held_add(struct df_held *h, cJSON *event, const char *line, size_t n, struct df_err *err)
{
    DF_FREE char *text = df_strf("%s%s\n", prefix, df_json_str(event, "hook.output"));
    if (!text) {
        df_json_wipe(event);
        return df_fail_oom(err);
    }
    if (add_entry(h, event, line, n, err) < 0 ||
        (!h->text && df_redact_new(h->set, &h->text, err) < 0))
        return -1;
    int failed = df_redact_feed(h->text, text, strlen(text), &h->masked, err);
    explicit_bzero(text, strlen(text));
    if (failed || show_lines(h, err) < 0)
        return -1;
    return h->bytes > DF_LIMIT_EVENTS_HELD ? df_held_end(h, err) : 0;
}

int df_held_end(struct df_held *h, struct df_err *err)
{
    if (!h->count)
        return 0;
    if (df_redact_finish(h->text, &h->masked, err) < 0 || show_lines(h, err) < 0)
        return -1;
    int result = 0;
    for (size_t i = 0; i < h->count && result == 0; i++)
        result = show_entry(h, &h->entries[i], "", err);
    drop_entries(h, h->count);
    df_buf_clear(&h->masked);
    return result;
}
