/* dayfly gc: applies the service's retention now, or shows what that would remove. */
#include "spawner/cli/commands.h"

static int print_item(const cJSON *item, bool dry_run, struct df_buf *out)
{
    const char *kind = df_json_str(item, "kind"), *name = df_json_str(item, "name");
    int64_t count = df_json_int(item, "count", 0);
    const char *verb = dry_run ? "would be removed" : "removed";
    return count ? df_buf_addf(out, "%lld versions of the state of %s %s\n", (long long)count, name,
                               verb)
                 : df_buf_addf(out, "%s %s %s\n", kind, name, verb);
}

int df_cmd_gc(struct df_cli *cli, struct df_err *err)
{
    bool dry_run = df_arg_given(&cli->args, "dry-run");
    DF_JSON cJSON *answer = NULL;
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_LIMIT_HTTP_RESPONSE);
    if (df_cli_call(cli, "POST", dry_run ? "/v1/gc?dryRun=true" : "/v1/gc", NULL, &answer, err) < 0)
        return -1;
    if (df_cli_output(cli)[0])
        return df_cli_print_json(cli, answer, err);
    const cJSON *item;
    cJSON_ArrayForEach (item, df_json_at(answer, "items"))
        (void)print_item(item, dry_run, &text);
    if (!text.len)
        (void)df_buf_adds(&text, "Nothing is beyond retention.*\n");
    return df_buf_check(&text, err) < 0 ? -1 : df_cli_print(df_buf_str(&text), err);
}
