/*
 * Durations, ages and untrusted text first, then tables. Read df_table_print() at the end:
 * find_widths() computes the widths and fits them to the terminal, by leaving out spare columns and
 * cutting the widest others, or by wrapping the last one.
 */
#include "spawner/cli/text.h"

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/base/parse.h"
#include "spawner/model/task_parts.h"

#define SECOND 1000000LL
#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)

const char *df_text_duration(int64_t us, char out[DF_SHORT_TEXT])
{
    us = us < 0 ? 0 : us;
    if (us < MINUTE)
        (void)snprintf(out, DF_SHORT_TEXT, "%.1f s", (double)us / (double)SECOND);
    else if (us < HOUR)
        (void)snprintf(out, DF_SHORT_TEXT, "%d min %d s", (int)(us / MINUTE),
                       (int)(us % MINUTE / SECOND));
    else
        (void)snprintf(out, DF_SHORT_TEXT, "%lld h %d min", (long long)(us / HOUR),
                       (int)(us % HOUR / MINUTE));
    return out;
}

const char *df_text_bytes(int64_t bytes, char out[DF_SHORT_TEXT])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    double n = (double)bytes;
    size_t unit = 0;
    for (; n >= 1024 && unit + 1 < DF_ARRAY_SIZE(units); unit++)
        n /= 1024;
    (void)snprintf(out, DF_SHORT_TEXT, "%.*f %s", unit ? 1 : 0, n, units[unit]);
    return out;
}

const char *df_text_age(int64_t us, char out[DF_SHORT_TEXT])
{
    static const struct {
        int64_t unit;
        int64_t until; /* from here on the next unit is used */
        char letter;
    } units[] = {{SECOND, 2 * MINUTE, 's'},
                 {MINUTE, 2 * HOUR, 'm'},
                 {HOUR, 2 * DAY, 'h'},
                 {DAY, INT64_MAX, 'd'}};
    us = us < 0 ? 0 : us;
    size_t i = 0;
    while (us >= units[i].until)
        i++;
    (void)snprintf(out, DF_SHORT_TEXT, "%lld%c", (long long)(us / units[i].unit), units[i].letter);
    return out;
}

int64_t df_text_span(const cJSON *doc, const char *start, const char *end, int64_t now_us)
{
    const char *from = df_json_str(doc, start), *to = end ? df_json_str(doc, end) : NULL;
    int64_t a = 0, b = now_us;
    if (!from || df_time_parse(from, &a, NULL) < 0 || (to && df_time_parse(to, &b, NULL) < 0))
        return -1;
    return b > a ? b - a : 0;
}

int64_t df_text_took(const cJSON *task)
{
    int64_t ended = df_task_ended_at(task, 0);
    int64_t begun = df_task_timeline(task, "queued", df_task_timeline(task, "created", ended));
    return ended > begun ? ended - begun : 0;
}

/* The number of bytes of the character that begins here; 1 for what is no UTF-8. */
static size_t character(const char *s, size_t n)
{
    size_t length = df_utf8_length((unsigned char)*s);
    return length && length <= n && df_is_utf8(s, length) ? length : 1;
}

/* U+0080..U+009F are control characters, too: 0xc2 0x80..0x9f, and for a terminal without UTF-8
 * these bytes alone, as 0x9b, which begins a sequence as ESC [ does. */
static bool is_c1(const char *s, size_t size)
{
    unsigned char c = (unsigned char)s[size - 1];
    return (c & 0xe0) == 0x80 && (size == 1 || (size == 2 && (unsigned char)*s == 0xc2));
}

void df_text_safe(struct df_buf *out, const char *s, size_t n)
{
    size_t plain = 0, size;
    for (size_t i = 0; i < n; i += size) {
        unsigned char c = (unsigned char)s[i];
        size = character(s + i, n - i);
        bool c1 = is_c1(s + i, size);
        if ((c >= 0x20 && c != 0x7f && !c1) || c == '\n' || c == '\t')
            continue;
        (void)df_buf_add(out, s + plain, i - plain);
        (void)df_buf_addf(out, "^%c", c1 ? '?' : c ^ 0x40);
        plain = i + size;
    }
    (void)df_buf_add(out, s + plain, n - plain);
}

void df_text_quoted(struct df_buf *out, const char *text)
{
    (void)df_buf_addc(out, '\'');
    for (const char *c = text; *c; c++)
        (void)df_buf_adds(out, *c == '\'' ? "'\\''" : (char[]){*c, '\0'});
    (void)df_buf_addc(out, '\'');
}

void df_text_write(int fd, const char *s, size_t n)
{
    struct df_err ignored;
    if (df_fs_write_all(fd, s, n, &ignored) < 0)
        return;
}

/* ---- tables ---- */

void df_table_free(struct df_table *t)
{
    df_strs_free(&t->cells);
}

void df_table_add(struct df_table *t, const char *cell)
{
    DF_BUF struct df_buf safe = DF_BUF_INIT(DF_LIMIT_DOCUMENT);
    if (!cell || !*cell)
        cell = "-";
    df_text_safe(&safe, cell, strcspn(cell, "\n"));
    (void)df_strs_take(&t->cells, df_buf_take(&safe));
}

/* The width on the screen, approximated by the number of code points. */
static size_t width_of(const char *s)
{
    size_t n = 0;
    for (; *s; s++)
        n += ((unsigned char)*s & 0xc0) != 0x80;
    return n;
}

static size_t column_width(const struct df_table *t, size_t column)
{
    size_t widest = 0;
    for (size_t i = column; i < t->cells.len; i += t->columns) {
        size_t w = width_of(t->cells.items[i]);
        widest = w > widest ? w : widest;
    }
    return widest;
}

#define GAP 3             /* blanks between two columns */
#define LEAST_WRAPPED 16  /* minimum for a wrapped column; if there is less, the terminal wraps */
#define LEAST_WIDTH 5     /* columns are not cut below this while others are wider */
#define LEFT_OUT SIZE_MAX /* the width of a column that is not printed */

static size_t total_width(const size_t *widths, size_t columns, size_t indent)
{
    size_t total = indent;
    for (size_t c = 0; c < columns; c++)
        total += widths[c] == LEFT_OUT ? 0 : widths[c] + (c ? GAP : 0);
    return total;
}

/* The widest column except the first, which has the names; of all columns if the others are
 * narrow. */
static size_t widest_of(const size_t *widths, size_t columns)
{
    size_t widest = 0;
    for (size_t c = 1; c < columns; c++)
        if (widths[c] != LEFT_OUT && widths[c] > LEAST_WIDTH &&
            (!widest || widths[c] > widths[widest]))
            widest = c;
    for (size_t c = 1; c < columns && widths[widest] <= LEAST_WIDTH; c++)
        if (widths[c] != LEFT_OUT && widths[c] > widths[widest])
            widest = c;
    return widest;
}

/* Leaves out spare columns until a line fits. */
static void leave_out(size_t *widths, size_t columns, size_t indent,
                      const struct df_table_shape *shape)
{
    while (total_width(widths, columns, indent) > shape->limit) {
        size_t most = 0;
        for (size_t c = 1; c < columns && c < DF_TABLE_COLUMNS; c++)
            if (widths[c] != LEFT_OUT && shape->spare[c] > shape->spare[most])
                most = c;
        if (!shape->spare[most])
            return;
        widths[most] = LEFT_OUT;
    }
}

/* Makes a line fit by the width of the last column, whose text is wrapped. */
static void wrap(size_t *widths, size_t columns, size_t indent, size_t limit)
{
    size_t *last = &widths[columns - 1], whole = *last;
    *last = 0;
    size_t others = total_width(widths, columns, indent);
    size_t room = limit > others ? limit - others : 0;
    *last = whole < room || room < LEAST_WRAPPED ? whole : room;
}

/* Narrows the widest columns until a line fits. */
static void fit(size_t *widths, size_t columns, size_t indent, size_t limit)
{
    while (total_width(widths, columns, indent) > limit) {
        size_t c = widest_of(widths, columns);
        if (widths[c] <= 1)
            return;
        widths[c]--;
    }
}

static void find_widths(const struct df_table *t, size_t indent, size_t *widths)
{
    struct df_table_shape *shape = t->shape;
    bool keeps = shape && shape->fixed && shape->goes_on;
    for (size_t c = 0; c < t->columns; c++) {
        size_t known = shape && c < DF_TABLE_COLUMNS ? shape->widths[c] : 0;
        size_t needed = keeps && shape->limit ? 0 : column_width(t, c);
        widths[c] = known > needed ? known : needed;
    }
    if (!shape)
        return;
    if (shape->limit && shape->wraps) {
        wrap(widths, t->columns, indent, shape->limit);
    } else if (shape->limit) {
        leave_out(widths, t->columns, indent, shape);
        fit(widths, t->columns, indent, shape->limit);
    }
    for (size_t c = 0; c < t->columns && c < DF_TABLE_COLUMNS; c++)
        shape->widths[c] = widths[c];
    shape->fixed = true;
}

/* Appends the text, cut to this width; a cut text ends with an ellipsis. */
static void add_cut(struct df_buf *out, const char *text, size_t width)
{
    if (width_of(text) <= width) {
        (void)df_buf_adds(out, text);
        return;
    }
    size_t shown = 0;
    const char *end = text;
    for (; *end; end++) {
        bool begins = ((unsigned char)*end & 0xc0) != 0x80;
        if (begins && shown++ + 1 >= width)
            break;
    }
    (void)df_buf_add(out, text, (size_t)(end - text));
    (void)df_buf_adds(out, "\u2026");
}

/* How many bytes of the text fit into this width; up to the last blank, if there is one. */
static size_t piece_of(const char *text, size_t width)
{
    size_t shown = 0, blank = 0, n = 0;
    for (; text[n]; n++) {
        bool begins = ((unsigned char)text[n] & 0xc0) != 0x80;
        if (text[n] == ' ')
            blank = n;
        if (begins && shown++ == width)
            return blank ? blank : n;
    }
    return n;
}

static void add_wrapped(struct df_buf *out, const char *text, size_t at, size_t width)
{
    for (;;) {
        size_t n = piece_of(text, width);
        (void)df_buf_add(out, text, n);
        text += n;
        text += strspn(text, " ");
        if (!*text)
            return;
        (void)df_buf_addf(out, "\n%*s", (int)at, "");
    }
}

static void print_line(const struct df_table *t, size_t first, size_t indent, const size_t *widths,
                       struct df_buf *line)
{
    size_t pad = indent;
    for (size_t c = 0; c < t->columns; c++) {
        if (widths[c] == LEFT_OUT)
            continue;
        (void)df_buf_addf(line, "%*s", (int)pad, "");
        const char *cell = t->cells.items[first + c];
        size_t width = width_of(cell), room = widths[c];
        bool is_last = c + 1 == t->columns;
        if (t->shape && t->shape->limit && t->shape->wraps && is_last)
            add_wrapped(line, cell, total_width(widths, t->columns, indent) - room, room);
        else if (t->shape && t->shape->limit && !t->shape->wraps)
            add_cut(line, cell, room);
        else
            (void)df_buf_adds(line, cell);
        pad = GAP + (width < room ? room - width : 0);
    }
    (void)df_buf_addc(line, '\n');
}

int df_table_print(const struct df_table *t, size_t indent, struct df_buf *out, struct df_err *err)
{
    if (!t->columns)
        DF_BUG("a table without columns");
    if (df_strs_check(&t->cells, err) < 0)
        return -1;
    DF_FREE size_t *widths = calloc(t->columns, sizeof(*widths));
    if (!widths)
        return df_fail_oom(err);
    find_widths(t, indent, widths);
    for (size_t i = 0; i + t->columns <= t->cells.len; i += t->columns)
        print_line(t, i, indent, widths, out);
    return df_buf_check(out, err);
}
