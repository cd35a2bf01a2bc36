#include "spawner/api/idempotency.h"

#include "common/crypto/crypto.h"
#include "spawner/api/pages.h"
#include "spawner/http/rights.h"
#include "spawner/http/server.h"

#define KEY_LABEL "dayfly.dev/idempotency-key"
#define BODY_ANNOTATION "dayfly.dev/idempotency-body"
#define KEY_MAX 255

struct idempotency {
    char key[41];  /* hex */
    char body[65]; /* hex */
};

static bool is_key(const char *s)
{
    size_t n = 0;
    while (s[n] >= '!' && s[n] <= '~' && n <= KEY_MAX)
        n++;
    return n > 0 && n <= KEY_MAX && !s[n];
}

/* The digest of a body with secrets is keyed: it is stored in a document, and a short secret could
 * be guessed from a plain digest. */
static int digest_body(const struct df_request *req, const char *body, char ret[DF_SHA256_HEX],
                       struct df_err *err)
{
    unsigned char key[DF_KEY_LEN];
    struct df_sha256_ctx *c = NULL;
    if (!df_json_at(req->json, "secrets"))
        return df_sha256_hex(body, strlen(body), ret, err);
    if (df_vault_key(req->s->vault, "idempotency", key, err) < 0 || df_sha256_new(&c, err) < 0)
        return -1;
    int result = df_sha256_update(c, key, sizeof(key), err) < 0 ||
                         df_sha256_update(c, body, strlen(body), err) < 0
                     ? -1
                     : df_sha256_final_hex(c, ret, err);
    explicit_bzero(key, sizeof(key));
    df_sha256_free(c);
    return result;
}

static int digest_request(const struct df_request *req, const char *header, struct idempotency *ret,
                          struct df_err *err)
{
    char hex[DF_SHA256_HEX];
    DF_FREE char *scope = df_strf("%s\n%s\n%s\n%s", req->caller.name, req->route->pattern,
                                  req->params[0] ? req->params[0] : "", header);
    DF_FREE char *body = req->json ? df_json_print(req->json) : strdup("");
    if (!scope || !body)
        return df_fail_oom(err);
    int result = df_sha256_hex(scope, strlen(scope), hex, err) < 0
                     ? -1
                     : digest_body(req, body, ret->body, err);
    explicit_bzero(body, strlen(body));
    if (result < 0)
        return -1;
    (void)snprintf(ret->key, sizeof(ret->key), "%.40s", hex);
    return 0;
}

/* What its maker may not view any more counts as never made: its name is taken. */
static int find_created(const struct df_request *req, enum df_kind kind,
                        const struct idempotency *i, cJSON **ret_made, struct df_err *err)
{
    bool may_view = true;
    char label[sizeof(KEY_LABEL) + sizeof(i->key)];
    (void)snprintf(label, sizeof(label), KEY_LABEL "=%s", i->key);
    const struct df_store_list_options o = {.label = label, .limit = 1};
    DF_JSON cJSON *list = NULL;
    if (df_store_list(req->s->store, kind, &o, &list, NULL, err) < 0)
        return -1;
    DF_JSON cJSON *made = cJSON_DetachItemFromArray(list, 0);
    if (made && df_rights_views(req, kind, made, &may_view, err) < 0)
        return -1;
    if (!may_view)
        return 0;
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

/* {labels, annotations} */
static int make_marks(const struct idempotency *i, cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *marks = cJSON_CreateObject();
    cJSON *labels = df_json_object_at(marks, "labels");
    cJSON *annotations = df_json_object_at(marks, "annotations");
    if (df_json_set_str(labels, KEY_LABEL, i->key, err) < 0 ||
        df_json_set_str(annotations, BODY_ANNOTATION, i->body, err) < 0)
        return -1;
    *ret = DF_TAKE(marks);
    return 0;
}

static int create_keyed(struct df_request *req, struct df_response *res, enum df_kind kind,
                        df_creator create, const char *header, cJSON **ret, struct df_err *err)
{
    struct idempotency i = {0};
    DF_JSON cJSON *marks = NULL;
    if (!is_key(header))
        return df_fail(err, DF_ERR_USER,
                       "Idempotency-Key: must have 1 to %d characters from ! to ~, without spaces",
                       KEY_MAX);
    if (digest_request(req, header, &i, err) < 0 || find_created(req, kind, &i, ret, err) < 0)
        return -1;
    res->replayed = *ret != NULL;
    if (res->replayed)
        return 0;
    return make_marks(&i, &marks, err) < 0 ? -1 : create(req, marks, ret, err);
}

int df_create_once(struct df_request *req, struct df_response *res, enum df_kind kind,
                   df_creator create, struct df_err *err)
{
    DF_JSON cJSON *made = NULL;
    const char *header = df_request_header(req, "Idempotency-Key");
    int result;
    if (header) {
        (void)pthread_mutex_lock(&req->api->keyed);
        result = create_keyed(req, res, kind, create, header, &made, err);
        (void)pthread_mutex_unlock(&req->api->keyed);
    } else {
        result = create(req, NULL, &made, err);
    }
    return result < 0 ? -1 : df_respond_created(req, res, kind, made, err);
}
