/*
 * leftovers.c - removes plans and logs of ended steps, old audit entries, and orphans, each in a
 * section. All add to `removed` what goes; a dry run does no more than that. Blobs whose document
 * is gone are orphans, and no other section touches them. Orphans of states are listed and never
 * removed.
 */
#include "spawner/requests/leftovers.h"

#include "common/base/clock.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "spawner/model/accepted.h"
#include "spawner/model/labels.h"
#include "spawner/requests/owners.h"
#include "spawner/steps/plans.h"
#include "spawner/steps/streams.h"

#define SECOND INT64_C(1000000)

/* ---- what is said ---------------------------------------------------------------------------- */

static int64_t age_of(const cJSON *executor, const char *path, int64_t fallback_s)
{
    const char *text = df_json_str(executor, path);
    int64_t us = 0;
    return text && df_duration_parse(text, &us, NULL) == 0 ? us : fallback_s * SECOND;
}

struct df_retained df_retained_of(const struct df_config *c, const cJSON *executor)
{
    if (df_doc_is_refused(executor)) /* what it said before is not known */
        return (struct df_retained){0};
    return (struct df_retained){
        .documents = df_json_int(executor, "spec.retention.runs", c->retain_runs),
        .versions = df_json_int(executor, "spec.retention.stateVersions", c->retain_versions),
        .age_us = age_of(executor, "spec.retention.age", c->retain_age_s),
        .logs_us = age_of(executor, "spec.retention.logs", c->retain_logs_s)};
}

int df_removed_note(cJSON *removed, const char *kind, const char *name, struct df_err *err)
{
    return df_json_append(removed, df_json_object(DF_STR("kind", kind), DF_STR("name", name)), err);
}

static cJSON *last_of(cJSON *list)
{
    return list->child->prev; /* cJSON's first item knows the last */
}

int df_removed_count(cJSON *removed, const char *kind, const char *name, int64_t count,
                     struct df_err *err)
{
    if (df_removed_note(removed, kind, name, err) < 0)
        return -1;
    return df_json_add_num(last_of(removed), "count", (double)count, err);
}

/* ---- plans and logs -------------------------------------------------------------------------- */

/* A look at the blobs of one kind. */
struct look {
    struct df_spawner *s;
    bool dry_run;
    cJSON *removed;
    int64_t now_us;
};

static int find(struct df_store *store, enum df_kind kind, const char *uid, cJSON **ret,
                struct df_err *err)
{
    struct df_err why = {0};
    if (!uid || df_store_get_by_uid(store, kind, uid, ret, &why) == 0 ||
        why.cls == DF_ERR_NOT_FOUND)
        return 0;
    return df_err_pass(err, &why);
}

/* Has the step ended, and its run if it has one? */
static int has_ended(struct df_spawner *s, const cJSON *task, bool *ret, struct df_err *err)
{
    DF_SHARED const cJSON *run = NULL;
    const char *name = df_json_str(task, "spec.runRef.name");
    bool ended = df_task_is_final(task) && !df_label_has(task, DF_LABEL_LIVE);
    if (ended && name && df_store_look_for(s->store, DF_KIND_RUN, name, &run, err) < 0)
        return -1;
    *ret = ended && (!run || df_run_is_final(run));
    return 0;
}

typedef int (*removing)(struct df_spawner *s, const char *uid, struct df_err *err);

/* What cannot be removed now goes the next time. */
static int remove_part(struct look *l, const char *kind, const cJSON *task, removing what,
                       struct df_err *err)
{
    struct df_err why = {0};
    int result = df_removal_begin(&l->s->removals, &why);
    if (result == 0) {
        result = l->dry_run ? 0 : what(l->s, df_json_str(task, "metadata.uid"), &why);
        df_removal_end(&l->s->removals);
    }
    if (result < 0)
        return why.cls == DF_ERR_RETRY ? 0 : df_err_pass(err, &why);
    return df_removed_note(l->removed, kind, df_json_str(task, "metadata.name"), err);
}

static int look_at_plan(void *arg, const struct df_blob_info *info, struct df_err *err)
{
    struct look *l = arg;
    enum df_stored kind;
    char uid[64];
    DF_JSON cJSON *task = NULL;
    bool ended = false;
    if (!df_stored_of(info->key, &kind, uid))
        return 0;
    if (find(l->s->store, DF_KIND_TASK_ACTION, uid, &task, err) < 0 ||
        (task && has_ended(l->s, task, &ended, err) < 0))
        return -1;
    return ended ? remove_part(l, "Plan", task, df_plan_delete, err) : 0;
}

int df_leftovers_plans(struct df_spawner *s, bool dry_run, cJSON *removed, struct df_err *err)
{
    struct look l = {.s = s, .dry_run = dry_run, .removed = removed};
    return df_blob_each(s->blobs, "plans", look_at_plan, &l, err);
}

/* How long logs of this step stay; 0: as long as their run. */
static int find_log_age(struct df_spawner *s, const cJSON *task, int64_t *ret, struct df_err *err)
{
    DF_JSON cJSON *executor = NULL;
    if (find(s->store, DF_KIND_EXECUTOR, df_json_str(task, "spec.executorRef.uid"), &executor,
             err) < 0)
        return -1;
    *ret = df_retained_of(s->config, executor).logs_us;
    return 0;
}

/* The events go with the log. */
static int look_at_log(void *arg, const struct df_blob_info *info, struct df_err *err)
{
    struct look *l = arg;
    enum df_stored kind;
    char uid[64];
    DF_JSON cJSON *task = NULL;
    bool ended = false;
    int64_t age = 0;
    if (!df_ends_with(info->key, ".log") || !df_stored_of(info->key, &kind, uid))
        return 0;
    if (find(l->s->store, DF_KIND_TASK_ACTION, uid, &task, err) < 0)
        return -1;
    if (!task)
        return 0;
    if (find_log_age(l->s, task, &age, err) < 0 || has_ended(l->s, task, &ended, err) < 0)
        return -1;
    if (!ended || !age || df_task_ended_at(task, l->now_us) > l->now_us - age)
        return 0;
    return remove_part(l, "Log", task, df_stream_delete, err);
}

static int has_log_age(const cJSON *executor, void *arg, struct df_err *err)
{
    bool *any = arg;
    (void)err;
    *any = *any || df_json_str(executor, "spec.retention.logs");
    return 0;
}

int df_leftovers_logs(struct df_spawner *s, bool dry_run, cJSON *removed, struct df_err *err)
{
    struct look l = {s, dry_run, removed, df_real_us()};
    bool any = s->config->retain_logs_s > 0;
    if (!any && df_store_each(s->store, DF_KIND_EXECUTOR, NULL, has_log_age, &any, err) < 0)
        return -1;
    return any ? df_blob_each(s->blobs, "logs", look_at_log, &l, err) : 0;
}

/* ---- the audit trail ------------------------------------------------------------------------- */

int df_leftovers_audit(struct df_spawner *s, bool dry_run, cJSON *removed, struct df_err *err)
{
    const struct df_config *c = s->config;
    int64_t now = df_real_us(), count = 0;
    const struct df_audit_limits limits = {
        .before_us = c->retain_audit_s ? now - c->retain_audit_s * SECOND : 0,
        .keep = c->retain_entries,
        .never_after_us = now - DF_AUDIT_LEAST_SECONDS * SECOND};
    if (!limits.before_us && !limits.keep)
        return 0;
    if (df_store_audit_prune(s->store, &limits, dry_run, &count, err) < 0)
        return -1;
    return !count ? 0 : df_removed_count(removed, "Audit", "entries", count, err);
}

/* ---- orphans --------------------------------------------------------------------------------- */

struct orphans {
    struct look look;
    bool asked; /* to remove them */
    struct df_owners *owners;
    cJSON *found;        /* {kind, name, bytes, age, kept} */
    int kept, removable; /* of them */
};

/* Each kind has its own limit: those that stay must not hide those that can go. */
static int note_orphan(struct orphans *o, const struct df_blob_info *info, enum df_stored kind,
                       struct df_err *err)
{
    int64_t age_s = (o->look.now_us - info->changed_us) / SECOND;
    const char *kept = kind == DF_STORED_STATES    ? "state"
                       : age_s < DF_ORPHAN_SECONDS ? "young"
                       : !o->asked                 ? "unasked"
                                                   : NULL;
    if ((kept ? o->kept++ : o->removable++) >= DF_LIMIT_ORPHANS)
        return 0;
    if (df_removed_note(o->found, "Orphan", info->key, err) < 0)
        return -1;
    cJSON *item = last_of(o->found);
    return df_json_put(item, err, DF_NUM("bytes", info->size), DF_NUM("ageSeconds", age_s),
                       DF_STR("kept", kept));
}

static int look_for_orphan(void *arg, const struct df_blob_info *info, struct df_err *err)
{
    struct orphans *o = arg;
    enum df_stored kind;
    char uid[64];
    if (!df_stored_of(info->key, &kind, uid) || df_owners_find(o->owners, uid))
        return 0;
    return note_orphan(o, info, kind, err);
}

static int remove_orphans(struct orphans *o, struct df_err *err)
{
    const cJSON *item;
    cJSON_ArrayForEach (item, o->found) {
        if (df_json_str(item, "kept"))
            continue;
        if (df_removal_begin(&o->look.s->removals, err) < 0)
            return -1;
        int result = df_blob_delete(o->look.s->blobs, df_json_str(item, "name"), err);
        df_removal_end(&o->look.s->removals);
        if (result < 0)
            return -1;
    }
    return 0;
}

/* Moves the items of one list behind those of another. */
static int append_all(cJSON *to, cJSON *from, struct df_err *err)
{
    while (from->child)
        if (df_json_append(to, cJSON_DetachItemFromArray(from, 0), err) < 0)
            return -1;
    return 0;
}

int df_leftovers_orphans(struct df_spawner *s, bool asked, bool dry_run, cJSON *removed,
                         struct df_err *err)
{
    DF_OWNERS struct df_owners *owners = NULL;
    DF_JSON cJSON *found = cJSON_CreateArray();
    struct orphans o = {
        .look = {s, dry_run, removed, df_real_us()}, .asked = asked, .found = found};
    if (df_check_alloc(found, err) < 0 || df_owners_new(&owners, err) < 0 ||
        df_owners_load(owners, s->store, err) < 0)
        return -1;
    o.owners = owners;
    if (df_blob_each(s->blobs, "", look_for_orphan, &o, err) < 0 ||
        (!dry_run && remove_orphans(&o, err) < 0))
        return -1;
    return append_all(removed, found, err);
}
