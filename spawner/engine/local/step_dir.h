/*
 * step_dir.h - a local step's directory: the only memory that the local engine has.
 *
 * <root>/<uid>/
 *   work/        where the runner puts everything that it fetches and makes; in work/spool/ its
 *                log and events, in work/source/ the module (or a link to it: work_dir.h)
 *   lock         open and flocked in the runner alone: who can lock it has proven the runner gone,
 *                also in the moment before runner.pid is written
 *   runner.pid   identity of the runner (processes.h); by the engine
 *   tofu.pid     identity of the tofu that runs now; by the runner
 *   tofu.pid.interrupted  made by whoever is about to send tofu its one SIGINT
 *   module       link to the module in work/; by the runner
 *   runner.log   what the runner says to stdout and stderr
 *   result.json  the runner's result document; by the runner, before it ends
 *   errored.tfstate  a state that the runner could not upload; by the runner
 *   exit         how the runner ended, as its parent saw it: "exited 0", "killed 9"
 *   kill-at      when everything of the step is killed: microseconds of the boot clock
 * <root>/at/<executor>: where the step of an executor works (work_dir.h).
 * <root>/by-name/<name> -> ../<uid>: whose the name is.
 * <root>/failed/<name>: the work dir of a failed step, kept for people on demand.
 * <root>/failed/<name>.errored.tfstate: a state that tofu could not store and nobody has taken.
 *
 * Thread rule: calls about one directory are serialised by the engine.
 */
#ifndef DF_ENGINE_STEP_DIR_H
#define DF_ENGINE_STEP_DIR_H

#include "spawner/engine/local/processes.h"
#include "spawner/model/model.h"

struct df_step_dir {
    const char *root; /* borrowed */
    char uid[64];
    char *top; /* <root>/<uid>; this and what is in it: owned */
    char *work;
    char *lock;
    char *runner_pid;
    char *tofu_pid;
    char *interrupted;
    char *runner_log;
    char *result;
    char *exit;
    char *kill_at;
};
#define DF_STEP_DIR DF_CLEANUP(df_step_dir_free)

/* Names the parts; touches nothing on disk. */
int df_step_dir_init(struct df_step_dir *d, const char *root, const char *uid,
                     struct df_err *err) DF_MUST_CHECK;
void df_step_dir_free(struct df_step_dir *d);

/* Makes <root>, at, by-name and failed. */
int df_step_dir_prepare_root(const char *root, struct df_err *err) DF_MUST_CHECK;

/* Makes the directory anew (what an earlier try left is removed), without work/ (work_dir.h), and
 * takes the name. CONFLICT: another uid has the name. */
int df_step_dir_make(const struct df_step_dir *d, const char *name,
                     struct df_err *err) DF_MUST_CHECK;

/* The open, flocked lock file. CONFLICT: a runner has it. */
int df_step_dir_lock(const struct df_step_dir *d, int *ret_fd, struct df_err *err) DF_MUST_CHECK;

/* What the directory and /proc say. */
struct df_step_look {
    struct df_engine_observation seen;
    bool runner_lives;
    bool runner_known; /* runner is set, living or not */
    struct df_identity runner;
};
int df_step_dir_look(const struct df_step_dir *d, struct df_step_look *ret,
                     struct df_err *err) DF_MUST_CHECK;

/* Sends SIGINT to an orphaned tofu, at most once. */
int df_step_dir_interrupt(const struct df_step_dir *d, struct df_err *err) DF_MUST_CHECK;

/* Takes what a tofu without a runner has written so far out of its pipe, again and again: a full
 * one would hold it up, and its state would never be stored. */
int df_step_dir_drain(const struct df_step_dir *d, struct df_err *err) DF_MUST_CHECK;

/* SIGKILL to everything of the step that lives: the runner's session and tofu. */
int df_step_dir_kill(const struct df_step_dir *d, struct df_err *err) DF_MUST_CHECK;

/* A file that was not handed over (engine.h, leftover). The caller frees *ret_path. */
int df_step_dir_leftover(const struct df_step_dir *d, const char *name, char **ret_path,
                         struct df_err *err) DF_MUST_CHECK;

/* Writes the `exit` file from a status of waitpid(2). */
int df_step_dir_note_exit(const struct df_step_dir *d, int status,
                          struct df_err *err) DF_MUST_CHECK;

/* Microseconds since the machine started, asleep or not. */
int64_t df_boot_us(void);
/* Everything is to be killed after_us from now, unless an earlier call said when: *ret_us (of
 * df_boot_us()) is the time that holds. */
int df_step_dir_arm(const struct df_step_dir *d, int64_t after_us, int64_t *ret_us,
                    struct df_err *err) DF_MUST_CHECK;

/* Gives the name back and removes the directory. First an errored.tfstate that is left is moved to
 * failed/, and with keep_work also work/. */
int df_step_dir_remove(const struct df_step_dir *d, const char *name, bool keep_work,
                       struct df_err *err) DF_MUST_CHECK;

#endif
