/*
 * provider_mirror.h - the mirror of providers that this service is for its steps: the files of
 * providers.mirror.directory and, for the registries of providers.mirror.registries, what they have
 * besides. An archive is downloaded when the first step asks for it, once for all who wait for it,
 * compared with the SHA-256 that its registry names, and then kept. Thread rule: any thread.
 */
#ifndef DF_STEPS_PROVIDER_MIRROR_H
#define DF_STEPS_PROVIDER_MIRROR_H

#include "spawner/config/config.h"

/* A file, or a text. */
struct df_provider_file {
    int fd; /* owned; -1: the text */
    int64_t size;
    char *text; /* owned */
};

/* source: "<host>/<namespace>/<type>". file: "index.json", "<version>.json" or an archive's name.
 * NOT_FOUND: the mirror has none. Others: the directory cannot be read, a registry does not
 * answer; LIMIT MirrorFull: there is no room for the archive. */
int df_provider_mirror_get(const struct df_config *c, const char *source, const char *file,
                           struct df_provider_file *ret, struct df_err *err) DF_MUST_CHECK;

/* What the directory has. */
struct df_provider_usage {
    int64_t archives, bytes; /* bytes: of all files */
    int64_t limit; /* providers.mirror.maxMiB; a directory of `dayfly mirror` may have more */
};
int df_provider_mirror_measure(const struct df_config *c, struct df_provider_usage *ret,
                               struct df_err *err) DF_MUST_CHECK;

#endif
