#include "spawner/store/documents/backend.h"

#include "common/base/limits.h"
#include "common/base/parse.h"
#include "spawner/store/store.h"

#define DEFAULT_PAGE 500
#define LARGEST_PAGE 1000

int df_page_start(const char *cursor, bool newest_first, int64_t *ret, struct df_err *err)
{
    *ret = newest_first ? INT64_MAX : 0;
    if (cursor && df_parse_i64(cursor, 1, INT64_MAX, ret, err) < 0)
        return df_err_wrap(err, "cursor");
    return 0;
}

int df_page_limit(int asked, int *ret, struct df_err *err)
{
    if (asked < 0)
        return df_fail(err, DF_ERR_USER, "limit: %d is negative", asked);
    *ret = !asked ? DEFAULT_PAGE : asked > LARGEST_PAGE ? LARGEST_PAGE : asked;
    return 0;
}

int df_page_cursor(int64_t last, char **ret, struct df_err *err)
{
    if (!ret)
        return 0;
    char *cursor = last ? df_strf("%lld", (long long)last) : NULL;
    if (last && !cursor)
        return df_fail_oom(err);
    *ret = cursor;
    return 0;
}

int df_backend_name(const cJSON *doc, const char **ret, struct df_err *err)
{
    const char *name = df_json_str(doc, "metadata.name");
    if (!name || !df_is_dns_label(name))
        return df_fail(err, DF_ERR_USER, "metadata.name: \"%s\" is not a DNS label",
                       name ? name : "");
    *ret = name;
    return 0;
}

int df_backend_print(enum df_kind kind, const char *name, const cJSON *doc, char **ret,
                     struct df_err *err)
{
    DF_FREE char *text = df_json_print(doc);
    if (!text)
        return df_fail_oom(err);
    if (strlen(text) > DF_LIMIT_DOCUMENT)
        return df_fail(err, DF_ERR_LIMIT, "%s \"%s\" is larger than %zu bytes", df_kind_name(kind),
                       name, DF_LIMIT_DOCUMENT);
    *ret = DF_TAKE(text);
    return 0;
}

int df_backend_check_unchanged(enum df_kind kind, const cJSON *doc,
                               const struct df_backend_known *known, struct df_err *err)
{
    const char *version = df_json_str(doc, "metadata.resourceVersion");
    const char *uid = df_json_str(doc, "metadata.uid");
    if (!version)
        return df_fail(err, DF_ERR_USER, "metadata.resourceVersion: is required");
    if (!df_streq(version, known->version) || (uid && !df_streq(uid, known->uid)))
        return df_backend_fail_conflict(kind, df_json_str(doc, "metadata.name"), err);
    return 0;
}

int df_store_fail_absent(enum df_kind kind, const char *key, struct df_err *err)
{
    return df_fail(err, DF_ERR_NOT_FOUND, "%s \"%.80s\" does not exist", df_kind_name(kind), key);
}

int df_backend_fail_exists(enum df_kind kind, const char *name, struct df_err *err)
{
    return df_fail_reason(err, DF_ERR_CONFLICT, "AlreadyExists", "%s \"%s\" already exists",
                          df_kind_name(kind), name);
}

int df_backend_fail_conflict(enum df_kind kind, const char *name, struct df_err *err)
{
    return df_fail_reason(err, DF_ERR_CONFLICT, "Conflict",
                          "%s \"%s\" was changed by somebody else: read it again",
                          df_kind_name(kind), name);
}

int df_backend_fail_other(enum df_kind kind, const char *name, struct df_err *err)
{
    return df_fail_reason(err, DF_ERR_CONFLICT, "Conflict",
                          "%s \"%s\" was deleted and created again meanwhile: read it again",
                          df_kind_name(kind), name);
}
