/*
 * Ended documents are gathered with little more than their names, sorted by owner and age, and those
 * beyond the limit are purged. Versions of states are counted for each executor.
 */
#include "spawner/requests/retention.h"

#include "common/base/clock.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "spawner/model/labels.h"
#include "spawner/model/run.h"
#include "spawner/model/task_status.h"
#include "spawner/requests/purge.h"

enum { PAGE = 500 };

/* ---- what has ended ---------------------------------------------------------------------------- */

struct ended {
    char *name, *uid, *owner; /* owner: uid of the executor, "" of workflows; all owned */
    int64_t at_us;
};

/* A sweep over one kind. */
struct sweep {
    struct df_spawner *s;
    enum df_kind kind;
    int64_t keep;   /* newest of each owner; 0: all */
    int64_t age_us; /* no older than this, but for the newest; 0: any */
    int64_t now_us;
    bool dry_run;
    struct ended *items; /* owned */
    size_t len, cap;
    cJSON *removed;
};

static void sweep_free(struct sweep *w)
{
    for (size_t i = 0; i < w->len; i++) {
        free(w->items[i].name);
        free(w->items[i].uid);
        free(w->items[i].owner);
    }
    free(w->items);
}

/* Marks of programs that apply a file again and again. */
static bool comes_back(const cJSON *doc)
{
    static const char *const annotations[] = {"kubectl.kubernetes.io/last-applied-configuration",
                                              "argocd.argoproj.io/tracking-id"};
    const cJSON *found = df_json_at(doc, "metadata.annotations");
    for (size_t i = 0; i < DF_ARRAY_SIZE(annotations); i++)
        if (cJSON_GetObjectItemCaseSensitive(found, annotations[i]))
            return true;
    return df_label_has(doc, "argocd.argoproj.io/instance") ||
           df_label_has(doc, "kustomize.toolkit.fluxcd.io/name") ||
           df_label_has(doc, "helm.toolkit.fluxcd.io/name");
}

static bool is_ended(enum df_kind kind, const cJSON *doc)
{
    if (df_json_at(doc, "metadata.deletionTimestamp") || comes_back(doc))
        return false;
    if (kind == DF_KIND_RUN)
        return df_run_is_final(doc);
    return !df_json_at(doc, "spec.runRef") && df_task_is_final(doc) &&
           !df_label_has(doc, DF_LABEL_LIVE);
}

static int64_t end_of(const cJSON *doc)
{
    const char *at = df_json_str(doc, "status.finishedAt");
    int64_t us = 0;
    at = at ? at : df_json_str(doc, "metadata.creationTimestamp");
    return at && df_time_parse(at, &us, NULL) == 0 ? us : 0;
}

static int grow(struct sweep *w, struct df_err *err)
{
    size_t cap = w->cap ? 2 * w->cap : 64;
    struct ended *items = reallocarray(w->items, cap, sizeof(*items));
    if (!items)
        return df_fail_oom(err);
    w->items = items;
    w->cap = cap;
    return 0;
}

static int add_ended(struct sweep *w, const cJSON *doc, struct df_err *err)
{
    const char *uid = df_json_str(doc, "metadata.uid");
    const char *owner = df_json_str(doc, "spec.executorRef.uid");
    if (!uid || !is_ended(w->kind, doc) || (w->kind == DF_KIND_RUN && !owner))
        return 0;
    if (w->len == w->cap && grow(w, err) < 0)
        return -1;
    struct ended *e = &w->items[w->len++];
    *e = (struct ended){strdup(df_json_str(doc, "metadata.name")), strdup(uid),
                        strdup(owner ? owner : ""), end_of(doc)};
    return e->name && e->uid && e->owner ? 0 : df_fail_oom(err);
}

static int gather(struct sweep *w, struct df_err *err)
{
    DF_FREE char *cursor = NULL;
    do {
        const struct df_store_list_options o = {.cursor = cursor, .limit = PAGE};
        DF_JSON cJSON *page = NULL;
        char *next = NULL;
        if (df_store_list(w->s->store, w->kind, &o, &page, &next, err) < 0)
            return -1;
        free(cursor);
        cursor = next;
        const cJSON *doc;
        cJSON_ArrayForEach (doc, page)
            if (add_ended(w, doc, err) < 0)
                return -1;
    } while (cursor);
    return 0;
}

/* ---- what goes --------------------------------------------------------------------------------- */

/* By owner, the newest first. */
static int by_owner_and_age(const void *a, const void *b)
{
    const struct ended *x = a, *y = b;
    int owners = strcmp(x->owner, y->owner);
    if (owners)
        return owners;
    return x->at_us == y->at_us ? strcmp(x->name, y->name)
                                : (x->at_us < y->at_us) - (x->at_us > y->at_us);
}

static int note(cJSON *removed, const char *kind, const char *name, struct df_err *err)
{
    cJSON *item = cJSON_CreateObject();
    if (df_json_append(removed, item, err) < 0 || df_json_add_str(item, "kind", kind, err) < 0)
        return -1;
    return df_json_add_str(item, "name", name, err);
}

/* Read again: since it was gathered somebody may have changed or replaced it. */
static int purge_ended(struct sweep *w, const struct ended *e, struct df_err *err)
{
    DF_JSON cJSON *doc = NULL;
    if (df_store_find(w->s->store, w->kind, e->name, &doc, err) < 0)
        return -1;
    if (!doc || !df_streq(df_json_str(doc, "metadata.uid"), e->uid) || !is_ended(w->kind, doc))
        return 0;
    if (!w->dry_run && (w->kind == DF_KIND_RUN ? df_purge_run : df_purge_step)(w->s, doc, err) < 0)
        return -1;
    return note(w->removed, df_kind_name(w->kind), e->name, err);
}

static int purge_all(struct sweep *w, struct df_err *err)
{
    int64_t nth = 0;
    if (w->len)
        qsort(w->items, w->len, sizeof(*w->items), by_owner_and_age);
    for (size_t i = 0; i < w->len; i++) {
        const struct ended *e = &w->items[i];
        struct df_err why = {0};
        nth = i && df_streq(e->owner, w->items[i - 1].owner) ? nth + 1 : 1;
        bool too_many = w->keep && nth > w->keep;
        bool too_old = w->age_us && nth > 1 && e->at_us < w->now_us - w->age_us;
        if ((too_many || too_old) && purge_ended(w, e, &why) < 0 && why.cls != DF_ERR_RETRY &&
            why.cls != DF_ERR_NOT_FOUND)
            return df_err_pass(err, &why);
    }
    return 0;
}

static int sweep_kind(struct df_spawner *s, enum df_kind kind, int64_t keep, bool dry_run,
                      cJSON *removed, struct df_err *err)
{
    DF_CLEANUP(sweep_free)
    struct sweep w = {.s = s,
                      .kind = kind,
                      .keep = keep,
                      .age_us = s->config->retain_age_s * 1000000,
                      .now_us = df_real_us(),
                      .dry_run = dry_run,
                      .removed = removed};
    if (!w.keep && !w.age_us)
        return 0;
    return gather(&w, err) < 0 ? -1 : purge_all(&w, err);
}

/* ---- versions of states ------------------------------------------------------------------------ */

static int prune_state(struct df_spawner *s, const cJSON *executor, bool dry_run, cJSON *removed,
                       struct df_err *err)
{
    const char *name = df_json_str(executor, "metadata.name");
    int64_t count = 0;
    struct df_err why = {0};
    if (df_state_prune(s->states, df_json_str(executor, "metadata.uid"), s->config->retain_versions,
                       dry_run, &count, &why) < 0) { /* the others need not suffer from it */
        df_warn("retention: versions of the state of %s stay: %s", name, why.message);
        return 0;
    }
    if (!count)
        return 0;
    if (note(removed, "State", name, err) < 0)
        return -1;
    return df_json_add_num(cJSON_GetArrayItem(removed, cJSON_GetArraySize(removed) - 1), "count",
                           (double)count, err);
}

static int prune_states(struct df_spawner *s, bool dry_run, cJSON *removed, struct df_err *err)
{
    DF_FREE char *cursor = NULL;
    do {
        const struct df_store_list_options o = {.cursor = cursor, .limit = PAGE};
        DF_JSON cJSON *page = NULL;
        char *next = NULL;
        if (df_store_list(s->store, DF_KIND_EXECUTOR, &o, &page, &next, err) < 0)
            return -1;
        free(cursor);
        cursor = next;
        const cJSON *executor;
        cJSON_ArrayForEach (executor, page)
            if (prune_state(s, executor, dry_run, removed, err) < 0)
                return -1;
    } while (cursor);
    return 0;
}

int df_retention_apply(struct df_spawner *s, bool dry_run, cJSON **ret, struct df_err *err)
{
    DF_JSON cJSON *removed = cJSON_CreateArray();
    if (!removed)
        return df_fail_oom(err);
    if (sweep_kind(s, DF_KIND_RUN, s->config->retain_runs, dry_run, removed, err) < 0 ||
        sweep_kind(s, DF_KIND_TASK_ACTION, s->config->retain_workflows, dry_run, removed, err) <
            0 ||
        (s->config->retain_versions && prune_states(s, dry_run, removed, err) < 0))
        return -1;
    *ret = DF_TAKE(removed);
    return 0;
}
