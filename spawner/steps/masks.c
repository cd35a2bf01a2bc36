/*
 * masks.c - collects the values of all secrets that specs name, builds a set of the redactor, and
 * walks through the values of the outputs.
 */
#include "spawner/steps/masks.h"

#include "common/redact/tree.h"
#include "spawner/model/secret_use.h"
#include "spawner/store/vault/vault_integrations.h"

/* ---- values --------------------------------------------------------------------------------- */

static int add_secret(struct df_spawner *s, const char *name, struct df_strs *values,
                      struct df_err *err)
{
    DF_SECRET_JSON cJSON *secret = NULL;
    struct df_err why = {0};
    const cJSON *value;
    if (df_vault_get(s->vault, name, &secret, &why) < 0)
        return why.cls == DF_ERR_NOT_FOUND || df_streq(why.reason, "SecretUnreadable")
                   ? 0
                   : df_err_pass(err, &why);
    cJSON_ArrayForEach (value, secret) {
        (void)df_strs_add(values, cJSON_GetStringValue(value));
    }
    return df_strs_check(values, err);
}

/* The secret of an integration that is named; none is success. */
static int add_integration(struct df_spawner *s, const char *name, struct df_strs *values,
                           struct df_err *err)
{
    DF_JSON cJSON *doc = NULL;
    struct df_err why = {0};
    if (df_vault_integration_get(s->vault, name, &doc, &why) < 0)
        return why.cls == DF_ERR_NOT_FOUND ? 0 : df_err_pass(err, &why);
    const char *secret = df_json_str(doc, "spec.secretRef.name");
    return secret ? add_secret(s, secret, values, err) : 0;
}

static int add_place(struct df_spawner *s, const struct df_secret_place *p, struct df_strs *values,
                     struct df_err *err)
{
    const char *integration = df_secret_place_integration(p);
    return integration ? add_integration(s, integration, values, err)
                       : add_secret(s, p->name, values, err);
}

static int add_spec(struct df_spawner *s, const cJSON *spec, struct df_strs *values,
                    struct df_err *err)
{
    struct df_secret_place p;
    for (size_t i = 0; df_secret_place_at(spec, i, &p); i++)
        if (add_place(s, &p, values, err) < 0)
            return -1;
    return 0;
}

static int make_set(struct df_spawner *s, const cJSON *const *specs, struct df_redact_set **ret,
                    struct df_err *err)
{
    DF_SECRET_STRS struct df_strs values = {0};
    for (; *specs; specs++)
        if (add_spec(s, *specs, &values, err) < 0)
            return -1;
    return df_redact_set_new(&values, ret, err);
}

/* ---- outputs -------------------------------------------------------------------------------- */

int df_mask_outputs(struct df_spawner *s, const cJSON *const *specs, cJSON *outputs,
                    struct df_err *err)
{
    struct df_redact_set *set = NULL;
    bool changed = false;
    cJSON *output;
    int result = make_set(s, specs, &set, err);
    cJSON_ArrayForEach (output, outputs) {
        cJSON *value = cJSON_GetObjectItemCaseSensitive(output, "value");
        if (result == 0 && value)
            result = df_redact_tree(set, value, &changed, err);
    }
    df_redact_set_free(set);
    return result;
}
