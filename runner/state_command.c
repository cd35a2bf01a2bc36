/* `state mv`, `state rm`, `import`, `force-unlock`, and the push of an errored state: the tool
 * changes only its state. `migrate`, `history` and `rollback` need more than one command of it. */
#include "runner/state_command.h"

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "runner/args.h"
#include "runner/history.h"
#include "runner/init.h"
#include "runner/lineage.h"
#include "runner/move.h"
#include "runner/tofu/failure.h"
#include "runner/tool_run.h"

#define TAIL_MAX (256 * DF_KIB)
#define DRY_RUN "-dry-run"
#define PUSH_ERRORED "push-errored"
#define FAILED "StateCommandFailed"

static const struct {
    const char *name;
    const char *words[6]; /* of the tool's command line, ended by NULL */
    bool changes;
} commands[] = {
    {"mv", {"state", "mv", "-no-color", DF_LOCK_TIMEOUT}, true},
    {"rm", {"state", "rm", "-no-color", DF_LOCK_TIMEOUT}, true},
    {"import", {"import", "-input=false", "-no-color", DF_LOCK_TIMEOUT}, true},
    {"force-unlock", {"force-unlock", "-no-color", "-force"}, false},
    {PUSH_ERRORED, {"state", "push", "-no-color", DF_LOCK_TIMEOUT}, true},
};

static const char *word_at(const struct df_context *c, int i)
{
    return cJSON_GetStringValue(cJSON_GetArrayItem(df_json_at(c->doc, "command"), i));
}

static int find_command(const struct df_context *c, size_t *ret, struct df_err *err)
{
    const char *name = word_at(c, 0);
    for (size_t i = 0; i < DF_ARRAY_SIZE(commands); i++) {
        if (df_streq(name, commands[i].name)) {
            *ret = i;
            return 0;
        }
    }
    return df_fail_reason(
        err, DF_ERR_USER, "InvalidStep",
        "command: \"%.40s\" is not mv, rm, import, force-unlock, push-errored, migrate, history or "
        "rollback",
        name ? name : "");
}

/* Fetches the state that an earlier step could not store, and adds its file to the command. The
 * tool refuses it if the stored state has another lineage or a higher serial. */
static int add_errored(struct df_context *c, struct df_strs *args, struct df_err *err)
{
    DF_FREE char *path = df_fs_join(c->dirs->secret, "errored.tfstate");
    if (!path)
        return df_fail_oom(err);
    (void)df_strs_add(args, path);
    return df_report_get_artifact(c->report, "errored-state", path, c->deadline_ms, err);
}

static int add_words(struct df_context *c, struct df_strs *args, struct df_err *err)
{
    const char *word = NULL;
    if (df_streq(word_at(c, 0), PUSH_ERRORED))
        return add_errored(c, args, err);
    for (int i = 1; (word = word_at(c, i)); i++)
        (void)df_strs_add(args, word);
    return 0;
}

static int run_command(struct df_context *c, size_t which, struct df_buf *tail, int *ret_code,
                       struct df_err *err)
{
    DF_STRS struct df_strs args = {0};
    for (const char *const *w = commands[which].words; *w; w++)
        (void)df_strs_add(&args, *w);
    if (add_words(c, &args, err) < 0 || df_strs_check(&args, err) < 0)
        return -1;
    return df_tool_run(c, &args, DF_EVENTS_NONE, false, tail, ret_code, err);
}

static int fail_command(struct df_context *c, size_t which, const char *text, struct df_err *err)
{
    struct df_failure f;
    char words[24], name[DF_TOOL_COMMAND_TEXT];
    const char *const *w = commands[which].words;
    bool is_state = df_streq(w[0], "state");
    (void)snprintf(words, sizeof words, "%s%s%s", w[0], is_state ? " " : "", is_state ? w[1] : "");
    df_tool_read_failure(c, text, &f);
    c->logged = f;
    if (df_streq(words, "force-unlock"))
        return df_failure_explain_unlock(&f, df_tool_command_name(&c->tool, words, name),
                                         word_at(c, 1), FAILED, err);
    return df_tool_failed(c, &f, words, FAILED, err);
}

static void succeed(struct df_context *c, bool changes)
{
    int n = cJSON_GetArraySize(df_json_at(c->doc, "command"));
    const char *name = word_at(c, 0), *reason = changes ? "StateChanged" : "Completed";
    if (df_streq(name, "force-unlock"))
        df_context_set_outcome(c, reason, "the lock %s is released", word_at(c, 1));
    else if (df_streq(name, PUSH_ERRORED))
        df_context_set_outcome(c, reason, "the errored state is stored");
    else if (!changes)
        df_context_set_outcome(c, reason, "a dry run: nothing was changed");
    else if (df_streq(name, "mv"))
        df_context_set_outcome(c, reason, "%.400s is %.400s now", word_at(c, 1), word_at(c, 2));
    else if (df_streq(name, "import"))
        df_context_set_outcome(c, reason, "%.400s is in the state now", word_at(c, 1));
    else
        df_context_set_outcome(c, reason, "%d address%s removed from the state", n - 1,
                               n == 2 ? "" : "es");
}

int df_state_command(struct df_context *c, struct df_err *err)
{
    DF_BUF struct df_buf tail = DF_BUF_INIT(TAIL_MAX);
    size_t which = 0;
    int code = -1;
    if (df_streq(word_at(c, 0), "migrate"))
        return df_move(c, err);
    if (df_streq(word_at(c, 0), "history"))
        return df_history(c, err);
    if (df_streq(word_at(c, 0), "rollback") && word_at(c, 1))
        return df_rollback(c, word_at(c, 1), err);
    if (find_command(c, &which, err) < 0 || df_init(c, false, err) < 0 ||
        df_context_mark(c, "initialized", df_real_us(), err) < 0 || df_lineage_check(c, err) < 0)
        return -1;
    if (df_stopped(df_stop_flag(c->stop)))
        return df_fail(err, DF_ERR_RETRY, "before the command was started");
    if (run_command(c, which, &tail, &code, err) < 0 ||
        df_context_mark(c, "executed", df_real_us(), err) < 0)
        return -1;
    df_lineage_note_new(c);
    if (code != 0)
        return fail_command(c, which, df_buf_str(&tail), err);
    bool changes = commands[which].changes && !df_streq(word_at(c, 1), DRY_RUN);
    succeed(c, changes);
    return df_json_add_bool(c->result, "hasChanges", changes, err);
}
