/*
 * Ended documents are gathered with little more than their names, sorted by owner and age, and
 * those beyond the limit are purged. Versions of states are counted for each executor.
 */
#include "spawner/requests/retention.h"

#include "common/base/clock.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "spawner/model/labels.h"
#include "spawner/model/run.h"
#include "spawner/model/task_status.h"
#include "spawner/requests/leftovers.h"
#include "spawner/requests/purge.h"

enum { PAGE = 500 };

/* ---- what has ended ---- */

struct ended {
    char *name, *uid, *owner; /* owner: uid of the executor, "" of workflows; all owned */
    int64_t at_us;            /* of a revision: its number, which grows as well */
};

/* A sweep over one kind. */
struct sweep {
    struct df_spawner *s;
    enum df_kind kind;
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
    if (kind == DF_KIND_REVISION)
        return true;
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
    if (!uid || !is_ended(w->kind, doc) || (w->kind != DF_KIND_TASK_ACTION && !owner))
        return 0;
    if (w->len == w->cap && grow(w, err) < 0)
        return -1;
    struct ended *e = &w->items[w->len++];
    *e = (struct ended){
        strdup(df_json_str(doc, "metadata.name")), strdup(uid), strdup(owner ? owner : ""),
        w->kind == DF_KIND_REVISION ? df_json_int(doc, "spec.number", 0) : end_of(doc)};
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

/* ---- what goes ---- */

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

static int purge(struct df_spawner *s, enum df_kind kind, const cJSON *doc, struct df_err *err)
{
    if (kind == DF_KIND_REVISION)
        return df_store_remove(s->store, kind, df_json_str(doc, "metadata.name"),
                               df_json_str(doc, "metadata.uid"), err);
    return (kind == DF_KIND_RUN ? df_purge_run : df_purge_step)(s, doc, NULL, err);
}

/* Read again: since it was gathered somebody may have changed or replaced it. */
static int purge_ended(struct sweep *w, const struct ended *e, struct df_err *err)
{
    DF_SHARED const cJSON *doc = NULL;
    if (df_store_look_for(w->s->store, w->kind, e->name, &doc, err) < 0)
        return -1;
    if (!doc || !df_streq(df_json_str(doc, "metadata.uid"), e->uid) || !is_ended(w->kind, doc))
        return 0;
    if (!w->dry_run && purge(w->s, w->kind, doc, err) < 0)
        return -1;
    return df_removed_note(w->removed, df_kind_name(w->kind), e->name, err);
}

/* What the owner of these documents says, or the configuration. Revisions whose executor is gone go
 * as well: a change that ended while it was removed may leave one. */
static int find_limits(struct sweep *w, const char *owner, struct df_retained *ret,
                       struct df_err *err)
{
    DF_SHARED const cJSON *executor = NULL;
    struct df_err why = {0};
    if (w->kind != DF_KIND_TASK_ACTION &&
        df_store_look_by_uid(w->s->store, DF_KIND_EXECUTOR, owner, &executor, &why) < 0 &&
        why.cls != DF_ERR_NOT_FOUND)
        return df_err_pass(err, &why);
    *ret = df_retained_of(w->s->config, executor);
    if (w->kind == DF_KIND_TASK_ACTION)
        ret->documents = w->s->config->retain_workflows;
    if (w->kind == DF_KIND_REVISION)
        *ret = (struct df_retained){.documents = executor ? w->s->config->retain_revisions : -1};
    return 0;
}

static int purge_all(struct sweep *w, struct df_err *err)
{
    int64_t nth = 0;
    struct df_retained keep = {0};
    if (w->len)
        qsort(w->items, w->len, sizeof(*w->items), by_owner_and_age);
    for (size_t i = 0; i < w->len; i++) {
        const struct ended *e = &w->items[i];
        struct df_err why = {0};
        nth = i && df_streq(e->owner, w->items[i - 1].owner) ? nth + 1 : 1;
        if (nth == 1 && find_limits(w, e->owner, &keep, err) < 0)
            return -1;
        bool too_many = keep.documents && nth > keep.documents;
        bool too_old = keep.age_us && nth > 1 && e->at_us < w->now_us - keep.age_us;
        if ((too_many || too_old) && purge_ended(w, e, &why) < 0 && why.cls != DF_ERR_RETRY &&
            why.cls != DF_ERR_NOT_FOUND)
            return df_err_pass(err, &why);
    }
    return 0;
}

static int sweep_kind(struct df_spawner *s, enum df_kind kind, bool dry_run, cJSON *removed,
                      struct df_err *err)
{
    DF_CLEANUP(sweep_free)
    struct sweep w = {
        .s = s, .kind = kind, .now_us = df_real_us(), .dry_run = dry_run, .removed = removed};
    return gather(&w, err) < 0 ? -1 : purge_all(&w, err);
}

/* ---- versions of states ---- */

/* When the oldest unfinished run of the executor began; 0: there is none. A plan that waits was
 * made from a version that was current then, or after that. */
static int find_oldest_open(struct df_spawner *s, const char *executor, int64_t *ret,
                            struct df_err *err)
{
    DF_FREE char *label = df_strf(DF_LABEL_QUEUE "=%s", executor);
    DF_JSON cJSON *runs = NULL;
    const struct df_store_list_options o = {.label = label, .limit = 1};
    int64_t at = 0;
    if (df_check_alloc(label, err) < 0 ||
        df_store_list(s->store, DF_KIND_RUN, &o, &runs, NULL, err) < 0)
        return -1;
    const char *made = df_json_str(runs ? runs->child : NULL, "metadata.creationTimestamp");
    if (runs && runs->child && (!made || df_time_parse(made, &at, err) < 0))
        return df_fail(err, DF_ERR_SYSTEM, "a run of %s has no creationTimestamp", executor);
    *ret = at;
    return 0;
}

/* Versions of the last week stay whatever their number: a flood of new ones within a weekend does
 * not push out the good ones before a person has looked. */
#define VERSIONS_STAY_US ((int64_t)7 * 24 * 3600 * 1000000)

static int prune_versions(struct df_spawner *s, const cJSON *executor, bool dry_run,
                          int64_t *ret_count, struct df_err *err)
{
    struct df_state_keep keep = {.newest = df_retained_of(s->config, executor).versions};
    if (!keep.newest)
        return 0;
    int64_t open_us = 0;
    if (find_oldest_open(s, df_json_str(executor, "metadata.name"), &open_us, err) < 0 ||
        df_removal_begin(&s->removals, err) < 0)
        return -1;
    keep.since_us = df_real_us() - VERSIONS_STAY_US;
    if (open_us && open_us < keep.since_us)
        keep.since_us = open_us;
    int result = df_state_prune(s->states, df_json_str(executor, "metadata.uid"), &keep, dry_run,
                                ret_count, err);
    df_removal_end(&s->removals);
    return result;
}

static int prune_state(struct df_spawner *s, const cJSON *executor, bool dry_run, cJSON *removed,
                       struct df_err *err)
{
    const char *name = df_json_str(executor, "metadata.name");
    int64_t count = 0;
    struct df_err why = {0};
    if (prune_versions(s, executor, dry_run, &count, &why) < 0) { /* others need not suffer */
        df_warn("retention: versions of the state of %s stay: %s", name, why.message);
        return 0;
    }
    return count ? df_removed_count(removed, "State", name, count, err) : 0;
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
    if (df_check_alloc(removed, err) < 0 || df_blob_check_owner(s->blobs, true, err) < 0 ||
        sweep_kind(s, DF_KIND_RUN, dry_run, removed, err) < 0 ||
        sweep_kind(s, DF_KIND_TASK_ACTION, dry_run, removed, err) < 0 ||
        sweep_kind(s, DF_KIND_REVISION, dry_run, removed, err) < 0 ||
        prune_states(s, dry_run, removed, err) < 0 ||
        df_leftovers_plans(s, dry_run, removed, err) < 0 ||
        df_leftovers_logs(s, dry_run, removed, err) < 0 ||
        df_leftovers_audit(s, dry_run, removed, err) < 0)
        return -1;
    *ret = DF_TAKE(removed);
    return 0;
}
