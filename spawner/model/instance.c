#include "spawner/model/instance.h"

#include "common/base/buf.h"
#include "common/base/parse.h"
#include "spawner/model/ephemeral.h"
#include "spawner/model/placement.h"
#include "spawner/model/rows.h"
#include "spawner/model/tables.h"

static const struct df_field standby_rows[] = {
    WHOLE("min", 0, DF_LIMIT_STANDBY),
    WHOLE("max", 0, DF_LIMIT_STANDBY),
    {0},
};

static const struct df_field class_rows[] = {
    WHOLE("limit", 1, DF_LIMIT_STEPS),
    OBJECT("standby", standby_rows),
    DF_ROW_PLACEMENT,
    {0},
};

static const struct df_field workspace_rows[] = {
    DF_ROW_CLASS(),
    DF_ROW_ENVIRONMENT(),
    DF_ROW_PLACEMENT,
    {0},
};

/* Checks the keys of ephemeral.h now rather than at the executor's first step. */
static void check_ephemeral_keys(const cJSON *member, const struct df_path *path,
                                 struct df_faults *f)
{
    const struct df_path here = {path, "environment", 0};
    DF_JSON cJSON *placement = NULL;
    struct df_err why = {0};
    if (df_ephemeral_placement(df_json_at(member, "environment"), &placement, &why) == 0)
        return;
    if (why.cls == DF_ERR_USER)
        df_fault(f, &here, "%s", why.message);
    else
        f->no_memory = true;
}

static void check_standby(const cJSON *member, const struct df_path *path, struct df_faults *f)
{
    const struct df_path standby = {path, "standby", 0}, here = {&standby, "max", 0};
    const cJSON *said = df_json_at(member, "standby");
    int64_t min = df_json_int(said, "min", 0), max = df_json_int(said, "max", min);
    if (max < min)
        df_fault(f, &here, "is %lld, and min is %lld: it must not be less", (long long)max,
                 (long long)min);
}

/* The members of a section have the same naming rule as documents. */
static void check_member(cJSON *member, const struct df_field *rows, const struct df_path *path,
                         struct df_faults *f)
{
    int before = f->count;
    if (!df_is_dns_label(member->string))
        df_fault(f, path, "is not a valid name: at most %d lower-case letters, digits and -",
                 DF_LIMIT_NAME);
    else if (!cJSON_IsObject(member))
        df_fault(f, path, "must be a mapping");
    else
        df_schema_check(rows, member, NULL, path, f);
    if (f->count > before)
        return;
    check_ephemeral_keys(member, path, f);
    check_standby(member, path, f);
}

static int check_section(const char *name, cJSON *section, const struct df_field *rows,
                         struct df_err *err)
{
    struct df_faults f = {0};
    const struct df_path root = {0}, path = {&root, name, 0};
    for (cJSON *m = section ? section->child : NULL; m; m = m->next) {
        const struct df_path here = {&path, m->string, 0};
        check_member(m, rows, &here, &f);
    }
    return df_faults_fail(&f, "", "", err);
}

int df_classes_check(cJSON *classes, struct df_err *err)
{
    return check_section("classes", classes, class_rows, err);
}

int df_workspaces_check(cJSON *workspaces, const cJSON *classes, struct df_err *err)
{
    if (check_section("workspaces", workspaces, workspace_rows, err) < 0)
        return -1;
    for (const cJSON *w = workspaces ? workspaces->child : NULL; w; w = w->next)
        if (df_class_check(classes, df_json_str(w, "class"), err) < 0)
            return df_err_wrap(err, "workspaces.%s", w->string);
    return 0;
}

int df_class_check(const cJSON *classes, const char *name, struct df_err *err)
{
    if (!classes || !name || cJSON_GetObjectItemCaseSensitive(classes, name))
        return 0;
    DF_BUF struct df_buf known = DF_BUF_INIT(400);
    for (const cJSON *c = classes->child; c; c = c->next)
        (void)df_buf_addf(&known, "%s%s", known.len ? ", " : "", c->string);
    return df_fail_reason(err, DF_ERR_USER, "InvalidPlacement",
                          "class: \"%.64s\" is not among the classes of this service: %s", name,
                          known.len ? df_buf_str(&known) : "it has none");
}
