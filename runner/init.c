#include "runner/init.h"

#include "common/base/fs.h"
#include "runner/args.h"
#include "runner/tofu/backend_noted.h"
#include "runner/tool_run.h"

#define INIT_TAIL (256 * DF_KIB)

static int fail_init(struct df_context *c, const char *text, struct df_err *err)
{
    struct df_failure f;
    char name[DF_TOOL_COMMAND_TEXT];
    df_failure_from_text(text, &f);
    c->logged = f;
    DF_FREE char *local = df_fs_join(c->source.module_dir, "terraform.tfstate");
    if (local && df_fs_exists(local) && strcasestr(f.summary, "state migration"))
        return df_fail_reason(err, DF_ERR_USER, "InitFailed",
                              "the source holds a terraform.tfstate with resources, but the state "
                              "is kept elsewhere and would start without them: remove the file if "
                              "that is intended");
    return df_failure_explain(&f, df_tool_command_name(&c->tool, "init", name), "InitFailed", err);
}

int df_init(struct df_context *c, bool lock_readonly, struct df_err *err)
{
    DF_STRS struct df_strs args = {0};
    DF_BUF struct df_buf tail = DF_BUF_INIT(INIT_TAIL);
    int code = -1;
    (void)df_strs_add(&args, "init");
    (void)df_strs_add(&args, "-input=false");
    (void)df_strs_add(&args, "-no-color");
    if (lock_readonly)
        (void)df_strs_add(&args, "-lockfile=readonly");
    if (df_tool_init_takes_varfiles(&c->tool))
        df_args_add_all(&args, &c->varfiles.files);
    if (df_strs_check(&args, err) < 0 ||
        df_tool_run(c, &args, DF_EVENTS_NONE, true, &tail, &code, err) < 0)
        return -1;
    if (code != 0)
        return fail_init(c, df_buf_str(&tail), err);
    return df_backend_noted_check(c->doc, c->source.module_dir, err);
}
