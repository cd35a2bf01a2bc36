/*
 * sealed.c - an entry of the vault is {run, secrets} under a random id, which the run has in
 * spec.sealed. An entry that names another run is not used (get_entry()). The entry is written
 * before the run and may be there without it: df_sealed_sweep() deletes it when it is no longer
 * young.
 */
#include "spawner/steps/sealed.h"

#include "common/base/clock.h"
#include "common/base/limits.h"
#include "spawner/model/model.h"

static const char *name_of(const cJSON *run)
{
    const char *name = df_json_str(run, "metadata.name");
    return name ? name : "";
}

/* ---- put ---- */

static int add_names(cJSON *sealed, const cJSON *secrets, const char *member, struct df_err *err)
{
    const cJSON *values = cJSON_GetObjectItemCaseSensitive(secrets, member), *value;
    cJSON_ArrayForEach (value, values) {
        cJSON *list = df_json_array_at(sealed, member);
        if (!list)
            return df_fail_oom(err);
        if (df_json_append_str(list, value->string, err) < 0)
            return -1;
    }
    return 0;
}

/* It is named as what people know it by. */
static int add_cli_config(cJSON *sealed, const cJSON *secrets, struct df_err *err)
{
    if (!df_json_at(secrets, DF_SEALED_CLI_CONFIG))
        return 0;
    cJSON *list = df_json_array_at(sealed, "environment");
    return list ? df_json_append_str(list, "TF_CLI_CONFIG_FILE", err) : df_fail_oom(err);
}

static int describe(cJSON *run, const char *id, const cJSON *secrets, struct df_err *err)
{
    cJSON *sealed = cJSON_CreateObject();
    if (df_json_set(df_json_object_at(run, "spec"), "sealed", sealed, err) < 0 ||
        df_json_add_str(sealed, "id", id, err) < 0 ||
        add_names(sealed, secrets, "environment", err) < 0 ||
        add_cli_config(sealed, secrets, err) < 0 ||
        add_names(sealed, secrets, "variables", err) < 0)
        return -1;
    return add_names(sealed, secrets, "files", err);
}

int df_sealed_put(struct df_spawner *s, cJSON *run, const cJSON *secrets, struct df_err *err)
{
    DF_SECRET_JSON cJSON *entry = NULL;
    char id[33];
    if (!secrets)
        return 0;
    entry = cJSON_CreateObject();
    if (!entry)
        return df_fail_oom(err);
    if (df_random_hex(id, 16, err) < 0 || describe(run, id, secrets, err) < 0 ||
        df_json_add_str(entry, "run", name_of(run), err) < 0 ||
        df_json_add(entry, "secrets", cJSON_Duplicate(secrets, true), err) < 0)
        return -1;
    return df_vault_run_put(s->vault, id, entry, err);
}

/* ---- get and drop ---- */

static bool is_unreadable(const struct df_err *why)
{
    return df_streq(why->reason, "SecretUnreadable");
}

/* Reads the run's entry; *ret is unchanged if there is none or if it belongs to another run. */
static int get_entry(struct df_spawner *s, const cJSON *run, cJSON **ret, struct df_err *err)
{
    const char *id = df_json_str(run, "spec.sealed.id");
    DF_SECRET_JSON cJSON *entry = NULL;
    struct df_err why = {0};
    if (!id)
        return 0;
    if (df_vault_run_get(s->vault, id, &entry, &why) < 0) {
        if (why.cls == DF_ERR_NOT_FOUND)
            return 0;
        if (is_unreadable(&why))
            return df_fail_reason(err, DF_ERR_SYSTEM, why.reason,
                                  "the secrets that run %s was given cannot be read: their sealed "
                                  "values do not open; start a new run",
                                  name_of(run));
        return df_err_pass(err, &why);
    }
    if (df_streq(df_json_str(entry, "run"), name_of(run)))
        *ret = DF_TAKE(entry);
    return 0;
}

int df_sealed_get(struct df_spawner *s, const cJSON *run, cJSON **ret, struct df_err *err)
{
    DF_SECRET_JSON cJSON *entry = NULL;
    if (!df_json_at(run, "spec.sealed"))
        return 0;
    if (get_entry(s, run, &entry, err) < 0)
        return -1;
    cJSON *secrets = cJSON_DetachItemFromObjectCaseSensitive(entry, "secrets");
    if (!secrets)
        return df_fail_reason(err, DF_ERR_USER, "InvalidStep",
                              "the secrets that run %s was given are not in the vault any more: "
                              "start a new run",
                              name_of(run));
    *ret = secrets;
    return 0;
}

int df_sealed_check(struct df_spawner *s, const cJSON *task, const cJSON *doc, struct df_err *err)
{
    static const char *const own[] = {"environment", "secretEnvironment"};
    const struct df_strs *named =
        s->config->caller_is_named ? &s->config->caller_environment : NULL;
    const cJSON *given = df_json_at(doc, "sealed.environment");
    const char *of = df_json_str(task, "spec.runRef.name"), *name = NULL;
    DF_SHARED const cJSON *run = NULL;
    if (!given)
        return 0;
    if (df_store_look_for(s->store, DF_KIND_RUN, of ? of : "", &run, err) < 0)
        return -1;
    const char *role = df_json_str(run, "spec.requestedRole");
    if (!role || df_streq(role, df_role_name(DF_ROLE_ADMIN)))
        return 0;
    for (size_t i = 0; !name && i < DF_ARRAY_SIZE(own); i++)
        name = df_model_foreign_variable(given, df_json_at(doc, own[i]), named);
    if (!name)
        return 0;
    return df_fail_reason(err, DF_ERR_USER, "InvalidStep",
                          "secrets.environment: %.64s of the run would replace or change "
                          "credentials that the executor has itself, and only the role admin may: "
                          "run it without, or let an admin name the variable in caller.environment "
                          "of the service's configuration",
                          name);
}

int df_sealed_drop(struct df_spawner *s, const cJSON *run, struct df_err *err)
{
    DF_SECRET_JSON cJSON *entry = NULL;
    struct df_err why = {0};
    if (get_entry(s, run, &entry, &why) < 0)
        /* Whose entry it is cannot be known. The run ends all the same; the sweep deletes it. */
        return is_unreadable(&why) ? 0 : df_err_pass(err, &why);
    return entry ? df_vault_run_drop(s->vault, df_json_str(run, "spec.sealed.id"), err) : 0;
}

/* ---- sweep ---- */

/* *ret: true if a run may still need the entry. */
static int is_needed(struct df_spawner *s, const char *id, bool is_young, bool *ret,
                     struct df_err *err)
{
    DF_SECRET_JSON cJSON *entry = NULL;
    DF_SHARED const cJSON *run = NULL;
    struct df_err why = {0};
    *ret = false;
    if (df_vault_run_get(s->vault, id, &entry, &why) < 0) {
        *ret = is_unreadable(&why) && is_young;
        return why.cls == DF_ERR_NOT_FOUND || is_unreadable(&why) ? 0 : df_err_pass(err, &why);
    }
    const char *name = df_json_str(entry, "run");
    if (df_store_look_for(s->store, DF_KIND_RUN, name ? name : "", &run, err) < 0)
        return -1;
    bool is_its_own = df_streq(df_json_str(run, "spec.sealed.id"), id);
    *ret = is_its_own ? !df_run_is_final(run) : is_young;
    return 0;
}

int df_sealed_sweep(struct df_spawner *s, int64_t now_us, struct df_err *err)
{
    DF_JSON cJSON *list = NULL;
    const cJSON *entry;
    if (df_vault_run_list(s->vault, &list, err) < 0)
        return -1;
    cJSON_ArrayForEach (entry, list) {
        const char *id = df_json_str(entry, "name"), *at = df_json_str(entry, "updatedAt");
        int64_t us = 0;
        bool is_young = at && df_time_parse(at, &us, NULL) == 0 &&
                        now_us < us + DF_RUN_SECRETS_GRACE_SECONDS * INT64_C(1000000);
        bool needed = true;
        if (is_needed(s, id, is_young, &needed, err) < 0 ||
            (!needed && df_vault_run_drop(s->vault, id, err) < 0))
            return -1;
    }
    return 0;
}
