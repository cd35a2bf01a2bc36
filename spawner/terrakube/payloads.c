#include "common/base/limits.h"
#include "common/crypto/crypto.h"
#include "common/terrakube/api.h"
#include "spawner/terrakube/terrakube.h"

#define SEALED_EXTRA 1024 /* more than sealing adds */

/* The blob's name. The seal is bound to it. */
static void payload_key(const char *task, char ret[96])
{
    (void)snprintf(ret, 96, DF_PAYLOAD_BLOB, task);
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

/* Appends the payload to out, which the caller wipes. NOT_FOUND: it is gone, or another key seals
 * it. */
static int get_payload(struct df_spawner *s, const char *task, struct df_buf *out,
                       struct df_err *err)
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

/* ---- the step document ---- */

/* An API without workspaces' folders, and a payload that cannot be read, leave it to the
 * payload. */
static int add_folder(struct df_spawner *s, const cJSON *task, cJSON *part, struct df_err *err)
{
    struct df_terrakube_payload p;
    struct df_terrakube_api *api = NULL;
    struct df_err why = {0};
    DF_FREE char *folder = NULL;
    df_terrakube_task_payload(task, &p);
    if (!p.workspace)
        return 0;
    if (df_terrakube_api_new(&df_terrakube_of(s)->settings, &p, DF_TIMEOUT_TERRAKUBE_MS, NULL, &api,
                             err) < 0)
        return -1;
    int result = df_terrakube_api_folder(api, &folder, &why);
    df_terrakube_api_free(api);
    if (result < 0 && why.cls != DF_ERR_NOT_FOUND)
        return df_err_pass_needed(err, &why);
    return df_json_add_str(part, "folder", folder, err);
}

int df_terrakube_part(struct df_spawner *s, const cJSON *task, cJSON **ret, struct df_err *err)
{
    DF_SECRET_JSON cJSON *part = cJSON_CreateObject();
    DF_CLEANUP(df_buf_wipe) struct df_buf payload = DF_BUF_INIT(DF_LIMIT_TERRAKUBE_PAYLOAD);
    cJSON *settings = part ? df_json_array_at(part, "settings") : NULL;
    if (!settings)
        return df_fail_oom(err);
    if (!s->upstream_data)
        return df_fail_reason(err, DF_ERR_USER, "InvalidStep",
                              "terrakube.listen is not set any more: set it, or let Terrakube send "
                              "the step elsewhere");
    for (size_t i = 0; i < df_terrakube_of(s)->environment.len; i++)
        if (df_json_append_str(settings, df_terrakube_of(s)->environment.items[i], err) < 0)
            return -1;
    if (get_payload(s, df_json_str(task, "metadata.name"), &payload, err) < 0 ||
        df_json_add_str(part, "payload", df_buf_str(&payload), err) < 0 ||
        add_folder(s, task, part, err) < 0)
        return -1;
    *ret = DF_TAKE(part);
    return 0;
}
