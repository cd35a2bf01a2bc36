#include "spawner/requests/allowed.h"

#include "spawner/model/allow.h"
#include "spawner/model/ephemeral.h"

/* The class of an executor without one is that of its workspace. */
static const char *class_of(const struct df_spawner *s, const cJSON *executor)
{
    const cJSON *workspace = cJSON_GetObjectItemCaseSensitive(
        s->config->workspaces, df_json_str(executor, "metadata.name"));
    const char *own = df_json_str(executor, "spec.class");
    return own ? own : df_json_str(workspace, "class");
}

/* ---- executors ---- */

/* The old environment was accepted once: keys that are invalid by now count as none. */
static int check_environment(const struct df_allow *a, const struct df_allow_ask *ask,
                             const cJSON *doc, const cJSON *old, struct df_err *err)
{
    DF_JSON cJSON *asked = NULL, *was = NULL;
    if (df_ephemeral_placement(df_json_at(doc, "spec.environment"), &asked, err) < 0)
        return -1;
    if (df_ephemeral_placement(df_json_at(old, "spec.environment"), &was, NULL) < 0)
        was = NULL;
    return df_allow_check(a, ask, asked, was, err) < 0
               ? df_err_wrap(err, "spec.environment: Terrakube's keys")
               : 0;
}

int df_allowed_executor(const struct df_spawner *s, const cJSON *doc, const cJSON *old,
                        enum df_role role, struct df_err *err)
{
    const struct df_allow allow = df_config_allow(s->config, &s->never);
    const struct df_allow_ask ask = {role, DF_ALLOW_EXECUTOR, class_of(s, doc), "placement"};
    if (df_allow_check(&allow, &ask, df_json_at(doc, "spec.placement"),
                       df_json_at(old, "spec.placement"), err) < 0)
        return -1;
    return check_environment(&allow, &ask, doc, old, err);
}

/* ---- runs and workflows ---- */

int df_allowed_run(const struct df_spawner *s, const cJSON *run, const cJSON *executor,
                   enum df_role role, struct df_err *err)
{
    const struct df_allow allow = df_config_allow(s->config, &s->never);
    const char *own = df_json_str(run, "spec.class");
    const struct df_allow_ask ask = {role, DF_ALLOW_RUN, own ? own : class_of(s, executor),
                                     "placement"};
    return df_allow_check(&allow, &ask, df_json_at(run, "spec.placement"), NULL, err);
}

int df_allowed_workflow(const struct df_spawner *s, const cJSON *task, enum df_role role,
                        struct df_err *err)
{
    const struct df_allow allow = df_config_allow(s->config, &s->never);
    struct df_allow_ask ask = {role, DF_ALLOW_WORKFLOW, df_json_str(task, "spec.class"),
                               "workflow"};
    if (df_allow_check_workflow(&allow, &ask, df_json_at(task, "spec.workflow"), err) < 0)
        return -1;
    ask.where = "placement";
    return df_allow_check(&allow, &ask, df_json_at(task, "spec.placement"), NULL, err);
}
