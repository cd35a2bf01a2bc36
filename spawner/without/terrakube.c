/*
 * Instead of what the spawner does for a Terrakube, in a build without it (`make TERRAKUBE=0`). The
 * documents of its steps stay known: those of another build end with a failure that says why.
 */
#include "spawner/steps/terrakube.h"
#include "common/terrakube/settings.h"
#include "spawner/api/routes.h"
#include "spawner/config/keys.h"
#include "spawner/control/bell.h"
#include "spawner/control/task_pass.h"
#include "spawner/doctor/checks.h"
#include "spawner/steps/payloads.h"

#define MISSING "this dayfly was built without Terrakube (make TERRAKUBE=0): use a build with it"

/* ---- settings ---- */

bool df_terrakube_is_setting(const char *name)
{
    (void)name;
    return false;
}

bool df_terrakube_is_platform_variable(const char *name)
{
    (void)name;
    return false;
}

int df_config_fill_terrakube(struct df_config *c, char *const *env, struct df_err *err)
{
    (void)c, (void)env, (void)err;
    return 0;
}

/* ---- the service, which asks only with terrakube.listen ---- */

static int refuse_listen(struct df_err *err)
{
    return df_fail_reason(err, DF_ERR_USER, "SettingInvalid", "terrakube.listen: " MISSING);
}

int df_terrakube_door_open(char *const *environment, struct df_terrakube_door **ret,
                           struct df_err *err)
{
    (void)environment, (void)ret;
    return refuse_listen(err);
}

void df_terrakube_door_close(struct df_terrakube_door *d)
{
    (void)d;
}

int df_bell_start(struct df_spawner *s, struct df_periodic **ret, struct df_err *err)
{
    (void)s, (void)ret, (void)err;
    return 0;
}

int df_check_terrakube(struct df_doctor_context *p, struct df_err *err)
{
    return p->config.terrakube_listen ? refuse_listen(err) : 0;
}

const struct df_route_table df_terrakube_routes = {NULL, 0};

/* ---- steps that another build took ---- */

int df_terrakube_part(struct df_spawner *s, const cJSON *task, cJSON **ret, struct df_err *err)
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
    return p->ops->cleanup(p->engine, &p->step, err) < 0 ||
                   df_payload_delete(p->c->s, p->step.name, err) < 0
               ? -1
               : df_task_pass_finalize(p, err);
}

const struct df_task_hooks df_terrakube_hooks = {.acts_unobserved = true,
                                                 .set_begun = df_runner_set_begun,
                                                 .begin = refuse,
                                                 .report = df_task_pass_report_waiting,
                                                 .end = end,
                                                 .collect = df_runner_collect,
                                                 .clean = clean};
