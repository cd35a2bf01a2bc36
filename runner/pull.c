#include "runner/pull.h"

#include "common/base/fs.h"
#include "common/base/limits.h"
#include "runner/tool_run.h"
#include "runner/torn.h"

/* A command that reads the state and writes nothing. */
struct reader {
    const char *arguments[3];
    const char *words;    /* the command in messages */
    const char *fallback; /* the reason of a failure whose meaning is not known */
};

/* errors: the file for what the command says on standard error. */
static int run_once(const struct df_context *c, const struct reader *r, const char *file,
                    const char *errors, int *ret_code, struct df_err *err)
{
    DF_STRS struct df_strs args = {0};
    struct df_process process = DF_PROCESS_INIT;
    struct df_command_end end = {.code = -1};
    struct df_commander brief = c->commander;
    brief.is_brief = true;
    for (size_t i = 0; i < DF_ARRAY_SIZE(r->arguments); i++)
        (void)df_strs_add(&args, r->arguments[i]);
    if (df_fs_remove_tree(file, err) < 0 || df_fs_remove_tree(errors, err) < 0)
        return df_err_reason(err, "RunnerFailed");
    if (df_strs_check(&args, err) < 0 ||
        df_command_start(&brief, &args, file, errors, &process, err) < 0 ||
        df_command_wait(&brief, &process, &end, err) < 0)
        return -1;
    *ret_code = end.code;
    return 0;
}

static bool was_torn(const struct df_context *c, const char *errors)
{
    DF_BUF struct df_buf text = DF_BUF_INIT(256 * DF_KIB);
    return df_fs_read_plain(errors, &text, NULL) == 0 && df_torn_text(c, df_buf_str(&text));
}

static int run_whole(struct df_context *c, const struct reader *r, const char *file,
                     struct df_err *err)
{
    DF_FREE char *errors = df_fs_join(c->dirs->secret, "pull.err");
    if (!errors)
        return df_fail_oom(err);
    for (int tries = 1;; tries++) {
        int code = -1;
        if (run_once(c, r, file, errors, &code, err) < 0)
            return -1;
        if (code == 0)
            return 0;
        if (!was_torn(c, errors) || !df_torn_again(c, tries))
            return df_tool_failed_aside(c, errors, r->words, r->fallback, err);
    }
}

int df_pull(struct df_context *c, const char *file, struct df_err *err)
{
    static const struct reader pull = {
        {"state", "pull", "-no-color"}, "state pull", "StateCommandFailed"};
    return run_whole(c, &pull, file, err);
}

int df_pull_outputs(struct df_context *c, const char *file, struct df_err *err)
{
    static const struct reader output = {
        {"output", "-json", "-no-color"}, "output", "RunnerFailed"};
    return run_whole(c, &output, file, err);
}
