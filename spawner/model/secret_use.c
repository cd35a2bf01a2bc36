/*
 * secret_use.c - who may use a secret or an integration: {executors, owner}; without `executors`
 * every executor may. A secret of a source has `source` instead of an owner. At the end the places
 * where a spec names secrets: df_secret_place_at() numbers them, and the questions after it walk
 * them.
 */
#include "spawner/model/secret_use.h"

#include "common/base/buf.h"
#include "common/base/limits.h"
#include "common/base/parse.h"

#define EVERY "*"

static const cJSON *executors_of(const cJSON *use)
{
    return cJSON_GetObjectItemCaseSensitive(use, "executors");
}

bool df_secret_use_covers(const cJSON *use, const char *executor)
{
    const cJSON *list = executors_of(use);
    return !list || df_json_has_string(list, executor);
}

/* ---- as text -------------------------------------------------------------------------------- */

static int add_name(cJSON *list, const char *name, struct df_err *err)
{
    if (!df_is_dns_label(name))
        return df_fail(err, DF_ERR_USER,
                       "executors: \"%.64s\" is not the name of an executor (a-z, 0-9, -); name "
                       "them as a,b, or * for every executor",
                       name);
    if (cJSON_GetArraySize(list) >= DF_LIMIT_SECRET_EXECUTORS)
        return df_fail(err, DF_ERR_USER, "executors: a secret names at most %d",
                       DF_LIMIT_SECRET_EXECUTORS);
    return df_json_append_str(list, name, err);
}

static int add_names(cJSON *list, const char *text, struct df_err *err)
{
    for (;;) {
        size_t n = strcspn(text, ",");
        DF_FREE char *name = strndup(text, n);
        if (df_check_alloc(name, err) < 0 || add_name(list, name, err) < 0)
            return -1;
        if (!text[n])
            return 0;
        text += n + 1;
    }
}

int df_secret_use_parse(const char *executors, const char *owner, cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *use = cJSON_CreateObject();
    if (!df_streq(executors, EVERY)) {
        cJSON *list = df_json_array_at(use, "executors");
        if (df_check_alloc(list, err) < 0 || add_names(list, executors, err) < 0)
            return -1;
    }
    if (df_json_add_str(use, "owner", owner, err) < 0)
        return -1;
    return df_check_alloc(*ret = DF_TAKE(use), err);
}

/* The executors as df_secret_use_parse() reads them; the caller frees. NULL if out of memory. */
static char *print_use(const cJSON *use)
{
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_LIMIT_SECRET_EXECUTORS * (DF_LIMIT_NAME + 1));
    const cJSON *list = executors_of(use), *item;
    cJSON_ArrayForEach (item, list) {
        (void)df_buf_addf(&text, "%s%s", text.len ? "," : "", cJSON_GetStringValue(item));
    }
    if (!list)
        (void)df_buf_adds(&text, EVERY);
    return df_buf_check(&text, NULL) < 0 ? NULL : strdup(df_buf_str(&text));
}

/* ---- checks --------------------------------------------------------------------------------- */

static const char *kind_of(const struct df_used *what)
{
    return what->is_integration ? "integration" : "secret";
}

static const char *refusal_of(const struct df_used *what)
{
    return what->is_integration ? "IntegrationNotAllowed" : "SecretNotAllowed";
}

int df_secret_use_check_change(const cJSON *use, const struct df_used *what, enum df_role role,
                               const char *actor, struct df_err *err)
{
    const char *owner = df_json_str(use, "owner");
    if (role >= DF_ROLE_ADMIN || (owner && df_streq(owner, actor)))
        return 0;
    return df_fail(err, DF_ERR_DENIED,
                   "%s \"%s\" belongs to %s: only its owner and an admin may change or delete it",
                   kind_of(what), what->name, owner ? owner : "nobody");
}

bool df_secret_use_is_entrusted(const cJSON *use, const char *executor, const char *actor)
{
    return executors_of(use) && df_secret_use_covers(use, executor) &&
           !df_streq(df_json_str(use, "owner"), actor);
}

int df_secret_use_refuse_maker(const cJSON *use, const struct df_used *what, const char *executor,
                               struct df_err *err)
{
    const char *owner = df_json_str(use, "owner");
    return df_fail_reason(err, DF_ERR_DENIED, refusal_of(what),
                          "the %s \"%s\" of %s is for the executor %s: only its owner or an admin "
                          "makes this executor, or takes it out of the list",
                          kind_of(what), what->name, owner ? owner : "nobody", executor);
}

/* How its owner or an admin allows it; NULL if out of memory. The caller frees. */
static char *way_out(const struct df_used *what, const char *executor)
{
    return what->is_integration
               ? df_strf("adds it to spec.executors: dayfly edit integration %s", what->name)
               : df_strf("allows it with: dayfly secret allow %s --executor %s", what->name,
                         executor);
}

int df_secret_use_check(const cJSON *use, const struct df_used *what, const char *executor,
                        struct df_err *err)
{
    DF_FREE char *who = print_use(use);
    DF_FREE char *way = way_out(what, executor);
    if (!who || !way)
        return df_fail_oom(err);
    if (df_secret_use_covers(use, executor))
        return 0;
    const char *source = df_json_str(use, "source");
    if (source)
        return df_fail_reason(err, DF_ERR_DENIED, refusal_of(what),
                              "executor %s may not use the secret \"%s\", which is for %.200s: so "
                              "says vault.sources.%s.executors in the service's configuration",
                              executor, what->name, *who ? who : "no executor", source);
    return df_fail_reason(
        err, DF_ERR_DENIED, refusal_of(what),
        "executor %s may not use the %s \"%s\", which is for %.200s; its owner or "
        "an admin %s",
        executor, kind_of(what), what->name, *who ? who : "no executor", way);
}

/* ---- places --------------------------------------------------------------------------------- */

bool df_secret_place_at(const cJSON *spec, size_t i, struct df_secret_place *ret)
{
    static const struct {
        const char *list, *name, *path;
    } lists[] = {
        [DF_SECRET_LISTED] = {"secrets", "name", "spec.secrets"},
        [DF_SECRET_OF_INTEGRATION] = {"integrations", "secretRef.name", "spec.integrations"}};
    for (size_t by = 0; by < DF_ARRAY_SIZE(lists); by++) {
        const cJSON *list = df_json_at(spec, lists[by].list);
        size_t n = (size_t)cJSON_GetArraySize(list);
        if (i < n) {
            const cJSON *entry = cJSON_GetArrayItem(list, (int)i);
            const char *name = df_json_str(entry, lists[by].name);
            *ret = (struct df_secret_place){(enum df_secret_place_kind)by, lists[by].path,
                                            name ? name : "", entry};
            return true;
        }
        i -= n;
    }
    const char *name = df_json_str(spec, "source.secretRef.name");
    *ret = (struct df_secret_place){DF_SECRET_OF_SOURCE, "spec.source.secretRef", name,
                                    df_json_at(spec, "source")};
    return i == 0 && name;
}

/* Is the key taken there? An entry of spec.secrets may list the keys that it takes. */
static bool takes_key(const struct df_secret_place *p, const char *key)
{
    const cJSON *keys =
        p->by == DF_SECRET_LISTED ? cJSON_GetObjectItemCaseSensitive(p->entry, "keys") : NULL;
    return !key || !keys || df_json_has_string(keys, key);
}

const char *df_secret_place_integration(const struct df_secret_place *p)
{
    return p->by == DF_SECRET_OF_INTEGRATION ? df_json_str(p->entry, "name") : NULL;
}

bool df_integration_is_used(const cJSON *spec, const char *integration)
{
    struct df_secret_place p;
    for (size_t i = 0; df_secret_place_at(spec, i, &p); i++)
        if (df_streq(df_secret_place_integration(&p), integration))
            return true;
    return false;
}

bool df_secret_is_used(const cJSON *spec, const char *secret, const char *key)
{
    struct df_secret_place p;
    for (size_t i = 0; df_secret_place_at(spec, i, &p); i++)
        if (df_streq(p.name, secret) && takes_key(&p, key))
            return true;
    return false;
}
