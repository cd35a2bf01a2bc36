#include "spawner/cli/revision.h"

#include "common/base/parse.h"
#include "spawner/cli/replace.h"
#include "spawner/model/revision.h"

int df_revision_number(const char *word, int64_t *ret, struct df_err *err)
{
    if (df_parse_i64(word, 1, INT32_MAX, ret, err) == 0)
        return 0;
    return df_err_wrap(err, "the number of a revision (dayfly get revisions EXECUTOR)");
}

int df_revision_fetch(struct df_cli *cli, const char *executor, int64_t number, cJSON **ret,
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

int df_revision_return(struct df_cli *cli, const char *executor, const char *number,
                       struct df_err *err)
{
    DF_FREE char *path = df_path("executors", executor, NULL);
    DF_JSON cJSON *revision = NULL, *now = NULL, *doc = NULL, *stored = NULL;
    int64_t n = 0;
    bool changed = false;
    if (df_revision_number(number, &n, err) < 0 ||
        df_cli_call(cli, "GET", path, NULL, &now, err) < 0 ||
        df_revision_fetch(cli, executor, n, &revision, err) < 0 ||
        df_client_part(now, true, &doc, err) < 0 ||
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
