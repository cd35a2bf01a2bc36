/* dayfly doctor: checks an installation and prints the findings. */
#include "spawner/doctor/doctor.h"

#include "spawner/cli/commands.h"
#include "spawner/cli/text.h"

static void add_line(const struct df_cli *cli, const cJSON *finding, struct df_buf *out)
{
    static const struct {
        const char *level, *word, *color;
    } words[] = {{"ok", "[ok]  ", "\x1b[32m"},
                 {"warn", "[warn]", "\x1b[33m"},
                 {"fail", "[FAIL]", "\x1b[31m"}};
    const char *message = df_json_str(finding, "message");
    bool color = cli->color && cli->out_tty;
    for (size_t i = 0; i < DF_ARRAY_SIZE(words); i++)
        if (df_streq(df_json_str(finding, "level"), words[i].level))
            (void)df_buf_addf(out, "%s%s%s", color ? words[i].color : "", words[i].word,
                              color ? "\x1b[0m" : "");
    (void)df_buf_addf(out, " %s: ", df_json_str(finding, "check"));
    df_text_safe(out, message, strlen(message));
    (void)df_buf_addc(out, '\n');
}

static int print_lines(const struct df_cli *cli, const cJSON *doc, struct df_err *err)
{
    DF_BUF struct df_buf out = DF_BUF_INIT(DF_MIB);
    const cJSON *finding;
    cJSON_ArrayForEach (finding, df_json_at(doc, "findings"))
        add_line(cli, finding, &out);
    (void)df_buf_addf(&out, "%lld FAIL, %lld warn\n", (long long)df_json_int(doc, "failures", 0),
                      (long long)df_json_int(doc, "warnings", 0));
    return df_buf_check(&out, err) < 0 ? -1 : df_cli_print(df_buf_str(&out), err);
}

int df_cmd_doctor(struct df_cli *cli, struct df_err *err)
{
    DF_STRS struct df_strs settings = {0};
    DF_JSON cJSON *doc = NULL;
    const struct df_doctor_options o = {.config = df_cli_config(cli),
                                        .settings = &settings,
                                        .account = df_arg(&cli->args, "service-account"),
                                        .module = df_cli_word(cli, 0),
                                        .only = df_arg(&cli->args, "only"),
                                        .probe = !df_arg_given(&cli->args, "no-probe")};
    if (df_cli_settings(&cli->args, &settings, err) < 0 || df_doctor(&o, &doc, err) < 0)
        return -1;
    int result =
        df_cli_output(cli)[0] ? df_cli_print_json(cli, doc, err) : print_lines(cli, doc, err);
    if (result < 0)
        return -1;
    return df_json_int(doc, "failures", 0) ? DF_EXIT_FAILURE : DF_EXIT_OK;
}
