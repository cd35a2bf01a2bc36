/*
 * The versions of an executor's state. A version is a file and its meta (JSON); writing the meta
 * makes it the current version. Read df_state_put() first, which checks and stores a new version;
 * push, rollback, delete and purge follow.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/base/parse.h"
#include "common/crypto/crypto.h"
#include "spawner/store/tofu_state/scan.h"
#include "spawner/store/tofu_state/states.h"
#include "spawner/store/vault/vault.h"

/* ---- versions ------------------------------------------------------------------------------- */

/* The meta of a version. number 0: the executor has no state. */
struct version {
    int64_t number;
    int64_t serial;
    char lineage[129];
    char sha256[DF_SHA256_HEX];   /* of the document */
    int64_t size;                 /* of the document; 0: the state was deleted */
    int64_t stored_size;          /* of its blob */
    char key_id[DF_VAULT_KEY_ID]; /* of the vault's key that it is sealed under; "": not sealed */
};

static int version_key(const char *uid, int64_t number, const char *suffix,
                       struct df_state_key *ret, struct df_err *err)
{
    char name[48];
    (void)snprintf(name, sizeof(name), "%08lld%s", (long long)number, suffix);
    return df_state_key(uid, name, ret, err);
}

static int file_key(const char *uid, int64_t number, struct df_state_key *ret, struct df_err *err)
{
    return version_key(uid, number, ".tfstate", ret, err);
}

static int meta_key(const char *uid, int64_t number, struct df_state_key *ret, struct df_err *err)
{
    return version_key(uid, number, ".json", ret, err);
}

/* The bucket has it, and the key that sealed it there is none of the service's any more. */
static int fail_meta(const char *key, const struct df_err *why, struct df_err *err)
{
    if (!df_streq(why->reason, "UnknownKey"))
        return df_err_pass(err, why);
    return df_fail_reason(err, DF_ERR_SYSTEM, "StateUnreadable",
                          "%s cannot be read: %s; bring that key back (blobs.keyFiles or "
                          "blobs.keyCommand), behind the one that seals",
                          key, why->message);
}

int df_state_load_meta(struct df_states *s, const char *uid, int64_t number, cJSON **ret,
                       struct df_err *err)
{
    struct df_state_key key;
    struct df_err why = {0};
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_LIMIT_DOCUMENT);
    if (meta_key(uid, number, &key, err) < 0)
        return -1;
    if (df_blob_get(s->blobs, key.text, &text, &why) < 0)
        return fail_meta(key.text, &why, err);
    if (df_json_parse(df_buf_str(&text), text.len, ret, &why) < 0)
        return df_fail_reason(err, DF_ERR_SYSTEM, "StateUnreadable",
                              "%s is damaged (%s): restore it from a copy", key.text, why.message);
    return 0;
}

int64_t df_state_number_in(const char *key)
{
    const char *name = strrchr(key, '/') + 1;
    size_t digits = strspn(name, "0123456789");
    int64_t number = 0;
    char text[20];
    if (digits == 0 || digits >= sizeof(text) || !df_streq(name + digits, ".json"))
        return 0;
    (void)snprintf(text, sizeof(text), "%.*s", (int)digits, name);
    return df_parse_i64(text, 1, INT64_MAX, &number, NULL) < 0 ? 0 : number;
}

int df_state_list(struct df_states *s, const char *uid, struct df_strs *ret, struct df_err *err)
{
    struct df_state_key key;
    if (df_state_key(uid, "", &key, err) < 0)
        return -1;
    return df_blob_list(s->blobs, key.text, ret, err);
}

static int highest_number(struct df_states *s, const char *uid, int64_t *ret, struct df_err *err)
{
    DF_STRS struct df_strs keys = {0};
    if (df_state_list(s, uid, &keys, err) < 0)
        return -1;
    int64_t highest = 0;
    for (size_t i = 0; i < keys.len; i++) {
        int64_t number = df_state_number_in(keys.items[i]);
        highest = number > highest ? number : highest;
    }
    *ret = highest;
    return 0;
}

static int check_file(struct df_states *s, const char *uid, const struct version *v,
                      struct df_err *err)
{
    struct df_state_key key;
    int64_t size = 0;
    if (file_key(uid, v->number, &key, err) < 0 || df_blob_size(s->blobs, key.text, &size, err) < 0)
        return -1;
    if (size == v->stored_size)
        return 0;
    return df_fail_reason(err, DF_ERR_SYSTEM, "StateUnreadable",
                          "%s, the current state, %s: restore it from a copy, or remove its .json "
                          "to go back to the version before",
                          key.text,
                          size == 0 ? "is missing" : "has another size than it was stored with");
}

static int damaged_meta(const char *uid, int64_t number, struct df_err *err)
{
    return df_fail_reason(err, DF_ERR_SYSTEM, "StateUnreadable",
                          "the meta of version %lld of state %s is damaged: restore it from a copy",
                          (long long)number, uid);
}

static int parse_version(const char *uid, int64_t number, const cJSON *meta, struct version *ret,
                         struct df_err *err)
{
    struct version v = {.number = number};
    const char *lineage = df_json_str(meta, "lineage"), *sha256 = df_json_str(meta, "sha256");
    const char *key_id = df_json_str(meta, "keyId");
    v.serial = df_json_int(meta, "serial", -1);
    v.size = df_json_int(meta, "size", -1);
    v.stored_size = df_json_int(meta, "storedSize", v.size); /* absent: older than the seals */
    if (v.serial < 0 || v.size < 0 || !lineage || !sha256)
        return damaged_meta(uid, number, err);
    (void)snprintf(v.lineage, sizeof(v.lineage), "%s", lineage);
    (void)snprintf(v.sha256, sizeof(v.sha256), "%s", sha256);
    (void)snprintf(v.key_id, sizeof(v.key_id), "%s", key_id ? key_id : "");
    *ret = v;
    return 0;
}

/* NOT_FOUND: there is no such version. */
static int read_version(struct df_states *s, const char *uid, int64_t number, struct version *ret,
                        struct df_err *err)
{
    DF_JSON cJSON *meta = NULL;
    return df_state_load_meta(s, uid, number, &meta, err) < 0
               ? -1
               : parse_version(uid, number, meta, ret, err);
}

/* Reads the meta of the version that was the newest, if it is still there and the next one is not:
 * each is made with the number behind the one before. *ret stays NULL if only a list can tell. */
static int try_hint(struct df_states *s, const char *uid, int64_t number, cJSON **ret,
                    struct df_err *err)
{
    int64_t next_size = 0;
    struct df_state_key next;
    struct df_err why = {0};
    if (!number)
        return 0;
    if (meta_key(uid, number + 1, &next, err) < 0 ||
        df_blob_size(s->blobs, next.text, &next_size, err) < 0)
        return -1;
    if (next_size || df_state_load_meta(s, uid, number, ret, &why) == 0)
        return 0;
    return why.cls == DF_ERR_NOT_FOUND ? 0 : df_err_pass(err, &why);
}

/* The newest version's meta, which the caller deletes, and its number; NULL and 0: there is none. */
static int find_newest(struct df_states *s, const char *uid, cJSON **ret, int64_t *ret_number,
                       struct df_err *err)
{
    DF_JSON cJSON *meta = NULL;
    int64_t number = df_state_hint(s, uid);
    if (try_hint(s, uid, number, &meta, err) < 0)
        return -1;
    if (!meta && (highest_number(s, uid, &number, err) < 0 ||
                  (number && df_state_load_meta(s, uid, number, &meta, err) < 0)))
        return -1;
    *ret = DF_TAKE(meta);
    *ret_number = number;
    return 0;
}

/* Without a look at the version's file. */
static int find_newest_version(struct df_states *s, const char *uid, struct version *ret,
                               struct df_err *err)
{
    DF_JSON cJSON *meta = NULL;
    struct version v = {0};
    int64_t number = 0;
    if (find_newest(s, uid, &meta, &number, err) < 0 ||
        (meta && parse_version(uid, number, meta, &v, err) < 0))
        return -1;
    *ret = v;
    return 0;
}

/* The newest version, whose file is there: the next one may be built on it. */
static int find_current(struct df_states *s, const char *uid, struct version *ret,
                        struct df_err *err)
{
    struct version v = {0};
    if (find_newest_version(s, uid, &v, err) < 0 || (v.number && check_file(s, uid, &v, err) < 0))
        return -1;
    df_state_remember(s, uid, v.number);
    *ret = v;
    return 0;
}

/* ---- reading -------------------------------------------------------------------------------- */

static int unreadable(const char *uid, const struct version *v, const char *why, const char *way,
                      struct df_err *err)
{
    return df_fail_reason(err, DF_ERR_SYSTEM, "StateUnreadable",
                          "version %lld of the state of the executor with the uid %s cannot be "
                          "read: %s; %s, or store a copy as a new version: dayfly state push NAME "
                          "FILE --replace",
                          (long long)v->number, uid, why, way);
}

/* The version's blob does not open. */
static int sealed_otherwise(struct df_states *s, const char *uid, const struct version *v,
                            struct df_err *err)
{
    char now[DF_VAULT_KEY_ID], why[160];
    if (df_vault_key_id(s->vault, now, err) < 0)
        return -1;
    if (!v->key_id[0] || df_streq(v->key_id, now))
        return unreadable(uid, v, "its file was changed, or is that of another state or version",
                          "restore it from a copy, return to an older version (dayfly state "
                          "rollback)",
                          err);
    (void)snprintf(why, sizeof(why),
                   "it is sealed under the key %s, and the key of the vault is %s now", v->key_id,
                   now);
    return unreadable(uid, v, why, "bring the old key back", err);
}

static int check_digest(const char *uid, const struct version *v, int fd, struct df_err *err)
{
    char found[DF_SHA256_HEX], why[256];
    if (df_sha256_file_hex(fd, found, NULL, err) < 0)
        return -1;
    if (df_streq(found, v->sha256))
        return 0;
    (void)snprintf(why, sizeof(why), "its SHA-256 is %s, and %s was stored", found, v->sha256);
    return unreadable(uid, v, why,
                      "restore its file from a copy, return to an older version (dayfly state "
                      "rollback)",
                      err);
}

/* Opens the document of a version. */
static int open_version(struct df_states *s, const char *uid, const struct version *v, int *ret_fd,
                        int64_t *ret_size, struct df_err *err)
{
    struct df_state_key key;
    DF_CLOSE int blob = -1, fd = -1;
    int64_t size = 0;
    struct df_err why = {0};
    if (file_key(uid, v->number, &key, err) < 0)
        return -1;
    if (df_blob_open_read(s->blobs, key.text, &blob, NULL, &why) < 0)
        return why.cls == DF_ERR_NOT_FOUND
                   ? unreadable(uid, v, "its file is missing", "restore it from a copy", err)
                   : df_err_pass(err, &why);
    if (df_state_unseal(s, &key, &blob, &fd, &size, &why) < 0)
        return why.cls == DF_ERR_DENIED && !why.os_errno ? sealed_otherwise(s, uid, v, err)
                                                         : df_err_pass(err, &why);
    if (check_digest(uid, v, fd, err) < 0)
        return -1;
    *ret_fd = DF_TAKE_FD(fd);
    *ret_size = size;
    return 0;
}

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

static int find_version(struct df_states *s, const char *uid, int64_t number, struct version *ret,
                        struct df_err *err)
{
    struct df_err why = {0};
    if (number < 1)
        return df_fail(err, DF_ERR_USER, "state versions are counted from 1");
    if (read_version(s, uid, number, ret, &why) == 0)
        return 0;
    return why.cls == DF_ERR_NOT_FOUND ? fail_no_version(s, uid, number, err)
                                       : df_err_pass(err, &why);
}

int df_state_open(struct df_states *s, const char *executor_uid, int64_t version, int *ret_fd,
                  int64_t *ret_size, struct df_err *err)
{
    struct version v = {0};
    if ((version == 0 ? find_newest_version(s, executor_uid, &v, err)
                      : find_version(s, executor_uid, version, &v, err)) < 0)
        return -1;
    if (!v.number)
        return df_fail(err, DF_ERR_NOT_FOUND, "there is no state yet");
    if (open_version(s, executor_uid, &v, ret_fd, ret_size, err) < 0)
        return -1;
    if (version == 0)
        df_state_remember(s, executor_uid, v.number);
    return 0;
}

int df_state_meta(struct df_states *s, const char *executor_uid, int64_t version, cJSON **ret,
                  struct df_err *err)
{
    if (version)
        return df_state_load_meta(s, executor_uid, version, ret, err);
    int64_t number = 0;
    if (find_newest(s, executor_uid, ret, &number, err) < 0)
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
    if (df_json_append(list, meta, err) < 0 ||
        df_json_add_num(meta, "version", (double)number, err) < 0)
        return -1;
    return df_json_add_bool(meta, "damaged", true, err);
}

int df_state_versions(struct df_states *s, const char *executor_uid, cJSON **ret,
                      struct df_err *err)
{
    DF_STRS struct df_strs keys = {0};
    DF_JSON cJSON *list = cJSON_CreateArray();
    if (!list)
        return df_fail_oom(err);
    if (df_state_list(s, executor_uid, &keys, err) < 0)
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

static int fill_meta(cJSON *meta, const struct version *v, const struct df_state_writer *by,
                     int64_t rollback_of, struct df_err *err)
{
    if (df_json_add_num(meta, "version", (double)v->number, err) < 0 ||
        df_json_add_num(meta, "serial", (double)v->serial, err) < 0 ||
        df_json_add_str(meta, "lineage", v->lineage, err) < 0 ||
        df_json_add_num(meta, "size", (double)v->size, err) < 0 ||
        df_json_add_str(meta, "sha256", v->sha256, err) < 0 ||
        df_json_add_num(meta, "storedSize", (double)v->stored_size, err) < 0 ||
        df_json_add_str(meta, "keyId", v->key_id, err) < 0 ||
        df_json_add_time(meta, "createdAt", df_real_us(), err) < 0 ||
        df_json_add_str(meta, "run", by->run, err) < 0 ||
        df_json_add_str(meta, "step", by->step_uid, err) < 0 ||
        df_json_add_str(meta, "actor", by->actor, err) < 0)
        return -1;
    return rollback_of ? df_json_add_num(meta, "rollbackOf", (double)rollback_of, err) : 0;
}

/* Stores the file, then the meta that makes it the current version. */
static int store_version(struct df_states *s, const char *uid, const struct version *current,
                         const struct incoming *in, const struct df_state_writer *by,
                         struct df_err *err)
{
    struct version next = {
        .number = current->number + 1, .serial = in->head.serial, .size = in->size};
    memcpy(next.lineage, in->head.lineage, sizeof(next.lineage));
    memcpy(next.sha256, in->sha256, sizeof(next.sha256));
    struct df_state_key file, meta;
    DF_JSON cJSON *doc = cJSON_CreateObject();
    if (!doc)
        return df_fail_oom(err);
    if (file_key(uid, next.number, &file, err) < 0 || meta_key(uid, next.number, &meta, err) < 0 ||
        df_vault_key_id(s->vault, next.key_id, err) < 0 ||
        df_state_seal(s, &file, in->path, &next.stored_size, err) < 0 ||
        fill_meta(doc, &next, by, in->rollback_of, err) < 0)
        return -1;
    DF_FREE char *text = df_json_print(doc);
    if (!text)
        return df_fail_oom(err);
    if (df_blob_put_pair(s->blobs, file.text, in->path, meta.text, text, strlen(text), err) < 0)
        return -1;
    df_state_remember(s, uid, next.number);
    return 0;
}

static int fail_stale(const struct version *current, const struct incoming *in, struct df_err *err)
{
    bool same = in->head.serial == current->serial;
    return df_fail_reason(err, DF_ERR_CONFLICT, "StaleSerial",
                          "the state's serial %lld is %s the current one (%lld)%s",
                          (long long)in->head.serial, same ? "that of" : "lower than",
                          (long long)current->serial, same ? " with other content" : "");
}

/* Checks lineage and serial against the current version. *ret_same: the file is identical to it. */
static int check_successor(const struct version *current, const struct incoming *in, bool *ret_same,
                           struct df_err *err)
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

/* The state is already stored. Syncs it again, because the first request may have failed in its
 * sync. */
static int sync_version(struct df_states *s, const char *uid, int64_t number, struct df_err *err)
{
    struct df_state_key file, meta;
    if (file_key(uid, number, &file, err) < 0 || meta_key(uid, number, &meta, err) < 0 ||
        df_blob_sync(s->blobs, file.text, err) < 0)
        return -1;
    return df_blob_sync(s->blobs, meta.text, err);
}

/* ---- what may replace a state ----------------------------------------------------------------- */

/* Refuses unless the current state is known to have no resources. way: how to replace it. */
static int check_vacant(struct df_states *s, const char *uid, const struct version *current,
                        const char *way, struct df_err *err)
{
    DF_CLOSE int fd = -1;
    int64_t size = 0;
    struct df_state_head head = {0};
    if (!current->size)
        return 0;
    if (open_version(s, uid, current, &fd, &size, err) < 0 || df_state_scan(fd, &head, err) < 0)
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
static int check_writer(struct df_states *s, const char *uid, const struct version *current,
                        const struct df_state_writer *by, struct df_err *err)
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
    struct version current = {0};
    bool same = false;
    if (examine_file(path, md5, &in, err) < 0)
        return -1;
    DF_STATE_TURN pthread_mutex_t *turn = df_state_enter(s, executor_uid);
    if (df_state_check_lock(s, executor_uid, by->lock_id, by->step_uid, err) < 0 ||
        find_current(s, executor_uid, &current, err) < 0 ||
        check_successor(&current, &in, &same, err) < 0 ||
        (!same && check_writer(s, executor_uid, &current, by, err) < 0))
        return -1;
    if (!same)
        return store_version(s, executor_uid, &current, &in, by, err);
    if (sync_version(s, executor_uid, current.number, err) < 0)
        return -1;
    (void)unlink(path);
    return 0;
}

/* ---- push ----------------------------------------------------------------------------------- */

#define FORMAT 4 /* of every state since Terraform 0.12 */

static int check_format(const struct df_state_head *head, struct df_err *err)
{
    if (head->is_encrypted)
        return df_fail_reason(err, DF_ERR_USER, "StateRefused",
                              "the state is encrypted: push what `tofu state pull` prints where "
                              "its key is configured");
    if (head->version == FORMAT)
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
    struct version current = {0};
    if (examine_file(path, NULL, &in, err) < 0 || check_format(&in.head, err) < 0)
        return -1;
    DF_STATE_TURN pthread_mutex_t *turn = df_state_enter(s, executor_uid);
    if (df_state_check_lock(s, executor_uid, NULL, NULL, err) < 0 ||
        find_current(s, executor_uid, &current, err) < 0)
        return -1;
    if (current.size && df_streq(in.sha256, current.sha256)) {
        if (sync_version(s, executor_uid, current.number, err) < 0)
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

static int roll_back(struct df_states *s, const char *uid, const struct version *current, int in_fd,
                     int64_t number, const char *actor, struct df_err *err)
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
    struct version current = {0}, old = {0};
    DF_CLOSE int fd = -1;
    int64_t size = 0;
    DF_STATE_TURN pthread_mutex_t *turn = df_state_enter(s, executor_uid);
    if (df_state_check_lock(s, executor_uid, NULL, NULL, err) < 0 ||
        find_current(s, executor_uid, &current, err) < 0 ||
        find_version(s, executor_uid, version, &old, err) < 0 ||
        open_version(s, executor_uid, &old, &fd, &size, err) < 0)
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
    struct version current = {0};
    DF_STATE_TURN pthread_mutex_t *turn = df_state_enter(s, executor_uid);
    if (df_state_check_lock(s, executor_uid, by->lock_id, by->step_uid, err) < 0 ||
        find_current(s, executor_uid, &current, err) < 0 ||
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
