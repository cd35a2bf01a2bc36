/*
 * report_markdown.c - the status report for people: the sections of the JSON document as Markdown.
 *
 * What comes from a cluster or a repository is escaped, so that it stays a piece of text: it can
 * neither end a table nor make a link.
 */
#include "runner/platform/report.h"

static const char *str_or(const cJSON *j, const char *path, const char *otherwise)
{
    const char *s = df_json_str(j, path);
    return df_str_empty(s) ? otherwise : s;
}

static void put_text(struct df_buf *out, const char *s)
{
    for (; *s; s++) {
        if ((unsigned char)*s < 0x20 || *s == 0x7f)
            (void)df_buf_addc(out, ' ');
        else if (strchr("\\`*_[]<>|#&", *s))
            (void)df_buf_addf(out, "\\%c", *s);
        else
            (void)df_buf_addc(out, *s);
    }
}

/* The cells of one row, up to NULL. */
static void put_row(struct df_buf *out, const char *const *cells)
{
    for (; *cells; cells++) {
        (void)df_buf_adds(out, "| ");
        put_text(out, *cells);
        (void)df_buf_addc(out, ' ');
    }
    (void)df_buf_adds(out, "|\n");
}

static void put_pair(struct df_buf *out, const char *name, const char *value)
{
    if (!df_str_empty(value))
        put_row(out, (const char *const[]){name, value, NULL});
}

static void put_number(struct df_buf *out, const char *name, double value)
{
    char text[64];
    (void)snprintf(text, sizeof(text), "%.10g", value);
    put_pair(out, name, text);
}

static void put_seconds(struct df_buf *out, const char *name, double value)
{
    char text[64];
    (void)snprintf(text, sizeof(text), "%.1f s", value);
    put_pair(out, name, text);
}

static void put_summary(struct df_buf *out, const cJSON *report)
{
    static const char *const rows[][2] = {
        {"Status", "status"},           {"Cause", "cause"},   {"Message", "message"},
        {"Action", "action"},           {"Scope", "scope"},   {"Name", "name"},
        {"Environment", "environment"}, {"Commit", "commit"}, {"Started", "startedAt"},
        {"Finished", "finishedAt"},
    };
    const cJSON *summary = df_json_at(report, "summary");
    (void)df_buf_adds(out, "## Summary\n\n| | |\n|---|---|\n");
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++)
        put_pair(out, rows[i][0], df_json_str(summary, rows[i][1]));
    put_seconds(out, "Duration", df_json_num(summary, "durationSeconds", 0));
    put_number(out, "Exit code", df_json_num(summary, "exitCode", 0));
    put_pair(out, "Dry run", df_json_bool(summary, "dryRun", false) ? "yes" : "no");
}

static void put_components(struct df_buf *out, const cJSON *report)
{
    const cJSON *c;
    (void)df_buf_adds(out, "\n## Components\n\n"
                           "| Component | Stack | State | Sync | Health | Revision | Changed "
                           "| Duration | Message |\n"
                           "|---|---|---|---|---|---|---|---|---|\n");
    cJSON_ArrayForEach (c, df_json_at(report, "components")) {
        char duration[32];
        const char *warning = df_json_str(c, "warning");
        DF_FREE char *both = warning ? df_strf("%s; %s", str_or(c, "message", "-"), warning) : NULL;
        (void)snprintf(duration, sizeof(duration), "%.1f s", df_json_num(c, "durationSeconds", 0));
        put_row(out,
                (const char *const[]){str_or(c, "name", "-"), str_or(c, "stack", "-"),
                                      str_or(c, "state", "-"), str_or(c, "sync", "-"),
                                      str_or(c, "health", "-"), str_or(c, "revision", "-"),
                                      df_json_bool(c, "changed", false) ? "yes" : "no", duration,
                                      both ? both : str_or(c, "message", "-"), NULL});
    }
}

static void put_failures(struct df_buf *out, const cJSON *report)
{
    const cJSON *f, *d;
    (void)df_buf_adds(out, "\n## Failures\n");
    if (!cJSON_GetArraySize(df_json_at(report, "failures")))
        (void)df_buf_adds(out, "\nNone.\n");
    cJSON_ArrayForEach (f, df_json_at(report, "failures")) {
        (void)df_buf_adds(out, "\n### ");
        put_text(out, str_or(f, "component", "The action"));
        (void)df_buf_adds(out, ": ");
        put_text(out, str_or(f, "cause", "Unknown"));
        (void)df_buf_adds(out, "\n\n");
        put_text(out, str_or(f, "message", "No message."));
        (void)df_buf_adds(out, "\n\n");
        cJSON_ArrayForEach (d, df_json_at(f, "diagnostics")) {
            (void)df_buf_adds(out, "- ");
            put_text(out, cJSON_IsString(d) ? d->valuestring : "");
            (void)df_buf_addc(out, '\n');
        }
    }
}

static void put_metrics(struct df_buf *out, const cJSON *report)
{
    const cJSON *state, *metrics = df_json_at(report, "metrics");
    (void)df_buf_adds(out, "\n## Metrics\n\n| | |\n|---|---|\n");
    cJSON_ArrayForEach (state, df_json_at(metrics, "components"))
        put_number(out, state->string, state->valuedouble);
    put_number(out, "Retries", df_json_num(metrics, "retries", 0));
    put_seconds(out, "Waited", df_json_num(metrics, "waitedSeconds", 0));
    put_number(out, "Writes", df_json_num(metrics, "writes", 0));
}

static void put_recommendations(struct df_buf *out, const cJSON *report)
{
    const cJSON *r;
    (void)df_buf_adds(out, "\n## Recommendations\n\n");
    if (!cJSON_GetArraySize(df_json_at(report, "recommendations")))
        (void)df_buf_adds(out, "None.\n");
    cJSON_ArrayForEach (r, df_json_at(report, "recommendations")) {
        (void)df_buf_adds(out, "- ");
        put_text(out, r->valuestring);
        (void)df_buf_addc(out, '\n');
    }
}

static void put_leaf(struct df_buf *out, const cJSON *leaf)
{
    DF_FREE char *number = cJSON_IsString(leaf) ? NULL : df_json_print(leaf);
    put_text(out, cJSON_IsString(leaf) ? leaf->valuestring : number ? number : "");
}

static void put_named(struct df_buf *out, const cJSON *leaf)
{
    if (leaf->string) {
        put_text(out, leaf->string);
        (void)df_buf_adds(out, ": ");
    }
    put_leaf(out, leaf);
}

static bool is_leaf(const cJSON *j)
{
    return !cJSON_IsArray(j) && !cJSON_IsObject(j);
}

/* A list of what is in it. An object in an array is one line. */
static void put_list(struct df_buf *out, const cJSON *of, int depth)
{
    const cJSON *j, *member;
    cJSON_ArrayForEach (j, of) {
        (void)df_buf_addf(out, "%*s- ", 2 * depth, "");
        if (is_leaf(j)) {
            put_named(out, j);
        } else if (j->string) {
            put_text(out, j->string);
        } else {
            cJSON_ArrayForEach (member, j) {
                (void)df_buf_adds(out, member == j->child ? "" : ", ");
                put_named(out, member);
            }
        }
        (void)df_buf_addc(out, '\n');
        if (!is_leaf(j) && j->string)
            put_list(out, j, depth + 1);
    }
}

/* What only one of the actions tells. */
static void put_own(struct df_buf *out, const char *title, const cJSON *part)
{
    if (!part)
        return;
    (void)df_buf_addf(out, "\n## %s\n\n", title);
    put_list(out, part, 0);
}

int df_platform_report_markdown(const cJSON *report, char **ret, struct df_err *err)
{
    DF_BUF struct df_buf out = DF_BUF_INIT(DF_LIMIT_PLATFORM_REPORT);
    (void)df_buf_adds(&out, "# Report of ");
    put_text(&out, str_or(report, "summary.action", "an action"));
    (void)df_buf_adds(&out, "\n\n");
    put_summary(&out, report);
    put_components(&out, report);
    put_failures(&out, report);
    put_metrics(&out, report);
    put_recommendations(&out, report);
    put_own(&out, "Bootstrap", df_json_at(report, "bootstrap"));
    put_own(&out, "Compliance", df_json_at(report, "compliance"));
    put_own(&out, "Removal", df_json_at(report, "removal"));
    put_own(&out, "Applications that the DAG does not have", df_json_at(report, "notInDag"));
    if (df_buf_check(&out, err) < 0)
        return -1;
    return df_check_alloc(*ret = df_buf_take(&out), err);
}
