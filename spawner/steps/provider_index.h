/*
 * provider_index.h - the files of a mirror of providers: names of archives, and the indexes of the
 * provider network mirror protocol beside them,
 *   <host>/<namespace>/<type>/terraform-provider-<type>_<version>_<platform>.zip
 *   <host>/<namespace>/<type>/<version>.json, index.json
 * Thread rule: any thread, any number of processes.
 */
#ifndef DF_STEPS_PROVIDER_INDEX_H
#define DF_STEPS_PROVIDER_INDEX_H

#include "common/json/json.h"

/* One archive. All borrowed. */
struct df_provider_archive {
    const char *source, *version, *platform;
};

/* <root>/<source>/terraform-provider-...zip; the caller frees. NULL: no memory. */
char *df_provider_archive_path(const char *root, const struct df_provider_archive *a);
/* Splits the name of an archive in place. False: it is none of this source. */
bool df_provider_archive_parse(char *name, const char *source, struct df_provider_archive *ret);

/* True for "<os>_<arch>" in lower-case letters and digits. */
bool df_provider_is_platform(const char *text);

/* The index at path; an object without members if there is none, or none that can be read. */
int df_provider_index_read(const char *path, cJSON **ret, struct df_err *err) DF_MUST_CHECK;
/* {"url": "<the archive's name>", "hashes": ["zh:<its SHA-256>"]}; the caller deletes. NULL: no
 * memory. */
cJSON *df_provider_index_entry(const struct df_provider_archive *a, const char *sha256);

/* Adds an archive that is in its place to both indexes. Readers see an index as it was or as it is;
 * one writer at a time. */
int df_provider_index_add(const char *root, const struct df_provider_archive *a, const char *sha256,
                          struct df_err *err) DF_MUST_CHECK;

#endif
