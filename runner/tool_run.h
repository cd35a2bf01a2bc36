/*
 * tool_run.h - one command of the tool within a step, run again when it could not read the state.
 *
 * The `http` backend of the tool repeats a request that gets no answer or a 5xx, but it gives up on
 * an answer whose body breaks off, as it does when the spawner is killed while it sends the state.
 * The command has changed nothing then, and has released its lock. Thread rule: main thread.
 */
#ifndef DF_RUNNER_TOOL_RUN_H
#define DF_RUNNER_TOOL_RUN_H

#include "runner/context.h"

/* df_command_run() with the step's output, whose summary it resets. The command is run again, at
 * most four times, if it ended while it read the state: it exited with 1 by itself, none of its
 * output is lost, and its error says so. A command with events (plan, apply) must also have no other
 * error and no event of a resource; of the others (init, commands on the state) only the text of the
 * first error is known, and they read the state before they write anything.
 * is_brief: see struct df_commander. tail: of the last run. Its exit code goes to *ret_code. */
int df_tool_run(struct df_context *c, const struct df_strs *args, enum df_command_events events,
                bool is_brief, struct df_buf *tail, int *ret_code,
                struct df_err *err) DF_MUST_CHECK;

#endif
