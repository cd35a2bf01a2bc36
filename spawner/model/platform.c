#include "spawner/model/platform.h"

#include "spawner/model/model.h"
#include "spawner/model/names.h"

#define NAME "platform"

/* Members of spec that are about a module. */
static const char *const of_module[] = {"variables", "variableFiles", "arguments", NULL};

bool df_platform_is(const cJSON *doc)
{
    return df_streq(df_json_str(doc, "spec.runtime.name"), NAME);
}

/* Its runs would take over what runs of the other kind have left. */
static void check_stays(const cJSON *doc, const cJSON *old, const struct df_path *runtime,
                        struct df_faults *f)
{
    const struct df_path name = {runtime, "name", 0};
    if (old && df_executor_is_in_use(old) && df_platform_is(doc) != df_platform_is(old))
        df_fault(f, &name, "cannot become %s before the executor is destroyed",
                 df_platform_is(doc) ? NAME : "another than " NAME);
}

static void check_secrets(const cJSON *doc, const struct df_path *spec, struct df_faults *f)
{
    const struct df_path secrets = {spec, "secrets", 0};
    const cJSON *secret;
    int at = 0;
    cJSON_ArrayForEach (secret, df_json_at(doc, "spec.secrets")) {
        const struct df_path item = {&secrets, NULL, at++}, as = {&item, "as", 0};
        const char *form = df_json_str(secret, "as");
        if (!form || df_streq(form, "variable"))
            df_fault(f, &as, "must be env or file: a platform has no variables");
    }
}

void df_platform_check_executor(const cJSON *doc, const cJSON *old, const struct df_path *root,
                                struct df_faults *f)
{
    const struct df_path spec = {root, "spec", 0}, runtime = {&spec, "runtime", 0};
    const struct df_path place = {&spec, "storage", 0}, storage = {&place, "type", 0};
    check_stays(doc, old, &runtime, f);
    if (!df_platform_is(doc))
        return;
    for (const char *const *name = of_module; *name; name++) {
        const struct df_path here = {&spec, *name, 0};
        if (cJSON_GetArraySize(df_json_at(df_json_at(doc, "spec"), *name)))
            df_fault(f, &here,
                     "is for modules of OpenTofu and Terraform; a platform has its "
                     "environment and the files of its folder");
    }
    if (!df_streq(df_json_str(doc, "spec.storage.type"), "module"))
        df_fault(f, &storage, "must be module: a platform has no state that a service could keep");
    check_secrets(doc, &spec, f);
}

static int refuse(const char *field, const cJSON *executor, const char *why, struct df_err *err)
{
    return df_fail_reason(err, DF_ERR_USER, "InvalidDocument", "%s: executor %s is a platform, %s",
                          field, df_json_str(executor, "metadata.name"), why);
}

static int check_module_run(const cJSON *run, const cJSON *executor, struct df_err *err)
{
    if (!df_streq(df_json_str(run, "spec.action"), df_action_name(DF_ACTION_VALIDATE)))
        return 0;
    return df_fail_reason(err, DF_ERR_USER, "InvalidDocument",
                          "spec.action: only a platform is validated, and executor %s is a module: "
                          "a dry-run shows what a run would change",
                          df_json_str(executor, "metadata.name"));
}

int df_platform_refuse_state(const cJSON *executor, struct df_err *err)
{
    return df_fail_reason(err, DF_ERR_CONFLICT, "WrongState",
                          "executor %s is a platform: it has no state to work on",
                          df_json_str(executor, "metadata.name"));
}

int df_platform_check_run(const cJSON *run, const cJSON *secrets, const cJSON *executor,
                          struct df_err *err)
{
    const cJSON *spec = df_json_at(run, "spec");
    if (!df_platform_is(executor))
        return check_module_run(run, executor, err);
    for (const char *const *name = of_module; *name; name++) {
        if (cJSON_GetArraySize(df_json_at(spec, *name)))
            return refuse(*name, executor, "and takes nothing that is a module's", err);
    }
    if (df_json_at(secrets, "variables") || df_json_at(secrets, "files"))
        return refuse("variables and their files", executor, "which has none", err);
    if (df_json_at(spec, "runtime.name"))
        return refuse("spec.runtime.name", executor, "which another tool cannot plan", err);
    return df_streq(df_json_str(spec, "action"), df_action_name(DF_ACTION_STATE))
               ? df_platform_refuse_state(executor, err)
               : 0;
}
