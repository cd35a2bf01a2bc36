/*
 * The object store in a bucket (objects.h), over any driver (bucket.h): heads/<key> and
 * chunks/<name>, everything sealed before it leaves. First heads, then chunks, lists, opening.
 *
 * A driver's request whose answer is lost may have been executed. So each attempt is repeated, and
 * a put of a head that then meets another version looks whether that is its own.
 */
#include "common/blob/bucket.h"

#include "common/base/clock.h"
#include "common/blob/backend.h"
#include "common/blob/bucket_head.h"
#include "common/blob/bucket_owner.h"
#include "common/blob/bucket_tries.h"
#include "common/blob/chunked.h"
#include "common/blob/content.h"

#define HEADS "heads/"
#define CHUNKS "chunks/"

struct bucket_objects {
    struct df_objects objects;
    struct df_bucket *bucket;
    struct df_keyring keys;
    struct df_bucket_owner *owner; /* NULL: it is only read */
};

static struct bucket_objects *bucket_objects_of(struct df_objects *o)
{
    return (struct bucket_objects *)o; /* its first member */
}

struct name {
    char text[DF_LIMIT_BUCKET_NAME];
};

static struct name name_of(const char *directory, const char *name)
{
    struct name n;
    (void)snprintf(n.text, sizeof(n.text), "%s%s", directory, name);
    return n;
}

/* ---- heads ---------------------------------------------------------------------------------- */

/* An empty object stands for a head that was removed, where remove() cannot be trusted with a
 * version. */
static int get_head(struct df_objects *o, bool whole, struct df_blob_head *h, struct df_err *err)
{
    struct bucket_objects *s = bucket_objects_of(o);
    DF_BUF struct df_buf object = DF_BUF_INIT(DF_LIMIT_BUCKET_OBJECT);
    struct df_bucket_version version = {""};
    struct df_err why = {0};
    struct name name = name_of(HEADS, h->key);
    (void)whole;
    if (df_bucket_get(s->bucket, name.text, &object, &version, &why) < 0)
        return why.cls == DF_ERR_NOT_FOUND ? 0 : df_err_pass(err, &why);
    if (!object.len)
        return 0;
    if (df_bucket_head_parse(&s->keys, name.text, &object, h, err) < 0)
        return df_err_wrap(err, "%s", s->bucket->place);
    memcpy(h->version, version.text, sizeof(version.text));
    return 0;
}

/* What to do after a put met another version than it asked for. */
enum other { OTHER_OURS, OTHER_EMPTY, OTHER_FOREIGN };

static int look_at_other(struct df_bucket *b, const char *name, const struct df_buf *ours,
                         enum other *ret, struct df_bucket_version *ret_version, struct df_err *err)
{
    DF_BUF struct df_buf there = DF_BUF_INIT(DF_LIMIT_BUCKET_OBJECT);
    struct df_err why = {0};
    *ret = OTHER_FOREIGN;
    if (df_bucket_get(b, name, &there, ret_version, &why) < 0)
        return why.cls == DF_ERR_NOT_FOUND ? 0 : df_err_pass(err, &why);
    if (there.len == ours->len && memcmp(df_buf_str(&there), df_buf_str(ours), ours->len) == 0)
        *ret = OTHER_OURS;
    else if (!there.len)
        *ret = OTHER_EMPTY;
    return 0;
}

/* Two writers never seal to the same bytes, so what is there says whose put was executed. */
static int swap_object(struct df_bucket *b, const char *name, const struct df_buf *content,
                       const struct df_bucket_version *version, struct df_err *err)
{
    struct df_bucket_version expected = *version, there = {""};
    for (bool unsure = false;;) {
        struct df_err why = {0};
        enum other other;
        if (df_bucket_put(b, name, content, &expected, &unsure, &why) == 0)
            return 0;
        if (why.cls != DF_ERR_CONFLICT)
            return df_err_pass(err, &why);
        if (look_at_other(b, name, content, &other, &there, err) < 0) {
            if (err)
                err->cls = DF_ERR_RETRY;
            return -1;
        }
        if (other == OTHER_OURS)
            return 0;
        if (other == OTHER_EMPTY && !*version->text && !df_streq(expected.text, there.text)) {
            expected = there;
            continue;
        }
        if (unsure) /* it may have been executed before the other writer's */
            return df_fail_reason(err, DF_ERR_RETRY, DF_OBJECT_OVERTAKEN, "%s", why.message);
        return df_err_pass(err, &why);
    }
}

static struct df_bucket_version version_of(const struct df_blob_head *h)
{
    struct df_bucket_version v;
    memcpy(v.text, h->version, sizeof(v.text));
    return v;
}

static int put_head(struct bucket_objects *s, const struct df_blob_head *h, struct df_err *err)
{
    DF_BUF struct df_buf object = DF_BUF_INIT(DF_LIMIT_BUCKET_OBJECT);
    struct name name = name_of(HEADS, h->key);
    struct df_bucket_version version = version_of(h);
    if (df_bucket_head_print(&s->keys, name.text, h, &object, err) < 0)
        return -1;
    return swap_object(s->bucket, name.text, &object, &version, err);
}

static int remove_head(struct bucket_objects *s, const struct df_blob_head *h, struct df_err *err)
{
    const struct df_buf empty = DF_BUF_INIT(1);
    struct name name = name_of(HEADS, h->key);
    struct df_bucket_version version = version_of(h);
    return s->bucket->removes_versions ? df_bucket_remove(s->bucket, name.text, &version, err)
                                       : swap_object(s->bucket, name.text, &empty, &version, err);
}

/* ---- chunks --------------------------------------------------------------------------------- */

static int put_chunk(struct bucket_objects *s, const struct df_blob_head *h,
                     const struct df_object_chunk *chunk, struct df_err *err)
{
    static const char room[DF_AEAD_BEFORE] = {0};
    struct df_buf *sealed = &chunk->work->sealed;
    struct df_blob_chunk_name id = df_blob_chunk_name(h, chunk->id);
    struct name name = name_of(CHUNKS, id.text);
    bool unsure = false;
    df_buf_clear(sealed);
    (void)df_buf_add(sealed, room, sizeof(room));
    if (df_blob_pack(chunk->bytes, chunk->n, sealed, err) < 0 ||
        df_aead_seal_here(h->seal, id.text, sealed, err) < 0)
        return -1;
    return df_bucket_put(s->bucket, name.text, sealed, NULL, &unsure, err);
}

static int open_chunk(const struct df_blob_head *h, const char *name, struct df_buf *sealed,
                      struct df_buf *out, struct df_err *err)
{
    const char *packed = NULL;
    size_t n = 0;
    return df_aead_open_here(h->seal, name, sealed, &packed, &n, err) < 0
               ? -1
               : df_blob_unpack(packed, n, (size_t)h->chunk_size, out, err);
}

static int get_chunk(struct df_objects *o, const struct df_blob_head *h,
                     const struct df_object_range *r, struct df_object_work *work,
                     struct df_buf *out, struct df_err *err)
{
    struct bucket_objects *s = bucket_objects_of(o);
    struct df_blob_chunk_name chunk = df_blob_chunk_name(h, r->id);
    struct name name = name_of(CHUNKS, chunk.text);
    struct df_bucket_version version;
    if (df_bucket_get(s->bucket, name.text, &work->sealed, &version, err) < 0)
        return -1;
    df_buf_clear(&work->plain);
    if (open_chunk(h, chunk.text, &work->sealed, &work->plain, NULL) < 0)
        return df_blob_fail_damaged(name.text, err);
    if (out != &work->plain)
        (void)df_buf_add(out, work->plain.data + r->offset, r->n);
    return df_buf_check(out, err);
}

static int put(struct df_objects *o, struct df_blob_head *h, const struct df_object_chunk *chunk,
               struct df_err *err)
{
    struct bucket_objects *s = bucket_objects_of(o);
    if (df_bucket_owner_allows(s->owner, s->bucket, err) < 0)
        return -1;
    return chunk ? put_chunk(s, h, chunk, err) : put_head(s, h, err);
}

static int remove_one(struct df_objects *o, const struct df_blob_head *h, const char *chunk,
                      struct df_err *err)
{
    struct bucket_objects *s = bucket_objects_of(o);
    if (df_bucket_owner_allows(s->owner, s->bucket, err) < 0)
        return -1;
    if (!chunk)
        return remove_head(s, h, err);
    return df_bucket_remove(s->bucket, name_of(CHUNKS, chunk).text, NULL, err);
}

/* ---- lists ---------------------------------------------------------------------------------- */

struct listing {
    struct bucket_objects *store;
    enum df_object_kind kind;
    const struct df_object_sink *sink;
    bool failed; /* the sink */
};

/* Chunks of one blob: the head must be read for them. If the store answers and it does not open,
 * its name stands for all of them: *damage says why. */
static int read_chunks(struct bucket_objects *s, const char *key, const struct df_object_sink *sink,
                       struct df_strs *out, struct df_err *damage, struct df_err *err)
{
    DF_BLOB_HEAD h = {0};
    if (!sink->wants_chunks)
        return 0;
    if (df_blob_head_new(key, &s->objects.sizes, &h, err) < 0)
        return -1;
    if (!sink->wants_chunks(sink->arg, h.name))
        return 0;
    if (get_head(&s->objects, false, &h, damage) < 0) {
        if (damage->cls == DF_ERR_RETRY)
            return df_err_pass(err, damage);
        (void)df_strs_add(out, h.name);
        return df_strs_check(out, err);
    }
    for (size_t i = 0; i < h.chunks.len; i++)
        (void)df_strs_add(out, df_blob_chunk_name(&h, h.chunks.items[i]).text);
    return df_strs_check(out, err);
}

/* "dfb-<32 hex>-<16 hex>": a chunk is removed by its name, and no other name ever. */
static bool is_chunk_name(const char *name)
{
    static const char hex[] = "0123456789abcdef";
    return df_starts_with(name, "dfb-") && strspn(name + 4, hex) == 32 && name[36] == '-' &&
           strspn(name + 37, hex) == 16 && !name[53];
}

/* Whoever may write to the bucket may have put other objects there: they are left alone. */
static int on_item(void *arg, const char *name, int64_t size, int64_t made_us, struct df_err *err)
{
    struct listing *l = arg;
    bool head = l->kind == DF_OBJECT_HEAD;
    const char *rest = strchr(name, '/');
    DF_STRS struct df_strs chunks = {0};
    struct df_err damage = {0};
    struct df_object_item item = {.name = rest ? rest + 1 : "", .made_us = made_us, .size = size};
    if (!rest || (head && !size)) /* a removed one */
        return 0;
    if (head ? !df_blob_key_is_good(rest + 1) : !is_chunk_name(rest + 1))
        return 0;
    l->failed = head && read_chunks(l->store, rest + 1, l->sink, &chunks, &damage, err) < 0;
    item.damage = damage.cls == DF_ERR_NONE ? NULL : &damage;
    l->failed = l->failed || l->sink->item(l->sink->arg, &item, &chunks, err) < 0;
    return l->failed ? -1 : 0;
}

/* A page whose items were given already is not repeated. */
static int list_page(struct listing *l, const char *prefix, char **after, struct df_err *err)
{
    struct df_bucket *b = l->store->bucket;
    const struct df_bucket_sink sink = {on_item, l};
    struct df_err why = {0};
    int failures = 0;
    do {
        if (b->ops->list(b, prefix, after, &sink, &why) == 0)
            return 0;
    } while (!l->failed && df_bucket_repeats(b, &failures, &why));
    return df_err_pass(err, &why);
}

static int list(struct df_objects *o, enum df_object_kind kind, const char *prefix,
                const struct df_object_sink *sink, struct df_err *err)
{
    struct listing l = {bucket_objects_of(o), kind, sink, false};
    struct name from =
        name_of(kind == DF_OBJECT_HEAD ? HEADS : CHUNKS, kind == DF_OBJECT_HEAD ? prefix : "");
    DF_FREE char *after = NULL;
    sink->begin(sink->arg);
    do {
        if (list_page(&l, from.text, &after, err) < 0)
            return -1;
    } while (after);
    return 0;
}

/* ---- opening -------------------------------------------------------------------------------- */

static void close_objects(struct df_objects *o)
{
    struct bucket_objects *s = bucket_objects_of(o);
    s->bucket->ops->close(s->bucket);
    df_bucket_owner_free(s->owner);
    df_keyring_wipe(&s->keys);
    free(s);
}

static void hasten(struct df_objects *o)
{
    df_bucket_hasten(bucket_objects_of(o)->bucket);
}

static int check_owner(struct df_objects *o, bool at_once, struct df_err *err)
{
    struct bucket_objects *s = bucket_objects_of(o);
    return df_bucket_owner_check(s->owner, s->bucket, at_once, err);
}

static const struct df_object_ops ops = {
    .close = close_objects,
    .hasten = hasten,
    .check_owner = check_owner,
    .head = get_head,
    .get = get_chunk,
    .put = put,
    .remove = remove_one,
    .list = list,
};

/* One request for a state of a usual size. Each chunk that is on its way is in memory twice; sealed
 * it fits into 1 MiB. */
static const struct df_blob_sizes usual_sizes = {.chunk = (int64_t)(1008 * DF_KIB),
                                                 .stream_chunk = (int64_t)(128 * DF_KIB),
                                                 .no_chunks = (int64_t)(1 * DF_MIB),
                                                 .blob = (int64_t)DF_LIMIT_BLOB_BUCKET,
                                                 .at_once = 3};

/* The object stays: so a refusal is the store's answer to the version, whatever became of the
 * attempts before. */
static bool refuses_to_remove(struct df_bucket *b, const char *name,
                              const struct df_bucket_version *stale)
{
    struct df_err why = {0};
    int failures = 0;
    do {
        if (b->ops->remove(b, name, stale, &why) == 0)
            return false;
    } while (df_bucket_repeats(b, &failures, &why));
    return why.cls == DF_ERR_CONFLICT;
}

/* A put where nothing may be but something is must be refused, and so must the removal of a version
 * that was replaced. */
static int prove_versions(struct df_bucket *b, const char *name, struct df_err *err)
{
    const struct df_bucket_version none = {""};
    struct df_bucket_version stale = {""};
    DF_BUF struct df_buf content = DF_BUF_INIT(DF_KIB);
    struct df_err why = {0};
    bool unsure = false;
    (void)df_buf_adds(&content, "written at the start to see that two writers cannot mix\n");
    if (swap_object(b, name, &content, &none, err) < 0)
        return -1;
    if (df_bucket_put(b, name, &content, &none, &unsure, &why) == 0)
        return df_fail_reason(err, DF_ERR_USER, "NoPreconditions",
                              "it does not honour preconditions (If-None-Match): two writers could "
                              "mix; use a store that does");
    if (why.cls != DF_ERR_CONFLICT)
        return df_err_pass(err, &why);
    if (df_bucket_get(b, name, &content, &stale, err) < 0)
        return -1;
    (void)df_buf_adds(&content, "twice\n");
    if (df_bucket_put(b, name, &content, NULL, &unsure, err) < 0)
        return -1;
    b->removes_versions = refuses_to_remove(b, name, &stale);
    return df_bucket_remove(b, name, NULL, err);
}

static int prove_bucket(struct df_bucket *b, struct df_err *err)
{
    char id[17];
    if (df_random_hex(id, 8, err) < 0)
        return -1;
    struct name name = name_of("probe/", id);
    return prove_versions(b, name.text, err) < 0 ? df_err_wrap(err, "open %s", b->place) : 0;
}

int df_blob_bucket_open(struct df_bucket *bucket, const struct df_blob_bucket_options *o,
                        struct df_blob **ret, struct df_err *err)
{
    struct bucket_objects *s = calloc(1, sizeof(*s));
    struct df_bucket_owner *owner = NULL;
    if (!s || prove_bucket(bucket, err) < 0 ||
        (o->owner && df_bucket_claim(bucket, o->owner, o->former, &owner, err) < 0)) {
        int result = s ? -1 : df_fail_oom(err);
        bucket->ops->close(bucket);
        free(s);
        return result;
    }
    *s = (struct bucket_objects){
        {&ops, o->sizes ? *o->sizes : usual_sizes}, bucket, *o->keys, owner};
    return df_blob_chunked_open(&s->objects, o->directory, ret, err);
}
