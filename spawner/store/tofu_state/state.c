/*
 * What may become the next version of a state, and what is read of them. Read df_state_put() first,
 * which checks and stores a new version; push, rollback, delete and purge follow.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/crypto/crypto.h"
#include "spawner/store/tofu_state/scan.h"
#include "spawner/store/tofu_state/version.h"

/* ---- reading --------------------------------------------------------------------------------- */

/* Says which versions there are: retention removes old ones. */
static int fail_no_version(struct df_states *s, const char *uid, int64_t number, struct df_err *err)
{
    DF_STRS struct df_strs keys = {0};
    int64_t oldest = 0, newest = 0;
    if (df_state_list(s, uid, &keys, err) < 0)
        return -1;
    for (size_t i = 0; i < keys.len; i++) {
        int64_t n = df_state_number_in(keys.items[i]);
        oldest = oldest ? oldest : n;
        newest = n > newest ? n : newest;
    }
    if (!newest)
        return df_fail(err, DF_ERR_NOT_FOUND, "there is no state");
    return df_fail(err, DF_ERR_NOT_FOUND, "there is no state version %lld; there are %lld to %lld",
                   (long long)number, (long long)oldest, (long long)newest);
}

static int find_version(struct df_states *s, const char *uid, int64_t number,
                        struct df_state_version *ret, struct df_err *err)
{
    struct df_err why = {0};
    if (number < 1)
        return df_fail(err, DF_ERR_USER, "state versions are counted from 1");
    if (df_state_read_version(s, uid, number, ret, &why) == 0)
        return 0;
    return why.cls == DF_ERR_NOT_FOUND ? fail_no_version(s, uid, number, err)
                                       : df_err_pass(err, &why);
}

int df_state_open(struct df_states *s, const char *executor_uid, int64_t version, int *ret_fd,
                  int64_t *ret_size, struct df_err *err)
{
    struct df_state_version v = {0};
    DF_JSON cJSON *meta = NULL;
    if (version == 0)
        return df_state_open_current(s, executor_uid, ret_fd, ret_size, &meta, err);
    return find_version(s, executor_uid, version, &v, err) < 0
               ? -1
               : df_state_open_version(s, executor_uid, &v, ret_fd, ret_size, err);
}

int df_state_meta(struct df_states *s, const char *executor_uid, int64_t version, cJSON **ret,
                  struct df_err *err)
{
    if (version)
        return df_state_load_meta(s, executor_uid, version, ret, err);
    int64_t number = 0;
    if (df_state_newest_meta(s, executor_uid, ret, &number, err) < 0)
        return -1;
    return *ret ? 0 : df_fail(err, DF_ERR_NOT_FOUND, "there is no state yet");
}

static int append_version(struct df_states *s, const char *uid, int64_t number, cJSON *list,
                          struct df_err *err)
{
    struct df_err why = {0};
    cJSON *meta = NULL;
    if (df_state_load_meta(s, uid, number, &meta, &why) == 0)
        return df_json_append(list, meta, err);
    if (why.cls == DF_ERR_NOT_FOUND) /* purged in the meantime */
        return 0;
    meta = cJSON_CreateObject();
    if (df_json_append(list, meta, err) < 0)
        return -1;
    return df_json_put(meta, err, DF_NUM("version", number), DF_BOOL("damaged", true));
}

int df_state_versions(struct df_states *s, const char *executor_uid, cJSON **ret,
                      struct df_err *err)
{
    DF_STRS struct df_strs keys = {0};
    DF_JSON cJSON *list = cJSON_CreateArray();
    if (df_check_alloc(list, err) < 0 || df_state_list(s, executor_uid, &keys, err) < 0)
        return -1;
    for (size_t i = keys.len; i > 0; i--) {
        int64_t number = df_state_number_in(keys.items[i - 1]);
        if (number && append_version(s, executor_uid, number, list, err) < 0)
            return -1;
    }
    *ret = DF_TAKE(list);
    return 0;
}

/* ---- writing -------------------------------------------------------------------------------- */

/* A file that is to become the next version. */
struct incoming {
    const char *path;
    struct df_state_head head;
    char sha256[DF_SHA256_HEX];
    int64_t size;
    int64_t rollback_of; /* or 0 */
};

static int check_md5(int fd, const unsigned char *wanted, struct df_err *err)
{
    unsigned char found[DF_MD5_LEN];
    if (df_md5_file(fd, found, err) < 0)
        return -1;
    return memcmp(found, wanted, DF_MD5_LEN) == 0
               ? 0
               : df_fail_reason(err, DF_ERR_USER, "StateRefused",
                                "the state's MD5 does not match Content-MD5: it was damaged in "
                                "transit");
}

static int examine_file(const char *path, const unsigned char *md5, struct incoming *ret,
                        struct df_err *err)
{
    DF_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0)
        return df_fail_errno(err, errno, "open %s", path);
    if ((uint64_t)st.st_size > DF_LIMIT_STATE)
        return df_fail_reason(err, DF_ERR_LIMIT, "StateRefused",
                              "a state has at most %zu bytes, this one has %lld", DF_LIMIT_STATE,
                              (long long)st.st_size);
    struct incoming in = {.path = path};
    if ((md5 && check_md5(fd, md5, err) < 0) || df_state_scan(fd, &in.head, err) < 0 ||
        df_sha256_file_hex(fd, in.sha256, &in.size, err) < 0)
        return -1;
    *ret = in;
    return 0;
}

static int store_version(struct df_states *s, const char *uid,
                         const struct df_state_version *current, const struct incoming *in,
                         const struct df_state_writer *by, struct df_err *err)
{
    struct df_state_version next = {.number = current->number + 1,
                                    .serial = in->head.serial,
                                    .size = in->size,
                                    .rollback_of = in->rollback_of};
    memcpy(next.lineage, in->head.lineage, sizeof(next.lineage));
    memcpy(next.sha256, in->sha256, sizeof(next.sha256));
    return df_state_store_version(s, uid, &next, in->path, by, err);
}

static int fail_stale(const struct df_state_version *current, const struct incoming *in,
                      struct df_err *err)
{
    bool same = in->head.serial == current->serial;
    return df_fail_reason(err, DF_ERR_CONFLICT, "StaleSerial",
                          "the state's serial %lld is %s the current one (%lld)%s",
                          (long long)in->head.serial, same ? "that of" : "lower than",
                          (long long)current->serial, same ? " with other content" : "");
}

/* Checks lineage and serial against the current version. *ret_same: the file is identical to it. */
static int check_successor(const struct df_state_version *current, const struct incoming *in,
                           bool *ret_same, struct df_err *err)
{
    *ret_same = false;
    if (!current->size) /* none yet, or deleted */
        return 0;
    if (!df_streq(in->head.lineage, current->lineage))
        return df_fail_reason(err, DF_ERR_CONFLICT, "ForeignLineage",
                              "the state's lineage \"%s\" is not that of the current one, \"%s\": "
                              "it is a different state",
                              in->head.lineage, current->lineage);
    if (in->head.serial > current->serial)
        return 0;
    *ret_same = in->head.serial == current->serial && df_streq(in->sha256, current->sha256);
    return *ret_same ? 0 : fail_stale(current, in, err);
}

/* ---- what may replace a state ---- */

/* Refuses unless the current state is known to have no resources. way: how to replace it. */
static int check_vacant(struct df_states *s, const char *uid,
                        const struct df_state_version *current, const char *way, struct df_err *err)
{
    DF_CLOSE int fd = -1;
    int64_t size = 0;
    struct df_state_head head = {0};
    if (!current->size)
        return 0;
    if (df_state_open_version(s, uid, current, &fd, &size, err) < 0 ||
        df_state_scan(fd, &head, err) < 0)
        return -1;
    if (!head.has_resources && !head.is_encrypted)
        return 0;
    return df_fail_reason(
        err, DF_ERR_CONFLICT, "StateExists",
        "version %lld of the state (serial %lld, lineage \"%s\") %s; %s",
        (long long)current->number, (long long)current->serial, current->lineage,
        head.is_encrypted ? "is encrypted and may hold resources" : "holds resources", way);
}

/* A writer without a lock may have read an older state than the current one. */
static int check_writer(struct df_states *s, const char *uid,
                        const struct df_state_version *current, const struct df_state_writer *by,
                        struct df_err *err)
{
    DF_JSON cJSON *lock = NULL;
    if (!by->needs_lock)
        return 0;
    if (df_state_lock_info(s, uid, &lock, err) < 0)
        return -1;
    return lock ? 0
                : check_vacant(s, uid, current,
                               "lock it before you write it (lock_address and unlock_address of "
                               "the http backend, or `dayfly state lock`), or use `dayfly state "
                               "push --replace`",
                               err);
}

int df_state_put(struct df_states *s, const char *executor_uid, const char *path,
                 const unsigned char *md5, const struct df_state_writer *by, struct df_err *err)
{
    struct incoming in = {0};
    struct df_state_version current = {0};
    bool same = false;
    if (examine_file(path, md5, &in, err) < 0)
        return -1;
    DF_STATE_TURN pthread_mutex_t *turn = df_state_enter(s, executor_uid);
    if (df_state_check_lock(s, executor_uid, by->lock_id, by->step_uid, err) < 0 ||
        df_state_find_current(s, executor_uid, &current, err) < 0 ||
        check_successor(&current, &in, &same, err) < 0 ||
        (!same && check_writer(s, executor_uid, &current, by, err) < 0))
        return -1;
    if (!same)
        return store_version(s, executor_uid, &current, &in, by, err);
    if (df_state_sync_version(s, executor_uid, current.number, err) < 0)
        return -1;
    (void)unlink(path);
    return 0;
}

/* ---- push ----------------------------------------------------------------------------------- */

#define FORMAT 4 /* of every state since Terraform 0.12 */

/* The tool that encrypted a state knows its format. */
static int check_format(const struct df_state_head *head, struct df_err *err)
{
    if (head->is_encrypted || head->version == FORMAT)
        return 0;
    return df_fail_reason(err, DF_ERR_USER, "StateRefused",
                          "the state has format version %lld, and dayfly knows version %d: %s",
                          (long long)head->version, FORMAT,
                          head->version > FORMAT
                              ? "a newer dayfly is needed"
                              : "let Terraform 0.13 or later write it once, for example with "
                                "`terraform apply -refresh-only`");
}

int df_state_push(struct df_states *s, const char *executor_uid, const char *path, bool replace,
                  const char *actor, struct df_err *err)
{
    struct incoming in = {0};
    struct df_state_version current = {0};
    if (examine_file(path, NULL, &in, err) < 0 || check_format(&in.head, err) < 0)
        return -1;
    DF_STATE_TURN pthread_mutex_t *turn = df_state_enter(s, executor_uid);
    if (df_state_check_lock(s, executor_uid, NULL, NULL, err) < 0 ||
        df_state_find_current(s, executor_uid, &current, err) < 0)
        return -1;
    if (current.size && df_streq(in.sha256, current.sha256)) {
        if (df_state_sync_version(s, executor_uid, current.number, err) < 0)
            return -1;
        (void)unlink(path);
        return 0;
    }
    if (!replace &&
        check_vacant(s, executor_uid, &current,
                     "--replace stores another one as a new version and keeps this one", err) < 0)
        return -1;
    return store_version(s, executor_uid, &current, &in, &(struct df_state_writer){.actor = actor},
                         err);
}

/* ---- rollback, delete, purge ---------------------------------------------------------------- */

static int roll_back(struct df_states *s, const char *uid, const struct df_state_version *current,
                     int in_fd, int64_t number, const char *actor, struct df_err *err)
{
    DF_STATE_TEMPORARY t = {NULL, -1};
    struct df_state_head head = {0};
    struct incoming in = {0};
    if (df_state_temporary(s, &t, err) < 0 || df_state_scan(in_fd, &head, err) < 0 ||
        df_state_rewrite(in_fd, &head, current->serial + 1, t.fd, err) < 0 ||
        examine_file(t.path, NULL, &in, err) < 0)
        return df_err_wrap(err, "version %lld", (long long)number);
    in.rollback_of = number;
    return store_version(s, uid, current, &in, &(struct df_state_writer){.actor = actor}, err);
}

int df_state_rollback(struct df_states *s, const char *executor_uid, int64_t version,
                      const char *actor, struct df_err *err)
{
    struct df_state_version current = {0}, old = {0};
    DF_CLOSE int fd = -1;
    int64_t size = 0;
    DF_STATE_TURN pthread_mutex_t *turn = df_state_enter(s, executor_uid);
    if (df_state_check_lock(s, executor_uid, NULL, NULL, err) < 0 ||
        df_state_find_current(s, executor_uid, &current, err) < 0 ||
        find_version(s, executor_uid, version, &old, err) < 0 ||
        df_state_open_version(s, executor_uid, &old, &fd, &size, err) < 0)
        return -1;
    if (version == current.number)
        return df_fail(err, DF_ERR_USER, "version %lld is the current one already",
                       (long long)version);
    if (!size)
        return df_fail(err, DF_ERR_USER, "version %lld is empty: the state was deleted there",
                       (long long)version);
    return roll_back(s, executor_uid, &current, fd, version, actor, err);
}

int df_state_delete(struct df_states *s, const char *executor_uid, const struct df_state_writer *by,
                    struct df_err *err)
{
    struct df_state_version current = {0};
    DF_STATE_TURN pthread_mutex_t *turn = df_state_enter(s, executor_uid);
    if (df_state_check_lock(s, executor_uid, by->lock_id, by->step_uid, err) < 0 ||
        df_state_find_current(s, executor_uid, &current, err) < 0 ||
        check_writer(s, executor_uid, &current, by, err) < 0)
        return -1;
    if (!current.size)
        return 0;
    DF_STATE_TEMPORARY t = {NULL, -1};
    if (df_state_temporary(s, &t, err) < 0)
        return -1;
    /* Keep the serial, so that a later rollback continues from it. */
    struct incoming nothing = {.path = t.path, .head = {.serial = current.serial}};
    if (df_sha256_hex("", 0, nothing.sha256, err) < 0)
        return -1;
    return store_version(s, executor_uid, &current, &nothing, by, err);
}

int df_state_purge(struct df_states *s, const char *executor_uid, struct df_err *err)
{
    struct df_state_key key;
    if (df_state_key(executor_uid, "", &key, err) < 0)
        return -1;
    DF_STATE_TURN pthread_mutex_t *turn = df_state_enter(s, executor_uid);
    return df_blob_delete_all(s->blobs, key.text, err);
}
