/*
 * Checks keys and passes each call to the backend; calls that both backends implement alike are
 * here. Whatever the store answers comes back through answer().
 */
#include "common/base/limits.h"
#include "common/blob/backend.h"

/* ---- keys ----------------------------------------------------------------------------------- */

static bool segment_is_good(const char *s, size_t n)
{
    static const char good[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    bool dots = (n == 1 || n == 2) && s[0] == '.' && s[n - 1] == '.';
    return n > 0 && !dots && strspn(s, good) >= n;
}

bool df_blob_path_is_good(const char *path)
{
    for (const char *s = path;; s++) {
        size_t n = strcspn(s, "/");
        if (!segment_is_good(s, n))
            return false;
        s += n;
        if (!*s)
            return true;
    }
}

bool df_blob_key_is_good(const char *key)
{
    return strlen(key) <= DF_LIMIT_BLOB_KEY && df_blob_path_is_good(key);
}

static int check_key(const char *key, struct df_err *err)
{
    return df_blob_key_is_good(key) ? 0
                                    : df_fail(err, DF_ERR_USER, "\"%s\" is not a blob key", key);
}

int df_blob_fail_gap(const char *key, int64_t size, int64_t offset, struct df_err *err)
{
    return df_fail_reason(err, DF_ERR_CONFLICT, "Gap", "%s has %lld bytes, not %lld", key,
                          (long long)size, (long long)offset);
}

int df_blob_fail_absent(const char *key, struct df_err *err)
{
    return df_fail(err, DF_ERR_NOT_FOUND, "there is no blob %s", key);
}

int df_blob_check_room(const char *key, int64_t size, size_t max, struct df_err *err)
{
    if ((uint64_t)size <= max)
        return 0;
    return df_fail(err, DF_ERR_LIMIT, "blob %s has %lld bytes, more than %zu", key, (long long)size,
                   max);
}

int df_blob_fail_damaged(const char *object, struct df_err *err)
{
    return df_fail_reason(err, DF_ERR_SYSTEM, DF_BLOB_DAMAGED,
                          "%s, of a blob, is damaged: restore it from a copy", object);
}

/* ---- calls to the backend -------------------------------------------------------------------- */

void df_blob_close(struct df_blob *b)
{
    if (!b)
        return;
    free(DF_TAKE(b->tmp));
    df_blob_health_free(DF_TAKE(b->health));
    b->ops->close(b);
}

const char *df_blob_tmp_dir(const struct df_blob *b)
{
    return b->tmp;
}

/* The result of a call of the backend, which failed with why, if it did. */
static int answer(struct df_blob *b, enum df_blob_direction direction, int result,
                  struct df_err *why, struct df_err *err)
{
    if (b->health)
        df_blob_health_note(b->health, direction, why);
    return result < 0 ? df_err_pass(err, why) : 0;
}

static int put(struct df_blob *b, const char *key, struct df_blob_content content,
               enum df_blob_how how, struct df_err *err)
{
    struct df_err why = {0};
    if (check_key(key, err) < 0)
        return -1;
    return answer(b, DF_BLOB_WRITES, b->ops->put(b, key, &content, how, &why), &why, err);
}

int df_blob_put(struct df_blob *b, const char *key, const void *bytes, size_t n, struct df_err *err)
{
    return put(b, key, (struct df_blob_content){bytes, n, NULL}, DF_BLOB_REPLACE, err);
}

int df_blob_create(struct df_blob *b, const char *key, const void *bytes, size_t n,
                   struct df_err *err)
{
    return put(b, key, (struct df_blob_content){bytes, n, NULL}, DF_BLOB_CREATE, err);
}

int df_blob_put_file(struct df_blob *b, const char *key, const char *path, struct df_err *err)
{
    return put(b, key, (struct df_blob_content){.path = path}, DF_BLOB_REPLACE, err);
}

int df_blob_sync(struct df_blob *b, const char *key, struct df_err *err)
{
    struct df_err why = {0};
    if (check_key(key, err) < 0)
        return -1;
    return b->ops->sync ? answer(b, DF_BLOB_WRITES, b->ops->sync(b, key, &why), &why, err) : 0;
}

int df_blob_get(struct df_blob *b, const char *key, struct df_buf *out, struct df_err *err)
{
    size_t room = out->max - out->len;
    int64_t size = 0;
    if (df_blob_read_at(b, key, 0, out, &size, err) < 0)
        return -1;
    return df_blob_check_room(key, size, room, err);
}

int df_blob_open_read(struct df_blob *b, const char *key, int *ret_fd, int64_t *ret_size,
                      struct df_err *err)
{
    struct df_err why = {0};
    int64_t size = 0;
    if (check_key(key, err) < 0 ||
        answer(b, DF_BLOB_READS, b->ops->open_read(b, key, ret_fd, &size, &why), &why, err) < 0)
        return -1;
    if (ret_size)
        *ret_size = size;
    return 0;
}

int df_blob_read_at(struct df_blob *b, const char *key, int64_t offset, struct df_buf *out,
                    int64_t *ret_size, struct df_err *err)
{
    struct df_err why = {0};
    if (check_key(key, err) < 0)
        return -1;
    int result = b->ops->get(b, key, offset, out, ret_size, &why);
    return answer(b, DF_BLOB_READS, result, &why, err);
}

/* A removal that came to nothing, or only to the look before it, is a read. */
int df_blob_delete_if(struct df_blob *b, const char *key, const struct df_blob_condition *c,
                      enum df_blob_removal *ret, struct df_err *err)
{
    struct df_err why = {0};
    if (check_key(key, err) < 0)
        return -1;
    *ret = DF_BLOB_STAYS;
    int result = b->ops->remove(b, key, c, ret, &why);
    enum df_blob_direction direction = *ret == DF_BLOB_REMOVED ? DF_BLOB_WRITES : DF_BLOB_READS;
    return answer(b, direction, result, &why, err);
}

int df_blob_delete(struct df_blob *b, const char *key, struct df_err *err)
{
    enum df_blob_removal what;
    return df_blob_delete_if(b, key, NULL, &what, err);
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int df_blob_list(struct df_blob *b, const char *prefix, struct df_strs *out, struct df_err *err)
{
    struct df_err why = {0};
    if (*prefix && check_key(prefix, err) < 0)
        return -1;
    if (answer(b, DF_BLOB_READS, b->ops->list(b, prefix, out, &why), &why, err) < 0 ||
        df_strs_check(out, err) < 0)
        return -1;
    if (out->len)
        qsort(out->items, out->len, sizeof(*out->items), by_bytes);
    return 0;
}

/* A walk that may end because the visitor does not go on, which says nothing of the store. */
struct walk {
    df_blob_visit visit;
    void *arg;
    bool was_ended;
};

static int visit_one(void *arg, const struct df_blob_info *info, struct df_err *err)
{
    struct walk *w = arg;
    w->was_ended = w->visit(w->arg, info, err) < 0;
    return w->was_ended ? -1 : 0;
}

int df_blob_each(struct df_blob *b, const char *prefix, df_blob_visit visit, void *arg,
                 struct df_err *err)
{
    struct walk w = {visit, arg, false};
    struct df_err why = {0};
    if (*prefix && check_key(prefix, err) < 0)
        return -1;
    int result = b->ops->each(b, prefix, visit_one, &w, &why);
    return w.was_ended ? df_err_pass(err, &why) : answer(b, DF_BLOB_READS, result, &why, err);
}

int df_blob_delete_all(struct df_blob *b, const char *prefix, struct df_err *err)
{
    DF_STRS struct df_strs keys = {0};
    struct df_err why = {0};
    if (check_key(prefix, err) < 0)
        return -1;
    if (b->ops->remove_all)
        return answer(b, DF_BLOB_WRITES, b->ops->remove_all(b, prefix, &why), &why, err);
    if (df_blob_list(b, prefix, &keys, err) < 0)
        return -1;
    for (size_t i = 0; i < keys.len; i++)
        if (df_blob_delete(b, keys.items[i], err) < 0)
            return df_err_wrap(err, "remove blobs %s", prefix);
    return 0;
}

int df_blob_append(struct df_blob *b, const char *key, int64_t offset, const void *bytes, size_t n,
                   int64_t *ret_size, struct df_err *err)
{
    struct df_err why = {0};
    if (check_key(key, err) < 0)
        return -1;
    int result = b->ops->append(b, key, offset, bytes, n, ret_size, &why);
    return answer(b, DF_BLOB_WRITES, result, &why, err);
}

int df_blob_size(struct df_blob *b, const char *key, int64_t *ret_size, struct df_err *err)
{
    struct df_err why = {0};
    if (check_key(key, err) < 0)
        return -1;
    return answer(b, DF_BLOB_READS, b->ops->size(b, key, ret_size, &why), &why, err);
}

/* ---- a service that works with them ---------------------------------------------------------- */

#define PROBE "probe"

int df_blob_serve(struct df_blob *b, const struct df_blob_service *service, struct df_err *err)
{
    return df_blob_health_new(service, &b->health, err);
}

int df_blob_check(struct df_blob *b, struct df_err *err)
{
    return b->health ? df_blob_health_check(b->health, err) : 0;
}

int df_blob_check_owner(struct df_blob *b, bool at_once, struct df_err *err)
{
    struct df_err why = {0};
    if (!b->ops->check_owner || b->ops->check_owner(b, at_once, &why) == 0)
        return 0;
    if (b->health && df_streq(why.reason, DF_BLOB_TAKEN_OVER))
        df_blob_health_note(b->health, DF_BLOB_WRITES, &why);
    return df_err_pass(err, &why);
}

/* What a call finds is in health. */
void df_blob_probe(struct df_blob *b)
{
    int64_t size = 0;
    if (!b->health)
        return;
    if (df_blob_health_is_remote(b->health) || df_blob_health_fails(b->health, DF_BLOB_READS))
        (void)!df_blob_size(b, PROBE, &size, NULL);
    if (df_blob_health_is_remote(b->health))
        (void)!df_blob_check_owner(b, true, NULL);
    if (df_blob_health_fails(b->health, DF_BLOB_WRITES) &&
        df_blob_put(b, PROBE, "probe", strlen("probe"), NULL) == 0)
        (void)!df_blob_delete(b, PROBE, NULL);
}

void df_blob_hasten(struct df_blob *b)
{
    if (b->ops->hasten)
        b->ops->hasten(b);
}
