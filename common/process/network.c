#include "common/process/network.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

#include "common/base/util.h"

/* socket(2) by its numbers, of which i386 has two, and io_uring_setup(2), whose rings make sockets
 * as well and which has one number everywhere. */
#define IO_URING_SETUP 425
#define NO_SOCKETS(arch, socket, other)                                                            \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (arch), 0, 7),                                             \
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),                     \
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, ~0x40000000U /* x32 */),                               \
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (socket), 3, 0),                                       \
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (other), 2, 0),                                        \
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IO_URING_SETUP, 1, 0),                                 \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),                                              \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES)

int df_network_leave(void)
{
    static const struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
        NO_SOCKETS(AUDIT_ARCH_X86_64, 41, 41),
        NO_SOCKETS(AUDIT_ARCH_I386, 359, 102 /* socketcall(2) */),
        NO_SOCKETS(AUDIT_ARCH_AARCH64, 198, 198),
        NO_SOCKETS(AUDIT_ARCH_ARM, 281, 281),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)};
    union { /* the call does not write to it */
        const struct sock_filter *in;
        struct sock_filter *out;
    } list = {.in = filter};
    const struct sock_fprog program = {.len = DF_ARRAY_SIZE(filter), .filter = list.out};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return -1;
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}
