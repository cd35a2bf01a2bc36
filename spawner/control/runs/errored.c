#include "spawner/control/runs/errored.h"

#include "spawner/model/errored_states.h"
#include "spawner/model/recipe.h"
#include "spawner/steps/errored.h"

/* Replaces *executor by the stored one, which names the errored states that are kept now; by NULL
 * if it was deleted. */
static int look(struct df_spawner *s, const char *name, const cJSON **executor, struct df_err *err)
{
    cJSON *noted = NULL;
    if (df_errored_note(s, name, &noted, err) < 0)
        return -1;
    df_shared_drop(*executor);
    *executor = df_shared_new(noted);
    return *executor || !noted ? 0 : df_fail_oom(err);
}

int df_errored_observe(struct df_spawner *s, const char *name, const cJSON **executor,
                       struct df_err *err)
{
    return df_errored_is_kept(*executor) ? look(s, name, executor, err) : 0;
}

int df_errored_settle(struct df_spawner *s, const cJSON *run, const cJSON **executor,
                      struct df_run_verdict *v, struct df_err *err)
{
    size_t n = strlen(v->message);
    if (v->next != DF_RUN_FINISH || df_streq(v->phase, "Succeeded") ||
        !df_run_may_have_written(run))
        return 0;
    if (look(s, df_json_str(run, "spec.executorRef.name"), executor, err) < 0)
        return -1;
    if (df_errored_is_of(*executor, df_json_str(run, "metadata.name")) &&
        !strstr(v->message, "errored state"))
        (void)snprintf(v->message + n, sizeof(v->message) - n,
                       "; its state could not be stored and is kept as the errored state: push it "
                       "before anything else");
    return 0;
}
