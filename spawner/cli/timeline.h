/* timeline.h - a TaskAction's stages with the time that each took. */
#ifndef DF_CLI_TIMELINE_H
#define DF_CLI_TIMELINE_H

#include "spawner/cli/text.h"

/* "Timeline:" and a line for each stage: name, time of day, how long it took from the stage before.
 * Nothing for a document without one. */
int df_timeline_add(const cJSON *task, struct df_table_shape shape, struct df_buf *out,
                    struct df_err *err) DF_MUST_CHECK;

#endif
