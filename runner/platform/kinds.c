#include "runner/platform/kinds.h"

#include "common/base/parse.h"

void df_kinds_free(struct df_kinds *k)
{
    for (struct df_kind *one = k->first, *next; one; one = next) {
        next = one->next;
        free(one->group);
        free(one->version);
        free(one->kind);
        free(one->plural);
        free(one);
    }
    k->first = NULL;
    df_strs_free(&k->absent);
}

struct df_kube_resource df_kind_resource(const struct df_kind *k)
{
    return (struct df_kube_resource){k->group, k->version, k->plural};
}

/* "apps/v1" is group and version, "v1" a version of the core group. */
static size_t group_len(const char *api_version)
{
    const char *slash = strchr(api_version, '/');
    return slash ? (size_t)(slash - api_version) : 0;
}

static bool is_of(const struct df_kind *k, const char *api_version)
{
    size_t n = group_len(api_version);
    return strlen(k->group) == n && !strncmp(k->group, api_version, n) &&
           df_streq(k->version, api_version + n + (n > 0));
}

static const struct df_kind *find(const struct df_kinds *k, const char *api_version,
                                  const char *kind)
{
    for (const struct df_kind *one = k->first; one; one = one->next) {
        if (df_streq(one->kind, kind) && is_of(one, api_version))
            return one;
    }
    return NULL;
}

static int add(struct df_kinds *k, const char *api_version, const cJSON *resource,
               struct df_err *err)
{
    size_t n = group_len(api_version);
    struct df_kind *one = calloc(1, sizeof(*one));
    if (!one)
        return df_fail_oom(err);
    *one = (struct df_kind){.group = strndup(api_version, n),
                            .version = strdup(api_version + n + (n > 0)),
                            .kind = strdup(df_json_str(resource, "kind")),
                            .plural = strdup(df_json_str(resource, "name")),
                            .is_namespaced = df_json_bool(resource, "namespaced", true),
                            .next = k->first};
    k->first = one;
    return one->group && one->version && one->kind && one->plural ? 0 : df_fail_oom(err);
}

/* It becomes a part of a path, and may come from a status that others write. */
static bool is_version(const char *api_version)
{
    size_t n = group_len(api_version);
    for (size_t i = 0; i < n; i++) {
        if (!strchr("abcdefghijklmnopqrstuvwxyz0123456789-.", api_version[i]))
            return false;
    }
    return df_is_dns_label(api_version + n + (n > 0));
}

static int discover(struct df_kinds *k, struct df_kube *kube, const char *api_version,
                    struct df_err *err)
{
    DF_JSON cJSON *list = NULL;
    const cJSON *one;
    DF_FREE char *path = df_strf("/api%s/%s", group_len(api_version) ? "s" : "", api_version);
    if (df_check_alloc(path, err) < 0 || df_kube_get_raw(kube, path, &list, err) < 0)
        return -1;
    cJSON_ArrayForEach (one, df_json_at(list, "resources")) {
        const char *name = df_json_str(one, "name"), *kind = df_json_str(one, "kind");
        if (name && kind && !strchr(name, '/') && !find(k, api_version, kind) &&
            add(k, api_version, one, err) < 0)
            return -1;
    }
    return 0;
}

int df_kinds_find(struct df_kinds *k, struct df_kube *kube, const char *api_version,
                  const char *kind, const struct df_kind **ret, struct df_err *err)
{
    DF_FREE char *key = df_strf("%s %s", api_version, kind);
    struct df_err why = {0};
    if (df_check_alloc(key, err) < 0)
        return -1;
    *ret = find(k, api_version, kind);
    if (!*ret && !df_strs_has(&k->absent, key) && is_version(api_version)) {
        if (discover(k, kube, api_version, &why) < 0 && !df_kind_is_absent(&why))
            return df_err_pass(err, &why);
        *ret = find(k, api_version, kind);
    }
    if (*ret)
        return 0;
    (void)df_strs_add_new(&k->absent, key);
    return df_fail_reason(err, DF_ERR_NOT_FOUND, "KindUnknown", "the cluster has no kind %s of %s",
                          kind, api_version);
}
