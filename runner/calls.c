#include "runner/calls.h"

#include "common/base/fs.h"
#include "common/hcl/calls.h"
#include "runner/work.h"

struct checking {
    const char *checkout;
    const char *advice;
};

static int check_call(void *arg, const struct df_hcl_call *call, struct df_err *err)
{
    const struct checking *k = arg;
    if (df_fs_is_within(call->target, k->checkout))
        return 0;
    const char *folder = call->directory + strlen(k->checkout);
    return df_fail_reason(
        err, DF_ERR_USER, "InitFailed",
        "module \"%.64s\" (%s%s%s, line %u) calls %.256s, which is outside of the "
        "source: %s",
        call->name, folder + strspn(folder, "/"), *folder ? "/" : "", call->file, call->line,
        call->source, k->advice);
}

int df_calls_check(const struct df_context *c, struct df_err *err)
{
    bool is_directory = df_streq(df_json_str(c->doc, "source.kind"), "directory");
    struct checking k = {c->dirs->source,
                         is_directory ? "`dayfly run DIRECTORY` takes it along; or name a "
                                        "directory that has both, and the module in it with "
                                        "--folder (spec.source.folder)"
                                      : "the repository or archive must have both"};
    struct df_err why = {0};
    if (!c->work->checks_calls || df_hcl_calls(c->source.module_dir, df_tool_kind_hcl(c->tool.kind),
                                               check_call, &k, &why) == 0)
        return 0;
    /* What is beyond our limits is the tool's to read. */
    return df_streq(why.reason, "InitFailed") ? df_err_pass(err, &why) : 0;
}
