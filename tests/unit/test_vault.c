/* Secrets in SQLite; what every home does is in vault_suite.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define vault_test(f) scratch_test(f)
#include "tests/unit/vault_suite.h"

#include "spawner/store/store.h"
#include "tests/unit/database.h"

static int try_open(const char *dir, struct df_vault **ret, struct df_err *err)
{
    DF_FREE char *database = df_fs_join(dir, "dayfly.db");
    DF_FREE char *key = df_fs_join(dir, "key");
    return df_vault_open(database, key, ret, err);
}

static struct df_vault *suite_open(const char *dir)
{
    struct df_err err = {0};
    struct df_vault *v = NULL;
    if (try_open(dir, &v, &err) < 0)
        fail_msg("%s", err.message);
    return v;
}

static void secrets_survive_and_lie_sealed_on_the_disk(void **state)
{
    struct df_vault *first = suite_open(*state);
    set(first, "git", "password", "correct-horse-battery-staple");
    df_vault_close(first);
    VAULT *v = suite_open(*state);
    assert_secret(v, "git", "{\"password\":\"correct-horse-battery-staple\"}");
    static const char *const files[] = {"dayfly.db", "dayfly.db-wal"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(files); i++) {
        DF_FREE char *path = df_fs_join(*state, files[i]);
        DF_BUF struct df_buf bytes = DF_BUF_INIT(16 * DF_MIB);
        assert_int_equal(df_fs_read(path, &bytes, NULL), 0);
        assert_null(memmem(df_buf_str(&bytes), bytes.len, "battery", 7));
    }
}

static void a_missing_key_file_is_not_made_anew(void **state)
{
    struct df_err err = {0};
    struct df_vault *v = NULL;
    DF_FREE char *key = df_fs_join(*state, "key");
    df_vault_close(suite_open(*state));
    assert_int_equal(unlink(key), 0);
    assert_fails(try_open(*state, &v, &err), &err, DF_ERR_SYSTEM, key);
    assert_false(df_fs_exists(key));
}

static void the_key_file_of_another_database_is_refused(void **state)
{
    struct df_err err = {0};
    struct df_vault *v = NULL;
    DF_FREE char *key = df_fs_join(*state, "key");
    df_vault_close(suite_open(*state));
    DF_BUF struct df_buf right = DF_BUF_INIT(100);
    assert_int_equal(df_fs_read(key, &right, &err), 0);
    right.data[0] = right.data[0] == '0' ? '1' : '0';
    assert_int_equal(df_fs_replace(key, right.data, right.len, 0600, &err), 0);
    assert_fails(try_open(*state, &v, &err), &err, DF_ERR_SYSTEM, key);
    assert_int_equal(df_fs_replace(key, "x\n", 2, 0600, &err), 0);
    assert_fails(try_open(*state, &v, &err), &err, DF_ERR_SYSTEM, key);
}

static void a_sealed_value_that_was_moved_or_changed_is_refused(void **state)
{
    static const char *const tampering[] = {
        "UPDATE secrets SET sealed = (SELECT sealed FROM secrets WHERE key = 'b') WHERE key = 'a'",
        "UPDATE secrets SET key = 'c' WHERE key = 'a'",
        "UPDATE secrets SET name = 'victim' WHERE key = 'a'",
        "UPDATE secrets SET sealed = substr(sealed, 1, 20) WHERE key = 'a'",
        "UPDATE secrets SET sealed = x'' WHERE key = 'a'",
        "UPDATE secrets SET sealed = sealed || x'00' WHERE key = 'a'",
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(tampering); i++) {
        struct df_vault *first = suite_open(*state);
        execute(*state, "DELETE FROM secrets");
        set(first, "git", "a", "one");
        set(first, "git", "b", "two");
        df_vault_close(first);
        execute(*state, tampering[i]);
        struct df_err err = {0};
        VAULT *v = suite_open(*state);
        cJSON *secret = NULL;
        const char *name = strstr(tampering[i], "victim") ? "victim" : "git";
        assert_fails(df_vault_get(v, name, &secret, &err), &err, DF_ERR_SYSTEM, name);
        assert_string_equal(err.reason, "SecretUnreadable");
        assert_null(secret);
        assert_null(strstr(err.message, "one"));
    }
}

static void a_secret_of_an_older_database_is_for_every_executor(void **state)
{
    struct df_vault *first = suite_open(*state);
    set(first, "git", "a", "one");
    df_vault_close(first);
    execute(*state, "DROP TABLE secret_uses");
    VAULT *v = suite_open(*state);
    assert_secret(v, "git", "{\"a\":\"one\"}");
    assert_use(v, "git", "{}");
}

static void a_database_that_is_not_ours_is_refused(void **state)
{
    struct df_err err = {0};
    struct df_vault *v = NULL;
    DF_FREE char *database = df_fs_join(*state, "dayfly.db");
    DF_FREE char *key = df_fs_join(*state, "key");
    assert_int_equal(df_fs_replace(database, "text", 4, 0600, &err), 0);
    assert_fails(try_open(*state, &v, &err), &err, DF_ERR_SYSTEM, database);
    assert_false(df_fs_exists(key));
}

#define ROUNDS 60

static void *write_secrets(void *arg)
{
    struct df_vault *v = arg;
    for (int i = 0; i < ROUNDS; i++) {
        char key[16];
        (void)snprintf(key, sizeof(key), "k%d", i % 5);
        cJSON *secret = NULL;
        if (put(v, "git", key, key, strlen(key), NULL) < 0 ||
            df_vault_get(v, "git", &secret, NULL) < 0)
            return arg;
        df_json_wipe(secret);
    }
    return NULL;
}

static void *write_documents(void *arg)
{
    struct df_store *s = arg;
    for (int i = 0; i < ROUNDS; i++) {
        DF_FREE char *text = df_strf("{\"metadata\":{\"name\":\"run-%d\"}}", i);
        cJSON *doc = NULL;
        if (!text || df_json_parse(text, strlen(text), &doc, NULL) < 0)
            return arg;
        int result = df_store_create(s, DF_KIND_RUN, doc, NULL, NULL);
        cJSON_Delete(doc);
        if (result < 0)
            return arg;
    }
    return NULL;
}

static void vault_and_store_share_one_file_under_load(void **state)
{
    struct df_err err = {0};
    struct df_store *s = NULL;
    DF_FREE char *path = df_fs_join(*state, "dayfly.db");
    VAULT *v = suite_open(*state);
    assert_int_equal(df_store_sqlite_open(path, &s, &err), 0);
    pthread_t threads[4];
    for (size_t i = 0; i < DF_ARRAY_SIZE(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, i ? write_secrets : write_documents,
                                        i ? (void *)v : (void *)s),
                         0);
    for (size_t i = 0; i < DF_ARRAY_SIZE(threads); i++) {
        void *failed = NULL;
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    df_store_close(s);
    assert_secret(v, "git",
                  "{\"k0\":\"k0\",\"k1\":\"k1\",\"k2\":\"k2\",\"k3\":\"k3\",\"k4\":\"k4\"}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        VAULT_SUITE,
        scratch_test(secrets_survive_and_lie_sealed_on_the_disk),
        scratch_test(a_missing_key_file_is_not_made_anew),
        scratch_test(the_key_file_of_another_database_is_refused),
        scratch_test(a_sealed_value_that_was_moved_or_changed_is_refused),
        scratch_test(a_secret_of_an_older_database_is_for_every_executor),
        scratch_test(a_database_that_is_not_ours_is_refused),
        scratch_test(vault_and_store_share_one_file_under_load),
    };
    return cmocka_run_group_tests_name("vault", tests, NULL, NULL);
}
