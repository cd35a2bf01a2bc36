/*
 * Adds colours to the tool's plain output, line by line, by the beginning of a line. For the list
 * of changes and for heredocs it remembers earlier lines (struct df_paint). Read paint() near the
 * end first.
 */
#include "spawner/cli/follow/paint.h"

#define RESET "\x1b[0m"
#define BOLD "\x1b[1m"
#define RED "\x1b[31m"
#define GREEN "\x1b[32m"
#define YELLOW "\x1b[33m"
#define CYAN "\x1b[36m"

/* A line without its newline. */
struct line {
    const char *text;
    size_t len;
};

static bool starts(const struct line *l, const char *prefix)
{
    size_t n = strlen(prefix);
    return l->len >= n && memcmp(l->text, prefix, n) == 0;
}

static const char *find_in(const struct line *l, const char *part)
{
    return memmem(l->text, l->len, part, strlen(part));
}

static size_t blanks_before(const struct line *l)
{
    size_t n = 0;
    while (n < l->len && l->text[n] == ' ')
        n++;
    return n;
}

static void add_styled(struct df_buf *out, const char *style, const char *text, size_t n)
{
    (void)df_buf_adds(out, style);
    (void)df_buf_add(out, text, n);
    (void)df_buf_adds(out, RESET);
}

/* ---- lines outside of the list of changes ---- */

static const struct {
    const char *prefix;
    const char *style; /* of the prefix */
    const char *rest;  /* style of what follows, or NULL */
} heads[] = {{"Error: ", BOLD RED, BOLD},
             {"Warning: ", BOLD YELLOW, BOLD},
             {"No changes.", BOLD GREEN, BOLD},
             {"Apply complete!", BOLD GREEN, BOLD GREEN},
             {"Destroy complete!", BOLD GREEN, BOLD GREEN},
             {"Outputs:", BOLD GREEN, NULL},
             {"Plan:", BOLD, NULL},
             {"Initializing ", BOLD, BOLD},
             {"OpenTofu has been successfully initialized!", GREEN, NULL},
             {"Terraform has been successfully initialized!", GREEN, NULL}};

static bool paint_head(const struct line *l, struct df_buf *out)
{
    for (size_t i = 0; i < DF_ARRAY_SIZE(heads); i++) {
        size_t n = strlen(heads[i].prefix);
        if (!starts(l, heads[i].prefix))
            continue;
        add_styled(out, heads[i].style, l->text, n);
        if (heads[i].rest && l->len > n)
            add_styled(out, heads[i].rest, l->text + n, l->len - n);
        else
            (void)df_buf_add(out, l->text + n, l->len - n);
        return true;
    }
    return false;
}

/* "ADDRESS: Creating...": the progress of one resource. */
static bool paint_progress(const struct line *l, struct df_buf *out)
{
    static const char *const phrases[] = {": Creating...",
                                          ": Creation complete after ",
                                          ": Destroying...",
                                          ": Modifying...",
                                          ": Modifications complete after ",
                                          ": Destruction complete after ",
                                          ": Refreshing state...",
                                          ": Reading...",
                                          ": Read complete after ",
                                          ": Still ",
                                          ": Importing...",
                                          ": Provisioning with '"};
    if (l->len == 0 || l->text[0] == ' ')
        return false;
    for (size_t i = 0; i < DF_ARRAY_SIZE(phrases); i++) {
        if (!find_in(l, phrases[i]))
            continue;
        add_styled(out, BOLD, l->text, l->len);
        return true;
    }
    return false;
}

/* ---- the list of changes ---- */

/* Determines whether the list of changes begins, continues or ends with this line. */
static void follow_changes(struct df_paint *p, const struct line *l)
{
    static const char *const within[] = {"Plan:", "OpenTofu ", "Terraform ", "plan. ",
                                         "-/+ ",  "+/- ",      "Unless ",    "the "};
    if (starts(l, "Changes to Outputs:") || find_in(l, "Resource actions are indicated with"))
        p->changes = true;
    if (!p->changes || l->len == 0 || l->text[0] == ' ')
        return;
    bool goes_on = starts(l, "Changes to Outputs:");
    for (size_t i = 0; i < DF_ARRAY_SIZE(within); i++)
        goes_on = goes_on || starts(l, within[i]);
    p->changes = goes_on;
}

/* "  # ADDRESS will be destroyed" */
static bool paint_title(const struct line *l, struct df_buf *out)
{
    static const char *const verbs[] = {" will be ",          " must be ",    " is tainted",
                                        " has moved to ",     " has changed", " has been ",
                                        " will no longer be "};
    const char *at = NULL;
    if (!starts(l, "  # "))
        return false;
    for (size_t i = 0; !at && i < DF_ARRAY_SIZE(verbs); i++)
        at = find_in(l, verbs[i]);
    if (!at)
        return false;
    add_styled(out, BOLD, l->text, (size_t)(at - l->text));
    const struct line rest = {at, l->len - (size_t)(at - l->text)};
    const char *bad = find_in(&rest, "destroyed");
    bad = bad ? bad : find_in(&rest, "replaced");
    size_t word = !bad ? 0 : *bad == 'd' ? strlen("destroyed") : strlen("replaced");
    (void)df_buf_add(out, at, bad ? (size_t)(bad - at) : rest.len);
    if (bad) {
        add_styled(out, BOLD RED, bad, word);
        (void)df_buf_add(out, bad + word, rest.len - (size_t)(bad - at) - word);
    }
    return true;
}

/* Colours "->" and "# forces replacement", except in strings. */
static void add_value(const char *text, size_t n, struct df_buf *out)
{
    static const char arrow[] = " -> ", forces[] = "# forces replacement";
    bool in_string = false;
    for (size_t i = 0; i < n; i++) {
        const struct line rest = {text + i, n - i};
        if (text[i] == '"')
            in_string = !in_string;
        if (in_string && text[i] == '\\' && i + 1 < n)
            (void)df_buf_addc(out, text[i++]);
        if (!in_string && starts(&rest, arrow)) {
            (void)df_buf_adds(out, " " YELLOW "->" RESET " ");
            i += strlen(arrow) - 1;
        } else if (!in_string && starts(&rest, forces)) {
            (void)df_buf_adds(out, RED "# forces replacement" RESET);
            i += strlen(forces) - 1;
        } else {
            (void)df_buf_addc(out, text[i]);
        }
    }
}

static bool paint_change(const struct line *l, struct df_buf *out)
{
    static const struct {
        const char *marker, *painted;
    } markers[] = {{"+ ", GREEN "+" RESET " "},
                   {"- ", RED "-" RESET " "},
                   {"~ ", YELLOW "~" RESET " "},
                   {"-/+ ", RED "-" RESET "/" GREEN "+" RESET " "},
                   {"+/- ", GREEN "+" RESET "/" RED "-" RESET " "},
                   {"<= ", CYAN "<=" RESET " "}};
    size_t blanks = blanks_before(l);
    const struct line rest = {l->text + blanks, l->len - blanks};
    for (size_t i = 0; i < DF_ARRAY_SIZE(markers); i++) {
        size_t n = strlen(markers[i].marker);
        if (!starts(&rest, markers[i].marker) || (blanks == 0 && n < 4))
            continue;
        (void)df_buf_add(out, l->text, blanks);
        (void)df_buf_adds(out, markers[i].painted);
        add_value(rest.text + n, rest.len - n, out);
        return true;
    }
    return false;
}

/* ---- heredocs: text of the module, which may look like other lines ---- */

static void enter_heredoc(struct df_paint *p, const struct line *l)
{
    const char *at = find_in(l, "<<");
    if (!at)
        return;
    at += strlen("<<");
    at += at < l->text + l->len && *at == '-';
    size_t n = l->len - (size_t)(at - l->text), blanks = blanks_before(l);
    if (n == 0 || n >= sizeof(p->until) || memchr(at, ' ', n) || memchr(at, '"', n))
        return;
    memcpy(p->until, at, n);
    p->until[n] = '\0';
    p->column = p->changes && l->text[blanks] == '~' ? blanks + 4 : 0;
}

static bool leaves_heredoc(const struct df_paint *p, const struct line *l)
{
    size_t blanks = blanks_before(l);
    const struct line rest = {l->text + blanks, l->len - blanks};
    size_t n = strlen(p->until);
    return starts(&rest, p->until) && (rest.len == n || rest.text[n] == ' ' || rest.text[n] == ',');
}

/* ---- all of it ---- */

static bool paint(struct df_paint *p, const struct line *l, struct df_buf *out)
{
    if (p->until[0]) {
        if (leaves_heredoc(p, l))
            p->until[0] = '\0';
        return p->until[0] && p->column && blanks_before(l) == p->column && paint_change(l, out);
    }
    follow_changes(p, l);
    enter_heredoc(p, l);
    if (p->changes && (paint_title(l, out) || paint_change(l, out)))
        return true;
    return paint_head(l, out) || paint_progress(l, out);
}

void df_paint_line(struct df_paint *p, const char *line, size_t n, struct df_buf *out)
{
    bool whole = n && line[n - 1] == '\n';
    const struct line l = {line, n - whole};
    if (!paint(p, &l, out))
        (void)df_buf_add(out, l.text, l.len);
    if (whole)
        (void)df_buf_addc(out, '\n');
}
