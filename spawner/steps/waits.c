/*
 * waits.c - read df_wait_failed() and df_wait_passed() first. A case with is_optional is shown as
 * well, and is never a reason for the step to end.
 */
#include "spawner/steps/waits.h"

#include <errno.h>

#include "common/base/clock.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "spawner/journal/transitions.h"
#include "spawner/model/recipe.h"
#include "spawner/model/waiting.h"

/* ---- the document ---- */

struct note {
    const struct df_err *why;
    const char *reason;
    int64_t since_us;
};

/* The first cause stays: of several things that fail at once, the newest is no better one, unless
 * it can end the step. */
static int set_waiting(cJSON *doc, void *arg, struct df_err *err)
{
    const struct note *n = arg;
    const cJSON *told = df_waiting_of(doc);
    if (df_task_is_final(doc) || (told && (df_json_str(told, "reason") || !n->reason)))
        return 1;
    return df_waiting_set(doc, n->since_us, n->reason, n->why->message, err);
}

static int clear_waiting(cJSON *doc, void *arg, struct df_err *err)
{
    (void)arg;
    (void)err;
    return df_waiting_clear(doc) ? 0 : 1;
}

static void change(struct df_spawner *s, enum df_kind kind, const char *name, df_store_change how,
                   void *arg)
{
    struct df_err why = {0};
    int result = kind == DF_KIND_TASK_ACTION
                     ? df_task_modify(s, name, how, arg, NULL, &why)
                     : df_store_modify(s->store, kind, name, how, arg, NULL, &why);
    unsigned skipped = 0;
    if (result < 0 && why.cls != DF_ERR_NOT_FOUND &&
        df_log_gate_passes(&s->unwritten_waits, df_mono_us(), &skipped))
        df_warn("%s %s: its status.waiting cannot be written: %s (%u such lines before it are left "
                "out)",
                df_kind_name(kind), name, why.message, skipped);
}

/* How a step ends that waited for the store of states, plans and logs in vain. */
static const char *reason_of_store(const struct df_err *why)
{
    bool full = why->os_errno == ENOSPC || why->os_errno == EDQUOT;
    return full ? "DiskFull" : "StorageUnavailable";
}

/* How the step ends if its wait has no end; NULL: not because of it. */
static const char *reason_of(const struct df_spawner *s, const struct df_wait_case *c,
                             const struct df_err *why)
{
    if (c->is_optional)
        return NULL;
    struct df_err store = {0};
    if (df_reason_is_known(why->reason))
        return why->reason;
    return df_blob_check(s->blobs, &store) < 0 ? reason_of_store(&store) : NULL;
}

static int find(struct df_spawner *s, const struct df_wait_case *c, cJSON **ret)
{
    return c->name ? df_store_find(s->store, c->kind, c->name, ret, NULL)
                   : df_store_get_by_uid(s->store, c->kind, c->uid, ret, NULL);
}

/* ---- reports ---- */

/* These say that something else comes first, and are over at once or have a message of their
 * own. */
static bool is_wait(const struct df_err *why)
{
    static const char *const others[] = {"Conflict", "NotListedYet", "NotDecidedYet", "NotAccepted",
                                         "NoLeader", "NotLeader",    "BackupRunning"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(others); i++)
        if (df_streq(why->reason, others[i]))
            return false;
    return why->cls == DF_ERR_RETRY || why->cls == DF_ERR_SYSTEM || why->os_errno;
}

static bool can_wait(enum df_kind kind)
{
    return kind == DF_KIND_RUN || kind == DF_KIND_TASK_ACTION;
}

void df_wait_failed(struct df_spawner *s, const struct df_wait_case *c, int64_t began_us,
                    const struct df_err *why)
{
    DF_JSON cJSON *doc = NULL;
    if (!can_wait(c->kind) || !is_wait(why) || find(s, c, &doc) < 0 || !doc ||
        df_task_is_final(doc))
        return;
    struct note n = {why, reason_of(s, c, why), df_memory_add_wait(&s->memory, c, doc, began_us)};
    if (df_real_us() - n.since_us >= DF_WAIT_TOLD_MS * INT64_C(1000))
        change(s, c->kind, df_json_str(doc, "metadata.name"), set_waiting, &n);
}

void df_wait_passed(struct df_spawner *s, const struct df_wait_case *c)
{
    char name[64];
    /* The pass of a run has written what its run waits for, or that it waits for nothing. */
    if (can_wait(c->kind) && df_memory_end_wait(&s->memory, c, name) &&
        c->kind == DF_KIND_TASK_ACTION)
        change(s, c->kind, name, clear_waiting, NULL);
}

/* What a tool or runner reports whose requests to the storage failed. */
static bool blames_storage(const char *reason)
{
    return df_streq(reason, "StateUnavailable") || df_streq(reason, "StateRefused") ||
           df_streq(reason, "RunnerFailed");
}

/* What the step waited for: as its document says; else, for the documents may be on the same disk,
 * as the store of its state fails now. NULL: for nothing. The caller deletes. */
static cJSON *cause_of(struct df_spawner *s, const cJSON *task)
{
    struct df_err why = {0};
    if (df_json_str(df_waiting_of(task), "reason"))
        return cJSON_Duplicate(df_waiting_of(task), true);
    if (!df_storage_is_managed(task) || df_blob_check(s->blobs, &why) == 0)
        return NULL;
    cJSON *cause = cJSON_CreateObject();
    const char *reason = df_reason_is_known(why.reason) ? why.reason : reason_of_store(&why);
    if (df_json_add_str(cause, "reason", reason, NULL) == 0 &&
        df_json_add_str(cause, "message", why.message, NULL) == 0)
        return cause;
    cJSON_Delete(cause);
    return NULL;
}

int df_wait_explain(struct df_spawner *s, const cJSON *task, const cJSON *result, cJSON **ret,
                    struct df_err *err)
{
    const char *said = df_json_str(result, "message");
    *ret = NULL;
    if (!blames_storage(df_json_str(result, "reason")))
        return 0;
    DF_JSON cJSON *waiting = cause_of(s, task);
    const char *reason = df_json_str(waiting, "reason");
    if (!reason)
        return 0;
    DF_JSON cJSON *copy = cJSON_Duplicate(result, true);
    DF_FREE char *since = df_waiting_text(waiting, true);
    /* A long text is cut at its end; where a state is that could not be stored matters most. */
    DF_FREE char *text = df_recipe_step_of(task)->writes
                             ? df_strf("%s (%s)", said ? said : "", since ? since : "")
                             : df_strf("%s (the runner: %s)", since ? since : "", said ? said : "");
    if (!copy || !since || !text)
        return df_fail_oom(err);
    if (df_json_set_str(copy, "reason", reason, err) < 0 ||
        df_json_set_str(copy, "message", text, err) < 0)
        return -1;
    *ret = DF_TAKE(copy);
    return 0;
}
