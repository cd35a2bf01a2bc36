#include "spawner/steps/outputs.h"

#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/crypto/crypto.h"
#include "spawner/steps/step_auth.h"
#include "spawner/steps/steps.h"

#define SEALED_EXTRA 1024 /* more than sealing adds */

/* The blob's name. The seal is bound to it: a blob opened under another name is corrupt. */
static void outputs_key(const char *uid, char ret[96])
{
    (void)snprintf(ret, 96, "outputs/%s", uid);
}

int df_outputs_delete(struct df_spawner *s, const char *uid, struct df_err *err)
{
    char key[96];
    outputs_key(uid, key);
    return df_blob_delete(s->blobs, key, err);
}

static int put_sealed(struct df_spawner *s, const char *uid, const struct df_buf *text,
                      struct df_err *err)
{
    unsigned char key[DF_KEY_LEN];
    char name[96];
    DF_BUF struct df_buf sealed = DF_BUF_INIT(DF_LIMIT_OUTPUTS + SEALED_EXTRA);
    outputs_key(uid, name);
    if (df_vault_key(s->vault, "outputs", key, err) < 0)
        return -1;
    int result = df_aead_seal(key, name, df_buf_str(text), text->len, &sealed, err);
    explicit_bzero(key, sizeof(key));
    return result < 0 ? -1 : df_blob_put(s->blobs, name, sealed.data, sealed.len, err);
}

static int check_outputs(const struct df_buf *text, struct df_err *err)
{
    DF_SECRET_JSON cJSON *doc = NULL;
    const cJSON *output;
    if (df_json_parse(df_buf_str(text), text->len, &doc, err) < 0)
        return df_err_wrap(err, "outputs");
    bool good = cJSON_IsObject(doc);
    cJSON_ArrayForEach (output, doc)
        good = good && cJSON_IsObject(output);
    return good ? 0 : df_fail(err, DF_ERR_USER, "outputs: must be what `output -json` prints");
}

int df_step_put_outputs(struct df_spawner *s, const char *uid, const char *token, const char *path,
                        struct df_err *err)
{
    DF_JSON cJSON *task = NULL;
    DF_CLEANUP(df_buf_wipe) struct df_buf text = DF_BUF_INIT(DF_LIMIT_OUTPUTS);
    if (df_step_open(s, uid, token, &task, err) < 0 || df_fs_read(path, &text, err) < 0 ||
        check_outputs(&text, err) < 0)
        return -1;
    if (put_sealed(s, uid, &text, err) < 0 ||
        put_sealed(s, df_json_str(task, "spec.executorRef.uid"), &text, err) < 0)
        return -1;
    (void)unlink(path);
    return 0;
}

static int open_sealed(struct df_spawner *s, const char *name, const struct df_buf *sealed,
                       struct df_buf *text, struct df_err *err)
{
    unsigned char key[DF_KEY_LEN];
    if (df_vault_key(s->vault, "outputs", key, err) < 0)
        return -1;
    int result = df_aead_open(key, name, df_buf_str(sealed), sealed->len, text, err);
    explicit_bzero(key, sizeof(key));
    return result;
}

int df_outputs_get(struct df_spawner *s, const char *uid, bool show_sensitive, cJSON **ret,
                   struct df_err *err)
{
    char name[96];
    DF_BUF struct df_buf sealed = DF_BUF_INIT(DF_LIMIT_OUTPUTS + SEALED_EXTRA);
    DF_CLEANUP(df_buf_wipe) struct df_buf text = DF_BUF_INIT(DF_LIMIT_OUTPUTS);
    DF_SECRET_JSON cJSON *stored = NULL;
    outputs_key(uid, name);
    if (df_blob_get(s->blobs, name, &sealed, err) < 0 ||
        open_sealed(s, name, &sealed, &text, err) < 0 ||
        df_json_parse(df_buf_str(&text), text.len, &stored, err) < 0)
        return -1;
    return df_state_shown_outputs(stored, show_sensitive, ret, err);
}
