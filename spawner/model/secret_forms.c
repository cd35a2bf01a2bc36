/*
 * secret_forms.c - which variable a key of a secret sets; then the rules of spec.secrets, and the
 * rules of spec.secrets and spec.environment together.
 */
#include "spawner/model/secret_forms.h"

#include "common/base/parse.h"
#include "common/base/strs.h"
#include "spawner/model/redirect.h"
#include "spawner/model/rules.h"

/* Credentials of the backend http, the only variables of the tool's backend that a user sets. */
static const char *const backend_variables[] = {
    "TF_HTTP_USERNAME",
    "TF_HTTP_PASSWORD",
    "TF_HTTP_CLIENT_CERTIFICATE_PEM",
    "TF_HTTP_CLIENT_PRIVATE_KEY_PEM",
    "TF_HTTP_CLIENT_CA_CERTIFICATE_PEM",
};

static bool is_backend_variable(const char *name)
{
    for (size_t i = 0; i < DF_ARRAY_SIZE(backend_variables); i++)
        if (df_streq(backend_variables[i], name))
            return true;
    return false;
}

/* ---- one key ---- */

static bool is_as(const cJSON *entry, const char *form)
{
    const char *as = df_json_str(entry, "as");
    return df_streq(as ? as : "variable", form);
}

bool df_secret_is_file(const cJSON *entry)
{
    return is_as(entry, "file");
}

char *df_secret_variable(const cJSON *entry, const char *key)
{
    const char *env = df_json_str(entry, "env");
    return df_strf("%s%s", env || is_as(entry, "env") ? "" : "TF_VAR_", env ? env : key);
}

static void check_key(const cJSON *entry, const char *key, const struct df_path *path,
                      struct df_faults *f)
{
    if (df_json_at(entry, "env"))
        return; /* the entry names the variable, so the key may be anything */
    if (!is_as(entry, "env"))
        df_check_identifier(key, path, f);
    else if (df_is_env_name(key))
        df_check_variable(key, path, f);
    else
        df_fault(
            f, path,
            "\"%.64s\" is not the name of an environment variable; give this key an entry of its "
            "own, with keys: [%.64s] and env: NAME",
            key, key);
}

int df_secret_check_key(const cJSON *entry, const char *key, struct df_err *err)
{
    const struct df_path root = {0};
    struct df_faults f = {0};
    check_key(entry, key, &root, &f);
    DF_FREE char *prefix = df_strf("spec.secrets: secret %s: ", df_json_str(entry, "name"));
    return prefix ? df_faults_fail(&f, "InvalidStep", prefix, err) : df_fail_oom(err);
}

bool df_secret_sets(const cJSON *entry, const char *variable)
{
    const cJSON *key;
    cJSON_ArrayForEach (key, df_json_at(entry, "keys")) {
        DF_FREE char *name = df_secret_variable(entry, cJSON_GetStringValue(key));
        if (df_streq(name, variable))
            return true;
    }
    return false;
}

/* ---- spec.secrets ---- */

void df_rule_secret_variable(const cJSON *value, const struct df_path *path, struct df_faults *f)
{
    if (!is_backend_variable(value->valuestring))
        df_check_variable(value->valuestring, path, f);
}

static void check_env(const cJSON *entry, const struct df_path *path, struct df_faults *f)
{
    const struct df_path here = {path, "env", 0};
    if (!df_json_at(entry, "env"))
        return;
    if (is_as(entry, "variable"))
        df_fault(f, &here, "needs as: env or as: file");
    if (cJSON_GetArraySize(df_json_at(entry, "keys")) != 1)
        df_fault(f, &here, "names one variable: list exactly one key in keys");
}

static void check_keys(const cJSON *entry, const struct df_path *path, struct df_faults *f)
{
    const struct df_path keys = {path, "keys", 0};
    const cJSON *key;
    int index = 0;
    cJSON_ArrayForEach (key, df_json_at(entry, "keys")) {
        const struct df_path here = {&keys, NULL, index++};
        check_key(entry, key->valuestring, &here, f);
    }
}

/* Refuses two entries of one secret in the same form if one of them selects all of its keys. */
static void check_whole(const cJSON *list, const cJSON *entry, const struct df_path *path,
                        struct df_faults *f)
{
    const char *name = df_json_str(entry, "name");
    for (const cJSON *old = list->child; old != entry; old = old->next) {
        bool same = df_streq(df_json_str(old, "name"), name) &&
                    is_as(old, df_json_at(entry, "as") ? df_json_str(entry, "as") : "variable");
        if (same && !(df_json_at(old, "keys") && df_json_at(entry, "keys"))) {
            df_fault(f, path, "\"%.64s\" occurs twice", name);
            return;
        }
    }
}

static int by_text(const void *a, const void *b)
{
    const char *const *left = a, *const *right = b;
    return strcmp(*left, *right);
}

/* Adds the names of the variables that the entries set; sorted. */
static void collect_variables(const cJSON *list, struct df_strs *names)
{
    const cJSON *entry, *key;
    cJSON_ArrayForEach (entry, list) {
        cJSON_ArrayForEach (key, df_json_at(entry, "keys")) {
            (void)df_strs_take(names, df_secret_variable(entry, key->valuestring));
        }
    }
    if (names->len)
        qsort(names->items, names->len, sizeof(*names->items), by_text);
}

static void check_once(const cJSON *list, const struct df_path *path, struct df_faults *f)
{
    DF_STRS struct df_strs names = {0};
    collect_variables(list, &names);
    f->no_memory = f->no_memory || names.failed;
    for (size_t i = 1; i < names.len; i++)
        if (strcmp(names.items[i - 1], names.items[i]) == 0)
            df_fault(f, path, "%.64s is set by two keys; name one of them otherwise with env",
                     names.items[i]);
}

void df_rule_secrets(const cJSON *value, const struct df_path *path, struct df_faults *f)
{
    int index = 0;
    for (const cJSON *entry = value->child; entry; entry = entry->next) {
        const struct df_path here = {path, NULL, index++};
        check_env(entry, &here, f);
        check_keys(entry, &here, f);
        check_whole(value, entry, &here, f);
    }
    check_once(value, path, f);
}

/* ---- together with spec.storage and spec.environment ---- */

/* With another type of storage they would change whom the backend trusts, or do nothing. */
static void check_backend_variables(const cJSON *spec, const struct df_path *path,
                                    struct df_faults *f)
{
    const struct df_path secrets = {path, "secrets", 0};
    int index = 0;
    const cJSON *entry;
    if (df_streq(df_json_str(spec, "storage.type"), "http"))
        return;
    cJSON_ArrayForEach (entry, df_json_at(spec, "secrets")) {
        const struct df_path item = {&secrets, NULL, index++}, here = {&item, "env", 0};
        const char *name = df_json_str(entry, "env");
        if (name && is_backend_variable(name))
            df_fault(f, &here, "%.64s is for spec.storage of the type http", name);
    }
}

static void check_redirect(const cJSON *spec, const char *variable, const char *value,
                           const struct df_path *path, struct df_faults *f)
{
    const char *setting = df_redirect_setting(df_json_at(spec, "storage"), variable, value);
    if (setting)
        df_fault(f, path,
                 "%.64s would lead the state to another place than spec.storage says; set "
                 "spec.storage.config.%s, which comes first",
                 variable, setting);
}

void df_rule_executor_spec(const cJSON *value, const struct df_path *path, struct df_faults *f)
{
    check_backend_variables(value, path, f);
    const struct df_path environment = {path, "environment", 0}, secrets = {path, "secrets", 0};
    DF_STRS struct df_strs names = {0};
    collect_variables(df_json_at(value, "secrets"), &names);
    f->no_memory = f->no_memory || names.failed;
    for (size_t i = 0; i < names.len; i++)
        check_redirect(value, names.items[i], NULL, &secrets, f);
    int index = 0;
    const cJSON *entry;
    cJSON_ArrayForEach (entry, df_json_at(value, "environment")) {
        const struct df_path here = {&environment, NULL, index++};
        const char *name = df_json_str(entry, "name");
        if (name)
            check_redirect(value, name, df_json_str(entry, "value"), &here, f);
        if (names.len && name &&
            bsearch(&name, names.items, names.len, sizeof(*names.items), by_text))
            df_fault(f, &here, "%.64s is set by spec.secrets, too; take one of them out", name);
    }
}
