/*
 * reserved.h - labels and annotations with the prefix dayfly.dev/ are the service's own.
 */
#ifndef DF_API_RESERVED_H
#define DF_API_RESERVED_H

#include "common/json/json.h"

/* metadata: of a document that a client sent, admitted; old: as it was, or NULL. map: "labels" or
 * "annotations". The service's own stay as they are: a client may repeat them, not set or drop
 * them. Class USER, reason InvalidDocument. */
int df_keep_reserved(cJSON *metadata, const cJSON *old, const char *map,
                     struct df_err *err) DF_MUST_CHECK;

#endif
