/* timeline.h - formats the timeline of a TaskAction. Thread rule: pure functions, any thread. */
#ifndef DF_CLI_TIMELINE_H
#define DF_CLI_TIMELINE_H

#include "spawner/cli/text.h"

/* Appends "Timeline:" and a line for each stage: its name, its time, the time since the previous
 * stage, and its meaning. Appends nothing if the document has no timeline. */
int df_timeline_add(const cJSON *task, struct df_table_shape shape, struct df_buf *out,
                    struct df_err *err) DF_MUST_CHECK;

#endif
