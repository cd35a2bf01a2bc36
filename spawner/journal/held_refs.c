#include "spawner/journal/held_refs.h"

#include "common/base/clock.h"
#include "spawner/model/shared_pod.h"

struct df_held_ref {
    struct df_held_ref *next;
    char name[64], uid[64], attempt[65];
    cJSON *ref;
    int64_t due_us;
};

static void free_held(struct df_held_ref *h)
{
    if (h)
        cJSON_Delete(h->ref);
    free(h);
}

/* Where the entry of this name is linked; or the end of the list. Under the lock. */
static struct df_held_ref **find(struct df_held_refs *all, const char *name)
{
    struct df_held_ref **at = &all->first;
    while (*at && !df_streq((*at)->name, name))
        at = &(*at)->next;
    return at;
}

static struct df_held_ref *take_out(struct df_held_ref **at)
{
    struct df_held_ref *h = *at;
    if (h)
        *at = h->next;
    return h;
}

/* A step that was offered to the pod of another one since then has the reference of that pod, and the
 * claim token of its last own attempt. */
static bool is_for(const struct df_held_ref *h, const cJSON *task)
{
    return h && df_streq(h->uid, df_json_str(task, "metadata.uid")) &&
           df_streq(h->attempt, df_json_str(task, "status.auth.claim")) &&
           !df_shared_pod_host(task);
}

int df_held_ref_put(struct df_spawner *s, const cJSON *task, const char *attempt, const cJSON *ref,
                    struct df_err *err)
{
    struct df_held_refs *all = &s->held_refs;
    struct df_held_ref *h = calloc(1, sizeof(*h));
    if (h)
        h->ref = cJSON_Duplicate(ref, true);
    if (!h || !h->ref) {
        free_held(h);
        return df_fail_oom(err);
    }
    (void)snprintf(h->name, sizeof(h->name), "%s", df_json_str(task, "metadata.name"));
    (void)snprintf(h->uid, sizeof(h->uid), "%s", df_json_str(task, "metadata.uid"));
    (void)snprintf(h->attempt, sizeof(h->attempt), "%s", attempt);
    h->due_us = df_real_us() + DF_HELD_REF_US;
    (void)pthread_mutex_lock(&all->lock);
    struct df_held_ref *earlier = take_out(find(all, h->name));
    h->next = all->first;
    all->first = h;
    (void)pthread_mutex_unlock(&all->lock);
    free_held(earlier);
    return 0;
}

/* *ret: a copy of what is held for this attempt, or NULL. */
static int copy_held(struct df_held_refs *all, const cJSON *task, cJSON **ret, int64_t *ret_due_us,
                     struct df_err *err)
{
    *ret = NULL;
    *ret_due_us = 0;
    (void)pthread_mutex_lock(&all->lock);
    const struct df_held_ref *h = *find(all, df_json_str(task, "metadata.name"));
    if (is_for(h, task)) {
        *ret = cJSON_Duplicate(h->ref, true);
        *ret_due_us = h->due_us;
    }
    (void)pthread_mutex_unlock(&all->lock);
    return *ret || !*ret_due_us ? 0 : df_fail_oom(err);
}

int df_held_ref_add(struct df_spawner *s, cJSON *task, int64_t *ret_due_us, struct df_err *err)
{
    cJSON *ref;
    if (copy_held(&s->held_refs, task, &ref, ret_due_us, err) < 0)
        return -1;
    return ref ? df_json_set(df_json_object_at(task, "status"), "engineRef", ref, err) : 0;
}

/* What was held is in the document now, but maybe not in the one that the caller has read before. */
static int look_again(struct df_spawner *s, const cJSON **task, struct df_err *err)
{
    DF_SHARED const cJSON *now = NULL;
    if (df_json_at(*task, "status.engineRef") || !df_json_str(*task, "status.auth.claim"))
        return 0;
    if (df_store_look_for(s->store, DF_KIND_TASK_ACTION, df_json_str(*task, "metadata.name"), &now,
                          err) < 0)
        return -1;
    if (!df_streq(df_json_str(now, "metadata.uid"), df_json_str(*task, "metadata.uid")))
        return 0;
    df_shared_drop(*task);
    *task = DF_TAKE(now);
    return 0;
}

int df_held_ref_show(struct df_spawner *s, const cJSON **task, int64_t *ret_due_us,
                     struct df_err *err)
{
    DF_JSON cJSON *ref = NULL, *with = NULL;
    if (copy_held(&s->held_refs, *task, &ref, ret_due_us, err) < 0)
        return -1;
    if (!ref)
        return look_again(s, task, err);
    with = df_shared_own(DF_TAKE(*task));
    if (df_check_alloc(with, err) < 0 ||
        df_json_set(df_json_object_at(with, "status"), "engineRef", DF_TAKE(ref), err) < 0)
        return -1;
    return df_check_alloc(*task = df_shared_new(DF_TAKE(with)), err);
}

void df_held_ref_drop(struct df_spawner *s, const cJSON *task)
{
    struct df_held_refs *all = &s->held_refs;
    (void)pthread_mutex_lock(&all->lock);
    struct df_held_ref **at = find(all, df_json_str(task, "metadata.name"));
    struct df_held_ref *h = is_for(*at, task) ? take_out(at) : NULL;
    (void)pthread_mutex_unlock(&all->lock);
    free_held(h);
}

void df_held_ref_forget(struct df_spawner *s, const char *name)
{
    struct df_held_refs *all = &s->held_refs;
    (void)pthread_mutex_lock(&all->lock);
    struct df_held_ref *h = take_out(find(all, name));
    (void)pthread_mutex_unlock(&all->lock);
    free_held(h);
}

void df_held_refs_free(struct df_held_refs *all)
{
    while (all->first)
        free_held(take_out(&all->first));
}
