/*
 * wall.h - what a process sees of the file system and of other processes.
 *
 * A wall is a list of paths, each hidden, empty, read-only or writable; what it does not name stays
 * as it is. Later entries are laid over earlier ones: hide a directory, then show one below it. If
 * "/" is hidden, only the entries after it can be seen. A process with a wall (process.h) is the
 * first of a PID namespace of its own: it sees and signals its descendants only, they end with it,
 * and outside it has an ordinary pid. Shared memory and message queues of System V are its own, and
 * it reaches no keyring of the kernel. Another user than root gets a user namespace for that, with
 * its own uid alone, and no capabilities; root keeps its user and those of df_wall_keeps(). No
 * program that it starts has more. Thread rule: a wall is filled by one thread; any thread may
 * spawn with it.
 */
#ifndef DF_WALL_H
#define DF_WALL_H

#include <sys/types.h>

#include "common/base/err.h"

enum df_wall_access {
    DF_WALL_HIDDEN,    /* a directory looks empty, a file too; nothing can be made there */
    DF_WALL_EMPTY,     /* a private directory in memory, mode 1777 */
    DF_WALL_READ_ONLY, /* with everything that is mounted below it */
    DF_WALL_WRITABLE,
    DF_WALL_LINK /* a symbolic link, below a hidden directory */
};

struct df_wall_entry {
    enum df_wall_access access;
    char *path;         /* absolute; owned */
    const char *target; /* of a link; not owned */
    bool is_directory;
};

struct df_wall {
    struct df_wall_entry *entries;
    size_t len;
};
#define DF_WALL DF_CLEANUP(df_wall_free)

/* Appends an entry. A path that does not exist is left out, except an empty one and a link. path:
 * absolute; NULL is left out as well. */
int df_wall_add(struct df_wall *v, enum df_wall_access access, const char *path,
                struct df_err *err) DF_MUST_CHECK;
/* target: a string that outlives the wall. */
int df_wall_add_link(struct df_wall *v, const char *path, const char *target,
                     struct df_err *err) DF_MUST_CHECK;
void df_wall_free(struct df_wall *v);

/* Is this open file or directory (also with O_PATH) hidden, inside of a hidden directory, or does
 * it contain something hidden? Entries that show something again are not considered. A descriptor,
 * and not a path: what is checked is what is then read, whoever changes links meanwhile. True also
 * if its place cannot be told. */
bool df_wall_touches_hidden(const struct df_wall *v, int fd);

/* Like fork(2), and the child has the wall. The child gets 0; *ret_fault.error is 0 there, or the
 * errno of what failed, and *ret_fault.entry the entry (v->len: none of them). Between this call
 * and its exec the child may make system calls only. */
struct df_wall_fault {
    int error;
    size_t entry;
};
pid_t df_wall_fork(const struct df_wall *v, struct df_wall_fault *ret_fault) DF_MUST_CHECK;
/* The path of the entry that failed, or what failed besides the entries. */
const char *df_wall_fault_place(const struct df_wall *v, const struct df_wall_fault *fault);

/* Is this one of the few capabilities that root keeps? */
bool df_wall_keeps(int capability);

/* Can this process start others with a wall? SYSTEM: the kernel or a container does not allow it;
 * the message names the call. Starts a process that ends at once. */
int df_wall_probe(struct df_err *err) DF_MUST_CHECK;

#endif
