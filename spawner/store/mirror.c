#include "spawner/store/mirror.h"

#include <time.h>

#include "common/base/clock.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/kube/watch.h"
#include "spawner/store/documents.h"
#include "spawner/store/homes.h"
#include "spawner/store/wire.h"

/* One kind of documents. */
struct face {
    struct df_mirror *mirror;
    enum df_kind kind;
    struct df_kube_resource resource;
    struct df_packer *packer;
    struct df_documents documents; /* guarded by the mirror's lock, as all below */
    char *listed;                  /* the resourceVersion of the list that comes, or came last */
    bool synced;
    struct df_err last; /* what failed last */
    struct df_kube_watch *watch;
};

struct df_mirror {
    struct df_watchers *watchers;
    struct face faces[DF_KIND_COUNT];
    pthread_mutex_t lock;
    pthread_cond_t changed; /* synced, a write is over */
    struct df_mirror_write *writes;
};

static void lock(struct df_mirror *m)
{
    (void)pthread_mutex_lock(&m->lock);
}

static void unlock(struct df_mirror *m)
{
    (void)pthread_mutex_unlock(&m->lock);
}

const struct df_kube_resource *df_mirror_resource(const struct df_mirror *m, enum df_kind kind)
{
    return &m->faces[kind].resource;
}

static const char *text_of(const char *s)
{
    return s ? s : "";
}

/* ---- taking --------------------------------------------------------------------------------- */

/* Would it change anything? Under the lock; marks what is there. */
static bool is_news(struct face *f, const char *name, const char *uid, const char *version)
{
    struct df_document *doc = df_documents_find(&f->documents, name);
    if (!doc)
        return true;
    doc->mark = f->documents.mark;
    if (df_streq(doc->version, version) || df_kube_version_is_older(version, doc->version))
        return false;
    return !doc->gone || strcmp(doc->uid, uid) != 0;
}

/* A digest of what the control loop goes by. Others may annotate a document as often as they like.
 */
static uint64_t sense_of(const cJSON *wire)
{
    const cJSON *part, *item;
    uint64_t sense = 0;
    cJSON_ArrayForEach (part, wire) {
        if (strcmp(part->string, "metadata") != 0)
            sense = df_json_hash(part, sense);
    }
    cJSON_ArrayForEach (item, df_json_at(wire, "metadata")) {
        if (strcmp(item->string, "annotations") != 0 &&
            strcmp(item->string, "resourceVersion") != 0)
            sense = df_json_hash(item, sense);
    }
    return sense;
}

/* What putting a document came to. */
struct news {
    bool changed;
    bool is_idle;
    enum df_change change;
    uint64_t ticket;
};

/* Puts it if it is news, and says what that means to watchers. */
static int put(struct face *f, const struct df_document_item *item, struct news *ret,
               struct df_err *err)
{
    lock(f->mirror);
    const struct df_document *old = df_documents_find(&f->documents, item->name);
    bool was_there = old && !old->gone;
    *ret = (struct news){.changed = is_news(f, item->name, item->uid, item->version),
                         .is_idle = was_there && old->sense == item->sense,
                         .change = was_there ? DF_CHANGE_MODIFIED : DF_CHANGE_ADDED};
    int result = ret->changed ? df_documents_put(&f->documents, item, err) : 0;
    ret->changed &= f->synced; /* what was there before us is no change */
    if (result == 0 && ret->changed)
        ret->ticket = df_watchers_ticket(f->mirror->watchers);
    unlock(f->mirror);
    return result;
}

static void tell(struct face *f, const struct news *n, const struct df_document_item *item,
                 bool own)
{
    df_watchers_tell(f->mirror->watchers, n->ticket,
                     &(struct df_store_event){.change = n->change,
                                              .kind = f->kind,
                                              .name = item->name,
                                              .resource_version = item->version,
                                              .is_foreign = !own,
                                              .is_idle = n->is_idle});
}

static int take(struct face *f, const cJSON *wire, bool own, struct df_err *err)
{
    struct df_document_item item = {.name = text_of(df_kube_name(wire)),
                                    .uid = text_of(df_kube_uid(wire)),
                                    .version = text_of(df_kube_version(wire))};
    DF_STRS struct df_strs labels = {0};
    DF_PACKED struct df_packed text = {0};
    struct news news;
    lock(f->mirror);
    bool is_new = is_news(f, item.name, item.uid, item.version);
    unlock(f->mirror);
    if (!is_new)
        return 0;
    if (df_pack(f->packer, wire, &text, err) < 0 || df_wire_labels(wire, &labels, err) < 0)
        return -1;
    item.text = &text;
    item.sense = sense_of(wire);
    item.labels = &labels;
    item.order = df_wire_order(wire);
    if (put(f, &item, &news, err) < 0)
        return -1;
    if (news.changed)
        tell(f, &news, &item, own);
    return 0;
}

int df_mirror_note(struct df_mirror *m, enum df_kind kind, const cJSON *wire, bool own,
                   struct df_err *err)
{
    return take(&m->faces[kind], wire, own, err);
}

/* Takes it out, or (own) hides it until the watch tells of its end, too. */
static void let_go(struct face *f, const char *name, const char *uid, const char *version, bool own)
{
    uint64_t ticket = 0;
    lock(f->mirror);
    struct df_document *doc = df_documents_find(&f->documents, name);
    bool found = doc && strcmp(doc->uid, uid) == 0, told = found && doc->gone;
    if (found && !told)
        ticket = df_watchers_ticket(f->mirror->watchers);
    if (found && !own)
        df_documents_drop(&f->documents, doc);
    else if (found)
        df_documents_hide(&f->documents, doc);
    unlock(f->mirror);
    if (found && !told)
        df_watchers_tell(f->mirror->watchers, ticket,
                         &(struct df_store_event){.change = DF_CHANGE_DELETED,
                                                  .kind = f->kind,
                                                  .name = name,
                                                  .resource_version = version,
                                                  .is_foreign = !own});
}

void df_mirror_note_gone(struct df_mirror *m, enum df_kind kind, const cJSON *wire, bool own)
{
    let_go(&m->faces[kind], text_of(df_kube_name(wire)), text_of(df_kube_uid(wire)),
           text_of(df_kube_version(wire)), own);
}

/* ---- writers -------------------------------------------------------------------------------- */

/* Under the lock. */
static struct df_mirror_write *find_write(struct df_mirror *m, enum df_kind kind, const char *name)
{
    struct df_mirror_write *w = m->writes;
    while (w && (w->kind != kind || strcmp(w->name, name) != 0))
        w = w->next;
    return w;
}

void df_mirror_begin(struct df_mirror *m, struct df_mirror_write *w, enum df_kind kind,
                     const char *name)
{
    lock(m);
    while (find_write(m, kind, name))
        (void)pthread_cond_wait(&m->changed, &m->lock);
    *w = (struct df_mirror_write){.kind = kind, .name = name, .next = m->writes};
    m->writes = w;
    unlock(m);
}

/* What was put aside, if anything; else the write is over. */
static cJSON *take_held(struct df_mirror *m, struct df_mirror_write *w, bool *ret_gone)
{
    lock(m);
    cJSON *held = DF_TAKE(w->held);
    *ret_gone = w->held_gone;
    if (!held) {
        struct df_mirror_write **at = &m->writes;
        while (*at != w)
            at = &(*at)->next;
        *at = w->next;
        (void)pthread_cond_broadcast(&m->changed);
    }
    unlock(m);
    return held;
}

/* The write is over only when nothing is held any more: what comes meanwhile must not overtake. */
void df_mirror_end(struct df_mirror *m, struct df_mirror_write *w)
{
    bool gone = false;
    for (cJSON *held; (held = take_held(m, w, &gone)); cJSON_Delete(held)) {
        struct df_err err = {0};
        if (gone)
            df_mirror_note_gone(m, w->kind, held, false);
        else if (df_mirror_note(m, w->kind, held, false, &err) < 0)
            df_error("%s %s: %s", df_kind_name(w->kind), w->name, err.message);
    }
}

/* Puts what the watch tells aside while somebody writes the document: false when nobody does. */
static bool hold(struct face *f, const cJSON *wire, bool gone, struct df_err *err, int *ret)
{
    const char *name = text_of(df_kube_name(wire));
    *ret = 0;
    lock(f->mirror);
    struct df_mirror_write *w = find_write(f->mirror, f->kind, name);
    if (w) {
        struct df_document *doc = df_documents_find(&f->documents, name);
        cJSON *copy = cJSON_Duplicate(wire, true);
        if (doc)
            doc->mark = f->documents.mark;
        if (copy) {
            cJSON_Delete(w->held);
            w->held = copy;
            w->held_gone = gone;
        }
        *ret = copy ? 0 : df_fail_oom(err);
    }
    unlock(f->mirror);
    return w != NULL;
}

/* ---- what the watch tells ------------------------------------------------------------------- */

static int on_begin(void *arg, const char *version, struct df_err *err)
{
    struct face *f = arg;
    lock(f->mirror);
    int result = df_str_set(&f->listed, version, err);
    if (result == 0)
        df_documents_begin(&f->documents);
    unlock(f->mirror);
    return result;
}

static int on_apply(void *arg, const cJSON *wire, struct df_err *err)
{
    struct face *f = arg;
    int result = 0;
    return hold(f, wire, false, err, &result) ? result : take(f, wire, false, err);
}

static void on_remove(void *arg, const cJSON *wire)
{
    struct face *f = arg;
    int result = 0;
    /* No memory to hold it: it goes now, and the writer finds out. */
    if (!hold(f, wire, true, NULL, &result) || result < 0)
        df_mirror_note_gone(f->mirror, f->kind, wire, false);
}

/* What the list did not tell of is gone, unless it is newer than the list. The watch's thread alone
 * writes `listed`. */
static bool sweep_one(struct face *f)
{
    DF_FREE char *name = NULL;
    DF_FREE char *uid = NULL;
    lock(f->mirror);
    struct df_document *doc = df_documents_next_unmarked(&f->documents);
    bool is_newer = doc && df_kube_version_is_older(f->listed, doc->version);
    bool is_written = doc && find_write(f->mirror, f->kind, doc->name);
    if (doc && !is_newer && !is_written) {
        name = strdup(doc->name);
        uid = strdup(doc->uid);
    }
    if (doc)
        doc->mark = f->documents.mark;
    unlock(f->mirror);
    if (name && uid)
        let_go(f, name, uid, f->listed, false);
    return doc != NULL;
}

static void on_listed(void *arg)
{
    struct face *f = arg;
    while (sweep_one(f))
        continue;
    lock(f->mirror);
    f->synced = true;
    (void)pthread_cond_broadcast(&f->mirror->changed);
    unlock(f->mirror);
}

static void on_failed(void *arg, const struct df_err *err)
{
    struct face *f = arg;
    lock(f->mirror);
    f->last = *err;
    unlock(f->mirror);
    df_warn("%s", err->message);
}

/* ---- start and stop ------------------------------------------------------------------------- */

static void init_lock(struct df_mirror *m)
{
    pthread_condattr_t attr;
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&m->changed, &attr);
    (void)pthread_condattr_destroy(&attr);
    (void)pthread_mutex_init(&m->lock, NULL);
}

static int start_face(struct df_kube *k, struct face *f, const char *name_space, struct df_err *err)
{
    const struct df_kube_watch_options o = {
        .resource = &f->resource,
        .name_space = name_space,
        .to = {on_begin, on_apply, on_remove, on_listed, on_failed, f}};
    if (df_packer_new(&f->packer, err) < 0 || df_documents_init(&f->documents, err) < 0)
        return -1;
    return df_kube_watch_start(k, &o, &f->watch, err);
}

int df_mirror_start(struct df_kube *k, const char *group, const char *name_space,
                    struct df_watchers *watchers, struct df_mirror **ret, struct df_err *err)
{
    struct df_mirror *m = calloc(1, sizeof(*m));
    if (!m)
        return df_fail_oom(err);
    m->watchers = watchers;
    init_lock(m);
    for (int i = 0; i < DF_KIND_COUNT; i++) {
        struct face *f = &m->faces[i];
        f->mirror = m;
        f->kind = (enum df_kind)i;
        f->resource = (struct df_kube_resource){group, "v1alpha1", df_kind_plural(f->kind)};
    }
    for (int i = 0; i < DF_KIND_COUNT; i++) {
        if (start_face(k, &m->faces[i], name_space, err) < 0) {
            df_mirror_stop(m);
            return -1;
        }
    }
    *ret = m;
    return 0;
}

void df_mirror_stop(struct df_mirror *m)
{
    if (!m)
        return;
    for (int i = 0; i < DF_KIND_COUNT; i++)
        df_kube_watch_stop(m->faces[i].watch);
    for (int i = 0; i < DF_KIND_COUNT; i++) {
        df_documents_free(&m->faces[i].documents);
        df_packer_free(m->faces[i].packer);
        free(m->faces[i].listed);
    }
    (void)pthread_cond_destroy(&m->changed);
    (void)pthread_mutex_destroy(&m->lock);
    free(m);
}

/* The first kind that is not listed yet; NULL: all are. Under the lock. */
static const struct face *lagging(const struct df_mirror *m)
{
    for (int i = 0; i < DF_KIND_COUNT; i++)
        if (!m->faces[i].synced)
            return &m->faces[i];
    return NULL;
}

int df_mirror_wait(struct df_mirror *m, int64_t timeout_ms, struct df_err *err)
{
    const struct timespec until = df_mono_after_us(timeout_ms * 1000);
    int rc = 0;
    lock(m);
    while (lagging(m) && rc == 0)
        rc = pthread_cond_timedwait(&m->changed, &m->lock, &until);
    const struct face *f = lagging(m);
    struct df_err last = f ? f->last : (struct df_err){0};
    unlock(m);
    if (!f)
        return 0;
    return df_fail_reason(err, DF_ERR_RETRY, "NotListedYet", "the list of %s is not there%s%s",
                          f->resource.plural, last.message[0] ? ": " : "", last.message);
}

int df_mirror_catch_up(struct df_mirror *m, const volatile bool *stop, struct df_err *err)
{
    uint64_t tickets[DF_KIND_COUNT];
    for (int i = 0; i < DF_KIND_COUNT; i++)
        tickets[i] = df_kube_watch_list_anew(m->faces[i].watch);
    for (int i = 0; i < DF_KIND_COUNT; i++)
        if (df_kube_watch_await(m->faces[i].watch, tickets[i], stop, err) < 0)
            return -1;
    return 0;
}

/* ---- reading -------------------------------------------------------------------------------- */

/* The document that find() finds by its key. */
static int get_by(struct df_mirror *m, enum df_kind kind, const char *key,
                  struct df_document *(*find)(const struct df_documents *d, const char *key),
                  cJSON **ret, struct df_err *err)
{
    DF_PACKED struct df_packed text = {0};
    lock(m);
    const struct df_document *doc = find(&m->faces[kind].documents, key);
    bool found = doc && !doc->gone;
    int result = found ? df_packed_copy(&doc->text, &text, err) : 0;
    unlock(m);
    if (!found)
        return df_home_fail_absent(kind, key, err);
    return result < 0 ? -1 : df_unpack(m->faces[kind].packer, &text, ret, err);
}

int df_mirror_get(struct df_mirror *m, enum df_kind kind, const char *name, cJSON **ret,
                  struct df_err *err)
{
    return get_by(m, kind, name, df_documents_find, ret, err);
}

int df_mirror_get_by_uid(struct df_mirror *m, enum df_kind kind, const char *uid, cJSON **ret,
                         struct df_err *err)
{
    return get_by(m, kind, uid, df_documents_find_uid, ret, err);
}

int64_t df_mirror_count(struct df_mirror *m, enum df_kind kind, const char *label)
{
    lock(m);
    size_t n = df_documents_count(&m->faces[kind].documents, label);
    unlock(m);
    return (int64_t)n;
}

int df_mirror_names(struct df_mirror *m, enum df_kind kind, const char *label, struct df_strs *to,
                    struct df_err *err)
{
    lock(m);
    df_documents_names(&m->faces[kind].documents, label, to);
    unlock(m);
    return df_strs_check(to, err);
}

struct page {
    struct df_packed_list texts;
    int64_t last; /* the order of its last one; 0: nothing comes behind it */
};

static void free_page(struct page *p)
{
    df_packed_list_free(&p->texts);
}

static int cut_page(struct df_document *const *found, size_t count, int limit, struct page *ret,
                    struct df_err *err)
{
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        bytes += found[i]->text.text_len;
        if (i == (size_t)limit || (i > 0 && bytes > DF_LIMIT_PAGE)) {
            ret->last = found[i - 1]->order;
            break;
        }
        if (df_packed_list_add(&ret->texts, &found[i]->text, err) < 0)
            return -1;
    }
    return 0;
}

static int read_page(struct df_mirror *m, enum df_kind kind, const struct df_documents_query *q,
                     int limit, struct page *ret, struct df_err *err)
{
    DF_FREE struct df_document **found = NULL;
    size_t count = 0;
    lock(m);
    int result = df_documents_select(&m->faces[kind].documents, q, &found, &count, err);
    if (result == 0)
        result = cut_page(found, count, limit, ret, err);
    unlock(m);
    return result;
}

static int parse_page(struct df_packer *packer, const struct df_packed_list *texts, cJSON **ret,
                      struct df_err *err)
{
    DF_JSON cJSON *page = cJSON_CreateArray();
    if (!page)
        return df_fail_oom(err);
    for (size_t i = 0; i < texts->len; i++) {
        cJSON *wire = NULL;
        if (df_unpack(packer, &texts->items[i], &wire, err) < 0 ||
            df_json_append(page, wire, err) < 0)
            return -1;
    }
    *ret = DF_TAKE(page);
    return 0;
}

int df_mirror_list(struct df_mirror *m, enum df_kind kind, const struct df_store_list_options *o,
                   cJSON **ret, char **ret_cursor, struct df_err *err)
{
    struct df_documents_query q = {.label = o->label,
                                   .prefix = o->name_prefix ? o->name_prefix : "",
                                   .newest_first = o->newest_first};
    DF_CLEANUP(free_page) struct page texts = {0};
    DF_JSON cJSON *page = NULL;
    int limit = 0;
    if (df_page_start(o->cursor, o->newest_first, &q.after, err) < 0 ||
        df_page_limit(o->limit, &limit, err) < 0 ||
        read_page(m, kind, &q, limit, &texts, err) < 0 ||
        parse_page(m->faces[kind].packer, &texts.texts, &page, err) < 0 ||
        df_page_cursor(texts.last, ret_cursor, err) < 0)
        return -1;
    *ret = DF_TAKE(page);
    return 0;
}
