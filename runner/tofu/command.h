/*
 * command.h - runs one command of the tool: passes its output to the report, sends one SIGINT when
 * the step must stop, and SIGKILL when the grace period is over.
 *
 * The tool runs in its own process group within the runner's session, by which the engine finds it.
 * It outlives a runner that is killed, and still writes its state: it holds a read end of the pipe
 * that is its stdout, so it never gets SIGPIPE. The engine then reads its pid and start time from
 * pid_path, interrupts it unless <pid_path>.interrupted exists, and drains its pipe.
 * Thread rule: main thread (a child gets its death signal when the thread that started it ends).
 */
#ifndef DF_COMMAND_H
#define DF_COMMAND_H

#include "common/base/strs.h"
#include "common/process/process.h"
#include "runner/report/output.h"
#include "runner/stop.h"
#include "runner/tofu/isolation.h"
#include "runner/tofu/tool.h"

/* How the commands of a step are run. All borrowed. */
struct df_commander {
    const char *program;
    const struct df_tool *tool;      /* whose program it is; NULL: another one */
    const struct df_strs *variables; /* of the tool's commands: -var, -var-file */
    const char *directory;           /* the module */
    const struct df_strs *env;
    const char *fifo_path; /* for DF_EVENTS_ASIDE; created for each command */
    const char *pid_path;  /* or NULL */
    struct df_output *output;
    const struct df_stop *stop;      /* NULL: nothing ends the command early */
    int64_t grace_ms;                /* from SIGINT to SIGKILL */
    const struct df_step_wall *wall; /* NULL: none */
    /* The command allocates little, because it lives for milliseconds or has no provider plugins,
     * which inherit its environment: collecting less garbage saves a quarter of its start. */
    bool is_brief;
    /* A script of the user instead of the tool: it writes no state, so a stop ends it and what it
     * started within seconds (SIGTERM, then SIGKILL), and it is killed with the runner. */
    bool is_script;
};

enum df_command_events {
    DF_EVENTS_NONE,     /* stdout is text */
    DF_EVENTS_ASIDE,    /* -json-into=<fifo_path> among the arguments; stdout is text */
    DF_EVENTS_ON_STDOUT /* -json among the arguments: rendered as text */
};

struct df_command_end {
    int code;     /* exit code; 128 + signal when a signal ended it */
    bool stopped; /* it was interrupted before its end */
    bool killed;  /* at the end of the grace period */
    bool lost;    /* some of its output did not reach the report */
};

/* Every command of the tool that takes variables (df_tool_takes_variables()) gets them: args has
 * none.
 *
 * Runs `program args...` and passes text and events to the output. tail: gets the end of the text,
 * unredacted, within its cap; or NULL. A non-zero exit code is not a failure of this function. */
int df_command_run(const struct df_commander *c, const struct df_strs *args,
                   enum df_command_events events, struct df_buf *tail, struct df_command_end *ret,
                   struct df_err *err) DF_MUST_CHECK;

/* Starts `program args...` with stdout and stderr in new files (0600). The command must not write
 * state: it is killed with the runner. To be ended by df_command_wait() or df_command_drop(). */
int df_command_start(const struct df_commander *c, const struct df_strs *args, const char *out_path,
                     const char *err_path, struct df_process *ret,
                     struct df_err *err) DF_MUST_CHECK;
/* Waits like df_command_run(), and closes p. */
int df_command_wait(const struct df_commander *c, struct df_process *p, struct df_command_end *ret,
                    struct df_err *err) DF_MUST_CHECK;
/* Kills the command and closes p. */
void df_command_drop(struct df_process *p);

#endif
