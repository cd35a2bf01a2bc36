/*
 * masks.c - collects the values of all secrets that specs name, builds a set of the redactor, and
 * walks through the values of the outputs.
 */
#include "spawner/steps/masks.h"

#include "common/redact/tree.h"
#include "spawner/model/secret_use.h"

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

static int add_spec(struct df_spawner *s, const cJSON *spec, struct df_strs *values,
                    struct df_err *err)
{
    struct df_secret_place p;
    for (size_t i = 0; df_secret_place_at(spec, i, &p); i++)
        if (add_secret(s, p.name, values, err) < 0)
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
