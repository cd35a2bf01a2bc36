/*
 * Instead of spawner/terrakube, in a build without it (`make TERRAKUBE=0`): nothing is taken. The
 * documents of its steps stay known: those of another build end with a failure that says why.
 */
#include "spawner/terrakube/terrakube.h"
#include "spawner/control/task_pass.h"
#include "spawner/model/tables.h"
#include "spawner/terrakube/upstream.h"

#define MISSING "this dayfly was built without Terrakube (make TERRAKUBE=0): use a build with it"

/* ---- the service and doctor, which ask only with terrakube.listen ---- */

static int refuse_listen(struct df_err *err)
{
    return df_fail_reason(err, DF_ERR_USER, "SettingInvalid", "terrakube.listen: " MISSING);
}

static int open_service(struct df_spawner *s, struct df_err *err)
{
    (void)s;
    return refuse_listen(err);
}

static int check(struct df_doctor_context *p, struct df_err *err)
{
    (void)p;
    return refuse_listen(err);
}

/* ---- steps that another build took ---- */

static int refuse_part(struct df_spawner *s, const cJSON *task, cJSON **ret, struct df_err *err)
{
    (void)s, (void)task, (void)ret;
    return df_fail_reason(err, DF_ERR_USER, "InvalidStep", MISSING);
}

static int refuse(struct df_task_pass *p, struct df_err *err)
{
    return df_task_pass_fail(p, DF_FAULT_USER, "InvalidStep", MISSING, err);
}

static int end(struct df_task_pass *p, const struct df_task_verdict *v, struct df_err *err)
{
    return df_runner_note_unrecorded(p, err) < 0 ? -1 : df_runner_end(p, v, err);
}

static int clean(struct df_task_pass *p, struct df_err *err)
{
    DF_FREE char *payload = df_strf(DF_PAYLOAD_BLOB, p->step.name);
    if (!payload)
        return df_fail_oom(err);
    return p->ops->cleanup(p->engine, &p->step, err) < 0 ||
                   df_blob_delete(p->c->s->blobs, payload, err) < 0
               ? -1
               : df_task_pass_finalize(p, err);
}

static const struct df_task_hooks hooks = {.starts_unobserved = true,
                                           .set_begun = df_runner_set_begun,
                                           .begin = refuse,
                                           .report = df_task_pass_report_waiting,
                                           .end = end,
                                           .collect = df_runner_collect,
                                           .clean = clean};

const struct df_upstream df_terrakube_upstream = {.name = "Terrakube",
                                                  .spec = df_terrakube_rows,
                                                  .hooks = &hooks,
                                                  .step_part = refuse_part,
                                                  .open = open_service,
                                                  .check = check};
