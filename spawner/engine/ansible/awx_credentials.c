/*
 * First a Secret in the words of AWX, key by key in the order of their names, so that the same
 * Secret always gives the same type; then lists of ids. Read df_awx_secret_of() first.
 */
#include "spawner/engine/ansible/awx_credentials.h"

#include "common/base/parse.h"
#include "common/base/strs.h"
#include "common/crypto/crypto.h"
#include "spawner/engine/ansible/extra_vars.h"
#include "spawner/engine/workflow/workflow.h"

enum { NAME = 1024 /* two names of Kubernetes and a prefix */, HASH_DIGITS = 8 };

void df_awx_secret_wipe(struct df_awx_secret *s)
{
    free(s->type);
    cJSON_Delete(s->inputs);
    cJSON_Delete(s->injectors);
    df_json_wipe(s->values);
    *s = (struct df_awx_secret){0};
}

/* ---- names ---- */

/* AWX's rule for the id of a field: [a-zA-Z_][a-zA-Z0-9_]*, and not "tower". */
static void add_field_id(struct df_buf *to, const char *key)
{
    const char *p = key;
    if (*key >= '0' && *key <= '9')
        (void)df_buf_addc(to, '_');
    for (; *p; p++)
        (void)df_buf_addc(to, strchr("-.", *p) ? '_' : *p);
    if (df_streq(key, "tower"))
        (void)df_buf_addc(to, '_');
}

static void add_variable(struct df_buf *to, const char *secret, const char *key)
{
    (void)df_buf_adds(to, "KUBERNAUT_SECRET_");
    df_extra_vars_add_part(to, secret);
    (void)df_buf_addc(to, '_');
    df_extra_vars_add_part(to, key);
    for (char *p = to->data; p && *p; p++)
        *p = *p == '.' ? '_' : *p;
}

char *df_awx_credential_name(const char *secret, const char *action)
{
    return df_strf("kubernaut-ephemeral-%s-%s", secret, action);
}

/* ---- one key ---- */

struct key {
    const char *secret; /* its name */
    const char *name;   /* of the key */
    const char *id, *variable;
    const char *text; /* its value, secret */
};

static int check_key(const struct key *k, const struct df_awx_secret *s, struct df_err *err)
{
    const cJSON *env = df_json_at(s->injectors, "env");
    const char *taken = cJSON_GetObjectItemCaseSensitive(s->values, k->id)   ? k->id
                        : cJSON_GetObjectItemCaseSensitive(env, k->variable) ? k->variable
                                                                             : NULL;
    if (!df_is_env_name(k->id) || !df_is_env_name(k->variable))
        return df_fail(err, DF_ERR_USER,
                       "Secret %s: key \"%.64s\" cannot be the field \"%.64s\" of an AWX "
                       "credential: rename it to letters, digits, \"_\", \"-\" and \".\"",
                       k->secret, k->name, k->id);
    if (taken)
        return df_fail(err, DF_ERR_USER,
                       "Secret %s: key \"%s\" becomes %s in AWX, and so does another key of it: "
                       "rename one of them",
                       k->secret, k->name, taken);
    return 0;
}

static int add_key(const struct key *k, struct df_awx_secret *s, struct df_err *err)
{
    DF_FREE char *placeholder = df_strf("{{%s}}", k->id);
    if (check_key(k, s, err) < 0)
        return -1;
    cJSON *field = df_json_object(DF_STR("id", k->id), DF_STR("label", k->name),
                                  DF_STR("type", "string"), DF_BOOL("secret", true));
    if (df_json_append(df_json_array_at(s->inputs, "fields"), field, err) < 0 ||
        df_json_put(df_json_object_at(s->injectors, "env"), err,
                    DF_STR_ALLOC(k->variable, placeholder)) < 0)
        return -1;
    return df_json_add_str(s->values, k->id, k->text, err);
}

/* The bytes of a key as text. */
static int decode(const char *secret, const cJSON *key, struct df_buf *to, struct df_err *err)
{
    const char *base64 = cJSON_IsString(key) ? key->valuestring : ""; /* an empty one may be null */
    if (df_base64_decode(base64, strlen(base64), false, to, NULL) < 0 ||
        strlen(df_buf_str(to)) != to->len || !df_is_utf8(df_buf_str(to), to->len))
        return df_fail(err, DF_ERR_USER,
                       "Secret %s: the value of key \"%.64s\" is no text of UTF-8, and a field of "
                       "an AWX credential takes nothing else: store it as base64 within the Secret",
                       secret, key->string);
    return 0;
}

static int take_key(const char *secret, const cJSON *key, struct df_awx_secret *s,
                    struct df_err *err)
{
    DF_CLEANUP(df_buf_wipe) struct df_buf text = DF_BUF_INIT(DF_LIMIT_SECRET);
    DF_BUF struct df_buf id = DF_BUF_INIT(NAME), variable = DF_BUF_INIT(NAME);
    add_field_id(&id, key->string);
    add_variable(&variable, secret, key->string);
    if (df_buf_check(&id, err) < 0 || df_buf_check(&variable, err) < 0 ||
        decode(secret, key, &text, err) < 0)
        return -1;
    const struct key k = {secret, key->string, df_buf_str(&id), df_buf_str(&variable),
                          df_buf_str(&text)};
    return add_key(&k, s, err);
}

/* ---- a Secret ---- */

static int begin_secret(const char *name, struct df_awx_secret *s, struct df_err *err)
{
    s->type = df_strf("kubernaut-secret-%s", name);
    s->inputs = df_json_object(DF_ITEM("fields", cJSON_CreateArray()));
    s->injectors = df_json_object(DF_ITEM("env", cJSON_CreateObject()));
    s->values = cJSON_CreateObject();
    return s->type && s->inputs && s->injectors && s->values ? 0 : df_fail_oom(err);
}

int df_awx_secret_of(const cJSON *secret, struct df_awx_secret *ret, struct df_err *err)
{
    const char *name = df_json_str(secret, "metadata.name");
    const cJSON *data = df_json_at(secret, "data"), *key = NULL;
    DF_AWX_SECRET s = {0};
    if (cJSON_GetArraySize(data) > DF_LIMIT_SECRET_KEYS)
        return df_fail(err, DF_ERR_LIMIT, "Secret %s has more than %d keys", name,
                       DF_LIMIT_SECRET_KEYS);
    if (begin_secret(name, &s, err) < 0)
        return -1;
    while ((key = df_workflow_next_parameter(data, key ? key->string : NULL)))
        if (take_key(name, key, &s, err) < 0)
            return -1;
    *ret = s;
    s = (struct df_awx_secret){0};
    return 0;
}

/* AWX may have added members to a field. */
static const cJSON *find_field(const cJSON *type, const char *id)
{
    const cJSON *field;
    cJSON_ArrayForEach (field, df_json_at(type, "inputs.fields"))
        if (df_streq(df_json_str(field, "id"), id))
            return field;
    return NULL;
}

bool df_awx_type_fits(const cJSON *type, const struct df_awx_secret *s)
{
    const cJSON *wanted, *fields = df_json_at(s->inputs, "fields");
    if (cJSON_GetArraySize(fields) != cJSON_GetArraySize(df_json_at(type, "inputs.fields")))
        return false;
    cJSON_ArrayForEach (wanted, fields) {
        const cJSON *field = find_field(type, df_json_str(wanted, "id"));
        const char *of_type = df_json_str(field, "type");
        if (!df_json_bool(field, "secret", false) || (of_type && !df_streq(of_type, "string")))
            return false;
    }
    return df_json_equal(df_json_at(type, "injectors.env"), df_json_at(s->injectors, "env"));
}

int df_awx_secret_rename(struct df_awx_secret *s, struct df_err *err)
{
    char hash[DF_SHA256_HEX];
    DF_FREE char *inputs = df_json_print(s->inputs), *injectors = df_json_print(s->injectors);
    DF_FREE char *both = inputs && injectors ? df_strf("%s%s", inputs, injectors) : NULL;
    if (!both)
        return df_fail_oom(err);
    if (df_sha256_hex(both, strlen(both), hash, err) < 0)
        return -1;
    char *name = df_strf("%s-%.*s", s->type, HASH_DIGITS, hash);
    if (!name)
        return df_fail_oom(err);
    free(s->type);
    s->type = name;
    return 0;
}

/* ---- ids ---- */

static bool has_id(const cJSON *ids, double id)
{
    const cJSON *known;
    cJSON_ArrayForEach (known, ids)
        if (known->valuedouble == id)
            return true;
    return false;
}

static int add_ids(cJSON *to, const cJSON *ids, struct df_err *err)
{
    const cJSON *id;
    cJSON_ArrayForEach (id, ids)
        if (!has_id(to, id->valuedouble) &&
            df_json_append(to, cJSON_CreateNumber(id->valuedouble), err) < 0)
            return -1;
    return 0;
}

int df_awx_merge_ids(const cJSON *of_template, const cJSON *own, cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *merged = cJSON_CreateArray();
    if (df_check_alloc(merged, err) < 0 || add_ids(merged, of_template, err) < 0 ||
        add_ids(merged, own, err) < 0)
        return -1;
    *ret = DF_TAKE(merged);
    return 0;
}

char *df_awx_print_ids(const cJSON *ids)
{
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_LIMIT_DOCUMENT);
    const cJSON *id;
    cJSON_ArrayForEach (id, ids)
        (void)df_buf_addf(&text, "%s%.0f", text.len ? "," : "", id->valuedouble);
    return df_buf_take(&text);
}
