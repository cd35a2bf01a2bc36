#include "spawner/api/idempotency.h"

#include "common/crypto/crypto.h"

#define KEY_LABEL "dayfly.dev/idempotency-key"
#define BODY_ANNOTATION "dayfly.dev/idempotency-body"
#define KEY_MAX 255

static bool is_key(const char *s)
{
    size_t n = 0;
    while (s[n] >= '!' && s[n] <= '~' && n <= KEY_MAX)
        n++;
    return n > 0 && n <= KEY_MAX && !s[n];
}

static int digest(const struct df_request *req, const char *header, struct df_idempotency *ret,
                  struct df_err *err)
{
    char hex[DF_SHA256_HEX];
    DF_FREE char *scope = df_strf("%s\n%s\n%s\n%s", req->caller.name, req->route->pattern,
                                  req->params[0] ? req->params[0] : "", header);
    DF_FREE char *body = req->json ? df_json_print(req->json) : strdup("");
    if (!scope || !body)
        return df_fail_oom(err);
    if (df_sha256_hex(scope, strlen(scope), hex, err) < 0 ||
        df_sha256_hex(body, strlen(body), ret->body, err) < 0)
        return -1;
    (void)snprintf(ret->key, sizeof(ret->key), "%.40s", hex);
    return 0;
}

static int find(const struct df_request *req, enum df_kind kind, const struct df_idempotency *i,
                cJSON **ret_made, struct df_err *err)
{
    char label[sizeof(KEY_LABEL) + sizeof(i->key)];
    (void)snprintf(label, sizeof(label), KEY_LABEL "=%s", i->key);
    const struct df_store_list_options o = {.label = label, .limit = 1};
    DF_JSON cJSON *list = NULL;
    if (df_store_list(req->s->store, kind, &o, &list, NULL, err) < 0)
        return -1;
    DF_JSON cJSON *made = cJSON_DetachItemFromArray(list, 0);
    const cJSON *notes = df_json_at(made, "metadata.annotations");
    const char *body =
        cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(notes, BODY_ANNOTATION));
    if (made && !df_streq(body, i->body))
        return df_fail_reason(err, DF_ERR_USER, "IdempotencyKeyReused",
                              "this Idempotency-Key made %s from another body; use a new key",
                              df_json_str(made, "metadata.name"));
    *ret_made = DF_TAKE(made);
    return 0;
}

int df_idempotency_find(const struct df_request *req, enum df_kind kind, struct df_idempotency *ret,
                        cJSON **ret_made, struct df_err *err)
{
    *ret = (struct df_idempotency){0};
    *ret_made = NULL;
    const char *header = df_request_header(req, "Idempotency-Key");
    if (!header)
        return 0;
    if (!is_key(header))
        return df_fail(err, DF_ERR_USER,
                       "Idempotency-Key: must have 1 to %d characters from ! to ~, without spaces",
                       KEY_MAX);
    if (digest(req, header, ret, err) < 0)
        return -1;
    return find(req, kind, ret, ret_made, err);
}

int df_idempotency_mark(const struct df_idempotency *i, cJSON *metadata, struct df_err *err)
{
    if (!i->key[0])
        return 0;
    cJSON *labels = df_json_object_at(metadata, "labels");
    cJSON *annotations = df_json_object_at(metadata, "annotations");
    if (!labels || !annotations)
        return df_fail_oom(err);
    if (df_json_set_str(labels, KEY_LABEL, i->key, err) < 0)
        return -1;
    return df_json_set_str(annotations, BODY_ANNOTATION, i->body, err);
}
