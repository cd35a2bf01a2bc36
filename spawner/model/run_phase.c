/* Where a run is: for all who only ask that. */
#include "spawner/model/run.h"

static const char *const final_phases[] = {"Succeeded", "Failed", "Canceled", "Discarded"};

const char *df_run_phase(const cJSON *run)
{
    const char *phase = df_json_str(run, "status.phase");
    return phase ? phase : "Pending";
}

bool df_run_is_final(const cJSON *run)
{
    for (size_t i = 0; i < DF_ARRAY_SIZE(final_phases); i++)
        if (df_streq(df_run_phase(run), final_phases[i]))
            return true;
    return false;
}
