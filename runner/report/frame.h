/*
 * frame.h - decides from the spawner's answer to one frame which frame comes next
 * (docs/step-protocol.md).
 */
#ifndef DF_FRAME_H
#define DF_FRAME_H

#include "common/base/err.h"

enum df_frame_next {
    DF_FRAME_GO_ON,  /* the next frame begins at *ret_offset, which may lie before this one */
    DF_FRAME_AGAIN,  /* no progress: post the same frame again, after a pause */
    DF_FRAME_OVER,   /* the step is canceled or over */
    DF_FRAME_REFUSED /* the spawner will never accept the rest of this stream */
};

/* The frame began at `from`; the stream has `end` bytes, of which those below `floor` were
 * reclaimed. *ret_offset is written only for DF_FRAME_GO_ON and lies within [floor, end]. */
enum df_frame_next df_frame_answer(int status, const char *body, size_t n, uint64_t from,
                                   uint64_t floor, uint64_t end, uint64_t *ret_offset);

#endif
