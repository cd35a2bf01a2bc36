#include "spawner/cli/timeline.h"

#include "common/base/clock.h"

#define STAGES_MAX 32 /* there are nine */

/* Each stage, as named in docs/objects.md, and what had happened when it was reached. */
static const char *const stages[][2] = {
    {"queued", "waited for its turn"},
    {"created", "waited for a free place"},
    {"started", "runner's process, or the workflow, was started"},
    {"claimed", "runner took the step"},
    {"sourced", "source was fetched"},
    {"initialized", "tool was found and init ran"},
    {"executed", "the tool, or the workflow, ran"},
    {"stored", "plan or state was stored"},
    {"reported", "result was reported"},
};

static const char *meaning_of(const char *stage)
{
    for (size_t i = 0; i < DF_ARRAY_SIZE(stages); i++)
        if (df_streq(stages[i][0], stage))
            return stages[i][1];
    return NULL;
}

static bool is_later(const cJSON *a, const cJSON *b)
{
    const char *x = df_json_str(a, "at"), *y = df_json_str(b, "at");
    return strcmp(x ? x : "", y ? y : "") > 0;
}

/* Sorts the entries by time: runner and service write them, so their order may differ. */
static size_t sorted(const cJSON *timeline, const cJSON *ret[STAGES_MAX])
{
    size_t n = 0;
    const cJSON *entry = NULL;
    cJSON_ArrayForEach (entry, timeline) {
        if (n == STAGES_MAX)
            break;
        size_t at = n++;
        for (; at > 0 && is_later(ret[at - 1], entry); at--)
            ret[at] = ret[at - 1];
        ret[at] = entry;
    }
    return n;
}

static void add_stage(struct df_table *t, const cJSON *entry, int64_t *before)
{
    const char *name = df_json_str(entry, "name"), *at = df_json_str(entry, "at");
    int64_t us = 0;
    bool timed = at && df_time_parse(at, &us, NULL) == 0;
    DF_FREE char *took = timed && *before ? df_strf("+%.3f s", (double)(us - *before) / 1e6) : NULL;
    df_table_add(t, name);
    df_table_add(t, at);
    df_table_add(t, took);
    df_table_add(t, meaning_of(name));
    if (timed)
        *before = us;
}

int df_timeline_add(const cJSON *task, struct df_table_shape shape, struct df_buf *out,
                    struct df_err *err)
{
    const cJSON *entries[STAGES_MAX];
    size_t n = sorted(df_json_at(task, "status.timeline"), entries);
    DF_TABLE struct df_table t = {.columns = 4, .shape = &shape};
    int64_t before = 0;
    for (size_t i = 0; i < n; i++)
        add_stage(&t, entries[i], &before);
    if (!n)
        return 0;
    (void)df_buf_adds(out, "\nTimeline:\n");
    return df_table_print(&t, 2, out, err);
}
