/*
 * The watch's thread delivers objects (on_apply, on_remove, and on_listed at the end of a list);
 * writers deliver answers (df_kube_cache_note). All of them go through take_object() or
 * remove_object(), which check under the lock whether the object is newer, change the cache, and
 * notify the owner without the lock. While an object is being written, watch events for it are held
 * back: see hold_event() and df_kube_cache_end().
 */
#include "common/kube/cache.h"

#include <pthread.h>
#include <time.h>

#include "common/base/clock.h"

enum { STOP_POLL_MS = 100 };

struct df_kube_cache {
    struct df_kube_cache_options o;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* signalled when the cache is synced and when a write ends */
    struct df_kube_objects objects;
    struct df_packer *packer;
    struct df_kube_write *writes;
    char *listed; /* the resourceVersion of the newest list; only the watch's thread writes it */
    char *newest; /* newest version the watch has delivered; NULL: none yet */
    bool synced;
    struct df_err last; /* the last failure before it was synced */
    struct df_kube_watch *watch;
};

static void lock_cache(struct df_kube_cache *c)
{
    (void)pthread_mutex_lock(&c->lock);
}

static void unlock_cache(struct df_kube_cache *c)
{
    (void)pthread_mutex_unlock(&c->lock);
}

static const char *text_of(const char *s)
{
    return s ? s : "";
}

/* If the cache has only one namespace, its keys do not contain it. */
static const char *key_space(const struct df_kube_cache *c, const char *name_space)
{
    return c->o.name_space ? "" : text_of(name_space);
}

/* Returns the item of an object, all borrowed; what is kept is not set. */
static struct df_kube_item item_of(const struct df_kube_cache *c, const cJSON *object)
{
    return (struct df_kube_item){.name_space =
                                     key_space(c, df_json_str(object, "metadata.namespace")),
                                 .name = text_of(df_kube_name(object)),
                                 .uid = text_of(df_kube_uid(object)),
                                 .version = text_of(df_kube_version(object))};
}

/* ---- changes --------------------------------------------------------------------------------- */

/* Gives the change its sequence number. Under the lock. */
static void draw_sequence(struct df_kube_cache *c, struct df_kube_change *change)
{
    change->is_initial = !c->synced;
    if (c->synced && c->o.sequence)
        change->sequence = c->o.sequence(c->o.arg);
}

static void notify_owner(const struct df_kube_cache *c, struct df_kube_change *change)
{
    change->name_space = c->o.name_space ? c->o.name_space : change->name_space;
    if (c->o.changed)
        c->o.changed(c->o.arg, change);
}

/* Under the lock. */
static struct df_kube_write *find_write(const struct df_kube_cache *c, const char *name_space,
                                        const char *name)
{
    struct df_kube_write *w = c->writes;
    while (w && (strcmp(w->name, name) != 0 || strcmp(w->name_space, name_space) != 0))
        w = w->next;
    return w;
}

/* True if the object is newer than the cached one. An older answer to a request (noted) must not
 * bring back an object that the watch has seen deleted. During a write, though, the watch is held
 * back and knows nothing of the object. Under the lock. */
static bool is_news(struct df_kube_cache *c, const struct df_kube_item *i, bool noted)
{
    if (noted && c->newest && !df_kube_version_is_older(c->newest, i->version) &&
        !find_write(c, i->name_space, i->name))
        return false;
    return df_kube_objects_is_news(&c->objects, i->name_space, i->name, i->uid, i->version);
}

/* Stores the item if it is newer; sets *ret_changed and the type of *change. */
static int store_item(struct df_kube_cache *c, const struct df_kube_item *item, bool noted,
                      struct df_kube_change *change, bool *ret_changed, struct df_err *err)
{
    lock_cache(c);
    const struct df_kube_object *old =
        df_kube_objects_find(&c->objects, item->name_space, item->name);
    bool was_there = old && !old->is_tombstone;
    change->type = was_there ? DF_KUBE_MODIFIED : DF_KUBE_ADDED;
    change->is_noop = was_there && old->digest == item->digest;
    *ret_changed = is_news(c, item, noted);
    int result = *ret_changed ? df_kube_objects_put(&c->objects, item, err) : 0;
    if (*ret_changed && result == 0)
        draw_sequence(c, change);
    unlock_cache(c);
    return result;
}

static void keys_free(struct df_kube_keys *k)
{
    df_strs_free(&k->words);
}

uint64_t df_kube_content_hash(const cJSON *object)
{
    static const char *const left_out[] = {"annotations", "resourceVersion", DF_KUBE_MANAGED};
    const cJSON *part, *item;
    uint64_t hash = 0;
    cJSON_ArrayForEach (part, object) {
        if (strcmp(part->string, "metadata") != 0)
            hash = df_json_hash(part, hash);
    }
    cJSON_ArrayForEach (item, df_json_at(object, "metadata")) {
        size_t i = 0;
        while (i < DF_ARRAY_SIZE(left_out) && strcmp(item->string, left_out[i]) != 0)
            i++;
        if (i == DF_ARRAY_SIZE(left_out))
            hash = df_json_hash(item, hash);
    }
    return hash;
}

/* Packs hot objects until at most DF_KUBE_MAX_HOT are left. Packing is done without the lock, so
 * that no reader waits for it. If there is no memory for it, the objects stay hot until the next
 * change. */
static void cool_down(struct df_kube_cache *c)
{
    for (;;) {
        DF_CACHED struct df_cached *cold = NULL;
        lock_cache(c);
        struct df_cached *coldest = df_kube_objects_coldest(&c->objects, DF_KUBE_MAX_HOT);
        DF_CACHED struct df_cached *hot = coldest ? df_cached_share(coldest) : NULL;
        unlock_cache(c);
        if (!hot || df_cached_pack(c->packer, hot, &cold, NULL) < 0)
            return;
        lock_cache(c);
        df_kube_objects_cool(&c->objects, hot, cold);
        unlock_cache(c);
    }
}

/* *ret is what the cache keeps of the object, as a tree: what keep() makes of it, or the object
 * itself, which is then taken over. */
static int reduce(const struct df_kube_cache *c, cJSON **object, struct df_cached **ret,
                  struct df_err *err)
{
    if (c->o.keep)
        return df_cached_new(c->o.keep(c->o.arg, *object), ret, err);
    cJSON *metadata = cJSON_GetObjectItemCaseSensitive(*object, "metadata");
    cJSON_DeleteItemFromObjectCaseSensitive(metadata, DF_KUBE_MANAGED);
    return df_cached_new(DF_TAKE(*object), ret, err);
}

/* *ret is another reference, or the packed form of a large object. */
static int pack_if_large(struct df_kube_cache *c, struct df_cached *hot, struct df_cached **ret,
                         struct df_err *err)
{
    if (df_cached_text_len(hot) > DF_KUBE_MAX_TREE)
        return df_cached_pack(c->packer, hot, ret, err);
    *ret = df_cached_share(hot);
    return 0;
}

/* May take the object over. Checks twice whether it is newer, because its keys are made without the
 * lock. */
static int take_object(struct df_kube_cache *c, cJSON **object, bool noted, bool is_local,
                       struct df_err *err)
{
    struct df_kube_item item = item_of(c, *object);
    struct df_kube_change change = {.name_space = item.name_space,
                                    .name = item.name,
                                    .version = item.version,
                                    .is_local = is_local};
    DF_CLEANUP(keys_free) struct df_kube_keys keys = {0};
    DF_CACHED struct df_cached *hot = NULL; /* until the owner was told, whatever the cache does */
    DF_CACHED struct df_cached *kept = NULL;
    bool changed = false;
    lock_cache(c);
    bool news = is_news(c, &item, noted);
    unlock_cache(c);
    if (!news)
        return 0;
    if (reduce(c, object, &hot, err) < 0 || pack_if_large(c, hot, &kept, err) < 0)
        return -1;
    change.object = df_cached_tree(hot);
    if (c->o.keys && c->o.keys(c->o.arg, change.object, &keys, err) < 0)
        return -1;
    item.kept = kept;
    item.words = &keys.words;
    item.order = keys.order;
    item.digest = keys.digest;
    if (store_item(c, &item, noted, &change, &changed, err) < 0)
        return -1;
    if (changed)
        notify_owner(c, &change);
    cool_down(c);
    return 0;
}

/* Removes the object or leaves a tombstone, unless the cached one is newer than this version. */
static void remove_object(struct df_kube_cache *c, const struct df_kube_item *item, bool is_local,
                          bool leave_tombstone)
{
    struct df_kube_change change = {.type = DF_KUBE_DELETED,
                                    .name_space = item->name_space,
                                    .name = item->name,
                                    .version = item->version,
                                    .is_local = is_local};
    lock_cache(c);
    struct df_kube_object *o = df_kube_objects_find(&c->objects, item->name_space, item->name);
    if (o && df_kube_version_is_older(item->version, df_kube_object_version(o)))
        o = NULL;
    bool was_there = o && !o->is_tombstone;
    if (was_there)
        draw_sequence(c, &change);
    if (o && leave_tombstone)
        df_kube_objects_bury(&c->objects, o);
    else if (o)
        df_kube_objects_remove(&c->objects, o);
    unlock_cache(c);
    df_kube_object_free(leave_tombstone ? NULL : o);
    if (was_there)
        notify_owner(c, &change);
}

static void on_failed(void *arg, const struct df_err *err)
{
    struct df_kube_cache *c = arg;
    lock_cache(c);
    c->last = *err;
    unlock_cache(c);
    if (c->o.failed)
        c->o.failed(c->o.arg, err);
}

/* ---- local writes ---------------------------------------------------------------------------- */

int df_kube_cache_note(struct df_kube_cache *c, const cJSON *object, bool is_local,
                       struct df_err *err)
{
    cJSON *copy = cJSON_Duplicate(object, true);
    return copy ? df_kube_cache_note_own(c, copy, is_local, err) : df_fail_oom(err);
}

int df_kube_cache_note_own(struct df_kube_cache *c, cJSON *object, bool is_local,
                           struct df_err *err)
{
    DF_JSON cJSON *own = object;
    return take_object(c, &own, true, is_local, err);
}

void df_kube_cache_note_deleted(struct df_kube_cache *c, const cJSON *object, bool is_local)
{
    const struct df_kube_item item = item_of(c, object);
    remove_object(c, &item, is_local, is_local);
}

void df_kube_cache_begin(struct df_kube_cache *c, struct df_kube_write *w, const char *name_space,
                         const char *name)
{
    *w = (struct df_kube_write){.name_space = key_space(c, name_space), .name = name};
    lock_cache(c);
    while (find_write(c, w->name_space, name))
        (void)pthread_cond_wait(&c->changed, &c->lock);
    w->next = c->writes;
    c->writes = w;
    unlock_cache(c);
}

/* Returns the event that was held back; if there is none, ends the write and returns NULL. */
static cJSON *take_held(struct df_kube_cache *c, struct df_kube_write *w, bool *ret_deleted)
{
    lock_cache(c);
    cJSON *held = DF_TAKE(w->held);
    *ret_deleted = w->held_is_deleted;
    if (!held) {
        struct df_kube_write **at = &c->writes;
        while (*at != w)
            at = &(*at)->next;
        *at = w->next;
        (void)pthread_cond_broadcast(&c->changed);
    }
    unlock_cache(c);
    return held;
}

/* The write ends only when no held event is left, so that a later event cannot overtake one. An
 * event that cannot be processed is recovered by a new list. */
void df_kube_cache_end(struct df_kube_cache *c, struct df_kube_write *w)
{
    bool deleted = false;
    for (cJSON *held; (held = take_held(c, w, &deleted)); cJSON_Delete(held)) {
        struct df_err err = {0};
        const struct df_kube_item item = item_of(c, held);
        if (deleted)
            remove_object(c, &item, false, false);
        else if (take_object(c, &held, false, false, &err) < 0) {
            on_failed(c, &err);
            (void)df_kube_watch_list_anew(c->watch);
        }
    }
}

/* If the object is being written, takes it over, to hold the watch event back, and returns true. */
static bool hold_event(struct df_kube_cache *c, cJSON **object, bool is_deleted)
{
    const struct df_kube_item item = item_of(c, *object);
    DF_JSON cJSON *earlier = NULL;
    lock_cache(c);
    struct df_kube_write *w = find_write(c, item.name_space, item.name);
    if (w) {
        struct df_kube_object *o = df_kube_objects_find(&c->objects, item.name_space, item.name);
        if (o)
            o->generation = c->objects.generation;
        earlier = w->held;
        w->held = DF_TAKE(*object);
        w->held_is_deleted = is_deleted;
    }
    unlock_cache(c);
    return w != NULL;
}

/* ---- events of the watch --------------------------------------------------------------------- */

static int on_begin(void *arg, const char *version, struct df_err *err)
{
    struct df_kube_cache *c = arg;
    lock_cache(c);
    int result = df_str_set(&c->listed, version, err);
    if (result == 0)
        df_kube_objects_begin(&c->objects);
    unlock_cache(c);
    return result;
}

static int raise_newest(struct df_kube_cache *c, const char *version, struct df_err *err)
{
    lock_cache(c);
    int result = 0;
    if (version && !df_kube_version_is_older(version, c->newest))
        result = df_str_set(&c->newest, version, err);
    unlock_cache(c);
    return result;
}

static void on_remove(void *arg, cJSON **object)
{
    struct df_kube_cache *c = arg;
    const struct df_kube_item item = item_of(c, *object);
    /* If this fails for lack of memory, a late answer to a request may show the object until the
     * next list. */
    (void)raise_newest(c, item.version, NULL);
    if (!hold_event(c, object, true))
        remove_object(c, &item, false, false);
}

static int on_apply(void *arg, cJSON **object, struct df_err *err)
{
    struct df_kube_cache *c = arg;
    if (c->o.wants && !c->o.wants(c->o.arg, *object)) {
        on_remove(c, object);
        return 0;
    }
    if (raise_newest(c, df_kube_version(*object), err) < 0)
        return -1;
    return hold_event(c, object, false) ? 0 : take_object(c, object, false, false, err);
}

/* Removes and returns the next object that was not in the list, unless it is newer than the list or
 * is being written (then the writer notices). The caller frees it; NULL: no more. */
static struct df_kube_object *sweep_one(struct df_kube_cache *c, size_t *bucket,
                                        struct df_kube_change *change)
{
    struct df_kube_object *o;
    lock_cache(c);
    while ((o = df_kube_objects_unlisted(&c->objects, bucket)) &&
           (df_kube_version_is_older(c->listed, df_kube_object_version(o)) ||
            find_write(c, df_kube_object_space(o), o->name)))
        o->generation = c->objects.generation;
    if (o)
        df_kube_objects_remove(&c->objects, o);
    if (o && !o->is_tombstone)
        draw_sequence(c, change);
    unlock_cache(c);
    return o;
}

static void on_listed(void *arg)
{
    struct df_kube_cache *c = arg;
    struct df_kube_change change = {.type = DF_KUBE_DELETED, .version = c->listed};
    struct df_kube_object *o;
    (void)raise_newest(c, c->listed, NULL);
    for (size_t bucket = 0; (o = sweep_one(c, &bucket, &change)); df_kube_object_free(o)) {
        change.name_space = df_kube_object_space(o);
        change.name = o->name;
        if (!o->is_tombstone)
            notify_owner(c, &change);
    }
    lock_cache(c);
    c->synced = true;
    (void)pthread_cond_broadcast(&c->changed);
    unlock_cache(c);
}

/* ---- start and stop ------------------------------------------------------------------------- */

static void cache_free(struct df_kube_cache *c)
{
    df_kube_objects_free(&c->objects);
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
    df_cond_init(&c->changed);
    (void)pthread_mutex_init(&c->lock, NULL);
    c->o = *o;
    struct df_kube_watch_options w = o->watch;
    w.resource = o->resource;
    w.name_space = o->name_space;
    w.select = o->select;
    w.to = (struct df_kube_watcher){on_begin, on_apply, on_remove, on_listed, on_failed, c};
    *ret = c; /* set before the watch's thread starts, which may use it at once */
    if (df_kube_objects_init(&c->objects, err) < 0 || df_packer_new(&c->packer, err) < 0 ||
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

/* Waits at most STOP_POLL_MS, under the lock. */
static void wait_briefly(struct df_kube_cache *c)
{
    const struct timespec until = df_mono_after_us((int64_t)STOP_POLL_MS * 1000);
    (void)pthread_cond_timedwait(&c->changed, &c->lock, &until);
}

int df_kube_cache_wait(struct df_kube_cache *c, int64_t timeout_ms, const volatile bool *stop,
                       struct df_err *err)
{
    int64_t deadline = df_mono_ms() + timeout_ms;
    lock_cache(c);
    while (!c->synced && !df_stopped(stop) && (timeout_ms < 0 || df_mono_ms() < deadline))
        wait_briefly(c);
    bool synced = c->synced;
    struct df_err last = c->last;
    unlock_cache(c);
    if (synced)
        return 0;
    return df_fail_reason(err, DF_ERR_RETRY, "NotListedYet", "the list of %s is not there yet%s%s",
                          c->o.resource->plural, last.message[0] ? ": " : "", last.message);
}

uint64_t df_kube_cache_list_anew(struct df_kube_cache *c)
{
    return df_kube_watch_list_anew(c->watch);
}

int df_kube_cache_await(struct df_kube_cache *c, uint64_t ticket, const volatile bool *stop,
                        struct df_err *err)
{
    return df_kube_watch_await(c->watch, ticket, stop, err);
}

/* Returns a reference to what is kept of the object, and releases the lock. NULL: there is none. */
static struct df_cached *use_and_unlock(struct df_kube_cache *c, struct df_kube_object *o)
{
    struct df_cached *kept = NULL;
    if (o && !o->is_tombstone) {
        kept = df_cached_share(o->kept);
        df_kube_objects_use(&c->objects, o);
    }
    unlock_cache(c);
    return kept;
}

static struct df_cached *use_by_name(struct df_kube_cache *c, const char *name_space,
                                     const char *name)
{
    lock_cache(c);
    return use_and_unlock(c, df_kube_objects_find(&c->objects, key_space(c, name_space), name));
}

int df_kube_cache_find(struct df_kube_cache *c, const char *name_space, const char *name,
                       const cJSON **ret, struct df_err *err)
{
    DF_CACHED struct df_cached *kept = use_by_name(c, name_space, name);
    *ret = NULL;
    return kept ? df_cached_read(c->packer, kept, ret, err) : 0;
}

static int show(struct df_kube_cache *c, struct df_cached *kept, const cJSON **ret,
                struct df_err *err)
{
    *ret = NULL;
    return kept ? df_cached_read_shown(c->packer, kept, c->o.show, c->o.arg, ret, err) : 0;
}

int df_kube_cache_show(struct df_kube_cache *c, const char *name_space, const char *name,
                       const cJSON **ret, struct df_err *err)
{
    DF_CACHED struct df_cached *kept = use_by_name(c, name_space, name);
    return show(c, kept, ret, err);
}

int df_kube_cache_show_by(struct df_kube_cache *c, const char *word, const cJSON **ret,
                          struct df_err *err)
{
    lock_cache(c);
    DF_CACHED struct df_cached *kept = use_and_unlock(c, df_kube_objects_first(&c->objects, word));
    return show(c, kept, ret, err);
}

/* What the objects of a page keep, as of one moment. */
struct page {
    struct df_cached **kept; /* a reference each */
    size_t len;
    int64_t last; /* the order of the last one; 0: no more follow */
};

static void page_free(struct page *p)
{
    while (p->len)
        df_cached_drop(p->kept[--p->len]);
    free(p->kept);
}
#define PAGE DF_CLEANUP(page_free)

/* Fills a page within the limits of df_kube_cache_list(). */
static int cut_page(struct df_kube_object *const *found, size_t count, size_t objects, size_t bytes,
                    struct page *ret, struct df_err *err)
{
    size_t sum = 0, most = count < objects ? count : objects;
    ret->kept = calloc(most ? most : 1, sizeof(struct df_cached *));
    if (!ret->kept)
        return df_fail_oom(err);
    for (size_t i = 0; i < count; i++) {
        sum += df_cached_text_len(found[i]->kept);
        if (i == objects || (i > 0 && sum > bytes)) {
            ret->last = found[i - 1]->order;
            break;
        }
        ret->kept[ret->len++] = df_cached_share(found[i]->kept);
    }
    return 0;
}

static int read_page(struct df_kube_cache *c, const struct df_kube_query *q, size_t objects,
                     size_t bytes, struct page *ret, struct df_err *err)
{
    DF_FREE struct df_kube_object **found = NULL;
    size_t count = 0;
    lock_cache(c);
    int result = df_kube_objects_select(&c->objects, q, &found, &count, err);
    if (result == 0)
        result = cut_page(found, count, objects, bytes, ret, err);
    unlock_cache(c);
    return result;
}

int df_kube_cache_list(struct df_kube_cache *c, const struct df_kube_query *q, size_t objects,
                       size_t bytes, cJSON **ret, int64_t *ret_last, struct df_err *err)
{
    PAGE struct page page = {0};
    DF_JSON cJSON *list = cJSON_CreateArray();
    if (df_check_alloc(list, err) < 0 || read_page(c, q, objects, bytes, &page, err) < 0)
        return -1;
    for (size_t i = 0; i < page.len; i++) {
        cJSON *copy = NULL;
        if (df_cached_copy(c->packer, page.kept[i], &copy, err) < 0 ||
            df_json_append(list, copy, err) < 0)
            return -1;
    }
    *ret = DF_TAKE(list);
    *ret_last = page.last;
    return 0;
}

static int visit(struct df_kube_cache *c, const struct df_cached *kept,
                 int (*each)(void *arg, const cJSON *kept, struct df_err *err), void *arg,
                 struct df_err *err)
{
    DF_SHARED const cJSON *tree = NULL;
    return df_cached_read(c->packer, kept, &tree, err) < 0 ? -1 : each(arg, tree, err);
}

int df_kube_cache_each(struct df_kube_cache *c, const char *word,
                       int (*each)(void *arg, const cJSON *kept, struct df_err *err), void *arg,
                       struct df_err *err)
{
    const struct df_kube_query q = {.word = word};
    PAGE struct page page = {0};
    if (read_page(c, &q, SIZE_MAX, SIZE_MAX, &page, err) < 0)
        return -1;
    for (size_t i = 0; i < page.len; i++)
        if (visit(c, page.kept[i], each, arg, err) < 0)
            return -1;
    return 0;
}

size_t df_kube_cache_count(struct df_kube_cache *c, const char *word)
{
    lock_cache(c);
    size_t n = word ? df_kube_objects_count(&c->objects, word) : c->objects.count;
    unlock_cache(c);
    return n;
}

int df_kube_cache_names(struct df_kube_cache *c, const char *word, struct df_strs *to,
                        struct df_err *err)
{
    lock_cache(c);
    df_kube_objects_names(&c->objects, word, to);
    unlock_cache(c);
    return df_strs_check(to, err);
}
