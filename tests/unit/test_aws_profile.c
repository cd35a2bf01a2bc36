#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/aws/profile.h"
#include "tests/unit/scratch.h"

static const char text[] = "# what people write\n"
                           "[default]\n"
                           "aws_access_key_id=AKIDEFAULT\r\n"
                           "  aws_secret_access_key = s3cr3t/with=signs+and  \n"
                           "region = eu-central-1\n"
                           "\n"
                           "[ temporary ]\n"
                           "aws_access_key_id = ASIATEMP\n"
                           "aws_secret_access_key = temp\n"
                           "aws_session_token = FwoG==\n"
                           "; and more\n"
                           "[half]\n"
                           "aws_access_key_id = AKIHALF\n";

static int read_profile(const char *dir, const char *profile, struct df_aws_keys *ret,
                        struct df_err *err)
{
    DF_FREE char *path = df_fs_join(dir, "credentials");
    assert_int_equal(df_fs_replace(path, text, sizeof(text) - 1, 0600, err), 0);
    return df_aws_profile_read(path, profile, ret, err);
}

static void the_keys_of_a_profile_are_read_as_they_stand(void **state)
{
    struct df_err err = {0};
    DF_AWS_KEYS k = {0};
    assert_int_equal(read_profile(*state, "default", &k, &err), 0);
    assert_string_equal(k.access_key, "AKIDEFAULT");
    assert_string_equal(k.secret_key, "s3cr3t/with=signs+and");
    assert_null(k.token);
    assert_int_equal(k.expires_us, 0);
}

static void a_profile_may_have_a_session_token(void **state)
{
    struct df_err err = {0};
    DF_AWS_KEYS k = {0};
    assert_int_equal(read_profile(*state, "temporary", &k, &err), 0);
    assert_string_equal(k.token, "FwoG==");
}

static void what_a_profile_lacks_is_named(void **state)
{
    static const struct {
        const char *profile, *word;
    } cases[] = {{"half", "profile \"half\" has no aws_access_key_id and aws_secret_access_key"},
                 {"prod", "has no profile \"prod\" (AWS_PROFILE)"}};
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        struct df_err err = {0};
        DF_AWS_KEYS k = {0};
        assert_int_equal(read_profile(*state, cases[i].profile, &k, &err), -1);
        assert_int_equal(err.cls, DF_ERR_USER);
        assert_non_null(strstr(err.message, cases[i].word));
        assert_null(strstr(err.message, "AKIHALF"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scratch_test(the_keys_of_a_profile_are_read_as_they_stand),
        scratch_test(a_profile_may_have_a_session_token),
        scratch_test(what_a_profile_lacks_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
