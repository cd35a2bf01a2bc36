/*
 * doc_tables - prints a page of docs/ whose tables are made anew from the rows of the product. A
 * table stands between one of these markers and <!-- end -->:
 *
 *   <!-- keys -->                     each key of spawner/config/keys.c and its default
 *   <!-- options of get -->           the options of a command of spawner/cli/commands.c, explained
 *   <!-- commands: create apply -->   commands of that table; a group's word ("state") is all of it
 *
 * What a page says beyond the rows stays as it is written there: behind the <br> of the last cell;
 * of a key its meaning, and a default that depends on the machine. Fails if a command or an option
 * is not in docs/cli.md, or a key has no meaning.
 */
#include "common/base/fs.h"
#include "spawner/cli/commands.h"
#include "spawner/config/keys.h"

static const char end_marker[] = "<!-- end -->\n";

/* One table of the page: what it said so far, and what it says now. */
struct table {
    const char *old; /* up to the end marker */
    struct df_buf *out;
};

static _Noreturn void fail(const char *what, const char *name)
{
    (void)fprintf(stderr, "doc_tables: %s: %s\n", name, what);
    exit(1);
}

/* The row of the table so far that begins with this name, or NULL. */
static const char *find_row(const struct table *t, const char *name)
{
    DF_FREE char *start = df_strf("\n| `%s", name);
    for (const char *row = t->old; start && (row = strstr(row, start)); row++)
        if (row[strlen(start)] == '`' || row[strlen(start)] == ' ')
            return row + 1;
    return NULL;
}

/* The cell of this number of a row, with its length; an empty one without a row. */
static const char *find_cell(const char *row, size_t number, size_t *ret_len)
{
    for (const char *p = row; p && *p != '\n'; p++) {
        if (p[0] == '|' && p[1] == ' ' && number-- == 0) {
            const char *end = p + 2;
            while (*end != '\n' && (*end != '|' || end[-1] == '\\'))
                end++;
            *ret_len = end > p + 2 ? (size_t)(end - p - 3) : 0;
            return p + 2;
        }
        if (p[0] == '\\' && p[1])
            p++;
    }
    *ret_len = 0;
    return "";
}

/* Markdown of a plain text in a cell. */
static void add_text(struct df_buf *out, const char *text)
{
    for (; *text; text++) {
        if (strchr("|<*", *text))
            (void)df_buf_addc(out, '\\');
        (void)df_buf_addc(out, *text);
    }
}

/* A text between backticks, in which Markdown takes nothing but the end of a cell. */
static void add_code(struct df_buf *out, const char *text)
{
    for (; *text; text++)
        (void)df_buf_addf(out, "%s%c", *text == '|' ? "\\" : "", *text);
}

/* The last cell: the text of the row, then what the page adds to it. */
static void add_last(const struct table *t, const char *name, size_t number, const char *text)
{
    size_t len = 0;
    const char *cell = find_cell(find_row(t, name), number, &len);
    const char *more = memmem(cell, len, "<br>", 4);
    add_text(t->out, text);
    if (more)
        (void)df_buf_add(t->out, more, len - (size_t)(more - cell));
    (void)df_buf_adds(t->out, " |\n");
}

/* ---- the tables ---- */

static void add_keys(const struct table *t)
{
    (void)df_buf_adds(t->out, "| key | default | meaning |\n|---|---|---|\n");
    for (size_t i = 0; i < df_key_count; i++) {
        size_t len = 0, meant = 0;
        const struct df_key *k = &df_keys[i];
        const char *row = find_row(t, k->name), *said = find_cell(row, 1, &len);
        const char *meaning = find_cell(row, 2, &meant);
        if (!meant)
            fail("write `| `KEY` | | its meaning |` into docs/configuration.md", k->name);
        (void)df_buf_addf(t->out, "| `%s` | ", k->name);
        if (k->fallback)
            (void)df_buf_addf(t->out, "`%s` ", k->fallback);
        else if (len)
            (void)df_buf_addf(t->out, "%.*s ", (int)len, said);
        (void)df_buf_addf(t->out, "| %.*s |\n", (int)meant, meaning);
    }
}

static void add_options(const struct table *t, const struct df_option *options)
{
    (void)df_buf_adds(t->out, "| option | |\n|---|---|\n");
    for (const struct df_option *o = options; o && o->name; o++) {
        DF_FREE char *name = df_strf("--%s", o->name);
        (void)df_buf_addf(t->out, "| `%s%s", name, o->value ? " " : "");
        add_code(t->out, o->words ? o->words : o->value ? o->value : "");
        (void)df_buf_adds(t->out, "`");
        if (o->letter)
            (void)df_buf_addf(t->out, ", `-%c`", o->letter);
        (void)df_buf_adds(t->out, " | ");
        add_last(t, name, 1, o->help);
    }
}

static void add_command(const struct table *t, const struct df_command *c)
{
    (void)df_buf_addf(t->out, "| `%s%s", c->name, *c->synopsis ? " " : "");
    add_code(t->out, c->synopsis);
    (void)df_buf_adds(t->out, "` | ");
    for (const struct df_option *o = c->options; o && o->name; o++) {
        (void)df_buf_adds(t->out, "`");
        if (o->letter)
            (void)df_buf_addf(t->out, "-%c, ", o->letter);
        (void)df_buf_addf(t->out, "--%s` ", o->name);
    }
    (void)df_buf_adds(t->out, "| ");
    add_last(t, c->name, 2, c->summary);
}

/* True if the words, separated by blanks, name the command or the group that it is of. */
static bool names(const char *words, const struct df_command *c)
{
    for (const char *w = words; *w;) {
        size_t n = strcspn(w, " ");
        if (strncmp(c->name, w, n) == 0 && (c->name[n] == '\0' || c->name[n] == ' '))
            return true;
        w += n + (w[n] == ' ');
    }
    return false;
}

static void add_commands(const struct table *t, const char *words)
{
    (void)df_buf_adds(t->out, "| command | options | |\n|---|---|---|\n");
    for (const struct df_command *c = df_commands; c->name; c++)
        if (names(words, c))
            add_command(t, c);
}

static const struct df_command *find_command(const char *name)
{
    for (const struct df_command *c = df_commands; c->name; c++)
        if (df_streq(c->name, name))
            return c;
    fail("is no command", name);
}

/* What a marker says behind its first words; NULL: it is another one. The caller frees it. */
static char *rest_of(const char *marker, const char *first_words)
{
    if (!df_starts_with(marker, first_words))
        return NULL;
    const char *rest = marker + strlen(first_words), *end = strstr(rest, " -->");
    return end ? strndup(rest, (size_t)(end - rest)) : NULL;
}

/* Adds the table of a marker; returns false if the line is none. */
static bool add_table(const struct table *t, const char *line)
{
    DF_FREE char *command = rest_of(line, "<!-- options of ");
    DF_FREE char *commands = rest_of(line, "<!-- commands: ");
    if (df_starts_with(line, "<!-- keys -->"))
        add_keys(t);
    else if (command)
        add_options(t, find_command(command)->options);
    else if (commands)
        add_commands(t, commands);
    else
        return false;
    return true;
}

/* ---- the page ---- */

static void add_page(const char *page, struct df_buf *out)
{
    while (*page) {
        const char *line = page, *end = strstr(page, end_marker);
        page += strcspn(page, "\n");
        page += *page == '\n';
        (void)df_buf_add(out, line, (size_t)(page - line));
        if (!end || end < page || !df_starts_with(line, "<!-- "))
            continue;
        DF_FREE char *old = strndup(page - 1, (size_t)(end - page) + 1);
        if (old && add_table(&(struct table){old, out}, line))
            page = end;
    }
}

static void check_commands(const char *page)
{
    const struct table whole = {.old = page};
    for (const struct df_command *c = df_commands; c->name; c++) {
        DF_FREE char *spoken = df_strf("dayfly %s", c->name);
        if (!find_row(&whole, c->name) && !strstr(page, spoken))
            fail("is not in docs/cli.md: name it in one of its markers", c->name);
        for (const struct df_option *o = c->options; o && o->name; o++) {
            DF_FREE char *option = df_strf("--%s", o->name);
            if (!strstr(page, option))
                fail("is not in docs/cli.md", option);
        }
    }
}

int main(int argc, char **argv)
{
    DF_BUF struct df_buf page = DF_BUF_INIT(DF_MIB), made = DF_BUF_INIT(DF_MIB);
    struct df_err err = {0};
    if (argc != 2) {
        (void)fprintf(stderr, "usage: doc_tables PAGE\n");
        return 2;
    }
    if (df_fs_read(argv[1], &page, &err) < 0)
        fail(err.message, argv[1]);
    add_page(df_buf_str(&page), &made);
    if (df_buf_check(&made, &err) < 0)
        fail(err.message, argv[1]);
    if (strstr(argv[1], "cli.md"))
        check_commands(df_buf_str(&made));
    (void)fputs(df_buf_str(&made), stdout);
    return 0;
}
