#include "runner/pull.h"

#include "common/base/fs.h"
#include "runner/tofu/failure.h"
#include "runner/tool_run.h"
#include "runner/torn.h"

#define TAIL_MAX (256 * DF_KIB)

static int fail_pull(struct df_context *c, const struct df_buf *errors, struct df_err *err)
{
    struct df_failure f;
    char name[DF_TOOL_COMMAND_TEXT];
    df_tool_read_failure(c, df_buf_str(errors), &f);
    c->logged = f;
    return df_failure_explain(&f, df_tool_command_name(&c->tool, "state pull", name),
                              "StateCommandFailed", false, err);
}

/* ret_errors: what the command said, if it failed; empty before. */
static int pull_once(const struct df_context *c, const char *file, int *ret_code,
                     struct df_buf *ret_errors, struct df_err *err)
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
    if (df_fs_remove_tree(file, err) < 0 || df_fs_remove_tree(errors, err) < 0)
        return df_err_reason(err, "RunnerFailed");
    if (df_strs_check(&args, err) < 0 ||
        df_command_start(&brief, &args, file, errors, &process, err) < 0 ||
        df_command_wait(&brief, &process, &end, err) < 0)
        return -1;
    *ret_code = end.code;
    if (end.code != 0)
        (void)!df_fs_read_plain(errors, ret_errors, NULL);
    return 0;
}

int df_pull(struct df_context *c, const char *file, struct df_err *err)
{
    for (int tries = 1;; tries++) {
        DF_BUF struct df_buf errors = DF_BUF_INIT(TAIL_MAX);
        int code = -1;
        if (pull_once(c, file, &code, &errors, err) < 0)
            return -1;
        if (code == 0)
            return 0;
        if (!df_torn_text(c, df_buf_str(&errors)) || !df_torn_again(c, tries))
            return fail_pull(c, &errors, err);
    }
}
