/*
 * spec.storage: defaults, and the location of a state. For a type other than `managed` the state is
 * in one of tofu's own backends, or in the backend of the module. The rules: storage_rules.c.
 */
#include "spawner/model/storage.h"

#include <ctype.h>

#include "common/base/limits.h"
#include "spawner/model/storage_types.h"

const char *df_storage_path_key(const char *type)
{
    const struct df_storage_type *s = df_storage_type_find(type);
    return s ? s->path_key : NULL;
}

bool df_storage_is_managed(const cJSON *doc)
{
    const char *type = df_json_str(doc, "spec.storage.type");
    return !type || df_streq(type, "managed");
}

/* ---- defaults ---- */

static int fill_path(cJSON *storage, const struct df_storage_type *s, const char *name,
                     struct df_err *err)
{
    if (!s->path_form || !name || df_json_at(storage, "path"))
        return 0;
    const char *end = strstr(s->path_form, "%s");
    DF_FREE char *path =
        df_strf("%.*s%s%s", (int)(end - s->path_form), s->path_form, name, end + 2);
    return path ? df_json_set_str(storage, "path", path, err) : df_fail_oom(err);
}

/* Without these the backend s3 would neither lock nor ask for encryption. */
static int fill_s3(cJSON *config, struct df_err *err)
{
    if (!df_json_at(config, "dynamodb_table") && !df_json_at(config, "use_lockfile") &&
        df_json_add_bool(config, "use_lockfile", true, err) < 0)
        return -1;
    return df_json_at(config, "encrypt") ? 0 : df_json_add_bool(config, "encrypt", true, err);
}

static int fill_address(cJSON *config, const char *name, const char *from, struct df_err *err)
{
    DF_FREE char *value = df_json_str(config, from) ? strdup(df_json_str(config, from)) : NULL;
    return !value || df_json_at(config, name) ? 0 : df_json_add_str(config, name, value, err);
}

/* Without both of these the backend http would not lock. */
static int fill_http(cJSON *config, struct df_err *err)
{
    return fill_address(config, "lock_address", "address", err) < 0
               ? -1
               : fill_address(config, "unlock_address", "lock_address", err);
}

int df_storage_fill(cJSON *spec, const char *name, struct df_err *err)
{
    cJSON *storage = cJSON_GetObjectItemCaseSensitive(spec, "storage");
    const struct df_storage_type *s = df_storage_type_find(df_json_str(storage, "type"));
    cJSON *config = cJSON_GetObjectItemCaseSensitive(storage, "config");
    if (!s)
        return 0;
    if (fill_path(storage, s, name, err) < 0)
        return -1;
    if (!cJSON_IsObject(config))
        return 0;
    if (df_streq(s->name, "s3"))
        return fill_s3(config, err);
    return df_streq(s->name, "http") ? fill_http(config, err) : 0;
}

/* ---- one executor for each location ---- */

/* The port of the text after a host, if it is the one that the scheme implies. */
static size_t standard_port(const char *url, const char *rest)
{
    const char *port = strncasecmp(url, "https:", 6) == 0 ? ":443" : ":80";
    size_t n = strlen(port);
    return df_starts_with(rest, port) && !isdigit((unsigned char)rest[n]) ? n : 0;
}

/* Adds a URL in one spelling: scheme and host in lower case, without a standard port or slashes at
 * the end. All addresses of Amazon's own service lead to the same buckets: "-", as without one. */
static void add_address(struct df_buf *text, const char *url)
{
    static const char own[] = ".amazonaws.com";
    const char *mark = strstr(url, "://"), *host = mark ? mark + 3 : url;
    const char *rest = host + strcspn(host, "/:");
    size_t end = strlen(rest), skip = standard_port(url, rest);
    size_t n = (size_t)(rest - host), m = sizeof(own) - 1;
    if (n > m && strncasecmp(rest - m, own, m) == 0) {
        (void)df_buf_adds(text, "-");
        return;
    }
    while (end > skip && rest[end - 1] == '/')
        end--;
    for (const char *p = url; p < rest; p++)
        (void)df_buf_addc(text, (char)tolower((unsigned char)*p));
    (void)df_buf_add(text, rest + skip, end - skip);
}

static void add_place(struct df_buf *text, const struct df_storage_place *place,
                      const cJSON *config)
{
    const char *value = df_json_str(config, place->name);
    if (!value && place->other)
        value = df_json_str(config, place->other);
    (void)df_buf_addc(text, ' ');
    if (value && place->is_address)
        add_address(text, value);
    else
        (void)df_buf_adds(text, value && !df_streq(value, place->standard) ? value : "-");
}

int df_storage_location(const cJSON *executor, char **ret, struct df_err *err)
{
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_LIMIT_DOCUMENT);
    DF_JSON cJSON *spec = cJSON_Duplicate(df_json_at(executor, "spec"), true);
    if (!spec)
        return df_fail_oom(err);
    if (df_storage_fill(spec, df_json_str(executor, "metadata.name"), err) < 0)
        return -1;
    const cJSON *storage = df_json_at(spec, "storage");
    const struct df_storage_type *s = df_storage_type_find(df_json_str(storage, "type"));
    const char *path = df_json_str(storage, "path");
    if (!s || !s->has_config || (s->path_key && !path)) {
        *ret = NULL;
        return 0;
    }
    (void)df_buf_adds(&text, s->name);
    for (const struct df_storage_place *p = s->place; p->name; p++)
        add_place(&text, p, df_json_at(storage, "config"));
    (void)df_buf_addf(&text, " %s", s->path_key ? path : "-");
    *ret = df_buf_take(&text);
    return *ret ? 0 : df_fail_oom(err);
}
