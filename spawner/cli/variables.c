#include "spawner/cli/variables.h"

#include "common/base/fs.h"
#include "common/yaml/yaml.h"

static int add_var(cJSON *all, const char *text, struct df_err *err)
{
    const char *equals = strchr(text, '=');
    if (!equals || equals == text)
        return df_fail(err, DF_ERR_USER, "--var \"%s\": must be name=value", text);
    DF_FREE char *name = strndup(text, (size_t)(equals - text));
    const char *value = equals + 1;
    if (!name)
        return df_fail_oom(err);
    if (*value != '[' && *value != '{')
        return df_json_set_str(all, name, value, err);
    cJSON *parsed = NULL;
    if (df_json_parse(value, strlen(value), &parsed, err) < 0)
        return df_err_wrap(err, "--var %s", name);
    return df_json_set(all, name, parsed, err);
}

static int load_file(const char *path, cJSON **ret, struct df_err *err)
{
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_LIMIT_DOCUMENT);
    if (df_ends_with(path, ".tfvars"))
        return df_fail(err, DF_ERR_USER,
                       "is written in the tool's own language; keep it in the module as "
                       "*.auto.tfvars, or write it as JSON or YAML");
    if (df_fs_read(path, &text, err) < 0 ||
        df_yaml_parse(df_buf_str(&text), text.len, ret, NULL, err) < 0) {
        err->cls = DF_ERR_USER;
        return -1;
    }
    return cJSON_IsObject(*ret) ? 0 : df_fail(err, DF_ERR_USER, "must be an object: name: value");
}

static int add_file(cJSON *all, const char *path, struct df_err *err)
{
    DF_JSON cJSON *file = NULL;
    if (load_file(path, &file, err) < 0)
        return df_err_wrap(err, "--var-file %s", path);
    const cJSON *member = NULL;
    cJSON_ArrayForEach (member, file) {
        if (df_json_set(all, member->string, cJSON_Duplicate(member, true), err) < 0)
            return -1;
    }
    return 0;
}

int df_variables_read(const struct df_args *args, cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *all = cJSON_CreateObject();
    if (!all)
        return df_fail_oom(err);
    for (size_t i = 0; i < args->given_count; i++) {
        const struct df_arg *a = &args->given[i];
        if (df_streq(a->option->name, "var") && add_var(all, a->value, err) < 0)
            return -1;
        if (df_streq(a->option->name, "var-file") && add_file(all, a->value, err) < 0)
            return -1;
    }
    *ret = DF_TAKE(all);
    return 0;
}
