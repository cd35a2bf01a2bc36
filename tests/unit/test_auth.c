#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/crypto/crypto.h"
#include "spawner/identity/auth.h"
#include "spawner/identity/tokens.h"

#define GOOD "secret-of-ci"

/* ---- the Authorization header ---- */

static void a_bearer_token_is_taken_whatever_the_case_of_the_scheme(void **state)
{
    (void)state;
    static const char *const headers[] = {"Bearer abc", "bearer abc", "BEARER  abc"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(headers); i++) {
        struct df_credentials c;
        assert_int_equal(df_credentials_parse(headers[i], &c, NULL), 0);
        assert_int_equal(c.scheme, DF_SCHEME_BEARER);
        assert_string_equal(c.secret, "abc");
        df_credentials_wipe(&c);
    }
}

static void basic_credentials_are_split_at_the_first_colon(void **state)
{
    (void)state;
    struct df_credentials c;
    assert_int_equal(df_credentials_parse("Basic dXNlcjpwYTpzcw==", &c, NULL), 0);
    assert_int_equal(c.scheme, DF_SCHEME_BASIC);
    assert_string_equal(c.user, "user");
    assert_string_equal(c.secret, "pa:ss");
    df_credentials_wipe(&c);
}

static void no_header_is_no_credentials_and_no_failure(void **state)
{
    (void)state;
    struct df_credentials c;
    assert_int_equal(df_credentials_parse(NULL, &c, NULL), 0);
    assert_int_equal(c.scheme, DF_SCHEME_NONE);
}

static void malformed_credentials_are_refused_without_repeating_them(void **state)
{
    (void)state;
    static const char *const headers[] = {"",
                                          "Bearer",
                                          "Bearer ",
                                          "Digest abc",
                                          "Basic",
                                          "Basic",
                                          "Basic !!!!",
                                          "Basic dXNlcg==" /* no colon */,
                                          "Basic dXNlcjo=" /* empty password */,
                                          "Basic dQA6eA==" /* NUL in the user */,
                                          "Basic dTp4AHk=" /* NUL in the password */};
    for (size_t i = 0; i < DF_ARRAY_SIZE(headers); i++) {
        struct df_credentials c;
        struct df_err err = {0};
        assert_int_equal(df_credentials_parse(headers[i], &c, &err), -1);
        assert_int_equal(err.cls, DF_ERR_DENIED);
        assert_string_equal(err.reason, "Unauthorized");
        assert_null(strstr(err.message, "abc"));
        assert_null(c.secret);
    }
}

static void a_token_longer_than_any_of_ours_is_refused_and_not_cut(void **state)
{
    (void)state;
    char header[7 + DF_LIMIT_TOKEN + 2] = "Bearer ";
    memset(header + 7, 'x', DF_LIMIT_TOKEN + 1);
    struct df_credentials c;
    assert_int_equal(df_credentials_parse(header, &c, NULL), -1);
    header[7 + DF_LIMIT_TOKEN] = '\0';
    assert_int_equal(df_credentials_parse(header, &c, NULL), 0);
    assert_int_equal(strlen(c.secret), DF_LIMIT_TOKEN);
    df_credentials_wipe(&c);
}

/* ---- Host and Origin ---- */

static void hosts_that_name_loopback_are_told_from_those_that_only_look_like_it(void **state)
{
    (void)state;
    static const struct {
        const char *host;
        bool loopback;
    } cases[] = {
        {"localhost", true},
        {"LOCALHOST:8030", true},
        {"127.0.0.1", true},
        {"127.0.0.1:1", true},
        {"127.255.3.4:65535", true},
        {"[::1]", true},
        {"[::1]:8030", true},
        {NULL, false},
        {"", false},
        {"localhost.evil.example", false},
        {"localhost:", false},
        {"localhost:80x", false},
        {"localhost.", false},
        {"127.0.0.1.evil.example", false},
        {"127.1", false},
        {"127.0.0.1@evil.example", false},
        {"127.0.0.256", false},
        {"evil.example", false},
        {"10.0.0.1:8030", false},
        {"0.0.0.0:8030", false},
        {"[::]:8030", false},
        {"::1", false},
        {"[::1", false},
        {"[::1]x", false},
        {"2130706433", false},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++)
        if (df_host_is_loopback(cases[i].host) != cases[i].loopback)
            fail_msg("host %s", cases[i].host ? cases[i].host : "(none)");
}

static void only_the_page_of_this_very_server_is_our_origin(void **state)
{
    (void)state;
    assert_true(df_origin_is_host("http://localhost:8030", "localhost:8030", false));
    assert_true(df_origin_is_host("HTTP://LOCALHOST:8030", "localhost:8030", false));
    assert_false(df_origin_is_host("http://localhost:3000", "localhost:8030", false));
    assert_false(df_origin_is_host("https://localhost:8030", "localhost:8030", false));
    assert_false(df_origin_is_host("http://evil.example", "localhost:8030", false));
    assert_false(df_origin_is_host("null", "localhost:8030", false));
    assert_false(df_origin_is_host("http://localhost:8030", NULL, false));
    assert_true(df_origin_is_host("https://localhost:8030", "localhost:8030", true));
    assert_false(df_origin_is_host("http://localhost:8030", "localhost:8030", true));
}

/* ---- the token file ---- */

static char *line_of(const char *name, const char *role, const char *token)
{
    char hex[DF_SHA256_HEX];
    assert_int_equal(df_sha256_hex(token, strlen(token), hex, NULL), 0);
    char *line = df_strf("%s %s %s\n", name, role, hex);
    assert_non_null(line);
    return line;
}

struct place {
    char dir[64];
    char file[80];
};

static void make_place(struct place *p, const char *text)
{
    (void)snprintf(p->dir, sizeof(p->dir), "/tmp/dayfly-auth-XXXXXX");
    assert_non_null(mkdtemp(p->dir));
    (void)snprintf(p->file, sizeof(p->file), "%s/tokens", p->dir);
    assert_int_equal(df_fs_replace(p->file, text, strlen(text), 0600, NULL), 0);
}

static void write_place(const struct place *p, const char *text)
{
    assert_int_equal(df_fs_replace(p->file, text, strlen(text), 0600, NULL), 0);
}

static void remove_place(const struct place *p)
{
    assert_int_equal(df_fs_remove_tree(p->dir, NULL), 0);
}

static void a_token_has_the_role_and_name_of_its_line(void **state)
{
    (void)state;
    DF_FREE char *a = line_of("ci", "write", GOOD), *b = line_of("boss", "admin", "other");
    DF_FREE char *text = df_strf("# comment\n\n  %s\t%s\r\n", a, b);
    struct place p;
    make_place(&p, text);
    struct df_tokens *t = NULL;
    assert_int_equal(df_tokens_open(p.file, &t, NULL), 0);
    char name[64] = "";
    assert_int_equal(df_tokens_find(t, GOOD, name), DF_ROLE_WRITE);
    assert_string_equal(name, "ci");
    assert_int_equal(df_tokens_find(t, "other", name), DF_ROLE_ADMIN);
    assert_string_equal(name, "boss");
    assert_int_equal(df_tokens_find(t, "unknown", name), DF_ROLE_NONE);
    assert_int_equal(df_tokens_find(t, "", name), DF_ROLE_NONE);
    df_tokens_close(t);
    remove_place(&p);
}

static void a_hash_itself_is_no_token(void **state)
{
    (void)state;
    DF_FREE char *line = line_of("ci", "admin", GOOD);
    struct place p;
    make_place(&p, line);
    struct df_tokens *t = NULL;
    char hex[DF_SHA256_HEX], name[64];
    assert_int_equal(df_sha256_hex(GOOD, strlen(GOOD), hex, NULL), 0);
    assert_int_equal(df_tokens_open(p.file, &t, NULL), 0);
    assert_int_equal(df_tokens_find(t, hex, name), DF_ROLE_NONE);
    df_tokens_close(t);
    remove_place(&p);
}

static void a_fault_names_its_line_and_never_shows_what_might_be_a_token(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *says;
    } cases[] = {
        {"ci write", "line 1: must be `name role sha256`"},
        {"ci write a b c", "line 1: must be"},
        {"\n\nplain-TOKEN write x", "line 3: the name must be a DNS label"},
        {"ci plain-token x", "line 1: the role must be read, write or admin"},
        {"ci none x", "line 1: the role"},
        {"ci write plain-token-by-mistake", "line 1: the token's SHA-256 must be 64"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        struct df_token *list = NULL;
        size_t count = 0;
        struct df_err err = {0};
        assert_int_equal(df_tokens_parse(cases[i].text, &list, &count, &err), -1);
        assert_int_equal(err.cls, DF_ERR_USER);
        if (!strstr(err.message, cases[i].says))
            fail_msg("%s", err.message);
        assert_null(strstr(err.message, "plain-"));
    }
}

static void two_lines_with_one_name_are_a_fault(void **state)
{
    (void)state;
    DF_FREE char *a = line_of("ci", "read", "x"), *b = line_of("ci", "admin", "y");
    DF_FREE char *text = df_strf("%s%s", a, b);
    struct df_token *list = NULL;
    size_t count = 0;
    struct df_err err = {0};
    assert_int_equal(df_tokens_parse(text, &list, &count, &err), -1);
    assert_non_null(strstr(err.message, "line 2: the name \"ci\" is used twice"));
}

static void more_tokens_than_the_cap_are_refused(void **state)
{
    (void)state;
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_LIMIT_TOKEN_FILE);
    for (int i = 0; i <= DF_LIMIT_TOKENS; i++)
        (void)df_buf_addf(&text, "t%d read %064d\n", i, i);
    struct df_token *list = NULL;
    size_t count = 0;
    struct df_err err = {0};
    assert_int_equal(df_tokens_parse(df_buf_str(&text), &list, &count, &err), -1);
    assert_int_equal(err.cls, DF_ERR_LIMIT);
}

static void a_server_does_not_start_with_a_faulty_or_missing_token_file(void **state)
{
    (void)state;
    struct place p;
    make_place(&p, "nonsense\n");
    struct df_tokens *t = NULL;
    struct df_err err = {0};
    assert_int_equal(df_tokens_open(p.file, &t, &err), -1);
    assert_non_null(strstr(err.message, p.file));
    assert_int_equal(unlink(p.file), 0);
    assert_int_equal(df_tokens_open(p.file, &t, &err), -1);
    remove_place(&p);
}

static void a_changed_file_is_read_again_before_the_next_request(void **state)
{
    (void)state;
    DF_FREE char *old = line_of("ci", "write", GOOD), *new = line_of("ci2", "read", "new-one");
    struct place p;
    make_place(&p, old);
    struct df_tokens *t = NULL;
    char name[64];
    assert_int_equal(df_tokens_open(p.file, &t, NULL), 0);
    write_place(&p, new);
    assert_int_equal(df_tokens_find(t, GOOD, name), DF_ROLE_NONE);
    assert_int_equal(df_tokens_find(t, "new-one", name), DF_ROLE_READ);
    df_tokens_close(t);
    remove_place(&p);
}

static void a_changed_file_with_a_fault_leaves_the_old_tokens_good_and_is_reported(void **state)
{
    (void)state;
    DF_FREE char *old = line_of("ci", "write", GOOD), *new = line_of("ci2", "read", "new-one");
    struct place p;
    make_place(&p, old);
    struct df_tokens *t = NULL;
    struct df_err err = {0};
    char name[64];
    assert_int_equal(df_tokens_open(p.file, &t, NULL), 0);
    write_place(&p, "oops");
    assert_int_equal(df_tokens_find(t, GOOD, name), DF_ROLE_WRITE);
    assert_int_equal(df_tokens_check(t, &err), -1);
    assert_int_equal(unlink(p.file), 0);
    assert_int_equal(df_tokens_find(t, GOOD, name), DF_ROLE_WRITE);
    assert_int_equal(df_tokens_check(t, &err), -1);
    write_place(&p, new);
    assert_int_equal(df_tokens_check(t, &err), 0);
    assert_int_equal(df_tokens_find(t, GOOD, name), DF_ROLE_NONE);
    df_tokens_close(t);
    remove_place(&p);
}

static void a_file_that_was_emptied_leaves_the_old_tokens_good_and_is_reported(void **state)
{
    (void)state;
    DF_FREE char *old = line_of("ci", "write", GOOD), *new = line_of("ci2", "read", "new-one");
    struct place p;
    make_place(&p, old);
    struct df_tokens *t = NULL;
    struct df_err err = {0};
    char name[64];
    assert_int_equal(df_tokens_open(p.file, &t, NULL), 0);
    static const char *const empty[] = {"", "\n", "# none\n"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(empty); i++) {
        write_place(&p, empty[i]);
        assert_int_equal(df_tokens_find(t, GOOD, name), DF_ROLE_WRITE);
        assert_int_equal(df_tokens_check(t, &err), -1);
        assert_non_null(strstr(err.message, "has no tokens, although it had 1"));
    }
    write_place(&p, new);
    assert_int_equal(df_tokens_check(t, &err), 0);
    assert_int_equal(df_tokens_find(t, GOOD, name), DF_ROLE_NONE);
    df_tokens_close(t);
    remove_place(&p);
}

struct race {
    struct df_tokens *tokens;
    bool lost;
};

static void *look_up_often(void *arg)
{
    struct race *r = arg;
    char name[64];
    for (int i = 0; i < 2000; i++)
        if (df_tokens_find(r->tokens, GOOD, name) != DF_ROLE_WRITE)
            r->lost = true;
    return NULL;
}

static void lookups_by_several_threads_never_miss_a_token_while_the_file_changes(void **state)
{
    (void)state;
    DF_FREE char *line = line_of("ci", "write", GOOD);
    DF_FREE char *longer = df_strf("%s# another comment\n", line);
    struct place p;
    make_place(&p, line);
    struct df_tokens *t = NULL;
    assert_int_equal(df_tokens_open(p.file, &t, NULL), 0);
    struct race races[3] = {{t, false}, {t, false}, {t, false}};
    pthread_t threads[3];
    for (size_t i = 0; i < DF_ARRAY_SIZE(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, look_up_often, &races[i]), 0);
    for (int i = 0; i < 20; i++)
        write_place(&p, i % 2 ? line : longer);
    for (size_t i = 0; i < DF_ARRAY_SIZE(threads); i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_false(races[i].lost);
    }
    df_tokens_close(t);
    remove_place(&p);
}

/* ---- callers ---- */

static void without_a_token_file_whoever_connects_is_the_admin(void **state)
{
    (void)state;
    const struct df_credentials none = {0};
    struct df_caller caller;
    assert_int_equal(df_auth_caller(NULL, &none, false, &caller, NULL), 0);
    assert_int_equal(caller.role, DF_ROLE_ADMIN);
    assert_string_equal(caller.name, "local");
}

static void a_token_that_nobody_can_check_is_refused(void **state)
{
    (void)state;
    const struct df_credentials some = {.scheme = DF_SCHEME_BEARER, .secret = (char[]){"x"}};
    struct df_caller caller;
    struct df_err err = {0};
    assert_int_equal(df_auth_caller(NULL, &some, false, &caller, &err), -1);
    assert_string_equal(err.reason, "Unauthorized");
}

static void with_a_token_file_no_token_and_basic_outside_of_state_are_refused(void **state)
{
    (void)state;
    DF_FREE char *line = line_of("ci", "write", GOOD);
    struct place p;
    make_place(&p, line);
    struct df_tokens *t = NULL;
    assert_int_equal(df_tokens_open(p.file, &t, NULL), 0);
    struct df_credentials c = {.scheme = DF_SCHEME_NONE};
    struct df_caller caller;
    assert_int_equal(df_auth_caller(t, &c, false, &caller, NULL), -1);
    c = (struct df_credentials){.scheme = DF_SCHEME_BASIC, .user = "any", .secret = (char[]){GOOD}};
    assert_int_equal(df_auth_caller(t, &c, false, &caller, NULL), -1);
    assert_int_equal(df_auth_caller(t, &c, true, &caller, NULL), 0);
    assert_string_equal(caller.name, "ci");
    df_tokens_close(t);
    remove_place(&p);
}

static void roles_contain_the_lower_ones_and_no_higher_one(void **state)
{
    (void)state;
    for (int have = DF_ROLE_NONE; have <= DF_ROLE_ADMIN; have++) {
        for (int need = DF_ROLE_NONE; need <= DF_ROLE_ADMIN; need++) {
            const struct df_caller caller = {.role = (enum df_role)have, .name = "x"};
            struct df_err err = {0};
            int result = df_auth_require(&caller, (enum df_role)need, &err);
            assert_int_equal(result, have >= need ? 0 : -1);
            assert_string_equal(err.reason, have >= need ? "" : "Forbidden");
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bearer_token_is_taken_whatever_the_case_of_the_scheme),
        cmocka_unit_test(basic_credentials_are_split_at_the_first_colon),
        cmocka_unit_test(no_header_is_no_credentials_and_no_failure),
        cmocka_unit_test(malformed_credentials_are_refused_without_repeating_them),
        cmocka_unit_test(a_token_longer_than_any_of_ours_is_refused_and_not_cut),
        cmocka_unit_test(hosts_that_name_loopback_are_told_from_those_that_only_look_like_it),
        cmocka_unit_test(only_the_page_of_this_very_server_is_our_origin),
        cmocka_unit_test(a_token_has_the_role_and_name_of_its_line),
        cmocka_unit_test(a_hash_itself_is_no_token),
        cmocka_unit_test(a_fault_names_its_line_and_never_shows_what_might_be_a_token),
        cmocka_unit_test(two_lines_with_one_name_are_a_fault),
        cmocka_unit_test(more_tokens_than_the_cap_are_refused),
        cmocka_unit_test(a_server_does_not_start_with_a_faulty_or_missing_token_file),
        cmocka_unit_test(a_changed_file_is_read_again_before_the_next_request),
        cmocka_unit_test(a_changed_file_with_a_fault_leaves_the_old_tokens_good_and_is_reported),
        cmocka_unit_test(a_file_that_was_emptied_leaves_the_old_tokens_good_and_is_reported),
        cmocka_unit_test(lookups_by_several_threads_never_miss_a_token_while_the_file_changes),
        cmocka_unit_test(without_a_token_file_whoever_connects_is_the_admin),
        cmocka_unit_test(a_token_that_nobody_can_check_is_refused),
        cmocka_unit_test(with_a_token_file_no_token_and_basic_outside_of_state_are_refused),
        cmocka_unit_test(roles_contain_the_lower_ones_and_no_higher_one),
    };
    return cmocka_run_group_tests_name("auth", tests, NULL, NULL);
}
