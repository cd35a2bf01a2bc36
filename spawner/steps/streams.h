/*
 * streams.h - the streams of steps, for the reconcilers; steps.h has the functions for runners.
 */
#ifndef DF_STEPS_STREAMS_H
#define DF_STEPS_STREAMS_H

#include "spawner/steps/steps.h"

/* Appends the part of the frame that the stored stream lacks. *ret_end: its end then. CONFLICT, if
 * the stream ends before the frame begins. */
int df_stream_append(struct df_spawner *s, const struct df_engine_step *step,
                     const struct df_frame *frame, int64_t *ret_end,
                     struct df_err *err) DF_MUST_CHECK;

/* Appends the part of the file, a complete stream, that the stored stream lacks. */
int df_stream_complete(struct df_spawner *s, const struct df_engine_step *step,
                       enum df_stream stream, const char *path, struct df_err *err) DF_MUST_CHECK;

/* Deletes the log and the events of a step. Absent is success. */
int df_stream_delete(struct df_spawner *s, const char *task_uid, struct df_err *err) DF_MUST_CHECK;

#endif
