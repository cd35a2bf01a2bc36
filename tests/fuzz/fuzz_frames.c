/*
 * fuzz_frames - what a spawner, or whoever answers in its place, may say to a frame.
 *
 * Input: status (two bytes), where the frame began, what is at hand and how much there is (a byte
 * each), then the answer's body. Held: the stream only ever moves within what is at hand, and
 * never to where it stood.
 */
#include "runner/report/frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 5)
        return 0;
    int status = data[0] << 8 | data[1];
    uint64_t floor = data[3], from = floor + data[2], end = from + data[4];
    uint64_t offset = UINT64_MAX;
    enum df_frame_next next =
        df_frame_answer(status, (const char *)data + 5, size - 5, from, floor, end, &offset);
    bool moved = offset != UINT64_MAX;
    if (moved != (next == DF_FRAME_GO_ON))
        abort();
    if (moved && (offset < floor || offset > end || offset == from))
        abort();
    if (moved && status != 200 && status != 409)
        abort();
    return 0;
}
