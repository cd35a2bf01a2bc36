#include <signal.h>

#include "common/base/limits.h"
#include "common/process/process.h"
#include "runner/source/git.h"

enum { STDERR_TAIL = 8192 };

static int build_argv(const char *const *args, struct df_strs *argv, struct df_err *err)
{
    (void)df_strs_add(argv, "git");
    for (; *args; args++)
        (void)df_strs_add(argv, *args);
    return df_strs_check(argv, err);
}

int df_git_run(const struct df_git *g, const struct df_git_repo *r, const char *const *args,
               struct df_buf *out, struct df_err *err)
{
    DF_STRS struct df_strs argv = {0};
    if (build_argv(args, &argv, err) < 0)
        return -1;
    struct df_process_options o =
        DF_PROCESS_OPTIONS((const char *const *)argv.items, (const char *const *)g->env.items);
    o.cwd = r->directory;
    o.death_signal = SIGKILL;
    o.no_core = true;
    o.max_file_bytes = DF_LIMIT_ARCHIVE_BYTES;
    o.stop = g->fetch->stop;
    o.wall = g->fetch->spec->path ? g->fetch->git_wall : NULL;
    DF_BUF struct df_buf tail = DF_BUF_INIT(STDERR_TAIL);
    int code = 0;
    if (df_process_run(&o, -1, out, &tail, &code, err) < 0)
        return err && err->cls == DF_ERR_NOT_FOUND
                   ? df_err_wrap(err, "a git source needs the git program")
                   : -1;
    return code ? df_git_explain(r->remote, code, df_buf_str(&tail), g->fetch->advice, err) : 0;
}
