#include "runner/report/frame.h"

#include "common/json/json.h"

static bool read_offset(const char *body, size_t n, uint64_t *ret)
{
    DF_JSON cJSON *answer = NULL;
    if (df_json_parse(body, n, &answer, NULL) < 0)
        return false;
    double offset = df_json_num(answer, "offset", -1);
    if (!(offset >= 0 && offset < 9007199254740992.0))
        return false;
    *ret = (uint64_t)offset;
    return (double)*ret == offset;
}

enum df_frame_next df_frame_answer(int status, const char *body, size_t n, uint64_t from,
                                   uint64_t floor, uint64_t end, uint64_t *ret_offset)
{
    if (status == 410)
        return DF_FRAME_OVER;
    /* 412: the spawner lost its bucket to another installation. Not 507: a full disk is
     * temporary. */
    if (status == 412 || status == 413)
        return DF_FRAME_REFUSED;
    uint64_t offset;
    if ((status != 200 && status != 409) || !read_offset(body, n, &offset) || offset == from)
        return DF_FRAME_AGAIN;
    /* The spawner lost acknowledged bytes, or has bytes that this stream never had. */
    if (offset < floor || offset > end)
        return DF_FRAME_REFUSED;
    *ret_offset = offset;
    return DF_FRAME_GO_ON;
}
