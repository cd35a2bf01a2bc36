/*
 * task_kinds.h - what a TaskAction is, by its spec.action: a step of a run, a workflow of another
 * scheduler, a step of Terrakube. Each kind has a row; who differs by the kind asks the row, or has
 * a table of its own by its number. Thread rule: pure functions, any thread.
 */
#ifndef DF_MODEL_TASK_KINDS_H
#define DF_MODEL_TASK_KINDS_H

#include "common/json/json.h"

#define DF_ACTION_TERRAKUBE "terrakube"

enum df_task_kind_id { DF_TASK_STEP, DF_TASK_WORKFLOW, DF_TASK_TERRAKUBE };
#define DF_TASK_KINDS 3

struct df_task_kind {
    enum df_task_kind_id id;
    const char *action; /* NULL: any other */
    /* Of spec and of the step document: what its upstream says of the step (upstream.h). NULL: no
     * upstream gave it. */
    const char *member;
    bool has_managed_state; /* unless its storage says something else */
    bool may_create;        /* each may create objects; else those that apply a plan */
    const char *comparison; /* what shows people whether a state has an object */
};

/* The row of this TaskAction; of other documents, and of NULL, that of a step of a run. */
const struct df_task_kind *df_task_kind(const cJSON *task);

/* What its upstream says of the step, borrowed. NULL: no upstream gave it. */
const cJSON *df_task_of_upstream(const cJSON *task);

#endif
