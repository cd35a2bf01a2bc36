#include "spawner/model/engine_kinds.h"

const struct df_engine_kind df_engine_kinds[DF_ENGINE_COUNT] = {
    [DF_ENGINE_LOCAL] = {"local", .runs_here = true, .takes_runs = true},
    [DF_ENGINE_JOB] = {"job", .needs_cluster = true, .runs_pods = true, .takes_runs = true,
                       .takes_workflows = true},
    [DF_ENGINE_TEKTON] = {"tekton", .needs_cluster = true, .takes_workflows = true,
                          .runs_pipelines = true, .parameters = DF_PARAMETERS_PIPELINE},
    [DF_ENGINE_ANSIBLE] = {"ansible", .needs_cluster = true, .takes_workflows = true,
                           .needs_config = true, .asks_awx = true,
                           .parameters = DF_PARAMETERS_PLAYBOOK},
};

const struct df_engine_kind *df_engine_kind_of(const char *name)
{
    for (size_t i = 0; i < DF_ENGINE_COUNT; i++)
        if (df_streq(df_engine_kinds[i].name, name))
            return &df_engine_kinds[i];
    return NULL;
}

void df_engine_names(struct df_buf *to, const char *between)
{
    for (size_t i = 0; i < DF_ENGINE_COUNT; i++)
        (void)df_buf_addf(to, "%s%s", i ? between : "", df_engine_kinds[i].name);
}
