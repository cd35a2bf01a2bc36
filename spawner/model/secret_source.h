/*
 * secret_source.h - the configuration vault.sources: secrets that come from elsewhere. Pure.
 *
 * vault.sources is an object {name: source}. The secret "corp-db" is "db" of the source "corp":
 * the name decides, so no source has a name that begins with another's and "-". Thread rule: pure
 * functions, any thread.
 */
#ifndef DF_MODEL_SECRET_SOURCE_H
#define DF_MODEL_SECRET_SOURCE_H

#include "common/base/strs.h"
#include "common/json/json.h"

/* Checks vault.sources and fills in the defaults. Class USER; the message names every fault. */
int df_secret_sources_check(cJSON *sources, struct df_err *err) DF_MUST_CHECK;

/* The use (secret_use.h) of the secrets of a source; the caller deletes it. */
int df_secret_source_use(const cJSON *source, cJSON **ret, struct df_err *err) DF_MUST_CHECK;

/* The name of a secret in the source with this name: "db" of "corp-db" in "corp". NULL: it is not
 * of this source. Borrowed. */
const char *df_secret_source_rest(const char *source, const char *secret);

/* Adds the paths of this machine that sources read: directories and files with tokens. Sticky: the
 * caller checks ret. */
void df_secret_source_paths(const cJSON *sources, struct df_strs *ret);

/* Does the source of the kind `kubernetes` allow the Secret with this name? */
bool df_secret_source_allows(const cJSON *source, const char *secret);

#endif
