/*
 * memory.h - whether the kernel killed processes of this container for want of memory.
 */
#ifndef DF_RUNNER_MEMORY_H
#define DF_RUNNER_MEMORY_H

#include <stdint.h>

/* How many, since the container was made: `oom_kill` of memory.events (cgroup v2) or of
 * memory.oom_control (v1) below root, "/sys/fs/cgroup" in a container, where both show its own
 * group. 0 when nobody knows. Thread rule: any thread. */
int64_t df_memory_kills(const char *root);

#endif
