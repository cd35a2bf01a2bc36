#include "common/kube/cache.h"

#include <pthread.h>
#include <time.h>

#include "common/base/clock.h"
#include "common/kube/store.h"

enum { STOP_POLL_MS = 100 };

struct df_kube_cache {
    struct df_kube_cache_options o;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* synced */
    struct df_kube_store store;
    struct df_packer *packer;
    char *listed; /* the resourceVersion of the newest list */
    char *newest; /* of all that the watch told; NULL: nothing yet */
    bool synced;
    struct df_err last; /* what failed last before it was synced */
    struct df_kube_watch *watch;
};

/* ---- what the watch tells ------------------------------------------------------------------- */

static const char *text_of(const char *s)
{
    return s ? s : "";
}

static const char *name_space_of(const cJSON *object)
{
    return text_of(df_json_str(object, "metadata.namespace"));
}

static cJSON *keep_most(const cJSON *object)
{
    cJSON *copy = cJSON_Duplicate(object, true);
    cJSON *metadata = cJSON_GetObjectItemCaseSensitive(copy, "metadata");
    cJSON_DeleteItemFromObjectCaseSensitive(metadata, "managedFields");
    return copy;
}

static int reduce(const struct df_kube_cache *c, const cJSON *object, struct df_packed *ret,
                  struct df_err *err)
{
    DF_JSON cJSON *kept = c->o.keep ? c->o.keep(c->o.arg, object) : keep_most(object);
    return kept ? df_pack(c->packer, kept, ret, err) : df_fail_oom(err);
}

static int on_begin(void *arg, const char *version, struct df_err *err)
{
    struct df_kube_cache *c = arg;
    (void)pthread_mutex_lock(&c->lock);
    int result = df_str_set(&c->listed, version, err);
    if (result == 0)
        df_kube_store_begin(&c->store);
    (void)pthread_mutex_unlock(&c->lock);
    return result;
}

static int raise_newest(struct df_kube_cache *c, const char *version, struct df_err *err)
{
    (void)pthread_mutex_lock(&c->lock);
    int result = 0;
    if (version && !df_kube_version_is_older(version, c->newest))
        result = df_str_set(&c->newest, version, err);
    (void)pthread_mutex_unlock(&c->lock);
    return result;
}

/* Would it change anything? What the watch told already is never told again by the older answer of
 * a verb (noted). Under the lock. */
static bool is_news(struct df_kube_cache *c, const struct df_kube_item *i, bool noted)
{
    if (noted && c->newest && !df_kube_version_is_older(c->newest, i->version))
        return false;
    return df_kube_store_look(&c->store, i->name_space, i->name, i->uid, i->version) ==
           DF_KUBE_PUT_CHANGED;
}

/* Looked at twice, because the reducer runs without the lock. */
static int put(struct df_kube_cache *c, const cJSON *object, const struct df_kube_item *key,
               bool noted, bool *ret_changed, struct df_err *err)
{
    (void)pthread_mutex_lock(&c->lock);
    bool news = is_news(c, key, noted);
    (void)pthread_mutex_unlock(&c->lock);
    *ret_changed = false;
    if (!news)
        return 0;
    DF_PACKED struct df_packed text = {0};
    if (reduce(c, object, &text, err) < 0)
        return -1;
    struct df_kube_item item = *key;
    item.text = &text;
    item.index = c->o.index ? text_of(c->o.index(c->o.arg, object)) : "";
    (void)pthread_mutex_lock(&c->lock);
    *ret_changed = is_news(c, &item, noted);
    int result = *ret_changed ? df_kube_store_put(&c->store, &item, err) : 0;
    (void)pthread_mutex_unlock(&c->lock);
    return result;
}

static int take(struct df_kube_cache *c, const cJSON *object, bool noted, struct df_err *err)
{
    const struct df_kube_item key = {.name_space = name_space_of(object),
                                     .name = text_of(df_kube_name(object)),
                                     .uid = text_of(df_kube_uid(object)),
                                     .version = text_of(df_kube_version(object))};
    bool changed = false;
    if (put(c, object, &key, noted, &changed, err) < 0)
        return -1;
    if (changed && c->o.changed)
        c->o.changed(c->o.arg, key.name_space, key.name);
    return 0;
}

int df_kube_cache_note(struct df_kube_cache *c, const cJSON *object, struct df_err *err)
{
    return take(c, object, true, err);
}

static void on_remove(void *arg, const cJSON *object)
{
    struct df_kube_cache *c = arg;
    /* No memory: a late answer of a verb may then show the object until the next list. */
    (void)raise_newest(c, df_kube_version(object), NULL);
    const char *ns = name_space_of(object), *name = text_of(df_kube_name(object));
    (void)pthread_mutex_lock(&c->lock);
    bool removed = df_kube_store_remove(&c->store, ns, name, text_of(df_kube_version(object)));
    (void)pthread_mutex_unlock(&c->lock);
    if (removed && c->o.changed)
        c->o.changed(c->o.arg, ns, name);
}

static int on_apply(void *arg, const cJSON *object, struct df_err *err)
{
    struct df_kube_cache *c = arg;
    if (raise_newest(c, df_kube_version(object), err) < 0)
        return -1;
    if (!c->o.wants || c->o.wants(c->o.arg, object))
        return take(c, object, false, err);
    on_remove(c, object);
    return 0;
}

static void on_listed(void *arg)
{
    struct df_kube_cache *c = arg;
    (void)raise_newest(c, c->listed, NULL); /* the watch's own thread alone writes it */
    (void)pthread_mutex_lock(&c->lock);
    struct df_kube_entry *gone = df_kube_store_sweep(&c->store, c->listed);
    c->synced = true;
    (void)pthread_cond_broadcast(&c->changed);
    (void)pthread_mutex_unlock(&c->lock);
    for (struct df_kube_entry *next; gone; gone = next) {
        next = gone->next;
        if (c->o.changed)
            c->o.changed(c->o.arg, gone->name_space, gone->name);
        free(gone);
    }
}

static void on_failed(void *arg, const struct df_err *err)
{
    struct df_kube_cache *c = arg;
    (void)pthread_mutex_lock(&c->lock);
    c->last = *err;
    (void)pthread_mutex_unlock(&c->lock);
    if (c->o.failed)
        c->o.failed(c->o.arg, err);
}

/* ---- start and stop ------------------------------------------------------------------------- */

static void cache_free(struct df_kube_cache *c)
{
    df_kube_store_free(&c->store);
    df_packer_free(c->packer);
    free(c->listed);
    free(c->newest);
    (void)pthread_cond_destroy(&c->changed);
    (void)pthread_mutex_destroy(&c->lock);
    free(c);
}

int df_kube_cache_start(struct df_kube *k, const struct df_kube_cache_options *o,
                        struct df_kube_cache **ret, struct df_err *err)
{
    struct df_kube_cache *c = calloc(1, sizeof(*c));
    if (!c)
        return df_fail_oom(err);
    pthread_condattr_t attr;
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&c->changed, &attr);
    (void)pthread_condattr_destroy(&attr);
    (void)pthread_mutex_init(&c->lock, NULL);
    c->o = *o;
    struct df_kube_watch_options w = o->watch;
    w.resource = o->resource;
    w.name_space = o->name_space;
    w.select = o->select;
    w.to = (struct df_kube_watcher){on_begin, on_apply, on_remove, on_listed, on_failed, c};
    *ret = c; /* before the watch's thread, which may ask it at once */
    if (df_kube_store_init(&c->store, err) < 0 || df_packer_new(&c->packer, err) < 0 ||
        df_kube_watch_start(k, &w, &c->watch, err) < 0) {
        *ret = NULL;
        cache_free(c);
        return -1;
    }
    return 0;
}

void df_kube_cache_stop(struct df_kube_cache *c)
{
    if (!c)
        return;
    df_kube_watch_stop(c->watch);
    cache_free(c);
}

/* ---- reading -------------------------------------------------------------------------------- */

/* Until STOP_POLL_MS from now, under the lock. */
static void wait_a_little(struct df_kube_cache *c)
{
    const struct timespec until = df_mono_after_us((int64_t)STOP_POLL_MS * 1000);
    (void)pthread_cond_timedwait(&c->changed, &c->lock, &until);
}

int df_kube_cache_wait(struct df_kube_cache *c, int64_t timeout_ms, const volatile bool *stop,
                       struct df_err *err)
{
    int64_t deadline = df_mono_ms() + timeout_ms;
    (void)pthread_mutex_lock(&c->lock);
    while (!c->synced && !df_stopped(stop) && (timeout_ms < 0 || df_mono_ms() < deadline))
        wait_a_little(c);
    bool synced = c->synced;
    struct df_err last = c->last;
    (void)pthread_mutex_unlock(&c->lock);
    if (synced)
        return 0;
    return df_fail_reason(err, DF_ERR_RETRY, "NotListedYet", "the list of %s is not there yet%s%s",
                          c->o.resource->plural, last.message[0] ? ": " : "", last.message);
}

int df_kube_cache_get(struct df_kube_cache *c, const char *name_space, const char *name,
                      cJSON **ret, struct df_err *err)
{
    (void)pthread_mutex_lock(&c->lock);
    const struct df_kube_entry *e = df_kube_store_find(&c->store, text_of(name_space), name);
    bool found = e;
    DF_PACKED struct df_packed text = {0};
    int result = found ? df_packed_copy(&e->text, &text, err) : 0;
    (void)pthread_mutex_unlock(&c->lock);
    if (!found)
        return df_fail(err, DF_ERR_NOT_FOUND, "%s %s/%s does not exist", c->o.resource->plural,
                       text_of(name_space), name);
    return result < 0 ? -1 : df_unpack(c->packer, &text, ret, err);
}

int df_kube_cache_each(struct df_kube_cache *c, const char *index,
                       int (*each)(void *arg, const cJSON *kept, struct df_err *err), void *arg,
                       struct df_err *err)
{
    DF_PACKED_LIST struct df_packed_list texts = {0};
    (void)pthread_mutex_lock(&c->lock);
    int result = df_kube_store_texts(&c->store, index, &texts, err);
    (void)pthread_mutex_unlock(&c->lock);
    if (result < 0)
        return -1;
    for (size_t i = 0; i < texts.len; i++) {
        DF_JSON cJSON *kept = NULL;
        if (df_unpack(c->packer, &texts.items[i], &kept, err) < 0 || each(arg, kept, err) < 0)
            return -1;
    }
    return 0;
}

size_t df_kube_cache_count(struct df_kube_cache *c)
{
    (void)pthread_mutex_lock(&c->lock);
    size_t n = c->store.len;
    (void)pthread_mutex_unlock(&c->lock);
    return n;
}
