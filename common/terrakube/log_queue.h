/*
 * log_queue.h - bytes of a log become lines, which wait to be sent in bounded memory. What does not
 * fit is counted, and a line says so where it is missing. Thread rule: one thread, or the owner's
 * lock.
 */
#ifndef DF_TERRAKUBE_LOG_QUEUE_H
#define DF_TERRAKUBE_LOG_QUEUE_H

#include "common/base/buf.h"

struct df_log_entry {
    struct df_log_entry *next;
    bool is_context; /* a state of the structured output, not a line */
    int64_t number;  /* of the line */
    size_t n;
    char text[]; /* n bytes and a NUL */
};

struct df_log_queue {
    struct df_log_entry *first, *last;
    size_t bytes;       /* of all entries */
    size_t missing;     /* lines that did not fit since the last one that did */
    int64_t number;     /* of the last line */
    struct df_buf line; /* without an end yet */
    bool after_cr;      /* an LF now belongs to it */
};

void df_log_queue_init(struct df_log_queue *q);
void df_log_queue_free(struct df_log_queue *q);

/* LF, CR or CR LF end a line; one of more than DF_LIMIT_TERRAKUBE_LINE is cut. */
void df_log_queue_bytes(struct df_log_queue *q, const char *bytes, size_t n);
/* Ends a line that has no end yet, and says what is missing. */
void df_log_queue_end_line(struct df_log_queue *q);
/* One line with these bytes, whatever they are. */
void df_log_queue_line(struct df_log_queue *q, const char *text, size_t n);
/* Left out while the queue is half full. */
void df_log_queue_context(struct df_log_queue *q, const char *json);

/* The first entries that go together: all lines or one context, at most max, and about
 * DF_LIMIT_TERRAKUBE_LOG_BYTES. They stay where they are until they are removed. */
size_t df_log_queue_peek(const struct df_log_queue *q, const struct df_log_entry **ret, size_t max);
void df_log_queue_remove(struct df_log_queue *q, size_t n);
/* Removes one that nobody takes; a line is missing then. */
void df_log_queue_give_up(struct df_log_queue *q);

#endif
