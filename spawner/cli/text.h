/*
 * text.h - formats text for people: durations, ages, tables, and untrusted text that is made safe
 * for a terminal. Thread rule: pure functions, any thread; one table, one thread.
 */
#ifndef DF_CLI_TEXT_H
#define DF_CLI_TEXT_H

#include "common/base/buf.h"
#include "common/base/strs.h"
#include "common/json/json.h"

#define DF_SHORT_TEXT 32

/* "0.9 s", "12.3 s", "2 min 5 s", "1 h 3 min". Returns out. */
const char *df_text_duration(int64_t us, char out[DF_SHORT_TEXT]);
/* One unit only, for tables: "12s", "5m", "3h", "2d". A negative age (clocks differ) is "0s". */
const char *df_text_age(int64_t us, char out[DF_SHORT_TEXT]);

/* "17 B", "1.2 KiB", "3.4 GiB". */
const char *df_text_bytes(int64_t bytes, char out[DF_SHORT_TEXT]);

/* Microseconds between the two RFC 3339 times at these paths; end NULL or absent: until now_us. -1
 * if the first one is absent or invalid. */
int64_t df_text_span(const cJSON *doc, const char *start, const char *end, int64_t now_us);

/* Microseconds that an ended step took, by the service's clock alone: those of its runner and of
 * this machine may be other ones. */
int64_t df_text_took(const cJSON *task);

/* Appends untrusted text. Control characters other than newline and tab become ^X, those of
 * Unicode's second block and such bytes that are no UTF-8 ^?, so that no log line can move the
 * cursor or set the window's title. */
void df_text_safe(struct df_buf *out, const char *s, size_t n);

/* Appends text in single quotes, escaped for a shell. */
void df_text_quoted(struct df_buf *out, const char *text);

/* Writes text for a person. Ignores errors: the reader may have closed the pipe. */
void df_text_write(int fd, const char *s, size_t n);

/* Rows of cells; df_table_print() aligns them. */
struct df_table {
    struct df_strs cells;
    size_t columns;
    struct df_table_shape *shape; /* borrowed; NULL: as wide as its cells */
};

/* The widths of a table. They are kept, so that rows printed later have the same columns. */
#define DF_TABLE_COLUMNS 24
struct df_table_shape {
    size_t limit;                    /* width of the terminal, which no line exceeds; 0: none */
    size_t widths[DF_TABLE_COLUMNS]; /* minimum; after printing: as printed */
    /* If a line is wider than the limit, the columns with the highest number are left out first; 0:
     * this one stays. */
    unsigned char spare[DF_TABLE_COLUMNS];
    bool goes_on; /* keep the widths for later rows */
    bool fixed;   /* the first rows were printed */
    bool wraps;   /* the last column is wrapped at blanks, nothing is cut */
};

#define DF_TABLE DF_CLEANUP(df_table_free)
void df_table_free(struct df_table *t);
/* NULL and "" are shown as "-". df_table_print() reports a failed allocation. */
void df_table_add(struct df_table *t, const char *cell);
/* The last column is not padded. Each line begins with `indent` blanks. */
int df_table_print(const struct df_table *t, size_t indent, struct df_buf *out,
                   struct df_err *err) DF_MUST_CHECK;

#endif
