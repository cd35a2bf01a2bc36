/*
 * plugin_stage.h - `init` with a plugin cache that many steps share.
 *
 * The tools write into their plugin cache in place: a killed `init` leaves half a package there,
 * and a second one overwrites a program that another step is executing ("text file busy"). And code
 * of the module can run during `init` (a key provider "external"), which must not put programs into
 * the steps of others. So no tool may write to the shared cache (providers.pluginCacheDirectory).
 * Its plugin cache is a stage, a directory of this step, with links to those packages of the shared
 * cache that have a checksum of the module's lock file. What `init` adds to the stage is published
 * by the runner: copied into the cache's file system, to files that no step ever had open, and
 * renamed, under the lock of the cache; the links in .terraform are directed to it. A package in
 * the cache is therefore complete. It is replaced only if it is not what was published; a step with
 * another content for the same version keeps its own.
 *
 * No step waits for the download of another one: the lock, a flock(2) of <cache>/.dayfly.lock, is
 * held for a few system calls, and for reading a package that somebody changed. The copy of a
 * killed step is removed by the next one. Whoever published something makes room in the cache, if
 * its packages have more than the limit (plugin_use.h). Thread rule: one thread; any number of
 * processes, also of several nodes if the file system has flock(2).
 */
#ifndef DF_TOFU_PLUGIN_STAGE_H
#define DF_TOFU_PLUGIN_STAGE_H

#include "runner/tofu/plugin_use.h"

/* Borrowed. */
struct df_plugin_cache {
    const char *directory;       /* absolute */
    int64_t limit;               /* bytes; 0: none */
    struct df_plugin_uses *uses; /* gets what the step uses; outlives its commands */
};

struct df_plugin_stage {
    struct df_plugin_uses *uses; /* borrowed */
    int64_t limit;
    char *cache, *directory;
    int fd; /* of the directory: a module may put a link in its place */
};
#define DF_PLUGIN_STAGE DF_CLEANUP(df_plugin_stage_close)
#define DF_PLUGIN_STAGE_NONE ((struct df_plugin_stage){.fd = -1})

/* Makes the shared cache, if it does not exist: a wall shows what is there. One that cannot be
 * written is no failure. cache: absolute, or NULL. */
int df_plugin_stage_make_cache(const char *cache, struct df_err *err) DF_MUST_CHECK;

/* module_dir: has the lock file, or none. private_dir: for the stage; on the file system of
 * module_dir. */
int df_plugin_stage_open(const struct df_plugin_cache *cache, const char *module_dir,
                         const char *private_dir, struct df_plugin_stage *ret,
                         struct df_err *err) DF_MUST_CHECK;

/* After an `init` that succeeded: publishes the new packages, and directs the links in
 * <module_dir>/.terraform/providers to where they are now. module_dir: a real path. Packages that
 * cannot be published (a cache that is read-only) stay with the step. */
int df_plugin_stage_publish(const struct df_plugin_stage *s, const char *module_dir,
                            struct df_err *err) DF_MUST_CHECK;

/* Removes the stage. */
void df_plugin_stage_close(struct df_plugin_stage *s);

#endif
