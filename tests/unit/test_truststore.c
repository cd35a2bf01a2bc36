#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/fs.h"
#include "common/crypto/truststore.h"

/* One authority, in three files that keytool(1) and openssl(1) made with the password "changeit".
 * The JKS has a private key with its certificate, too. */
#define FIXTURES "tests/fixtures/terrakube/"

static struct df_buf content_of(const char *name)
{
    struct df_buf b = DF_BUF_INIT(DF_MIB);
    struct df_err err = {0};
    DF_FREE char *path = df_strf(FIXTURES "%s", name);
    if (df_fs_read(path, &b, &err) < 0)
        fail_msg("%s", err.message);
    return b;
}

static void pem_pkcs12_and_jks_have_the_same_authority(void **state)
{
    (void)state;
    DF_BUF struct df_buf expected = content_of("trust.pem");
    static const char *const files[] = {"trust.pem", "trust.p12", "trust.jks"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(files); i++) {
        DF_BUF struct df_buf file = content_of(files[i]), out = DF_BUF_INIT(DF_MIB);
        struct df_err err = {0};
        if (df_truststore_read(file.data, file.len, "changeit", &out, &err) < 0)
            fail_msg("%s: %s", files[i], err.message);
        assert_string_equal(df_buf_str(&out), df_buf_str(&expected));
    }
}

static void a_jks_is_read_without_a_password_too(void **state)
{
    (void)state;
    DF_BUF struct df_buf file = content_of("trust.jks"), out = DF_BUF_INIT(DF_MIB);
    assert_int_equal(df_truststore_read(file.data, file.len, NULL, &out, NULL), 0);
    assert_true(out.len > 0);
}

static void assert_refused(const void *bytes, size_t n, const char *password, const char *said)
{
    DF_BUF struct df_buf out = DF_BUF_INIT(DF_MIB);
    struct df_err err = {0};
    assert_int_equal(df_truststore_read(bytes, n, password, &out, &err), -1);
    assert_int_equal(err.cls, DF_ERR_USER);
    if (!strstr(err.message, said))
        fail_msg("%s: %s", said, err.message);
}

static void a_wrong_password_is_said(void **state)
{
    (void)state;
    static const char *const files[] = {"trust.p12", "trust.jks"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(files); i++) {
        DF_BUF struct df_buf file = content_of(files[i]);
        assert_refused(file.data, file.len, "another", "password");
    }
}

static void a_changed_jks_is_refused(void **state)
{
    (void)state;
    DF_BUF struct df_buf file = content_of("trust.jks");
    file.data[file.len - 40] ^= 1; /* inside of the last certificate */
    assert_refused(file.data, file.len, "changeit", "damaged");
}

/* Every length and every byte: the parser reads what somebody mounted. */
static void a_file_that_was_cut_or_damaged_is_never_read_beyond_its_end(void **state)
{
    (void)state;
    static const char *const files[] = {"trust.p12", "trust.jks"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(files); i++) {
        DF_BUF struct df_buf file = content_of(files[i]);
        for (size_t n = 0; n < file.len; n++) {
            DF_FREE char *part = malloc(n ? n : 1); /* so that ASan sees its end */
            assert_non_null(part);
            memcpy(part, file.data, n);
            DF_BUF struct df_buf out = DF_BUF_INIT(DF_MIB);
            (void)!df_truststore_read(part, n, NULL, &out, NULL);
            df_buf_clear(&out);
            file.data[n] = (char)~file.data[n];
            (void)!df_truststore_read(file.data, file.len, NULL, &out, NULL);
            file.data[n] = (char)~file.data[n];
        }
    }
}

static void what_has_no_certificate_is_refused(void **state)
{
    (void)state;
    static const char key[] = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
    assert_refused("", 0, NULL, "neither");
    assert_refused("hello", 5, NULL, "neither PEM nor PKCS#12 nor JKS");
    assert_refused(key, sizeof(key) - 1, NULL, "no certificate");
    assert_refused("\xfe\xed\xfe\xed", 4, NULL, "cut short");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(pem_pkcs12_and_jks_have_the_same_authority),
        cmocka_unit_test(a_jks_is_read_without_a_password_too),
        cmocka_unit_test(a_wrong_password_is_said),
        cmocka_unit_test(a_changed_jks_is_refused),
        cmocka_unit_test(a_file_that_was_cut_or_damaged_is_never_read_beyond_its_end),
        cmocka_unit_test(what_has_no_certificate_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
