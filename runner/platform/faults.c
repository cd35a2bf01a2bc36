#include "runner/platform/faults.h"

#include "common/base/buf.h"

void df_faults_free(struct df_faults *f)
{
    df_strs_free(&f->lines);
}

bool df_faults_full(const struct df_faults *f)
{
    return f->lines.len > DF_LIMIT_INPUT_FAULTS;
}

static void hide_control(char *s)
{
    for (; *s; s++)
        if ((unsigned char)*s < ' ' || *s == 0x7f)
            *s = '?';
}

void df_faults_addv(struct df_faults *f, const char *about, const char *fmt, va_list ap)
{
    if (df_faults_full(f) && about)
        return;
    if (about && f->lines.len == DF_LIMIT_INPUT_FAULTS) {
        (void)df_strs_add(&f->lines, "there are more faults: mend these first");
        return;
    }
    DF_FREE char *what = NULL;
    if (vasprintf(&what, fmt, ap) < 0)
        what = NULL;
    char *line = about && what ? df_strf("%s: %s", about, what) : NULL;
    if (line)
        hide_control(line);
    (void)df_strs_take(&f->lines, line);
}

void df_faults_add(struct df_faults *f, const char *about, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    df_faults_addv(f, about, fmt, ap);
    va_end(ap);
}

void df_faults_keep(struct df_faults *f, char **to, const char *value)
{
    if (df_str_set(to, value, NULL) < 0)
        df_faults_add(f, NULL, "no memory");
}

int df_faults_check(const struct df_faults *f, struct df_err *err)
{
    if (df_strs_check(&f->lines, err) < 0)
        return -1;
    if (!f->lines.len)
        return 0;
    if (f->lines.len == 1)
        return df_fail_reason(err, DF_ERR_USER, "InvalidInput", "%s", f->lines.items[0]);
    return df_fail_reason(err, DF_ERR_USER, "InvalidInput",
                          "the input has %zu faults; the first: %s", f->lines.len,
                          f->lines.items[0]);
}
