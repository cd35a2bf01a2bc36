#include "spawner/model/kinds.h"

#include "spawner/model/executor.h"
#include "spawner/model/integration_spec.h"
#include "spawner/model/run.h"
#include "spawner/model/tables.h"
#include "spawner/model/workflow.h"

static const struct df_state_member executor_states[] = {
    {"status.state", DF_EXECUTOR_STATES, "state"},
    {"status.status", DF_EXECUTOR_STATUSES, "status"},
    {0}};
static const struct df_state_member run_states[] = {{"status.phase", DF_RUN_PHASES, "phase"}, {0}};
static const struct df_state_member task_states[] = {{.path = "status.reason"}, {0}};

static const struct df_kind_row kinds[DF_KIND_COUNT] = {
    [DF_KIND_EXECUTOR] = {.name = "Executor",
                          .shown = {"executors", "executor", "executors|executor|exec|ex",
                                    "metadata.name", executor_states, df_executor_columns,
                                    df_executor_details},
                          .short_name = "dfe",
                          .rows = df_executor_rows,
                          .spec = df_executor_spec,
                          .is_custom_resource = true,
                          .is_editable = true},
    [DF_KIND_RUN] = {.name = "Run",
                     .shown = {"runs", "run", "runs|run", "metadata.name", run_states,
                               df_run_columns, df_run_details},
                     .short_name = "dfr",
                     .rows = df_run_rows,
                     .spec = df_run_spec,
                     .is_custom_resource = true,
                     .newest_first = true},
    [DF_KIND_TASK_ACTION] = {.name = "TaskAction",
                             .shown = {"taskactions", "taskaction",
                                       "taskactions|taskaction|tasks|task|steps|step",
                                       "metadata.name", task_states, df_task_columns,
                                       df_task_details},
                             .short_name = "dft",
                             .rows = df_task_rows,
                             .spec = df_task_spec,
                             .other_specs = {df_workflow_rows, df_terrakube_rows},
                             .is_custom_resource = true,
                             .newest_first = true},
    /* In a cluster whoever may write a custom resource could hand out credentials by it. */
    [DF_KIND_INTEGRATION] = {.name = "Integration",
                             .shown = {"integrations", "integration", "integrations|integration",
                                       "metadata.name", NULL, df_integration_columns,
                                       df_integration_details},
                             .rows = df_integration_document,
                             .spec = df_integration_rows,
                             .is_editable = true},
    [DF_KIND_REVISION] = {.name = "Revision",
                          .shown = {"revisions", "revision", "revisions|revision", "metadata.name",
                                    NULL, df_revision_columns, df_revision_details},
                          .short_name = "dfv",
                          .rows = df_revision_rows,
                          .spec = df_revision_spec,
                          .is_custom_resource = true,
                          .newest_first = true},
};

const struct df_kind_row *df_kind_row(enum df_kind kind)
{
    return &kinds[kind];
}

const char *df_kind_name(enum df_kind kind)
{
    return kinds[kind].name;
}

const char *df_kind_plural(enum df_kind kind)
{
    return kinds[kind].shown.plural;
}

const char *df_state_of(const struct df_state_member *m, const cJSON *doc)
{
    const char *state = df_json_str(doc, m->path);
    if (!state && df_streq(m->path, "status.phase"))
        return "Pending"; /* not reconciled yet */
    return state;
}

const struct df_field *df_spec_field(enum df_kind kind, const char *name)
{
    const struct df_kind_row *k = &kinds[kind];
    const struct df_field *row = df_field_find(k->spec, name);
    for (size_t i = 0; !row && i < DF_ARRAY_SIZE(k->other_specs) && k->other_specs[i]; i++)
        row = df_field_find(k->other_specs[i], name);
    return row;
}
