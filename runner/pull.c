#include "runner/pull.h"

#include "common/base/fs.h"
#include "runner/tool_run.h"

int df_pull(struct df_context *c, const char *file, struct df_err *err)
{
    DF_STRS struct df_strs args = {0};
    DF_FREE char *errors = df_fs_join(c->dirs->secret, "pull.err");
    struct df_process process = DF_PROCESS_INIT;
    struct df_command_end end = {.code = -1};
    struct df_commander brief = c->commander;
    brief.is_brief = true;
    if (!errors)
        return df_fail_oom(err);
    (void)df_strs_add(&args, "state");
    (void)df_strs_add(&args, "pull");
    (void)df_strs_add(&args, "-no-color");
    if (df_fs_remove_tree(file, err) < 0 || df_fs_remove_tree(errors, err) < 0)
        return df_err_reason(err, "RunnerFailed");
    if (df_strs_check(&args, err) < 0 ||
        df_command_start(&brief, &args, file, errors, &process, err) < 0 ||
        df_command_wait(&brief, &process, &end, err) < 0)
        return -1;
    return end.code == 0 ? 0
                         : df_tool_failed_aside(c, errors, "state pull", "StateCommandFailed", err);
}
