#include "runner/outputs.h"

#include "common/base/fs.h"
#include "runner/tofu/failure.h"
#include "runner/tofu/workspace.h"

static int run_output(struct df_context *c, const char *path, const char *errors,
                      struct df_err *err)
{
    DF_STRS struct df_strs args = {0};
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_MIB);
    struct df_process process = DF_PROCESS_INIT;
    struct df_command_end end = {.code = -1};
    struct df_failure f = {.summary = ""};
    char name[DF_TOOL_COMMAND_TEXT];
    struct df_commander brief = c->commander;
    brief.is_brief = true;
    (void)df_strs_add(&args, "output");
    (void)df_strs_add(&args, "-json");
    (void)df_strs_add(&args, "-no-color");
    if (df_strs_check(&args, err) < 0 ||
        df_command_start(&brief, &args, path, errors, &process, err) < 0 ||
        df_command_wait(&brief, &process, &end, err) < 0)
        return -1;
    if (end.code == 0)
        return 0;
    if (df_fs_read_plain(errors, &text, NULL) == 0)
        df_failure_from_text(df_buf_str(&text), &f);
    return df_failure_explain(&f, df_tool_command_name(&c->tool, "output", name), "RunnerFailed",
                              err);
}

static int upload_outputs(struct df_context *c, struct df_err *err)
{
    DF_FREE char *path = df_fs_join(c->dirs->secret, "outputs.json");
    DF_FREE char *errors = df_fs_join(c->dirs->secret, "outputs.err");
    if (!path || !errors)
        return df_fail_oom(err);
    if (run_output(c, path, errors, err) < 0)
        return -1;
    return df_report_put_artifact(c->report, "outputs", path, c->deadline_ms, err);
}

void df_outputs_keep(struct df_context *c)
{
    struct df_err err = {0};
    if (!df_workspace_is_managed(c->doc) && upload_outputs(c, &err) < 0)
        (void)df_output_note(c->output, "dayfly: the outputs are not kept with the run: %s",
                             err.message);
}
