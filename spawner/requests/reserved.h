/*
 * reserved.h - labels and annotations with the prefix dayfly.dev/ belong to the service.
 */
#ifndef DF_REQUESTS_RESERVED_H
#define DF_REQUESTS_RESERVED_H

#include "common/json/json.h"

/* Keeps the reserved labels and annotations of old (NULL: none) in doc, which a client sent. A
 * client may repeat them, but not set, change or remove them: USER InvalidDocument. */
int df_keep_reserved(cJSON *doc, const cJSON *old, struct df_err *err) DF_MUST_CHECK;

/* Adds the service's labels and annotations to a new document. marks: {labels, annotations}, or
 * NULL. */
int df_add_reserved(cJSON *doc, const cJSON *marks, struct df_err *err) DF_MUST_CHECK;

#endif
