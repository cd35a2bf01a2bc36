/*
 * isolation.h - the wall (common/process/wall.h) between the tool, which runs the module's code,
 * and the machine.
 *
 * The engine `local` says in the handoff how much a step may see: {"isolation": {"mode": "auto" or
 * "strict", "hidden": [paths]}}; without the member there is no wall. Mode auto leaves the machine
 * as it is; strict shows the work directory, the tool and the system's programs. Both hide other
 * processes and the hidden paths (hiding.h), wherever they are. The runner itself stays outside: it
 * talks to the spawner, fetches the source and keeps the tools, and the pid of the tool that it
 * notes is the one that the engine sees. Thread rule: one thread.
 */
#ifndef DF_ISOLATION_H
#define DF_ISOLATION_H

#include "common/json/json.h"
#include "common/process/process.h"
#include "runner/tofu/workspace.h"

struct df_isolation {
    bool is_on, is_strict;
    struct df_strs secrets; /* what no step may see: paths, which may be links */
    /* They, and nothing else: what no source may contain, because its copy would be in the work
     * directory, before the wall. */
    struct df_wall hidden;
};
/* Reads the handoff. */
int df_isolation_read(const cJSON *handoff, struct df_isolation *ret,
                      struct df_err *err) DF_MUST_CHECK;
void df_isolation_free(struct df_isolation *i);

/* The wall of git processes that fetch a source of this machine: as it is, without the hidden
 * paths, but with the work directory. Not for is_on false. */
int df_isolation_wall_of_fetch(const struct df_isolation *i, const struct df_dirs *dirs,
                               struct df_wall *ret, struct df_err *err) DF_MUST_CHECK;

/* The wall of a program that is no part of the module: as in mode strict, whatever the mode is,
 * with these paths (read-only) and nothing of the step. Not for is_on false. */
int df_isolation_wall_of_program(const struct df_isolation *i, const struct df_strs *shown,
                                 struct df_wall *ret, struct df_err *err) DF_MUST_CHECK;

/* The wall of a step's commands. */
struct df_step_wall {
    struct df_wall wall;
    const struct df_process_limits *limits; /* NULL: those of the machine */
};
struct df_step_wall_request {
    const struct df_isolation *isolation;
    const cJSON *step; /* the step document */
    const struct df_dirs *dirs;
    const char *tool; /* the program */
};
/* Empty if the isolation is off. Reason InvalidStep for a storage that mode strict does not
 * show. */
int df_step_wall_make(const struct df_step_wall_request *q, struct df_step_wall *ret,
                      struct df_err *err) DF_MUST_CHECK;
void df_step_wall_free(struct df_step_wall *w);

#endif
