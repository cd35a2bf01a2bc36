#include "spawner/control/documents/restored.h"

#include "common/base/log.h"
#include "spawner/control/documents/audit.h"
#include "spawner/requests/new_docs.h"

#define ACTOR "restore"
#define WHY "it was restored from a backup; what was done after that is not known: make a new plan"

struct visit {
    struct df_control *c;
    enum df_kind kind;
    bool is_canceled; /* by the last change */
};

static bool has_ended(const struct visit *v, const cJSON *doc)
{
    return v->kind == DF_KIND_RUN ? df_run_is_final(doc) : df_task_is_final(doc);
}

/* A df_store_change. */
static int set_cancel(cJSON *doc, void *arg, struct df_err *err)
{
    struct visit *v = arg;
    v->is_canceled = !has_ended(v, doc) && !df_json_at(doc, "spec.cancel");
    return v->is_canceled ? df_json_set(df_json_object_at(doc, "spec"), "cancel",
                                        df_new_cancel(ACTOR, WHY), err)
                          : 1;
}

/* A step of a run is canceled with its run, of which people hear. */
static void tell(const struct visit *v, const cJSON *doc)
{
    const char *name = df_json_str(doc, "metadata.name");
    const struct df_audit_event event = {
        {.role = DF_ROLE_ADMIN, .is_named = true, .name = ACTOR}, "cancel", "done", WHY};
    if (df_json_at(doc, "spec.runRef"))
        return;
    df_info("%s %s is canceled: %s", df_kind_name(v->kind), name, WHY);
    df_control_audit(v->c->s, v->kind, name, &event);
}

static int cancel_one(struct visit *v, const cJSON *doc, struct df_err *err)
{
    const char *name = df_json_str(doc, "metadata.name");
    struct df_err why = {0};
    if (df_store_modify(v->c->s->store, v->kind, name, set_cancel, v, NULL, &why) == 0) {
        if (v->is_canceled)
            tell(v, doc);
        return 0;
    }
    if (why.cls == DF_ERR_NOT_FOUND) /* it was deleted meanwhile */
        return 0;
    (void)df_err_pass(err, &why);
    return df_err_wrap(err, "cancel the restored %s %s", df_kind_name(v->kind), name);
}

/* A df_store_visit. Steps, too: the pass over a step does not wait for that over its run, which may
 * be missing in the backup. */
static int cancel_or_hold(const cJSON *doc, void *arg, struct df_err *err)
{
    struct visit *v = arg;
    struct df_err why = {0};
    if (cancel_one(v, doc, &why) == 0)
        return 0;
    df_error("%s; it is held until that succeeds", why.message);
    (void)df_strs_add(&v->c->held, df_json_str(doc, "metadata.uid"));
    return df_strs_check(&v->c->held, err);
}

int df_restored_cancel(struct df_control *c, struct df_err *err)
{
    static const enum df_kind kinds[] = {DF_KIND_RUN, DF_KIND_TASK_ACTION};
    for (size_t i = 0; i < DF_ARRAY_SIZE(kinds); i++) {
        struct visit v = {.c = c, .kind = kinds[i]};
        if (df_store_each(c->s->store, v.kind, DF_LABEL_RESTORED "=true", cancel_or_hold, &v, err) <
            0)
            return -1;
    }
    return 0;
}

int df_restored_pass(struct df_control *c, enum df_kind kind, const cJSON *doc, bool *ret_done,
                     struct df_err *err)
{
    struct visit v = {.c = c, .kind = kind};
    const char *uid = df_json_str(doc, "metadata.uid");
    if (!uid || !df_strs_has(&c->held, uid) || has_ended(&v, doc) || df_json_at(doc, "spec.cancel"))
        return 0;
    *ret_done = true;
    return cancel_one(&v, doc, err);
}
