/*
 * The lock of an executor's state: one blob. Creating the blob is the atomic step.
 * {"info": <tofu's own document>, "holderStep": "<uid>" (absent for people), "at": "..."}
 */
#include "common/base/clock.h"
#include "common/base/limits.h"
#include "spawner/store/tofu_state/states.h"

#define LONGEST (2 * DF_LIMIT_LOCK_INFO) /* of a lock with all that is around the info */

static int lock_key(const char *uid, struct df_state_key *ret, struct df_err *err)
{
    return df_state_key(uid, "lock.json", ret, err);
}

static int parse_lock(const char *key, const struct df_buf *text, cJSON **ret, struct df_err *err)
{
    struct df_err why = {0};
    if (df_json_parse(df_buf_str(text), text->len, ret, &why) == 0)
        return 0;
    return df_fail(err, DF_ERR_SYSTEM,
                   "the lock %s is damaged (%s): if nothing runs, release it with "
                   "`dayfly state unlock`",
                   key, why.message);
}

/* *ret is NULL when nobody holds it. */
static int load_lock(struct df_states *s, const char *uid, cJSON **ret, struct df_err *err)
{
    struct df_state_key key;
    DF_BUF struct df_buf text = DF_BUF_INIT(LONGEST);
    struct df_err why = {0};
    if (lock_key(uid, &key, err) < 0)
        return -1;
    if (df_blob_get(s->blobs, key.text, &text, &why) < 0) {
        if (why.cls == DF_ERR_NOT_FOUND) {
            *ret = NULL;
            return 0;
        }
        return df_err_pass(err, &why);
    }
    return parse_lock(key.text, &text, ret, err);
}

static const char *id_of(const cJSON *lock)
{
    return df_json_str(lock, "info.ID");
}

static int locked(const cJSON *lock, struct df_err *err)
{
    const char *who = df_json_str(lock, "info.Who");
    const char *what = df_json_str(lock, "info.Operation");
    const char *id = id_of(lock), *since = df_json_str(lock, "at");
    return df_fail_reason(err, DF_ERR_CONFLICT, "StateLocked",
                          "the state is locked by %s (%s) since %s, lock ID %s", who ? who : "?",
                          what ? what : "?", since ? since : "?", id ? id : "?");
}

/* Fails with CONFLICT StateLocked and returns the holder's info in *ret_holder (may be NULL). */
static int refuse_with_holder(cJSON *lock, cJSON **ret_holder, struct df_err *err)
{
    (void)locked(lock, err);
    if (ret_holder)
        *ret_holder = cJSON_DetachItemFromObjectCaseSensitive(lock, "info");
    return -1;
}

static int fill_lock(cJSON *lock, const cJSON *info, const char *holder_step, struct df_err *err)
{
    return df_json_put(lock, err, DF_ITEM("info", cJSON_Duplicate(info, true)),
                       DF_STR("holderStep", holder_step), DF_TIME("at", df_real_us()));
}

/* CONFLICT if the lock exists. */
static int create_lock(struct df_states *s, const char *uid, const cJSON *info,
                       const char *holder_step, struct df_err *err)
{
    struct df_state_key key;
    DF_JSON cJSON *lock = cJSON_CreateObject();
    if (df_check_alloc(lock, err) < 0 || lock_key(uid, &key, err) < 0 ||
        fill_lock(lock, info, holder_step, err) < 0)
        return -1;
    DF_FREE char *text = df_json_print(lock);
    if (!text)
        return df_fail_oom(err);
    if (strlen(text) > DF_LIMIT_LOCK_INFO)
        return df_fail(err, DF_ERR_LIMIT, "lock info: larger than %zu bytes", DF_LIMIT_LOCK_INFO);
    return df_blob_create(s->blobs, key.text, text, strlen(text), err);
}

/* True if this is a repetition of the request that took the lock; its answer was lost. */
static bool is_held_by(const cJSON *lock, const cJSON *info, const char *holder_step)
{
    const char *holder = df_json_str(lock, "holderStep");
    bool same_holder = holder_step ? df_streq(holder, holder_step) : !holder;
    return same_holder && df_streq(id_of(lock), df_json_str(info, "ID"));
}

int df_state_lock(struct df_states *s, const char *executor_uid, const cJSON *info,
                  const char *holder_step, cJSON **ret_holder, struct df_err *err)
{
    DF_JSON cJSON *lock = NULL;
    if (df_str_empty(df_json_str(info, "ID")))
        return df_fail(err, DF_ERR_USER, "lock info: ID: is required");
    DF_STATE_TURN pthread_mutex_t *turn = df_state_enter(s, executor_uid);
    struct df_err why = {0};
    if (create_lock(s, executor_uid, info, holder_step, &why) == 0)
        return 0;
    if (why.cls != DF_ERR_CONFLICT)
        return df_err_pass(err, &why);
    if (load_lock(s, executor_uid, &lock, err) < 0)
        return -1;
    if (!lock) /* released in the meantime, by another process */
        return create_lock(s, executor_uid, info, holder_step, err);
    return is_held_by(lock, info, holder_step) ? 0 : refuse_with_holder(lock, ret_holder, err);
}

/* Everybody who meets a lock sees its ID: to unlock a step's lock, the ID is not enough. */
static int check_unlocker(const cJSON *lock, const struct df_state_unlocker *by, struct df_err *err)
{
    const char *step = df_json_str(lock, "holderStep");
    if (!step || by->may_force || df_streq(step, by->step_uid))
        return 0;
    return df_fail_reason(err, DF_ERR_DENIED, "Forbidden",
                          "step %s of a run holds the lock: it is released when the step ends, or "
                          "by an admin",
                          step);
}

/* Releases the lock if it may be released; what was looked at last is kept. */
struct release {
    const char *lock_id;                /* who releases it knows; or NULL */
    const struct df_state_unlocker *by; /* who releases it */
    bool (*may)(struct release *r);     /* sets why, or r->lock says why not */
    struct df_state_key key;
    cJSON *lock; /* NULL: there was none */
    struct df_err why;
};
static void release_free(struct release *r)
{
    cJSON_Delete(r->lock);
}
#define RELEASE DF_CLEANUP(release_free) struct release

static bool agrees(void *arg, const struct df_buf *text)
{
    struct release *r = arg;
    cJSON_Delete(DF_TAKE(r->lock));
    r->why = (struct df_err){0};
    return parse_lock(r->key.text, text, &r->lock, &r->why) == 0 && r->may(r);
}

static int release(struct df_states *s, const char *uid, struct release *r,
                   enum df_blob_removal *ret, struct df_err *err)
{
    const struct df_blob_condition c = {.max = LONGEST, .agrees = agrees, .arg = r};
    if (lock_key(uid, &r->key, err) < 0 ||
        df_blob_delete_if(s->blobs, r->key.text, &c, ret, err) < 0)
        return -1;
    return *ret != DF_BLOB_STAYS || !r->why.cls ? 0 : df_err_pass(err, &r->why);
}

static bool may_unlock(struct release *r)
{
    return df_streq(id_of(r->lock), r->lock_id) && check_unlocker(r->lock, r->by, &r->why) == 0;
}

int df_state_unlock(struct df_states *s, const char *executor_uid, const char *lock_id,
                    const struct df_state_unlocker *by, cJSON **ret_holder, struct df_err *err)
{
    RELEASE r = {.lock_id = lock_id, .by = by, .may = may_unlock};
    enum df_blob_removal what;
    DF_STATE_TURN pthread_mutex_t *turn = df_state_enter(s, executor_uid);
    if (release(s, executor_uid, &r, &what, err) < 0)
        return -1;
    return what == DF_BLOB_STAYS ? refuse_with_holder(r.lock, ret_holder, err) : 0;
}

int df_state_lock_info(struct df_states *s, const char *executor_uid, cJSON **ret,
                       struct df_err *err)
{
    DF_JSON cJSON *lock = NULL;
    if (load_lock(s, executor_uid, &lock, err) < 0)
        return -1;
    *ret = lock ? cJSON_DetachItemFromObjectCaseSensitive(lock, "info") : NULL;
    return 0;
}

static bool is_of_dead_step(struct release *r)
{
    return df_streq(df_json_str(r->lock, "holderStep"), r->by->step_uid);
}

int df_state_release_dead(struct df_states *s, const char *executor_uid, const char *step_uid,
                          bool *ret_released, struct df_err *err)
{
    const struct df_state_unlocker step = {.step_uid = step_uid};
    RELEASE r = {.by = &step, .may = is_of_dead_step};
    enum df_blob_removal what;
    DF_STATE_TURN pthread_mutex_t *turn = df_state_enter(s, executor_uid);
    if (release(s, executor_uid, &r, &what, err) < 0)
        return -1;
    *ret_released = what == DF_BLOB_REMOVED;
    return 0;
}

int df_state_force_unlock(struct df_states *s, const char *executor_uid, struct df_err *err)
{
    struct df_state_key key;
    DF_STATE_TURN pthread_mutex_t *turn = df_state_enter(s, executor_uid);
    return lock_key(executor_uid, &key, err) < 0 ? -1 : df_blob_delete(s->blobs, key.text, err);
}

int df_state_lock_step(struct df_states *s, const char *executor_uid, const char *lock_id,
                       char ret[64], struct df_err *err)
{
    DF_JSON cJSON *lock = NULL;
    if (load_lock(s, executor_uid, &lock, err) < 0)
        return -1;
    const char *step = df_streq(id_of(lock), lock_id) ? df_json_str(lock, "holderStep") : NULL;
    (void)snprintf(ret, 64, "%s", step ? step : "");
    return 0;
}

int df_state_check_lock(struct df_states *s, const char *uid, const char *lock_id,
                        const char *step_uid, struct df_err *err)
{
    DF_JSON cJSON *lock = NULL;
    if (load_lock(s, uid, &lock, err) < 0)
        return -1;
    if (!lock)
        return 0;
    /* Everybody who meets the lock sees its ID, so the ID alone does not prove who writes: a lock
     * of a step admits only that step. */
    const char *step = df_json_str(lock, "holderStep");
    bool same_id = lock_id && df_streq(id_of(lock), lock_id);
    return same_id && (!step || df_streq(step, step_uid)) ? 0 : locked(lock, err);
}
