/*
 * Walls. enter() at the end of its section runs between clone(2) and exec, in a process
 * that may have a copy of locked mutexes: it makes system calls only, on memory that the parent has
 * prepared. It first copies what is to be shown, then hides, then lays the copies over.
 */
#include "common/process/wall.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "common/base/fs.h"
#include "common/base/limits.h"

/* ---- the list ---- */

static int append_entry(struct df_wall *v, struct df_wall_entry entry, struct df_err *err)
{
    struct df_wall_entry *more = NULL;
    entry.path = strdup(entry.path);
    if (entry.path)
        more = reallocarray(v->entries, v->len + 1, sizeof(*more));
    if (!more) {
        free(entry.path);
        return df_fail_oom(err);
    }
    v->entries = more;
    v->entries[v->len++] = entry;
    return 0;
}

int df_wall_add(struct df_wall *v, enum df_wall_access access, const char *path, struct df_err *err)
{
    struct stat st = {.st_mode = S_IFDIR};
    if (!path)
        return 0;
    if (*path != '/' || v->len == DF_LIMIT_WALL)
        return df_fail(err, DF_ERR_LIMIT, "%s: a wall has absolute paths, at most %d", path,
                       DF_LIMIT_WALL);
    if (access != DF_WALL_EMPTY && stat(path, &st) < 0)
        return errno == ENOENT || errno == ENOTDIR || errno == EACCES
                   ? 0
                   : df_fail_errno(err, errno, "%s", path);
    /* append_entry() copies the path. */
    union {
        const char *in;
        char *out;
    } name = {.in = path};
    const struct df_wall_entry entry = {
        .access = access, .path = name.out, .is_directory = S_ISDIR(st.st_mode)};
    return append_entry(v, entry, err);
}

int df_wall_add_link(struct df_wall *v, const char *path, const char *target, struct df_err *err)
{
    union {
        const char *in;
        char *out;
    } name = {.in = path};
    const struct df_wall_entry entry = {.access = DF_WALL_LINK, .path = name.out, .target = target};
    return append_entry(v, entry, err);
}

void df_wall_free(struct df_wall *v)
{
    for (size_t i = 0; i < v->len; i++)
        free(v->entries[i].path);
    free(v->entries);
    *v = (struct df_wall){0};
}

bool df_wall_touches_hidden(const struct df_wall *v, int fd)
{
    DF_FREE char *real = df_fs_path_of(fd, NULL);
    if (!real)
        return v->len > 0;
    for (size_t i = 0; i < v->len; i++) {
        DF_FREE char *hidden = realpath(v->entries[i].path, NULL);
        if (v->entries[i].access == DF_WALL_HIDDEN && hidden && strcmp(hidden, "/") != 0 &&
            (df_fs_is_within(real, hidden) || df_fs_is_within(hidden, real)))
            return true;
    }
    return false;
}

/* ---- entering: system calls only ---- */

/* What the child needs, made before the fork. */
struct entering {
    const struct df_wall *wall;
    bool is_root;
    char uid_map[48], gid_map[48]; /* "1000 1000 1" */
    int trees[DF_LIMIT_WALL];      /* copies of what is shown */
};

static int write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    ssize_t n = write(fd, text, strlen(text));
    int saved = errno;
    (void)close(fd);
    errno = saved;
    return n < 0 ? -1 : 0;
}

/* A process that is not dumpable may not write its own maps. This one has only a copy of its
 * parent's memory, and replaces it at its exec. */
static int enter_user(const struct entering *e)
{
    if (e->is_root)
        return 0;
    if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0 ||
        write_text("/proc/self/uid_map", e->uid_map) < 0 ||
        write_text("/proc/self/setgroups", "deny") < 0)
        return -1;
    return write_text("/proc/self/gid_map", e->gid_map);
}

/* Mounts of the machine still appear here, and none of ours outside. */
static int enter_mounts(void)
{
    if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
        return -1;
    return mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
}

static int copy_tree(const char *path)
{
    return open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
}

static int make_read_only(int fd, const char *path, unsigned flags)
{
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY};
    return mount_setattr(fd, path, flags, &attr, sizeof(attr));
}

static bool is_shown(const struct df_wall_entry *entry)
{
    return entry->access == DF_WALL_READ_ONLY || entry->access == DF_WALL_WRITABLE;
}

static int copy_entry(struct entering *e, size_t i)
{
    const struct df_wall_entry *entry = &e->wall->entries[i];
    if (!is_shown(entry))
        return 0;
    e->trees[i] = copy_tree(entry->path);
    if (e->trees[i] < 0)
        return -1;
    return entry->access == DF_WALL_READ_ONLY
               ? make_read_only(e->trees[i], "", AT_EMPTY_PATH | AT_RECURSIVE)
               : 0;
}

/* Lays an empty file system over the root, and lets go of the old one. /proc is only a place for it
 * that surely exists. */
static int hide_root(void)
{
    if (mount("tmpfs", "/proc", "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=1m") < 0 ||
        chdir("/proc") < 0 || syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0)
        return -1;
    return chdir("/");
}

/* Makes the directories above path, where they are missing. */
static int make_parents(const char *path)
{
    char part[PATH_MAX];
    for (size_t i = 0; path[i]; i++) {
        if (i + 1 >= sizeof(part)) {
            errno = ENAMETOOLONG;
            return -1;
        }
        part[i] = '\0';
        if (i && path[i] == '/' && mkdir(part, 0755) < 0 && errno != EEXIST && errno != EROFS)
            return -1;
        part[i] = path[i];
    }
    return 0;
}

/* Makes the place where an entry is mounted, if it is missing. */
static int make_place(const struct df_wall_entry *entry)
{
    if (make_parents(entry->path) < 0)
        return -1;
    if (entry->is_directory)
        return mkdir(entry->path, 0755) < 0 && errno != EEXIST && errno != EROFS ? -1 : 0;
    int fd = open(entry->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd >= 0)
        (void)close(fd);
    return fd < 0 && errno != EEXIST && errno != EROFS ? -1 : 0;
}

static int move_here(int tree, const char *path)
{
    return move_mount(tree, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_SYMLINKS);
}

/* A hidden file looks like /dev/null. */
static int hide_file(const char *path)
{
    int nothing = copy_tree("/dev/null");
    return nothing < 0 ? -1 : move_here(nothing, path);
}

static int hide(const struct df_wall_entry *entry)
{
    if (entry->path[1] == '\0')
        return hide_root();
    if (make_place(entry) < 0)
        return -1;
    if (!entry->is_directory)
        return hide_file(entry->path);
    return mount("tmpfs", entry->path, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=1m");
}

static int lay_entry(struct entering *e, size_t i)
{
    const struct df_wall_entry *entry = &e->wall->entries[i];
    switch (entry->access) {
    case DF_WALL_HIDDEN:
        return hide(entry);
    case DF_WALL_LINK:
        return make_parents(entry->path) < 0 ? -1 : symlink(entry->target, entry->path);
    case DF_WALL_EMPTY:
        if (make_place(entry) < 0)
            return -1;
        return mount("tmpfs", entry->path, "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777,size=20%");
    case DF_WALL_READ_ONLY:
    case DF_WALL_WRITABLE:
        return make_place(entry) < 0 ? -1 : move_here(e->trees[i], entry->path);
    }
    return -1;
}

/* The hidden directories were writable until all places in them were made. */
static int close_entry(struct entering *e, size_t i)
{
    const struct df_wall_entry *entry = &e->wall->entries[i];
    if (entry->access != DF_WALL_HIDDEN || !entry->is_directory)
        return 0;
    return make_read_only(AT_FDCWD, entry->path, 0);
}

/* What root may do behind its wall: use files as root does, and run programs as other users. With
 * any other capability it would reach beyond: the network of the machine, its clock, its
 * devices. */
static const int kept_capabilities[] = {CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_FSETID,
                                        CAP_KILL,  CAP_SETGID,       CAP_SETUID};

bool df_wall_keeps(int capability)
{
    for (size_t i = 0; i < DF_ARRAY_SIZE(kept_capabilities); i++)
        if (kept_capabilities[i] == capability)
            return true;
    return false;
}

/* No program gives them back: none that is set-user-ID, and none whose file has capabilities. In a
 * user namespace all end at the exec, and such a file would give those of the namespace. */
static int drop_bounding_set(void)
{
    for (int c = 0, is_set; (is_set = prctl(PR_CAPBSET_READ, c, 0, 0, 0)) >= 0; c++)
        if (is_set && !df_wall_keeps(c) && prctl(PR_CAPBSET_DROP, c, 0, 0, 0) < 0)
            return -1;
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

static int drop_capabilities(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3];
    if (drop_bounding_set() < 0 || syscall(SYS_capget, &head, sets) < 0)
        return -1;
    for (int half = 0; half < _LINUX_CAPABILITY_U32S_3; half++) {
        unsigned kept = 0;
        for (int bit = 0; bit < 32; bit++)
            kept |= df_wall_keeps(32 * half + bit) ? 1U << bit : 0;
        sets[half].permitted &= kept;
        sets[half].effective &= kept;
        sets[half].inheritable = 0; /* with it nothing is ambient */
    }
    return syscall(SYS_capset, &head, sets) < 0 ? -1 : 0;
}

/* A thread of a 32-bit program, or of x32, calls by other numbers, which stand in the same
 * order. */
#define NO_KEYS(arch, first)                                                                       \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (arch), 0, 6),                                             \
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),                     \
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, ~0x40000000U /* x32 */),                               \
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, (first), 0, 2),                                        \
        BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, (first) + 2, 1, 0),                                    \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),                                     \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

/* The keyrings of a user and of a session may hold keys of the service or of other programs, and no
 * namespace divides them: without add_key(2), request_key(2) and keyctl(2) nobody reads them. */
static int leave_keyrings(void)
{
    static const struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
        NO_KEYS(AUDIT_ARCH_X86_64, 248),
        NO_KEYS(AUDIT_ARCH_I386, 286),
        NO_KEYS(AUDIT_ARCH_AARCH64, 217),
        NO_KEYS(AUDIT_ARCH_ARM, 309),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    union { /* the call does not write to it */
        const struct sock_filter *in;
        struct sock_filter *out;
    } list = {.in = filter};
    const struct sock_fprog program = {.len = DF_ARRAY_SIZE(filter), .filter = list.out};
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}

/* Abstract Unix sockets have no path that could be hidden. From Linux 6.12 on a step reaches none
 * of a process outside: a container engine's shim, a display, a bus. Older kernels refuse the
 * call. */
static void leave_abstract_sockets(void)
{
    static const uint64_t scope_abstract_unix_socket = 1;
    const uint64_t ruleset[] = {0 /* files */, 0 /* network */, scope_abstract_unix_socket};
    int fd = (int)syscall(SYS_landlock_create_ruleset, ruleset, sizeof(ruleset), 0);
    if (fd < 0)
        return;
    (void)syscall(SYS_landlock_restrict_self, fd, 0);
    (void)close(fd);
}

static int each_entry(struct entering *e, int (*act)(struct entering *, size_t), size_t *at)
{
    for (*at = 0; *at < e->wall->len; (*at)++)
        if (act(e, *at) < 0)
            return -1;
    return 0;
}

static int enter(struct entering *e, size_t *at)
{
    *at = e->wall->len;
    if (enter_user(e) < 0 || enter_mounts() < 0 || each_entry(e, copy_entry, at) < 0 ||
        each_entry(e, lay_entry, at) < 0 || each_entry(e, close_entry, at) < 0)
        return -1;
    if (drop_capabilities() < 0)
        return -1;
    leave_abstract_sockets();
    return leave_keyrings(); /* last: it needs no_new_privs, and each later call costs a little */
}

pid_t df_wall_fork(const struct df_wall *v, struct df_wall_fault *ret_fault)
{
    struct entering e = {.wall = v, .is_root = geteuid() == 0};
    int flags = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | (e.is_root ? 0 : CLONE_NEWUSER);
    (void)snprintf(e.uid_map, sizeof(e.uid_map), "%u %u 1", geteuid(), geteuid());
    (void)snprintf(e.gid_map, sizeof(e.gid_map), "%u %u 1", getegid(), getegid());
    *ret_fault = (struct df_wall_fault){.error = 0, .entry = v->len};
    /* Without CLONE_VM: the child must not share the memory of a process that is not dumpable. */
    pid_t pid = (pid_t)syscall(SYS_clone, (long)flags | SIGCHLD, 0L, 0L, 0L, 0L);
    if (pid == 0 && enter(&e, &ret_fault->entry) < 0)
        ret_fault->error = errno;
    return pid;
}

const char *df_wall_fault_place(const struct df_wall *v, const struct df_wall_fault *fault)
{
    return fault->entry < v->len ? v->entries[fault->entry].path
                                 : "its namespaces and capabilities";
}

/* ---- the probe ---- */

int df_wall_probe(struct df_err *err)
{
    DF_WALL struct df_wall v = {0};
    struct df_wall_fault fault;
    int status = 0;
    if (df_wall_add(&v, DF_WALL_HIDDEN, "/sys", err) < 0 ||
        df_wall_add(&v, DF_WALL_READ_ONLY, "/dev", err) < 0)
        return -1;
    pid_t pid = df_wall_fork(&v, &fault);
    if (pid == 0)
        _exit(fault.error & 0x7f);
    if (pid < 0)
        return df_fail_errno(err, errno, "make namespaces");
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return df_fail_errno(err, errno, "wait for process %d", (int)pid);
    if (!WIFEXITED(status) || WEXITSTATUS(status))
        return df_fail_errno(err, WIFEXITED(status) ? WEXITSTATUS(status) : EINTR,
                             "mount in a namespace");
    return 0;
}
