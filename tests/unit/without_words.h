/* without_words.h - how a build without a part refuses what needs it. */
#ifndef DF_TESTS_WITHOUT_WORDS_H
#define DF_TESTS_WITHOUT_WORDS_H

#include "common/base/err.h"

static inline void assert_refused(int result, const struct df_err *err, const char *way_out)
{
    assert_int_equal(result, -1);
    assert_int_equal(err->cls, DF_ERR_USER);
    if (!strstr(err->message, "without Terrakube (make TERRAKUBE=0)") ||
        !strstr(err->message, way_out))
        fail_msg("%s", err->message);
}

#endif
