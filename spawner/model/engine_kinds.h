/*
 * engine_kinds.h - the engines that a service can have, and what is known of each before it is
 * open: for the configuration, the doctor and the command line. Nobody else asks for an engine's
 * name; who wants to know what an engine can do asks for a trait (tests/style insists).
 * open_engines.c opens them. Thread rule: constants.
 */
#ifndef DF_ENGINE_KINDS_H
#define DF_ENGINE_KINDS_H

#include "common/base/buf.h"

/* The rows of the table. */
enum df_engine_id {
    DF_ENGINE_LOCAL,
    DF_ENGINE_JOB,
    DF_ENGINE_TEKTON,
    DF_ENGINE_ANSIBLE,
    DF_ENGINE_COUNT
};

/* What the parameters of a workflow become, which decides the names that they may have. */
enum df_parameters {
    DF_PARAMETERS_ENVIRONMENT, /* variables of the container's environment */
    DF_PARAMETERS_PIPELINE,    /* parameters of a Tekton Pipeline */
    DF_PARAMETERS_PLAYBOOK     /* variables of a playbook */
};

struct df_engine_kind {
    const char *name;   /* spec.engine of a step, and a word of `engines` */
    bool needs_cluster; /* it is a client of the API server */
    bool runs_here;     /* its steps are processes of this machine: they end with the service. Steps
                           of the others do not, and others than the service may end them */
    bool runs_pods; /* its runners are pods: they claim with a token of the cluster, and have the
                           tools and plugin cache of their image and placement */
    bool takes_runs, takes_workflows; /* whose steps it runs */
    bool runs_pipelines;              /* it makes objects of Tekton */
    bool asks_awx; /* it is a client of AWX, and reads what workflows depend on to hand it over */
    enum df_parameters parameters;
    bool needs_config; /* spec.workflow.engineConfig; executionBundle is a Git URL then, no image */
};

extern const struct df_engine_kind df_engine_kinds[DF_ENGINE_COUNT];

/* NULL: there is no such engine. name may be NULL. */
const struct df_engine_kind *df_engine_kind_of(const char *name);

/* Adds all names: "local nor job nor tekton". */
void df_engine_names(struct df_buf *to, const char *between);

#endif
