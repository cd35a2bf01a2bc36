#include "runner/tofu/sensitive.h"

#include "common/base/fs.h"
#include "runner/tofu/sealed.h"

#define OVERRIDE_FILE "zzzz_dayfly_sensitive_override.tf.json"
#define TF_VAR "TF_VAR_"
#define FILES_PREFIX "@files/" /* of a value that is the path of a file, and no secret */

/* Does the module declare the variable, without a word about `sensitive`? A `sensitive = false` is
 * the decision of the module's author. */
static bool is_undecided(const struct df_hcl_module *module, const char *variable)
{
    bool declared = false;
    for (size_t i = 0; i < module->len; i++) {
        const struct df_hcl_block *b = &module->blocks[i];
        if (!df_streq(b->type, "variable") || !b->labels.len ||
            !df_streq(b->labels.items[0], variable))
            continue;
        if (df_hcl_has_attribute(b, "sensitive"))
            return false;
        declared = true;
    }
    return declared;
}

/* {"<variable>": {"sensitive": true}} */
static int add_variable(const struct df_hcl_module *module, const char *variable, cJSON *to,
                        struct df_err *err)
{
    if (!is_undecided(module, variable) || cJSON_HasObjectItem(to, variable))
        return 0;
    return df_json_add(to, variable, df_json_object(DF_BOOL("sensitive", true)), err);
}

static int add_variables(const cJSON *step, const struct df_hcl_module *module, cJSON *to,
                         struct df_err *err)
{
    const cJSON *entry;
    cJSON_ArrayForEach (entry, df_json_at(step, "secretEnvironment")) {
        if (df_starts_with(entry->string, TF_VAR) && cJSON_IsString(entry) &&
            !df_starts_with(entry->valuestring, FILES_PREFIX) &&
            add_variable(module, entry->string + strlen(TF_VAR), to, err) < 0)
            return -1;
    }
    cJSON_ArrayForEach (entry, df_json_at(step, "sealed.variables")) {
        if (!df_sealed_is_plain(step, entry->string) &&
            add_variable(module, entry->string, to, err) < 0)
            return -1;
    }
    return 0;
}

static int write_override(const cJSON *doc, const char *module_dir, struct df_err *err)
{
    DF_FREE char *path = df_fs_join(module_dir, OVERRIDE_FILE);
    return df_json_save(path, doc, err);
}

int df_sensitive_write(const cJSON *step, const struct df_hcl_module *module,
                       const char *module_dir, struct df_err *err)
{
    DF_JSON cJSON *doc = cJSON_CreateObject();
    cJSON *variables = df_json_object_at(doc, "variable");
    if (df_check_alloc(variables, err) < 0 || add_variables(step, module, variables, err) < 0)
        return -1;
    return variables->child ? write_override(doc, module_dir, err) : 0;
}
