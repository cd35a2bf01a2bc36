/*
 * placement.h - merges the placements of all levels into one and applies it to a pod template.
 *
 * docs/placement.md describes the fields and how each of them is merged. Thread rule: pure
 * functions.
 */
#ifndef DF_PLACEMENT_H
#define DF_PLACEMENT_H

#include "common/json/json.h"

/* The levels, from the weakest to the strongest. Each may be NULL. All borrowed. */
struct df_placement_levels {
    const cJSON *defaults;    /* the configuration's, for all steps */
    const cJSON *class;       /* the configuration's, for the class of the step */
    const cJSON *workspace;   /* the configuration's, for the Executor */
    const cJSON *environment; /* spec.environment of the Executor: the keys of ephemeral.h */
    const cJSON *executor;    /* spec.placement of the Executor */
    const cJSON *run;         /* spec.placement of the Run */
};

/* Merges all levels into one placement and checks the result: levels that are valid alone can be
 * invalid together (a request above another level's limit). Its podTemplate is the list of all
 * patches. The caller owns *ret. Class USER, reason InvalidPlacement. Merging is associative: the
 * merge of Executor and Run may be stored and later be merged over the defaults. */
int df_placement_resolve(const struct df_placement_levels *levels, cJSON **ret,
                         struct df_err *err) DF_MUST_CHECK;

struct df_placement_target {
    const char *container; /* gets image, env, mounts and resources */
    bool has_plugin_claim; /* the PersistentVolumeClaim of an optional pluginCache exists */
};

/* Applies a resolved placement to *pod_template (a PodTemplateSpec), its podTemplate patches last.
 * `labels` are set on the pod; the caller sets `labels` and `annotations` on the Job. An optional
 * plugin cache without its claim becomes an empty directory, so that the path exists. placement may
 * be NULL. On failure *pod_template is unchanged. */
int df_placement_apply(const cJSON *placement, const struct df_placement_target *target,
                       cJSON **pod_template, struct df_err *err) DF_MUST_CHECK;

/* The path of tofu's plugin cache in the pod, or NULL. Borrowed from placement. */
const char *df_placement_plugin_cache(const cJSON *placement);

#endif
