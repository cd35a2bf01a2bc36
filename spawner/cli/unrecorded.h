/*
 * unrecorded.h - lists unrecorded resources for people: each with the command that imports it, or
 * the advice to look for it. Thread rule: pure functions, any thread.
 */
#ifndef DF_CLI_UNRECORDED_H
#define DF_CLI_UNRECORDED_H

#include "common/base/buf.h"
#include "common/json/json.h"

/* Appends the list of this TaskAction, if it has one. df_buf_check() of out reports a failure. */
void df_unrecorded_add(const cJSON *task, struct df_buf *out);

#endif
