/*
 * state_words.h - the words in which the tests of the state are written. Include behind cmocka.h.
 */
#ifndef DF_TEST_STATE_WORDS_H
#define DF_TEST_STATE_WORDS_H

#include "common/base/limits.h"
#include "spawner/store/tofu_state/state.h"
#include "spawner/store/vault/vault.h"
#include "tests/unit/scratch.h"

#define UID "6f1c3a52-0000-4000-8000-000000000001"
#define STEP "6f1c3a52-0000-4000-8000-00000000000a"
#define HEAD "\"version\":4,\"serial\":1,\"lineage\":\"L\"" /* a state needs no more */

/* For tests of which nobody asks who unlocks. */
__attribute__((unused)) static const struct df_state_unlocker anybody = {.may_force = true};

struct world {
    struct df_blob *blobs;
    struct df_vault *vault;
    struct df_states *states;
    const char *dir;
};

static inline void cleanup_world(struct world *w)
{
    df_states_close(w->states);
    df_blob_close(w->blobs);
    df_vault_close(w->vault);
}
#define WORLD DF_CLEANUP(cleanup_world) struct world

static inline struct world open_world(const char *dir)
{
    struct df_err err = {0};
    struct world w = {.dir = dir};
    DF_FREE char *database = df_fs_join(dir, "vault.db"), *key = df_fs_join(dir, "vault.key");
    if (df_blob_open(dir, &w.blobs, &err) < 0 || df_vault_open(database, key, &w.vault, &err) < 0 ||
        df_states_open(w.blobs, w.vault, &w.states, &err) < 0)
        fail_msg("%s", err.message);
    return w;
}

static inline char *state_text(int serial, const char *lineage, const char *more)
{
    return df_strf("{\"version\":4,\"terraform_version\":\"1.12.6\",\"serial\":%d,"
                   "\"lineage\":\"%s\",\"outputs\":{}%s}\n",
                   serial, lineage, more);
}

/* A file as an upload leaves it; the caller frees the path. */
static inline char *upload(const struct world *w, const void *bytes, size_t n)
{
    char *path = df_fs_join(df_blob_tmp_dir(w->blobs), "upload-XXXXXX");
    int fd = path ? mkstemp(path) : -1;
    struct df_err err = {0};
    if (fd < 0 || df_fs_write_all(fd, bytes, n, &err) < 0 || close(fd) < 0)
        fail_msg("upload: %s", err.message);
    return path;
}

static inline int put_text(const struct world *w, const char *text,
                           const struct df_state_writer *by, struct df_err *err)
{
    DF_FREE char *path = upload(w, text, strlen(text));
    int result = df_state_put(w->states, UID, path, NULL, by, err);
    if (result == 0)
        assert_false(df_fs_exists(path));
    (void)unlink(path);
    return result;
}

static inline int put(const struct world *w, int serial, const char *lineage, const char *more,
                      const char *lock_id, struct df_err *err)
{
    DF_FREE char *text = state_text(serial, lineage, more);
    const struct df_state_writer by = {
        .lock_id = lock_id, .run = "net-1", .step_uid = STEP, .actor = "me"};
    return put_text(w, text, &by, err);
}

/* Under the lock with this ID, by the step of that name. */
static inline int put_as_step(const struct world *w, int serial, const char *lock_id,
                              const char *step, struct df_err *err)
{
    DF_FREE char *text = state_text(serial, "L", "");
    const struct df_state_writer by = {.lock_id = lock_id, .step_uid = step};
    return put_text(w, text, &by, err);
}

static inline void must_put(const struct world *w, int serial)
{
    struct df_err err = {0};
    if (put(w, serial, "L", "", NULL, &err) < 0)
        fail_msg("%s", err.message);
}

static inline void assert_failed(int result, const struct df_err *err, enum df_err_class cls,
                                 const char *reason)
{
    if (result != -1 || err->cls != cls || strcmp(err->reason, reason) != 0)
        fail_msg("result %d, class %s, reason %s: %s", result, df_err_class_name(err->cls),
                 err->reason, err->message);
}

/* The bytes of the current state of an executor. NOT_FOUND: there is none, or it was deleted. */
static inline int get_current(const struct world *w, const char *uid, struct df_buf *out,
                              struct df_err *err)
{
    DF_CLOSE int fd = -1;
    int64_t size = 0;
    if (df_state_open(w->states, uid, 0, &fd, &size, err) < 0)
        return -1;
    return size ? df_fs_read_fd(fd, out, err) : df_fail(err, DF_ERR_NOT_FOUND, "it was deleted");
}

static inline void assert_current(const struct world *w, int serial)
{
    struct df_err err = {0};
    DF_BUF struct df_buf got = DF_BUF_INIT(1 * DF_MIB);
    if (get_current(w, UID, &got, &err) < 0)
        fail_msg("%s", err.message);
    DF_JSON cJSON *state = NULL;
    assert_int_equal(df_json_parse(df_buf_str(&got), got.len, &state, &err), 0);
    assert_int_equal(df_json_int(state, "serial", -1), serial);
}

static inline void assert_no_state(const struct world *w)
{
    struct df_err err = {0};
    DF_BUF struct df_buf got = DF_BUF_INIT(1 * DF_MIB);
    assert_failed(get_current(w, UID, &got, &err), &err, DF_ERR_NOT_FOUND, "");
}

static inline cJSON *versions_of(const struct world *w)
{
    struct df_err err = {0};
    cJSON *list = NULL;
    if (df_state_versions(w->states, UID, &list, &err) < 0)
        fail_msg("%s", err.message);
    return list;
}

static inline int count_versions(const struct world *w)
{
    DF_JSON cJSON *list = versions_of(w);
    return cJSON_GetArraySize(list);
}

static inline char *blob_path(const struct world *w, const char *name)
{
    return df_strf("%s/data/state/" UID "/%s", w->dir, name);
}

static inline void overwrite(const struct world *w, const char *name, const char *text)
{
    struct df_err err = {0};
    DF_FREE char *path = blob_path(w, name);
    assert_int_equal(df_fs_replace(path, text, strlen(text), 0600, &err), 0);
}

static inline cJSON *lock_info(const char *id)
{
    cJSON *info = cJSON_CreateObject();
    assert_int_equal(df_json_add_str(info, "ID", id, NULL), 0);
    assert_int_equal(df_json_add_str(info, "Operation", "OperationTypeApply", NULL), 0);
    assert_int_equal(df_json_add_str(info, "Who", "me@here", NULL), 0);
    return info;
}

static inline int lock(const struct world *w, const char *id, const char *step, struct df_err *err)
{
    DF_JSON cJSON *info = lock_info(id);
    return df_state_lock(w->states, UID, info, step, NULL, err);
}

static inline void must_lock(const struct world *w, const char *id, const char *step)
{
    struct df_err err = {0};
    if (lock(w, id, step, &err) < 0)
        fail_msg("%s", err.message);
}

static inline void assert_lock_id(const struct world *w, const char *id)
{
    DF_JSON cJSON *info = NULL;
    assert_int_equal(df_state_lock_info(w->states, UID, &info, NULL), 0);
    if (id)
        assert_string_equal(df_json_str(info, "ID"), id);
    else
        assert_null(info);
}

static inline void read_version(const struct world *w, int64_t version, struct df_buf *b)
{
    struct df_err err = {0};
    DF_CLOSE int fd = -1;
    int64_t size = 0;
    if (df_state_open(w->states, UID, version, &fd, &size, &err) < 0 ||
        df_fs_read_fd(fd, b, &err) < 0)
        fail_msg("%s", err.message);
    assert_int_equal(b->len, size);
}

#endif
