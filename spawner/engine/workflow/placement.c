#include "spawner/engine/workflow/workflow.h"

static bool has(const char *const *words, const char *word)
{
    while (*words && !df_streq(*words, word))
        words++;
    return *words;
}

/* The instance's image, service account and resources are for the runner. */
static bool is_for_workflows(const char *const *taken, const char *key)
{
    static const char *const of_runner[] = {"image", "serviceAccountName", "resources",
                                            "pluginCache", NULL};
    return !has(of_runner, key) && (!taken || has(taken, key));
}

int df_workflow_placement(const struct df_engine_step *step, const char *const *taken, cJSON **ret,
                          struct df_err *err)
{
    const struct df_placement_levels instance = {.defaults = step->placement.defaults,
                                                 .class = step->placement.class};
    DF_JSON cJSON *defaults = NULL;
    if (df_placement_resolve(&instance, &defaults, err) < 0)
        return -1;
    for (cJSON *key = defaults->child, *next; key; key = next) {
        next = key->next;
        if (!is_for_workflows(taken, key->string))
            cJSON_Delete(cJSON_DetachItemViaPointer(defaults, key));
    }
    const struct df_placement_levels levels = {.defaults = defaults,
                                               .executor = step->placement.executor};
    return df_placement_resolve(&levels, ret, err);
}
