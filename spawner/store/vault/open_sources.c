#include "spawner/store/vault/open_sources.h"

#include "spawner/model/secret_source.h"
#include "spawner/store/vault/source_backends.h"

static int open_kube(const struct df_sources_options *o, const cJSON *source, struct df_source *to,
                     struct df_err *err)
{
    const char *own = df_json_str(source, "namespace");
    if (!o->kube || (!own && !o->name_space))
        return df_fail(err, DF_ERR_USER,
                       "the type kubernetes needs a cluster: the engine job or the store "
                       "kubernetes");
    return df_source_kube_open(source, o->kube, o->name_space, o->never, &to->place, &to->backend,
                               err);
}

static int open_backend(const struct df_sources_options *o, const cJSON *source,
                        struct df_source *to, struct df_err *err)
{
    const char *type = df_json_str(source, "type");
    if (df_streq(type, "kubernetes"))
        return open_kube(o, source, to, err);
    return df_streq(type, "kv2") ? df_source_kv2_open(source, &to->place, &to->backend, err)
                                 : df_source_files_open(source, &to->place, &to->backend, err);
}

static int open_source(const struct df_sources_options *o, const cJSON *source,
                       struct df_source *to, struct df_err *err)
{
    to->name = strdup(source->string);
    if (!to->name)
        return df_fail_oom(err);
    if (df_secret_source_use(source, &to->use, err) < 0 || open_backend(o, source, to, err) < 0)
        return df_err_wrap(err, "vault.sources.%s", source->string);
    return 0;
}

int df_sources_open(const struct df_sources_options *o, struct df_sources **ret, struct df_err *err)
{
    int count = cJSON_GetArraySize(o->sources);
    const cJSON *source;
    if (!count)
        return 0;
    DF_SOURCES struct df_sources *s = calloc(1, sizeof(*s));
    if (!s || !(s->items = calloc((size_t)count, sizeof(*s->items))))
        return df_fail_oom(err);
    cJSON_ArrayForEach (source, o->sources) {
        if (open_source(o, source, &s->items[s->len++], err) < 0)
            return -1;
    }
    *ret = DF_TAKE(s);
    return 0;
}
