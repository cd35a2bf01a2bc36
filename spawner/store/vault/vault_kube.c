/*
 * The Kubernetes backend of the vault: Secrets with our label. An update requires the
 * resourceVersion that was read, because kubectl and other replicas write, too.
 */
#include "common/base/limits.h"
#include "common/blob/blob.h"
#include "common/kube/kube.h"
#include "spawner/store/vault/vault_backend.h"

#define LABEL "dayfly.dev/vault"
#define OF_RUN "run" /* values of one run; "true": a named secret */
#define KEY_SECRET "dayfly-key"
/* A token that was revoked must not come back with a backup of the namespace. */
#define NO_BACKUP "velero.io/exclude-from-backup"

/* Annotations with the use of a secret (model/secret_use.h): names, separated by commas. Without
 * the first one, or with "*", every executor may use it. */
#define EXECUTORS "dayfly.dev/executors"
#define OWNER "dayfly.dev/owner"

/* Other writers may change the same Secret; in each round one of them succeeds. */
enum { TRIES = 100 };

struct kube_vault {
    struct df_vault vault;
    struct df_kube *kube; /* borrowed */
    char *name_space;
};

static struct kube_vault *kube_of(struct df_vault *v)
{
    return (struct kube_vault *)v; /* its first member */
}

static struct df_kube_at secret_at(const struct kube_vault *v, const char *name)
{
    return (struct df_kube_at){
        .resource = &df_kube_secrets, .name_space = v->name_space, .name = name};
}

/* ---- one Secret ----------------------------------------------------------------------------- */

/* *ret is NULL if it does not exist; the caller wipes it. */
static int read_secret(const struct kube_vault *v, const char *name, cJSON **ret,
                       struct df_err *err)
{
    struct df_kube_at at = secret_at(v, name);
    struct df_err why = {0};
    cJSON *secret = NULL;
    if (df_kube_get(v->kube, &at, &secret, &why) < 0 && why.cls != DF_ERR_NOT_FOUND)
        return df_err_pass(err, &why);
    *ret = secret;
    return 0;
}

/* Returns the value that the label of this Secret must have. */
static const char *label_of(const char *name)
{
    return df_starts_with(name, DF_VAULT_RUN_PREFIX) ? OF_RUN : "true";
}

static bool is_ours(const char *name, const cJSON *secret)
{
    return df_streq(df_kube_label(secret, LABEL), label_of(name));
}

static cJSON *data_of(const cJSON *secret)
{
    return cJSON_GetObjectItemCaseSensitive(secret, "data");
}

static int set_value(cJSON *secret, const char *key, const void *value, size_t n,
                     struct df_err *err)
{
    DF_CLEANUP(df_buf_wipe) struct df_buf text = DF_BUF_INIT(2 * DF_LIMIT_SECRET_VALUE);
    cJSON *data = df_json_object_at(secret, "data");
    if (df_check_alloc(data, err) < 0 || df_base64_encode(value, n, false, &text, err) < 0)
        return -1;
    return df_json_set_str(data, key, df_buf_str(&text), err);
}

/* Builds a Secret with one value; the caller wipes it. label: our label, or NULL. */
static int make_secret(const char *name, const char *label, const char *key, const char *value,
                       size_t n, cJSON **ret, struct df_err *err)
{
    DF_SECRET_JSON cJSON *secret = cJSON_CreateObject();
    cJSON *metadata = df_json_object_at(secret, "metadata");
    cJSON *labels = df_json_object_at(metadata, "labels");
    if (df_check_alloc(labels, err) < 0 ||
        df_json_put(secret, err, DF_STR("apiVersion", "v1"), DF_STR("kind", "Secret")) < 0 ||
        df_json_add_str(metadata, "name", name, err) < 0 ||
        (label && df_json_add_str(labels, label, label_of(name), err) < 0) ||
        (df_starts_with(name, DF_VAULT_TOKENS_PREFIX) &&
         df_json_add_str(labels, NO_BACKUP, "true", err) < 0) ||
        set_value(secret, key, value, n, err) < 0)
        return -1;
    *ret = DF_TAKE(secret);
    return 0;
}

static int create_secret(const struct kube_vault *v, const cJSON *secret, struct df_err *err)
{
    struct df_kube_at at = secret_at(v, NULL);
    at.metadata_only = true;
    return df_kube_create(v->kube, &at, secret, NULL, err);
}

static int update_secret(const struct kube_vault *v, const char *name, const cJSON *secret,
                         struct df_err *err)
{
    struct df_kube_at at = secret_at(v, name);
    at.metadata_only = true;
    return df_kube_update(v->kube, &at, secret, NULL, err);
}

/* CONFLICT if it was changed or deleted in the meantime: the caller reads again. */
static int delete_secret(const struct kube_vault *v, const char *name, const cJSON *secret,
                         struct df_err *err)
{
    struct df_kube_at at = secret_at(v, name);
    struct df_kube_delete_options o = DF_KUBE_DELETE_OPTIONS;
    struct df_err why = {0};
    o.resource_version = df_kube_version(secret);
    if (df_kube_delete(v->kube, &at, &o, &why) == 0)
        return 0;
    if (why.cls == DF_ERR_NOT_FOUND)
        why.cls = DF_ERR_CONFLICT;
    return df_err_pass(err, &why);
}

/* ---- the use -------------------------------------------------------------------------------- */

static int set_annotation(cJSON *annotations, const char *key, const char *value,
                          struct df_err *err)
{
    if (value)
        return df_json_set_str(annotations, key, value, err);
    cJSON_DeleteItemFromObjectCaseSensitive(annotations, key);
    return 0;
}

/* Writes the use (NULL: as before) into the Secret. */
static int set_use(cJSON *secret, const cJSON *use, struct df_err *err)
{
    cJSON *metadata = df_json_object_at(secret, "metadata");
    cJSON *annotations = use ? df_json_object_at(metadata, "annotations") : NULL;
    DF_BUF struct df_buf names = DF_BUF_INIT(DF_LIMIT_ANNOTATION);
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(use, "executors"), *item;
    if (!use)
        return 0;
    if (!annotations)
        return df_fail_oom(err);
    cJSON_ArrayForEach (item, list) {
        (void)df_buf_addf(&names, "%s%s", names.len ? "," : "", cJSON_GetStringValue(item));
    }
    if (df_buf_check(&names, err) < 0 ||
        set_annotation(annotations, EXECUTORS, list ? df_buf_str(&names) : NULL, err) < 0)
        return -1;
    return set_annotation(annotations, OWNER, df_json_str(use, "owner"), err);
}

/* A name that is not one, written with kubectl, allows nothing. */
static int take_executors(const char *text, cJSON *to, struct df_err *err)
{
    cJSON *list = df_json_array_at(to, "executors");
    if (!list)
        return df_fail_oom(err);
    while (*text) {
        text += strspn(text, ", ");
        size_t n = strcspn(text, ", ");
        DF_FREE char *name = strndup(text, n);
        if (df_check_alloc(name, err) < 0 || (n && df_json_append_str(list, name, err) < 0))
            return -1;
        text += n;
    }
    return 0;
}

/* Sets the members of to that the Secret's annotations have. */
static int take_use(const cJSON *secret, cJSON *to, struct df_err *err)
{
    const char *executors = df_kube_annotation(secret, EXECUTORS);
    bool is_every = !executors || df_streq(executors, "*"); /* as people may write it, too */
    if (!is_every && take_executors(executors, to, err) < 0)
        return -1;
    return df_json_add_str(to, "owner", df_kube_annotation(secret, OWNER), err);
}

/* ---- changing ------------------------------------------------------------------------------- */

struct change {
    const char *name;
    struct df_vault_entry entry; /* of a deletion: only its key, or NULL for the whole secret */
};

/* One attempt on the current Secret (NULL: absent). CONFLICT: another writer was faster. */
typedef int (*vault_attempt)(const struct kube_vault *v, cJSON *secret, const struct change *c,
                             struct df_err *err);

static int retry_conflicts(const struct kube_vault *v, vault_attempt attempt,
                           const struct change *c, struct df_err *err)
{
    for (int i = 1;; i++) {
        DF_SECRET_JSON cJSON *secret = NULL;
        struct df_err why = {0};
        if (read_secret(v, c->name, &secret, err) < 0)
            return -1;
        if (attempt(v, secret, c, &why) == 0)
            return 0;
        if (why.cls != DF_ERR_CONFLICT || i == TRIES || df_streq(why.reason, "NotOurs"))
            return df_err_pass(err, &why);
    }
}

static int fail_not_ours(const struct kube_vault *v, const char *name, struct df_err *err)
{
    return df_fail_reason(err, DF_ERR_CONFLICT, "NotOurs",
                          "the Secret %s in namespace %s does not belong to dayfly: label it " LABEL
                          "=true if dayfly may use it, or choose another name",
                          name, v->name_space);
}

static size_t decoded_len(const char *base64)
{
    size_t n = strlen(base64);
    return n / 4 * 3 - (n > 0 && base64[n - 1] == '=') - (n > 1 && base64[n - 2] == '=');
}

/* Returns the size of all other values. */
static size_t size_of_others(const cJSON *data, const char *key)
{
    size_t sum = 0;
    const cJSON *item;
    cJSON_ArrayForEach (item, data) {
        if (!df_streq(item->string, key) && cJSON_IsString(item))
            sum += decoded_len(item->valuestring);
    }
    return sum;
}

static int check_room(const cJSON *secret, const struct change *c, struct df_err *err)
{
    const cJSON *data = data_of(secret);
    bool replaces = cJSON_GetObjectItemCaseSensitive(data, c->entry.key);
    if (!replaces && cJSON_GetArraySize(data) >= DF_LIMIT_SECRET_KEYS)
        return df_fail(err, DF_ERR_LIMIT, "secret \"%s\" has %d keys, which is the most", c->name,
                       DF_LIMIT_SECRET_KEYS);
    if (size_of_others(data, c->entry.key) + c->entry.n > DF_LIMIT_SECRET)
        return df_fail(err, DF_ERR_LIMIT,
                       "secret \"%s\": in a cluster all its values have at most %zu bytes together",
                       c->name, DF_LIMIT_SECRET);
    return 0;
}

static int make_new(const struct kube_vault *v, const struct change *c, struct df_err *err)
{
    DF_SECRET_JSON cJSON *fresh = NULL;
    const struct df_vault_entry *e = &c->entry;
    if (!e->key)
        return df_vault_no_secret(c->name, NULL, err);
    if (make_secret(c->name, LABEL, e->key, e->value, e->n, &fresh, err) < 0 ||
        set_use(fresh, e->use, err) < 0)
        return -1;
    return create_secret(v, fresh, err);
}

static int try_put(const struct kube_vault *v, cJSON *secret, const struct change *c,
                   struct df_err *err)
{
    const struct df_vault_entry *e = &c->entry;
    if (!secret)
        return make_new(v, c, err);
    if (!is_ours(c->name, secret))
        return fail_not_ours(v, c->name, err);
    if (e->key &&
        (check_room(secret, c, err) < 0 || set_value(secret, e->key, e->value, e->n, err) < 0))
        return -1;
    return set_use(secret, e->use, err) < 0 ? -1 : update_secret(v, c->name, secret, err);
}

static int put(struct df_vault *v, const char *name, const struct df_vault_entry *entry,
               struct df_err *err)
{
    return retry_conflicts(kube_of(v), try_put, &(struct change){name, *entry}, err);
}

static int try_remove(const struct kube_vault *v, cJSON *secret, const struct change *c,
                      struct df_err *err)
{
    cJSON *data = data_of(secret);
    cJSON *item = c->entry.key ? cJSON_GetObjectItemCaseSensitive(data, c->entry.key) : NULL;
    if (!secret || !is_ours(c->name, secret) || !data || (c->entry.key && !item))
        return df_vault_no_secret(c->name, c->entry.key, err);
    if (!c->entry.key || cJSON_GetArraySize(data) == 1)
        return delete_secret(v, c->name, secret, err);
    df_json_wipe(cJSON_DetachItemViaPointer(data, item));
    return update_secret(v, c->name, secret, err);
}

static int remove_secret(struct df_vault *v, const char *name, const char *key, struct df_err *err)
{
    return retry_conflicts(kube_of(v), try_remove, &(struct change){name, {.key = key}}, err);
}

/* ---- reading -------------------------------------------------------------------------------- */

static int add_value(cJSON *values, const char *name, const cJSON *item, struct df_err *err)
{
    /* An empty value may arrive as null. */
    const char *text = cJSON_IsString(item) ? item->valuestring : "";
    DF_CLEANUP(df_buf_wipe) struct df_buf value = DF_BUF_INIT(DF_LIMIT_SECRET);
    struct df_err why = {0};
    if (df_base64_decode(text, strlen(text), false, &value, &why) < 0 ||
        df_vault_check_value(df_buf_str(&value), value.len, &why) < 0)
        return df_vault_unreadable(name, item->string, why.message, err);
    return df_json_add_str(values, item->string, df_buf_str(&value), err);
}

static int get(struct df_vault *vault, const char *name, cJSON **ret, struct df_err *err)
{
    DF_SECRET_JSON cJSON *secret = NULL;
    DF_SECRET_JSON cJSON *values = cJSON_CreateObject();
    if (df_check_alloc(values, err) < 0 || read_secret(kube_of(vault), name, &secret, err) < 0)
        return -1;
    if (!secret || !is_ours(name, secret) || cJSON_GetArraySize(data_of(secret)) == 0)
        return df_vault_no_secret(name, NULL, err);
    const cJSON *item;
    cJSON_ArrayForEach (item, data_of(secret)) {
        if (add_value(values, name, item, err) < 0)
            return -1;
    }
    *ret = DF_TAKE(values);
    return 0;
}

static int get_use(struct df_vault *vault, const char *name, cJSON **ret, struct df_err *err)
{
    DF_SECRET_JSON cJSON *secret = NULL;
    DF_JSON cJSON *use = cJSON_CreateObject();
    if (df_check_alloc(use, err) < 0 || read_secret(kube_of(vault), name, &secret, err) < 0)
        return -1;
    if (!secret || !is_ours(name, secret) || cJSON_GetArraySize(data_of(secret)) == 0)
        return df_vault_no_secret(name, NULL, err);
    if (take_use(secret, use, err) < 0)
        return -1;
    *ret = DF_TAKE(use);
    return 0;
}

/* Returns when the Secret was last changed, by anybody. */
static const char *updated_at(const cJSON *secret)
{
    const char *latest = df_json_str(secret, "metadata.creationTimestamp");
    const cJSON *entry;
    cJSON_ArrayForEach (entry, df_json_at(secret, "metadata.managedFields")) {
        const char *at = df_json_str(entry, "time");
        if (at && (!latest || strcmp(at, latest) > 0))
            latest = at;
    }
    return latest;
}

static int begin_list(void *arg, const char *resource_version, struct df_err *err)
{
    (void)resource_version, (void)err;
    cJSON *list = arg;
    while (list->child)
        cJSON_DeleteItemFromArray(list, 0);
    return 0;
}

static int add_listed(void *arg, const cJSON *secret, struct df_err *err)
{
    const cJSON *data = data_of(secret), *item;
    if (cJSON_GetArraySize(data) == 0)
        return 0;
    cJSON *entry = cJSON_CreateObject();
    if (df_json_append(arg, entry, err) < 0 ||
        df_json_put(entry, err, DF_STR("name", df_kube_name(secret)),
                    DF_ITEM("keys", cJSON_CreateArray()),
                    DF_STR("updatedAt", updated_at(secret))) < 0 ||
        take_use(secret, entry, err) < 0)
        return -1;
    cJSON_ArrayForEach (item, data) {
        if (df_json_append_str(df_json_array_at(entry, "keys"), item->string, err) < 0)
            return -1;
    }
    return 0;
}

static int list(struct df_vault *vault, bool of_runs, cJSON **ret, struct df_err *err)
{
    const struct kube_vault *v = kube_of(vault);
    DF_JSON cJSON *found = cJSON_CreateArray();
    if (!found)
        return df_fail_oom(err);
    struct df_kube_at at = secret_at(v, NULL);
    const struct df_kube_select select = {.labels = of_runs ? LABEL "=" OF_RUN : LABEL "=true"};
    const struct df_kube_sink sink = {begin_list, add_listed, found};
    if (df_kube_list(v->kube, &at, &select, 0, &sink, err) < 0)
        return -1;
    *ret = DF_TAKE(found);
    return 0;
}

int df_vault_kube_list(struct df_kube *kube, const char *name_space, cJSON **ret,
                       struct df_err *err)
{
    DF_FREE char *copy = strdup(name_space);
    struct kube_vault v = {.kube = kube, .name_space = copy};
    if (df_check_alloc(copy, err) < 0 || list(&v.vault, false, ret, err) < 0)
        return -1;
    df_vault_keep_secrets(*ret);
    return 0;
}

/* ---- the key -------------------------------------------------------------------------------- */

static int take_key(struct kube_vault *v, const cJSON *secret, struct df_err *err)
{
    const char *text = df_json_str(secret, "data.key");
    DF_CLEANUP(df_buf_wipe) struct df_buf key = DF_BUF_INIT(DF_KEY_TEXT + 3);
    if (text && df_base64_decode(text, strlen(text), false, &key, NULL) == 0 &&
        df_key_parse(df_buf_str(&key), key.len, v->vault.master) == 0)
        return 0;
    return df_fail(err, DF_ERR_SYSTEM,
                   "the Secret " KEY_SECRET " in %s is damaged: its value \"key\" must be 64 hex "
                   "digits and a newline; restore it from a copy",
                   v->name_space);
}

static int begin_count(void *arg, const char *resource_version, struct df_err *err)
{
    (void)resource_version, (void)err;
    *(size_t *)arg = 0;
    return 0;
}

static int count_one(void *arg, const cJSON *object, struct df_err *err)
{
    (void)object, (void)err;
    (*(size_t *)arg)++;
    return 0;
}

/* States and plans here were sealed with a key that is gone. With a new one nobody would notice
 * before a run fails, and the old key could not come back. */
static int check_nothing_is_sealed(const struct kube_vault *v, struct df_err *err)
{
    size_t n = 0;
    struct df_kube_at at = secret_at(v, NULL);
    const struct df_kube_select select = {.labels = DF_BLOB_LABEL};
    const struct df_kube_sink sink = {.begin = begin_count, .item = count_one, .arg = &n};
    if (df_kube_list(v->kube, &at, &select, 0, &sink, err) < 0)
        return -1;
    return n == 0 ? 0
                  : df_fail(err, DF_ERR_SYSTEM,
                            "the Secret " KEY_SECRET " in %s is missing, and %zu states, "
                            "plans and logs there need it: restore it from a copy. If none "
                            "of them is needed any more, delete them: kubectl -n %s delete "
                            "secrets,configmaps -l " DF_BLOB_LABEL,
                            v->name_space, n, v->name_space);
}

static int make_key(const struct kube_vault *v, struct df_err *err)
{
    char text[DF_KEY_TEXT + 1];
    DF_SECRET_JSON cJSON *secret = NULL;
    if (df_key_make(text, err) < 0)
        return -1;
    int result = make_secret(KEY_SECRET, NULL, "key", text, DF_KEY_TEXT, &secret, err);
    explicit_bzero(text, sizeof(text));
    if (result < 0 || df_json_add_bool(secret, "immutable", true, err) < 0)
        return -1;
    return create_secret(v, secret, err);
}

static int load_key(struct kube_vault *v, struct df_err *err)
{
    DF_SECRET_JSON cJSON *secret = NULL;
    struct df_err why = {0};
    if (read_secret(v, KEY_SECRET, &secret, err) < 0)
        return -1;
    if (secret)
        return take_key(v, secret, err);
    if (check_nothing_is_sealed(v, err) < 0)
        return -1;
    /* A conflict means that another replica created the key first; then that one is used. */
    if (make_key(v, &why) < 0 && why.cls != DF_ERR_CONFLICT)
        return df_err_pass(err, &why);
    if (read_secret(v, KEY_SECRET, &secret, err) < 0)
        return -1;
    return take_key(v, secret, err);
}

/* ---- opening -------------------------------------------------------------------------------- */

static void close_kube(struct df_vault *vault)
{
    struct kube_vault *v = kube_of(vault);
    free(v->name_space);
    explicit_bzero(v, sizeof(*v));
    free(v);
}

static const struct df_vault_ops kube_ops = {close_kube, put, get, get_use, list, remove_secret};

int df_vault_kube_open(struct df_kube *kube, const char *name_space, struct df_vault **ret,
                       struct df_err *err)
{
    struct kube_vault *v = calloc(1, sizeof(*v));
    if (!v)
        return df_fail_oom(err);
    DF_VAULT struct df_vault *vault = &v->vault;
    vault->ops = &kube_ops;
    v->kube = kube;
    v->name_space = strdup(name_space);
    if (!v->name_space)
        return df_fail_oom(err);
    if (load_key(v, err) < 0)
        return df_err_wrap(err, "secrets");
    *ret = DF_TAKE(vault);
    return 0;
}
