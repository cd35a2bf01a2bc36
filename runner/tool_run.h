/*
 * tool_run.h - runs one command of the tool, and repeats it if the tool could not read the state.
 *
 * The `http` backend of the tool repeats a request that gets no answer or a 5xx, but not one whose
 * answer breaks off. That happens when the spawner is killed while it sends the state. The command
 * then has changed nothing and has released its lock. Thread rule: main thread.
 */
#ifndef DF_RUNNER_TOOL_RUN_H
#define DF_RUNNER_TOOL_RUN_H

#include "runner/context.h"
#include "runner/tofu/failure.h"

/* df_command_run() with the step's output, whose summary it resets. The command is run again, at
 * most four times, if it ended while it read the state: it exited with 1 by itself, none of its
 * output is lost, and its error says so. A command with events (plan, apply) must also have no
 * other error and no event of a resource. Of the others (init, commands on the state) only the text
 * of the first error is known, but they read the state before they write anything.
 * is_brief: see struct df_commander. tail and *ret_code: of the last run. */
int df_tool_run(struct df_context *c, const struct df_strs *args, enum df_command_events events,
                bool is_brief, struct df_buf *tail, int *ret_code,
                struct df_err *err) DF_MUST_CHECK;

/* The first error in a text that the tool printed (df_failure_from_text()), without colours.
 * Secrets are masked before it is cut to the size of its places. */
void df_tool_read_failure(const struct df_context *c, const char *text, struct df_failure *ret);

/* Fails with the meaning of f, the error of the tool's command `words`: df_failure_explain(). Notes
 * the holder of a lock at which it failed in the result. Returns -1. */
int df_tool_failed(struct df_context *c, const struct df_failure *f, const char *words,
                   const char *fallback, struct df_err *err);

/* The same for a command whose output nobody has seen (df_command_start()). errors: the file with
 * its stderr, which goes to the log. */
int df_tool_failed_aside(struct df_context *c, const char *errors, const char *words,
                         const char *fallback, struct df_err *err);

#endif
