/*
 * state.c - tofu's protocol for a remote state (opentofu internal/backend/remote-state/http), for
 * two kinds of callers: steps of runs (of_step()) and people with a token (of_person()). Both
 * become a struct access; the handlers get_state(), put_state(), ... then serve either.
 */
#include "spawner/api/state.h"
#include "common/crypto/crypto.h"
#include "spawner/api/handlers.h"
#include "spawner/model/platform.h"
#include "spawner/steps/lock_holder.h"
#include "spawner/steps/steps.h"

/* The state that the caller may use, and the caller. */
struct access {
    char executor_uid[64];
    char run[64];
    const char *step_uid; /* NULL: a person */
    const char *actor;
    bool may_lock;
    bool may_write;
    bool is_unwanted; /* the step was canceled, or has ended */
    bool gives_up;    /* so long ago that no answer may keep its tool any more */
    bool may_force;   /* may release any lock */
};

/* Describes where the state is stored and how to read it there; the caller frees. */
static char *describe_storage(const cJSON *executor, const char *type)
{
    const char *path = df_json_str(executor, "spec.storage.path");
    if (df_streq(type, "module"))
        return strdup("the backend of its module, not here: `state pull` of the tool in the "
                      "module's directory reads it");
    if (df_streq(type, "local"))
        return df_strf("the file %s of the machine that runs its steps, not here: copy that file",
                       path ? path : "");
    if (df_storage_has_history(executor))
        return df_strf(
            "%s storage (%s), not here: `dayfly state list` and `rollback` work with the "
            "versions of its bucket, in a run",
            type, path ? path : "");
    return df_strf("%s storage (%s), not here: its versions are those of that storage", type,
                   path ? path : "");
}

static int fail_elsewhere(const cJSON *executor, const char *type, struct df_err *err)
{
    const char *name = df_json_str(executor, "metadata.name");
    if (df_platform_is(executor))
        return df_platform_refuse_state(executor, err);
    DF_FREE char *where = describe_storage(executor, type);
    if (!where)
        return df_fail_oom(err);
    return df_fail_reason(err, DF_ERR_CONFLICT, "StateElsewhere",
                          "executor %s keeps its state in %s; `dayfly outputs %s` and `dayfly "
                          "state mv`, `rm` and `import` work, and `dayfly state unlock %s` "
                          "releases a lock",
                          name, where, name, name);
}

int df_state_owner(const struct df_request *req, char ret_uid[64], const cJSON **ret,
                   struct df_err *err)
{
    DF_SHARED const cJSON *executor = NULL;
    if (df_store_look(req->s->store, DF_KIND_EXECUTOR, req->params[0], &executor, err) < 0)
        return -1;
    const char *uid = df_json_str(executor, "metadata.uid");
    (void)snprintf(ret_uid, 64, "%s", uid ? uid : "");
    if (ret)
        *ret = DF_TAKE(executor);
    return 0;
}

int df_state_executor(const struct df_request *req, char ret_uid[64], struct df_err *err)
{
    DF_SHARED const cJSON *executor = NULL;
    if (df_state_owner(req, ret_uid, &executor, err) < 0)
        return -1;
    const char *type = df_json_str(executor, "spec.storage.type");
    return type && !df_streq(type, "managed") ? fail_elsewhere(executor, type, err) : 0;
}

static int of_person(struct df_request *req, struct access *ret, struct df_err *err)
{
    *ret = (struct access){.actor = req->caller.name,
                           .may_lock = true,
                           .may_write = true,
                           .may_force = df_verbs_have(req->verbs, DF_VERB_STATE_WRITE)};
    return df_state_executor(req, ret->executor_uid, err);
}

static int of_step(struct df_request *req, struct access *ret, struct df_err *err)
{
    const char *uid = req->params[0];
    struct df_step_state_access found = {0};
    if (strcmp(req->credentials.user, uid) != 0)
        return df_fail_reason(err, DF_ERR_DENIED, "Unauthorized",
                              "the user must be the step's uid");
    if (df_step_state_access(req->s, uid, req->credentials.secret, &found, err) < 0)
        return err->cls == DF_ERR_DENIED ? df_err_reason(err, "Unauthorized") : -1;
    *ret = (struct access){.step_uid = uid,
                           .actor = "step",
                           .may_lock = found.may_lock,
                           .may_write = found.may_write,
                           .is_unwanted = found.is_unwanted,
                           .gives_up = found.gives_up};
    (void)snprintf(ret->executor_uid, sizeof(ret->executor_uid), "%s", found.executor_uid);
    (void)snprintf(ret->run, sizeof(ret->run), "%s", found.run);
    return 0;
}

static int need_write(const struct access *a, struct df_err *err)
{
    return a->may_write ? 0
                        : df_fail_reason(err, DF_ERR_DENIED, "Forbidden",
                                         "a plan may read and lock the state, not write it");
}

static int need_lock(const struct access *a, struct df_err *err)
{
    return a->may_lock
               ? 0
               : df_fail_reason(err, DF_ERR_DENIED, "Forbidden",
                                "a dry run reads the state as it is stored, without a lock");
}

int df_gate_step_state(struct df_request *req, struct df_err *err)
{
    struct access a = {0};
    return of_step(req, &a, err);
}

int df_gate_step_state_write(struct df_request *req, struct df_err *err)
{
    struct access a = {0};
    return of_step(req, &a, err) < 0 ? -1 : need_write(&a, err);
}

int df_state_failed(const char *executor, struct df_err *err)
{
    bool is_nameless =
        df_streq(err->reason, "StateUnreadable") || df_streq(err->reason, DF_STATE_ENCRYPTED);
    return is_nameless ? df_err_wrap(err, "executor %s", executor) : -1;
}

static int adopt_state(cJSON *executor, void *arg, struct df_err *err)
{
    DF_JSON cJSON *before = cJSON_Duplicate(executor, true);
    (void)arg;
    if (df_check_alloc(before, err) < 0 || df_executor_adopt(executor, err) < 0)
        return -1;
    return df_json_equal(before, executor) ? 1 : 0;
}

int df_state_adopted(const struct df_request *req, struct df_err *err)
{
    return df_store_modify(req->s->store, DF_KIND_EXECUTOR, req->params[0], adopt_state, NULL, NULL,
                           err);
}

/* ---- read and write ---- */

int df_respond_state(const struct df_request *req, struct df_response *res, const char *uid,
                     int64_t version, struct df_err *err)
{
    if (df_state_open(req->s->states, uid, version, &res->fd, &res->fd_size, err) < 0)
        return -1;
    if (res->fd_size == 0) { /* a deleted state is an empty version */
        (void)close(DF_TAKE_FD(res->fd));
        df_respond_nothing(res);
        return 0;
    }
    res->content_type = "application/json";
    return 0;
}

static int get_state(struct df_request *req, struct df_response *res, const struct access *a,
                     struct df_err *err)
{
    return df_respond_state(req, res, a->executor_uid, 0, err);
}

/* Reads Content-MD5 into md5. Returns 1 if the header is present, else 0. */
static int read_md5(const struct df_request *req, unsigned char md5[DF_MD5_LEN], struct df_err *err)
{
    const char *header = df_request_header(req, "Content-MD5");
    if (!header)
        return 0;
    DF_BUF struct df_buf raw = DF_BUF_INIT(64);
    if (df_base64_decode(header, strlen(header), false, &raw, NULL) < 0 || raw.len != DF_MD5_LEN)
        return df_fail(err, DF_ERR_USER, "Content-MD5: must be 16 bytes in base64");
    memcpy(md5, raw.data, DF_MD5_LEN);
    return 1;
}

static struct df_state_writer writer_of(const struct df_request *req, const struct access *a)
{
    return (struct df_state_writer){.lock_id = df_request_query(req, "ID"),
                                    .run = a->run[0] ? a->run : NULL,
                                    .step_uid = a->step_uid,
                                    .actor = a->actor,
                                    .needs_lock = !a->step_uid};
}

static int put_state(struct df_request *req, struct df_response *res, const struct access *a,
                     struct df_err *err)
{
    unsigned char md5[DF_MD5_LEN];
    int has_md5 = read_md5(req, md5, err);
    if (has_md5 < 0 || need_write(a, err) < 0)
        return -1;
    const struct df_state_writer by = writer_of(req, a);
    if (df_state_put(req->s->states, a->executor_uid, req->body_path, has_md5 ? md5 : NULL, &by,
                     err) < 0)
        return -1;
    free(req->body_path);
    req->body_path = NULL;
    res->status = 200;
    return a->step_uid ? 0 : df_state_adopted(req, err);
}

static int delete_state(struct df_request *req, struct df_response *res, const struct access *a,
                        struct df_err *err)
{
    const struct df_state_writer by = writer_of(req, a);
    if (need_write(a, err) < 0 || df_state_delete(req->s->states, a->executor_uid, &by, err) < 0)
        return -1;
    res->status = 200;
    return 0;
}

/* ---- the lock ---- */

/* Another holder has the lock: respond with its lock info, which tofu prints. */
static int respond_holder(struct df_response *res, cJSON *holder, struct df_err *err)
{
    int result = df_respond_json(res, 423, holder, err);
    cJSON_Delete(holder);
    return result;
}

static int read_info(const struct df_request *req, cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *info = NULL;
    if (df_json_parse(df_buf_str(&req->body), req->body.len, &info, err) < 0)
        return df_err_wrap(err, "lock info");
    if (df_str_empty(df_json_str(info, "ID")))
        return df_fail(err, DF_ERR_USER, "lock info: ID: is required");
    *ret = DF_TAKE(info);
    return 0;
}

static int lock_state(struct df_request *req, struct df_response *res, const struct access *a,
                      struct df_err *err)
{
    DF_JSON cJSON *info = NULL;
    cJSON *holder = NULL;
    if (need_lock(a, err) < 0 || read_info(req, &info, err) < 0)
        return -1;
    for (bool released = true; released;) {
        if (df_state_lock(req->s->states, a->executor_uid, info, a->step_uid, &holder, err) == 0)
            return 0;
        if (!holder)
            return -1;
        if (df_lock_holder_release(req->s, a->executor_uid, df_json_str(holder, "ID"), &released,
                                   err) < 0) {
            cJSON_Delete(holder);
            return -1;
        }
        if (released)
            cJSON_Delete(DF_TAKE(holder));
    }
    return respond_holder(res, holder, err);
}

/* `tofu force-unlock` does not have the lock info and sends an empty body. */
static int force_unlock(const struct df_request *req, const struct access *a, struct df_err *err)
{
    if (a->step_uid)
        return df_fail(err, DF_ERR_USER, "lock info: ID: is required");
    if (!a->may_force)
        return df_fail_reason(err, DF_ERR_DENIED, "Forbidden",
                              "breaking a lock needs the role admin, or the verb state-write");
    return df_state_force_unlock(req->s->states, a->executor_uid, err);
}

static int unlock_state(struct df_request *req, struct df_response *res, const struct access *a,
                        struct df_err *err)
{
    DF_JSON cJSON *info = NULL;
    cJSON *holder = NULL;
    if (need_lock(a, err) < 0)
        return -1;
    if (req->body.len == 0)
        return force_unlock(req, a, err);
    if (read_info(req, &info, err) < 0)
        return -1;
    const struct df_state_unlocker by = {a->step_uid, a->may_force};
    if (df_state_unlock(req->s->states, a->executor_uid, df_json_str(info, "ID"), &by, &holder,
                        err) == 0)
        return 0;
    return holder ? respond_holder(res, holder, err) : -1;
}

/* ---- the routes ---- */

typedef int (*state_handler)(struct df_request *req, struct df_response *res,
                             const struct access *a, struct df_err *err);

static int as_person(struct df_request *req, struct df_response *res, state_handler handler,
                     struct df_err *err)
{
    struct access a = {0};
    if (of_person(req, &a, err) < 0)
        return -1;
    return handler(req, res, &a, err) < 0 ? df_state_failed(req->params[0], err) : 0;
}

/* The tool asks again for minutes when the storage is away, whatever signal it gets. Of a step that
 * was canceled it gets an answer that ends this. One that writes, and has its lock, may be about to
 * store its state: it gets one only in time to write its state to a file before it is killed. */
static bool may_give_up(const struct access *a, state_handler handler)
{
    return a->gives_up || (a->is_unwanted && (!a->may_write || handler == lock_state));
}

static int fail_over(const struct df_err *why, struct df_err *err)
{
    return df_fail_reason(err, DF_ERR_CONFLICT, "StepOver",
                          "the step was told to end, or is over: %s", why->message);
}

static int as_step(struct df_request *req, struct df_response *res, state_handler handler,
                   struct df_err *err)
{
    struct access a = {0};
    struct df_err why = {0};
    if (of_step(req, &a, err) < 0)
        return -1;
    /* A storage that is known to fail may take minutes to say so again. */
    if (a.gives_up && df_blob_check(req->s->blobs, &why) < 0)
        return fail_over(&why, err);
    if (handler(req, res, &a, &why) == 0)
        return 0;
    return why.cls == DF_ERR_RETRY && may_give_up(&a, handler) ? fail_over(&why, err)
                                                               : df_err_pass(err, &why);
}

int df_get_state(struct df_request *req, struct df_response *res, struct df_err *err)
{
    return as_person(req, res, get_state, err);
}

int df_put_state(struct df_request *req, struct df_response *res, struct df_err *err)
{
    return as_person(req, res, put_state, err);
}

int df_delete_state(struct df_request *req, struct df_response *res, struct df_err *err)
{
    return as_person(req, res, delete_state, err);
}

int df_lock_state(struct df_request *req, struct df_response *res, struct df_err *err)
{
    return as_person(req, res, lock_state, err);
}

int df_unlock_state(struct df_request *req, struct df_response *res, struct df_err *err)
{
    return as_person(req, res, unlock_state, err);
}

int df_get_step_state(struct df_request *req, struct df_response *res, struct df_err *err)
{
    return as_step(req, res, get_state, err);
}

int df_put_step_state(struct df_request *req, struct df_response *res, struct df_err *err)
{
    return as_step(req, res, put_state, err);
}

int df_delete_step_state(struct df_request *req, struct df_response *res, struct df_err *err)
{
    return as_step(req, res, delete_state, err);
}

int df_lock_step_state(struct df_request *req, struct df_response *res, struct df_err *err)
{
    return as_step(req, res, lock_state, err);
}

int df_unlock_step_state(struct df_request *req, struct df_response *res, struct df_err *err)
{
    return as_step(req, res, unlock_state, err);
}
