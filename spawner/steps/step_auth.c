#include "spawner/steps/step_auth.h"

#include "common/base/parse.h"

int df_step_check_token(const cJSON *task, const char *which, const char *token, struct df_err *err)
{
    char hash[DF_SHA256_HEX], path[32];
    (void)snprintf(path, sizeof(path), "status.auth.%s", which);
    const char *known = df_json_str(task, path);
    if (df_sha256_hex(token ? token : "", token ? strlen(token) : 0, hash, err) < 0)
        return -1;
    if (!known || !token || !df_secret_equal(known, hash))
        return df_fail(err, DF_ERR_DENIED, "this is not the %s token of step %s", which,
                       df_json_str(task, "metadata.name"));
    return 0;
}

int df_step_fail_over(struct df_err *err)
{
    return df_fail_reason(err, DF_ERR_CONFLICT, "StepOver", "the step is over");
}

int df_step_open(struct df_spawner *s, const char *uid, const char *token, const cJSON **ret,
                 struct df_err *err)
{
    DF_SHARED const cJSON *task = NULL;
    if (df_store_look_by_uid(s->store, DF_KIND_TASK_ACTION, uid, &task, err) < 0 ||
        df_step_check_token(task, "step", token, err) < 0)
        return -1;
    if (df_task_is_final(task))
        return df_step_fail_over(err);
    *ret = DF_TAKE(task);
    return 0;
}

int df_step_check(struct df_spawner *s, const char *uid, const char *token, struct df_err *err)
{
    DF_SHARED const cJSON *task = NULL;
    if (df_store_look_by_uid(s->store, DF_KIND_TASK_ACTION, uid, &task, err) < 0)
        return -1;
    return df_step_check_token(task, "step", token, err);
}

int df_step_make_token(struct df_spawner *s, const char *uid, const char *claim_id,
                       const char *which, char ret_token[DF_SHA256_HEX],
                       char ret_hash[DF_SHA256_HEX], struct df_err *err)
{
    unsigned char key[DF_KEY_LEN], mac[DF_SHA256_LEN];
    char *claim = df_strf("%s\n%s\n%s", which, uid, claim_id);
    int result = df_check_alloc(claim, err);
    if (result == 0)
        result = df_vault_key(s->vault, "step-token", key, err);
    if (result == 0)
        result = df_hmac_sha256(key, sizeof(key), claim, strlen(claim), mac, err);
    explicit_bzero(key, sizeof(key));
    df_str_wipe(&claim);
    if (result < 0)
        return -1;
    df_hex(mac, sizeof(mac), ret_token);
    explicit_bzero(mac, sizeof(mac));
    return df_sha256_hex(ret_token, strlen(ret_token), ret_hash, err);
}
