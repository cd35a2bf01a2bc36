/*
 * isolation.h - the wall (common/process/wall.h) between the tool, which runs the module's code, and
 * the machine.
 *
 * The engine `local` says in the handoff how much a step may see: {"isolation": {"mode": "auto" or
 * "strict", "hidden": [paths]}}; without the member there is no wall. Mode auto leaves the machine
 * as it is, without the hidden paths and other processes; strict shows the work directory, the tool
 * and the system's programs. The runner itself stays outside: it talks to the spawner, fetches the
 * source and keeps the tools, and the pid of the tool that it notes is the one that the engine sees.
 * Thread rule: one thread.
 */
#ifndef DF_ISOLATION_H
#define DF_ISOLATION_H

#include "common/json/json.h"
#include "common/process/process.h"
#include "runner/tofu/workspace.h"

struct df_isolation {
    bool is_on, is_strict;
    struct df_wall hidden; /* the hidden paths alone */
};
/* Reads the handoff. */
int df_isolation_read(const cJSON *handoff, struct df_isolation *ret,
                      struct df_err *err) DF_MUST_CHECK;
void df_isolation_free(struct df_isolation *i);

/* Refuses a source of this machine that is hidden, or has something hidden in it: its copy would be
 * in the work directory, before the wall. Reason SourceRefused. */
int df_isolation_check_source(const struct df_isolation *i, const cJSON *source,
                              struct df_err *err) DF_MUST_CHECK;

/* The wall of a step's commands. `init`, which runs no code of the module, may write to the plugin
 * cache; no other command may. */
struct df_walls {
    struct df_wall init, other;
    const struct df_process_limits *limits; /* NULL: those of the machine */
};
struct df_walls_request {
    const struct df_isolation *isolation;
    const cJSON *step; /* the step document */
    const struct df_dirs *dirs;
    const char *tool; /* the program */
};
/* Reason InvalidStep for a storage that mode strict does not show. */
int df_walls_make(const struct df_walls_request *q, struct df_walls *ret,
                  struct df_err *err) DF_MUST_CHECK;
void df_walls_free(struct df_walls *w);

#endif
