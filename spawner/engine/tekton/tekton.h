/*
 * tekton.h - the engine that runs a workflow as a Tekton PipelineRun.
 *
 * The PipelineRun has the name of the target, so that a repeated create() is idempotent, and the
 * step's uid as a label, by which ownership is checked. Each operation asks the API server; watches
 * on PipelineRuns and TaskRuns only tell when to look again. Tekton may be installed and removed
 * while the service runs: what has no PipelineRun yet then waits with the cause, and what has one
 * continues when Tekton is back.
 */
#ifndef DF_ENGINE_TEKTON_H
#define DF_ENGINE_TEKTON_H

#include "common/kube/kube.h"
#include "spawner/engine/engine.h"
#include "spawner/model/never.h"

struct df_tekton_options {
    struct df_kube *kube;   /* borrowed; must outlive the engine */
    const char *name_space; /* of new runs; a step whose ref has another one ends there */
    const char
        *workflow_account; /* of workflows that name none; NULL: DF_WORKFLOW_SERVICE_ACCOUNT */
    const struct df_never *never; /* what no step may have; borrowed, must outlive the engine */
    const unsigned char *key;     /* of the proofs (proof.h), copied; NULL: none */
    bool has_vault;               /* the service keeps its secrets as Secrets of that namespace */
    df_engine_notify notify;      /* or NULL */
    void *notify_arg;
};

/* Sends nothing yet: the first call that needs the watches of a namespace starts them. The strings
 * are copied. */
int df_engine_tekton_new(const struct df_tekton_options *o, struct df_engine **ret,
                         struct df_err *err) DF_MUST_CHECK;

#endif
