#include "runner/tofu/override.h"

#include "common/base/limits.h"

/* ---- literal texts ---- */

/* OpenTofu reads a text as a template: a session policy may contain ${aws:username}. The caller
 * frees; NULL if out of memory. */
static char *escape(const char *text)
{
    DF_BUF struct df_buf out = DF_BUF_INIT(6 * strlen(text));
    if (!strstr(text, "${") && !strstr(text, "%{"))
        return strdup(text);
    /* Not $${: behind another $ it would mean something else. */
    for (const char *p = text; *p; p++) {
        if (*p == '$' || *p == '%')
            (void)df_buf_addf(&out, "${\"%c\"}", *p);
        else
            (void)df_buf_addc(&out, *p);
    }
    return df_buf_take(&out);
}

static cJSON *make_literal(const cJSON *value);

static bool add_literal(cJSON *to, const cJSON *member)
{
    DF_JSON cJSON *value = make_literal(member);
    if (!value)
        return false;
    if (!cJSON_IsObject(to))
        return cJSON_AddItemToArray(to, DF_TAKE(value));
    DF_FREE char *name = escape(member->string); /* the tool reads keys as templates, too */
    return name && cJSON_AddItemToObject(to, name, DF_TAKE(value));
}

/* The depth is limited by the parser of the document. NULL if out of memory. */
static cJSON *make_literal(const cJSON *value)
{
    const cJSON *member;
    if (cJSON_IsString(value)) {
        DF_FREE char *text = escape(value->valuestring);
        return text ? cJSON_CreateString(text) : NULL;
    }
    if (!cJSON_IsObject(value) && !cJSON_IsArray(value))
        return cJSON_Duplicate(value, true);
    DF_JSON cJSON *copy = cJSON_IsObject(value) ? cJSON_CreateObject() : cJSON_CreateArray();
    if (!copy)
        return NULL;
    cJSON_ArrayForEach (member, value) {
        if (!add_literal(copy, member))
            return NULL;
    }
    return DF_TAKE(copy);
}

/* ---- the file ---- */

static int check_state(const char *type, const cJSON *state, struct df_err *err)
{
    if (!type)
        return df_fail_reason(err, DF_ERR_USER, "InvalidStep", "state.type: is required");
    if (df_streq(type, "managed") && !df_json_str(state, "address"))
        return df_fail_reason(err, DF_ERR_USER, "InvalidStep", "state.address: is required");
    const char *path = df_json_str(state, "config.path");
    if (df_streq(type, "local") && (!path || *path != '/'))
        return df_fail_reason(err, DF_ERR_USER, "InvalidStep",
                              "state.config.path: must be an absolute path, or the state would be "
                              "removed together with the step's work directory");
    return 0;
}

static cJSON *make_settings(const cJSON *config, const struct df_tool *tool)
{
    if (!config)
        return cJSON_CreateObject();
    return df_tool_evaluates_backend(tool) ? make_literal(config) : cJSON_Duplicate(config, true);
}

int df_override_make(const cJSON *state, const struct df_tool *tool, cJSON **ret,
                     struct df_err *err)
{
    const char *type = df_json_str(state, "type");
    if (check_state(type, state, err) < 0)
        return -1;
    if (df_streq(type, "module")) {
        *ret = NULL;
        return 0;
    }
    bool managed = df_streq(type, "managed"); /* its settings are in the environment */
    const cJSON *config = managed ? NULL : df_json_at(state, "config");
    DF_JSON cJSON *doc = cJSON_CreateObject();
    cJSON *settings = df_json_object_at(doc, "terraform");
    cJSON *backend = df_json_object_at(settings, "backend");
    if (df_json_add(backend, managed ? "http" : type, make_settings(config, tool), err) < 0)
        return -1;
    *ret = DF_TAKE(doc);
    return 0;
}
