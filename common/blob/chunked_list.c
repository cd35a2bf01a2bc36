/*
 * Lists the blobs of an object store, and once an hour removes orphans: chunks that no head names.
 */
#include "common/base/clock.h"
#include "common/blob/chunked.h"

enum {
    SWEEP_MS = 3600 * 1000,
    ORPHAN_S = 3600 /* no head will name a chunk of this age any more */
};

struct found {
    const char *prefix;
    int64_t before_us; /* only objects created before this time */
    struct df_strs names;
    const struct df_strs *chunks;      /* sorted: only heads of these matter; or NULL: of none */
    size_t unopened;                   /* heads that matter and do not open */
    char first[DF_LIMIT_BLOB_KEY + 1]; /* the key of the first of these, and why */
    struct df_err why;
};

static void found_free(struct found *f)
{
    df_strs_free(&f->names);
}
#define FOUND DF_CLEANUP(found_free) struct found

static void begin_list(void *arg)
{
    struct found *f = arg;
    found_free(f);
    f->unopened = 0;
}

typedef int (*taking)(void *arg, const struct df_object_item *item, const struct df_strs *chunks,
                      struct df_err *err);

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* True if one of the chunks belongs to this head, whose name their names begin with. */
static bool has_chunk_of(void *arg, const char *head)
{
    const struct found *f = arg;
    size_t low = 0, high = f->chunks ? f->chunks->len : 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(f->chunks->items[middle], head) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return f->chunks && low < f->chunks->len && df_starts_with(f->chunks->items[low], head);
}

static int list_objects(struct df_objects *o, enum df_object_kind kind, taking item,
                        struct found *f, struct df_err *err)
{
    const struct df_object_sink sink = {begin_list, item, has_chunk_of, f};
    return o->ops->list(o, kind, f->prefix, &sink, err);
}

/* ---- orphans -------------------------------------------------------------------------------- */

static int add_old_chunk(void *arg, const struct df_object_item *item, const struct df_strs *chunks,
                         struct df_err *err)
{
    struct found *f = arg;
    (void)chunks;
    if (item->made_us > f->before_us)
        return 0;
    (void)df_strs_add(&f->names, item->name);
    return df_strs_check(&f->names, err);
}

static int add_chunks(void *arg, const struct df_object_item *item, const struct df_strs *chunks,
                      struct df_err *err)
{
    struct found *f = arg;
    if (item->damage && !f->unopened++) {
        df_copy(f->first, sizeof(f->first), item->name);
        f->why = *item->damage;
    }
    for (size_t i = 0; i < chunks->len; i++)
        (void)df_strs_add(&f->names, chunks->items[i]);
    return df_strs_check(&f->names, err);
}

static bool contains_name(const struct df_strs *sorted, const char *name)
{
    return sorted->len &&
           bsearch(&name, sorted->items, sorted->len, sizeof(*sorted->items), by_bytes);
}

/* A head that does not open is in the list by its own name: it may need any of its chunks. */
static bool may_be_in_use(const struct df_strs *named, const char *chunk)
{
    char head[40];
    (void)snprintf(head, sizeof(head), "%.36s", chunk); /* "dfb-<32 hex>" */
    return contains_name(named, chunk) || contains_name(named, head);
}

/* It would come with every sweep: the service hears of it once, and again when these are others. */
static void tell_unopened(struct df_blob_chunked *c, const struct found *f)
{
    char others[48] = "", sentence[sizeof(f->why.message) + sizeof(f->first) + 256];
    uint64_t told = f->unopened ? df_hash_str(DF_HASH_BEGIN + f->unopened, f->first) : 0;
    if (__atomic_exchange_n(&c->told, told, __ATOMIC_RELAXED) == told || !told || !c->blob.health)
        return;
    if (f->unopened > 1)
        (void)snprintf(others, sizeof(others), " (and of %zu other%s)", f->unopened - 1,
                       f->unopened > 2 ? "s" : "");
    (void)snprintf(sentence, sizeof(sentence),
                   "unused chunks of %s%s are not removed, since its head does not open: %s; "
                   "restore it from a copy, or remove it",
                   f->first, others, f->why.message);
    df_blob_health_tell(c->blob.health, DF_ERR_RETRY, sentence);
}

/* Heads are listed after the chunks, so that a chunk that a head has named in the meantime is not
 * removed. */
static int remove_orphans(struct df_blob_chunked *c, struct df_err *err)
{
    struct df_objects *o = c->objects;
    FOUND old = {.prefix = "", .before_us = df_real_us() - (int64_t)ORPHAN_S * 1000000};
    FOUND named = {.prefix = "", .chunks = &old.names};
    if (list_objects(o, DF_OBJECT_CHUNK, add_old_chunk, &old, err) < 0)
        return -1;
    if (!old.names.len)
        return 0;
    qsort(old.names.items, old.names.len, sizeof(*old.names.items), by_bytes);
    if (list_objects(o, DF_OBJECT_HEAD, add_chunks, &named, err) < 0)
        return -1;
    if (named.names.len)
        qsort(named.names.items, named.names.len, sizeof(*named.names.items), by_bytes);
    for (size_t i = 0; i < old.names.len; i++)
        if (!may_be_in_use(&named.names, old.names.items[i]))
            (void)!o->ops->remove(o, NULL, old.names.items[i], NULL);
    tell_unopened(c, &named);
    return 0;
}

/* Sweeps at most once an hour. A failure does not fail the list; the next list tries again. */
static void sweep_hourly(struct df_blob_chunked *c)
{
    int64_t last = __atomic_load_n(&c->swept_ms, __ATOMIC_RELAXED), now = df_mono_ms();
    if ((last && now - last < SWEEP_MS) ||
        !__atomic_compare_exchange_n(&c->swept_ms, &last, now, false, __ATOMIC_RELAXED,
                                     __ATOMIC_RELAXED))
        return;
    if (remove_orphans(c, NULL) < 0)
        __atomic_store_n(&c->swept_ms, 0, __ATOMIC_RELAXED);
}

/* ---- lists ---------------------------------------------------------------------------------- */

/* An invalid key was written by somebody else. */
static bool is_below(const char *key, const char *prefix)
{
    size_t n = strlen(prefix);
    return df_blob_key_is_good(key) && (!n || (df_starts_with(key, prefix) && key[n] == '/'));
}

static int add_key(void *arg, const struct df_object_item *item, const struct df_strs *chunks,
                   struct df_err *err)
{
    struct found *f = arg;
    (void)chunks;
    if (!is_below(item->name, f->prefix))
        return 0;
    (void)df_strs_add(&f->names, item->name);
    return df_strs_check(&f->names, err);
}

int df_blob_chunked_list(struct df_blob *b, const char *prefix, struct df_strs *out,
                         struct df_err *err)
{
    struct df_blob_chunked *c = df_blob_chunked_of(b);
    FOUND f = {.prefix = prefix};
    sweep_hourly(c);
    if (list_objects(c->objects, DF_OBJECT_HEAD, add_key, &f, err) < 0)
        return -1;
    for (size_t i = 0; i < f.names.len; i++)
        (void)df_strs_take(out, DF_TAKE(f.names.items[i]));
    f.names.len = 0; /* their ownership has moved to out */
    return df_strs_check(out, err);
}

/* ---- sizes ---------------------------------------------------------------------------------- */

/* A blob, by the name of its head, which the names of its chunks begin with. */
struct sized {
    char name[40];
    char *key; /* owned */
    int64_t size, made_us;
};

/* A list may begin again before its end, so nothing is given away before it. */
struct sizes {
    const char *prefix;
    const struct df_blob_sizes *of_store;
    struct sized *items; /* owned */
    size_t len, cap;
};

static void forget_sizes(void *arg)
{
    struct sizes *s = arg;
    for (size_t i = 0; i < s->len; i++)
        free(s->items[i].key);
    s->len = 0;
}

static void cleanup_sizes(struct sizes *s)
{
    forget_sizes(s);
    free(s->items);
}

static int add_sized(void *arg, const struct df_object_item *item, const struct df_strs *chunks,
                     struct df_err *err)
{
    struct sizes *s = arg;
    DF_BLOB_HEAD h = {0};
    (void)chunks;
    if (!is_below(item->name, s->prefix))
        return 0;
    if (s->len == s->cap) {
        size_t cap = s->cap ? 2 * s->cap : 64;
        struct sized *items = reallocarray(s->items, cap, sizeof(*items));
        if (!items)
            return df_fail_oom(err);
        s->items = items;
        s->cap = cap;
    }
    if (df_blob_head_new(item->name, s->of_store, &h, err) < 0)
        return -1;
    struct sized *one = &s->items[s->len];
    *one = (struct sized){.key = strdup(item->name), .size = item->size, .made_us = item->made_us};
    memcpy(one->name, h.name, sizeof(one->name));
    s->len += one->key != NULL;
    return df_check_alloc(one->key, err);
}

static int by_head(const void *a, const void *b)
{
    return strcmp(((const struct sized *)a)->name, ((const struct sized *)b)->name);
}

static void begin_chunk_sizes(void *arg)
{
    (void)arg; /* only stores whose lists do not begin again need chunks for sizes */
}

static int add_chunk_size(void *arg, const struct df_object_item *item,
                          const struct df_strs *chunks, struct df_err *err)
{
    struct sizes *s = arg;
    struct sized probe = {0};
    (void)chunks, (void)err;
    df_copy(probe.name, sizeof(probe.name), item->name);
    char *end = strrchr(probe.name, '-'); /* "dfb-<32 hex>-<16 hex>" is longer than a head's name */
    if (end && end != strchr(probe.name, '-'))
        *end = '\0';
    struct sized *of =
        s->len ? bsearch(&probe, s->items, s->len, sizeof(*s->items), by_head) : NULL;
    if (of)
        of->size += item->size;
    return 0;
}

int df_blob_chunked_each(struct df_blob *b, const char *prefix, df_blob_visit visit, void *arg,
                         struct df_err *err)
{
    struct df_objects *o = df_blob_chunked_of(b)->objects;
    DF_CLEANUP(cleanup_sizes) struct sizes s = {.prefix = prefix, .of_store = &o->sizes};
    const struct df_object_sink heads = {forget_sizes, add_sized, NULL, &s};
    const struct df_object_sink chunks = {begin_chunk_sizes, add_chunk_size, NULL, &s};
    if (o->ops->list(o, DF_OBJECT_HEAD, prefix, &heads, err) < 0)
        return -1;
    if (s.len)
        qsort(s.items, s.len, sizeof(*s.items), by_head);
    if (!o->tells_sizes && o->ops->list(o, DF_OBJECT_CHUNK, "", &chunks, err) < 0)
        return -1;
    for (size_t i = 0; i < s.len; i++) {
        const struct df_blob_info info = {s.items[i].key, s.items[i].size, s.items[i].made_us};
        if (visit(arg, &info, err) < 0)
            return -1;
    }
    return 0;
}
