#include "spawner/http/authority.h"

#include "common/base/limits.h"
#include "common/crypto/certificate.h"
#include "common/crypto/crypto.h"
#include "common/kube/kube.h"

#define CERTIFICATE "ca.crt"
#define KEY "ca.key"
enum { TRIES = 5 }; /* a conflict: another replica has filled the Secret; read it again */

static const char *part(const cJSON *secret, const char *name)
{
    const cJSON *data = cJSON_GetObjectItemCaseSensitive(secret, "data");
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(data, name));
}

static int decode(const char *base64, struct df_buf *to, struct df_err *err)
{
    return df_base64_decode(base64, strlen(base64), false, to, err);
}

static int write_authority(struct df_kube *kube, const struct df_kube_at *at, cJSON *secret,
                           const struct df_buf *key, const struct df_buf *certificate,
                           struct df_err *err)
{
    cJSON *data = cJSON_AddObjectToObject(secret, "stringData");
    if (!data || !cJSON_AddStringToObject(data, KEY, df_buf_str(key)) ||
        !cJSON_AddStringToObject(data, CERTIFICATE, df_buf_str(certificate)))
        return df_fail_oom(err);
    return df_kube_update(kube, at, secret, NULL, err);
}

static int create_authority(struct df_kube *kube, const struct df_kube_at *at, cJSON *secret,
                            struct df_buf *key, struct df_buf *certificate, struct df_err *err)
{
    struct df_buf new_key = DF_BUF_INIT(DF_LIMIT_CA);
    DF_BUF struct df_buf new_certificate = DF_BUF_INIT(DF_LIMIT_CA);
    int result =
        df_certificate_authority("dayfly certificate authority", &new_key, &new_certificate, err);
    if (result == 0)
        result = write_authority(kube, at, secret, &new_key, &new_certificate, err);
    if (result == 0) {
        (void)df_buf_add(key, new_key.data, new_key.len);
        (void)df_buf_add(certificate, new_certificate.data, new_certificate.len);
        result = df_buf_check(key, err) < 0 ? -1 : df_buf_check(certificate, err);
    }
    df_buf_wipe(&new_key);
    return result;
}

static int get_or_create(struct df_kube *kube, const struct df_kube_at *at, struct df_buf *key,
                         struct df_buf *certificate, struct df_err *err)
{
    DF_SECRET_JSON cJSON *secret = NULL;
    if (df_kube_get(kube, at, &secret, err) < 0)
        return -1;
    const char *key_text = part(secret, KEY), *certificate_text = part(secret, CERTIFICATE);
    if (!key_text && !certificate_text)
        return create_authority(kube, at, secret, key, certificate, err);
    if (!key_text || !certificate_text)
        return df_fail(err, DF_ERR_USER, "it has no %s; empty it, or store both keys",
                       key_text ? CERTIFICATE : KEY);
    return decode(key_text, key, err) < 0 ? -1 : decode(certificate_text, certificate, err);
}

int df_authority_shared(struct df_kube *kube, const char *name_space, const char *secret,
                        struct df_buf *key, struct df_buf *certificate, struct df_err *err)
{
    const struct df_kube_at at = {
        .resource = &df_kube_secrets, .name_space = name_space, .name = secret};
    struct df_err why = {0};
    for (int i = 0; i < TRIES; i++) {
        why = (struct df_err){0};
        if (get_or_create(kube, &at, key, certificate, &why) == 0)
            return 0;
        if (why.cls != DF_ERR_CONFLICT)
            break;
    }
    (void)df_err_pass(err, &why);
    return df_err_wrap(err, "server.tls.secret: Secret %s", secret);
}
