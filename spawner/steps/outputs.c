/*
 * outputs.c - outputs are sealed blobs, one for the step and, unless it is a dry run, one for its
 * executor. First how they are sealed and opened, then put and get. An output may have a member
 * `shown`: its value with secrets masked, which stays as long as the value does.
 */
#include "spawner/steps/outputs.h"

#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/crypto/crypto.h"
#include "spawner/steps/step_auth.h"
#include "spawner/steps/steps.h"

#define SEALED_EXTRA 1024 /* more than sealing adds */

/* ---- sealed blobs ---- */

/* The blob's name. The seal is bound to it: a blob opened under another name is corrupt. */
static void blob_name(const char *folder, const char *uid, char ret[96])
{
    (void)snprintf(ret, 96, "%s/%s", folder, uid);
}

int df_outputs_delete(struct df_spawner *s, const char *uid, struct df_err *err)
{
    static const char *const folders[] = {DF_OUTPUTS_STORED, DF_OUTPUTS_SHOWN};
    for (size_t i = 0; i < DF_ARRAY_SIZE(folders); i++) {
        char name[96];
        blob_name(folders[i], uid, name);
        if (df_blob_delete(s->blobs, name, err) < 0)
            return -1;
    }
    return 0;
}

int df_outputs_seal(struct df_spawner *s, const char *folder, const char *uid, const char *text,
                    struct df_err *err)
{
    unsigned char key[DF_KEY_LEN];
    char name[96];
    DF_BUF struct df_buf sealed = DF_BUF_INIT(DF_LIMIT_OUTPUTS + SEALED_EXTRA);
    blob_name(folder, uid, name);
    if (df_vault_key(s->vault, "outputs", key, err) < 0)
        return -1;
    int result = df_aead_seal(key, name, text, strlen(text), &sealed, err);
    explicit_bzero(key, sizeof(key));
    return result < 0 ? -1 : df_blob_put(s->blobs, name, sealed.data, sealed.len, err);
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

int df_outputs_open(struct df_spawner *s, const char *folder, const char *uid, cJSON **ret,
                    struct df_err *err)
{
    char name[96];
    DF_BUF struct df_buf sealed = DF_BUF_INIT(DF_LIMIT_OUTPUTS + SEALED_EXTRA);
    DF_CLEANUP(df_buf_wipe) struct df_buf text = DF_BUF_INIT(DF_LIMIT_OUTPUTS);
    blob_name(folder, uid, name);
    if (df_blob_get(s->blobs, name, &sealed, err) < 0 ||
        open_sealed(s, name, &sealed, &text, err) < 0)
        return -1;
    return df_json_parse_nul(df_buf_str(&text), text.len, ret, err);
}

int df_outputs_read(const char *path, cJSON **ret, struct df_err *err)
{
    DF_CLEANUP(df_buf_wipe) struct df_buf text = DF_BUF_INIT(DF_LIMIT_OUTPUTS);
    DF_SECRET_JSON cJSON *doc = NULL;
    const cJSON *output;
    if (df_fs_read(path, &text, err) < 0)
        return -1;
    if (df_json_parse_nul(df_buf_str(&text), text.len, &doc, err) < 0)
        return df_err_wrap(err, "outputs");
    bool good = cJSON_IsObject(doc);
    cJSON_ArrayForEach (output, doc)
        good = good && cJSON_IsObject(output);
    if (!good)
        return df_fail(err, DF_ERR_USER, "outputs: must be what `output -json` prints");
    *ret = DF_TAKE(doc);
    return 0;
}

/* ---- put ---- */

/* What was masked stays masked while its value is the same: keys of an earlier step may be in it,
 * which this one does not know. */
static int keep_masks(const cJSON *before, cJSON *outputs, struct df_err *err)
{
    cJSON *output;
    cJSON_ArrayForEach (output, outputs) {
        const cJSON *old = cJSON_GetObjectItemCaseSensitive(before, output->string);
        const cJSON *shown = df_json_at(old, "shown");
        if (shown && df_json_equal(df_json_at(old, "value"), df_json_at(output, "value")) &&
            df_json_set(output, "shown", cJSON_Duplicate(shown, true), err) < 0)
            return -1;
    }
    return 0;
}

/* Outputs that are there but do not open are not shown either: they are replaced. */
static int keep_older_masks(struct df_spawner *s, const char *executor, cJSON *outputs,
                            struct df_err *err)
{
    DF_SECRET_JSON cJSON *before = NULL;
    struct df_err why = {0};
    return df_outputs_open(s, DF_OUTPUTS_STORED, executor, &before, &why) < 0
               ? 0
               : keep_masks(before, outputs, err);
}

int df_step_put_outputs(struct df_spawner *s, const char *uid, const char *token, const char *path,
                        struct df_err *err)
{
    DF_SHARED const cJSON *task = NULL;
    DF_SECRET_JSON cJSON *outputs = NULL;
    if (df_step_open(s, uid, token, &task, err) < 0 || df_outputs_read(path, &outputs, err) < 0)
        return -1;
    const char *executor = df_json_str(task, "spec.executorRef.uid");
    if (keep_older_masks(s, executor, outputs, err) < 0)
        return -1;
    char *text = df_json_print_nul(outputs);
    if (!text)
        return df_fail_oom(err);
    bool is_dry = df_json_bool(task, "spec.dryRun", false);
    int result = df_outputs_seal(s, DF_OUTPUTS_STORED, uid, text, err);
    if (result == 0 && !is_dry)
        result = df_outputs_seal(s, DF_OUTPUTS_STORED, executor, text, err);
    explicit_bzero(text, strlen(text));
    free(text);
    if (result == 0)
        (void)unlink(path);
    return result;
}

/* ---- get ---- */

static int show_masked(cJSON *outputs, struct df_err *err)
{
    cJSON *output;
    cJSON_ArrayForEach (output, outputs) {
        cJSON *shown = cJSON_DetachItemFromObjectCaseSensitive(output, "shown");
        if (shown && df_json_set(output, "value", shown, err) < 0)
            return -1;
    }
    return 0;
}

int df_outputs_get(struct df_spawner *s, const char *uid, enum df_outputs_view view, cJSON **ret,
                   struct df_err *err)
{
    DF_SECRET_JSON cJSON *stored = NULL;
    if (df_outputs_open(s, DF_OUTPUTS_STORED, uid, &stored, err) < 0 ||
        (view == DF_OUTPUTS_MASKED && show_masked(stored, err) < 0))
        return -1;
    return df_state_shown_outputs(stored, view == DF_OUTPUTS_SENSITIVE, ret, err);
}
