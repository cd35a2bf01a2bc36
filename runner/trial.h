/*
 * trial.h - tries the wall of a step for real, for `dayfly doctor`: a process behind it looks for
 * what it should not see.
 *
 * The process outside notes what the hidden paths are (device and inode), starts this program
 * behind the wall of a step, and that one looks whether it finds one of them. Thread rule: main
 * thread.
 */
#ifndef DF_RUNNER_TRIAL_H
#define DF_RUNNER_TRIAL_H

#include "common/json/json.h"

/* The name of the program's command behind the wall. */
#define DF_TRIAL_COMMAND "look"

/* handoff: its member isolation, and `step`: the members of a step document on which a wall
 * depends. work_dir: where the directories of a step are made. Adds to part how many paths are
 * `hidden`. SYSTEM: the wall cannot be made; DENIED: it has a hole, which the message names. */
int df_trial(const cJSON *handoff, const char *work_dir, cJSON *part,
             struct df_err *err) DF_MUST_CHECK;

/* file: {"hidden": [{"path", "id"}], "shown": {"path", "id"}}. Prints what is wrong, each on a line
 * of its own. Returns the exit code: 0 if nothing is. */
int df_trial_look(const char *file);

#endif
