#include "spawner/control/restored.h"

#include "common/base/log.h"
#include "spawner/control/audit.h"
#include "spawner/requests/requests.h"

#define ACTOR "restore"
#define WHY "it was restored from a backup; what was done after that is not known: make a new plan"

struct visit {
    struct df_control *c;
    enum df_kind kind;
};

static int cancel(struct df_control *c, enum df_kind kind, const char *name, struct df_err *err)
{
    return kind == DF_KIND_RUN
               ? df_request_cancel_run(c->s, name, DF_ROLE_ADMIN, ACTOR, WHY, NULL, err)
               : df_request_cancel_workflow(c->s, name, ACTOR, WHY, NULL, err);
}

/* A df_store_visit. The steps of a run are canceled with it. */
static int cancel_one(const cJSON *doc, void *arg, struct df_err *err)
{
    const struct visit *v = arg;
    const char *name = df_json_str(doc, "metadata.name");
    const struct df_control_deed deed = {
        {.role = DF_ROLE_ADMIN, .is_named = true, .name = ACTOR}, "cancel", "done", WHY};
    bool ended = v->kind == DF_KIND_RUN ? df_run_is_final(doc) : df_task_is_final(doc);
    if (ended || df_json_at(doc, "spec.runRef") || df_json_at(doc, "spec.cancel"))
        return 0;
    if (cancel(v->c, v->kind, name, err) < 0)
        return -1;
    df_info("%s %s is canceled: %s", df_kind_name(v->kind), name, WHY);
    df_control_audit(v->c->s, v->kind, name, &deed);
    return 0;
}

int df_restored_cancel(struct df_control *c, struct df_err *err)
{
    static const enum df_kind kinds[] = {DF_KIND_RUN, DF_KIND_TASK_ACTION};
    for (size_t i = 0; i < DF_ARRAY_SIZE(kinds); i++) {
        struct visit v = {c, kinds[i]};
        if (df_store_each(c->s->store, v.kind, DF_LABEL_RESTORED "=true", cancel_one, &v, err) < 0)
            return df_err_wrap(err, "cancel what was restored");
    }
    return 0;
}
