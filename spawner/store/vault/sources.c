#include "spawner/store/vault/sources.h"

#include <stdarg.h>

#include "spawner/model/secret_source.h"
#include "spawner/store/vault/vault_backend.h"

void df_sources_free(struct df_sources *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->len; i++) {
        free(s->items[i].name);
        free(s->items[i].place);
        cJSON_Delete(s->items[i].use);
        if (s->items[i].backend)
            s->items[i].backend->ops->close(s->items[i].backend);
    }
    free(s->items);
    free(s);
}

const struct df_source *df_sources_find(const struct df_sources *s, const char *name,
                                        const char **ret_rest)
{
    for (size_t i = 0; s && i < s->len; i++) {
        const char *rest = df_secret_source_rest(s->items[i].name, name);
        if (rest) {
            *ret_rest = rest;
            return &s->items[i];
        }
    }
    return NULL;
}

int df_source_check(const struct df_source *s, struct df_err *err)
{
    return s->backend->ops->check(s->backend, err) < 0 ? df_err_wrap(err, "source %s", s->name) : 0;
}

/* ---- lists ----------------------------------------------------------------------------------- */

/* Adds an entry for the secret with this name in the source. *ret is borrowed from the list. */
static int add_entry(cJSON *list, const struct df_source *s, const char *rest, cJSON **ret,
                     struct df_err *err)
{
    cJSON *entry = cJSON_Duplicate(s->use, true);
    DF_FREE char *name = df_strf("%s-%s", s->name, rest);
    if (df_json_append(list, entry, err) < 0)
        return -1;
    *ret = entry;
    return df_json_put(entry, err, DF_STR_ALLOC("name", name));
}

int df_sources_list_uses(const struct df_sources *s, cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *list = cJSON_CreateArray();
    cJSON *entry;
    if (!list)
        return df_fail_oom(err);
    for (size_t i = 0; s && i < s->len; i++)
        if (add_entry(list, &s->items[i], "*", &entry, err) < 0)
            return -1;
    *ret = DF_TAKE(list);
    return 0;
}

/* One that does not answer, or does not list, must not hide the others. */
static int add_failed(cJSON *list, const struct df_source *s, const struct df_err *why,
                      struct df_err *err)
{
    cJSON *entry;
    if (add_entry(list, s, "*", &entry, err) < 0)
        return -1;
    return df_json_put(entry, err, DF_ITEM("keys", cJSON_CreateArray()),
                       DF_STR("message", why->message));
}

static int add_listed(cJSON *list, const struct df_source *s, cJSON *found, struct df_err *err)
{
    cJSON *item, *entry;
    cJSON_ArrayForEach (item, found) {
        cJSON *keys = cJSON_Duplicate(cJSON_GetObjectItemCaseSensitive(item, "keys"), true);
        if (add_entry(list, s, df_json_str(item, "name"), &entry, err) < 0) {
            cJSON_Delete(keys);
            return -1;
        }
        if (df_json_add(entry, "keys", keys ? keys : cJSON_CreateArray(), err) < 0)
            return -1;
    }
    return 0;
}

int df_sources_list(const struct df_sources *s, cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *list = cJSON_CreateArray();
    if (!list)
        return df_fail_oom(err);
    for (size_t i = 0; s && i < s->len; i++) {
        const struct df_source *source = &s->items[i];
        DF_JSON cJSON *found = NULL;
        struct df_err why = {0};
        bool listed = source->backend->ops->list(source->backend, false, &found, &why) == 0;
        if (listed ? add_listed(list, source, found, err) < 0
                   : add_failed(list, source, &why, err) < 0)
            return -1;
    }
    *ret = DF_TAKE(list);
    return 0;
}

/* ---- failures -------------------------------------------------------------------------------- */

int df_source_fail(struct df_err *err, enum df_err_class cls, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    return df_fail_reason(err, cls,
                          cls == DF_ERR_RETRY ? "SecretSourceUnavailable" : "SecretSourceDenied",
                          "%s", text);
}

int df_source_failed(struct df_err *err, const struct df_err *why)
{
    bool may_pass = why->cls == DF_ERR_RETRY || why->cls == DF_ERR_LIMIT;
    return df_source_fail(err, may_pass ? DF_ERR_RETRY : DF_ERR_DENIED, "%s", why->message);
}
