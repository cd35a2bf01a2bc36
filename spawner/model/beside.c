#include "spawner/model/beside.h"

#include "spawner/model/recipe.h"
#include "spawner/model/run.h"

bool df_beside_is_open(const cJSON *run)
{
    return !df_run_takes_turn(run) && !df_json_str(run, "status.beside") &&
           cJSON_GetArraySize(df_json_at(run, "status.steps")) == 0;
}

int df_beside_note(cJSON *run, const cJSON *beside, struct df_err *err)
{
    return df_json_set_str(df_json_object_at(run, "status"), "beside",
                           df_json_str(beside, "metadata.name"), err);
}

static const char *what_it_does(const cJSON *beside)
{
    static const struct {
        const char *phase, *words;
    } known[] = {{"WaitingApproval", "waits for approval"}, {"Running", "is running"}};
    for (size_t i = 0; i < DF_ARRAY_SIZE(known); i++)
        if (df_streq(df_run_phase(beside), known[i].phase))
            return known[i].words;
    return "is about to begin";
}

void df_beside_words(const cJSON *run, const cJSON *beside, char *to, size_t size)
{
    const char *name = df_json_str(run, "status.beside");
    *to = '\0';
    if (!name)
        return;
    if (beside && !df_run_is_final(beside))
        (void)snprintf(
            to, size,
            "the plan is of the state as it is stored: run %s, which %s, is no part of it", name,
            what_it_does(beside));
    else if (!beside || df_run_may_have_written(beside))
        (void)snprintf(to, size,
                       "the plan is of the state as it was stored: run %s has ended since and may "
                       "have changed it",
                       name);
}
