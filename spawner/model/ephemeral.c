/*
 * ephemeral.c - from bottom up: texts are split as Terrakube splits them, one function parses each
 * kind of key, and the table of keys at the end names the function of each key.
 */
#include "spawner/model/ephemeral.h"

#include <strings.h>

#include "common/base/nearest.h"
#include "common/base/parse.h"
#include "common/base/strs.h"
#include "spawner/model/placement.h"

/* ---- text, split as Java splits it ---- */

/* String.split(): drops empty parts at the end, unless the separator does not occur. */
static int split_text(const char *s, char separator, struct df_strs *ret, struct df_err *err)
{
    bool occurs = strchr(s, separator);
    for (const char *end = s; end; s = end + 1) {
        end = strchr(s, separator);
        (void)df_strs_take(ret, end ? strndup(s, (size_t)(end - s)) : strdup(s));
        if (!end)
            break;
    }
    while (occurs && ret->len > 0 && !*ret->items[ret->len - 1]) {
        free(ret->items[--ret->len]);
        ret->items[ret->len] = NULL;
    }
    return df_strs_check(ret, err);
}

/* String.trim(): blanks and control characters at both ends. The caller frees. */
static char *trim_text(const char *s, size_t n)
{
    while (n > 0 && (unsigned char)*s <= ' ') {
        s++;
        n--;
    }
    while (n > 0 && (unsigned char)s[n - 1] <= ' ')
        n--;
    return strndup(s, n);
}

/* "a=b;c=d" into {"a": "b", "c": "d"}. */
static int parse_pairs(const char *text, cJSON *map, struct df_err *err)
{
    DF_STRS struct df_strs parts = {0};
    if (split_text(text, ';', &parts, err) < 0)
        return -1;
    for (size_t i = 0; i < parts.len; i++) {
        const char *part = parts.items[i];
        size_t n = strcspn(part, "=");
        DF_FREE char *key = trim_text(part, n);
        DF_FREE char *value = part[n] ? trim_text(part + n + 1, strlen(part + n + 1)) : strdup("");
        if (!key || !value)
            return df_fail_oom(err);
        bool blank = !*key && !part[n];
        if (!blank && df_json_set_str(map, key, value, err) < 0)
            return -1;
    }
    return 0;
}

/* ---- one function for each kind of key ---- */

struct key;

/* The input of a put_fn. */
struct input {
    const struct key *key;
    const char *value;
    const cJSON *environment; /* for the keys that belong to another one */
};

typedef int put_fn(const struct input *in, cJSON *placement, struct df_err *err);

struct key {
    const char *name;
    put_fn *put;        /* NULL: another key reads it, or it has no effect */
    const char *member; /* of the placement */
    const char *inner;  /* of that member */
};

static int refuse_value(const struct input *in, const char *value, const char *why,
                        struct df_err *err)
{
    return df_fail_reason(err, DF_ERR_USER, "InvalidPlacement", "%s: \"%.64s\" %s", in->key->name,
                          value, why);
}

static const char *look_up(const cJSON *environment, const char *name)
{
    return df_json_str(df_json_named(environment, name), "value");
}

static int put_pairs(const struct input *in, cJSON *placement, struct df_err *err)
{
    cJSON *map = df_json_object_at(placement, in->key->member);
    return map ? parse_pairs(in->value, map, err) : df_fail_oom(err);
}

static int put_string(const struct input *in, cJSON *placement, struct df_err *err)
{
    return df_json_add_str(placement, in->key->member, *in->value ? in->value : NULL, err);
}

static int put_quantity(const struct input *in, cJSON *placement, struct df_err *err)
{
    cJSON *map = df_json_object_at(df_json_object_at(placement, "resources"), in->key->member);
    return df_json_add_str(map, in->key->inner, in->value, err);
}

static int put_env(const struct input *in, cJSON *placement, struct df_err *err)
{
    DF_JSON cJSON *map = cJSON_CreateObject();
    cJSON *list = df_json_array_at(placement, "env");
    if (df_check_alloc(map, err) < 0 || df_check_alloc(list, err) < 0 ||
        parse_pairs(in->value, map, err) < 0)
        return -1;
    for (const cJSON *m = map->child; m; m = m->next) {
        DF_JSON cJSON *entry =
            df_json_object(DF_STR("name", m->string), DF_STR("value", m->valuestring));
        if (df_check_alloc(entry, err) < 0 || df_json_append(list, DF_TAKE(entry), err) < 0)
            return -1;
    }
    return 0;
}

static int put_env_from(const struct input *in, cJSON *placement, struct df_err *err)
{
    DF_STRS struct df_strs names = {0};
    cJSON *list = df_json_array_at(placement, "envFrom");
    if (df_check_alloc(list, err) < 0 || split_text(in->value, ',', &names, err) < 0)
        return -1;
    for (size_t i = 0; i < names.len; i++) {
        DF_FREE char *name = trim_text(names.items[i], strlen(names.items[i]));
        DF_JSON cJSON *entry = cJSON_CreateObject();
        cJSON *ref = df_json_object_at(entry, "configMapRef");
        if (!name || !ref)
            return df_fail_oom(err);
        if (!*name)
            continue;
        if (df_json_add_str(ref, "name", name, err) < 0 ||
            df_json_append(list, DF_TAKE(entry), err) < 0)
            return -1;
    }
    return 0;
}

static int put_config_map(const struct input *in, cJSON *placement, struct df_err *err)
{
    const char *path = look_up(in->environment, "EPHEMERAL_CONFIG_MAP_MOUNT_PATH");
    return df_json_append(
        df_json_array_at(placement, "configMapMounts"),
        df_json_object(DF_STR("name", in->value), DF_STR("mountPath", path ? path : "/data")), err);
}

/* Without PVC_CLAIM_NAME the default claim is optional; a claim that is named must exist. A path of
 * the tool alone ("cache", "$HOME/cache") is no place for a volume: the tool gets it as its
 * variable. */
static int put_cache(const struct input *in, cJSON *placement, struct df_err *err)
{
    const char *claim = look_up(in->environment, "PVC_CLAIM_NAME");
    if (!claim && *in->value != '/')
        return 0;
    cJSON *cache = df_json_object_at(placement, "pluginCache");
    if (df_json_put(cache, err, DF_STR("claimName", claim ? claim : "terrakube-plugin-pvc"),
                    DF_STR("mountPath", in->value)) < 0)
        return -1;
    return claim ? 0 : df_json_add_bool(cache, "optional", true, err);
}

/* Long.parseLong() or Boolean.parseBoolean(), for which every word other than "true" is false. */
static int put_setting(const struct input *in, const cJSON *pair, cJSON *context,
                       struct df_err *err)
{
    int64_t id = 0;
    bool is_flag = df_streq(pair->string, "runAsNonRoot") ||
                   df_streq(pair->string, "allowPrivilegeEscalation");
    if (is_flag)
        return df_json_add_bool(context, pair->string, strcasecmp(pair->valuestring, "true") == 0,
                                err);
    const char *digits = *pair->valuestring == '+' ? pair->valuestring + 1 : pair->valuestring;
    if (df_parse_i64(digits, 0, INT32_MAX, &id, NULL) < 0)
        return refuse_value(in, pair->valuestring,
                            "is not a user or group: a whole number, 0 or more", err);
    return df_json_add_num(context, pair->string, (double)id, err);
}

static int put_security(const struct input *in, cJSON *placement, struct df_err *err)
{
    static const char *const pod[] = {"fsGroup", "runAsNonRoot", "runAsUser"};
    bool is_pod = df_streq(in->key->member, "podSecurityContext");
    DF_JSON cJSON *map = cJSON_CreateObject();
    cJSON *context = df_json_object_at(placement, in->key->member);
    if (df_check_alloc(map, err) < 0 || df_check_alloc(context, err) < 0 ||
        parse_pairs(in->value, map, err) < 0)
        return -1;
    for (const cJSON *m = map->child; m; m = m->next) {
        bool known = !is_pod && df_streq(m->string, "allowPrivilegeEscalation");
        for (size_t i = 0; i < DF_ARRAY_SIZE(pod); i++)
            known = known || (is_pod && df_streq(m->string, pod[i]));
        if (!known)
            return refuse_value(
                in, m->string,
                is_pod ? "is not a setting; there are fsGroup, runAsNonRoot and runAsUser"
                       : "is not a setting; there is allowPrivilegeEscalation",
                err);
        if (put_setting(in, m, context, err) < 0)
            return -1;
    }
    return 0;
}

/* ---- tolerations ---- */

static int add_unless_empty(cJSON *object, const char *key, const char *value, struct df_err *err)
{
    return df_json_add_str(object, key, df_str_empty(value) ? NULL : value, err);
}

/* "key" or "key=value"; text after a second "=" is ignored. */
static int put_key_value(const struct input *in, const char *text, cJSON *toleration,
                         struct df_err *err)
{
    DF_STRS struct df_strs parts = {0};
    if (!strchr(text, '='))
        return add_unless_empty(toleration, "key", text, err);
    if (split_text(text, '=', &parts, err) < 0)
        return -1;
    if (parts.len < 2)
        return refuse_value(in, text, "has no value behind the =", err);
    if (add_unless_empty(toleration, "key", parts.items[0], err) < 0)
        return -1;
    return df_json_add_str(toleration, "value", parts.items[1], err);
}

static int put_toleration(const struct input *in, const char *text, cJSON *list, struct df_err *err)
{
    DF_STRS struct df_strs parts = {0};
    DF_JSON cJSON *toleration = cJSON_CreateObject();
    if (df_check_alloc(toleration, err) < 0 || split_text(text, ':', &parts, err) < 0)
        return -1;
    if (parts.len == 0)
        return refuse_value(in, text, "is not a toleration: key[=value][:operator[:effect]]", err);
    const char *operator= parts.len> 1 ? parts.items[1] : "Exists";
    if (put_key_value(in, parts.items[0], toleration, err) < 0 ||
        add_unless_empty(toleration, "operator", operator, err) < 0 ||
        add_unless_empty(toleration, "effect", parts.len > 2 ? parts.items[2] : NULL, err) < 0)
        return -1;
    return df_json_append(list, DF_TAKE(toleration), err);
}

static int put_tolerations(const struct input *in, cJSON *placement, struct df_err *err)
{
    DF_STRS struct df_strs parts = {0};
    cJSON *list = df_json_array_at(placement, "tolerations");
    if (df_check_alloc(list, err) < 0 || split_text(in->value, ';', &parts, err) < 0)
        return -1;
    for (size_t i = 0; i < parts.len; i++)
        if (put_toleration(in, parts.items[i], list, err) < 0)
            return -1;
    return 0;
}

/* ---- the keys ---- */

static const struct key keys[] = {
    {"TERRAKUBE_ENABLE_EPHEMERAL_EXECUTOR"},
    {"EPHEMERAL_CONFIG_NODE_SELECTOR_TAGS", put_pairs, "nodeSelector"},
    {"EPHEMERAL_CONFIG_SERVICE_ACCOUNT", put_string, "serviceAccountName"},
    {"EPHEMERAL_CONFIG_ANNOTATIONS", put_pairs, "annotations"},
    {"EPHEMERAL_CONFIG_POD_ANNOTATIONS", put_pairs, "podAnnotations"},
    {"EPHEMERAL_CONFIG_LABELS", put_pairs, "labels"},
    {"EPHEMERAL_CONFIG_TOLERATIONS", put_tolerations},
    {"EPHEMERAL_CONFIG_MAP_NAME", put_config_map},
    {"EPHEMERAL_CONFIG_MAP_MOUNT_PATH"},
    {"TF_PLUGIN_CACHE_DIR", put_cache},
    {"PVC_CLAIM_NAME"},
    {"EPHEMERAL_CONFIG_POD_SECURITY_CONTEXT", put_security, "podSecurityContext"},
    {"EPHEMERAL_CONFIG_SECURITY_CONTEXT", put_security, "securityContext"},
    {"EPHEMERAL_CPU_REQUEST", put_quantity, "requests", "cpu"},
    {"EPHEMERAL_CPU_LIMIT", put_quantity, "limits", "cpu"},
    {"EPHEMERAL_MEMORY_REQUEST", put_quantity, "requests", "memory"},
    {"EPHEMERAL_MEMORY_LIMIT", put_quantity, "limits", "memory"},
    {"EPHEMERAL_STORAGE_REQUEST", put_quantity, "requests", "ephemeral-storage"},
    {"EPHEMERAL_STORAGE_LIMIT", put_quantity, "limits", "ephemeral-storage"},
    {"EPHEMERAL_JOB_ENV_VARS", put_env},
    {"EPHEMERAL_CONFIG_ENVFROM_CONFIG_MAP", put_env_from},
};

bool df_ephemeral_is_key(const char *name)
{
    for (size_t i = 0; i < DF_ARRAY_SIZE(keys); i++)
        if (df_streq(keys[i].name, name))
            return true;
    return df_starts_with(name, "EPHEMERAL_");
}

/* Refuses a misspelled key: without this check it would have no effect and nobody would notice. */
static int check_unknown(const char *name, struct df_err *err)
{
    const char *meant = NULL;
    size_t distance = SIZE_MAX;
    if (!df_starts_with(name, "EPHEMERAL_"))
        return 0;
    for (size_t i = 0; i < DF_ARRAY_SIZE(keys); i++) {
        if (df_streq(keys[i].name, name))
            return 0;
        df_nearest(name, keys[i].name, &meant, &distance);
    }
    if (!meant)
        return 0;
    return df_fail_reason(err, DF_ERR_USER, "InvalidPlacement",
                          "%.64s is not a key; did you mean %s?", name, meant);
}

/* Reads the key into a placement of its own first, so that a fault names the key. */
static int read_key(const struct input *in, cJSON *placement, struct df_err *err)
{
    DF_JSON cJSON *own = cJSON_CreateObject();
    if (df_check_alloc(own, err) < 0 || in->key->put(in, own, err) < 0 ||
        df_placement_check(own, in->key->name, err) < 0)
        return -1;
    return in->key->put(in, placement, err);
}

int df_ephemeral_placement(const cJSON *environment, cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *placement = cJSON_CreateObject();
    if (!placement)
        return df_fail_oom(err);
    for (const cJSON *e = environment ? environment->child : NULL; e; e = e->next) {
        const char *name = df_json_str(e, "name");
        if (name && check_unknown(name, err) < 0)
            return -1;
    }
    for (size_t i = 0; i < DF_ARRAY_SIZE(keys); i++) {
        const struct input in = {&keys[i], look_up(environment, keys[i].name), environment};
        if (in.value && keys[i].put && read_key(&in, placement, err) < 0)
            return -1;
    }
    if (df_placement_check(placement, "EPHEMERAL_*", err) < 0)
        return -1;
    *ret = DF_TAKE(placement);
    return 0;
}
