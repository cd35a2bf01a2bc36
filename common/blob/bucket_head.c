#include "common/blob/bucket_head.h"

#include "common/base/limits.h"
#include "common/blob/backend.h"
#include "common/blob/content.h"
#include "common/json/json.h"

static int add_members(cJSON *line, const struct df_blob_head *h, struct df_err *err)
{
    DF_CLEANUP(df_buf_wipe) struct df_buf seal = DF_BUF_INIT(DF_KIB);
    cJSON *chunks = cJSON_AddArrayToObject(line, "chunks");
    if (!chunks)
        return df_fail_oom(err);
    for (size_t i = 0; i < h->chunks.len; i++)
        if (df_json_append_str(chunks, h->chunks.items[i], err) < 0)
            return -1;
    if (df_base64_encode(h->seal, DF_KEY_LEN, false, &seal, err) < 0)
        return -1;
    return df_json_put(line, err, DF_STR("key", h->key), DF_NUM("size", h->size),
                       DF_NUM("chunkSize", h->chunk_size), DF_STR("seal", df_buf_str(&seal)));
}

int df_bucket_head_print(const struct df_keyring *keys, const char *name,
                         const struct df_blob_head *h, struct df_buf *out, struct df_err *err)
{
    DF_SECRET_JSON cJSON *line = cJSON_CreateObject();
    DF_CLEANUP(df_buf_wipe) struct df_buf text = DF_BUF_INIT(DF_LIMIT_BUCKET_HEAD);
    if (df_check_alloc(line, err) < 0 || add_members(line, h, err) < 0)
        return -1;
    char *printed = df_json_print(line);
    if (!printed)
        return df_fail_oom(err);
    (void)df_buf_addf(&text, "%s\n", printed);
    explicit_bzero(printed, strlen(printed));
    free(printed);
    if (df_buf_check(&text, err) < 0 ||
        df_blob_pack(df_buf_str(&h->tail), h->tail.len, &text, err) < 0)
        return -1;
    return df_keyring_seal(keys, name, df_buf_str(&text), text.len, out, err);
}

static int take_ids(const cJSON *line, struct df_strs *out, struct df_err *err)
{
    const cJSON *id = NULL;
    cJSON_ArrayForEach (id, df_json_at(line, "chunks")) {
        if (!cJSON_IsString(id) || strlen(id->valuestring) != 16)
            return df_fail(err, DF_ERR_SYSTEM, "not an id of a chunk");
        (void)df_strs_add(out, id->valuestring);
    }
    return df_strs_check(out, err);
}

static int take_members(const cJSON *line, const char *name, struct df_blob_head *h,
                        struct df_err *err)
{
    const char *seal = df_json_str(line, "seal");
    DF_CLEANUP(df_buf_wipe) struct df_buf key = DF_BUF_INIT(DF_KIB);
    h->size = df_json_int(line, "size", -1);
    h->chunk_size = df_json_int(line, "chunkSize", 0);
    if (!df_streq(df_json_str(line, "key"), h->key) || h->size < 0 || h->chunk_size <= 0 ||
        h->chunk_size > (int64_t)DF_LIMIT_BUCKET_OBJECT || !seal ||
        df_base64_decode(seal, strlen(seal), false, &key, NULL) < 0 || key.len != DF_KEY_LEN ||
        take_ids(line, &h->chunks, NULL) < 0)
        return df_blob_fail_damaged(name, err);
    memcpy(h->seal, key.data, DF_KEY_LEN);
    return 0;
}

static int take_tail(struct df_buf *packed, const char *name, struct df_blob_head *h,
                     struct df_err *err)
{
    int64_t n = h->size - (int64_t)h->chunks.len * h->chunk_size;
    if (n < 0 || n >= h->chunk_size ||
        df_blob_unpack(df_buf_str(packed), packed->len, (size_t)n, &h->tail, NULL) < 0)
        return df_blob_fail_damaged(name, err);
    return 0;
}

/* The class of a seal that does not open is DENIED: there it is said of whoever opens it. */
static int fail_sealed(const char *name, const struct df_err *why, struct df_err *err)
{
    if (why->cls != DF_ERR_DENIED)
        return df_err_pass(err, why);
    return df_fail_reason(err, DF_ERR_SYSTEM, *why->reason ? why->reason : DF_BLOB_DAMAGED,
                          "open %s: %s", name, why->message);
}

int df_bucket_head_parse(const struct df_keyring *keys, const char *name,
                         const struct df_buf *object, struct df_blob_head *h, struct df_err *err)
{
    DF_CLEANUP(df_buf_wipe) struct df_buf text = DF_BUF_INIT(DF_LIMIT_BUCKET_HEAD);
    DF_SECRET_JSON cJSON *line = NULL;
    struct df_err why = {0};
    if (df_keyring_open(keys, name, df_buf_str(object), object->len, &text, &why) < 0)
        return fail_sealed(name, &why, err);
    const char *end = memchr(df_buf_str(&text), '\n', text.len);
    if (!end || df_json_parse(text.data, (size_t)(end - text.data), &line, NULL) < 0)
        return df_blob_fail_damaged(name, err);
    if (take_members(line, name, h, err) < 0)
        return -1;
    df_buf_consume(&text, (size_t)(end + 1 - text.data));
    return take_tail(&text, name, h, err);
}
