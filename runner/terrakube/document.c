/*
 * document.c - the step document of a step of Terrakube: action, tools, values to mask, and the
 * files of dynamic credentials. Read df_terrakube_document_complete() first. A payload that was
 * refused gets only action and tools.
 */
#include "runner/terrakube/document.h"

/* The API fails a job six hours after it was made, whatever it does. */
enum { TIMEOUT_SECONDS = 6 * 3600 };

/* Shorter values would mask words that are no secrets. */
enum { SECRET_MIN = 8 };

/* Of the pipeline. A payload that is refused gets no further than the first stage. */
static const char *const actions[] = {
    [DF_TERRAKUBE_PLAN] = "terrakube-plan",
    [DF_TERRAKUBE_PLAN_DESTROY] = "terrakube-plan-destroy",
    [DF_TERRAKUBE_APPLY] = "terrakube-apply",
    [DF_TERRAKUBE_DESTROY] = "terrakube-destroy",
    [DF_TERRAKUBE_SCRIPTS] = "terrakube-scripts",
    [DF_TERRAKUBE_REJECTED] = "terrakube-scripts",
};

/* ---- what is masked ---- */

static int add_mask(cJSON *mask, const char *value, struct df_err *err)
{
    return df_str_empty(value) ? 0 : df_json_append_str(mask, value, err);
}

/* The payload does not say which variables are secret: their names do. */
static bool is_secret_name(const char *name)
{
    static const char *const ends[] = {"TOKEN", "SECRET",       "PASSWORD",
                                       "_KEY",  "_CREDENTIALS", "_CREDENTIALS_FILE"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(ends); i++) {
        size_t n = strlen(name), m = strlen(ends[i]);
        if (n >= m && strcasecmp(name + n - m, ends[i]) == 0)
            return true;
    }
    return false;
}

static int add_environment_masks(const struct df_terrakube *t, cJSON *mask, struct df_err *err)
{
    const cJSON *v;
    cJSON_ArrayForEach (v, t->payload->environment) {
        const char *value = cJSON_GetStringValue(v);
        if (value && strlen(value) >= SECRET_MIN && is_secret_name(v->string) &&
            add_mask(mask, value, err) < 0)
            return -1;
    }
    return 0;
}

static int add_policy_masks(const struct df_terrakube *t, cJSON *mask, struct df_err *err)
{
    const cJSON *p;
    cJSON_ArrayForEach (p, t->payload->policies) {
        if (add_mask(mask, df_json_str(p, "accessToken"), err) < 0 ||
            add_mask(mask, df_json_str(p, "moduleSshKey"), err) < 0)
            return -1;
    }
    return 0;
}

static int add_masks(const struct df_terrakube *t, cJSON *doc, struct df_err *err)
{
    const struct df_terrakube_settings *s = t->settings;
    const char *const secrets[] = {
        t->payload->access_token, t->payload->module_ssh_key, s->internal_secret,
        s->redis.password,        s->redis.sentinel_password, s->aws.access_key,
        s->aws.secret_key,        s->azure.access_key,        s->gcp.credentials};
    cJSON *mask = df_json_array_at(doc, "mask");
    if (!mask)
        return df_fail_oom(err);
    for (size_t i = 0; i < DF_ARRAY_SIZE(secrets); i++) {
        if (add_mask(mask, secrets[i], err) < 0)
            return -1;
    }
    return add_policy_masks(t, mask, err) < 0 ? -1 : add_environment_masks(t, mask, err);
}

/* ---- dynamic credentials ---- */

/* Where Terrakube's executor replaces it by the directory with both files of Google. */
#define PLACEHOLDER "${WORKSPACE_DIRECTORY}"

/* What the API puts into the environment becomes a file, whose path a cloud's client reads. */
static const struct {
    const char *content, *file, *variable; /* variable NULL: only another file names it */
} dynamic[] = {
    {"TERRAKUBE_AWS_CREDENTIALS_FILE", "terrakube_config_dynamic_credentials_aws.txt",
     "AWS_WEB_IDENTITY_TOKEN_FILE"},
    {"TERRAKUBE_GCP_CREDENTIALS_FILE", "terrakube_dynamic_credentials.json", NULL},
    {"TERRAKUBE_GCP_CREDENTIALS_CONFIG_FILE", "terrakube_config_dynamic_credentials.json",
     "GOOGLE_APPLICATION_CREDENTIALS"},
};

static int add_dynamic_file(cJSON *files, const char *name, const char *content, const char *dir,
                            struct df_err *err)
{
    DF_CLEANUP(df_buf_wipe) struct df_buf text = DF_BUF_INIT(DF_LIMIT_STEP_DOCUMENT);
    for (const char *p; (p = strstr(content, PLACEHOLDER)); content = p + strlen(PLACEHOLDER)) {
        (void)df_buf_add(&text, content, (size_t)(p - content));
        (void)df_buf_adds(&text, dir);
    }
    (void)df_buf_adds(&text, content);
    if (df_buf_check(&text, err) < 0)
        return -1;
    return df_json_add_str(files, name, df_buf_str(&text), err);
}

static int add_dynamic_credentials(const struct df_terrakube *t, const char *secret_dir, cJSON *doc,
                                   struct df_err *err)
{
    DF_FREE char *dir = df_strf("%s/files", secret_dir);
    if (!dir)
        return df_fail_oom(err);
    for (size_t i = 0; i < DF_ARRAY_SIZE(dynamic); i++) {
        const char *content = cJSON_GetStringValue(
            cJSON_GetObjectItemCaseSensitive(t->payload->environment, dynamic[i].content));
        if (df_str_empty(content))
            continue;
        cJSON *files = df_json_object_at(doc, "files");
        cJSON *environment = df_json_object_at(doc, "environment");
        DF_FREE char *path = df_strf("@files/%s", dynamic[i].file);
        if (df_check_alloc(files, err) < 0 || df_check_alloc(environment, err) < 0 ||
            df_check_alloc(path, err) < 0 ||
            add_dynamic_file(files, dynamic[i].file, content, dir, err) < 0 ||
            (dynamic[i].variable &&
             df_json_add_str(environment, dynamic[i].variable, path, err) < 0))
            return -1;
    }
    return 0;
}

/* ---- all of it ---- */

static int add_tools(const char *secret_dir, cJSON *doc, struct df_err *err)
{
    DF_FREE char *cache = df_strf("%s/tools", secret_dir);
    if (df_json_at(doc, "tools"))
        return 0;
    cJSON *tools = df_json_object_at(doc, "tools");
    return df_json_put(tools, err, DF_BOOL("searchPath", true),
                       DF_STR_ALLOC("cacheDirectory", cache));
}

int df_terrakube_document_complete(const struct df_terrakube *t, const char *secret_dir, cJSON *doc,
                                   struct df_err *err)
{
    const char *action = actions[t->refused ? DF_TERRAKUBE_SCRIPTS : t->payload->type];
    if (df_json_set_str(doc, "action", action, err) < 0 || add_tools(secret_dir, doc, err) < 0)
        return -1;
    if (t->refused)
        return 0;
    return add_masks(t, doc, err) < 0 ? -1 : add_dynamic_credentials(t, secret_dir, doc, err);
}

int df_terrakube_document(const struct df_terrakube *t, const char *secret_dir, cJSON **ret,
                          struct df_err *err)
{
    DF_SECRET_JSON cJSON *doc = cJSON_CreateObject();
    if (df_json_put(doc, err, DF_STR("uid", t->payload->step),
                    DF_NUM("timeoutSeconds", TIMEOUT_SECONDS)) < 0 ||
        df_terrakube_document_complete(t, secret_dir, doc, err) < 0)
        return -1;
    *ret = DF_TAKE(doc);
    return 0;
}
