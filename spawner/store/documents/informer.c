#include "spawner/store/documents/informer.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "spawner/store/documents/codec.h"

struct kind_cache {
    struct df_watchers *watchers;
    enum df_kind kind;
    struct df_kube_resource resource;
    struct df_kube_cache *cache;
};

struct df_informer {
    struct kind_cache kinds[DF_KIND_COUNT];
};

const struct df_kube_resource *df_informer_resource(const struct df_informer *i, enum df_kind kind)
{
    return &i->kinds[kind].resource;
}

struct df_kube_cache *df_informer_cache(const struct df_informer *i, enum df_kind kind)
{
    if (!df_kind_row(kind)->is_custom_resource)
        DF_BUG("%s is no custom resource", df_kind_name(kind));
    return i->kinds[kind].cache;
}

static int index_keys(void *arg, const cJSON *wire, struct df_kube_keys *ret, struct df_err *err)
{
    const char *uid = df_codec_uid(wire);
    (void)arg;
    if (df_codec_labels(wire, &ret->words, err) < 0)
        return -1;
    if (uid)
        (void)df_strs_add(&ret->words, uid);
    ret->order = df_codec_order(wire);
    ret->digest = df_kube_content_hash(wire); /* a change of annotations alone causes no pass */
    return df_strs_check(&ret->words, err);
}

static int show_document(void *arg, cJSON *wire, struct df_err *err)
{
    const struct kind_cache *k = arg;
    return df_codec_to_document(k->kind, wire, err);
}

static uint64_t draw_sequence(void *arg)
{
    const struct kind_cache *k = arg;
    return df_watchers_draw(k->watchers);
}

static void on_changed(void *arg, const struct df_kube_change *change)
{
    static const enum df_change changes[] = {[DF_KUBE_ADDED] = DF_CHANGE_ADDED,
                                             [DF_KUBE_MODIFIED] = DF_CHANGE_MODIFIED,
                                             [DF_KUBE_DELETED] = DF_CHANGE_DELETED};
    const struct kind_cache *k = arg;
    if (change->is_initial) /* the first list is not a change */
        return;
    df_watchers_notify(k->watchers, change->sequence,
                       &(struct df_store_event){.change = changes[change->type],
                                                .kind = k->kind,
                                                .name = change->name,
                                                .resource_version = change->version,
                                                .is_external = !change->is_local,
                                                .is_noop = change->is_noop});
}

static void on_failed(void *arg, const struct df_err *err)
{
    (void)arg;
    df_warn("%s", err->message);
}

int df_informer_start(struct df_kube *k, const char *group, const char *name_space,
                      struct df_watchers *watchers, struct df_informer **ret, struct df_err *err)
{
    struct df_informer *i = calloc(1, sizeof(*i));
    if (!i)
        return df_fail_oom(err);
    for (int n = 0; n < DF_KIND_COUNT; n++) {
        struct kind_cache *kind = &i->kinds[n];
        if (!df_kind_row((enum df_kind)n)->is_custom_resource)
            continue;
        *kind = (struct kind_cache){
            watchers, (enum df_kind)n, {group, "v1alpha1", df_kind_plural((enum df_kind)n)}, NULL};
        const struct df_kube_cache_options o = {.resource = &kind->resource,
                                                .name_space = name_space,
                                                .keys = index_keys,
                                                .show = show_document,
                                                .sequence = draw_sequence,
                                                .changed = on_changed,
                                                .failed = on_failed,
                                                .arg = kind};
        if (df_kube_cache_start(k, &o, &kind->cache, err) < 0) {
            df_informer_stop(i);
            return -1;
        }
    }
    *ret = i;
    return 0;
}

void df_informer_stop(struct df_informer *i)
{
    for (int n = 0; i && n < DF_KIND_COUNT; n++)
        if (i->kinds[n].cache)
            df_kube_cache_stop(i->kinds[n].cache);
    free(i);
}

int df_informer_wait(struct df_informer *i, int64_t timeout_ms, struct df_err *err)
{
    int64_t deadline = df_mono_ms() + timeout_ms;
    for (int n = 0; n < DF_KIND_COUNT; n++) {
        int64_t left = deadline - df_mono_ms();
        if (i->kinds[n].cache &&
            df_kube_cache_wait(i->kinds[n].cache, left > 0 ? left : 0, NULL, err) < 0)
            return -1;
    }
    return 0;
}

int df_informer_catch_up(struct df_informer *i, const volatile bool *stop, struct df_err *err)
{
    uint64_t lists[DF_KIND_COUNT] = {0};
    for (int n = 0; n < DF_KIND_COUNT; n++)
        if (i->kinds[n].cache)
            lists[n] = df_kube_cache_list_anew(i->kinds[n].cache);
    for (int n = 0; n < DF_KIND_COUNT; n++)
        if (i->kinds[n].cache && df_kube_cache_await(i->kinds[n].cache, lists[n], stop, err) < 0)
            return -1;
    return 0;
}
