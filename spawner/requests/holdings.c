#include "spawner/requests/holdings.h"

static bool is_managed(const cJSON *executor)
{
    const char *type = df_json_str(executor, "spec.storage.type");
    return !type || df_streq(type, "managed");
}

static int read_holdings(struct df_spawner *s, const cJSON *executor, struct df_state_holdings *ret,
                         struct df_err *err)
{
    const char *uid = df_json_str(executor, "metadata.uid");
    *ret = (struct df_state_holdings){0};
    return is_managed(executor) && uid ? df_state_holdings(s->states, uid, ret, err) : 0;
}

static int refuse_deletion(const cJSON *executor, const struct df_state_holdings *found,
                           struct df_err *err)
{
    const char *name = df_json_str(executor, "metadata.name");
    if (found->count < 0)
        return df_fail_reason(
            err, DF_ERR_CONFLICT, "WrongState",
            "executor %s has a state that cannot be read here (it is encrypted or "
            "very large): destroy it first, or leave what it holds with `dayfly "
            "delete %s --forget`",
            name, name);
    return df_fail_reason(err, DF_ERR_CONFLICT, "WrongState",
                          "executor %s holds %lld resource%s: %s. Destroy it first (`dayfly run %s "
                          "--action destroy`), or leave them behind with `dayfly delete %s "
                          "--forget`",
                          name, (long long)found->count, found->count == 1 ? "" : "s", found->list,
                          name, name);
}

/* The errored state would be deleted with the executor, whatever its storage. */
static int check_errored(struct df_spawner *s, const cJSON *executor, struct df_err *err)
{
    const char *name = df_json_str(executor, "metadata.name");
    const char *uid = df_json_str(executor, "metadata.uid");
    DF_STRS struct df_strs steps = {0};
    if (uid && df_state_errored_steps(s->states, uid, &steps, err) < 0)
        return -1;
    if (!steps.len)
        return 0;
    return df_fail_reason(err, DF_ERR_CONFLICT, "WrongState",
                          "executor %s keeps an errored state, which would go with it: store it "
                          "with `dayfly state push-errored %s`; or, if nobody needs it, remove it "
                          "with `dayfly state discard-errored %s`",
                          name, name, name);
}

/* The lock's holder is about to write a version that the caller has not seen. */
static int check_unlocked(struct df_spawner *s, const cJSON *executor, struct df_err *err)
{
    const char *name = df_json_str(executor, "metadata.name");
    DF_JSON cJSON *lock = NULL;
    if (df_state_lock_info(s->states, df_json_str(executor, "metadata.uid"), &lock, err) < 0)
        return -1;
    const char *who = df_json_str(lock, "Who");
    return lock ? df_fail_reason(err, DF_ERR_CONFLICT, "WrongState",
                                 "the state of executor %s is locked by %.128s: wait for its end, "
                                 "or release the lock with `dayfly state unlock %s`",
                                 name, who ? who : "somebody", name)
                : 0;
}

static int check_version(struct df_spawner *s, const cJSON *executor, int64_t wanted,
                         struct df_err *err)
{
    const char *name = df_json_str(executor, "metadata.name");
    DF_JSON cJSON *versions = NULL;
    if (wanted < 0)
        return 0;
    if (df_state_versions(s->states, df_json_str(executor, "metadata.uid"), &versions, err) < 0)
        return -1;
    int64_t newest = df_json_int(versions->child, "version", 0);
    return newest == wanted
               ? 0
               : df_fail_reason(err, DF_ERR_CONFLICT, "PreconditionFailed",
                                "the state of executor %s is at version %lld, not %lld: it was "
                                "written meanwhile; read it again",
                                name, (long long)newest, (long long)wanted);
}

static int check_forget(struct df_spawner *s, const cJSON *executor, df_verbs verbs,
                        const struct df_forget *forget, struct df_err *err)
{
    if (df_executor_check_forget(executor, verbs, err) < 0 || check_errored(s, executor, err) < 0)
        return -1;
    if (!is_managed(executor) || !df_json_str(executor, "metadata.uid"))
        return 0;
    if (check_unlocked(s, executor, err) < 0)
        return -1;
    return check_version(s, executor, forget->state_version, err);
}

/* A lock of somebody who is gone and a state that nobody can read are no reason to keep the
 * executor. A refusal of the checks counts, a failure of theirs does not. */
static int check_abandon(struct df_spawner *s, const cJSON *executor, df_verbs verbs,
                         const struct df_forget *forget, struct df_err *err)
{
    struct df_err why = {0};
    if (df_executor_check_forget(executor, verbs, err) < 0)
        return -1;
    bool is_stored_here = is_managed(executor) && df_json_str(executor, "metadata.uid");
    if ((check_errored(s, executor, &why) < 0 ||
         (is_stored_here && check_version(s, executor, forget->state_version, &why) < 0)) &&
        why.cls == DF_ERR_CONFLICT)
        return df_err_pass(err, &why);
    return 0;
}

int df_holdings_check_delete(struct df_spawner *s, const cJSON *executor, df_verbs verbs,
                             const struct df_forget *forget, struct df_err *err)
{
    struct df_state_holdings found;
    struct df_err why = {0};
    if (forget)
        return forget->abandon ? check_abandon(s, executor, verbs, forget, err)
                               : check_forget(s, executor, verbs, forget, err);
    bool may = df_executor_check_delete(executor, verbs, &why) == 0;
    bool would_list = may || (why.cls == DF_ERR_CONFLICT && !df_executor_is_busy(executor));
    if (would_list) {
        if (read_holdings(s, executor, &found, err) < 0)
            return -1;
        /* After a destroy, a state that cannot be read is accepted if one of our steps wrote it. */
        if (found.count > 0 || (found.count < 0 && !(may && found.by_step)))
            return refuse_deletion(executor, &found, err);
    }
    return may ? check_errored(s, executor, err) : df_err_pass(err, &why);
}
