/*
 * The tool works with one backend at a time, so the module is pointed at the old place, at the new
 * one, and at the old one again. Read df_move() at the end first.
 *
 * The copy is written by `state push`, which takes the lock of the new place. After a kill at any
 * moment the old place is unchanged, and the new one has nothing or this state: the move can be
 * repeated.
 */
#include "runner/move.h"

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "runner/init.h"
#include "runner/lineage.h"
#include "runner/managed.h"
#include "runner/outputs.h"
#include "runner/place.h"

struct move {
    struct df_context *c;
    struct df_place from, to;
    cJSON *moved_doc; /* owned: to.doc */
};

static void move_free(struct move *m)
{
    df_json_wipe(m->moved_doc);
    free(m->from.file);
    free(m->to.file);
}

/* ---- places ---- */

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
    df_place_describe(&m->from);
    df_place_describe(&m->to);
    return 0;
}

#define SEED "{\"version\":4,\"serial\":1,\"lineage\":\"%s\",\"outputs\":{},\"resources\":[]}"

/* `state push` gives the first state at a place a lineage of its own. So an empty state comes
 * first, and the real one replaces it. */
static int push_seed(struct move *m, struct df_err *err)
{
    DF_FREE char *file = df_fs_join(m->c->dirs->secret, "seed.tfstate");
    DF_FREE char *text = df_strf(SEED, m->from.holds.lineage);
    if (!file || !text)
        return df_fail_oom(err);
    if (df_fs_write(file, text, strlen(text), 0600, err) < 0)
        return df_err_reason(err, "RunnerFailed");
    return df_place_push(m->c, &m->to, file, false, err) < 0 ? -1
                                                             : df_place_pull(m->c, &m->to, err);
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
    if (df_place_use(m->c, &m->from, err) < 0 || df_place_check_unlocked(m->c, &m->from, err) < 0 ||
        df_place_pull(m->c, &m->from, err) < 0)
        return -1;
    if (df_pulled_is_same(&before, &m->from.holds) && before.serial == m->from.holds.serial)
        return 0;
    return df_fail_reason(err, DF_ERR_CONFLICT, "StateMoveFailed",
                          "somebody wrote the state in %s while it was copied: it stays there; "
                          "move it again",
                          m->from.words);
}

/* ---- the move ---- */

/* `push` to a file keeps the lineage, and encrypts the state if the module says so. The spawner
 * gets that file. */
static int store_managed(struct move *m, struct df_err *err)
{
    DF_SECRET_JSON cJSON *doc = NULL;
    DF_FREE char *file = df_fs_join(m->c->dirs->secret, "stage.tfstate");
    struct df_place stage = {.words = "a file of the step"};
    if (df_check_alloc(file, err) < 0 || df_place_stage(m->to.doc, file, &doc, err) < 0)
        return -1;
    stage.doc = doc;
    if (df_place_use(m->c, &stage, err) < 0 ||
        df_place_push(m->c, &m->to, m->from.file, false, err) < 0 ||
        df_place_use(m->c, &m->to, err) < 0)
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
    return df_place_push(m->c, &m->to, m->from.file, is_seed, err);
}

static int copy_state(struct move *m, struct df_err *err)
{
    if (df_place_use(m->c, &m->to, err) < 0 || df_place_pull(m->c, &m->to, err) < 0 ||
        check_target(m, err) < 0)
        return -1;
    if (df_stopped(df_stop_flag(m->c->stop)))
        return df_fail(err, DF_ERR_RETRY, "before the state was copied");
    if (m->from.holds.exists && !is_copy(m) && store(m, err) < 0)
        return -1;
    if (df_place_pull(m->c, &m->to, err) < 0 || check_copy(m, err) < 0)
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
        df_place_check_unlocked(m->c, &m->from, err) < 0 ||
        df_place_pull(m->c, &m->from, err) < 0 ||
        df_lineage_compare(c, m->from.holds.lineage, err) < 0 || copy_state(m, err) < 0 ||
        check_source(m, err) < 0 || report(m, err) < 0)
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
