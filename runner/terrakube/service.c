#include "runner/terrakube/service.h"

#include "runner/terrakube/document.h"
#include "runner/terrakube/report.h"

extern char **environ;

/* This pod has no variable of the platform, unless an operator added one. */
static int fill_environment(const cJSON *settings, struct df_terrakube_opened *o,
                            struct df_err *err)
{
    const cJSON *setting;
    cJSON_ArrayForEach (setting, settings)
        (void)df_strs_add(&o->all, cJSON_IsString(setting) ? setting->valuestring : "");
    if (getenv("HOME")) /* where LocalTerraformStateImpl has its files is this pod's own */
        (void)df_strs_set_env(&o->all, "HOME", getenv("HOME"));
    for (char **e = environ; *e; e++) {
        DF_FREE char *name = strndup(*e, strcspn(*e, "="));
        if (name && !df_terrakube_is_platform_variable(name))
            (void)df_strs_add(&o->rest, *e);
    }
    return df_strs_check(&o->all, err) < 0 ? -1 : df_strs_check(&o->rest, err);
}

static int open_part(const cJSON *part, struct df_terrakube_opened *o, struct df_err *err)
{
    const char *payload = df_json_str(part, "payload"), *folder = df_json_str(part, "folder");
    if (!payload)
        return df_fail_reason(err, DF_ERR_USER, "InvalidStep", "terrakube.payload: is required");
    if (fill_environment(df_json_at(part, "settings"), o, err) < 0 ||
        df_terrakube_open(o, payload, false, err) < 0)
        return -1;
    if (folder && df_json_set_str(o->payload.document, "folder", folder, err) < 0)
        return -1;
    if (folder) /* what the payload says is not trusted */
        o->payload.folder = df_json_str(o->payload.document, "folder");
    return 0;
}

static int join(struct df_terrakube_opened *o, const cJSON *part, cJSON *document,
                const struct df_dirs *dirs, struct df_report **report, struct df_err *err)
{
    if (open_part(part, o, err) < 0)
        return -1;
    o->flow.document = document;
    o->flow.is_handed_out = true;
    if (df_terrakube_document_complete(&o->flow, dirs->secret, document, err) < 0)
        return -1;
    return df_terrakube_report_new(&o->flow, dirs, *report, report, err);
}

int df_terrakube_join(cJSON *document, const struct df_dirs *dirs, struct df_report **report,
                      void **ret_opened, struct df_err *err)
{
    DF_SECRET_JSON cJSON *part = cJSON_DetachItemFromObjectCaseSensitive(document, "terrakube");
    struct df_terrakube_opened *o = df_terrakube_opened_new();
    if (!o)
        return df_fail_oom(err);
    if (join(o, part, document, dirs, report, err) < 0) {
        df_terrakube_close(o);
        return -1;
    }
    *ret_opened = o;
    return 0;
}
