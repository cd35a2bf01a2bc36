/*
 * In the order of kube_object.h: directories (labels), content (base64), chunks,
 * heads. For each, first writing, then reading.
 */
#include "common/blob/kube_object.h"

#include "common/base/clock.h"
#include "common/base/limits.h"
#include "common/base/parse.h"
#include "common/blob/backend.h"
#include "common/blob/content.h"

#define KEY "dayfly.dev/key"
#define SIZE "dayfly.dev/size"
#define CHUNK_SIZE "dayfly.dev/chunk-size"
#define CHUNKS "dayfly.dev/chunks"
/* Labels with hashes of the key's first directory and of its first two; a list selects by them. */
#define FIRST "dayfly.dev/blob-directory"
#define SECOND "dayfly.dev/blob-subdirectory"

enum { DIGITS = 32, LEVEL = 3 };

/* ---- directories ---------------------------------------------------------------------------- */

static int digits_of(const char *text, size_t n, char out[DIGITS + 1], struct df_err *err)
{
    char hex[DF_SHA256_HEX];
    if (df_sha256_hex(text, n, hex, err) < 0)
        return -1;
    (void)snprintf(out, DIGITS + 1, "%.*s", DIGITS, hex);
    return 0;
}

/* Returns the length of the first `count` segments of a key; 0 if it has fewer. The last segment of
 * a key is not a directory, that of a prefix is. */
static size_t directory_len(const char *key, int count, bool is_prefix)
{
    const char *s = key;
    for (int i = 0; i < count; i++) {
        s += i > 0;
        s += strcspn(s, "/");
        if (!*s && (!is_prefix || i + 1 < count))
            return 0;
    }
    return (size_t)(s - key);
}

char *df_blob_head_selector(const char *prefix, struct df_err *err)
{
    char digits[DIGITS + 1] = "";
    size_t two = *prefix ? directory_len(prefix, 2, true) : 0;
    size_t one = *prefix ? directory_len(prefix, 1, true) : 0;
    size_t n = two ? two : one;
    if (n && digits_of(prefix, n, digits, err) < 0)
        return NULL;
    char *text = df_strf(DF_BLOB_LABEL "=head%s%s%s", n ? "," : "",
                         two   ? SECOND "="
                         : one ? FIRST "="
                               : "",
                         digits);
    if (!text)
        (void)df_fail_oom(err);
    return text;
}

static int add_directory(cJSON *labels, const char *label, const char *key, int count,
                         struct df_err *err)
{
    char digits[DIGITS + 1];
    size_t n = directory_len(key, count, false);
    if (!n)
        return 0;
    return digits_of(key, n, digits, err) < 0 ? -1 : df_json_add_str(labels, label, digits, err);
}

/* ---- content -------------------------------------------------------------------------------- */

/* Adds data.<name> of a Secret, or binaryData.<name> of a ConfigMap. */
static int add_bytes(cJSON *object, const char *map, const char *name, const struct df_buf *bytes,
                     struct df_err *err)
{
    DF_CLEANUP(df_buf_wipe) struct df_buf text = DF_BUF_INIT(DF_LIMIT_KUBE_OBJECT);
    cJSON *data = df_json_object_at(object, map);
    if (df_check_alloc(data, err) < 0 ||
        df_base64_encode(df_buf_str(bytes), bytes->len, false, &text, err) < 0)
        return -1;
    return df_json_add_str(data, name, df_buf_str(&text), err);
}

/* -1 if it is absent or not base64. */
static int get_bytes(const cJSON *object, const char *path, struct df_buf *out)
{
    const char *text = df_json_str(object, path);
    return text ? df_base64_decode(text, strlen(text), false, out, NULL) : -1;
}

static int expand_content(const char *name, const struct df_buf *packed, size_t n,
                          struct df_buf *out, struct df_err *err)
{
    struct df_err why = {0};
    if (df_blob_unpack(df_buf_str(packed), packed->len, n, out, &why) == 0)
        return 0;
    return why.cls == DF_ERR_SYSTEM ? df_blob_fail_damaged(name, err) : df_err_pass(err, &why);
}

/* ---- chunks --------------------------------------------------------------------------------- */

static int begin_object(cJSON *object, const char *kind, const char *name, const char *role,
                        struct df_err *err)
{
    cJSON *metadata = df_json_object_at(object, "metadata");
    cJSON *labels = df_json_object_at(metadata, "labels");
    if (df_json_put(object, err, DF_STR("apiVersion", "v1"), DF_STR("kind", kind)) < 0 ||
        df_json_add_str(metadata, "name", name, err) < 0)
        return -1;
    return df_json_add_str(labels, DF_BLOB_LABEL, role, err);
}

int df_blob_chunk_print(const struct df_blob_head *h, const char *id, const void *bytes, size_t n,
                        cJSON **ret, struct df_err *err)
{
    struct df_blob_chunk_name name = df_blob_chunk_name(h, id);
    DF_CLEANUP(df_buf_wipe) struct df_buf packed = DF_BUF_INIT(DF_LIMIT_KUBE_OBJECT);
    DF_BUF struct df_buf sealed = DF_BUF_INIT(DF_LIMIT_KUBE_OBJECT);
    DF_JSON cJSON *map = cJSON_CreateObject();
    if (df_check_alloc(map, err) < 0 || df_blob_pack(bytes, n, &packed, err) < 0 ||
        df_aead_seal(h->seal, name.text, df_buf_str(&packed), packed.len, &sealed, err) < 0 ||
        begin_object(map, "ConfigMap", name.text, "chunk", err) < 0 ||
        df_json_add_bool(map, "immutable", true, err) < 0 ||
        add_bytes(map, "binaryData", "content", &sealed, err) < 0)
        return -1;
    *ret = DF_TAKE(map);
    return 0;
}

int df_blob_chunk_parse(const cJSON *map, const struct df_blob_head *h, struct df_buf *out,
                        struct df_err *err)
{
    const char *name = df_kube_name(map);
    DF_BUF struct df_buf sealed = DF_BUF_INIT(DF_LIMIT_KUBE_OBJECT);
    DF_CLEANUP(df_buf_wipe) struct df_buf packed = DF_BUF_INIT(DF_LIMIT_KUBE_OBJECT);
    if (!name || get_bytes(map, "binaryData.content", &sealed) < 0 ||
        df_aead_open(h->seal, name, df_buf_str(&sealed), sealed.len, &packed, NULL) < 0)
        return df_blob_fail_damaged(name ? name : h->name, err);
    return expand_content(name, &packed, (size_t)h->chunk_size, out, err);
}

/* ---- heads ---------------------------------------------------------------------------------- */

static int add_number(cJSON *annotations, const char *name, int64_t number, struct df_err *err)
{
    char text[24];
    (void)snprintf(text, sizeof(text), "%lld", (long long)number);
    return df_json_add_str(annotations, name, text, err);
}

static int fill_head(cJSON *secret, const struct df_blob_head *h, struct df_err *err)
{
    cJSON *metadata = df_json_object_at(secret, "metadata");
    cJSON *annotations = df_json_object_at(metadata, "annotations");
    cJSON *labels = df_json_object_at(metadata, "labels");
    DF_FREE char *chunks = df_strs_join(&h->chunks, " ");
    if ((*h->version && df_json_add_str(metadata, "resourceVersion", h->version, err) < 0) ||
        add_directory(labels, FIRST, h->key, 1, err) < 0 ||
        add_directory(labels, SECOND, h->key, 2, err) < 0 ||
        df_json_add_str(annotations, KEY, h->key, err) < 0 ||
        add_number(annotations, SIZE, h->size, err) < 0 ||
        add_number(annotations, CHUNK_SIZE, h->chunk_size, err) < 0)
        return -1;
    return df_json_put(annotations, err, DF_STR_ALLOC(CHUNKS, chunks));
}

static int fill_data(cJSON *secret, const struct df_blob_head *h, struct df_err *err)
{
    DF_CLEANUP(df_buf_wipe) struct df_buf key = DF_BUF_INIT(DF_KEY_LEN);
    DF_CLEANUP(df_buf_wipe) struct df_buf packed = DF_BUF_INIT(DF_LIMIT_KUBE_OBJECT);
    if (df_buf_add(&key, h->seal, DF_KEY_LEN) < 0)
        return df_buf_check(&key, err);
    if (df_blob_pack(df_buf_str(&h->tail), h->tail.len, &packed, err) < 0 ||
        add_bytes(secret, "data", "content", &packed, err) < 0)
        return -1;
    return add_bytes(secret, "data", "key", &key, err);
}

int df_blob_head_print(const struct df_blob_head *h, cJSON **ret, struct df_err *err)
{
    DF_SECRET_JSON cJSON *secret = cJSON_CreateObject();
    if (df_check_alloc(secret, err) < 0 ||
        begin_object(secret, "Secret", h->name, "head", err) < 0 ||
        df_json_add_str(secret, "type", "dayfly.dev/blob", err) < 0 ||
        fill_head(secret, h, err) < 0 || fill_data(secret, h, err) < 0 ||
        df_kube_disown_fields(df_json_object_at(secret, "metadata"), err) < 0)
        return -1;
    *ret = DF_TAKE(secret);
    return 0;
}

static int parse_data(const cJSON *secret, struct df_blob_head *h, size_t tail, struct df_err *err)
{
    DF_CLEANUP(df_buf_wipe) struct df_buf key = DF_BUF_INIT(DF_LIMIT_KUBE_OBJECT);
    DF_CLEANUP(df_buf_wipe) struct df_buf packed = DF_BUF_INIT(DF_LIMIT_KUBE_OBJECT);
    if (get_bytes(secret, "data.key", &key) < 0 || key.len != DF_KEY_LEN ||
        get_bytes(secret, "data.content", &packed) < 0)
        return df_blob_fail_damaged(h->name, err);
    memcpy(h->seal, key.data, DF_KEY_LEN);
    return expand_content(h->name, &packed, tail, &h->tail, err);
}

static int get_number(const cJSON *secret, const char *name, int64_t min, int64_t max, int64_t *ret)
{
    const char *text = df_kube_annotation(secret, name);
    return text ? df_parse_i64(text, min, max, ret, NULL) : -1;
}

static int get_ids(const cJSON *secret, struct df_strs *out, struct df_err *err)
{
    const char *s = df_kube_annotation(secret, CHUNKS);
    while (s && *s) {
        size_t n = strcspn(s, " ");
        (void)df_strs_addf(out, "%.*s", (int)n, s);
        s += n + (s[n] == ' ');
    }
    return df_strs_check(out, err);
}

int df_blob_head_parse(const cJSON *secret, bool whole, struct df_blob_head *h, struct df_err *err)
{
    const char *version = df_kube_version(secret);
    if (!version || !df_streq(df_kube_annotation(secret, KEY), h->key) ||
        get_number(secret, SIZE, 0, (int64_t)DF_LIMIT_BLOB_KUBE, &h->size) < 0 ||
        get_number(secret, CHUNK_SIZE, 1, (int64_t)DF_LIMIT_BLOB_KUBE, &h->chunk_size) < 0)
        return df_blob_fail_damaged(h->name, err);
    if (get_ids(secret, &h->chunks, err) < 0)
        return -1;
    int64_t tail = h->size - (int64_t)h->chunks.len * h->chunk_size;
    if (tail < 0 || tail >= h->chunk_size)
        return df_blob_fail_damaged(h->name, err);
    (void)snprintf(h->version, sizeof(h->version), "%s", version);
    return whole ? parse_data(secret, h, (size_t)tail, err) : 0;
}

int64_t df_blob_head_size(const cJSON *secret)
{
    int64_t size = 0;
    return get_number(secret, SIZE, 0, (int64_t)DF_LIMIT_BLOB_KUBE, &size) < 0 ? 0 : size;
}

const char *df_blob_head_key(const cJSON *secret)
{
    return df_kube_annotation(secret, KEY);
}

int df_blob_head_chunks(const cJSON *secret, struct df_strs *out, struct df_err *err)
{
    DF_STRS struct df_strs ids = {0};
    if (get_ids(secret, &ids, err) < 0)
        return -1;
    for (size_t i = 0; i < ids.len; i++)
        (void)df_strs_addf(out, "%s-%s", df_kube_name(secret), ids.items[i]);
    return df_strs_check(out, err);
}
