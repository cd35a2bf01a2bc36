/*
 * waits.c - read df_wait_failed() and df_wait_passed() first. An entry of the list is one thing
 * that fails for one document. The list is used under its lock; documents are changed without it
 * (change()). A case with is_aside is shown as well, and is never a reason for the step to end.
 */
#include "spawner/steps/waits.h"

#include <errno.h>

#include "common/base/clock.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "spawner/journal/transitions.h"
#include "spawner/model/recipe.h"
#include "spawner/model/waiting.h"

struct df_wait {
    enum df_kind kind;
    char name[64], uid[64];
    const void *what; /* NULL: adopted, anything ends it */
    bool is_aside;
    int64_t since_us;
};

/* ---- the list; under its lock ---- */

static bool is_of(const struct df_wait *w, enum df_kind kind, const char *name, const char *uid)
{
    return w->kind == kind && df_streq(name ? w->name : w->uid, name ? name : uid);
}

static bool is_case(const struct df_wait *w, const struct df_wait_case *c)
{
    return is_of(w, c->kind, c->name, c->uid) && (!w->what || w->what == c->what);
}

static void remove_at(struct df_waits *all, size_t i)
{
    all->list[i] = all->list[--all->count];
}

static bool has_room(struct df_waits *all)
{
    if (all->count == DF_LIMIT_WAITS)
        return false;
    if (all->count < all->room)
        return true;
    size_t room = all->room ? 2 * all->room : 16;
    struct df_wait *list = reallocarray(all->list, room, sizeof(*list));
    if (!list)
        return false;
    all->list = list;
    all->room = room;
    return true;
}

static void add(struct df_waits *all, const struct df_wait *like, const cJSON *doc)
{
    const char *name = df_json_str(doc, "metadata.name"), *uid = df_json_str(doc, "metadata.uid");
    if (!name || !uid || !has_room(all))
        return;
    struct df_wait *w = &all->list[all->count++];
    *w = *like;
    (void)snprintf(w->name, sizeof(w->name), "%s", name);
    (void)snprintf(w->uid, sizeof(w->uid), "%s", uid);
}

static struct df_wait *find_case(struct df_waits *all, const struct df_wait_case *c)
{
    for (size_t i = 0; i < all->count; i++)
        if (is_case(&all->list[i], c))
            return &all->list[i];
    return NULL;
}

/* Since when the case fails. It is added if it is new. */
static int64_t since_of(struct df_waits *all, const struct df_wait_case *c, const cJSON *doc,
                        int64_t began_us)
{
    (void)pthread_mutex_lock(&all->lock);
    struct df_wait *w = find_case(all, c);
    if (w) {
        w->what = c->what;
        began_us = w->since_us;
    } else {
        const struct df_wait new = {
            .kind = c->kind, .what = c->what, .is_aside = c->is_aside, .since_us = began_us};
        add(all, &new, doc);
    }
    (void)pthread_mutex_unlock(&all->lock);
    return began_us;
}

/* Removes the case. True if status.waiting must be cleared: nothing else of this document fails, or only
 * things that go on aside, which then set it again without a reason. name: that of the document. */
static bool take_out(struct df_waits *all, const struct df_wait_case *c, char name[64])
{
    bool was_told = false, others = false;
    (void)pthread_mutex_lock(&all->lock);
    for (size_t i = all->count; i-- > 0;) {
        const struct df_wait *w = &all->list[i];
        if (!is_of(w, c->kind, c->name, c->uid))
            continue;
        if (!is_case(w, c)) {
            others = others || c->is_aside || !w->is_aside;
            continue;
        }
        memcpy(name, w->name, sizeof(w->name));
        was_told = true;
        remove_at(all, i);
    }
    (void)pthread_mutex_unlock(&all->lock);
    return was_told && !others;
}

static bool is_empty(struct df_waits *all)
{
    (void)pthread_mutex_lock(&all->lock);
    bool empty = all->count == 0;
    (void)pthread_mutex_unlock(&all->lock);
    return empty;
}

/* ---- the document ---- */

struct note {
    const struct df_err *why;
    const char *reason;
    int64_t since_us;
};

/* The first cause stays: of several things that fail at once, the newest is no better one, unless it
 * can end the step. */
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
        df_log_gate_passes(&s->waits.unnoted, df_mono_us(), &skipped))
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
    if (c->is_aside)
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

/* These say that something else comes first, and are over at once or have a message of their own. */
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
    struct note n = {why, reason_of(s, c, why), since_of(&s->waits, c, doc, began_us)};
    if (df_real_us() - n.since_us >= DF_WAIT_TOLD_MS * INT64_C(1000))
        change(s, c->kind, df_json_str(doc, "metadata.name"), set_waiting, &n);
}

void df_wait_passed(struct df_spawner *s, const struct df_wait_case *c)
{
    char name[64];
    /* The pass of a run has written what its run waits for, or that it waits for nothing. */
    if (can_wait(c->kind) && !is_empty(&s->waits) && take_out(&s->waits, c, name) &&
        c->kind == DF_KIND_TASK_ACTION)
        change(s, c->kind, name, clear_waiting, NULL);
}

bool df_wait_fails(struct df_spawner *s, const struct df_wait_case *c)
{
    (void)pthread_mutex_lock(&s->waits.lock);
    bool fails = find_case(&s->waits, c) != NULL;
    (void)pthread_mutex_unlock(&s->waits.lock);
    return fails;
}

void df_wait_forget(struct df_spawner *s, enum df_kind kind, const char *name)
{
    struct df_waits *all = &s->waits;
    (void)pthread_mutex_lock(&all->lock);
    for (size_t i = all->count; i-- > 0;)
        if (is_of(&all->list[i], kind, name, NULL))
            remove_at(all, i);
    (void)pthread_mutex_unlock(&all->lock);
}

void df_wait_adopt(struct df_spawner *s, const cJSON *task)
{
    struct df_waits *all = &s->waits;
    const struct df_wait told = {.kind = DF_KIND_TASK_ACTION, .since_us = df_waiting_since(task)};
    if (!df_waiting_of(task))
        return;
    (void)pthread_mutex_lock(&all->lock);
    add(all, &told, task);
    (void)pthread_mutex_unlock(&all->lock);
}

/* What a tool or runner reports whose requests to the storage failed. */
static bool blames_storage(const char *reason)
{
    return df_streq(reason, "StateUnavailable") || df_streq(reason, "StateRefused") ||
           df_streq(reason, "RunnerFailed");
}

/* What the step waited for: as its document says; else, for the documents may be on the same disk, as
 * the store of its state fails now. NULL: for nothing. The caller deletes. */
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

void df_waits_free(struct df_waits *w)
{
    free(w->list);
    w->list = NULL;
    w->count = w->room = 0;
}
