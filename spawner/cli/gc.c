/* dayfly gc: applies the service's retention now and removes orphans if asked, or shows what that
 * would remove. */
#include "spawner/cli/commands.h"
#include "spawner/cli/text.h"

#define SECOND INT64_C(1000000)

/* Why an orphan stays, or what becomes of it. */
static const char *fate_of(const cJSON *orphan, const char *verb)
{
    const char *kept = df_json_str(orphan, "kept");
    if (df_streq(kept, "young"))
        return "stays until it is a day old";
    if (df_streq(kept, "unasked"))
        return "stays: --orphans removes it";
    return kept ? "stays: a state is never removed in this way" : verb;
}

static int print_orphan(const cJSON *item, const char *verb, struct df_buf *out)
{
    char size[DF_SHORT_TEXT], age[DF_SHORT_TEXT];
    return df_buf_addf(
        out, "%s, which belongs to nothing (%s, %s old), %s\n", df_json_str(item, "name"),
        df_text_bytes(df_json_int(item, "bytes", 0), size),
        df_text_age(df_json_int(item, "ageSeconds", 0) * SECOND, age), fate_of(item, verb));
}

static int print_item(const cJSON *item, bool dry_run, struct df_buf *out)
{
    const char *kind = df_json_str(item, "kind"), *name = df_json_str(item, "name");
    long long count = df_json_int(item, "count", 0);
    bool one = count == 1;
    const char *verb = dry_run ? "would be removed" : "removed";
    if (df_streq(kind, "Orphan"))
        return print_orphan(item, verb, out);
    if (df_streq(kind, "State"))
        return df_buf_addf(out, "%lld version%s of the state of %s %s\n", count, one ? "" : "s",
                           name, verb);
    if (df_streq(kind, "Audit"))
        return df_buf_addf(out, "%lld %s of the audit trail %s\n", count, one ? "entry" : "entries",
                           verb);
    return df_buf_addf(out, "%s %s %s\n", kind, name, verb);
}

int df_cmd_gc(struct df_cli *cli, struct df_err *err)
{
    bool dry_run = df_arg_given(&cli->args, "dry-run");
    bool orphans = df_arg_given(&cli->args, "orphans");
    DF_JSON cJSON *answer = NULL;
    cli->as = DF_CONNECT_LOOK; /* a whole service removes everything at its start, untold */
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_LIMIT_HTTP_RESPONSE);
    DF_FREE char *path = df_strf("/v1/gc?dryRun=%s&orphans=%s", dry_run ? "true" : "false",
                                 orphans ? "true" : "false");
    if (df_cli_call(cli, "POST", path, NULL, &answer, err) < 0)
        return -1;
    if (df_cli_output(cli)[0])
        return df_cli_print_json(cli, answer, err);
    const cJSON *item;
    cJSON_ArrayForEach (item, df_json_at(answer, "items"))
        (void)print_item(item, dry_run, &text);
    if (!text.len)
        (void)df_buf_adds(&text, "Nothing is older than retention keeps.\n");
    return df_buf_check(&text, err) < 0 ? -1 : df_cli_print(df_buf_str(&text), err);
}
