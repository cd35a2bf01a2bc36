/*
 * frame.h - what the spawner's answer to one frame of a stream means (docs/step-protocol.md).
 */
#ifndef DF_FRAME_H
#define DF_FRAME_H

#include "common/base/err.h"

enum df_frame_next {
    DF_FRAME_GO_ON,  /* the next frame begins at *ret_offset: further on, or back after a gap */
    DF_FRAME_AGAIN,  /* nothing was achieved: the same frame again, after a pause */
    DF_FRAME_OVER,   /* the step is cancelled or over */
    DF_FRAME_REFUSED /* the spawner will never take the rest of this stream */
};

/* The frame began at from, the stream has end bytes, bytes below floor are no longer at hand.
 * *ret_offset is written for DF_FRAME_GO_ON and lies within [floor, end]. */
enum df_frame_next df_frame_answer(int status, const char *body, size_t n, uint64_t from,
                                   uint64_t floor, uint64_t end, uint64_t *ret_offset);

#endif
