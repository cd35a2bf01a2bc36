/*
 * plugin_use.h - who uses which package of a shared plugin cache, and room for new packages.
 *
 * Beside a package lies <package>.use. Whoever uses the package has a shared flock(2) of this file
 * for as long as he lives; its time of change is that of the last use. Packages are removed if
 * all together have more than the limit, the least recently used first, and only those whose file
 * can be locked alone: one in use stays, and so does one that nobody has used since there are such
 * files, or whose file system has no locks. The cache may have more than the limit then. Thread
 * rule: one thread; any number of processes, also of several nodes.
 */
#ifndef DF_TOFU_PLUGIN_USE_H
#define DF_TOFU_PLUGIN_USE_H

#include "common/base/err.h"

struct df_plugin_uses {
    int *fds;
    size_t len;
};
void df_plugin_uses_end(struct df_plugin_uses *u);

/* Until df_plugin_uses_end() nobody removes the package. *ret: false if it is gone, or about to be.
 * One in a cache that is read-only needs no file. */
int df_plugin_use(struct df_plugin_uses *u, const char *package, bool *ret,
                  struct df_err *err) DF_MUST_CHECK;

/* With the lock of the cache. Moves packages to the directory `to`, which is on the same file
 * system, until what is left has at most limit bytes. */
int df_plugin_room_make(const char *cache, int64_t limit, const char *to,
                        struct df_err *err) DF_MUST_CHECK;

#endif
