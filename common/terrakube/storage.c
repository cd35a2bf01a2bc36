/*
 * Terrakube's storage: names are checked and calls repeated here, store.h has the places. First
 * names, then the calls, the places of plans, opening.
 */
#include "common/terrakube/storage.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "common/base/retry.h"
#include "common/terrakube/store.h"

struct df_terrakube_storage {
    struct df_terrakube_store *store;
    int64_t retry_ms;
    const volatile bool *stop;               /* or NULL */
    const struct df_wait_listener *listener; /* borrowed; or NULL */
};

/* ---- names ---- */

/* Segments that are safe in paths and URLs. */
static bool is_name(const char *s)
{
    for (;; s++) {
        size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");
        if (!n || s[0] == '.' || (s[n] && s[n] != '/'))
            return false;
        s += n;
        if (!*s)
            return true;
    }
}

static int make_item(const struct df_terrakube_payload *p, enum df_terrakube_object what,
                     const char *name, struct df_terrakube_item *ret, struct df_err *err)
{
    bool needs_name = what != DF_TERRAKUBE_OBJECT_PLAN && what != DF_TERRAKUBE_OBJECT_OUTPUT;
    if (needs_name && (!name || strlen(name) > DF_LIMIT_NAME * 3 || !is_name(name)))
        return df_fail(err, DF_ERR_USER,
                       "\"%s\" cannot be the name of an object: segments of A-Z a-z 0-9 . _ - with "
                       "/ between them",
                       name ? name : "");
    *ret = (struct df_terrakube_item){what, p->organization, p->workspace, p->job, p->step, name};
    return 0;
}

/* ---- the calls ---- */

static struct df_retry begin(const struct df_terrakube_storage *s)
{
    struct df_retry p = df_retry_begin(s->retry_ms, s->stop);
    p.listener = s->listener;
    p.what = "Terrakube's storage";
    return p;
}

static int put_item(struct df_terrakube_storage *s, const struct df_terrakube_item *i,
                    const char *path, struct df_err *err)
{
    struct df_retry retry = begin(s);
    DF_TERRAKUBE_BYTES b = {0};
    struct df_err why = {0};
    if (df_terrakube_bytes_open(path, &b, err) < 0)
        return -1;
    do {
        if (s->store->ops->put(s->store, i, b.at, b.n, &why) == 0) {
            df_retry_succeeded(&retry);
            return 0;
        }
    } while (df_retry_again(&retry, &why));
    return df_err_pass(err, &why);
}

static int get_into(struct df_terrakube_storage *s, const struct df_terrakube_item *i, int fd,
                    struct df_err *err)
{
    struct df_retry retry = begin(s);
    struct df_err why = {0};
    do {
        if (s->store->ops->get(s->store, i, fd, &why) == 0) {
            df_retry_succeeded(&retry);
            return 0;
        }
    } while (df_retry_again(&retry, &why));
    return df_err_pass(err, &why);
}

/* What was there is not written to: it may be a link of the module's. */
static int get_item(struct df_terrakube_storage *s, const struct df_terrakube_item *i,
                    const char *path, struct df_err *err)
{
    if (unlink(path) < 0 && errno != ENOENT)
        return df_fail_errno(err, errno, "replace %s", path);
    DF_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return df_fail_errno(err, errno, "create %s", path);
    int result = get_into(s, i, fd, err);
    if (result < 0)
        (void)unlink(path);
    return result;
}

int df_terrakube_storage_put(struct df_terrakube_storage *s, const struct df_terrakube_payload *p,
                             enum df_terrakube_object what, const char *name, const char *path,
                             struct df_err *err)
{
    struct df_terrakube_item i;
    return make_item(p, what, name, &i, err) < 0 ? -1 : put_item(s, &i, path, err);
}

int df_terrakube_storage_get(struct df_terrakube_storage *s, const struct df_terrakube_payload *p,
                             enum df_terrakube_object what, const char *name, const char *path,
                             struct df_err *err)
{
    struct df_terrakube_item i;
    return make_item(p, what, name, &i, err) < 0 ? -1 : get_item(s, &i, path, err);
}

/* ---- the places of plans ---- */

int df_terrakube_storage_plan_place(struct df_terrakube_storage *s,
                                    const struct df_terrakube_payload *p, char **ret,
                                    struct df_err *err)
{
    struct df_terrakube_item i;
    if (make_item(p, DF_TERRAKUBE_OBJECT_PLAN, NULL, &i, err) < 0)
        return -1;
    char *place = s->store->ops->place(s->store, &i);
    if (!place)
        return df_fail_oom(err);
    *ret = place;
    return 0;
}

/* Azure's library writes the slashes of a name as %2F. The caller frees; NULL: no memory. */
static char *with_slashes(const char *place)
{
    char *copy = strdup(place), *to = copy;
    for (const char *from = place; copy && *from; to++) {
        bool escaped = strncmp(from, "%2F", 3) == 0 || strncmp(from, "%2f", 3) == 0;
        *to = escaped ? '/' : *from;
        from += escaped ? 3 : 1;
    }
    if (copy)
        *to = '\0';
    return copy;
}

/* What is behind the last occurrence of these words; NULL: there is none. */
static const char *behind(const char *s, const char *words)
{
    const char *found = NULL;
    for (const char *at = s; (at = strstr(at, words)); at++)
        found = at + strlen(words);
    return found;
}

/* The place of the plan of this job and step. */
static int is_place_of(struct df_terrakube_storage *s, const struct df_terrakube_item *i,
                       const char *rest, bool *ret, struct df_err *err)
{
    DF_FREE char *ours = s->store->ops->place(s->store, i);
    if (!ours)
        return df_fail_oom(err);
    *ret = df_streq(behind(ours, s->store->ops->before), rest);
    return 0;
}

/* Every form of a place has the organization first, and of the segments behind it the workspace,
 * the job, and the step. Only the step is taken from it, which is that of the plan and not of the
 * apply: the plan of another job was shown and approved there, not here. */
static int read_place(struct df_terrakube_storage *s, char *rest, struct df_terrakube_item *i,
                      struct df_err *err)
{
    DF_FREE char *whole = strdup(rest);
    bool is_ours = false;
    if (!whole)
        return df_fail_oom(err);
    char *words[8] = {NULL};
    size_t n = 0;
    for (char *w; n < DF_ARRAY_SIZE(words) && (w = strsep(&rest, "/"));)
        words[n++] = w;
    bool by_api = n == 8; /* .../workspace/{w}/jobId/{j}/step/{s}/terraform.tfstate */
    if (n == 5 || by_api) {
        i->step = words[by_api ? 6 : 3];
        if (is_name(i->step) && is_place_of(s, i, whole, &is_ours, err) < 0)
            return -1;
    }
    return is_ours ? 0
                   : df_fail_reason(err, DF_ERR_DENIED, "ForeignPlan",
                                    "terraformPlan is \"%.256s\", which is no plan of job %s of "
                                    "workspace %s: plan again in this job",
                                    whole, i->job, i->workspace);
}

int df_terrakube_storage_get_plan(struct df_terrakube_storage *s,
                                  const struct df_terrakube_payload *p, const char *place,
                                  const char *path, struct df_err *err)
{
    struct df_terrakube_item i;
    DF_FREE char *plain = with_slashes(place);
    if (df_check_alloc(plain, err) < 0 || make_item(p, DF_TERRAKUBE_OBJECT_PLAN, NULL, &i, err) < 0)
        return -1;
    const char *rest = behind(plain, s->store->ops->before);
    DF_FREE char *words = strdup(rest ? rest : plain);
    return df_check_alloc(words, err) < 0 || read_place(s, words, &i, err) < 0
               ? -1
               : get_item(s, &i, path, err);
}

/* ---- opening ---- */

static int open_store(const struct df_terrakube_settings *s, const volatile bool *stop,
                      struct df_terrakube_store **ret, struct df_err *err)
{
    switch (s->state) {
    case DF_TERRAKUBE_STATE_LOCAL:
        return df_terrakube_store_files(s, ret, err);
    case DF_TERRAKUBE_STATE_AWS:
    case DF_TERRAKUBE_STATE_AZURE:
    case DF_TERRAKUBE_STATE_GCP:
        return df_terrakube_store_buckets(s, ret, err);
    case DF_TERRAKUBE_STATE_API:
        return df_terrakube_store_api(s, stop, ret, err);
    }
    DF_BUG("state type %d", (int)s->state);
}

int df_terrakube_storage_new(const struct df_terrakube_settings *s, int64_t retry_ms,
                             const volatile bool *stop, struct df_terrakube_storage **ret,
                             struct df_err *err)
{
    struct df_terrakube_storage *storage = calloc(1, sizeof(*storage));
    if (!storage)
        return df_fail_oom(err);
    *storage = (struct df_terrakube_storage){.retry_ms = retry_ms, .stop = stop};
    if (open_store(s, stop, &storage->store, err) < 0) {
        free(storage);
        return df_err_wrap(err, "storage of Terrakube");
    }
    *ret = storage;
    return 0;
}

void df_terrakube_storage_stop(struct df_terrakube_storage *s, const volatile bool *stop)
{
    s->stop = stop;
}

void df_terrakube_storage_listen(struct df_terrakube_storage *s,
                                 const struct df_wait_listener *listener)
{
    s->listener = listener;
}

void df_terrakube_storage_free(struct df_terrakube_storage *s)
{
    if (!s)
        return;
    s->store->ops->close(s->store);
    free(s);
}
