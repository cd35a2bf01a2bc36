/*
 * plugin_stage.h - `init` with a plugin cache that many steps share.
 *
 * The tools write into their plugin cache in place: a killed `init` leaves half a package there, and
 * a second one overwrites a program that another step is executing ("text file busy"). So no tool
 * gets the shared cache (providers.pluginCacheDirectory). Its plugin cache is a stage, a directory
 * in the cache that belongs to this step, with links to those packages of the shared cache that
 * have a checksum of the module's lock file. What `init` adds to the stage is published by rename,
 * under the lock of the cache, and the links in .terraform are directed to it. A package in the
 * cache is therefore complete, and it is replaced only if it is damaged, in one exchange.
 *
 * No step waits for the download of another one: the lock, a flock(2) of <cache>/.dayfly.lock, is held for
 * a few system calls, and for reading a package that somebody changed. The stage of a killed step is
 * removed by the next one. Thread rule: one thread; any number of processes, also of several nodes if
 * the file system has flock(2).
 */
#ifndef DF_TOFU_PLUGIN_STAGE_H
#define DF_TOFU_PLUGIN_STAGE_H

#include "common/base/err.h"

struct df_plugin_stage {
    char *cache, *directory;
    int fd;          /* of the directory, locked: its step lives */
    bool is_private; /* the cache is read-only: new packages stay with the step */
};
#define DF_PLUGIN_STAGE DF_CLEANUP(df_plugin_stage_close)
#define DF_PLUGIN_STAGE_NONE ((struct df_plugin_stage){.fd = -1})

/* cache: absolute; created if it does not exist. module_dir: has the lock file, or none.
 * private_dir: for the stage if the cache is read-only; on the file system of module_dir. */
int df_plugin_stage_open(const char *cache, const char *module_dir, const char *private_dir,
                         struct df_plugin_stage *ret, struct df_err *err) DF_MUST_CHECK;

/* After an `init` that succeeded: publishes the new packages, and directs the links in
 * <module_dir>/.terraform/providers to where they are now. */
int df_plugin_stage_publish(const struct df_plugin_stage *s, const char *module_dir,
                            struct df_err *err) DF_MUST_CHECK;

/* Removes the stage. */
void df_plugin_stage_close(struct df_plugin_stage *s);

#endif
