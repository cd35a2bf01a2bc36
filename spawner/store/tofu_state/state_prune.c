/*
 * state_prune.c - which versions of a state stay. A person with the role `write` can store any
 * number of versions; neither their number nor their age may push out the last state that a run has
 * left.
 */
#include "common/base/clock.h"
#include "spawner/store/tofu_state/states.h"

/* What stays of a history. */
struct kept {
    int64_t oldest;  /* it and all after it stay; 0: all do */
    int64_t by_step; /* the newest that a step wrote stays as well; 0: there is none */
    int64_t beyond;  /* how many versions do not stay */
};

/* Of a version whose meta does not say when it was made: always, so that it stays. */
static int64_t made_us(const cJSON *meta)
{
    const char *at = df_json_str(meta, "createdAt");
    int64_t us = 0;
    return at && df_time_parse(at, &us, NULL) == 0 ? us : INT64_MAX;
}

static bool is_of_step(const cJSON *meta)
{
    return !df_str_empty(df_json_str(meta, "step"));
}

/* Only versions whose meta can be read count: names that somebody else put there must not push out
 * real ones. keys are sorted. */
static int choose_kept(struct df_states *s, const char *uid, const struct df_strs *keys,
                       const struct df_state_keep *keep, struct kept *ret, struct df_err *err)
{
    struct kept k = {0};
    int64_t seen = 0;
    for (size_t i = keys->len; i > 0; i--) {
        int64_t number = df_state_number_in(keys->items[i - 1]);
        DF_JSON cJSON *meta = NULL;
        bool is_older = k.oldest != 0;
        k.beyond += number && is_older;
        if (!number || (is_older && k.by_step))
            continue;
        if (df_state_load_meta(s, uid, number, &meta, err) < 0)
            return -1;
        if (!k.by_step && is_of_step(meta)) {
            k.by_step = number;
            k.beyond -= is_older;
        }
        bool in_time = !keep->since_us || made_us(meta) <= keep->since_us;
        if (!is_older && ++seen >= keep->newest && in_time)
            k.oldest = number;
    }
    *ret = k;
    return 0;
}

static int64_t count_versions(const struct df_strs *keys)
{
    int64_t n = 0;
    for (size_t i = 0; i < keys->len; i++)
        n += df_state_number_in(keys->items[i]) != 0;
    return n;
}

/* Of a pair the meta goes first: a document without its meta is no version. One that an earlier
 * prune left goes as well. */
static int remove_others(struct df_states *s, const struct df_strs *keys, const struct kept *k,
                         struct df_err *err)
{
    for (size_t i = 0; i < keys->len; i++) {
        const char *name = strrchr(keys->items[i], '/') + 1;
        int64_t number = strtoll(name, NULL, 10); /* 0: a lock, or an errored state */
        if (number && number < k->oldest && number != k->by_step &&
            df_blob_delete(s->blobs, keys->items[i], err) < 0)
            return -1;
    }
    return 0;
}

int df_state_prune(struct df_states *s, const char *executor_uid, const struct df_state_keep *keep,
                   bool dry_run, int64_t *ret_count, struct df_err *err)
{
    DF_STRS struct df_strs keys = {0};
    struct kept k = {0};
    DF_STATE_TURN pthread_mutex_t *turn = df_state_enter(s, executor_uid);
    if (df_state_list(s, executor_uid, &keys, err) < 0)
        return -1;
    if (count_versions(&keys) > keep->newest &&
        choose_kept(s, executor_uid, &keys, keep, &k, err) < 0)
        return -1;
    if (k.beyond && !dry_run && remove_others(s, &keys, &k, err) < 0)
        return -1;
    *ret_count = k.beyond;
    return 0;
}
