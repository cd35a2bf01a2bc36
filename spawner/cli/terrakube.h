/*
 * terrakube.h - steps of Terrakube in the words of Terrakube: such a step belongs to a job of a
 * workspace, and there is neither a Run nor an Executor. Thread rule: pure functions, any thread.
 */
#ifndef DF_CLI_TERRAKUBE_H
#define DF_CLI_TERRAKUBE_H

#include "common/base/buf.h"
#include "common/json/json.h"
#include "spawner/cli/reasons.h"

/* Appends whose step a TaskAction's spec is: "acme/net, job 12" of Terrakube, else the name of its
 * Run, or the target of its workflow. Nothing without a spec. */
void df_text_owner(const cJSON *spec, struct df_buf *out);

/* The sentences for a step of Terrakube: its own, or those of df_reason_find(). NULL for an unknown
 * word. Borrowed. */
const struct df_reason *df_reason_of_terrakube(const char *word);

#endif
