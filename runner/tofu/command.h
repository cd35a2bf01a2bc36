/*
 * command.h - runs one tofu command to its end: output on its way, one SIGINT when the step must
 * stop, SIGKILL when the grace period is over.
 *
 * tofu runs in a process group of its own within the runner's session, by which the engine finds
 * it, and outlives a runner that is killed: it holds a read end of the pipe that is its stdout, so
 * that no SIGPIPE ends it, and its state is still written. Its pid and start time stand in pid_path
 * for the engine, which then interrupts it, unless <pid_path>.interrupted says that it was,
 * and keeps its pipe from filling up.
 * Thread rule: main thread (a child gets its death signal when the thread that started it ends).
 */
#ifndef DF_COMMAND_H
#define DF_COMMAND_H

#include "common/base/strs.h"
#include "common/process/process.h"
#include "runner/report/output.h"
#include "runner/stop.h"

/* How the commands of a step are run. All borrowed. */
struct df_commander {
    const char *program;
    const char *directory; /* the module */
    const struct df_strs *env;
    const char *fifo_path; /* for events aside; made anew for each command */
    const char *pid_path;  /* or NULL */
    struct df_output *output;
    const struct df_stop *stop;
    int64_t grace_ms; /* from SIGINT to SIGKILL */
    /* It lives for milliseconds and holds little: most of its garbage need not be collected at all,
     * which is a quarter of the start of such a program. */
    bool is_brief;
};

enum df_command_events {
    DF_EVENTS_NONE,     /* stdout is text */
    DF_EVENTS_ASIDE,    /* -json-into=<fifo_path> among the arguments; stdout is text */
    DF_EVENTS_ON_STDOUT /* -json among the arguments: rendered as text */
};

struct df_command_end {
    int code;     /* exit code; 128 + signal when a signal ended it */
    bool stopped; /* it was told to stop before its end */
    bool killed;  /* the grace period was over */
};

/* Runs `program args...`, whose text and events go to the output. tail: gets the last part of the
 * text, unredacted (within its cap); or NULL. A non-zero exit is not a failure of this function. */
int df_command_run(const struct df_commander *c, const struct df_strs *args,
                   enum df_command_events events, struct df_buf *tail, struct df_command_end *ret,
                   struct df_err *err) DF_MUST_CHECK;

/* Starts `program args...`, which only reads, with stdout and stderr into new files (0600); ended
 * by df_command_wait() or df_command_drop(). */
int df_command_start(const struct df_commander *c, const struct df_strs *args, const char *out_path,
                     const char *err_path, struct df_process *ret,
                     struct df_err *err) DF_MUST_CHECK;
/* Waits for it like df_command_run() does, and closes it. */
int df_command_wait(const struct df_commander *c, struct df_process *p, struct df_command_end *ret,
                    struct df_err *err) DF_MUST_CHECK;
/* Kills and closes one that is not wanted any more, and that only reads. */
void df_command_drop(struct df_process *p);

#endif
