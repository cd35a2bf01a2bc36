/* dayfly outputs: prints all outputs of a module, or one. */
#include "spawner/cli/outputs.h"

#include "common/base/limits.h"
#include "common/hcl/value.h"
#include "spawner/cli/commands.h"
#include "spawner/cli/text.h"

static int fetch(struct df_cli *cli, const char *kind, const char *of, bool show, cJSON **ret,
                 struct df_err *err)
{
    DF_FREE char *path = df_path(kind, of, "outputs", NULL);
    DF_FREE char *full = path ? df_strf("%s%s", path, show ? "?showSensitive=true" : "") : NULL;
    return df_cli_call(cli, "GET", full, NULL, ret, err);
}

int df_outputs_fetch(struct df_cli *cli, const char *executor, cJSON **ret, struct df_err *err)
{
    return fetch(cli, "executors", executor, false, ret, err);
}

/* As the tool does. Lines of a string are lines here, and may have any bytes. */
static int add_value(struct df_buf *out, const cJSON *output, struct df_err *err)
{
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_LIMIT_HTTP_RESPONSE);
    DF_BUF struct df_buf bytes = DF_BUF_INIT(DF_LIMIT_HTTP_RESPONSE);
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(output, "value");
    if (!value) {
        (void)df_buf_adds(out, "<sensitive>");
        return 0;
    }
    df_hcl_print_value(value, cJSON_GetObjectItemCaseSensitive(output, "type"), &text);
    (void)df_json_add_bytes(&bytes, df_buf_str(&text));
    if (df_buf_check(&text, err) < 0 || df_buf_check(&bytes, err) < 0)
        return -1;
    df_text_safe(out, df_buf_str(&bytes), bytes.len);
    return 0;
}

int df_outputs_text(const cJSON *outputs, struct df_buf *out, struct df_err *err)
{
    const cJSON *output = NULL;
    cJSON_ArrayForEach (output, outputs) {
        df_text_safe(out, output->string, strlen(output->string));
        (void)df_buf_adds(out, " = ");
        if (add_value(out, output, err) < 0)
            return -1;
        (void)df_buf_addc(out, '\n');
    }
    return df_buf_check(out, err);
}

static int unknown_output(const cJSON *outputs, const char *name, struct df_err *err)
{
    DF_BUF struct df_buf known = DF_BUF_INIT(512);
    const cJSON *output = NULL;
    cJSON_ArrayForEach (output, outputs) {
        (void)df_buf_adds(&known, known.len ? ", " : "");
        df_text_safe(&known, output->string, strlen(output->string));
    }
    return df_fail(err, DF_ERR_NOT_FOUND, "there is no output \"%s\"; the outputs are: %s", name,
                   known.len ? df_buf_str(&known) : "none");
}

/* Prints a string without quotes, so that a script can use it; any other value as JSON. */
static int print_one(const struct df_cli *cli, const cJSON *outputs, const char *name,
                     struct df_err *err)
{
    const cJSON *output = cJSON_GetObjectItemCaseSensitive(outputs, name);
    if (!output)
        return unknown_output(outputs, name, err);
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(output, "value");
    if (!value)
        return df_fail(err, DF_ERR_USER, "output \"%s\": is sensitive; --show-sensitive prints it",
                       name);
    if (df_cli_output(cli)[0])
        return df_cli_print_json(cli, value, err);
    DF_FREE char *json = cJSON_IsString(value) ? NULL : df_json_print_nul(value);
    const char *text = cJSON_IsString(value) ? value->valuestring : json;
    DF_CLEANUP(df_buf_wipe) struct df_buf bytes = DF_BUF_INIT(DF_LIMIT_HTTP_RESPONSE);
    if (!text)
        return df_fail_oom(err);
    (void)df_json_add_bytes(&bytes, text);
    (void)df_buf_addc(&bytes, '\n');
    return df_buf_check(&bytes, err) < 0 ? -1 : df_cli_print_bytes(bytes.data, bytes.len, err);
}

static int print_all(const struct df_cli *cli, const cJSON *outputs, struct df_err *err)
{
    if (df_cli_output(cli)[0])
        return df_cli_print_json(cli, outputs, err);
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_LIMIT_HTTP_RESPONSE);
    if (df_outputs_text(outputs, &text, err) < 0)
        return -1;
    if (!text.len)
        df_cli_note("no outputs");
    return df_cli_print(df_buf_str(&text), err);
}

int df_cmd_outputs(struct df_cli *cli, struct df_err *err)
{
    const char *executor = NULL;
    if (df_cli_name(cli, 0, "executor", &executor, err) < 0)
        return -1;
    cJSON *outputs = NULL;
    const char *run = df_arg(&cli->args, "run");
    if (fetch(cli, run ? "runs" : "executors", run ? run : executor,
              df_arg_given(&cli->args, "show-sensitive"), &outputs, err) < 0)
        return -1;
    const char *name = df_cli_word(cli, 1);
    int result = name ? print_one(cli, outputs, name, err) : print_all(cli, outputs, err);
    df_json_wipe(outputs);
    return result;
}
