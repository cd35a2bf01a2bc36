#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "common/base/clock.h"
#include "common/base/limits.h"
#include "spawner/store/store.h"
#include "spawner/store/vault.h"
#include "tests/unit/scratch.h"

static void cleanup_vault(struct df_vault **v)
{
    df_vault_close(*v);
}
#define VAULT DF_CLEANUP(cleanup_vault) struct df_vault

static int try_open(const char *dir, struct df_vault **ret, struct df_err *err)
{
    DF_FREE char *database = df_fs_join(dir, "dayfly.db");
    DF_FREE char *key = df_fs_join(dir, "key");
    return df_vault_open(database, key, ret, err);
}

static struct df_vault *open_vault(const char *dir)
{
    struct df_err err = {0};
    struct df_vault *v = NULL;
    if (try_open(dir, &v, &err) < 0)
        fail_msg("%s", err.message);
    return v;
}

static void set(struct df_vault *v, const char *name, const char *key, const char *value)
{
    struct df_err err = {0};
    if (df_vault_set(v, name, key, value, strlen(value), &err) < 0)
        fail_msg("%s", err.message);
}

static void assert_secret(struct df_vault *v, const char *name, const char *want)
{
    struct df_err err = {0};
    cJSON *secret = NULL;
    if (df_vault_get(v, name, &secret, &err) < 0)
        fail_msg("%s", err.message);
    DF_FREE char *text = df_json_print(secret);
    assert_string_equal(text, want);
    df_json_wipe(secret);
}

static void assert_fails(int result, const struct df_err *err, enum df_err_class cls,
                         const char *words)
{
    assert_int_equal(result, -1);
    assert_int_equal(err->cls, cls);
    if (!strstr(err->message, words))
        fail_msg("%s", err->message);
}

static void assert_no_secret(struct df_vault *v, const char *name)
{
    struct df_err err = {0};
    cJSON *secret = NULL;
    assert_fails(df_vault_get(v, name, &secret, &err), &err, DF_ERR_NOT_FOUND, name);
    assert_null(secret);
}

static void a_secret_holds_what_was_set_last(void **state)
{
    VAULT *v = open_vault(*state);
    set(v, "git", "username", "me");
    set(v, "git", "password", "pa$$");
    set(v, "git", "password", "h\"unter\n2 é");
    set(v, "git", "empty", "");
    assert_secret(v, "git",
                  "{\"empty\":\"\",\"password\":\"h\\\"unter\\n2 é\",\"username\":\"me\"}");
}

static void what_was_not_set_is_not_found(void **state)
{
    struct df_err err = {0};
    VAULT *v = open_vault(*state);
    set(v, "git", "a", "b");
    assert_no_secret(v, "gi");
    assert_no_secret(v, "other");
    assert_fails(df_vault_delete(v, "other", NULL, &err), &err, DF_ERR_NOT_FOUND, "other");
    assert_fails(df_vault_delete(v, "git", "b", &err), &err, DF_ERR_NOT_FOUND, "git");
    assert_secret(v, "git", "{\"a\":\"b\"}");
}

static void a_key_or_a_whole_secret_can_be_deleted(void **state)
{
    struct df_err err = {0};
    VAULT *v = open_vault(*state);
    set(v, "git", "a", "1");
    set(v, "git", "b", "2");
    set(v, "git", "c", "3");
    set(v, "other", "a", "4");
    assert_int_equal(df_vault_delete(v, "git", "b", &err), 0);
    assert_secret(v, "git", "{\"a\":\"1\",\"c\":\"3\"}");
    assert_int_equal(df_vault_delete(v, "git", NULL, &err), 0);
    assert_no_secret(v, "git");
    assert_secret(v, "other", "{\"a\":\"4\"}");
    assert_int_equal(df_vault_delete(v, "other", "a", &err), 0);
    assert_no_secret(v, "other");
}

static void the_list_names_keys_and_no_values(void **state)
{
    struct df_err err = {0};
    VAULT *v = open_vault(*state);
    DF_JSON cJSON *none = NULL, *list = NULL;
    assert_int_equal(df_vault_list(v, &none, &err), 0);
    assert_int_equal(cJSON_GetArraySize(none), 0);
    set(v, "git", "b", "hidden");
    set(v, "aws", "x", "hidden");
    set(v, "git", "a", "hidden");
    assert_int_equal(df_vault_list(v, &list, &err), 0);
    assert_int_equal(cJSON_GetArraySize(list), 2);
    const cJSON *git = cJSON_GetArrayItem(list, 1);
    assert_string_equal(df_json_str(cJSON_GetArrayItem(list, 0), "name"), "aws");
    assert_string_equal(df_json_str(git, "name"), "git");
    DF_FREE char *keys = df_json_print(df_json_at(git, "keys"));
    assert_string_equal(keys, "[\"a\",\"b\"]");
    int64_t at = 0;
    assert_int_equal(df_time_parse(df_json_str(git, "updatedAt"), &at, &err), 0);
    DF_FREE char *text = df_json_print(list);
    assert_null(strstr(text, "hidden"));
}

static void bad_names_keys_and_values_are_refused(void **state)
{
    static const struct {
        const char *name, *key, *value;
        size_t n;
    } cases[] = {
        {"", "k", "v", 1},       {"Git", "k", "v", 1},        {"a/b", "k", "v", 1},
        {"a.b", "k", "v", 1},    {"-a", "k", "v", 1},         {"git", "", "v", 1},
        {"git", "a b", "v", 1},  {"git", "a/b", "v", 1},      {"git", "é", "v", 1},
        {"git", "k", "a\0b", 3}, {"git", "k", "\xff\xfe", 2}, {"git", "k", "\xc3", 1},
    };
    VAULT *v = open_vault(*state);
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        struct df_err err = {0};
        assert_fails(df_vault_set(v, cases[i].name, cases[i].key, cases[i].value, cases[i].n, &err),
                     &err, DF_ERR_USER, "");
    }
    DF_JSON cJSON *list = NULL;
    assert_int_equal(df_vault_list(v, &list, NULL), 0);
    assert_int_equal(cJSON_GetArraySize(list), 0);
}

static void a_value_may_fill_its_cap_and_no_more(void **state)
{
    struct df_err err = {0};
    VAULT *v = open_vault(*state);
    DF_FREE char *big = malloc(DF_LIMIT_SECRET_VALUE + 1);
    assert_non_null(big);
    memset(big, 'x', DF_LIMIT_SECRET_VALUE + 1);
    assert_int_equal(df_vault_set(v, "git", "k", big, DF_LIMIT_SECRET_VALUE, &err), 0);
    cJSON *secret = NULL;
    assert_int_equal(df_vault_get(v, "git", &secret, &err), 0);
    assert_int_equal(strlen(df_json_str(secret, "k")), DF_LIMIT_SECRET_VALUE);
    df_json_wipe(secret);
    assert_fails(df_vault_set(v, "git", "k", big, DF_LIMIT_SECRET_VALUE + 1, &err), &err,
                 DF_ERR_LIMIT, "");
}

static void a_secret_has_so_many_keys_and_no_more(void **state)
{
    struct df_err err = {0};
    VAULT *v = open_vault(*state);
    for (int i = 0; i < DF_LIMIT_SECRET_KEYS; i++) {
        DF_FREE char *key = df_strf("k%d", i);
        set(v, "git", key, "v");
    }
    assert_fails(df_vault_set(v, "git", "one-more", "v", 1, &err), &err, DF_ERR_LIMIT, "git");
    set(v, "git", "k7", "changed");
    set(v, "other", "one-more", "v");
    char key[DF_LIMIT_SECRET_KEY + 2];
    memset(key, 'k', sizeof(key));
    key[DF_LIMIT_SECRET_KEY + 1] = '\0';
    assert_fails(df_vault_set(v, "other", key, "v", 1, &err), &err, DF_ERR_USER, "");
    key[DF_LIMIT_SECRET_KEY] = '\0';
    set(v, "other", key, "v");
}

static void secrets_survive_and_lie_sealed_on_the_disk(void **state)
{
    struct df_vault *first = open_vault(*state);
    set(first, "git", "password", "correct-horse-battery-staple");
    df_vault_close(first);
    VAULT *v = open_vault(*state);
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
    df_vault_close(open_vault(*state));
    assert_int_equal(unlink(key), 0);
    assert_fails(try_open(*state, &v, &err), &err, DF_ERR_SYSTEM, key);
    assert_false(df_fs_exists(key));
}

static void the_key_file_of_another_database_is_refused(void **state)
{
    struct df_err err = {0};
    struct df_vault *v = NULL;
    DF_FREE char *key = df_fs_join(*state, "key");
    df_vault_close(open_vault(*state));
    DF_BUF struct df_buf right = DF_BUF_INIT(100);
    assert_int_equal(df_fs_read(key, &right, &err), 0);
    right.data[0] = right.data[0] == '0' ? '1' : '0';
    assert_int_equal(df_fs_replace(key, right.data, right.len, 0600, &err), 0);
    assert_fails(try_open(*state, &v, &err), &err, DF_ERR_SYSTEM, key);
    assert_int_equal(df_fs_replace(key, "x\n", 2, 0600, &err), 0);
    assert_fails(try_open(*state, &v, &err), &err, DF_ERR_SYSTEM, key);
}

static void execute(const char *dir, const char *sql)
{
    DF_FREE char *path = df_fs_join(dir, "dayfly.db");
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
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
        struct df_vault *first = open_vault(*state);
        execute(*state, "DELETE FROM secrets");
        set(first, "git", "a", "one");
        set(first, "git", "b", "two");
        df_vault_close(first);
        execute(*state, tampering[i]);
        struct df_err err = {0};
        VAULT *v = open_vault(*state);
        cJSON *secret = NULL;
        const char *name = strstr(tampering[i], "victim") ? "victim" : "git";
        assert_fails(df_vault_get(v, name, &secret, &err), &err, DF_ERR_SYSTEM, name);
        assert_null(secret);
        assert_null(strstr(err.message, "one"));
    }
}

static void keys_for_other_purposes_differ_and_stay(void **state)
{
    struct df_err err = {0};
    unsigned char plan[32], again[32], other[32];
    struct df_vault *first = open_vault(*state);
    assert_int_equal(df_vault_key(first, "plan", plan, &err), 0);
    assert_int_equal(df_vault_key(first, "vault", other, &err), 0);
    df_vault_close(first);
    VAULT *v = open_vault(*state);
    assert_int_equal(df_vault_key(v, "plan", again, &err), 0);
    assert_memory_equal(plan, again, sizeof(plan));
    assert_memory_not_equal(plan, other, sizeof(plan));
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
        if (df_vault_set(v, "git", key, key, strlen(key), NULL) < 0 ||
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
    VAULT *v = open_vault(*state);
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
        scratch_test(a_secret_holds_what_was_set_last),
        scratch_test(what_was_not_set_is_not_found),
        scratch_test(a_key_or_a_whole_secret_can_be_deleted),
        scratch_test(the_list_names_keys_and_no_values),
        scratch_test(bad_names_keys_and_values_are_refused),
        scratch_test(a_value_may_fill_its_cap_and_no_more),
        scratch_test(a_secret_has_so_many_keys_and_no_more),
        scratch_test(secrets_survive_and_lie_sealed_on_the_disk),
        scratch_test(a_missing_key_file_is_not_made_anew),
        scratch_test(the_key_file_of_another_database_is_refused),
        scratch_test(a_sealed_value_that_was_moved_or_changed_is_refused),
        scratch_test(keys_for_other_purposes_differ_and_stay),
        scratch_test(a_database_that_is_not_ours_is_refused),
        scratch_test(vault_and_store_share_one_file_under_load),
    };
    return cmocka_run_group_tests_name("vault", tests, NULL, NULL);
}
