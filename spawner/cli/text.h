/*
 * text.h - small pieces of text for people: durations, ages, tables, and foreign text made safe for
 * a terminal. Thread rule: pure functions, any thread; one table, one thread.
 */
#ifndef DF_CLI_TEXT_H
#define DF_CLI_TEXT_H

#include "common/base/buf.h"
#include "common/base/strs.h"
#include "common/json/json.h"

#define DF_SHORT_TEXT 32

/* "0.9 s", "12.3 s", "2 min 5 s", "1 h 3 min". Returns out. */
const char *df_text_duration(int64_t us, char out[DF_SHORT_TEXT]);
/* One unit alone, for tables: "12s", "5m", "3h", "2d". A negative one (clocks differ) is "0s". */
const char *df_text_age(int64_t us, char out[DF_SHORT_TEXT]);

/* Microseconds between the two RFC 3339 times at these paths; end == NULL or absent: until now_us.
 * -1 when the first one is absent. */
int64_t df_text_span(const cJSON *doc, const char *start, const char *end, int64_t now_us);

/* Microseconds between two entries of a TaskAction's timeline; from == NULL: the first one, to ==
 * NULL: the last one if the task is final, else now_us. -1 when one is absent. */
int64_t df_text_timeline(const cJSON *task, const char *from, const char *to, int64_t now_us);

/* Appends text that a module or a stranger wrote: control characters other than newline and tab are
 * shown as ^X, so that no log line can move the cursor or set the window's title. */
void df_text_safe(struct df_buf *out, const char *s, size_t n);

/* Appends text within single quotes of a shell. */
void df_text_quoted(struct df_buf *out, const char *text);

/* Writes what can be written: for words to a person, who may have gone away. */
void df_text_write(int fd, const char *s, size_t n);

/* Rows of cells, aligned when printed. */
struct df_table {
    struct df_strs cells;
    size_t columns;
    struct df_table_shape *shape; /* borrowed; NULL: as wide as its cells */
};

/* How wide a table is, and was: rows that come later go on under the same columns. */
#define DF_TABLE_COLUMNS 24
struct df_table_shape {
    size_t limit;                    /* columns of the terminal: cells are cut; 0: nothing is */
    size_t widths[DF_TABLE_COLUMNS]; /* at least; after printing: as printed */
    bool goes_on;                    /* keep the widths for the rows to come */
    bool fixed;                      /* the first rows were printed */
    bool wraps;                      /* the last column is wrapped at blanks, nothing is cut */
};

#define DF_TABLE DF_CLEANUP(df_table_free)
void df_table_free(struct df_table *t);
/* NULL is shown as "-". The sticky failure is found by df_table_print(). */
void df_table_add(struct df_table *t, const char *cell);
/* The last column is not padded. indent blanks stand in front of each line. */
int df_table_print(const struct df_table *t, size_t indent, struct df_buf *out,
                   struct df_err *err) DF_MUST_CHECK;

#endif
