/*
 * Reading outputs of a state, and the errored states of steps (errored.tfstate), which tofu could
 * not upload.
 */
#include <errno.h>
#include <sys/stat.h>

#include "common/base/clock.h"
#include "common/base/limits.h"
#include "spawner/store/tofu_state/scan.h"
#include "spawner/store/tofu_state/states.h"

/* ---- outputs -------------------------------------------------------------------------------- */

/* Reads the bytes of the member "outputs", which are a complete JSON value. */
static int read_slice(int fd, const struct df_state_head *head, struct df_buf *out,
                      struct df_err *err)
{
    /* Reserve everything at once: when a buffer is reallocated, its old memory still contains
     * secrets. */
    char *to = df_buf_reserve(out, (size_t)head->outputs_length);
    if (!to)
        return df_buf_check(out, err);
    for (size_t done = 0; done < (size_t)head->outputs_length;) {
        ssize_t n = pread(fd, to + done, (size_t)head->outputs_length - done,
                          head->outputs_at + (int64_t)done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return df_fail_errno(err, n < 0 ? errno : EIO, "read state");
        done += (size_t)n;
    }
    out->len += (size_t)head->outputs_length;
    out->data[out->len] = '\0';
    return 0;
}

static int parse_outputs(int fd, cJSON **ret, struct df_err *err)
{
    struct df_state_head head = {0};
    DF_CLEANUP(df_buf_wipe) struct df_buf text = DF_BUF_INIT(DF_LIMIT_OUTPUTS);
    if (df_state_scan(fd, &head, err) < 0)
        return -1;
    if (read_slice(fd, &head, &text, err) < 0 ||
        df_json_parse_nul(text.len ? text.data : "{}", text.len ? text.len : 2, ret, err) < 0)
        return df_err_wrap(err, "outputs of the state");
    return 0;
}

static int move_member(cJSON *from, cJSON *to, const char *name, struct df_err *err)
{
    cJSON *item = cJSON_DetachItemFromObjectCaseSensitive(from, name);
    return item ? df_json_add(to, name, item, err) : 0;
}

/* Adds one output, with its members in the order in which tofu prints them. */
static int add_output(cJSON *outputs, cJSON *stored, bool show, struct df_err *err)
{
    bool sensitive = df_json_bool(stored, "sensitive", false);
    cJSON *output = cJSON_CreateObject();
    if (df_json_add(outputs, stored->string, output, err) < 0 ||
        df_json_add_bool(output, "sensitive", sensitive, err) < 0 ||
        move_member(stored, output, "type", err) < 0)
        return -1;
    return sensitive && !show ? 0 : move_member(stored, output, "value", err);
}

/* The outputs of the open state; {} if it is empty, or there is none. */
static int read_outputs(int fd, int64_t size, bool show_sensitive, cJSON **ret, struct df_err *err)
{
    DF_SECRET_JSON cJSON *stored = NULL;
    if (size && parse_outputs(fd, &stored, err) < 0)
        return -1;
    return df_state_shown_outputs(stored, show_sensitive, ret, err);
}

int df_state_shown_outputs(cJSON *stored, bool show_sensitive, cJSON **ret, struct df_err *err)
{
    DF_SECRET_JSON cJSON *outputs = cJSON_CreateObject();
    if (!outputs)
        return df_fail_oom(err);
    cJSON *output;
    cJSON_ArrayForEach (output, stored) {
        if (output->string && add_output(outputs, output, show_sensitive, err) < 0)
            return -1;
    }
    *ret = DF_TAKE(outputs);
    return 0;
}

int df_state_outputs(struct df_states *s, const char *executor_uid, int64_t version,
                     bool show_sensitive, cJSON **ret, struct df_err *err)
{
    DF_CLOSE int fd = -1;
    int64_t size = 0;
    struct df_err why = {0};
    if (df_state_open(s, executor_uid, version, &fd, &size, &why) < 0 &&
        why.cls != DF_ERR_NOT_FOUND)
        return df_err_pass(err, &why);
    return read_outputs(fd, size, show_sensitive, ret, err);
}

int df_state_is_encrypted(struct df_states *s, const char *executor_uid, int64_t version, bool *ret,
                          struct df_err *err)
{
    DF_CLOSE int fd = -1;
    int64_t size = 0;
    struct df_state_head head = {0};
    if (df_state_open(s, executor_uid, version, &fd, &size, err) < 0 ||
        (size && df_state_scan(fd, &head, err) < 0))
        return -1;
    *ret = head.is_encrypted;
    return 0;
}

int df_state_current_outputs(struct df_states *s, const char *executor_uid, cJSON **ret,
                             cJSON **ret_meta, struct df_err *err)
{
    DF_CLOSE int fd = -1;
    DF_JSON cJSON *meta = NULL;
    int64_t size = 0;
    struct df_err why = {0};
    if (df_state_open_current(s, executor_uid, &fd, &size, &meta, &why) < 0 &&
        why.cls != DF_ERR_NOT_FOUND)
        return df_err_pass(err, &why);
    if (read_outputs(fd, size, false, ret, err) < 0)
        return -1;
    *ret_meta = DF_TAKE(meta);
    return 0;
}

/* ---- errored states ------------------------------------------------------------------------- */

#define PREFIX "errored-"
#define SUFFIX ".tfstate"

static int errored_key(const char *uid, const char *step_uid, struct df_state_key *ret,
                       struct df_err *err)
{
    struct df_state_key step;
    char name[96];
    /* Only checks the uid: the rules are the same for steps and executors. */
    if (df_state_key(step_uid, "", &step, err) < 0)
        return -1;
    (void)snprintf(name, sizeof(name), PREFIX "%s" SUFFIX, step_uid);
    return df_state_key(uid, name, ret, err);
}

int df_state_keep_errored(struct df_states *s, const char *executor_uid, const char *step_uid,
                          const char *path, struct df_err *err)
{
    struct df_state_key key;
    DF_STATE_PACKED p = {-1, -1, 0};
    if (errored_key(executor_uid, step_uid, &key, err) < 0 || df_state_pack(s, path, &p, err) < 0 ||
        df_state_seal(s, &key, "", &p, err) < 0)
        return -1;
    DF_STATE_TURN pthread_mutex_t *turn = df_state_enter(s, executor_uid);
    return df_blob_put_file(s->blobs, key.text, path, err);
}

static int unseal_errored(struct df_states *s, const struct df_state_key *key, int *blob,
                          int *ret_fd, int64_t *ret_size, struct df_err *err)
{
    struct df_err why = {0};
    if (df_state_unseal(s, key, blob, 0, ret_fd, ret_size, &why) == 0)
        return 0;
    return df_fail_reason(err, DF_ERR_SYSTEM, "StateUnreadable",
                          "%s cannot be read: %s; restore it, or the key that it is sealed under, "
                          "from a copy",
                          key->text, why.message);
}

int df_state_open_errored(struct df_states *s, const char *executor_uid, const char *step_uid,
                          int *ret_fd, int64_t *ret_size, struct df_err *err)
{
    struct df_state_key key;
    DF_CLOSE int blob = -1;
    if (errored_key(executor_uid, step_uid, &key, err) < 0 ||
        df_blob_open_read(s->blobs, key.text, &blob, NULL, err) < 0)
        return -1;
    return unseal_errored(s, &key, &blob, ret_fd, ret_size, err);
}

int df_state_push_errored(struct df_states *s, const char *executor_uid, const char *step_uid,
                          const char *actor, struct df_err *err)
{
    struct df_state_key key;
    DF_CLOSE int fd = -1;
    int64_t size = 0;
    DF_STATE_TEMPORARY t = {NULL, -1};
    if (errored_key(executor_uid, step_uid, &key, err) < 0 ||
        df_state_open_errored(s, executor_uid, step_uid, &fd, &size, err) < 0)
        return df_err_wrap(err, "errored state of step %.63s", step_uid);
    const struct df_state_writer by = {.step_uid = step_uid, .actor = actor};
    if (df_state_temporary(s, &t, err) < 0 || df_state_copy(fd, 0, size, t.fd, err) < 0 ||
        df_state_put(s, executor_uid, t.path, NULL, &by, err) < 0)
        return -1;
    return df_blob_delete(s->blobs, key.text, err);
}

int df_state_drop_errored(struct df_states *s, const char *executor_uid, const char *step_uid,
                          struct df_err *err)
{
    struct df_state_key key;
    return errored_key(executor_uid, step_uid, &key, err) < 0
               ? -1
               : df_blob_delete(s->blobs, key.text, err);
}

bool df_state_is_errored(const char *key)
{
    const char *name = strrchr(key, '/');
    return name && df_starts_with(name + 1, PREFIX) && df_ends_with(name, SUFFIX);
}

int df_state_errored_steps(struct df_states *s, const char *executor_uid, struct df_strs *ret,
                           struct df_err *err)
{
    struct df_state_key key;
    DF_STRS struct df_strs keys = {0};
    if (df_state_key(executor_uid, "", &key, err) < 0 ||
        df_blob_list(s->blobs, key.text, &keys, err) < 0)
        return -1;
    for (size_t i = 0; i < keys.len; i++) {
        if (!df_state_is_errored(keys.items[i]))
            continue;
        char *step = strrchr(keys.items[i], '/') + 1 + strlen(PREFIX);
        step[strlen(step) - strlen(SUFFIX)] = '\0';
        (void)df_strs_add(ret, step);
    }
    return df_strs_check(ret, err);
}

static int add_stored_at(int blob, cJSON *entry, struct df_err *err)
{
    struct stat st;
    if (fstat(blob, &st) < 0)
        return df_fail_errno(err, errno, "errored state");
    int64_t at = (int64_t)st.st_mtim.tv_sec * 1000000 + st.st_mtim.tv_nsec / 1000;
    return df_json_add_time(entry, "at", at, err);
}

static int describe_errored(struct df_states *s, const struct df_state_key *key, int *blob,
                            cJSON *entry, struct df_err *err)
{
    struct df_state_head head = {0};
    struct df_err why = {0};
    DF_CLOSE int fd = -1;
    int64_t size = 0;
    if (add_stored_at(*blob, entry, err) < 0)
        return -1;
    bool opened = unseal_errored(s, key, blob, &fd, &size, &why) == 0;
    if (df_json_add_num(entry, "size", (double)size, err) < 0)
        return -1;
    if (!opened || df_state_scan(fd, &head, &why) < 0)
        return df_json_add_str(entry, "problem", why.message, err);
    return df_json_put(entry, err, DF_NUM("serial", head.serial), DF_STR("lineage", head.lineage));
}

static int list_errored(struct df_states *s, const char *uid, const char *step, cJSON *list,
                        struct df_err *err)
{
    struct df_state_key key;
    DF_CLOSE int blob = -1;
    struct df_err why = {0};
    if (errored_key(uid, step, &key, err) < 0)
        return -1;
    if (df_blob_open_read(s->blobs, key.text, &blob, NULL, &why) < 0) {
        if (why.cls == DF_ERR_NOT_FOUND) /* pushed in the meantime */
            return 0;
        return df_err_pass(err, &why);
    }
    cJSON *entry = cJSON_CreateObject();
    if (df_json_append(list, entry, err) < 0 || df_json_add_str(entry, "step", step, err) < 0)
        return -1;
    return describe_errored(s, &key, &blob, entry, err);
}

int df_state_errored(struct df_states *s, const char *executor_uid, cJSON **ret, struct df_err *err)
{
    DF_STRS struct df_strs steps = {0};
    DF_JSON cJSON *list = cJSON_CreateArray();
    if (df_check_alloc(list, err) < 0 || df_state_errored_steps(s, executor_uid, &steps, err) < 0)
        return -1;
    for (size_t i = 0; i < steps.len; i++)
        if (list_errored(s, executor_uid, steps.items[i], list, err) < 0)
            return -1;
    *ret = DF_TAKE(list);
    return 0;
}
