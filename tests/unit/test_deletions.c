/* Who deletes a custom resource, from the webhook's call until the audit trail has it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/util.h"
#include "spawner/requests/deletions.h"

#define UID "705ab4f5-6393-11e8-b7cc-42010a80%04d"
#define HOUR_US (DF_LIMIT_DELETION_SECONDS * INT64_C(1000000))

static const struct df_stamp eve = {.role = DF_ROLE_WRITE, .is_named = true, .name = "eve"};
static const struct df_stamp ceo = {.role = DF_ROLE_ADMIN, .is_named = true, .name = "ceo"};

static struct df_deletions *d;

static int open_deletions(void **state)
{
    (void)state;
    return df_deletions_new(&d, NULL);
}

static int close_deletions(void **state)
{
    (void)state;
    df_deletions_free(d);
    return 0;
}

static void tell(int number, const struct df_stamp *by, int64_t now_us)
{
    DF_FREE char *uid = df_strf(UID, number);
    df_deletions_tell(d, uid, by, now_us);
}

static void assert_deleted_by(int number, int64_t now_us, const char *name)
{
    DF_FREE char *uid = df_strf(UID, number);
    const struct df_stamp by = df_deletions_take(d, uid, now_us);
    assert_string_equal(by.name, name);
    assert_int_equal(by.role, strcmp(name, "eve") == 0 ? DF_ROLE_WRITE : DF_ROLE_ADMIN);
    assert_int_equal(by.is_named, strcmp(name, "kubernetes") != 0);
}

static void a_deletion_is_theirs_who_was_told_once(void **state)
{
    (void)state;
    tell(1, &eve, 0);
    tell(1, &eve, 1); /* the API server repeats a call */
    tell(2, &ceo, 1);
    assert_deleted_by(1, 2, "eve");
    assert_deleted_by(1, 2, "kubernetes");
    assert_deleted_by(2, 2, "ceo");
}

static void a_name_that_another_call_denies_is_not_believed(void **state)
{
    (void)state;
    struct df_stamp other_role = eve;
    other_role.role = DF_ROLE_ADMIN;
    for (int first = 0; first <= 1; first++) {
        tell(1, first ? &eve : &ceo, 0);
        tell(1, first ? &ceo : &eve, 0);
        tell(1, first ? &eve : &ceo, 0);
        assert_deleted_by(1, 0, "kubernetes");
    }
    tell(1, &eve, 0);
    tell(1, &other_role, 0);
    assert_deleted_by(1, 0, "kubernetes");
}

static void a_deletion_that_is_never_audited_is_forgotten(void **state)
{
    (void)state;
    tell(1, &eve, 0);
    tell(2, &eve, 0);
    assert_deleted_by(1, HOUR_US, "eve");
    assert_deleted_by(2, HOUR_US + 1, "kubernetes");
}

/* What was told before cannot be pushed out, and so replaced, by a flood of others. */
static void more_deletions_than_there_is_room_for_have_no_name(void **state)
{
    (void)state;
    for (int i = 0; i <= DF_LIMIT_DELETIONS; i++)
        tell(i, &eve, 0);
    tell(0, &ceo, 0);
    assert_deleted_by(DF_LIMIT_DELETIONS, 0, "kubernetes");
    assert_deleted_by(0, 0, "kubernetes");
    assert_deleted_by(1, 0, "eve");
    tell(DF_LIMIT_DELETIONS, &eve, 0);
    assert_deleted_by(DF_LIMIT_DELETIONS, 0, "eve");
}

static void what_is_no_uid_is_no_deletion(void **state)
{
    (void)state;
    df_deletions_tell(d, "", &eve, 0);
    df_deletions_tell(d, UID UID, &eve, 0);
    assert_false(df_deletions_take(d, "", 0).is_named);
    assert_false(df_deletions_take(d, UID UID, 0).is_named);
    assert_false(df_deletions_take(d, NULL, 0).is_named);
    assert_false(df_deletions_take(NULL, "u", 0).is_named);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, open_deletions, close_deletions)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_deletion_is_theirs_who_was_told_once),
        TEST(a_name_that_another_call_denies_is_not_believed),
        TEST(a_deletion_that_is_never_audited_is_forgotten),
        TEST(more_deletions_than_there_is_room_for_have_no_name),
        TEST(what_is_no_uid_is_no_deletion),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
