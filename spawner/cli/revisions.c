/* Revisions of an executor: dayfly diff, and the way back of dayfly edit --revision. */
#include "spawner/cli/revisions.h"

#include "common/base/parse.h"
#include "spawner/cli/commands.h"
#include "spawner/cli/kinds.h"
#include "spawner/cli/replace.h"
#include "spawner/cli/text.h"
#include "spawner/model/difference.h"
#include "spawner/model/revision.h"

/* ---- one by its number ---- */

/* The number in a word of the command line. */
static int read_number(const char *word, int64_t *ret, struct df_err *err)
{
    if (df_parse_i64(word, 1, INT32_MAX, ret, err) == 0)
        return 0;
    return df_err_wrap(err, "the number of a revision (dayfly get revisions EXECUTOR)");
}

static int fetch(struct df_cli *cli, const char *executor, int64_t number, cJSON **ret,
                 struct df_err *err)
{
    char name[64];
    struct df_err why = {0};
    if (df_revision_name(executor, number, name, err) < 0)
        return -1;
    if (df_cli_get(cli, df_shown_of("revisions"), name, ret, &why) == 0)
        return 0;
    if (why.cls != DF_ERR_NOT_FOUND)
        return df_err_pass(err, &why);
    return df_fail_reason(err, DF_ERR_NOT_FOUND, "NotFound",
                          "executor %s has no revision %lld, or not any more: `dayfly get "
                          "revisions %s` lists them",
                          executor, (long long)number, executor);
}

/* ---- dayfly diff ---- */

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

/* The newest two: numbers may be missing. */
static int find_newest(struct df_cli *cli, struct pair *p, struct df_err *err)
{
    DF_FREE char *path = df_path("executors", p->executor, "revisions", NULL);
    DF_FREE char *full = path ? df_strf("%s?limit=2", path) : NULL;
    DF_JSON cJSON *newest = NULL;
    if (df_cli_list_some(cli, full, 2, &newest, err) < 0)
        return -1;
    p->to = df_json_int(cJSON_GetArrayItem(newest, 0), "spec.number", 0);
    if (!p->from)
        p->from = df_json_int(cJSON_GetArrayItem(newest, 1), "spec.number", 0);
    if (p->from && p->to)
        return 0;
    return df_fail_reason(err, DF_ERR_NOT_FOUND, "NotFound",
                          "executor %s has no earlier revision to compare with", p->executor);
}

/* The last change, what has changed since a revision, or between two. */
static int choose(struct df_cli *cli, struct pair *p, struct df_err *err)
{
    const char *from = df_cli_word(cli, 1), *to = df_cli_word(cli, 2);
    if (df_cli_name(cli, 0, "executor", &p->executor, err) < 0 ||
        (from && read_number(from, &p->from, err) < 0) || (to && read_number(to, &p->to, err) < 0))
        return -1;
    return to ? 0 : find_newest(cli, p, err);
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
    if (choose(cli, p, err) < 0 || fetch(cli, p->executor, p->from, &p->old, err) < 0 ||
        fetch(cli, p->executor, p->to, &p->now, err) < 0 ||
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

/* ---- dayfly edit --revision ---- */

int df_revision_return(struct df_cli *cli, const char *executor, const char *number,
                       struct df_err *err)
{
    DF_FREE char *path = df_path("executors", executor, NULL);
    DF_JSON cJSON *revision = NULL, *now = NULL, *doc = NULL, *stored = NULL;
    int64_t n = 0;
    bool changed = false;
    if (read_number(number, &n, err) < 0 || df_cli_call(cli, "GET", path, NULL, &now, err) < 0 ||
        fetch(cli, executor, n, &revision, err) < 0 || df_client_part(now, true, &doc, err) < 0 ||
        df_json_set(doc, "spec", cJSON_Duplicate(df_json_at(revision, "spec.executor"), true),
                    err) < 0 ||
        df_replace_document(cli, path, now, doc, &changed, &stored, err) < 0)
        return -1;
    if (!changed)
        return df_cli_printf(err, "executor/%s unchanged\n", executor);
    return df_cli_printf(err, "executor/%s changed: revision %lld has the spec of revision %lld\n",
                         executor, (long long)df_json_int(stored, "status.revision", 0),
                         (long long)n);
}
