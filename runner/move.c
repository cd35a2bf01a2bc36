/*
 * The tool works with one backend at a time, so the module is pointed at the old place, at the new
 * one, and at the old one again. Read df_move() at the end first.
 *
 * The copy is written by `state push`, which takes the lock of the new place. After a kill at any moment the old place is unchanged, and the
 * new one has nothing or this state: the move can be repeated.
 */
#include "runner/move.h"

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/base/limits.h"
#include "runner/args.h"
#include "runner/init.h"
#include "runner/managed_put.h"
#include "runner/outputs.h"
#include "runner/pulled.h"
#include "runner/tool_run.h"

#define TAIL_MAX (256 * DF_KIB)

/* A place of the state. doc: the step document with this place as its `state`. */
struct place {
    const cJSON *doc;
    char words[400];        /* "the gcs storage (executors/net)" */
    char *file;             /* where its state is pulled to */
    struct df_pulled holds; /* what was pulled last */
};

struct move {
    struct df_context *c;
    struct place from, to;
    cJSON *moved_doc; /* owned: to.doc */
};

static void move_free(struct move *m)
{
    df_json_wipe(m->moved_doc);
    free(m->from.file);
    free(m->to.file);
}

/* ---- places ---- */

static void describe(struct place *p)
{
    static const char *const keys[] = {"key", "prefix", "path"};
    const cJSON *state = df_json_at(p->doc, "state");
    const char *type = df_json_str(state, "type"), *path = NULL;
    for (size_t i = 0; !path && i < DF_ARRAY_SIZE(keys); i++)
        path = df_json_str(df_json_at(state, "config"), keys[i]);
    (void)snprintf(p->words, sizeof(p->words), "the %s storage%s%.300s%s", type ? type : "managed",
                   path ? " (" : "", path ? path : "", path ? ")" : "");
}

/* A copy of the document whose state is the target. */
static int make_target(struct move *m, struct df_err *err)
{
    cJSON *doc = m->moved_doc = cJSON_Duplicate(m->c->doc, true);
    cJSON *target = cJSON_DetachItemFromObjectCaseSensitive(doc, "moveTo");
    if (!doc)
        return df_fail_oom(err);
    if (!target)
        return df_fail_reason(err, DF_ERR_USER, "InvalidStep", "moveTo: is required");
    m->to.doc = doc;
    return df_json_set(doc, "state", target, err);
}

static int open_places(struct move *m, struct df_err *err)
{
    m->from.doc = m->c->doc;
    if (make_target(m, err) < 0)
        return -1;
    m->from.file = df_fs_join(m->c->dirs->secret, "from.tfstate");
    m->to.file = df_fs_join(m->c->dirs->secret, "to.tfstate");
    if (!m->from.file || !m->to.file)
        return df_fail_oom(err);
    describe(&m->from);
    describe(&m->to);
    return 0;
}

/* Points the module at the place. */
static int use(struct move *m, const struct place *p, struct df_err *err)
{
    struct df_context *c = m->c;
    c->doc = p->doc;
    if (df_workspace_use_state(&c->workspace, df_json_at(p->doc, "state"), c->source.module_dir,
                               err) < 0)
        return df_err_reason(err, "RunnerFailed");
    return df_init(c, false, err) < 0 ? df_err_wrap(err, "%s", p->words) : 0;
}

/* ---- commands of the tool ---- */

static int fail_command(struct move *m, const struct place *p, const char *words, const char *text,
                        struct df_err *err)
{
    struct df_failure f;
    char name[DF_TOOL_COMMAND_TEXT];
    df_failure_from_text(text, &f);
    m->c->logged = f;
    (void)df_failure_explain(&f, df_tool_command_name(&m->c->tool, words, name),
                             "StateCommandFailed", err);
    return df_err_wrap(err, "%s", p->words);
}

static int run_pull(struct move *m, const struct place *p, const char *errors, struct df_err *err)
{
    DF_STRS struct df_strs args = {0};
    DF_BUF struct df_buf text = DF_BUF_INIT(TAIL_MAX);
    struct df_process process = DF_PROCESS_INIT;
    struct df_command_end end = {.code = -1};
    struct df_commander brief = m->c->commander;
    brief.is_brief = true;
    (void)df_strs_add(&args, "state");
    (void)df_strs_add(&args, "pull");
    if (df_fs_remove_tree(p->file, err) < 0 || df_fs_remove_tree(errors, err) < 0)
        return df_err_reason(err, "RunnerFailed");
    if (df_strs_check(&args, err) < 0 ||
        df_command_start(&brief, &args, p->file, errors, &process, err) < 0 ||
        df_command_wait(&brief, &process, &end, err) < 0)
        return -1;
    if (end.code == 0)
        return 0;
    (void)!df_fs_read_plain(errors, &text, NULL);
    return fail_command(m, p, "state pull", df_buf_str(&text), err);
}

/* Reads the state at the place that the module points at. */
static int pull(struct move *m, struct place *p, struct df_err *err)
{
    DF_CLEANUP(df_buf_wipe) struct df_buf text = DF_BUF_INIT(DF_LIMIT_STATE);
    DF_FREE char *errors = df_fs_join(m->c->dirs->secret, "pull.err");
    if (!errors)
        return df_fail_oom(err);
    if (run_pull(m, p, errors, err) < 0)
        return -1;
    if (df_fs_read_plain(p->file, &text, err) < 0)
        return df_err_reason(err, "RunnerFailed");
    return df_pulled_read(&text, &p->holds, err) < 0 ? df_err_wrap(err, "%s", p->words) : 0;
}

static int run_logged(struct move *m, const struct place *p, const char *const *words,
                      const char *name, struct df_err *err)
{
    DF_STRS struct df_strs args = {0};
    DF_BUF struct df_buf tail = DF_BUF_INIT(TAIL_MAX);
    int code = -1;
    for (const char *const *w = words; *w; w++)
        (void)df_strs_add(&args, *w);
    if (df_strs_check(&args, err) < 0 ||
        df_tool_run(m->c, &args, DF_EVENTS_NONE, true, &tail, &code, err) < 0)
        return -1;
    return code == 0 ? 0 : fail_command(m, p, name, df_buf_str(&tail), err);
}

/* Fails if somebody holds the lock: no command of the tool only looks at it. This one takes and
 * releases it, and writes nothing, because the state has no such address. */
static int check_unlocked(struct move *m, const struct place *p, struct df_err *err)
{
    static const char *const words[] = {"taint",
                                        "-allow-missing",
                                        "-no-color",
                                        DF_LOCK_TIMEOUT,
                                        "terraform_data.dayfly_looks_at_the_lock",
                                        NULL};
    (void)df_output_note(m->c->output,
                         "dayfly: is %s locked? The tool's warning is expected: that address does "
                         "not exist",
                         p->words);
    return run_logged(m, p, words, "taint", err);
}

static int push(struct move *m, const char *file, bool forced, struct df_err *err)
{
    const char *words[7] = {"state", "push", "-no-color", DF_LOCK_TIMEOUT};
    size_t n = 4;
    if (forced)
        words[n++] = "-force";
    words[n] = file;
    return run_logged(m, &m->to, words, "state push", err);
}

#define SEED "{\"version\":4,\"serial\":1,\"lineage\":\"%s\",\"outputs\":{},\"resources\":[]}"

/* `state push` gives the first state at a place a lineage of its own. So an empty state comes first,
 * and the real one replaces it. */
static int push_seed(struct move *m, struct df_err *err)
{
    DF_FREE char *file = df_fs_join(m->c->dirs->secret, "seed.tfstate");
    DF_FREE char *text = df_strf(SEED, m->from.holds.lineage);
    if (!file || !text)
        return df_fail_oom(err);
    if (df_fs_write(file, text, strlen(text), 0600, err) < 0)
        return df_err_reason(err, "RunnerFailed");
    return push(m, file, false, err) < 0 ? -1 : pull(m, &m->to, err);
}

/* ---- checks ---- */

static int refuse_target(const struct move *m, const char *why, struct df_err *err)
{
    return df_fail_reason(err, DF_ERR_CONFLICT, "StateExists",
                          "%s has another state (serial %lld, lineage \"%s\"): %s. Nothing was "
                          "changed; choose another --path, or remove that state there",
                          m->to.words, (long long)m->to.holds.serial, m->to.holds.lineage, why);
}

/* The new place has no state, an empty one, an older copy, or what an earlier move put there. */
static int check_target(const struct move *m, struct df_err *err)
{
    const struct df_pulled *from = &m->from.holds, *to = &m->to.holds;
    if (!to->exists)
        return 0;
    if (!from->exists)
        return refuse_target(m, "the executor has no state yet", err);
    if (to->is_empty)
        return 0;
    if (!df_streq(from->lineage, to->lineage))
        return refuse_target(m, "its lineage is not that of the executor's state", err);
    if (to->serial < from->serial || df_pulled_is_same(from, to))
        return 0;
    return refuse_target(m, "it is not older than the executor's state, and differs from it", err);
}

static bool is_copy(const struct move *m)
{
    return df_pulled_is_same(&m->from.holds, &m->to.holds) &&
           m->to.holds.serial >= m->from.holds.serial;
}

static int check_copy(const struct move *m, struct df_err *err)
{
    const struct df_pulled *from = &m->from.holds, *to = &m->to.holds;
    if (is_copy(m))
        return 0;
    return df_fail_reason(
        err, DF_ERR_CONFLICT, "StateMoveFailed",
        "%s gives back another state (serial %lld, lineage \"%s\") than was written "
        "(serial %lld, lineage \"%s\"): the state stays in %s",
        m->to.words, (long long)to->serial, to->lineage, (long long)from->serial, from->lineage,
        m->from.words);
}

/* dayfly's own runs wait, but others may use a bucket. */
static int check_source(struct move *m, struct df_err *err)
{
    const struct df_pulled before = m->from.holds;
    if (use(m, &m->from, err) < 0 || check_unlocked(m, &m->from, err) < 0 ||
        pull(m, &m->from, err) < 0)
        return -1;
    if (df_pulled_is_same(&before, &m->from.holds) && before.serial == m->from.holds.serial)
        return 0;
    return df_fail_reason(err, DF_ERR_CONFLICT, "StateMoveFailed",
                          "somebody wrote the state in %s while it was copied: it stays there; "
                          "move it again",
                          m->from.words);
}

/* ---- the move ---- */

/* A copy of the document whose state is a file of this step. The caller wipes it. */
static int make_stage(const struct move *m, const char *file, cJSON **ret, struct df_err *err)
{
    cJSON *doc = cJSON_Duplicate(m->to.doc, true), *state = cJSON_CreateObject();
    cJSON *config = state ? df_json_object_at(state, "config") : NULL;
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

/* `push` to a file keeps the lineage, and encrypts the state if the module says so. The spawner gets
 * that file. */
static int store_managed(struct move *m, struct df_err *err)
{
    DF_SECRET_JSON cJSON *doc = NULL;
    DF_FREE char *file = df_fs_join(m->c->dirs->secret, "stage.tfstate");
    struct place stage = {.words = "a file of the step"};
    if (!file)
        return df_fail_oom(err);
    if (make_stage(m, file, &doc, err) < 0)
        return -1;
    stage.doc = doc;
    if (use(m, &stage, err) < 0 || push(m, m->from.file, false, err) < 0 || use(m, &m->to, err) < 0)
        return -1;
    if (df_managed_put(m->c, df_json_at(m->to.doc, "state"), file, err) < 0)
        return df_err_wrap(err, "%s", m->to.words);
    return 0;
}

static int store(struct move *m, struct df_err *err)
{
    if (df_workspace_is_managed(m->to.doc))
        return store_managed(m, err);
    if (!m->to.holds.exists && (push_seed(m, err) < 0 || check_target(m, err) < 0))
        return -1;
    bool is_seed = !df_streq(m->from.holds.lineage, m->to.holds.lineage);
    return push(m, m->from.file, is_seed, err);
}

static int copy_state(struct move *m, struct df_err *err)
{
    if (use(m, &m->to, err) < 0 || pull(m, &m->to, err) < 0 || check_target(m, err) < 0)
        return -1;
    if (df_stopped(df_stop_flag(m->c->stop)))
        return df_fail(err, DF_ERR_RETRY, "before the state was copied");
    if (m->from.holds.exists && !is_copy(m) && store(m, err) < 0)
        return -1;
    if (pull(m, &m->to, err) < 0 || check_copy(m, err) < 0)
        return -1;
    if (m->to.holds.exists)
        df_outputs_keep(m->c);
    return 0;
}

static int report(struct move *m, struct df_err *err)
{
    const struct df_pulled *to = &m->to.holds;
    cJSON *state = NULL;
    if (!m->from.holds.exists) {
        df_context_set_outcome(m->c, "StateMoved", "the state will be in %s; there is none yet",
                               m->to.words);
        return 0;
    }
    df_context_set_outcome(m->c, "StateMoved",
                           "the state (serial %lld, lineage \"%s\") is in %s now; %s keeps its "
                           "copy",
                           (long long)to->serial, to->lineage, m->to.words, m->from.words);
    state = df_json_object_at(m->c->result, "state");
    if (!state)
        return df_fail_oom(err);
    return df_json_add_str(state, "lineage", m->from.holds.lineage, err) < 0
               ? -1
               : df_json_add_num(state, "serial", (double)m->from.holds.serial, err);
}

static int move_state(struct move *m, struct df_err *err)
{
    struct df_context *c = m->c;
    if (open_places(m, err) < 0 || df_init(c, false, err) < 0 ||
        df_context_mark(c, "initialized", df_real_us(), err) < 0 ||
        check_unlocked(m, &m->from, err) < 0 || pull(m, &m->from, err) < 0 ||
        copy_state(m, err) < 0 || check_source(m, err) < 0 || report(m, err) < 0)
        return -1;
    return df_context_mark(c, "executed", df_real_us(), err);
}

int df_move(struct df_context *c, struct df_err *err)
{
    DF_CLEANUP(move_free) struct move m = {.c = c};
    const cJSON *doc = c->doc;
    int result = move_state(&m, err);
    c->doc = doc;
    return result < 0 ? -1 : df_json_add_bool(c->result, "hasChanges", true, err);
}
