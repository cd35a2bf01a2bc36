#include "common/terrakube/log_queue.h"

void df_log_queue_init(struct df_log_queue *q)
{
    *q = (struct df_log_queue){.line = DF_BUF_INIT(DF_LIMIT_TERRAKUBE_LINE)};
}

void df_log_queue_free(struct df_log_queue *q)
{
    while (q->first)
        df_log_queue_remove(q, 1);
    df_buf_free(&q->line);
}

/* False if there is no memory. */
static bool push(struct df_log_queue *q, const char *text, size_t n, bool is_context)
{
    struct df_log_entry *e = malloc(sizeof(*e) + n + 1);
    if (!e)
        return false;
    *e = (struct df_log_entry){
        .is_context = is_context, .number = is_context ? 0 : ++q->number, .n = n};
    memcpy(e->text, text, n);
    e->text[n] = '\0';
    *(q->last ? &q->last->next : &q->first) = e;
    q->last = e;
    q->bytes += sizeof(*e) + n;
    return true;
}

static bool fits(const struct df_log_queue *q, size_t n, size_t limit)
{
    return q->bytes + sizeof(struct df_log_entry) + n <= limit;
}

/* It is short: it is taken when all is full, too. */
static void say_missing(struct df_log_queue *q)
{
    char text[160];
    int n =
        snprintf(text, sizeof(text),
                 "[%zu lines are missing here: they could not be sent in time; the saved output "
                 "has them]",
                 q->missing);
    if (q->missing && push(q, text, (size_t)n, false))
        q->missing = 0;
}

void df_log_queue_line(struct df_log_queue *q, const char *text, size_t n)
{
    bool good = fits(q, n, DF_LIMIT_TERRAKUBE_LOG_QUEUE);
    if (good)
        say_missing(q);
    if (!good || !push(q, text, n, false))
        q->missing++;
}

static void finish_line(struct df_log_queue *q)
{
    df_log_queue_line(q, df_buf_str(&q->line), q->line.len);
    df_buf_clear(&q->line);
}

static void add_part(struct df_log_queue *q, const char *bytes, size_t n)
{
    while (n) {
        size_t room = DF_LIMIT_TERRAKUBE_LINE - q->line.len, part = n < room ? n : room;
        if (df_buf_add(&q->line, bytes, part) < 0) {
            q->missing++;
            df_buf_clear(&q->line);
        }
        bytes += part;
        n -= part;
        if (n)
            finish_line(q);
    }
}

void df_log_queue_bytes(struct df_log_queue *q, const char *bytes, size_t n)
{
    while (n) {
        if (q->after_cr && *bytes == '\n') {
            bytes++;
            n--;
        }
        q->after_cr = false;
        size_t len = 0;
        while (len < n && bytes[len] != '\n' && bytes[len] != '\r')
            len++;
        add_part(q, bytes, len);
        if (len == n)
            return;
        finish_line(q);
        q->after_cr = bytes[len] == '\r';
        bytes += len + 1;
        n -= len + 1;
    }
}

void df_log_queue_end_line(struct df_log_queue *q)
{
    if (q->line.len)
        finish_line(q);
    q->after_cr = false;
    say_missing(q);
}

void df_log_queue_context(struct df_log_queue *q, const char *json)
{
    size_t n = strlen(json);
    if (fits(q, n, DF_LIMIT_TERRAKUBE_LOG_QUEUE / 2))
        (void)push(q, json, n, true);
}

size_t df_log_queue_peek(const struct df_log_queue *q, const struct df_log_entry **ret, size_t max)
{
    size_t count = 0, bytes = 0;
    for (const struct df_log_entry *e = q->first; e && count < max; e = e->next) {
        if (count && (e->is_context || bytes + e->n > DF_LIMIT_TERRAKUBE_LOG_BYTES))
            break;
        bytes += e->n;
        ret[count++] = e;
        if (e->is_context)
            break;
    }
    return count;
}

void df_log_queue_remove(struct df_log_queue *q, size_t n)
{
    for (; n && q->first; n--) {
        struct df_log_entry *e = q->first;
        q->first = e->next;
        if (!q->first)
            q->last = NULL;
        q->bytes -= sizeof(*e) + e->n;
        free(e);
    }
}

void df_log_queue_give_up(struct df_log_queue *q)
{
    if (q->first && !q->first->is_context)
        q->missing++;
    df_log_queue_remove(q, 1);
}
