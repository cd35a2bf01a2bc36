#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ctype.h>
#include <ftw.h>

#include "common/base/fs.h"
#include "common/base/limits.h"

/* The caps of the modules are reached in the modules' own suites. Here: that they fit together. */

static void a_thing_fits_into_what_carries_it(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        size_t thing, carrier;
    } cases[] = {
        {"a document into a request", DF_LIMIT_DOCUMENT, DF_LIMIT_HTTP_BODY},
        {"a document into a page", DF_LIMIT_DOCUMENT, DF_LIMIT_PAGE},
        {"a page into an answer", DF_LIMIT_PAGE, DF_LIMIT_HTTP_RESPONSE},
        {"outputs into an answer", DF_LIMIT_OUTPUTS, DF_LIMIT_HTTP_RESPONSE},
        {"a document into a step document", DF_LIMIT_DOCUMENT, DF_LIMIT_STEP_DOCUMENT},
        {"a secret into a step document", DF_LIMIT_SECRET_KEYS * DF_LIMIT_SECRET_VALUE,
         DF_LIMIT_STEP_DOCUMENT},
        {"a secret's value into a request", DF_LIMIT_SECRET_VALUE, DF_LIMIT_HTTP_BODY},
        {"a report of a runner into a request", DF_LIMIT_STEP_REPORT, DF_LIMIT_HTTP_BODY},
        {"a frame into a request", DF_LIMIT_STREAM_FRAME, DF_LIMIT_HTTP_BODY},
        {"a frame into a stream", DF_LIMIT_STREAM_FRAME, DF_LIMIT_STREAM},
        {"a frame with every byte escaped into an event", 6 * DF_LIMIT_STREAM_FRAME,
         DF_LIMIT_SSE_EVENT},
        {"an event of tofu into a frame", DF_LIMIT_EVENT_LINE, DF_LIMIT_STREAM_FRAME},
        {"a URL into the head of a request", DF_LIMIT_URL, DF_LIMIT_HTTP_HEAD},
        {"a token into the head of a request", DF_LIMIT_TOKEN, DF_LIMIT_HTTP_HEAD},
        {"a bundle's header into a bundle", DF_LIMIT_BUNDLE_HEADER, DF_LIMIT_BUNDLE},
        {"a state into a step's file", DF_LIMIT_STATE, DF_LIMIT_STEP_FILE},
        {"an archive's entries into a tree", DF_LIMIT_ARCHIVE_ENTRIES, DF_LIMIT_TREE_ENTRIES},
        {"an archive's depth into a tree", DF_LIMIT_ARCHIVE_DEPTH, DF_LIMIT_TREE_DEPTH},
        {"a variable of the environment into an argument page", DF_LIMIT_ENVIRONMENT_VALUE,
         128 * DF_KIB - 1024},
        {"an object name into a DNS label", DF_LIMIT_NAME, 63},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++)
        if (cases[i].thing > cases[i].carrier)
            fail_msg("%s: %zu > %zu", cases[i].what, cases[i].thing, cases[i].carrier);
}

static void deadlines_come_in_their_order(void **state)
{
    (void)state;
    assert_true(DF_TIMEOUT_CONNECT_MS < DF_TIMEOUT_REQUEST_MS);
    assert_true(DF_TIMEOUT_MARGIN_SECONDS < DF_TIMEOUT_PENDING_SECONDS);
    assert_true(DF_TIMEOUT_PENDING_SECONDS < DF_TIMEOUT_STEP_SECONDS);
    assert_true(DF_TIMEOUT_GRACE_SECONDS < DF_TIMEOUT_STEP_SECONDS);
    assert_true(DF_TIMEOUT_STEP_SECONDS < DF_PLAN_LIFE_SECONDS);
}

/* ---- every limit is somebody's ---- */

static struct df_buf sources = {.max = 64 * DF_MIB};

static int collect(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)ftw;
    bool is_source = df_ends_with(path, ".c") || df_ends_with(path, ".h");
    if (type != FTW_F || !is_source || df_ends_with(path, "/limits.h") ||
        df_ends_with(path, "/test_limits.c"))
        return 0;
    return df_fs_read(path, &sources, NULL);
}

static bool is_used(const char *name)
{
    size_t n = strlen(name);
    for (const char *p = df_buf_str(&sources); (p = strstr(p, name)); p += n)
        if (!isalnum((unsigned char)p[n]) && p[n] != '_')
            return true;
    return false;
}

static void every_limit_is_somebodys(void **state)
{
    (void)state;
    static const char *const rooms[] = {"common", "spawner", "runner", "tests/unit"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(rooms); i++)
        assert_int_equal(nftw(rooms[i], collect, 16, FTW_PHYS), 0);
    DF_BUF struct df_buf list = DF_BUF_INIT(DF_MIB);
    assert_int_equal(df_fs_read("common/base/limits.h", &list, NULL), 0);
    size_t count = 0;
    for (const char *p = df_buf_str(&list); (p = strstr(p, "\n#define DF_")); count++) {
        p += strlen("\n#define ");
        DF_FREE char *name = strndup(p, strspn(p, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"));
        if (!df_ends_with(name, "_LIMITS_H") && !is_used(name))
            fail_msg("%s: nobody asks for it", name);
    }
    assert_true(count > 50);
    df_buf_free(&sources);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thing_fits_into_what_carries_it),
        cmocka_unit_test(deadlines_come_in_their_order),
        cmocka_unit_test(every_limit_is_somebodys),
    };
    return cmocka_run_group_tests_name("limits", tests, NULL, NULL);
}
