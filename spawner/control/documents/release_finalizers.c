#include "spawner/control/documents/release_finalizers.h"

#include "common/base/log.h"
#include "common/kube/kube.h"
#include "spawner/model/labels.h"
#include "spawner/model/recipe.h"
#include "spawner/steps/engine_step.h"
#include "spawner/steps/unrecorded.h"

static bool is_being_deleted(struct df_kube *kube, const char *name_space)
{
    DF_FREE char *path = df_strf("/api/v1/namespaces/%s", name_space);
    DF_JSON cJSON *found = NULL;
    return path && df_kube_get_raw(kube, path, &found, NULL) == 0 && df_kube_is_deleted(found);
}

/* ---- states ---- */

/* A df_store_visit. */
static int tell_holdings(const cJSON *executor, void *arg, struct df_err *err)
{
    struct df_spawner *s = arg;
    const char *name = df_json_str(executor, "metadata.name");
    struct df_state_holdings h = {0};
    struct df_err why = {0};
    (void)err;
    if (df_state_holdings(s->states, df_json_str(executor, "metadata.uid"), &h, &why) < 0)
        df_warn("executor %s: what its state holds cannot be read: %s", name, why.message);
    else if (h.count < 0)
        df_warn("executor %s: its state is encrypted or too large to list its resources, and no "
                "copy of it will remain",
                name);
    else if (h.count > 0)
        df_warn("executor %s: these resources stay, and no state will contain them: %s", name,
                h.list);
    return 0;
}

/* ---- steps under way ---- */

/* The resources that the apply has made and no state contains. What it makes until it ends is
 * recorded nowhere. */
static void tell_apply(struct df_spawner *s, const cJSON *step)
{
    const char *executor = df_json_str(step, "spec.executorRef.name");
    DF_JSON cJSON *found = NULL;
    DF_STRS struct df_strs names = {0};
    const cJSON *item;
    struct df_err why = {0};
    if (df_unrecorded_find(s, step, &found, &why) < 0)
        df_warn("what step %s made is not known: %s", df_json_str(step, "metadata.name"),
                why.message);
    cJSON_ArrayForEach (item, df_json_at(found, "items"))
        (void)df_strs_add(&names, df_json_str(item, "address"));
    DF_FREE char *list = df_strs_join(&names, ", ");
    df_warn("executor %s: step %s is in the middle of an apply and is asked to end; resources "
            "created since its last state are in no state%s%s",
            executor, df_json_str(step, "metadata.name"), df_str_empty(list) ? "" : ": ",
            list ? list : "");
}

/* A df_store_visit. Pods beside the service are being deleted anyway; those in a namespace of their
 * own would run on, and nobody would take their state. */
static int end_step(const cJSON *step, void *arg, struct df_err *err)
{
    struct df_spawner *s = arg;
    struct df_engine_step of;
    struct df_engine *engine = NULL;
    struct df_err why = {0};
    (void)err;
    if (df_task_is_final(step))
        return 0;
    if (df_recipe_step_of(step)->plan_of)
        tell_apply(s, step);
    df_engine_step_of(s, step, &of);
    if (df_engine_get_for(&s->engines, df_json_str(step, "spec.engine"), &of, &engine, NULL) == 0 &&
        df_engine_ops_of(engine, &of)->cancel(engine, &of, &why) < 0)
        df_warn("step %s goes on: %s", of.name, why.message);
    return 0;
}

/* ---- documents ---- */

/* A df_store_visit. */
static int add_name(const cJSON *doc, void *arg, struct df_err *err)
{
    (void)df_strs_add(arg, df_json_str(doc, "metadata.name"));
    return df_strs_check(arg, err);
}

static void let_go_all(struct df_spawner *s, enum df_kind kind)
{
    DF_STRS struct df_strs names = {0};
    struct df_err err = {0};
    if (df_store_each(s->store, kind, NULL, add_name, &names, &err) < 0)
        df_warn("the finalizers of %ss stay: %s", df_kind_name(kind), err.message);
    for (size_t i = 0; i < names.len; i++) {
        struct df_err why = {0};
        if (df_store_kube_release(s->store, kind, names.items[i], &why) < 0)
            df_warn("the finalizer of %s %s stays: %s", df_kind_name(kind), names.items[i],
                    why.message);
    }
}

void df_release_finalizers(struct df_spawner *s, const char *name_space)
{
    struct df_err err = {0};
    if (!is_being_deleted(s->kube, name_space))
        return;
    df_warn("namespace %s is being deleted: its documents are let go", name_space);
    if (df_store_each(s->store, DF_KIND_EXECUTOR, NULL, tell_holdings, s, &err) < 0)
        df_warn("what the states hold cannot be read: %s", err.message);
    if (df_store_each(s->store, DF_KIND_TASK_ACTION, DF_LABEL_LIVE "=true", end_step, s, &err) < 0)
        df_warn("what is under way is not ended: %s", err.message);
    for (int kind = 0; kind < DF_KIND_COUNT; kind++)
        if (df_kind_row((enum df_kind)kind)->is_custom_resource)
            let_go_all(s, (enum df_kind)kind);
}
