/*
 * placement.h - the placements of three levels made one, and put into a pod template.
 *
 * The fields and how each of them merges: docs/placement.md. Thread rule: pure functions.
 */
#ifndef DF_PLACEMENT_H
#define DF_PLACEMENT_H

#include "common/json/json.h"

/* Who says what, from the weakest to the strongest. Each may be NULL. All borrowed. */
struct df_placement_levels {
    const cJSON *defaults;    /* of the instance: its configuration */
    const cJSON *class;       /* the same for the class of the step */
    const cJSON *workspace;   /* the same for its Executor */
    const cJSON *environment; /* spec.environment of the Executor: Terrakube's keys in it */
    const cJSON *executor;    /* spec.placement of the Executor */
    const cJSON *run;         /* spec.placement of the Run */
};

/* One placement out of all levels, checked as a whole: what each level may say alone can be wrong
 * together (a request above another level's limit). Its podTemplate is the list of all patches.
 * The caller owns *ret. Class USER, reason InvalidPlacement. Merging is associative: the merge of
 * Executor and Run may be stored and the defaults merged below it later. */
int df_placement_resolve(const struct df_placement_levels *levels, cJSON **ret,
                         struct df_err *err) DF_MUST_CHECK;

struct df_placement_target {
    const char *container; /* the one that image, env, mounts and resources are for */
    bool has_plugin_claim; /* the claim of a pluginCache that is optional exists */
};

/* Puts a resolved placement into *pod_template (a PodTemplateSpec), its podTemplate patches last.
 * Labels are put on the pod; for the Job use the placement's `labels` and `annotations` again. An
 * optional plugin cache without its claim becomes an empty directory, so that the path exists.
 * placement may be NULL. On failure *pod_template is as it was. */
int df_placement_apply(const cJSON *placement, const struct df_placement_target *target,
                       cJSON **pod_template, struct df_err *err) DF_MUST_CHECK;

/* Where tofu finds its plugin cache in the pod, or NULL. Borrowed from placement. */
const char *df_placement_plugin_cache(const cJSON *placement);

#endif
