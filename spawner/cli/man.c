/*
 * Generates the manual pages from the same table as --help. Read df_cli_man() at the end first.
 */
#include "spawner/cli/man.h"

#include "common/base/fs.h"
#include "common/base/limits.h"

/* Text for roff: backslashes and dashes are escaped, and no line begins with a request. */
static void add_text(struct df_buf *out, const char *text)
{
    bool begins = true;
    for (; *text; begins = *text == '\n', text++) {
        if (begins && (*text == '.' || *text == '\''))
            (void)df_buf_adds(out, "\\&");
        if (*text == '\\')
            (void)df_buf_adds(out, "\\e");
        else if (*text == '-')
            (void)df_buf_adds(out, "\\-");
        else
            (void)df_buf_add(out, text, 1);
    }
}

static void add_header(struct df_buf *out, const char *page, const char *summary)
{
    (void)df_buf_addf(out, ".TH %s 1 \"\" \"dayfly %s\" \"dayfly manual\"\n.SH NAME\n", page,
                      DF_VERSION);
    add_text(out, page);
    (void)df_buf_adds(out, " \\- ");
    add_text(out, summary);
    (void)df_buf_adds(out, "\n");
}

static void add_options(struct df_buf *out, const struct df_option *options)
{
    for (const struct df_option *o = options; o && o->name; o++) {
        (void)df_buf_adds(out, ".TP\n\\fB");
        if (o->letter)
            (void)df_buf_addf(out, "\\-%c\\fR, \\fB", o->letter);
        (void)df_buf_adds(out, "\\-\\-");
        add_text(out, o->name);
        (void)df_buf_adds(out, "\\fR");
        if (o->value) {
            (void)df_buf_adds(out, " \\fI");
            add_text(out, o->value);
            (void)df_buf_adds(out, "\\fR");
        }
        (void)df_buf_adds(out, "\n");
        add_text(out, o->help);
        (void)df_buf_adds(out, "\n");
    }
}

static void add_exit_status(struct df_buf *out)
{
    (void)df_buf_adds(out, ".SH EXIT STATUS\n");
    for (const struct df_exit_code *x = df_exit_codes; x->meaning; x++)
        (void)df_buf_addf(out, ".TP\n.B %d\n%s\n", x->code, x->meaning);
}

/* The page of "state list" is dayfly-state-list. */
static void page_of(const struct df_command *c, char *ret, size_t size)
{
    (void)snprintf(ret, size, "dayfly-%s", c->name);
    for (char *p = ret; *p; p++)
        if (*p == ' ')
            *p = '-';
}

static int command_page(const struct df_command *c, const char *page, struct df_buf *out,
                        struct df_err *err)
{
    add_header(out, page, c->summary);
    (void)df_buf_addf(out, ".SH SYNOPSIS\n\\fBdayfly %s\\fR ", c->name);
    add_text(out, c->synopsis);
    (void)df_buf_adds(out, "\n.SH DESCRIPTION\n");
    if (c->details)
        add_text(out, c->details);
    else
        (void)df_buf_addf(out, "%s.\n", c->summary);
    if (c->options && c->options->name)
        (void)df_buf_adds(out, ".SH OPTIONS\n");
    add_options(out, c->options);
    (void)df_buf_adds(out, ".SH COMMON OPTIONS\n");
    add_options(out, df_common_options);
    (void)df_buf_adds(out, ".SH EXAMPLES\n.nf\n");
    add_text(out, c->examples);
    (void)df_buf_adds(out, ".fi\n");
    add_exit_status(out);
    (void)df_buf_adds(out, ".SH SEE ALSO\n.BR dayfly (1)\n");
    return df_buf_check(out, err);
}

static const char environment[] =
    ".SH ENVIRONMENT\n"
    ".TP\n.B DAYFLY_SERVER\nURL of the service\n"
    ".TP\n.B DAYFLY_TOKEN\nbearer token\n"
    ".TP\n.B DAYFLY_CA_FILE\ncertificates to trust instead of the system's\n"
    ".TP\n.B DAYFLY_CONFIG\nconfiguration file\n"
    ".TP\n.B DAYFLY_DATA_DIRECTORY\ndata directory of the service of this machine\n"
    ".TP\n.B NO_COLOR\nno colours\n"
    ".SH FILES\n"
    ".TP\n.I ~/.local/state/dayfly\nthe data directory: documents, state, plans, logs and the key "
    "file ($XDG_STATE_HOME/dayfly)\n"
    ".TP\n.I ~/.config/dayfly/logins.json\nthe tokens of dayfly login ($XDG_CONFIG_HOME/dayfly)\n";

static int overview_page(const struct df_command *commands, struct df_buf *out, struct df_err *err)
{
    add_header(out, "dayfly", "short-lived runners for OpenTofu and Terraform");
    (void)df_buf_adds(out, ".SH SYNOPSIS\n\\fBdayfly\\fR \\fICOMMAND\\fR [options]\n"
                           ".SH DESCRIPTION\n"
                           "dayfly runs each plan and each apply in a process or a Kubernetes Job "
                           "of its own, and keeps state, plans and logs.\n"
                           ".SH COMMANDS\n");
    for (const struct df_command *c = commands; c->name; c++) {
        char page[64];
        page_of(c, page, sizeof(page));
        (void)df_buf_adds(out, ".TP\n.BR ");
        add_text(out, page);
        (void)df_buf_adds(out, " (1)\n");
        add_text(out, c->summary);
        (void)df_buf_adds(out, "\n");
    }
    (void)df_buf_adds(out, ".SH COMMON OPTIONS\n");
    add_options(out, df_common_options);
    add_exit_status(out);
    (void)df_buf_adds(out, environment);
    return df_buf_check(out, err);
}

static int write_page(const char *directory, const char *page, const struct df_buf *text,
                      struct df_err *err)
{
    DF_FREE char *path = df_strf("%s/%s.1", directory, page);
    return df_fs_write(path, text->data, text->len, 0644, err);
}

static int write_command(const char *directory, const struct df_command *c, struct df_err *err)
{
    char page[64];
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_CLI_HELP_MAX);
    page_of(c, page, sizeof(page));
    return command_page(c, page, &text, err) < 0 ? -1 : write_page(directory, page, &text, err);
}

int df_cli_man(const struct df_command *commands, const char *directory, struct df_err *err)
{
    DF_BUF struct df_buf overview = DF_BUF_INIT(DF_CLI_HELP_MAX);
    if (df_fs_mkdirs(directory, 0755, err) < 0 || overview_page(commands, &overview, err) < 0 ||
        write_page(directory, "dayfly", &overview, err) < 0)
        return -1;
    for (const struct df_command *c = commands; c->name; c++)
        if (write_command(directory, c, err) < 0)
            return -1;
    return 0;
}
