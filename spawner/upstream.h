/*
 * upstream.h - another system that gives this service steps, beside those of dayfly's own runs. It
 * has one row, which service.c gives to the spawner: who needs to know something asks the row, and
 * never which row it is. Its steps are a kind of TaskActions (model/task_kinds.h).
 */
#ifndef DF_UPSTREAM_H
#define DF_UPSTREAM_H

#include "common/json/json.h"

struct df_doctor_context;
struct df_field;
struct df_spawner;
struct df_task_hooks;

struct df_upstream {
    const char *name;                  /* for people */
    const struct df_field *spec;       /* of its steps (model/tables.h) */
    const struct df_task_hooks *hooks; /* how the loop handles them (control/task_pass.h) */
    /* What its member of the step document says. *ret has secrets: df_json_wipe() it. Thread rule:
     * any thread, as the hooks; both also without upstream_data. */
    int (*step_part)(struct df_spawner *s, const cJSON *task, cJSON **ret, struct df_err *err);

    /* These only with config->upstream_listen, in this order, in the thread of the service. open()
     * sets s->upstream_data, its own, before the control loop looks at the first step. */
    int (*open)(struct df_spawner *s, struct df_err *err);
    /* Takes steps from now on, which are worked on at once. Not in a service that only answers. */
    int (*start)(struct df_spawner *s, struct df_err *err);
    /* Before the API stops; also if start() was not called or failed. */
    void (*stop)(struct df_spawner *s);
    void (*close)(struct df_spawner *s); /* when no thread uses the data any more */

    int (*check)(struct df_doctor_context *p, struct df_err *err); /* of `dayfly doctor` */
};

#endif
