/*
 * The Kubernetes backend of the document store. Reads are answered by the watch caches
 * (informer.h); a write is sent to the API server and its answer is put into the cache. codec.h
 * defines the form of a resource.
 *
 * Creating a document takes two requests, because the API server drops the status of a new
 * resource: one for the resource, one for its status. If the service crashes in between, the create
 * was never acknowledged. The resource without status looks like one applied with kubectl, and the
 * control loop accepts or removes it.
 */
#include "common/base/limits.h"
#include "spawner/store/documents/audit.h"
#include "spawner/store/documents/backend.h"
#include "spawner/store/documents/codec.h"
#include "spawner/store/documents/informer.h"

#define LIST_WITHIN_MS 30000
#define STATUS_ATTEMPTS 4

struct kube_store {
    struct df_store base;
    struct df_kube *kube; /* borrowed */
    char *group, *api_version;
    char *name_space;
    struct df_watchers watchers;
    struct df_informer *informer;
    struct df_audit *audit;
};

static struct kube_store *self(struct df_store *s)
{
    return (struct kube_store *)s;
}

static struct df_kube_at document_at(const struct kube_store *s, enum df_kind kind,
                                     const char *name, const char *subresource)
{
    return (struct df_kube_at){df_informer_resource(s->informer, kind), s->name_space, name,
                               subresource, NULL};
}

static struct df_kube_cache *kind_cache(const struct kube_store *s, enum df_kind kind)
{
    return df_informer_cache(s->informer, kind);
}

/* ---- reading -------------------------------------------------------------------------------- */

static int there_or_absent(enum df_kind kind, const char *key, const cJSON *found,
                           struct df_err *err)
{
    return found ? 0 : df_store_fail_absent(kind, key, err);
}

static int look(struct df_store *store, enum df_kind kind, const char *name, const cJSON **ret,
                struct df_err *err)
{
    if (df_kube_cache_show(kind_cache(self(store), kind), NULL, name, ret, err) < 0)
        return -1;
    return there_or_absent(kind, name, *ret, err);
}

static int look_by_uid(struct df_store *store, enum df_kind kind, const char *uid,
                       const cJSON **ret, struct df_err *err)
{
    if (df_kube_cache_show_by(kind_cache(self(store), kind), uid, ret, err) < 0)
        return -1;
    return there_or_absent(kind, uid, *ret, err);
}

static int list(struct df_store *store, enum df_kind kind, const struct df_store_list_options *o,
                cJSON **ret, char **ret_cursor, struct df_err *err)
{
    static const struct df_store_list_options everything = {0};
    o = o ? o : &everything;
    struct df_kube_query q = {
        .word = o->label, .prefix = o->name_prefix, .newest_first = o->newest_first};
    DF_JSON cJSON *page = NULL;
    cJSON *wire;
    int64_t last = 0;
    int limit = 0;
    if (df_page_start(o->cursor, o->newest_first, &q.after, err) < 0 ||
        df_page_limit(o->limit, &limit, err) < 0 ||
        df_kube_cache_list(kind_cache(self(store), kind), &q, (size_t)limit, DF_LIMIT_PAGE, &page,
                           &last, err) < 0)
        return -1;
    cJSON_ArrayForEach (wire, page) {
        if (df_codec_to_document(kind, wire, err) < 0)
            return -1;
    }
    if (df_page_cursor(last, ret_cursor, err) < 0)
        return -1;
    *ret = DF_TAKE(page);
    return 0;
}

static int count(struct df_store *store, enum df_kind kind, const char *label, int64_t *ret,
                 struct df_err *err)
{
    (void)err;
    *ret = (int64_t)df_kube_cache_count(kind_cache(self(store), kind), label);
    return 0;
}

static int names(struct df_store *store, enum df_kind kind, const char *label, struct df_strs *to,
                 struct df_err *err)
{
    return df_kube_cache_names(kind_cache(self(store), kind), label, to, err);
}

/* ---- writing -------------------------------------------------------------------------------- */

/* One write, from begin_write() to end_write(). */
struct write {
    struct kube_store *s;
    enum df_kind kind;
    const char *name;
    const cJSON *known; /* as the cache has it, shared; NULL: it was not there */
    cJSON *answer;      /* the latest; NULL: none yet; owned */
    struct df_kube_write held;
};

/* The resource as it is now, as far as this writer knows. */
static const cJSON *current(const struct write *w)
{
    return w->answer ? w->answer : w->known;
}

static struct df_kube_cache *cache_of(const struct write *w)
{
    return kind_cache(w->s, w->kind);
}

/* Finds the resource in the cache; *ret is NULL if it does not exist. */
static int find_cached(const struct write *w, const cJSON **ret, struct df_err *err)
{
    return df_kube_cache_find(cache_of(w), NULL, w->name, ret, err);
}

static void begin_write(struct write *w)
{
    df_kube_cache_begin(cache_of(w), &w->held, NULL, w->name);
}

static void end_write(struct write *w)
{
    df_kube_cache_end(cache_of(w), &w->held);
    df_shared_drop(w->known);
    cJSON_Delete(w->answer);
}

/* Another writer was faster and the watch has not reported it yet. Reads the resource into the
 * cache, so that the caller's next read returns it. */
static void refresh_cached(struct write *w)
{
    const struct df_kube_at where = document_at(w->s, w->kind, w->name, NULL);
    DF_SHARED const cJSON *known = NULL;
    cJSON *now = NULL;
    struct df_err why = {0};
    if (df_kube_get(w->s->kube, &where, &now, &why) == 0) {
        (void)df_kube_cache_note_own(cache_of(w), now, false, NULL);
    } else if (why.cls == DF_ERR_NOT_FOUND && find_cached(w, &known, NULL) == 0 && known) {
        df_kube_cache_note_deleted(cache_of(w), known, false);
    }
}

/* The documents are valid here: what the API server does not decode, an older definition lacks. */
static int fail_definition(const struct write *w, const struct df_err *why, struct df_err *err)
{
    return df_fail_reason(err, why->cls, why->reason,
                          "the cluster's definition of %s does not have a field of %s, because it "
                          "is older than version " DF_VERSION ": `dayfly doctor` names the fields, "
                          "and `make install` or the chart renews the definition",
                          df_kind_plural(w->kind), w->name);
}

/* Translates an error of the API server into one of store.h. */
static int translate_error(struct write *w, const struct df_err *why, struct df_err *err)
{
    bool exists = df_streq(why->reason, "AlreadyExists");
    if (why->cls == DF_ERR_CONFLICT || why->cls == DF_ERR_NOT_FOUND)
        refresh_cached(w);
    if (exists)
        return df_backend_fail_exists(w->kind, w->name, err);
    if (why->cls == DF_ERR_CONFLICT)
        return df_backend_fail_conflict(w->kind, w->name, err);
    if (why->cls == DF_ERR_NOT_FOUND)
        return df_store_fail_absent(w->kind, w->name, err);
    if (strstr(why->message, "strict decoding"))
        return fail_definition(w, why, err);
    return df_err_pass(err, why);
}

static void take_answer(struct write *w, cJSON *answer)
{
    cJSON_Delete(w->answer);
    w->answer = answer;
}

static int put_resource(struct write *w, const cJSON *body, const char *subresource,
                        struct df_err *err)
{
    const struct df_kube_at where = document_at(w->s, w->kind, w->name, subresource);
    cJSON *answer = NULL;
    struct df_err why = {0};
    if (df_kube_update(w->s->kube, &where, body, &answer, &why) < 0)
        return translate_error(w, &why, err);
    take_answer(w, answer);
    return 0;
}

/* Puts the answer into the cache, as our own write or as somebody else's. */
static int note_answer(struct write *w, bool is_local, struct df_err *err)
{
    return df_kube_cache_note_own(cache_of(w), DF_TAKE(w->answer), is_local, err);
}

/* Publishes the result as a local write and returns it (ret may be NULL). */
static int finish_write(struct write *w, cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *document = ret ? cJSON_Duplicate(current(w), true) : NULL;
    if (ret && !document)
        return df_fail_oom(err);
    if ((w->answer && note_answer(w, true, err) < 0) ||
        (ret && df_codec_to_document(w->kind, document, err) < 0))
        return -1;
    if (ret)
        *ret = DF_TAKE(document);
    return 0;
}

static int check_content(const struct write *w, const cJSON *doc, struct df_err *err)
{
    DF_FREE char *text = NULL; /* printed only to check its length */
    return df_codec_check_numbers(doc, err) < 0
               ? -1
               : df_backend_print(w->kind, w->name, doc, &text, err);
}

/* ---- create --------------------------------------------------------------------------------- */

static int post_resource(struct write *w, const cJSON *doc, struct df_err *err)
{
    const struct df_kube_at where = document_at(w->s, w->kind, w->name, NULL);
    DF_JSON cJSON *body = NULL;
    cJSON *answer = NULL;
    struct df_err why = {0};
    if (df_codec_new(w->kind, w->s->api_version, doc, w->s->name_space, &body, err) < 0)
        return -1;
    if (df_kube_create(w->s->kube, &where, body, &answer, &why) < 0)
        return translate_error(w, &why, err);
    take_answer(w, answer);
    return 0;
}

/* Writes the status of a new resource. A conflict is retried if somebody else (a controller, say)
 * has changed the resource but not replaced it. */
static int write_status(struct write *w, const cJSON *doc, struct df_err *err)
{
    const struct df_kube_at where = document_at(w->s, w->kind, w->name, NULL);
    for (int i = 0; i < STATUS_ATTEMPTS; i++) {
        DF_JSON cJSON *body = NULL;
        struct df_err why = {0};
        cJSON *now = NULL;
        if (df_codec_status(w->kind, w->s->api_version, doc, current(w), &body, err) < 0)
            return -1;
        if (put_resource(w, body, "status", &why) == 0)
            return 0;
        bool raced = df_streq(why.reason, "Conflict");
        if (!raced || df_kube_get(w->s->kube, &where, &now, &why) < 0)
            return df_err_pass(err, &why);
        take_answer(w, now);
    }
    return df_backend_fail_conflict(w->kind, w->name, err);
}

static int create_held(struct write *w, const cJSON *doc, cJSON **ret, struct df_err *err)
{
    if (check_content(w, doc, err) < 0 || find_cached(w, &w->known, err) < 0)
        return -1;
    if (w->known)
        return df_backend_fail_exists(w->kind, w->name, err);
    if (post_resource(w, doc, err) < 0)
        return -1;
    if (write_status(w, doc, err) < 0) {
        (void)note_answer(w, false, NULL);
        return -1;
    }
    return finish_write(w, ret, err);
}

static int create(struct df_store *store, enum df_kind kind, const cJSON *doc, cJSON **ret,
                  struct df_err *err)
{
    struct write w = {.s = self(store), .kind = kind};
    if (df_backend_name(doc, &w.name, err) < 0)
        return -1;
    begin_write(&w);
    int result = create_held(&w, doc, ret, err);
    end_write(&w);
    return result;
}

/* Finds the resource to be changed. NOT_FOUND. */
static int find_existing(struct write *w, struct df_err *err)
{
    if (find_cached(w, &w->known, err) < 0)
        return -1;
    return w->known ? 0 : df_store_fail_absent(w->kind, w->name, err);
}

/* ---- update --------------------------------------------------------------------------------- */

/* Writes spec and metadata first: then the status that follows is correct for them, and a crash in
 * between looks like an edit with kubectl. */
static int write_changes(struct write *w, const cJSON *doc, struct df_err *err)
{
    DF_JSON cJSON *main = NULL, *status = NULL;
    if (df_codec_main(w->kind, w->s->api_version, doc, current(w), &main, err) < 0 ||
        (main && put_resource(w, main, NULL, err) < 0))
        return -1;
    if (df_codec_status(w->kind, w->s->api_version, doc, current(w), &status, err) == 0 &&
        (!status || put_resource(w, status, "status", err) == 0))
        return 0;
    if (main)
        (void)note_answer(w, true, NULL);
    return -1;
}

static int update_held(struct write *w, const cJSON *doc, cJSON **ret, struct df_err *err)
{
    if (find_existing(w, err) < 0)
        return -1;
    const struct df_backend_known known = {df_kube_version(w->known), df_codec_uid(w->known)};
    if (df_backend_check_unchanged(w->kind, doc, &known, err) < 0 ||
        check_content(w, doc, err) < 0 || write_changes(w, doc, err) < 0)
        return -1;
    return finish_write(w, ret, err);
}

static int update(struct df_store *store, enum df_kind kind, const cJSON *doc, cJSON **ret,
                  struct df_err *err)
{
    struct write w = {.s = self(store), .kind = kind};
    if (df_backend_name(doc, &w.name, err) < 0)
        return -1;
    begin_write(&w);
    int result = update_held(&w, doc, ret, err);
    end_write(&w);
    return result;
}

/* ---- remove --------------------------------------------------------------------------------- */

/* Removes our finalizer. The resource is deleted before: after a crash in between it is found again
 * with a deletion timestamp, and this is repeated. */
static int remove_finalizer(struct write *w, struct df_err *err)
{
    const struct df_kube_at where = document_at(w->s, w->kind, w->name, NULL);
    DF_JSON cJSON *body = cJSON_CreateObject();
    cJSON *metadata = df_json_object_at(body, "metadata");
    cJSON *answer = NULL;
    struct df_err why = {0};
    if (df_json_put(metadata, err, DF_STR("uid", df_kube_uid(w->known)),
                    DF_ITEM("finalizers", df_codec_other_finalizers(w->known))) < 0)
        return -1;
    const struct df_kube_patch patch = {.type = DF_KUBE_PATCH_MERGE, .body = body};
    if (df_kube_patch(w->s->kube, &where, &patch, &answer, &why) == 0) {
        take_answer(w, answer);
        return 0;
    }
    return why.cls == DF_ERR_NOT_FOUND ? 0 : translate_error(w, &why, err);
}

static int remove_held(struct write *w, const char *uid, struct df_err *err)
{
    const struct df_kube_at where = document_at(w->s, w->kind, w->name, NULL);
    struct df_kube_delete_options o = DF_KUBE_DELETE_OPTIONS;
    struct df_err why = {0};
    if (find_existing(w, err) < 0)
        return -1;
    o.uid = df_kube_uid(w->known);
    if (uid && !df_streq(uid, df_codec_uid(w->known)))
        return df_backend_fail_other(w->kind, w->name, err);
    if (df_kube_delete(w->s->kube, &where, &o, &why) < 0)
        return translate_error(w, &why, err);
    if (remove_finalizer(w, err) < 0)
        return -1;
    df_kube_cache_note_deleted(cache_of(w), current(w), true);
    return 0;
}

static int remove_document(struct df_store *store, enum df_kind kind, const char *name,
                           const char *uid, struct df_err *err)
{
    struct write w = {.s = self(store), .kind = kind, .name = name};
    begin_write(&w);
    int result = remove_held(&w, uid, err);
    end_write(&w);
    return result;
}

int df_store_kube_release(struct df_store *store, enum df_kind kind, const char *name,
                          struct df_err *err)
{
    struct write w = {.s = self(store), .kind = kind, .name = name};
    struct df_err why = {0};
    begin_write(&w);
    int result = find_existing(&w, &why) < 0 ? -1 : remove_finalizer(&w, &why);
    end_write(&w);
    return result == 0 || why.cls == DF_ERR_NOT_FOUND ? 0 : df_err_pass(err, &why);
}

/* ---- other operations ------------------------------------------------------------------------ */

static int audit(struct df_store *store, const cJSON *entry, struct df_err *err)
{
    return df_audit_add(self(store)->audit, entry, df_store_audit_key(store), err);
}

static int audit_list(struct df_store *store, const struct df_audit_filter *filter,
                      const char *cursor, int limit, cJSON **ret, char **ret_cursor,
                      struct df_err *err)
{
    return df_audit_list(self(store)->audit, filter, cursor, limit, ret, ret_cursor, err);
}

static int audit_size(struct df_store *store, int64_t *ret_count, int64_t *ret_bytes,
                      struct df_err *err)
{
    return df_audit_size(self(store)->audit, ret_count, ret_bytes, err);
}

static int watch(struct df_store *store, df_store_watcher fn, void *arg, struct df_err *err)
{
    return df_watchers_add(&self(store)->watchers, fn, arg, err);
}

static void unwatch(struct df_store *store, df_store_watcher fn, void *arg)
{
    df_watchers_remove(&self(store)->watchers, fn, arg);
}

static void close_store(struct df_store *store)
{
    struct kube_store *s = self(store);
    df_informer_stop(s->informer);
    df_audit_close(s->audit);
    df_watchers_free(&s->watchers);
    free(s->group);
    free(s->api_version);
    free(s->name_space);
    free(s);
}

static const struct df_store_ops kube_ops = {
    .close = close_store,
    .create = create,
    .look = look,
    .look_by_uid = look_by_uid,
    .list = list,
    .count = count,
    .names = names,
    .update = update,
    .remove = remove_document,
    .watch = watch,
    .unwatch = unwatch,
    .audit = audit,
    .audit_list = audit_list,
    .audit_size = audit_size,
};

static int open_parts(struct kube_store *s, struct df_err *err)
{
    if (df_check_alloc(s->group, err) < 0 || df_check_alloc(s->api_version, err) < 0 ||
        df_check_alloc(s->name_space, err) < 0 ||
        df_audit_open(s->kube, s->group, s->name_space, &s->audit, err) < 0)
        return -1;
    return df_informer_start(s->kube, s->group, s->name_space, &s->watchers, &s->informer, err);
}

int df_store_kube_open(struct df_kube *kube, const char *group, const char *name_space,
                       struct df_store **ret, struct df_err *err)
{
    struct kube_store *s = calloc(1, sizeof(*s));
    if (!s)
        return df_fail_oom(err);
    s->base.ops = &kube_ops;
    s->kube = kube;
    s->group = strdup(group);
    s->api_version = df_strf("%s/v1alpha1", group);
    s->name_space = strdup(name_space);
    df_watchers_init(&s->watchers);
    if (open_parts(s, err) < 0) {
        close_store(&s->base);
        return -1;
    }
    *ret = &s->base;
    return 0;
}

int df_store_kube_catch_up(struct df_store *store, const volatile bool *stop, struct df_err *err)
{
    return df_informer_catch_up(self(store)->informer, stop, err);
}

int df_store_kube_wait(struct df_store *store, struct df_err *err)
{
    return df_informer_wait(self(store)->informer, LIST_WITHIN_MS, err);
}
