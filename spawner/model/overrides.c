#include "spawner/model/overrides.h"

/* The members that select a version of the files. If the override has one of them, or another kind
 * of source, it replaces all of them. */
static const char *const references[] = {"tag", "branch", "commit", "sha256"};

static bool names_version(const cJSON *source)
{
    if (df_json_at(source, "kind"))
        return true;
    for (size_t i = 0; i < DF_ARRAY_SIZE(references); i++)
        if (df_json_at(source, references[i]))
            return true;
    return false;
}

static int set_members(cJSON *to, const cJSON *from, struct df_err *err)
{
    const cJSON *item;
    cJSON_ArrayForEach (item, from) {
        if (df_json_set(to, item->string, cJSON_Duplicate(item, true), err) < 0)
            return -1;
    }
    return 0;
}

static bool is_reference(const cJSON *source)
{
    return df_json_at(source, "tag") || df_json_at(source, "branch") ||
           df_json_at(source, "commit");
}

static int merge_source(cJSON *spec, const cJSON *wanted, struct df_err *err)
{
    cJSON *source = df_json_object_at(spec, "source");
    if (!source)
        return df_fail_oom(err);
    for (size_t i = 0; names_version(wanted) && i < DF_ARRAY_SIZE(references); i++)
        cJSON_DeleteItemFromObjectCaseSensitive(source, references[i]);
    if (is_reference(wanted) && df_json_set_str(source, "kind", "git", err) < 0)
        return -1;
    return set_members(source, wanted, err);
}

/* A version belongs to a tool: if the override names another tool, the old version is dropped. */
static int merge_runtime(cJSON *spec, const cJSON *wanted, struct df_err *err)
{
    cJSON *runtime = df_json_object_at(spec, "runtime");
    const char *name = df_json_str(wanted, "name");
    if (!runtime)
        return df_fail_oom(err);
    if (name && !df_streq(name, df_json_str(runtime, "name")))
        cJSON_DeleteItemFromObjectCaseSensitive(runtime, "version");
    return set_members(runtime, wanted, err);
}

/* Does the run use the commit that the executor names? */
static bool keeps_commit(const cJSON *spec, const cJSON *wanted)
{
    const char *own = df_json_str(spec, "source.commit");
    return own && (!names_version(wanted) || df_streq(df_json_str(wanted, "commit"), own));
}

int df_overrides_merge(cJSON *spec, const cJSON *run, struct df_err *err)
{
    const cJSON *source = df_json_at(run, "spec.source");
    const cJSON *runtime = df_json_at(run, "spec.runtime");
    bool is_own = keeps_commit(spec, source);
    if (source && merge_source(spec, source, err) < 0)
        return -1;
    if (is_own &&
        df_json_set(df_json_object_at(spec, "source"), "anyCommit", cJSON_CreateTrue(), err) < 0)
        return -1;
    return runtime ? merge_runtime(spec, runtime, err) : 0;
}

int df_overrides_check(const cJSON *run, const cJSON *executor, struct df_err *err)
{
    DF_JSON cJSON *doc = cJSON_CreateObject();
    cJSON *spec = cJSON_Duplicate(df_json_at(executor, "spec"), true);
    if (df_json_add(doc, "spec", spec, err) < 0 ||
        df_json_add_str(df_json_object_at(doc, "metadata"), "name",
                        df_json_str(executor, "metadata.name"), err) < 0)
        return -1;
    if (!df_json_at(run, "spec.source") && !df_json_at(run, "spec.runtime"))
        return 0;
    if (df_overrides_merge(spec, run, err) < 0)
        return -1;
    if (df_model_admit(DF_KIND_EXECUTOR, doc, NULL, err) < 0)
        return df_err_wrap(err, "with the source and runtime of this run");
    return 0;
}
