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

int df_list_secrets(struct df_request *req, struct df_response *res, struct df_err *err)
{
    cJSON *items = NULL;
    if (df_vault_list(req->s->vault, &items, err) < 0)
        return -1;
    return df_respond_list(res, items, NULL, err);
}

int df_put_secret(struct df_request *req, struct df_response *res, struct df_err *err)
{
    if (check_names(req, err) < 0 || df_vault_set(req->s->vault, req->params[0], req->params[1],
                                                  df_buf_str(&req->body), req->body.len, err) < 0)
        return -1;
    df_respond_nothing(res);
    return 0;
}

int df_delete_secret(struct df_request *req, struct df_response *res, struct df_err *err)
{
    if (check_names(req, err) < 0 ||
        df_vault_delete(req->s->vault, req->params[0], req->params[1], err) < 0)
        return -1;
    df_respond_nothing(res);
    return 0;
}
