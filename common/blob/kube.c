/*
 * The object store in a Kubernetes namespace (objects.h): heads are Secrets, chunks are ConfigMaps;
 * kube_object.c encodes and decodes them. Each operation is one request, a list one per page. Only
 * one writer can create a name, and only the writer with the current resourceVersion can change the
 * object.
 */
#include "common/base/clock.h"
#include "common/base/limits.h"
#include "common/blob/chunked.h"
#include "common/blob/kube_object.h"

enum { PAGE = 500 };

struct kube_objects {
    struct df_objects objects;
    struct df_kube *kube; /* borrowed */
    char *name_space;
};

static struct kube_objects *kube_objects_of(struct df_objects *o)
{
    return (struct kube_objects *)o; /* its first member */
}

/* Addresses a head or a chunk; name NULL: all of them. The answer to a write is without content. */
static struct df_kube_at at_object(struct df_objects *o, enum df_object_kind kind, const char *name)
{
    return (struct df_kube_at){.resource =
                                   kind == DF_OBJECT_HEAD ? &df_kube_secrets : &df_kube_config_maps,
                               .name_space = kube_objects_of(o)->name_space,
                               .name = name,
                               .metadata_only = true};
}

/* ---- reading -------------------------------------------------------------------------------- */

static int get_head(struct df_objects *o, bool whole, struct df_blob_head *h, struct df_err *err)
{
    DF_SECRET_JSON cJSON *secret = NULL;
    struct df_err why = {0};
    struct df_kube_at at = at_object(o, DF_OBJECT_HEAD, h->name);
    at.metadata_only = !whole;
    if (df_kube_get(kube_objects_of(o)->kube, &at, &secret, &why) < 0)
        return why.cls == DF_ERR_NOT_FOUND ? 0 : df_err_pass(err, &why);
    return df_blob_head_parse(secret, whole, h, err);
}

static int get_range(struct df_objects *o, const struct df_blob_head *h,
                     const struct df_object_range *r, struct df_object_work *work,
                     struct df_buf *out, struct df_err *err)
{
    (void)work;
    DF_JSON cJSON *map = NULL;
    DF_CLEANUP(df_buf_wipe) struct df_buf chunk = DF_BUF_INIT((size_t)h->chunk_size);
    struct df_blob_chunk_name name = df_blob_chunk_name(h, r->id);
    struct df_kube_at at = at_object(o, DF_OBJECT_CHUNK, name.text);
    at.metadata_only = false;
    if (df_kube_get(kube_objects_of(o)->kube, &at, &map, err) < 0 ||
        df_blob_chunk_parse(map, h, &chunk, err) < 0)
        return -1;
    (void)df_buf_add(out, chunk.data + r->offset, r->n);
    return df_buf_check(out, err);
}

/* ---- writing -------------------------------------------------------------------------------- */

/* ret: the metadata; or NULL. */
static int create_object(struct df_objects *o, enum df_object_kind kind, const cJSON *object,
                         cJSON **ret, struct df_err *err)
{
    struct df_err why = {0};
    struct df_kube_at at = at_object(o, kind, NULL);
    if (df_kube_create(kube_objects_of(o)->kube, &at, object, ret, &why) == 0)
        return 0;
    /* The API server also answers 409 when many requests update a quota at once. That is not the
     * conflict that callers expect. */
    if (why.cls == DF_ERR_CONFLICT && !df_streq(why.reason, "AlreadyExists"))
        why.cls = DF_ERR_RETRY;
    return df_err_pass(err, &why);
}

static int put_chunk(struct df_objects *o, const struct df_blob_head *h,
                     const struct df_object_chunk *chunk, struct df_err *err)
{
    DF_JSON cJSON *map = NULL;
    if (df_blob_chunk_print(h, chunk->id, chunk->bytes, chunk->n, &map, err) < 0)
        return -1;
    return create_object(o, DF_OBJECT_CHUNK, map, NULL, err);
}

static int swap_secret(struct df_objects *o, const struct df_blob_head *h, cJSON **ret,
                       struct df_err *err)
{
    DF_SECRET_JSON cJSON *secret = NULL;
    struct df_err why = {0};
    if (df_blob_head_print(h, &secret, err) < 0)
        return -1;
    if (!*h->version)
        return create_object(o, DF_OBJECT_HEAD, secret, ret, err);
    struct df_kube_at at = at_object(o, DF_OBJECT_HEAD, h->name);
    if (df_kube_update(kube_objects_of(o)->kube, &at, secret, ret, &why) == 0)
        return 0;
    if (why.cls == DF_ERR_NOT_FOUND) /* deleted in the meantime */
        why.cls = DF_ERR_CONFLICT;
    return df_err_pass(err, &why);
}

static int put_head(struct df_objects *o, struct df_blob_head *h, struct df_err *err)
{
    DF_JSON cJSON *answer = NULL;
    if (swap_secret(o, h, &answer, err) < 0)
        return -1;
    const char *version = df_kube_version(answer);
    (void)snprintf(h->version, sizeof(h->version), "%s", version ? version : "");
    return 0;
}

static int put(struct df_objects *o, struct df_blob_head *h, const struct df_object_chunk *chunk,
               struct df_err *err)
{
    return chunk ? put_chunk(o, h, chunk, err) : put_head(o, h, err);
}

static int remove_object(struct df_objects *o, const struct df_blob_head *h, const char *chunk,
                         struct df_err *err)
{
    struct df_kube_at at =
        chunk ? at_object(o, DF_OBJECT_CHUNK, chunk) : at_object(o, DF_OBJECT_HEAD, h->name);
    struct df_kube_delete_options options = DF_KUBE_DELETE_OPTIONS;
    options.resource_version = chunk ? NULL : h->version;
    at.metadata_only = false;
    return df_kube_delete(kube_objects_of(o)->kube, &at, &options, err);
}

/* ---- listing -------------------------------------------------------------------------------- */

struct listing {
    enum df_object_kind kind;
    const struct df_object_sink *sink;
};

static int on_begin(void *arg, const char *resource_version, struct df_err *err)
{
    const struct listing *l = arg;
    (void)resource_version, (void)err;
    l->sink->begin(l->sink->arg);
    return 0;
}

static int on_item(void *arg, const cJSON *object, struct df_err *err)
{
    const struct listing *l = arg;
    DF_STRS struct df_strs chunks = {0};
    bool head = l->kind == DF_OBJECT_HEAD;
    const char *name = head ? df_blob_head_key(object) : df_kube_name(object);
    const char *made = df_json_str(object, "metadata.creationTimestamp");
    int64_t made_us = 0;
    if (!made || df_time_parse(made, &made_us, NULL) < 0)
        made_us = INT64_MAX; /* cannot be an orphan yet */
    if (head && df_blob_head_chunks(object, &chunks, err) < 0)
        return -1;
    /* A head without its key, which somebody removed: report it all the same, because its chunks
     * are in use. */
    const struct df_object_item item = {
        .name = name ? name : "", .made_us = made_us, .size = head ? df_blob_head_size(object) : 0};
    return l->sink->item(l->sink->arg, &item, &chunks, err);
}

static int list(struct df_objects *o, enum df_object_kind kind, const char *prefix,
                const struct df_object_sink *sink, struct df_err *err)
{
    struct listing l = {kind, sink};
    DF_FREE char *labels = kind == DF_OBJECT_HEAD ? df_blob_head_selector(prefix, err)
                                                  : strdup(DF_BLOB_LABEL "=chunk");
    if (!labels)
        return kind == DF_OBJECT_HEAD ? -1 : df_fail_oom(err);
    struct df_kube_at at = at_object(o, kind, NULL);
    struct df_kube_select select = {.labels = labels};
    struct df_kube_sink objects = {.begin = on_begin, .item = on_item, .arg = &l};
    return df_kube_list(kube_objects_of(o)->kube, &at, &select, PAGE, &objects, err);
}

/* ---- opening -------------------------------------------------------------------------------- */

static void close_objects(struct df_objects *o)
{
    free(kube_objects_of(o)->name_space);
    free(o);
}

static const struct df_object_ops ops = {
    .close = close_objects,
    .head = get_head,
    .get = get_range,
    .put = put,
    .remove = remove_object,
    .list = list,
};

/* 512 KiB of incompressible data fit into a ConfigMap (1 MiB). */
static const struct df_blob_sizes sizes = {.chunk = (int64_t)(512 * DF_KIB),
                                           .stream_chunk = (int64_t)(64 * DF_KIB),
                                           .no_chunks = (int64_t)(16 * DF_KIB),
                                           .blob = (int64_t)DF_LIMIT_BLOB_KUBE};

int df_blob_kube_open(const struct df_blob_kube_options *o, struct df_blob **ret,
                      struct df_err *err)
{
    struct kube_objects *k = calloc(1, sizeof(*k));
    char *name_space = strdup(o->name_space);
    if (!k || !name_space) {
        free(k);
        free(name_space);
        return df_fail_oom(err);
    }
    *k = (struct kube_objects){{&ops, sizes, true, true}, o->kube, name_space};
    return df_blob_chunked_open(&k->objects, o->directory, ret, err);
}
