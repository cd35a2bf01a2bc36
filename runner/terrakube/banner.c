#include "runner/terrakube/banner.h"

#include "common/base/fs.h"
#include "runner/terrakube/flow.h"
#include "runner/terrakube/report.h"

#define GREEN "\x1b[32;40;1m"
#define PLAIN "\x1b[0m"
#define STARS "***************************************"

/* One entry. Each line of it has its own colour, also an empty one. */
static int add_entry(struct df_context *c, const char *text, struct df_err *err)
{
    DF_BUF struct df_buf b = DF_BUF_INIT(4 * DF_KIB);
    bool colour = df_terrakube_of(c)->settings->colour;
    for (;;) {
        size_t n = strcspn(text, "\n");
        (void)df_buf_adds(&b, colour ? GREEN : "");
        (void)df_buf_add(&b, text, n);
        (void)df_buf_adds(&b, colour ? PLAIN : "");
        if (!text[n])
            break;
        (void)df_buf_addc(&b, '\n');
        text += n + 1;
    }
    if (df_buf_check(&b, err) < 0 || df_output_flush(c->output, err) < 0)
        return -1;
    df_terrakube_report_entry(c->report, df_buf_str(&b));
    (void)df_buf_addc(&b, '\n');
    (void)!df_fs_write_all(STDOUT_FILENO, df_buf_str(&b), b.len, NULL); /* the pod's log */
    return 0;
}

static const char *product(const struct df_context *c)
{
    return df_terrakube_of(c)->payload->is_tofu ? "Tofu" : "Terraform";
}

int df_terrakube_banner_init(struct df_context *c, struct df_err *err)
{
    const struct df_terrakube_payload *p = df_terrakube_of(c)->payload;
    char number[DF_VERSION_TEXT];
    DF_FREE char *job = df_strf("Initializing Terrakube Job %s Step %s", p->job, p->step);
    DF_FREE char *version =
        df_strf("Running %s %s", product(c), df_version_format(&c->tool.version, number));
    DF_FREE char *init = df_strf("Running %s Init: ", product(c));
    if (!p->show_header)
        return 0;
    if (df_check_alloc(job, err) < 0 || df_check_alloc(version, err) < 0 ||
        df_check_alloc(init, err) < 0 || add_entry(c, STARS, err) < 0 ||
        add_entry(c, job, err) < 0 || add_entry(c, version, err) < 0 ||
        add_entry(c, "\n\n" STARS, err) < 0)
        return -1;
    return add_entry(c, init, err);
}

int df_terrakube_banner_run(struct df_context *c, const char *what, struct df_err *err)
{
    DF_FREE char *running = df_strf("Running %s %s", product(c), what);
    if (!df_terrakube_of(c)->payload->show_header)
        return 0;
    if (df_check_alloc(running, err) < 0 || add_entry(c, STARS, err) < 0 ||
        add_entry(c, running, err) < 0)
        return -1;
    return add_entry(c, STARS, err);
}
