/*
 * admit.c - read df_model_admit() first. It fills what follows from other fields, then checks the
 * document with its table, and, if that found no fault, with the rules here: those that compare
 * fields with each other or with the stored document (`old`).
 */
#include "spawner/model/ephemeral.h"
#include "spawner/model/integration_spec.h"
#include "spawner/model/model.h"
#include "spawner/model/move.h"
#include "spawner/model/platform.h"
#include "spawner/model/recipe.h"
#include "spawner/model/rules.h"
#include "spawner/model/schema.h"
#include "spawner/model/state_command.h"
#include "spawner/model/tables.h"
#include "spawner/model/workflow.h"

/* Derives spec.source.kind from the URL, or from a tag, branch or commit. The check that follows
 * requires the kind. */
static int fill_source_kind(cJSON *doc, struct df_err *err)
{
    const cJSON *source = df_json_at(doc, "spec.source");
    const char *url = df_json_str(source, "url");
    if (!url || df_json_at(source, "kind"))
        return 0;
    const char *kind = df_source_kind(url);
    if (!kind &&
        (df_json_at(source, "tag") || df_json_at(source, "branch") || df_json_at(source, "commit")))
        kind = "git";
    cJSON *spec = cJSON_GetObjectItemCaseSensitive(doc, "spec");
    return df_json_add_str(df_json_object_at(spec, "source"), "kind", kind, err);
}

/* Nobody keeps a state of a platform. */
static int fill_storage_type(cJSON *doc, struct df_err *err)
{
    cJSON *spec = cJSON_GetObjectItemCaseSensitive(doc, "spec");
    return !df_platform_is(doc) || df_json_at(spec, "storage.type")
               ? 0
               : df_json_set_str(df_json_object_at(spec, "storage"), "type", "module", err);
}

static int fill_executor(cJSON *doc, struct df_err *err)
{
    if (fill_source_kind(doc, err) < 0 || fill_storage_type(doc, err) < 0)
        return -1;
    return df_storage_fill(cJSON_GetObjectItemCaseSensitive(doc, "spec"),
                           df_json_str(doc, "metadata.name"), err);
}

/* spec.planFrom is required for an apply and forbidden for every other action. */
static void check_plan_from(const cJSON *doc, const struct df_path *root, struct df_faults *f)
{
    const struct df_path spec = {root, "spec", 0}, here = {&spec, "planFrom", 0};
    bool apply = df_recipe_step_of(doc)->plan_of;
    bool has_plan = df_json_at(doc, "spec.planFrom");
    if (apply && !has_plan)
        df_fault(f, &here, "is required for an apply");
    if (!apply && has_plan)
        df_fault(f, &here, "is for an apply alone");
}

/* Only a dry-run may override fields of its executor. */
static void check_overrides(const cJSON *doc, const struct df_path *root, struct df_faults *f)
{
    const char *dry_run = df_action_name(DF_ACTION_DRY_RUN);
    const struct df_path spec = {root, "spec", 0};
    const cJSON *fields = df_json_at(doc, "spec");
    if (df_streq(df_json_str(fields, "action"), dry_run))
        return;
    for (const struct df_field *row = df_run_spec; row->name; row++) {
        const struct df_path here = {&spec, row->name, 0};
        if (df_streq(row->only, dry_run) && df_json_at(fields, row->name))
            df_fault(f, &here, "is for a dry-run alone; change the executor for other runs");
    }
}

/* Another storage would start with an empty state and orphan the resources that the old state
 * records. */
static void check_storage_stays(const cJSON *doc, const cJSON *old, const struct df_path *root,
                                struct df_faults *f)
{
    const struct df_path spec = {root, "spec", 0}, here = {&spec, "storage", 0};
    if (df_executor_is_in_use(old) &&
        !df_storage_is_same(df_json_str(old, "metadata.name"), df_json_at(doc, "spec.storage"),
                            df_json_at(old, "spec.storage")))
        df_fault(f, &here,
                 "cannot be changed before the executor is destroyed; `dayfly state migrate` "
                 "moves its state");
}

/* Another folder is another module, unless URL and folder together lead to the same directory. */
static void check_folder_stays(const cJSON *doc, const cJSON *old, const struct df_path *root,
                               struct df_faults *f)
{
    const struct df_path spec = {root, "spec", 0}, source = {&spec, "source", 0};
    const struct df_path here = {&source, "folder", 0};
    const cJSON *now = df_json_at(doc, "spec.source"), *was = df_json_at(old, "spec.source");
    if (!df_json_equal(df_json_at(now, "folder"), df_json_at(was, "folder")) &&
        !df_source_is_same_directory(now, was))
        df_fault(f, &here, "cannot be changed");
}

/* The keys of ephemeral.h describe a placement, so they are checked as early as one. */
static int check_ephemeral_keys(const cJSON *doc, const struct df_path *root, struct df_faults *f,
                                struct df_err *err)
{
    const struct df_path spec = {root, "spec", 0}, here = {&spec, "environment", 0};
    DF_JSON cJSON *placement = NULL;
    struct df_err why = {0};
    if (df_ephemeral_placement(df_json_at(doc, "spec.environment"), &placement, &why) == 0)
        return 0;
    if (why.cls != DF_ERR_USER)
        return df_err_pass(err, &why);
    df_fault(f, &here, "%s", why.message);
    return 0;
}

static void check_provider_stays(const cJSON *doc, const cJSON *old, const struct df_path *root,
                                 struct df_faults *f)
{
    const struct df_path spec = {root, "spec", 0}, here = {&spec, "provider", 0};
    const char *was = df_json_str(old, "spec.provider");
    if (was && !df_streq(was, df_json_str(doc, "spec.provider")))
        df_fault(f, &here, "cannot be changed: it is %s; make another integration", was);
}

/* ---- each kind ---- */

/* A valid document and the one that it replaces (NULL: none). -1 if it could not be checked. */
typedef int kind_check(const cJSON *doc, const cJSON *old, const struct df_path *root,
                       struct df_faults *f, struct df_err *err);

static int check_executor(const cJSON *doc, const cJSON *old, const struct df_path *root,
                          struct df_faults *f, struct df_err *err)
{
    if (old) {
        check_folder_stays(doc, old, root, f);
        check_storage_stays(doc, old, root, f);
    }
    df_platform_check_executor(doc, old, root, f);
    return f->count ? 0 : check_ephemeral_keys(doc, root, f, err);
}

static int check_run(const cJSON *doc, const cJSON *old, const struct df_path *root,
                     struct df_faults *f, struct df_err *err)
{
    (void)old;
    (void)err;
    check_overrides(doc, root, f);
    df_state_command_check(doc, root, f);
    return 0;
}

static int check_task(const cJSON *doc, const cJSON *old, const struct df_path *root,
                      struct df_faults *f, struct df_err *err)
{
    (void)old;
    (void)err;
    if (df_task_is_workflow(doc)) {
        df_workflow_check(doc, root, f);
        return 0;
    }
    check_plan_from(doc, root, f);
    df_state_command_check(doc, root, f);
    return 0;
}

static int check_integration(const cJSON *doc, const cJSON *old, const struct df_path *root,
                             struct df_faults *f, struct df_err *err)
{
    (void)err;
    check_provider_stays(doc, old, root, f);
    return 0;
}

/* What the fields alone do not say of a kind. NULL: nothing. */
static const struct {
    int (*fill)(cJSON *doc, struct df_err *err); /* before the check */
    kind_check *check;                           /* after that of the fields */
} rules[DF_KIND_COUNT] = {
    [DF_KIND_EXECUTOR] = {fill_executor, check_executor},
    [DF_KIND_RUN] = {df_move_fill, check_run},
    [DF_KIND_TASK_ACTION] = {fill_source_kind, check_task},
    [DF_KIND_INTEGRATION] = {NULL, check_integration},
};

static int report_faults(enum df_kind kind, const struct df_faults *f, struct df_err *err)
{
    char prefix[40];
    (void)snprintf(prefix, sizeof(prefix), "invalid %s: ", df_kind_name(kind));
    return df_faults_fail(f, "InvalidDocument", prefix, err);
}

int df_model_admit(enum df_kind kind, cJSON *doc, const cJSON *old, struct df_err *err)
{
    struct df_faults f = {0};
    const struct df_path root = {0};
    bool is_workflow = kind == DF_KIND_TASK_ACTION && df_task_is_workflow(doc);
    if (!cJSON_IsObject(doc))
        return df_fail_reason(err, DF_ERR_USER, "InvalidDocument", "invalid %s: must be an object",
                              df_kind_name(kind));
    if (rules[kind].fill && rules[kind].fill(doc, err) < 0)
        return -1;
    df_schema_check(is_workflow ? df_workflow_document : df_kind_row(kind)->rows, doc, old, &root,
                    &f);
    if ((!f.count || is_workflow) && rules[kind].check &&
        rules[kind].check(doc, old, &root, &f, err) < 0)
        return -1;
    return report_faults(kind, &f, err);
}
