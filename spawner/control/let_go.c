#include "spawner/control/let_go.h"

#include "common/base/log.h"
#include "common/kube/kube.h"

static bool is_being_deleted(struct df_kube *kube, const char *name_space)
{
    DF_FREE char *path = df_strf("/api/v1/namespaces/%s", name_space);
    DF_JSON cJSON *found = NULL;
    return path && df_kube_get_raw(kube, path, &found, NULL) == 0 && df_kube_is_deleted(found);
}

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
        df_warn("executor %s: its state is encrypted or too large to say what it holds, and stays "
                "in no other place",
                name);
    else if (h.count > 0)
        df_warn("executor %s: these resources stay, and no state will contain them: %s", name,
                h.list);
    return 0;
}

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
        if (df_store_kube_let_go(s->store, kind, names.items[i], &why) < 0)
            df_warn("the finalizer of %s %s stays: %s", df_kind_name(kind), names.items[i],
                    why.message);
    }
}

void df_let_go(struct df_spawner *s, const char *name_space)
{
    struct df_err err = {0};
    if (!is_being_deleted(s->kube, name_space))
        return;
    df_warn("namespace %s is being deleted: its documents are let go", name_space);
    if (df_store_each(s->store, DF_KIND_EXECUTOR, NULL, tell_holdings, s, &err) < 0)
        df_warn("what the states hold cannot be read: %s", err.message);
    for (int kind = 0; kind < DF_KIND_COUNT; kind++)
        let_go_all(s, (enum df_kind)kind);
}
