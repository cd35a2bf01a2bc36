/*
 * step_dir.h - the directory of a local step, which has the whole persistent state of the local
 * engine.
 *
 * <root>/<uid>/
 *   work/        working directory of the runner (or a link: work_dir.h); work/spool/ has its log
 *                and events, work/source/ the module
 *   lock         open and flocked by the runner only: if somebody else can lock it, the runner is
 *                gone. This also works before runner.pid is written
 *   runner.pid   identity of the runner (processes.h); written by the engine
 *   tofu.pid     identity of the running tofu; written by the runner
 *   tofu.pid.interrupted  created by the process that is about to send tofu its only SIGINT
 *   module       link to the module in work/; created by the runner
 *   runner.log   stdout and stderr of the runner
 *   result.json  the result document; written by the runner before it ends
 *   errored.tfstate  a state that the runner could not upload; put here by the runner
 *   exit         how the runner ended, from waitpid(2): "exited 0", "killed 9". Only its parent can
 *                write it, so it may be missing after a restart of the spawner
 *   kill-at      when all processes of the step are killed: microseconds of the boot clock
 * <root>/at/<executor>: the working directory of an executor's current step (work_dir.h).
 * <root>/by-name/<name> -> ../<uid>: the step that has the name.
 * <root>/failed/<name>: the work/ of a failed step, kept on demand.
 * <root>/failed/<name>.errored.tfstate: a state that tofu could not store and nobody recovered.
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
    char *top; /* <root>/<uid>; this and the paths in it are owned */
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

/* Fills in the paths; does not access the disk. */
int df_step_dir_init(struct df_step_dir *d, const char *root, const char *uid,
                     struct df_err *err) DF_MUST_CHECK;
/* Frees the paths and clears *d. A second call has no effect. */
void df_step_dir_free(struct df_step_dir *d);

/* Creates <root> and in it at, by-name and failed. */
int df_step_dir_prepare_root(const char *root, struct df_err *err) DF_MUST_CHECK;

/* Creates the directory without work/ (work_dir.h), removes one of an earlier attempt before, and
 * acquires the name. CONFLICT: the step of another uid has the name. */
int df_step_dir_make(const struct df_step_dir *d, const char *name,
                     struct df_err *err) DF_MUST_CHECK;

/* Opens and locks the lock file. CONFLICT: a runner has locked it. */
int df_step_dir_lock(const struct df_step_dir *d, int *ret_fd, struct df_err *err) DF_MUST_CHECK;

/* The state of a step, from its directory and /proc. */
struct df_step_state {
    struct df_engine_observation observed;
    bool runner_lives;
    bool runner_known; /* runner is set, whether it lives or not */
    struct df_identity runner;
};
int df_step_dir_observe(const struct df_step_dir *d, struct df_step_state *ret,
                        struct df_err *err) DF_MUST_CHECK;

/* Sends SIGINT to an orphaned tofu, at most once. */
int df_step_dir_interrupt(const struct df_step_dir *d, struct df_err *err) DF_MUST_CHECK;

/* Reads and discards the output of an orphaned tofu. Call it repeatedly: tofu blocks on a full pipe
 * and would never store its state. */
int df_step_dir_drain(const struct df_step_dir *d, struct df_err *err) DF_MUST_CHECK;

/* Sends SIGKILL to all living processes of the step: the runner's session and tofu. */
int df_step_dir_kill(const struct df_step_dir *d, struct df_err *err) DF_MUST_CHECK;

/* The path of a file that was not delivered (engine.h, leftover). The caller frees *ret_path. */
int df_step_dir_leftover(const struct df_step_dir *d, const char *name, char **ret_path,
                         struct df_err *err) DF_MUST_CHECK;

/* Writes the file `exit` from a status of waitpid(2). */
int df_step_dir_note_exit(const struct df_step_dir *d, int status,
                          struct df_err *err) DF_MUST_CHECK;

/* Microseconds since the boot of the machine, including suspend. */
int64_t df_boot_us(void);
/* Sets the time at which all processes of the step are killed to after_us from now, unless an
 * earlier call has set it. *ret_us: the time that is set, of df_boot_us(). */
int df_step_dir_set_kill_at(const struct df_step_dir *d, int64_t after_us, int64_t *ret_us,
                            struct df_err *err) DF_MUST_CHECK;

/* Releases the name and removes the directory. Before that it moves a remaining errored.tfstate to
 * failed/, and with keep_work also work/. */
int df_step_dir_remove(const struct df_step_dir *d, const char *name, bool keep_work,
                       struct df_err *err) DF_MUST_CHECK;

#endif
