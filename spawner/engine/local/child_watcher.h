/*
 * child_watcher.h - the local engine's thread: sees runners end, waits for what outlives them, and
 * kills what is over its time.
 *
 * Everything that must survive a restart is in the step's directory; what is here is rebuilt by the
 * first status() of each step. Thread rule: any thread, but calls about the step directories hold
 * the lock that is given to df_child_watcher_new(), and so does the watch thread while it looks at one.
 */
#ifndef DF_ENGINE_CHILD_WATCHER_H
#define DF_ENGINE_CHILD_WATCHER_H

#include <pthread.h>

#include "spawner/engine/engine.h"
#include "spawner/engine/local/step_dir.h"

struct df_child_watcher; /* opaque */

/* root and lock are borrowed and must live on. */
int df_child_watcher_new(const char *root, pthread_mutex_t *lock, df_engine_notify notify,
                         void *notify_arg, struct df_child_watcher **ret,
                         struct df_err *err) DF_MUST_CHECK;
/* Ends the thread. Nothing is killed. NULL is fine. */
void df_child_watcher_free(struct df_child_watcher *w);

/* Watches this step from now on; notify is called when its runner has ended and when everything of
 * it has. pidfd (or -1: the runner is gone already) is taken over, also on failure. Success for a
 * step that is watched already. Called with the lock held. */
int df_child_watcher_add(struct df_child_watcher *w, const char *uid, const char *name, int pidfd,
                         struct df_err *err) DF_MUST_CHECK;
/* Called with the lock held. */
bool df_child_watcher_has(const struct df_child_watcher *w, const char *uid);
/* Who looks at a step's directory asks this first: how a runner ended is known once it is reaped.
 * has_ended: the runner was seen dead, its end is awaited. Called with the lock held. */
void df_child_watcher_reap(struct df_child_watcher *w, const char *uid, bool has_ended);
/* SIGTERM to the runner, the first time only. Called with the lock held. */
int df_child_watcher_terminate(struct df_child_watcher *w, const char *uid,
                               struct df_err *err) DF_MUST_CHECK;
/* At this time of df_boot_us() everything of the step is killed. Called with the lock held. */
void df_child_watcher_kill_at(struct df_child_watcher *w, const char *uid, int64_t boot_us);

#endif
