#include "spawner/api/measure.h"

#include "common/base/clock.h"
#include "common/metrics/metrics.h"
#include "spawner/model/labels.h"

static const char *const phases[] = {"Pending", "Running", "WaitingApproval"};

struct crowd {
    unsigned runs[DF_ARRAY_SIZE(phases)];
    int64_t oldest_us[DF_ARRAY_SIZE(phases)]; /* when it was created; 0: there is none */
};

/* A df_store_visit. A run without a phase is not accepted yet, and counts as pending. */
static int count(const cJSON *run, void *arg, struct df_err *err)
{
    struct crowd *c = arg;
    const char *phase = df_json_str(run, "status.phase");
    int64_t created_us = 0;
    (void)err;
    size_t i = 0;
    while (i < DF_ARRAY_SIZE(phases) && phase && !df_streq(phases[i], phase))
        i++;
    if (i == DF_ARRAY_SIZE(phases))
        return 0;
    c->runs[i]++;
    if (df_time_parse(df_json_str(run, "metadata.creationTimestamp"), &created_us, NULL) == 0 &&
        (c->oldest_us[i] == 0 || created_us < c->oldest_us[i]))
        c->oldest_us[i] = created_us;
    return 0;
}

static void measure_runs(struct df_spawner *s)
{
    struct df_metric *runs =
        df_metric_gauge("dayfly_runs", "Runs that have not ended, by phase.", "phase");
    struct df_metric *age =
        df_metric_gauge("dayfly_oldest_run_age_seconds",
                        "Age of the oldest run in this phase; 0: there is none.", "phase");
    struct crowd c = {0};
    if (df_store_each(s->store, DF_KIND_RUN, DF_LABEL_UNFINISHED "=true", count, &c, NULL) < 0)
        return;
    for (size_t i = 0; i < DF_ARRAY_SIZE(phases); i++) {
        int64_t age_us = c.oldest_us[i] ? df_real_us() - c.oldest_us[i] : 0;
        df_metric_set(runs, phases[i], c.runs[i]);
        df_metric_set(age, phases[i], age_us > 0 ? (double)age_us / 1e6 : 0);
    }
}

void df_measure(struct df_spawner *s, bool leads)
{
    df_metric_set(df_metric_gauge("dayfly_leads",
                                  "1 on the replica that leads; a single service always does.",
                                  NULL),
                  NULL, leads ? 1 : 0);
    measure_runs(s);
}
