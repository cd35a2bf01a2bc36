/*
 * mirror_store.h - a directory with packages of providers, as `filesystem_mirror` of tofu and
 * terraform reads it, and with the indexes that make the same files a network mirror:
 *   <host>/<namespace>/<type>/terraform-provider-<type>_<version>_<platform>.zip
 *   <host>/<namespace>/<type>/<version>.json, index.json
 * Readers see each file as it was or as it is, never a part of it. Thread rule: one thread; one
 * writer (df_mirror_store_open()).
 */
#ifndef DF_CLI_MIRROR_STORE_H
#define DF_CLI_MIRROR_STORE_H

#include "common/base/strs.h"
#include "spawner/steps/provider_index.h"

struct df_mirror_store {
    char *directory; /* absolute */
    char *stage;     /* a directory on the same file system, for what is not complete yet */
    int lock_fd;
};
#define DF_MIRROR_STORE DF_CLEANUP(df_mirror_store_close)
#define DF_MIRROR_STORE_NONE ((struct df_mirror_store){.lock_fd = -1})

/* Creates the directory, and removes what a killed writer left there. CONFLICT: somebody else
 * writes to it. */
int df_mirror_store_open(const char *directory, struct df_mirror_store *ret,
                         struct df_err *err) DF_MUST_CHECK;
void df_mirror_store_close(struct df_mirror_store *s);

/* One archive, and the checksums of the lock file; NULL: the module has none. All borrowed. */
struct df_mirror_package {
    struct df_provider_archive archive;
    const struct df_strs *hashes;
};

/* Moves a checked archive to its place. */
int df_mirror_store_put(const struct df_mirror_store *s, const char *archive,
                        const struct df_mirror_package *p, struct df_err *err) DF_MUST_CHECK;

/* Adds the archive in its place to the indexes, unless it is there. */
int df_mirror_store_index(const struct df_mirror_store *s, const struct df_mirror_package *p,
                          struct df_err *err) DF_MUST_CHECK;

#endif
