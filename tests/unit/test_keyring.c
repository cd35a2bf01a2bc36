#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/crypto/keyring.h"

static const unsigned char first[DF_KEY_LEN] = "the first key of these tests...";
static const unsigned char second[DF_KEY_LEN] = "the second key of these tests..";

static void add_key(struct df_keyring *r, const unsigned char key[DF_KEY_LEN])
{
    struct df_err err = {0};
    assert_int_equal(df_keyring_add(r, key, &err), 0);
}

static void seal(const struct df_keyring *r, const char *aad, struct df_buf *out)
{
    struct df_err err = {0};
    assert_int_equal(df_keyring_seal(r, aad, "hunter2", 7, out, &err), 0);
}

static int open_as(const struct df_keyring *r, const char *aad, const struct df_buf *sealed,
                   struct df_err *err)
{
    DF_BUF struct df_buf out = DF_BUF_INIT(100);
    if (df_keyring_open(r, aad, df_buf_str(sealed), sealed->len, &out, err) < 0)
        return -1;
    assert_string_equal(df_buf_str(&out), "hunter2");
    return 0;
}

static void what_a_key_sealed_opens_for_the_same_purpose_alone(void **state)
{
    (void)state;
    struct df_err err = {0};
    DF_KEYRING r = {0};
    DF_BUF struct df_buf sealed = DF_BUF_INIT(1000);
    add_key(&r, first);
    seal(&r, "heads/a", &sealed);
    assert_null(memmem(sealed.data, sealed.len, "hunter2", 7));
    assert_int_equal(open_as(&r, "heads/a", &sealed, &err), 0);
    assert_int_equal(open_as(&r, "heads/b", &sealed, &err), -1);
    assert_int_equal(err.cls, DF_ERR_DENIED);
}

static void the_first_key_seals_and_each_opens(void **state)
{
    (void)state;
    struct df_err err = {0};
    DF_KEYRING old = {0};
    DF_KEYRING both = {0};
    DF_KEYRING fresh = {0};
    DF_BUF struct df_buf before = DF_BUF_INIT(1000), after = DF_BUF_INIT(1000);
    add_key(&old, first);
    add_key(&both, second);
    add_key(&both, first);
    add_key(&fresh, second);
    seal(&old, "x", &before);
    seal(&both, "x", &after);
    assert_int_equal(open_as(&both, "x", &before, &err), 0);
    assert_int_equal(open_as(&fresh, "x", &after, &err), 0);
    assert_int_equal(open_as(&old, "x", &after, &err), -1);
    assert_string_equal(err.reason, "UnknownKey");
    df_buf_free(&after);
}

static void what_was_changed_or_cut_does_not_open(void **state)
{
    (void)state;
    DF_KEYRING r = {0};
    DF_BUF struct df_buf sealed = DF_BUF_INIT(1000);
    add_key(&r, first);
    seal(&r, "x", &sealed);
    for (size_t i = 0; i < sealed.len; i++) {
        struct df_err err = {0};
        sealed.data[i] ^= 1;
        assert_int_equal(open_as(&r, "x", &sealed, &err), -1);
        assert_int_equal(err.cls, DF_ERR_DENIED);
        sealed.data[i] ^= 1;
    }
    for (; sealed.len; sealed.len--) {
        struct df_err err = {0};
        sealed.len--;
        assert_int_equal(open_as(&r, "x", &sealed, &err), -1);
        sealed.len++;
    }
}

static void there_are_not_more_keys_than_the_ring_holds(void **state)
{
    (void)state;
    struct df_err err = {0};
    DF_KEYRING r = {0};
    for (int i = 0; i < DF_LIMIT_KEYRING; i++)
        add_key(&r, first);
    assert_int_equal(df_keyring_add(&r, second, &err), -1);
    assert_int_equal(err.cls, DF_ERR_LIMIT);
}

static void sealed_content_names_its_key(void **state)
{
    (void)state;
    DF_KEYRING both = {0};
    DF_KEYRING fresh = {0};
    DF_BUF struct df_buf sealed = DF_BUF_INIT(1000);
    add_key(&both, second);
    add_key(&both, first);
    add_key(&fresh, first);
    seal(&fresh, "x", &sealed);
    assert_int_equal(df_keyring_find(&both, df_buf_str(&sealed), sealed.len), 1);
    fresh = (struct df_keyring){0};
    add_key(&fresh, second);
    assert_int_equal(df_keyring_find(&fresh, df_buf_str(&sealed), sealed.len), fresh.len);
    assert_int_equal(df_keyring_find(&both, df_buf_str(&sealed), 11), both.len);
    assert_int_equal(df_keyring_find(&both, "plain text of no key", 20), both.len);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_key_sealed_opens_for_the_same_purpose_alone),
        cmocka_unit_test(the_first_key_seals_and_each_opens),
        cmocka_unit_test(what_was_changed_or_cut_does_not_open),
        cmocka_unit_test(sealed_content_names_its_key),
        cmocka_unit_test(there_are_not_more_keys_than_the_ring_holds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
