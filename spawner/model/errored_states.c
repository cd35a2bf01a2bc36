#include "spawner/model/errored_states.h"

#include "spawner/model/recipe.h"
#include "spawner/model/state_command.h"

#define LIST "status.erroredStates"

static const cJSON *oldest(const cJSON *executor)
{
    return cJSON_GetArrayItem(df_json_at(executor, LIST), 0);
}

bool df_errored_is_kept(const cJSON *executor)
{
    return oldest(executor) != NULL;
}

/* The entry whose member has this value; or NULL. */
static const cJSON *find(const cJSON *executor, const char *member, const char *value)
{
    const cJSON *entry;
    cJSON_ArrayForEach (entry, df_json_at(executor, LIST)) {
        if (value && df_streq(df_json_str(entry, member), value))
            return entry;
    }
    return NULL;
}

bool df_errored_is_of(const cJSON *executor, const char *run)
{
    return find(executor, "run", run) != NULL;
}

void df_errored_words(const cJSON *executor, char *ret, size_t size)
{
    const cJSON *entry = oldest(executor);
    const char *run = df_json_str(entry, "run"), *at = df_json_str(entry, "at");
    ret[0] = '\0';
    if (entry)
        (void)snprintf(ret, size, "%s %.63s could not store its state (%.40s)",
                       run ? "run" : "step", run ? run : df_json_str(entry, "step"),
                       at ? at : "nobody knows when");
}

int df_errored_check(const cJSON *executor, struct df_err *err)
{
    const char *name = df_json_str(executor, "metadata.name");
    char words[256];
    if (!df_errored_is_kept(executor))
        return 0;
    df_errored_words(executor, words, sizeof(words));
    return df_fail_reason(err, DF_ERR_CONFLICT, "ErroredStatePending",
                          "executor %s keeps an errored state: %s, so the stored state lacks what "
                          "it made, and another run could make that twice. Store it with `dayfly "
                          "state push-errored %s`; or, if nobody needs it, remove it with `dayfly "
                          "state discard-errored %s`",
                          name, words, name, name);
}

int df_errored_check_run(const cJSON *executor, const cJSON *run, struct df_err *err)
{
    return !df_run_takes_turn(run) || df_state_command_mends(run) ? 0
                                                                  : df_errored_check(executor, err);
}

int df_errored_set(cJSON *executor, const cJSON *kept, struct df_err *err)
{
    cJSON *status = df_json_object_at(executor, "status");
    DF_JSON cJSON *list = cJSON_CreateArray();
    const cJSON *entry;
    if (!status || !list)
        return df_fail_oom(err);
    cJSON_ArrayForEach (entry, kept) {
        const cJSON *old = find(executor, "step", df_json_str(entry, "step"));
        if (df_json_append(list, cJSON_Duplicate(old ? old : entry, true), err) < 0)
            return -1;
    }
    if (list->child)
        return df_json_set(status, "erroredStates", DF_TAKE(list), err);
    cJSON_DeleteItemFromObjectCaseSensitive(status, "erroredStates");
    return 0;
}
