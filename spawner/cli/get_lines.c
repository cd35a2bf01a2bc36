/* dayfly get -o jsonl and -o csv: lists of any length, printed page by page. */
#include "common/base/limits.h"
#include "spawner/cli/get.h"

/* ---- csv ---- */

/* Quoted if it must be (RFC 4180). A spreadsheet takes a text that begins with one of these signs
 * for a formula, which whoever made a name must not write: there is a quotation mark before it. */
static void add_cell(struct df_buf *out, const char *text)
{
    bool formula = *text && strchr("=+-@\t\r", *text);
    bool quoted = formula || strpbrk(text, ",\"\r\n");
    if (!quoted) {
        (void)df_buf_adds(out, text);
        return;
    }
    (void)df_buf_adds(out, formula ? "\"'" : "\"");
    for (; *text; text++) {
        if (*text == '"')
            (void)df_buf_addc(out, '"');
        (void)df_buf_addc(out, *text);
    }
    (void)df_buf_addc(out, '"');
}

static void add_value(struct df_buf *out, const cJSON *value)
{
    if (cJSON_IsString(value)) {
        add_cell(out, value->valuestring);
        return;
    }
    DF_FREE char *text = value && !cJSON_IsNull(value) ? df_json_print(value) : strdup("");
    if (text)
        add_cell(out, text);
    else
        (void)df_buf_adds(out, NULL);
}

/* The columns of the table, those of -o wide among them; the cells as the documents have them. */
static void add_csv(struct df_buf *out, const struct df_shown *kind, const cJSON *item)
{
    for (const struct df_column *c = kind->columns; c->title; c++) {
        if (c != kind->columns)
            (void)df_buf_addc(out, ',');
        if (item)
            add_value(out, df_json_at(item, c->path));
        else
            add_cell(out, c->path);
    }
    (void)df_buf_adds(out, "\r\n");
}

/* ---- lines ---- */

struct lines {
    const struct df_shown *kind;
    bool csv;
};

/* item NULL: the header. */
static int print_line(const struct lines *l, const cJSON *item, struct df_err *err)
{
    DF_BUF struct df_buf line = DF_BUF_INIT(2 * DF_LIMIT_DOCUMENT);
    if (l->csv) {
        add_csv(&line, l->kind, item);
    } else {
        DF_FREE char *text = df_json_print(item);
        (void)df_buf_adds(&line, text);
        (void)df_buf_addc(&line, '\n');
    }
    return df_buf_check(&line, err) < 0 ? -1 : df_cli_print(df_buf_str(&line), err);
}

/* A df_cli_page. */
static int print_page(void *arg, cJSON *items, struct df_err *err)
{
    const cJSON *item;
    cJSON_ArrayForEach (item, items) {
        if (print_line(arg, item, err) < 0)
            return -1;
    }
    return 0;
}

int df_get_lines(struct df_cli *cli, struct df_get *get, size_t from, size_t n, struct df_err *err)
{
    struct lines l = {get->named[from].kind, df_streq(df_cli_output(cli), "csv")};
    const struct df_choice *c = &get->choice;
    DF_JSON cJSON *items = NULL;
    DF_FREE char *path = NULL;
    if (l.csv && print_line(&l, NULL, err) < 0)
        return -1;
    bool all = !get->named[from].name && !c->states && !c->name_space && !c->sort_by && !c->limit;
    if (all)
        return df_get_path(cli, get, l.kind, &path, err) < 0
                   ? -1
                   : df_cli_list_each(cli, path, print_page, &l, err);
    return df_get_fetch(cli, get, from, n, &items, err) < 0 ? -1 : print_page(&l, items, err);
}
