/*
 * gate.h - a file that is created before its content exists: open(2) blocks until it has content.
 *
 * `tofu show` needs tens of milliseconds from its start until it opens the plan. With a gate
 * instead of the plan file it can be started while the plan is still being made, which saves that
 * time. A gate is a write lease of fcntl(2): the kernel delays every other open(2) until the lease
 * is released, for at most /proc/sys/fs/lease-break-time seconds; then the file opens empty. Not
 * every file system has leases, so callers must be able to continue without a gate. SIGIO must be
 * ignored. Thread rule: one gate, one thread.
 */
#ifndef DF_GATE_H
#define DF_GATE_H

#include "common/base/err.h"

struct df_gate {
    int fd; /* owned; -1: none */
};
#define DF_GATE_INIT ((struct df_gate){.fd = -1})

/* Creates path, which must not exist (mode 0600). */
int df_gate_make(const char *path, struct df_gate *ret, struct df_err *err) DF_MUST_CHECK;
/* Copies the content of another file into it and releases it. */
int df_gate_open(struct df_gate *g, const char *content_path, struct df_err *err) DF_MUST_CHECK;
/* Releases it with the content that it has by then. */
void df_gate_drop(struct df_gate *g);

#endif
