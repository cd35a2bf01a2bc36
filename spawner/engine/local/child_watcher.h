/*
 * child_watcher.h - the thread of the local engine. It detects the end of runners, watches
 * processes that outlive them, and kills processes after their deadline.
 *
 * Everything that must survive a restart is in the step's directory; the first status() of each
 * step rebuilds the rest. Thread rule: any thread. Callers and the watch thread hold the lock that
 * was passed to df_child_watcher_new() while they use a step's directory.
 */
#ifndef DF_ENGINE_CHILD_WATCHER_H
#define DF_ENGINE_CHILD_WATCHER_H

#include <pthread.h>

#include "spawner/engine/engine.h"
#include "spawner/engine/local/step_dir.h"

struct df_child_watcher; /* opaque */

/* root and lock are borrowed and must outlive the watcher. */
int df_child_watcher_new(const char *root, pthread_mutex_t *lock, df_engine_notify notify,
                         void *notify_arg, struct df_child_watcher **ret,
                         struct df_err *err) DF_MUST_CHECK;
/* Ends the thread; no process is killed. w may be NULL. */
void df_child_watcher_free(struct df_child_watcher *w);

/* Watches this step; notify is called when its runner has ended, and again when all its processes
 * have. pidfd: of the runner, -1: it has ended already; owned by the watcher, also after a failure.
 * Success if the step is watched already. Call it with the lock held. */
int df_child_watcher_add(struct df_child_watcher *w, const char *uid, const char *name, int pidfd,
                         struct df_err *err) DF_MUST_CHECK;
/* Is this step watched? Call it with the lock held. */
bool df_child_watcher_has(const struct df_child_watcher *w, const char *uid);
/* Reaps the runner if it has ended, which writes its exit file; call it before reading the step's
 * directory. has_ended: the runner is known to be dead, so wait until it can be reaped. Call it
 * with the lock held. */
void df_child_watcher_reap(struct df_child_watcher *w, const char *uid, bool has_ended);
/* Sends SIGTERM to the runner, once. Call it with the lock held. */
int df_child_watcher_terminate(struct df_child_watcher *w, const char *uid,
                               struct df_err *err) DF_MUST_CHECK;
/* Kills all processes of the step at this time of df_boot_us(). Call it with the lock held. */
void df_child_watcher_kill_at(struct df_child_watcher *w, const char *uid, int64_t boot_us);

#endif
