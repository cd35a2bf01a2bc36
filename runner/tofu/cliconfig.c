#include "runner/tofu/cliconfig.h"

#include "common/base/fs.h"

/* The members of `providers` that name a mirror; the installation method and its argument. */
static const struct {
    const char *member, *method, *argument;
} mirrors[] = {{"filesystemMirror", "filesystem_mirror", "path"},
               {"networkMirror", "network_mirror", "url"},
               {"ociMirror", "oci_mirror", "repository_template"}};

/* {"<method>": [{"<argument>": value}]}: a block with one argument. */
static int add_mirror(cJSON *config, size_t i, const char *value, struct df_err *err)
{
    if (df_str_empty(value))
        return 0;
    cJSON *installation = df_json_object_at(config, "provider_installation");
    cJSON *blocks = df_json_array_at(installation, mirrors[i].method);
    cJSON *block = blocks ? cJSON_CreateObject() : NULL;
    if (df_json_append(blocks, block, err) < 0)
        return -1;
    return df_json_add_str(block, mirrors[i].argument, value, err);
}

static int add_mirrors(cJSON *config, const cJSON *providers, struct df_err *err)
{
    for (size_t i = 0; i < DF_ARRAY_SIZE(mirrors); i++)
        if (add_mirror(config, i, df_json_str(providers, mirrors[i].member), err) < 0)
            return -1;
    return 0;
}

static int add_credentials(cJSON *config, const cJSON *credentials, struct df_err *err)
{
    const cJSON *entry;
    cJSON_ArrayForEach (entry, credentials) {
        if (!cJSON_IsString(entry))
            continue;
        cJSON *hosts = df_json_object_at(config, "credentials");
        cJSON *host = df_json_object_at(hosts, entry->string);
        if (df_json_add_str(host, "token", entry->valuestring, err) < 0)
            return -1;
    }
    return 0;
}

/* The tools expand ${...} in strings, also in JSON. A dollar sign occurs only in strings. */
static void escape_dollars(const char *json, struct df_buf *out)
{
    for (const char *p = json; *p; p++) {
        if (*p == '$')
            (void)df_buf_adds(out, "\\u0024");
        else
            (void)df_buf_addc(out, *p);
    }
    (void)df_buf_addc(out, '\n');
}

static int write_config(const cJSON *config, const char *path, struct df_err *err)
{
    char *json = df_json_print(config);
    if (!json)
        return df_fail_oom(err);
    struct df_buf text = DF_BUF_INIT(DF_LIMIT_STEP_DOCUMENT);
    escape_dollars(json, &text);
    int failed =
        df_buf_check(&text, err) < 0 || df_fs_write(path, text.data, text.len, 0600, err) < 0;
    df_buf_wipe(&text);
    df_str_wipe(&json);
    return failed ? -1 : 0;
}

bool df_cliconfig_is_own(const cJSON *providers)
{
    for (size_t i = 0; i < DF_ARRAY_SIZE(mirrors); i++)
        if (!df_str_empty(df_json_str(providers, mirrors[i].member)))
            return true;
    return cJSON_GetArraySize(df_json_at(providers, "credentials")) > 0;
}

int df_cliconfig_write(const cJSON *providers, const char *of_caller, const char *path,
                       struct df_err *err)
{
    if (of_caller && !df_cliconfig_is_own(providers))
        return df_fs_write(path, of_caller, strlen(of_caller), 0600, err);
    cJSON *config = cJSON_CreateObject();
    int failed = add_mirrors(config, providers, err) < 0 ||
                 add_credentials(config, df_json_at(providers, "credentials"), err) < 0 ||
                 write_config(config, path, err) < 0;
    df_json_wipe(config);
    return failed ? -1 : 0;
}
