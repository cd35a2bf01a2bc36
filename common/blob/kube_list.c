/*
 * What there is: lists of heads, and chunks that no head names. Metadata alone travels.
 */
#include "common/base/clock.h"
#include "common/blob/kube_home.h"

enum {
    PAGE = 500,
    SWEEP_MS = 3600 * 1000,
    ORPHAN_S = 3600 /* a chunk this old that no head names will not be named any more */
};

struct found {
    const char *prefix;
    int64_t before_us; /* only what was made before */
    struct df_strs names;
};

/* The list begins anew: what was found before counts no more. */
static int begin(void *arg, const char *resource_version, struct df_err *err)
{
    struct found *f = arg;
    (void)resource_version, (void)err;
    df_strs_free(&f->names);
    return 0;
}

static int list_objects(struct df_blob *b, struct df_kube_at at, const char *labels,
                        int (*item)(void *arg, const cJSON *object, struct df_err *err),
                        struct found *f, struct df_err *err)
{
    struct df_kube_select select = {.labels = labels};
    struct df_kube_sink sink = {begin, item, f};
    at.metadata_only = true;
    return df_kube_list(df_blob_kube_of(b)->kube, &at, &select, PAGE, &sink, err);
}

static void found_free(struct found *f)
{
    df_strs_free(&f->names);
}
#define FOUND DF_CLEANUP(found_free) struct found

/* ---- orphans -------------------------------------------------------------------------------- */

static int add_old_chunk(void *arg, const cJSON *map, struct df_err *err)
{
    struct found *f = arg;
    const char *at = df_json_str(map, "metadata.creationTimestamp");
    int64_t made = 0;
    if (!at || df_time_parse(at, &made, NULL) < 0 || made > f->before_us)
        return 0;
    (void)df_strs_add(&f->names, df_kube_name(map));
    return df_strs_check(&f->names, err);
}

static int add_chunks(void *arg, const cJSON *secret, struct df_err *err)
{
    struct found *f = arg;
    return df_blob_head_chunks(secret, &f->names, err);
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool has(const struct df_strs *sorted, const char *name)
{
    return sorted->len &&
           bsearch(&name, sorted->items, sorted->len, sizeof(*sorted->items), by_bytes);
}

/* Heads are listed after the chunks: a chunk that was taken in meanwhile is seen to be. */
static int sweep(struct df_blob *b, struct df_err *err)
{
    FOUND old = {.before_us = df_real_us() - (int64_t)ORPHAN_S * 1000000};
    FOUND named = {0};
    DF_STRS struct df_strs orphans = {0};
    if (list_objects(b, df_blob_kube_chunk_at(b, NULL), DF_BLOB_LABEL "=chunk", add_old_chunk, &old,
                     err) < 0)
        return -1;
    if (!old.names.len)
        return 0;
    if (list_objects(b, df_blob_kube_head_at(b, NULL), DF_BLOB_LABEL "=head", add_chunks, &named,
                     err) < 0)
        return -1;
    if (named.names.len)
        qsort(named.names.items, named.names.len, sizeof(*named.names.items), by_bytes);
    for (size_t i = 0; i < old.names.len; i++)
        if (!has(&named.names, old.names.items[i]))
            (void)df_strs_add(&orphans, old.names.items[i]);
    df_blob_kube_drop(b, &orphans);
    return 0;
}

/* Once an hour. Who lists is not to fail by it: a sweep that failed is tried again by the next. */
static void sweep_now_and_then(struct df_blob *b)
{
    int64_t *swept = &df_blob_kube_of(b)->swept_ms;
    int64_t last = __atomic_load_n(swept, __ATOMIC_RELAXED), now = df_mono_ms();
    if ((last && now - last < SWEEP_MS) ||
        !__atomic_compare_exchange_n(swept, &last, now, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        return;
    if (sweep(b, NULL) < 0)
        __atomic_store_n(swept, 0, __ATOMIC_RELAXED);
}

/* ---- lists ---------------------------------------------------------------------------------- */

static int add_key(void *arg, const cJSON *secret, struct df_err *err)
{
    struct found *f = arg;
    const char *key = df_blob_head_key(secret);
    size_t n = strlen(f->prefix);
    /* A key that is none was written by somebody else. */
    if (!key || !df_blob_key_is_good(key) ||
        (n && (!df_starts_with(key, f->prefix) || key[n] != '/')))
        return 0;
    (void)df_strs_add(&f->names, key);
    return df_strs_check(&f->names, err);
}

int df_blob_kube_list(struct df_blob *b, const char *prefix, struct df_strs *out,
                      struct df_err *err)
{
    FOUND f = {.prefix = prefix};
    sweep_now_and_then(b);
    DF_FREE char *labels = df_blob_head_selector(prefix, err);
    if (!labels || list_objects(b, df_blob_kube_head_at(b, NULL), labels, add_key, &f, err) < 0)
        return -1;
    for (size_t i = 0; i < f.names.len; i++)
        (void)df_strs_take(out, DF_TAKE(f.names.items[i]));
    f.names.len = 0; /* they have moved */
    return df_strs_check(out, err);
}

int df_blob_kube_remove_all(struct df_blob *b, const char *prefix, struct df_err *err)
{
    DF_STRS struct df_strs keys = {0};
    if (df_blob_kube_list(b, prefix, &keys, err) < 0)
        return -1;
    for (size_t i = 0; i < keys.len; i++)
        if (df_blob_delete(b, keys.items[i], err) < 0)
            return df_err_wrap(err, "remove blobs %s", prefix);
    return 0;
}
