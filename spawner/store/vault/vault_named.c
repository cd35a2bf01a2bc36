/*
 * The source `kubernetes`: Secrets that the operator names, of any tool, without our label. What is
 * the service's own is never opened, whatever the configuration allows.
 */
#include "common/base/limits.h"
#include "common/kube/kube.h"
#include "spawner/model/secret_source.h"
#include "spawner/store/vault/source_backends.h"
#include "spawner/store/vault/sources.h"

#define OUR_LABELS "dayfly.dev/" /* of the vault's Secrets, of blobs, of documents of steps */

struct named_vault {
    struct df_vault vault;
    struct df_kube *kube;
    const cJSON *source; /* its part of the configuration */
    const struct df_never *never;
    const char *name_space;
};

static const struct named_vault *named_of(const struct df_vault *v)
{
    return (const struct named_vault *)v; /* its first member */
}

/* Is it the service's, or worth an account? */
static bool is_guarded(const struct named_vault *v, const cJSON *secret)
{
    static const char *const tokens[] = {"kubernetes.io/service-account-token",
                                         "bootstrap.kubernetes.io/token"};
    const char *type = df_json_str(secret, "type");
    const cJSON *label;
    for (size_t i = 0; i < DF_ARRAY_SIZE(tokens); i++)
        if (df_streq(type, tokens[i]))
            return true;
    cJSON_ArrayForEach (label, df_json_at(secret, "metadata.labels")) {
        if (df_starts_with(label->string, OUR_LABELS))
            return true;
    }
    return df_never_is_secret(v->never, df_kube_name(secret));
}

static int fail_guarded(const struct named_vault *v, const char *name, struct df_err *err)
{
    return df_source_fail(
        err, DF_ERR_DENIED,
        "the Secret %s in namespace %s belongs to dayfly or to a service account: "
        "no source opens it",
        name, v->name_space);
}

static int check_allowed(const struct named_vault *v, const char *name, struct df_err *err)
{
    if (!df_secret_source_allows(v->source, name))
        return df_source_fail(err, DF_ERR_DENIED,
                              "the Secret %s is not among the secrets of vault.sources.%s", name,
                              v->source->string);
    return df_never_is_secret(v->never, name) ? fail_guarded(v, name, err) : 0;
}

/* ---- reading ---- */

static int add_value(cJSON *values, const char *name, const cJSON *item, struct df_err *err)
{
    const char *text = cJSON_IsString(item) ? item->valuestring : ""; /* null: an empty value */
    DF_CLEANUP(df_buf_wipe) struct df_buf value = DF_BUF_INIT(DF_LIMIT_SECRET);
    struct df_err why = {0};
    if (df_base64_decode(text, strlen(text), false, &value, &why) < 0 ||
        df_vault_check_value(df_buf_str(&value), value.len, &why) < 0)
        return df_source_unreadable(name, item->string, why.message, err);
    return df_source_add_value(values, name, item->string, df_buf_str(&value), err);
}

static int read_secret(const struct named_vault *v, const char *name, cJSON **ret,
                       struct df_err *err)
{
    const struct df_kube_at at = {
        .resource = &df_kube_secrets, .name_space = v->name_space, .name = name};
    struct df_err why = {0};
    if (df_kube_get(v->kube, &at, ret, &why) == 0)
        return 0;
    return why.cls == DF_ERR_NOT_FOUND ? df_err_pass(err, &why) : df_source_failed(err, &why);
}

static int get_named(struct df_vault *vault, const char *name, cJSON **ret, struct df_err *err)
{
    const struct named_vault *v = named_of(vault);
    DF_SECRET_JSON cJSON *secret = NULL;
    DF_SECRET_JSON cJSON *values = cJSON_CreateObject();
    const cJSON *item;
    if (df_check_alloc(values, err) < 0 || check_allowed(v, name, err) < 0 ||
        read_secret(v, name, &secret, err) < 0)
        return -1;
    if (is_guarded(v, secret))
        return fail_guarded(v, name, err);
    cJSON_ArrayForEach (item, df_json_at(secret, "data")) {
        if (add_value(values, name, item, err) < 0)
            return -1;
    }
    *ret = DF_TAKE(values);
    return 0;
}

/* ---- all of them ---- */

struct listing {
    const struct named_vault *vault;
    cJSON *list;
};

static int begin_list(void *arg, const char *resource_version, struct df_err *err)
{
    struct listing *l = arg;
    (void)resource_version, (void)err;
    while (l->list->child)
        cJSON_DeleteItemFromArray(l->list, 0);
    return 0;
}

static int add_listed(void *arg, const cJSON *secret, struct df_err *err)
{
    struct listing *l = arg;
    const char *name = df_kube_name(secret);
    return df_secret_source_allows(l->vault->source, name) && !is_guarded(l->vault, secret)
               ? df_source_add_name(l->list, name, err)
               : 0;
}

static int list_named(struct df_vault *vault, bool of_runs, cJSON **ret, struct df_err *err)
{
    static const char *const values[] = {"data", NULL};
    const struct named_vault *v = named_of(vault);
    const struct df_kube_at at = {.resource = &df_kube_secrets, .name_space = v->name_space};
    const struct df_kube_select select = {0};
    DF_JSON cJSON *list = cJSON_CreateArray();
    struct listing l = {v, list};
    struct df_err why = {0};
    const struct df_kube_sink sink = {begin_list, add_listed, &l, values};
    (void)of_runs;
    if (!list)
        return df_fail_oom(err);
    if (df_kube_list(v->kube, &at, &select, 0, &sink, &why) < 0)
        return df_source_failed(err, &why);
    *ret = DF_TAKE(list);
    return 0;
}

/* Reads what is allowed by name: it need not exist. */
static int check_named(struct df_vault *vault, struct df_err *err)
{
    const struct named_vault *v = named_of(vault);
    const cJSON *pattern;
    cJSON_ArrayForEach (pattern, df_json_at(v->source, "secrets")) {
        DF_SECRET_JSON cJSON *secret = NULL;
        struct df_err why = {0};
        if (strchr(pattern->valuestring, '*'))
            continue;
        if (df_never_is_secret(v->never, pattern->valuestring))
            return fail_guarded(v, pattern->valuestring, err);
        if (read_secret(v, pattern->valuestring, &secret, &why) < 0 && why.cls != DF_ERR_NOT_FOUND)
            return df_err_pass(err, &why);
        if (secret && is_guarded(v, secret))
            return fail_guarded(v, pattern->valuestring, err);
    }
    return 0;
}

static void close_named(struct df_vault *vault)
{
    free(vault);
}

static const struct df_vault_ops named_ops = {
    .close = close_named, .get = get_named, .list = list_named, .check = check_named};

int df_source_kube_open(const cJSON *source, struct df_kube *kube, const char *name_space,
                        const struct df_never *never, char **ret_place, struct df_vault **ret,
                        struct df_err *err)
{
    const char *own = df_json_str(source, "namespace");
    DF_FREE char *place = df_strf("a Secret in namespace %s", own ? own : name_space);
    struct named_vault *v = calloc(1, sizeof(*v));
    if (!v || !place) {
        free(v);
        return df_fail_oom(err);
    }
    *v = (struct named_vault){.vault = {.ops = &named_ops},
                              .kube = kube,
                              .source = source,
                              .never = never,
                              .name_space = own ? own : name_space};
    *ret = &v->vault;
    *ret_place = DF_TAKE(place);
    return 0;
}
