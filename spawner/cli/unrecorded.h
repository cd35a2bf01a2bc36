/*
 * unrecorded.h - what an apply may have made without a state that knows it, for people: each object
 * with the command that takes it over, or the advice to look for it.
 */
#ifndef DF_CLI_UNRECORDED_H
#define DF_CLI_UNRECORDED_H

#include "common/base/buf.h"
#include "common/json/json.h"

/* Adds the list of this TaskAction, if it has one. Failures stick in out. */
void df_unrecorded_add(const cJSON *task, struct df_buf *out);

#endif
