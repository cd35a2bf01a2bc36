/*
 * gate.h - a file that can be named before it has its content: whoever opens it waits until then.
 *
 * tofu spends tens of milliseconds between its start and the opening of the plan that it is to
 * show. With a gate in the plan's place it spends them while the plan is still being made, and a
 * plan step costs that much less. It is a write lease of fcntl(2): the kernel holds back every
 * other open(2) until the lease is given up, for at most /proc/sys/fs/lease-break-time seconds;
 * then the file opens empty. Not every file system has leases: what is gained by a gate must be had
 * without, too. SIGIO must be ignored. Thread rule: one gate, one thread.
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
/* Fills it with the content of another file, and opens it to everybody. */
int df_gate_open(struct df_gate *g, const char *content_path, struct df_err *err) DF_MUST_CHECK;
/* Gives it up; who waits finds what is in it by now. */
void df_gate_drop(struct df_gate *g);

#endif
