/* dayfly diff: what differs between two revisions of an executor. */
#include "common/base/parse.h"
#include "spawner/cli/commands.h"
#include "spawner/cli/revision.h"
#include "spawner/cli/text.h"
#include "spawner/model/difference.h"

/* The revisions that are compared: from the older one to the newer one, as they were asked for. */
struct pair {
    const char *executor;
    int64_t from, to;
    cJSON *old, *now; /* owned */
};

static void end_pair(struct pair *p)
{
    cJSON_Delete(p->old);
    cJSON_Delete(p->now);
}

/* ---- which ---- */

static int present_number(struct df_cli *cli, const char *executor, int64_t *ret,
                          struct df_err *err)
{
    DF_JSON cJSON *doc = NULL;
    if (df_cli_get(cli, df_shown_of("executors"), executor, &doc, err) < 0)
        return -1;
    *ret = df_json_int(doc, "status.revision", 0);
    return 0;
}

/* The last change, what changed since a revision, or between two. */
static int choose(struct df_cli *cli, struct pair *p, struct df_err *err)
{
    const char *from = df_cli_word(cli, 1), *to = df_cli_word(cli, 2);
    int64_t present = 0;
    if (df_cli_name(cli, 0, "executor", &p->executor, err) < 0 ||
        (from && df_revision_number(from, &p->from, err) < 0) ||
        (to && df_revision_number(to, &p->to, err) < 0) ||
        (!to && present_number(cli, p->executor, &present, err) < 0))
        return -1;
    p->to = to ? p->to : present;
    p->from = from ? p->from : present - 1;
    if (p->from < 1)
        return df_fail(err, DF_ERR_USER,
                       "executor %s has one revision only, which nothing has changed since",
                       p->executor);
    return 0;
}

/* ---- printing ---- */

/* A word as it is, anything else, and what could confuse a terminal, as JSON. */
static int add_value(struct df_buf *out, char sign, const cJSON *change, const char *key,
                     struct df_err *err)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(change, key);
    const char *text = cJSON_GetStringValue(value);
    DF_FREE char *json = NULL;
    if (!value)
        return 0;
    if (!text || !*text || strpbrk(text, "\n\r\t\"") || *text == ' ') {
        json = df_json_print(value);
        if (!(text = json))
            return df_fail_oom(err);
    }
    (void)df_buf_addf(out, "%c ", sign);
    const char *path = df_json_str(change, "path");
    df_text_safe(out, path, strlen(path));
    (void)df_buf_adds(out, ": ");
    df_text_safe(out, text, strlen(text));
    return df_buf_addc(out, '\n');
}

static void add_title(struct df_buf *out, const char *before, const cJSON *revision)
{
    const char *author = df_json_str(revision, "status.author");
    (void)df_buf_addf(out, "%s%lld (", before, (long long)df_json_int(revision, "spec.number", 0));
    author = author ? author : "author unknown";
    df_text_safe(out, author, strlen(author));
    (void)df_buf_addf(out, ", %s)", df_json_str(revision, "status.at"));
}

static int print_text(const struct pair *p, const cJSON *changes, struct df_err *err)
{
    DF_BUF struct df_buf out = DF_BUF_INIT(DF_LIMIT_HTTP_RESPONSE);
    const cJSON *change;
    add_title(&out, "revision ", p->old);
    add_title(&out, " to ", p->now);
    (void)df_buf_adds(&out, changes->child ? ":\n" : ": no difference\n");
    cJSON_ArrayForEach (change, changes) {
        if (add_value(&out, '-', change, "old", err) < 0 ||
            add_value(&out, '+', change, "new", err) < 0)
            return df_buf_check(&out, err);
    }
    return df_buf_check(&out, err) < 0 ? -1 : df_cli_print(df_buf_str(&out), err);
}

static int print_document(const struct df_cli *cli, const struct pair *p, cJSON *changes,
                          struct df_err *err)
{
    DF_JSON cJSON *doc = df_json_object(DF_STR("executor", p->executor), DF_NUM("from", p->from),
                                        DF_NUM("to", p->to), DF_ITEM("changes", changes));
    return df_cli_print_json(cli, doc, err);
}

static int compare(struct df_cli *cli, struct pair *p, struct df_err *err)
{
    DF_JSON cJSON *changes = NULL;
    if (choose(cli, p, err) < 0 || df_revision_fetch(cli, p->executor, p->from, &p->old, err) < 0 ||
        df_revision_fetch(cli, p->executor, p->to, &p->now, err) < 0 ||
        df_difference("spec", df_json_at(p->old, "spec.executor"),
                      df_json_at(p->now, "spec.executor"), &changes, err) < 0)
        return -1;
    return df_cli_output(cli)[0] ? print_document(cli, p, DF_TAKE(changes), err)
                                 : print_text(p, changes, err);
}

int df_cmd_diff(struct df_cli *cli, struct df_err *err)
{
    DF_CLEANUP(end_pair) struct pair p = {0};
    return compare(cli, &p, err);
}
