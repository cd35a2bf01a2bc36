/*
 * memory.h - how many processes of this container the OOM killer ended.
 */
#ifndef DF_RUNNER_MEMORY_H
#define DF_RUNNER_MEMORY_H

#include <stdint.h>

/* The number since the container was created: `oom_kill` in memory.events (cgroup v2) or in
 * memory.oom_control (v1) below root. In a container root is "/sys/fs/cgroup", which shows its own
 * group. 0 if neither file can be read. Thread rule: any thread. */
int64_t df_memory_kills(const char *root);

#endif
