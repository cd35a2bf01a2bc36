/*
 * reserved.h - labels and annotations with the prefix dayfly.dev/ are the service's own.
 */
#ifndef DF_REQUESTS_RESERVED_H
#define DF_REQUESTS_RESERVED_H

#include "common/json/json.h"

/* doc: what a client sent, admitted; old: as it was, or NULL. The service's own stay as they are: a
 * client may repeat them, not set or drop them. Class USER, reason InvalidDocument. */
int df_keep_reserved(cJSON *doc, const cJSON *old, struct df_err *err) DF_MUST_CHECK;

/* Adds the service's own of a new document. marks: {labels, annotations}, or NULL. */
int df_add_reserved(cJSON *doc, const cJSON *marks, struct df_err *err) DF_MUST_CHECK;

#endif
