/*
 * streams.h - the streams of steps beside what steps.h lets runners do with them.
 */
#ifndef DF_STEPS_STREAMS_H
#define DF_STEPS_STREAMS_H

#include "spawner/steps/steps.h"

/* Adds what the file, a whole stream, has beyond the end of ours. */
int df_stream_complete(struct df_spawner *s, const char *task_uid, enum df_stream stream,
                       const char *path, struct df_err *err) DF_MUST_CHECK;

/* Forgets the log and the events of a step. Absent is success. */
int df_stream_delete(struct df_spawner *s, const char *task_uid, struct df_err *err) DF_MUST_CHECK;

#endif
