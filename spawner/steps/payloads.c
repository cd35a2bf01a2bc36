#include "spawner/steps/payloads.h"

#include "common/base/limits.h"
#include "common/crypto/crypto.h"

#define SEALED_EXTRA 1024 /* more than sealing adds */

/* The blob's name. The seal is bound to it. */
static void payload_key(const char *task, char ret[96])
{
    (void)snprintf(ret, 96, "payloads/%s", task);
}

int df_payload_put(struct df_spawner *s, const char *task, const char *text, size_t n,
                   struct df_err *err)
{
    unsigned char key[DF_KEY_LEN];
    char name[96];
    DF_BUF struct df_buf sealed = DF_BUF_INIT(DF_LIMIT_TERRAKUBE_PAYLOAD + SEALED_EXTRA);
    payload_key(task, name);
    if (df_vault_key(s->vault, "payload", key, err) < 0)
        return -1;
    int result = df_aead_seal(key, name, text, n, &sealed, err);
    explicit_bzero(key, sizeof(key));
    return result < 0 ? -1 : df_blob_put(s->blobs, name, sealed.data, sealed.len, err);
}

int df_payload_get(struct df_spawner *s, const char *task, struct df_buf *out, struct df_err *err)
{
    unsigned char key[DF_KEY_LEN];
    char name[96];
    DF_BUF struct df_buf sealed = DF_BUF_INIT(DF_LIMIT_TERRAKUBE_PAYLOAD + SEALED_EXTRA);
    struct df_err why = {0};
    payload_key(task, name);
    if (df_blob_get(s->blobs, name, &sealed, err) < 0 ||
        df_vault_key(s->vault, "payload", key, err) < 0)
        return -1;
    int result = df_aead_open(key, name, df_buf_str(&sealed), sealed.len, out, &why);
    explicit_bzero(key, sizeof(key));
    if (result < 0 && why.cls == DF_ERR_DENIED)
        return df_fail(err, DF_ERR_NOT_FOUND,
                       "the payload of %s does not open: somebody replaced the key of the vault",
                       task);
    return result < 0 ? df_err_pass(err, &why) : 0;
}

int df_payload_delete(struct df_spawner *s, const char *task, struct df_err *err)
{
    char name[96];
    payload_key(task, name);
    return df_blob_delete(s->blobs, name, err);
}
