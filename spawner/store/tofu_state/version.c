/*
 * A version of a state is one blob, state/<uid>/<number, 8 digits>.state: a line of JSON that says
 * what it is (its meta), and behind it the sealed document. One blob appears at once: there is
 * never a meta without its document, nor the reverse.
 *
 * Older versions are pairs: the meta in <number>.json, the document in <number>.tfstate. They are
 * read, and none is made any more. Of a pair the document was stored first: a document alone is no
 * version.
 */
#include "spawner/store/tofu_state/version.h"

#include <errno.h>

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/base/parse.h"

#define WHOLE ".state"
#define PAIR_META ".json"
#define PAIR_DOCUMENT ".tfstate"

/* ---- names ---------------------------------------------------------------------------------- */

static int version_key(const char *uid, int64_t number, const char *suffix,
                       struct df_state_key *ret, struct df_err *err)
{
    char name[48];
    (void)snprintf(name, sizeof(name), "%08lld%s", (long long)number, suffix);
    return df_state_key(uid, name, ret, err);
}

int64_t df_state_number_in(const char *key)
{
    const char *name = strrchr(key, '/') + 1;
    size_t digits = strspn(name, "0123456789");
    const char *suffix = name + digits;
    int64_t number = 0;
    char text[20];
    if (digits == 0 || digits >= sizeof(text) ||
        (!df_streq(suffix, WHOLE) && !df_streq(suffix, PAIR_META)))
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

/* ---- meta ----------------------------------------------------------------------------------- */

/* The bucket has it, and the key that sealed it there is none of the service's any more. */
static int fail_blob(const char *key, const struct df_err *why, struct df_err *err)
{
    if (!df_streq(why->reason, "UnknownKey"))
        return df_err_pass(err, why);
    return df_fail_reason(err, DF_ERR_SYSTEM, "StateUnreadable",
                          "%s cannot be read: %s; bring that key back (blobs.keyFiles or "
                          "blobs.keyCommand), behind the one that seals",
                          key, why->message);
}

static int fail_damaged(const char *key, const char *why, struct df_err *err)
{
    return df_fail_reason(err, DF_ERR_SYSTEM, "StateUnreadable",
                          "%s is damaged (%s): restore it from a copy, or remove it to go back to "
                          "the version before",
                          key, why);
}

static int parse_meta(const char *key, const char *text, size_t n, cJSON **ret, struct df_err *err)
{
    struct df_err why = {0};
    return df_json_parse(text, n, ret, &why) < 0 ? fail_damaged(key, why.message, err) : 0;
}

/* A number that nothing has if it is absent: what is cut is found damaged. */
static int64_t stored_size_in(const cJSON *meta)
{
    return df_json_int(meta, "storedSize", df_json_int(meta, "size", -1));
}

#define NO_LINE "its first line has no end"

/* The length of the line of JSON at the start, with its end; 0: there is none. */
static size_t line_length(const char *bytes, size_t n)
{
    const char *end = n ? memchr(bytes, '\n', n) : NULL;
    return end ? (size_t)(end - bytes) + 1 : 0;
}

static int check_size(const char *key, int64_t found, int64_t stored, struct df_err *err)
{
    if (found == stored)
        return 0;
    return fail_damaged(
        key, found ? "it has another size than it was stored with" : "it is missing", err);
}

/* head: what a blob of this size begins with. *ret_begin: of its document. */
static int parse_whole(const struct df_state_key *key, const struct df_buf *head, int64_t size,
                       cJSON **ret, int64_t *ret_begin, struct df_err *err)
{
    DF_JSON cJSON *meta = NULL;
    size_t line = line_length(df_buf_str(head), head->len);
    if (!line)
        return fail_damaged(key->text, NO_LINE, err);
    if (parse_meta(key->text, df_buf_str(head), line, &meta, err) < 0 ||
        check_size(key->text, size, (int64_t)line + stored_size_in(meta), err) < 0)
        return -1;
    *ret = DF_TAKE(meta);
    *ret_begin = (int64_t)line;
    return 0;
}

static int load_whole(struct df_states *s, const struct df_state_key *key, cJSON **ret,
                      struct df_err *err)
{
    DF_BUF struct df_buf head = DF_BUF_INIT(DF_LIMIT_STATE_META);
    int64_t size = 0, begin = 0;
    return df_blob_read_at(s->blobs, key->text, 0, &head, &size, err) < 0
               ? -1
               : parse_whole(key, &head, size, ret, &begin, err);
}

static int load_pair(struct df_states *s, const char *uid, int64_t number, cJSON **ret,
                     struct df_err *err)
{
    struct df_state_key key, document;
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_LIMIT_STATE_META);
    DF_JSON cJSON *meta = NULL;
    struct df_err why = {0};
    int64_t size = 0;
    if (version_key(uid, number, PAIR_META, &key, err) < 0 ||
        version_key(uid, number, PAIR_DOCUMENT, &document, err) < 0)
        return -1;
    if (df_blob_get(s->blobs, key.text, &text, &why) < 0)
        return fail_blob(key.text, &why, err);
    if (parse_meta(key.text, df_buf_str(&text), text.len, &meta, err) < 0 ||
        df_blob_size(s->blobs, document.text, &size, err) < 0 ||
        check_size(document.text, size, stored_size_in(meta), err) < 0)
        return -1;
    *ret = DF_TAKE(meta);
    return 0;
}

int df_state_load_meta(struct df_states *s, const char *uid, int64_t number, cJSON **ret,
                       struct df_err *err)
{
    struct df_state_key key;
    struct df_err why = {0};
    if (version_key(uid, number, WHOLE, &key, err) < 0)
        return -1;
    if (load_whole(s, &key, ret, &why) == 0)
        return 0;
    return why.cls == DF_ERR_NOT_FOUND ? load_pair(s, uid, number, ret, err)
                                       : fail_blob(key.text, &why, err);
}

static int parse_version(const char *uid, int64_t number, const cJSON *meta,
                         struct df_state_version *ret, struct df_err *err)
{
    struct df_state_version v = {.number = number};
    const char *lineage = df_json_str(meta, "lineage"), *sha256 = df_json_str(meta, "sha256");
    const char *key_id = df_json_str(meta, "keyId");
    v.serial = df_json_int(meta, "serial", -1);
    v.size = df_json_int(meta, "size", -1);
    v.stored_size = stored_size_in(meta);
    if (v.serial < 0 || v.size < 0 || !lineage || !sha256)
        return df_fail_reason(err, DF_ERR_SYSTEM, "StateUnreadable",
                              "the meta of version %lld of state %s is damaged: restore it from a "
                              "copy",
                              (long long)number, uid);
    (void)snprintf(v.lineage, sizeof(v.lineage), "%s", lineage);
    (void)snprintf(v.sha256, sizeof(v.sha256), "%s", sha256);
    (void)snprintf(v.key_id, sizeof(v.key_id), "%s", key_id ? key_id : "");
    *ret = v;
    return 0;
}

int df_state_read_version(struct df_states *s, const char *uid, int64_t number,
                          struct df_state_version *ret, struct df_err *err)
{
    DF_JSON cJSON *meta = NULL;
    return df_state_load_meta(s, uid, number, &meta, err) < 0
               ? -1
               : parse_version(uid, number, meta, ret, err);
}

/* ---- the newest ----------------------------------------------------------------------------- */

/* The version that was the newest, if the next one is not there: each is made with the number
 * behind the one before. It may have been removed. *ret 0: only a list can tell. */
static int check_hint(struct df_states *s, const char *uid, int64_t *ret, struct df_err *err)
{
    int64_t number = df_state_hint(s, uid), next_size = 0;
    struct df_state_key next;
    if (number && (version_key(uid, number + 1, WHOLE, &next, err) < 0 ||
                   df_blob_size(s->blobs, next.text, &next_size, err) < 0))
        return -1;
    *ret = next_size ? 0 : number;
    return 0;
}

/* *ret stays NULL if only a list can tell. */
static int try_hint(struct df_states *s, const char *uid, cJSON **ret, int64_t *ret_number,
                    struct df_err *err)
{
    struct df_err why = {0};
    if (check_hint(s, uid, ret_number, err) < 0)
        return -1;
    if (!*ret_number || df_state_load_meta(s, uid, *ret_number, ret, &why) == 0)
        return 0;
    return why.cls == DF_ERR_NOT_FOUND ? 0 : df_err_pass(err, &why);
}

int df_state_newest_meta(struct df_states *s, const char *uid, cJSON **ret, int64_t *ret_number,
                         struct df_err *err)
{
    DF_JSON cJSON *meta = NULL;
    int64_t number = 0;
    if (try_hint(s, uid, &meta, &number, err) < 0)
        return -1;
    if (!meta && (highest_number(s, uid, &number, err) < 0 ||
                  (number && df_state_load_meta(s, uid, number, &meta, err) < 0)))
        return -1;
    *ret = DF_TAKE(meta);
    *ret_number = number;
    return 0;
}

int df_state_find_current(struct df_states *s, const char *uid, struct df_state_version *ret,
                          struct df_err *err)
{
    DF_JSON cJSON *meta = NULL;
    struct df_state_version v = {0};
    int64_t number = 0;
    if (df_state_newest_meta(s, uid, &meta, &number, err) < 0 ||
        (meta && parse_version(uid, number, meta, &v, err) < 0))
        return -1;
    df_state_remember(s, uid, v.number);
    *ret = v;
    return 0;
}

/* ---- opening -------------------------------------------------------------------------------- */

static int unreadable(const char *uid, const struct df_state_version *v, const char *why,
                      const char *way, struct df_err *err)
{
    return df_fail_reason(err, DF_ERR_SYSTEM, "StateUnreadable",
                          "version %lld of the state of the executor with the uid %s cannot be "
                          "read: %s; %s, or store a copy as a new version: dayfly state push NAME "
                          "FILE --replace",
                          (long long)v->number, uid, why, way);
}

/* The version's blob does not open. */
static int sealed_otherwise(struct df_states *s, const char *uid, const struct df_state_version *v,
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

static int check_digest(const char *uid, const struct df_state_version *v, int fd,
                        struct df_err *err)
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

/* Sets *ret to where the document begins: behind the first line. */
static int find_document(const struct df_state_key *key, int blob, int64_t size, int64_t *ret,
                         struct df_err *err)
{
    DF_BUF struct df_buf head = DF_BUF_INIT(DF_LIMIT_STATE_META);
    if (df_fs_read_at(blob, 0, size, &head, err) < 0)
        return -1;
    size_t line = line_length(df_buf_str(&head), head.len);
    *ret = (int64_t)line;
    return line ? 0 : fail_damaged(key->text, NO_LINE, err);
}

/* The open blob of a version, or of the document of a pair. */
struct version_blob {
    struct df_state_key key;
    int fd;
    int64_t begin; /* of the document */
};
static void version_blob_close(struct version_blob *b)
{
    df_cleanup_fd(&b->fd);
}
#define VERSION_BLOB DF_CLEANUP(version_blob_close) struct version_blob

/* NOT_FOUND: there is neither. */
static int open_blob(struct df_states *s, const char *uid, int64_t number, struct version_blob *ret,
                     struct df_err *err)
{
    struct df_err why = {0};
    int64_t size = 0;
    if (version_key(uid, number, WHOLE, &ret->key, err) < 0)
        return -1;
    if (df_blob_open_read(s->blobs, ret->key.text, &ret->fd, &size, &why) == 0)
        return find_document(&ret->key, ret->fd, size, &ret->begin, err);
    ret->begin = 0;
    if (why.cls != DF_ERR_NOT_FOUND)
        return df_err_pass(err, &why);
    return version_key(uid, number, PAIR_DOCUMENT, &ret->key, err) < 0
               ? -1
               : df_blob_open_read(s->blobs, ret->key.text, &ret->fd, NULL, err);
}

static int open_document(struct df_states *s, const char *uid, const struct df_state_version *v,
                         struct version_blob *b, int *ret_fd, int64_t *ret_size, struct df_err *err)
{
    DF_CLOSE int fd = -1;
    int64_t size = 0;
    struct df_err why = {0};
    if (df_state_unseal(s, &b->key, &b->fd, b->begin, &fd, &size, &why) < 0)
        return why.cls == DF_ERR_DENIED && !why.os_errno ? sealed_otherwise(s, uid, v, err)
                                                         : df_err_pass(err, &why);
    if (check_digest(uid, v, fd, err) < 0)
        return -1;
    *ret_fd = DF_TAKE_FD(fd);
    *ret_size = size;
    return 0;
}

int df_state_open_version(struct df_states *s, const char *uid, const struct df_state_version *v,
                          int *ret_fd, int64_t *ret_size, struct df_err *err)
{
    VERSION_BLOB b = {.fd = -1};
    struct df_err why = {0};
    if (open_blob(s, uid, v->number, &b, &why) == 0)
        return open_document(s, uid, v, &b, ret_fd, ret_size, err);
    return why.cls == DF_ERR_NOT_FOUND
               ? unreadable(uid, v, "its file is missing", "restore it from a copy", err)
               : df_err_pass(err, &why);
}

/* Opens the document of this version and checks it by its meta, in one read of its blob. NOT_FOUND:
 * there is none, or it is a pair. */
static int open_whole(struct df_states *s, const char *uid, int64_t number, int *ret_fd,
                      int64_t *ret_size, cJSON **ret_meta, struct df_err *err)
{
    DF_BUF struct df_buf head = DF_BUF_INIT(DF_LIMIT_STATE_META);
    DF_JSON cJSON *meta = NULL;
    VERSION_BLOB b = {.fd = -1};
    struct df_state_version v = {0};
    struct df_err why = {0};
    int64_t size = 0;
    if (version_key(uid, number, WHOLE, &b.key, err) < 0)
        return -1;
    if (df_blob_open_read(s->blobs, b.key.text, &b.fd, &size, &why) < 0)
        return fail_blob(b.key.text, &why, err);
    if (df_fs_read_at(b.fd, 0, size, &head, err) < 0 ||
        parse_whole(&b.key, &head, size, &meta, &b.begin, err) < 0 ||
        parse_version(uid, number, meta, &v, err) < 0 ||
        open_document(s, uid, &v, &b, ret_fd, ret_size, err) < 0)
        return -1;
    *ret_meta = DF_TAKE(meta);
    return 0;
}

/* Without a hint: by a list, and a read more. */
static int open_listed(struct df_states *s, const char *uid, int *ret_fd, int64_t *ret_size,
                       cJSON **ret_meta, struct df_err *err)
{
    DF_JSON cJSON *meta = NULL;
    struct df_state_version v = {0};
    int64_t number = 0;
    if (df_state_newest_meta(s, uid, &meta, &number, err) < 0)
        return -1;
    if (!meta)
        return df_fail(err, DF_ERR_NOT_FOUND, "there is no state yet");
    if (parse_version(uid, number, meta, &v, err) < 0)
        return -1;
    df_state_remember(s, uid, number);
    if (df_state_open_version(s, uid, &v, ret_fd, ret_size, err) < 0)
        return -1;
    *ret_meta = DF_TAKE(meta);
    return 0;
}

int df_state_open_current(struct df_states *s, const char *uid, int *ret_fd, int64_t *ret_size,
                          cJSON **ret_meta, struct df_err *err)
{
    struct df_err why = {.cls = DF_ERR_NOT_FOUND}; /* as without a hint */
    int64_t number = 0;
    if (check_hint(s, uid, &number, err) < 0)
        return -1;
    if (number && open_whole(s, uid, number, ret_fd, ret_size, ret_meta, &why) == 0) {
        df_state_remember(s, uid, number);
        return 0;
    }
    return why.cls == DF_ERR_NOT_FOUND ? open_listed(s, uid, ret_fd, ret_size, ret_meta, err)
                                       : df_err_pass(err, &why);
}

/* ---- storing -------------------------------------------------------------------------------- */

static int fill_meta(cJSON *meta, const struct df_state_version *v,
                     const struct df_state_writer *by, struct df_err *err)
{
    if (df_json_put(meta, err, DF_NUM("version", v->number), DF_NUM("serial", v->serial),
                    DF_STR("lineage", v->lineage), DF_NUM("size", v->size),
                    DF_STR("sha256", v->sha256), DF_NUM("storedSize", v->stored_size),
                    DF_STR("keyId", v->key_id), DF_TIME("createdAt", df_real_us()),
                    DF_STR("run", by->run), DF_STR("step", by->step_uid),
                    DF_STR("actor", by->actor)) < 0)
        return -1;
    return v->rollback_of ? df_json_add_num(meta, "rollbackOf", (double)v->rollback_of, err) : 0;
}

/* The first line of the blob; the caller frees. */
static int describe(const struct df_state_version *v, const struct df_state_writer *by, char **ret,
                    struct df_err *err)
{
    DF_JSON cJSON *meta = cJSON_CreateObject();
    if (df_check_alloc(meta, err) < 0 || fill_meta(meta, v, by, err) < 0)
        return -1;
    DF_FREE char *text = df_json_print(meta);
    DF_FREE char *line = text ? df_strf("%s\n", text) : NULL;
    if (!line)
        return df_fail_oom(err);
    if (strlen(line) > DF_LIMIT_STATE_META)
        return df_fail(err, DF_ERR_LIMIT, "the description of a state has more than %zu bytes",
                       DF_LIMIT_STATE_META);
    *ret = DF_TAKE(line);
    return 0;
}

int df_state_store_version(struct df_states *s, const char *uid, struct df_state_version *v,
                           const char *path, const struct df_state_writer *by, struct df_err *err)
{
    DF_STATE_PACKED p = {-1, -1, 0};
    DF_FREE char *line = NULL;
    struct df_state_key key;
    if (version_key(uid, v->number, WHOLE, &key, err) < 0 ||
        df_vault_key_id(s->vault, v->key_id, err) < 0 || df_state_pack(s, path, &p, err) < 0)
        return -1;
    v->stored_size = p.sealed_size;
    if (describe(v, by, &line, err) < 0 || df_state_seal(s, &key, line, &p, err) < 0 ||
        df_blob_put_file(s->blobs, key.text, path, err) < 0)
        return -1;
    df_state_remember(s, uid, v->number);
    return 0;
}

int df_state_sync_version(struct df_states *s, const char *uid, int64_t number, struct df_err *err)
{
    struct df_state_key key, document;
    struct df_err why = {0};
    if (version_key(uid, number, WHOLE, &key, err) < 0)
        return -1;
    if (df_blob_sync(s->blobs, key.text, &why) == 0)
        return 0;
    if (why.cls != DF_ERR_NOT_FOUND)
        return df_err_pass(err, &why);
    if (version_key(uid, number, PAIR_DOCUMENT, &document, err) < 0 ||
        version_key(uid, number, PAIR_META, &key, err) < 0 ||
        df_blob_sync(s->blobs, document.text, err) < 0)
        return -1;
    return df_blob_sync(s->blobs, key.text, err);
}
