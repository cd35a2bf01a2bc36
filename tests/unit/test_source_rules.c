/* What both programs ask of a module's source. test_model.c and test_source.c have what each of
 * them makes of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/util.h"
#include "common/source/rules.h"

static void assert_part(const char *url, const char *part, size_t n, const char *expected)
{
    if (strlen(expected) != n || (n && memcmp(part, expected, n) != 0))
        fail_msg("%s: \"%.*s\", not \"%s\"", url, (int)n, part, expected);
}

static void good_urls_are_split(void **state)
{
    (void)state;
    static const struct {
        const char *url;
        enum df_source_scheme scheme;
        const char *user, *host, *path;
    } cases[] = {
        {"file:///a/b c#d", DF_SCHEME_FILE, "", "", "/a/b c#d"},
        {"https://git.example/a/b?c", DF_SCHEME_HTTPS, "", "git.example", "/a/b?c"},
        {"https://joe@git.example:8443/a", DF_SCHEME_HTTPS, "joe", "git.example:8443", "/a"},
        {"https://[::1]:8443/a", DF_SCHEME_HTTPS, "", "[::1]:8443", "/a"},
        {"https://h?a@b", DF_SCHEME_HTTPS, "", "h", "?a@b"},
        {"http://127.0.0.1:80/a", DF_SCHEME_HTTPS, "", "127.0.0.1:80", "/a"},
        {"http://LocalHost/a", DF_SCHEME_HTTPS, "", "LocalHost", "/a"},
        {"http://[::1]/a", DF_SCHEME_HTTPS, "", "[::1]", "/a"},
        {"ssh://git@h:22/a", DF_SCHEME_SSH, "git", "h:22", "/a"},
        {"ssh://h/a", DF_SCHEME_SSH, "", "h", "/a"},
        {"git@h:a/b.git", DF_SCHEME_SSH, "git", "h", "a/b.git"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        const char *url = cases[i].url;
        struct df_source_url u = {0};
        const char *fault = df_source_url_fault(url, &u);
        if (fault)
            fail_msg("%s: %s", url, fault);
        assert_int_equal(u.scheme, cases[i].scheme);
        assert_part(url, u.user, u.user_len, cases[i].user);
        assert_part(url, u.host, u.host_len, cases[i].host);
        assert_string_equal(u.path, cases[i].path);
    }
}

static void plain_http_to_a_server_is_a_fault_unless_it_is_accepted(void **state)
{
    (void)state;
    struct df_source_url u = {0};
    assert_non_null(df_source_url_fault("http://git.example:3000/a", &u));
    assert_null(df_source_open_url_fault("http://git.example:3000/a", &u));
    assert_true(u.is_open);
    assert_part("", u.host, u.host_len, "git.example:3000");
    assert_non_null(df_source_open_url_fault("http://joe:secret@git.example/a", &u));
    assert_null(df_source_open_url_fault("http://127.0.0.1/a", &u));
    assert_false(u.is_open);
}

static void what_of_a_url_is_never_taken_has_a_fault(void **state)
{
    (void)state;
    static const struct {
        const char *url, *fault;
    } cases[] = {
        {"", "must be a file:///"},
        {"/a", "must be a file:///"},
        {"./a:b", "must be a file:///"},
        {"file:/a", "must be a file:///"},
        {"FILE:///a", "must be a file:///"},
        {"file://a", "must name an absolute path"},
        {"git://h/a", "must be a file:///"},
        {"--upload-pack=id", "must be a file:///"},
        {"ext::sh -c id", "must be a file:///"},
        {"fd::17", "must be a file:///"},
        {"@h:a", "must be a file:///"},
        {"ext::sh -c a@b:c", "has credentials in it"},
        {"https://joe:secret@h/a", "has credentials in it"},
        {"ssh://joe:secret@h/a", "has credentials in it"},
        {"-oProxyCommand=id@h:x", "has no valid user name"},
        {"ssh://-l@h/x", "has no valid user name"},
        {"ssh://a b@h/x", "has no valid user name"},
        {"ssh://-oProxyCommand=id/x", "has no valid host"},
        {"git@-oProxyCommand=id:x", "has no valid host"},
        {"https://", "has no valid host"},
        {"https://h_h/a", "has no valid host"},
        {"https://[x]/a", "has no valid host"},
        {"https://h:0/a", "has no valid port"},
        {"https://h:65536/a", "has no valid port"},
        {"https://h:/a", "has no valid port"},
        {"https://h:123456789/a", "has no valid port"},
        {"git@h:", "has no valid path"},
        {"git@h:-x", "has no valid path"},
        {"git@h::x", "has no valid path"},
        {"http://h/a", "must be https"},
        {"http://127.0.0.1.evil/a", "must be https"},
        {"https://h/a\nb", "has a control character"},
        {"file:///a\x7f", "has a control character"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        struct df_source_url u = {.path = "untouched"};
        const char *fault = df_source_url_fault(cases[i].url, &u);
        if (!fault || !df_starts_with(fault, cases[i].fault))
            fail_msg("%s: %s", cases[i].url, fault ? fault : "taken");
        assert_string_equal(u.path, "untouched");
    }
}

static void refs_are_names_that_git_allows(void **state)
{
    (void)state;
    static const char *const good[] = {"main", "v1.2.3",   "feature/x.y_z",
                                       "a@b",  "\xc3\xa9", "lock"};
    static const char *const bad[] = {
        "",       "-b",      "a..b", "a b",  "a~1",   "a^",  "a:b",
        "a?",     "a*",      "a[",   "a\\b", "a@{1}", "@",   ".a",
        "a/.b",   "a//b",    "a/",   "/a",   "a.",    "a\n", "refs/heads/main",
        "a.lock", "a.lock/b"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(good); i++)
        if (df_source_ref_fault(good[i]))
            fail_msg("%s: %s", good[i], df_source_ref_fault(good[i]));
    for (size_t i = 0; i < DF_ARRAY_SIZE(bad); i++)
        if (!df_source_ref_fault(bad[i]))
            fail_msg("%s is taken", bad[i]);
}

static void a_commit_is_all_of_its_digits(void **state)
{
    (void)state;
#define C40 "0123456789abcdef0123456789abcdef01234567"
#define C41 C40 "0"
#define NO_DIGIT "-" C40
    assert_null(df_source_commit_fault(C40));
    assert_null(df_source_commit_fault(C40 "0123456789abcdef01234567"));
    static const char *const bad[] = {"", "0123", C41, NO_DIGIT,
                                      "0123456789ABCDEF0123456789abcdef01234567"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(bad); i++)
        assert_non_null(df_source_commit_fault(bad[i]));
}

static void a_folder_stays_inside(void **state)
{
    (void)state;
    static const char *const good[] = {"", ".", "a/b/c", "a/", "..a/b..", ".github"};
    static const char *const bad[] = {"/a",   "..",   "a/../b", "a/.git/hooks", ".GIT",
                                      "a//b", "a\\b", "-a",     "a\nb"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(good); i++)
        if (df_source_folder_fault(good[i]))
            fail_msg("%s: %s", good[i], df_source_folder_fault(good[i]));
    for (size_t i = 0; i < DF_ARRAY_SIZE(bad); i++)
        if (!df_source_folder_fault(bad[i]))
            fail_msg("%s is taken", bad[i]);
}

/* Those that archive.h unpacks. */
static void an_archive_is_known_by_the_end_of_its_name(void **state)
{
    (void)state;
    static const struct {
        const char *url;
        size_t ending;
    } cases[] = {
        {"https://h/x.tar.gz", 7},
        {"https://h/x.tgz", 4},
        {"https://h/x.tar.zst", 8},
        {"https://h/x.tar", 4},
        {"https://h/x.ZIP", 4},
        {"https://h/x.zip?raw=1", 4},
        {"https://h/x.tar/", 4},
        {"https://h/x.git", 0},
        {"https://h/tar", 0},
        {"https://h/x.tar.bz2", 0},
        {".tar", 0},
        {"https://h/x?y=.zip", 0},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        const char *url = cases[i].url;
        size_t ending = df_source_archive_ending(url, df_source_url_name(url));
        if (ending != cases[i].ending)
            fail_msg("%s: %zu", url, ending);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_urls_are_split),
        cmocka_unit_test(plain_http_to_a_server_is_a_fault_unless_it_is_accepted),
        cmocka_unit_test(what_of_a_url_is_never_taken_has_a_fault),
        cmocka_unit_test(refs_are_names_that_git_allows),
        cmocka_unit_test(a_commit_is_all_of_its_digits),
        cmocka_unit_test(a_folder_stays_inside),
        cmocka_unit_test(an_archive_is_known_by_the_end_of_its_name),
    };
    return cmocka_run_group_tests_name("source_rules", tests, NULL, NULL);
}
