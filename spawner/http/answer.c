/*
 * answer.c - what handlers read of a request (headers, query) and how they answer: a document with
 * its ETag, a list, nothing. df_hide_private() takes from a document what no client is shown.
 */
#include <microhttpd.h>

#include "common/base/parse.h"
#include "spawner/http/request.h"

struct df_connection *df_request_connection(const struct df_request *req)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(req->connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

const char *df_request_header(const struct df_request *req, const char *name)
{
    return MHD_lookup_connection_value(req->connection, MHD_HEADER_KIND, name);
}

const char *df_request_query(const struct df_request *req, const char *name)
{
    return df_target_query(&req->target, name);
}

int df_request_flag(const struct df_request *req, const char *name, bool *ret, struct df_err *err)
{
    const char *value = df_request_query(req, name);
    if (!value)
        return 0;
    if (!df_streq(value, "true") && !df_streq(value, "false") && *value)
        return df_fail(err, DF_ERR_USER, "?%s=%.64s: must be true or false", name, value);
    *ret = !df_streq(value, "false");
    return 0;
}

int df_request_number(const struct df_request *req, const char *name, int64_t min, int64_t max,
                      int64_t *ret, struct df_err *err)
{
    const char *value = df_request_query(req, name);
    if (value && df_parse_i64(value, min, max, ret, err) < 0)
        return df_err_wrap(err, "?%s", name);
    return 0;
}

int df_request_members(const struct df_request *req, const char *const *allowed, struct df_err *err)
{
    const cJSON *member;
    cJSON_ArrayForEach (member, req->json) {
        const char *const *name = allowed;
        while (*name && !df_streq(*name, member->string))
            name++;
        if (!*name)
            return df_fail_reason(err, DF_ERR_USER, "InvalidDocument",
                                  "%.64s: is not a known field", member->string);
    }
    return 0;
}

int df_respond_json(struct df_response *res, int status, const cJSON *doc, struct df_err *err)
{
    DF_FREE char *text = df_json_print_nul(doc);
    if (!text)
        return df_fail_oom(err);
    /* Reserves the whole size at once: a buffer that grows leaves copies of a secret in freed
     * memory. */
    size_t n = strlen(text);
    (void)df_buf_reserve(&res->body, n + 1);
    (void)df_buf_add(&res->body, text, n);
    (void)df_buf_addc(&res->body, '\n');
    if (res->secret)
        explicit_bzero(text, n);
    if (df_buf_check(&res->body, err) < 0)
        return df_err_wrap(err, "answer");
    res->status = status;
    res->content_type = "application/json";
    return 0;
}

int df_respond_list(struct df_response *res, cJSON *items, const char *cursor, struct df_err *err)
{
    DF_JSON cJSON *list = cJSON_CreateObject();
    if (!list) {
        cJSON_Delete(items);
        return df_fail_oom(err);
    }
    if (df_json_put(list, err, DF_ITEM("items", items), DF_STR("nextCursor", cursor)) < 0)
        return -1;
    return df_respond_json(res, 200, list, err);
}

void df_hide_private(cJSON *doc)
{
    cJSON_DeleteItemFromObjectCaseSensitive(cJSON_GetObjectItemCaseSensitive(doc, "status"),
                                            "auth");
}

bool df_etag_listed(const char *list, const cJSON *doc)
{
    const char *version = df_json_str(doc, "metadata.resourceVersion");
    if (!list || !version)
        return false;
    if (df_streq(list, "*"))
        return true;
    size_t n = strlen(version);
    for (const char *p = list; *p; p += strcspn(p, ",")) {
        p += strspn(p, " \t,");
        if (df_starts_with(p, "W/"))
            p += 2;
        if (*p == '"' && strncmp(p + 1, version, n) == 0 && p[n + 1] == '"')
            return true;
    }
    return false;
}

int df_respond_document(const struct df_request *req, struct df_response *res, int status,
                        cJSON *doc, struct df_err *err)
{
    const char *version = df_json_str(doc, "metadata.resourceVersion");
    (void)snprintf(res->etag, sizeof(res->etag), "\"%s\"", version ? version : "");
    if (df_streq(req->route->method, "GET") &&
        df_etag_listed(df_request_header(req, "If-None-Match"), doc)) {
        res->status = 304;
        return 0;
    }
    df_hide_private(doc);
    return df_respond_json(res, status, doc, err);
}

int df_respond_created(const struct df_request *req, struct df_response *res, enum df_kind kind,
                       cJSON *doc, struct df_err *err)
{
    const char *name = df_json_str(doc, "metadata.name");
    (void)snprintf(res->location, sizeof(res->location), "/v1/%s/%s", df_kind_plural(kind),
                   name ? name : "");
    (void)snprintf(res->audit_name, sizeof(res->audit_name), "%s", name ? name : "");
    return df_respond_document(req, res, 201, doc, err);
}

int df_request_check_match(const struct df_request *req, const cJSON *doc, struct df_err *err)
{
    const char *wanted = df_request_header(req, "If-Match");
    if (!wanted || df_etag_listed(wanted, doc))
        return 0;
    return df_fail_reason(err, DF_ERR_CONFLICT, "PreconditionFailed",
                          "%s was changed meanwhile (it is at version %s): read it again",
                          req->params[0], df_json_str(doc, "metadata.resourceVersion"));
}

void df_respond_nothing(struct df_response *res)
{
    res->status = 204;
    res->content_type = NULL;
}
