/* Read df_place_use() first: the tool works with one backend at a time. */
#include "runner/place.h"

#include "common/base/fs.h"
#include "common/base/limits.h"
#include "runner/args.h"
#include "runner/init.h"
#include "runner/pull.h"
#include "runner/tool_run.h"

#define TAIL_MAX (256 * DF_KIB)

/* ---- places ---- */

void df_place_describe(struct df_place *p)
{
    static const char *const keys[] = {"key", "prefix", "path"};
    const cJSON *state = df_json_at(p->doc, "state");
    const char *type = df_json_str(state, "type"), *path = NULL;
    for (size_t i = 0; !path && i < DF_ARRAY_SIZE(keys); i++)
        path = df_json_str(df_json_at(state, "config"), keys[i]);
    (void)snprintf(p->words, sizeof(p->words), "the %s storage%s%.300s%s", type ? type : "managed",
                   path ? " (" : "", path ? path : "", path ? ")" : "");
}

int df_place_stage(const cJSON *step, const char *file, cJSON **ret, struct df_err *err)
{
    cJSON *doc = cJSON_Duplicate(step, true), *state = cJSON_CreateObject();
    cJSON *config = df_json_object_at(state, "config");
    *ret = doc;
    if (!doc || !config) {
        cJSON_Delete(state);
        return df_fail_oom(err);
    }
    return df_json_set(doc, "state", state, err) < 0 ||
                   df_json_set_str(state, "type", "local", err) < 0 ||
                   df_json_set_str(config, "path", file, err) < 0
               ? -1
               : 0;
}

int df_place_use(struct df_context *c, const struct df_place *p, struct df_err *err)
{
    c->doc = p->doc;
    if (df_workspace_use_state(&c->workspace, df_json_at(p->doc, "state"), c->source.module_dir,
                               err) < 0)
        return df_err_reason(err, "RunnerFailed");
    return df_init(c, false, err) < 0 ? df_err_wrap(err, "%s", p->words) : 0;
}

/* ---- commands of the tool ---- */

/* what: as a message calls it. */
static int fail_command(struct df_context *c, const struct df_place *p, const char *what,
                        const char *text, struct df_err *err)
{
    struct df_failure f;
    df_tool_read_failure(c, text, &f);
    c->logged = f;
    (void)df_failure_explain(&f, what, "StateCommandFailed", NULL, err);
    return df_err_wrap(err, "%s", p->words);
}

int df_place_pull(struct df_context *c, struct df_place *p, struct df_err *err)
{
    DF_CLEANUP(df_buf_wipe) struct df_buf text = DF_BUF_INIT(DF_LIMIT_STATE);
    if (df_pull(c, p->file, err) < 0)
        return df_err_wrap(err, "%s", p->words);
    if (df_fs_read_plain(p->file, &text, err) < 0)
        return df_err_reason(err, "RunnerFailed");
    return df_pulled_read(&text, &p->holds, err) < 0 ? df_err_wrap(err, "%s", p->words) : 0;
}

static int run_logged(struct df_context *c, const struct df_place *p, const char *const *words,
                      const char *what, struct df_err *err)
{
    DF_STRS struct df_strs args = {0};
    DF_BUF struct df_buf tail = DF_BUF_INIT(TAIL_MAX);
    int code = -1;
    for (const char *const *w = words; *w; w++)
        (void)df_strs_add(&args, *w);
    if (df_strs_check(&args, err) < 0 ||
        df_tool_run(c, &args, DF_EVENTS_NONE, true, &tail, &code, err) < 0)
        return -1;
    return code == 0 ? 0 : fail_command(c, p, what, df_buf_str(&tail), err);
}

/* Fails if somebody holds the lock: no command of the tool only looks at it. This one takes and
 * releases it, and writes nothing, because the state has no such address. Messages do not name it:
 * a reader would think that something was tainted. */
int df_place_check_unlocked(struct df_context *c, const struct df_place *p, struct df_err *err)
{
    static const char *const words[] = {"taint",
                                        "-allow-missing",
                                        "-no-color",
                                        DF_LOCK_TIMEOUT,
                                        "terraform_data.dayfly_looks_at_the_lock",
                                        NULL};
    (void)df_output_note(c->output,
                         "dayfly: is %s locked? The tool's warning is expected: that address does "
                         "not exist",
                         p->words);
    return run_logged(c, p, words, "the check of its lock", err);
}

int df_place_push(struct df_context *c, const struct df_place *p, const char *file, bool forced,
                  struct df_err *err)
{
    const char *words[7] = {"state", "push", "-no-color", DF_LOCK_TIMEOUT};
    char name[DF_TOOL_COMMAND_TEXT];
    size_t n = 4;
    if (forced)
        words[n++] = "-force";
    words[n] = file;
    return run_logged(c, p, words, df_tool_command_name(&c->tool, "state push", name), err);
}
