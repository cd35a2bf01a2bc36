/* Keys of a profile after a refusal. The other sources are tested by tests/tools/aws_keys.c. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/aws/credentials.h"
#include "common/base/clock.h"
#include "tests/unit/scratch.h"

/* ---- a clock that the test moves, and a file of keys ---------------------------------------- */

static int64_t now_us = 1000000;

static int64_t moved_us(void)
{
    return now_us;
}

static const struct df_clock moved = {.mono_us = moved_us, .real_us = moved_us};

static void write_profile(const char *dir, const char *text)
{
    struct df_err err = {0};
    DF_FREE char *path = df_fs_join(dir, "credentials");
    assert_int_equal(df_fs_replace(path, text, strlen(text), 0600, &err), 0);
}

static void write_secret(const char *dir, const char *secret)
{
    DF_FREE char *text =
        df_strf("[default]\naws_access_key_id = AKIA\naws_secret_access_key = %s\n", secret);
    write_profile(dir, text);
}

static struct df_aws_credentials *credentials;
static char **before; /* environ */
static char *environment[2];

static int enter(void **state)
{
    struct df_err err = {0};
    if (enter_scratch(state) < 0)
        return -1;
    environment[0] = df_strf("AWS_SHARED_CREDENTIALS_FILE=%s/credentials", (char *)*state);
    before = environ;
    environ = environment;
    df_clock_install(&moved);
    return environment[0] ? df_aws_credentials_new("eu-central-1", &credentials, &err) : -1;
}

static int leave(void **state)
{
    df_aws_credentials_free(credentials);
    df_clock_install(NULL);
    environ = before;
    free(environment[0]);
    return leave_scratch(state);
}

static void assert_keys(struct df_aws_keys *k, const char *secret)
{
    struct df_err err = {0};
    df_aws_keys_wipe(k);
    if (df_aws_credentials_get(credentials, k, &err) < 0)
        fail_msg("%s", err.message);
    assert_string_equal(k->secret_key, secret);
}

/* ---- tests ---- */

static void keys_that_were_replaced_in_the_file_are_there_after_a_refusal(void **state)
{
    DF_AWS_KEYS k = {0};
    write_secret(*state, "old");
    assert_keys(&k, "old");
    write_secret(*state, "new");
    assert_keys(&k, "old"); /* nobody refused them */
    assert_true(df_aws_credentials_refused(credentials, &k));
    assert_keys(&k, "new");
}

static void the_file_is_read_at_most_once_in_a_while(void **state)
{
    DF_AWS_KEYS k = {0};
    write_secret(*state, "old");
    assert_keys(&k, "old");
    assert_false(df_aws_credentials_refused(credentials, &k));
    write_secret(*state, "new");
    now_us += (DF_AWS_ASK_AGAIN_MS - 1) * INT64_C(1000);
    assert_false(df_aws_credentials_refused(credentials, &k));
    assert_keys(&k, "old");
    now_us += 1000;
    assert_true(df_aws_credentials_refused(credentials, &k));
    assert_keys(&k, "new");
}

static void a_refusal_of_keys_that_are_replaced_by_now_reads_nothing(void **state)
{
    DF_AWS_KEYS old = {0};
    DF_AWS_KEYS k = {0};
    write_secret(*state, "old");
    assert_keys(&old, "old");
    write_secret(*state, "new");
    assert_true(df_aws_credentials_refused(credentials, &old));
    write_secret(*state, "newer");
    now_us += DF_AWS_ASK_AGAIN_MS * INT64_C(1000);
    assert_true(df_aws_credentials_refused(credentials, &old)); /* by another thread */
    assert_keys(&k, "new");
}

static void the_keys_stay_while_the_file_cannot_be_read(void **state)
{
    DF_AWS_KEYS k = {0};
    write_secret(*state, "old");
    assert_keys(&k, "old");
    write_profile(*state, "[default]\naws_access_key_id = AK");
    assert_false(df_aws_credentials_refused(credentials, &k));
    assert_keys(&k, "old");
}

static void keys_that_were_given_stay(void **state)
{
    char access[] = "AKIA", secret[] = "given";
    const struct df_aws_keys given = {.access_key = access, .secret_key = secret};
    struct df_err err = {0};
    struct df_aws_credentials *c = NULL;
    write_secret(*state, "new");
    assert_int_equal(df_aws_credentials_given(&given, &c, &err), 0);
    assert_false(df_aws_credentials_refused(c, &given));
    df_aws_credentials_free(c);
}

#define keys_test(f) cmocka_unit_test_setup_teardown(f, enter, leave)

int main(void)
{
    const struct CMUnitTest tests[] = {
        keys_test(keys_that_were_replaced_in_the_file_are_there_after_a_refusal),
        keys_test(the_file_is_read_at_most_once_in_a_while),
        keys_test(a_refusal_of_keys_that_are_replaced_by_now_reads_nothing),
        keys_test(the_keys_stay_while_the_file_cannot_be_read),
        keys_test(keys_that_were_given_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
