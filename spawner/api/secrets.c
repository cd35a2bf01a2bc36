#include "spawner/requests/secrets.h"
#include "common/base/parse.h"
#include "spawner/api/handlers.h"

/* Keys become environment variables (TF_VAR_<key>), or are the fixed keys of a source's secret
 * (`ssh-privatekey`, `ca.crt`). */
static bool is_key(const char *key)
{
    size_t n = strlen(key);
    return n > 0 && n <= 253 && !df_streq(key, ".") && !df_streq(key, "..") &&
           strspn(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") == n;
}

static int check_names(const struct df_request *req, struct df_err *err)
{
    if (!df_is_dns_label(req->params[0]))
        return df_fail(err, DF_ERR_USER, "secret name \"%.64s\": must be a DNS label (a-z, 0-9, -)",
                       req->params[0]);
    if (req->params[1] && !is_key(req->params[1]))
        return df_fail(err, DF_ERR_USER,
                       "secret key \"%.64s\": must be 1 to 253 of A-Z, a-z, 0-9, -, _ and .",
                       req->params[1]);
    return 0;
}

/* Says "*" for a secret that every executor may use, so that no client takes an absent list for
 * nobody. */
static int name_every_executor(cJSON *items, struct df_err *err)
{
    cJSON *secret;
    cJSON_ArrayForEach (secret, items) {
        if (!cJSON_HasObjectItem(secret, "executors") &&
            df_json_append_str(df_json_array_at(secret, "executors"), "*", err) < 0)
            return -1;
    }
    return 0;
}

int df_list_secrets(struct df_request *req, struct df_response *res, struct df_err *err)
{
    DF_JSON cJSON *items = NULL, *of_sources = NULL;
    if (df_vault_list(req->s->vault, &items, err) < 0 ||
        df_vault_list_sources(req->s->vault, &of_sources, err) < 0)
        return -1;
    for (cJSON *item; (item = cJSON_DetachItemFromArray(of_sources, 0));)
        if (df_json_append(items, item, err) < 0)
            return -1;
    if (name_every_executor(items, err) < 0)
        return -1;
    return df_respond_list(res, DF_TAKE(items), NULL, err);
}

/* Reads what all changes of a secret have in common. */
static int read_request(const struct df_request *req, struct df_secret_request *ret,
                        struct df_err *err)
{
    *ret = (struct df_secret_request){.name = req->params[0],
                                      .key = req->params[1],
                                      .executors = df_request_query(req, "executors"),
                                      .role = req->caller.role,
                                      .actor = req->caller.name};
    if (check_names(req, err) < 0)
        return -1;
    return df_request_flag(req, "force", &ret->force, err);
}

static int set_secret(struct df_request *req, const struct df_secret_request *request,
                      struct df_response *res, struct df_err *err)
{
    if (df_request_set_secret(req->s, request, err) < 0)
        return -1;
    df_respond_nothing(res);
    return 0;
}

int df_put_secret(struct df_request *req, struct df_response *res, struct df_err *err)
{
    struct df_secret_request request;
    if (read_request(req, &request, err) < 0)
        return -1;
    request.value = &req->body;
    return set_secret(req, &request, res, err);
}

int df_allow_secret(struct df_request *req, struct df_response *res, struct df_err *err)
{
    struct df_secret_request request;
    if (read_request(req, &request, err) < 0)
        return -1;
    if (!request.executors)
        return df_fail(err, DF_ERR_USER,
                       "name the executors that may use the secret: executors=a,b, or executors=* "
                       "for every executor");
    return set_secret(req, &request, res, err);
}

int df_delete_secret(struct df_request *req, struct df_response *res, struct df_err *err)
{
    struct df_secret_request request;
    if (read_request(req, &request, err) < 0 || df_request_delete_secret(req->s, &request, err) < 0)
        return -1;
    df_respond_nothing(res);
    return 0;
}
