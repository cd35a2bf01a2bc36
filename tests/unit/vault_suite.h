/*
 * vault_suite.h - what every home of secrets must do, written against vault.h alone.
 *
 * A test program defines  static struct df_vault *suite_open(const char *dir);  which opens the
 * vault that belongs to dir (fails the test otherwise), and vault_test(f), an entry of the list of
 * tests: *state is a directory, the vault is empty. It includes this behind cmocka.h, and puts
 * VAULT_SUITE into its list.
 */
#ifndef DF_TEST_VAULT_SUITE_H
#define DF_TEST_VAULT_SUITE_H

#include <pthread.h>

#include "common/base/clock.h"
#include "common/base/limits.h"
#include "spawner/store/vault/vault_backend.h"
#include "spawner/store/vault/vault_integrations.h"
#include "spawner/store/vault/vault_tokens.h"
#include "tests/unit/scratch.h"

#define VAULT DF_VAULT struct df_vault

static struct df_vault *suite_open(const char *dir);

static int put(struct df_vault *v, const char *name, const char *key, const void *value, size_t n,
               struct df_err *err)
{
    return df_vault_put(v, name, &(struct df_vault_entry){.key = key, .value = value, .n = n}, err);
}

static void set(struct df_vault *v, const char *name, const char *key, const char *value)
{
    struct df_err err = {0};
    if (put(v, name, key, value, strlen(value), &err) < 0)
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
    VAULT *v = suite_open(*state);
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
    VAULT *v = suite_open(*state);
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
    VAULT *v = suite_open(*state);
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
    VAULT *v = suite_open(*state);
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
    VAULT *v = suite_open(*state);
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        struct df_err err = {0};
        assert_fails(put(v, cases[i].name, cases[i].key, cases[i].value, cases[i].n, &err), &err,
                     DF_ERR_USER, "");
    }
    DF_JSON cJSON *list = NULL;
    assert_int_equal(df_vault_list(v, &list, NULL), 0);
    assert_int_equal(cJSON_GetArraySize(list), 0);
}

static void a_value_may_fill_its_cap_and_no_more(void **state)
{
    struct df_err err = {0};
    VAULT *v = suite_open(*state);
    DF_FREE char *big = malloc(DF_LIMIT_SECRET_VALUE + 1);
    assert_non_null(big);
    memset(big, 'x', DF_LIMIT_SECRET_VALUE + 1);
    assert_int_equal(put(v, "git", "k", big, DF_LIMIT_SECRET_VALUE, &err), 0);
    cJSON *secret = NULL;
    assert_int_equal(df_vault_get(v, "git", &secret, &err), 0);
    assert_int_equal(strlen(df_json_str(secret, "k")), DF_LIMIT_SECRET_VALUE);
    df_json_wipe(secret);
    assert_fails(put(v, "git", "k", big, DF_LIMIT_SECRET_VALUE + 1, &err), &err, DF_ERR_LIMIT, "");
}

static void a_secret_has_so_many_keys_and_no_more(void **state)
{
    struct df_err err = {0};
    VAULT *v = suite_open(*state);
    for (int i = 0; i < DF_LIMIT_SECRET_KEYS; i++) {
        DF_FREE char *key = df_strf("k%d", i);
        set(v, "git", key, "v");
    }
    assert_fails(put(v, "git", "one-more", "v", 1, &err), &err, DF_ERR_LIMIT, "git");
    set(v, "git", "k7", "changed");
    set(v, "other", "one-more", "v");
    char key[DF_LIMIT_SECRET_KEY + 2];
    memset(key, 'k', sizeof(key));
    key[DF_LIMIT_SECRET_KEY + 1] = '\0';
    assert_fails(put(v, "other", key, "v", 1, &err), &err, DF_ERR_USER, "");
    key[DF_LIMIT_SECRET_KEY] = '\0';
    set(v, "other", key, "v");
}

#define RUN_ID "0123456789abcdef0123456789abcdef"

static void what_a_run_was_given_is_no_secret_with_a_name(void **state)
{
    struct df_err err = {0};
    VAULT *v = suite_open(*state);
    DF_JSON cJSON *values = cJSON_CreateObject(), *list = NULL, *runs = NULL;
    DF_SECRET_JSON cJSON *read = NULL;
    cJSON *none = NULL;
    assert_int_equal(df_json_add_str(values, "a", "one", &err), 0);
    set(v, "git", "a", "two");
    assert_int_equal(df_vault_run_put(v, RUN_ID, values, &err), 0);
    assert_int_equal(df_vault_run_get(v, RUN_ID, &read, &err), 0);
    assert_true(df_json_equal(read, values));
    assert_no_secret(v, "dayfly-run." RUN_ID);
    assert_fails(put(v, "dayfly-run." RUN_ID, "values", "{}", 2, &err), &err, DF_ERR_USER, "");
    assert_fails(df_vault_delete(v, "dayfly-run." RUN_ID, NULL, &err), &err, DF_ERR_NOT_FOUND, "");
    assert_int_equal(df_vault_list(v, &list, &err), 0);
    assert_int_equal(cJSON_GetArraySize(list), 1);
    assert_int_equal(df_vault_run_list(v, &runs, &err), 0);
    assert_int_equal(cJSON_GetArraySize(runs), 1);
    assert_string_equal(df_json_str(runs->child, "name"), RUN_ID);
    assert_int_equal(df_vault_run_drop(v, RUN_ID, &err), 0);
    assert_int_equal(df_vault_run_drop(v, RUN_ID, &err), 0);
    assert_fails(df_vault_run_get(v, RUN_ID, &none, &err), &err, DF_ERR_NOT_FOUND, RUN_ID);
    assert_fails(df_vault_run_get(v, "git", &none, &err), &err, DF_ERR_NOT_FOUND, "git");
    assert_secret(v, "git", "{\"a\":\"two\"}");
}

static void keys_for_other_purposes_differ_and_stay(void **state)
{
    struct df_err err = {0};
    unsigned char plan[32], again[32], other[32];
    struct df_vault *first = suite_open(*state);
    assert_int_equal(df_vault_key(first, "plan", plan, &err), 0);
    assert_int_equal(df_vault_key(first, "vault", other, &err), 0);
    df_vault_close(first);
    VAULT *v = suite_open(*state);
    assert_int_equal(df_vault_key(v, "plan", again, &err), 0);
    assert_memory_equal(plan, again, sizeof(plan));
    assert_memory_not_equal(plan, other, sizeof(plan));
}

#define OWN_KEYS 20

struct vault_writer {
    struct df_vault *vault;
    char letter;
    int failed;
};

/* Each key is written once: what another one's write took away does not come back. */
static void *write_own_keys(void *arg)
{
    struct vault_writer *w = arg;
    for (int i = 0; i < OWN_KEYS; i++) {
        char key[16];
        (void)snprintf(key, sizeof(key), "%c%d", w->letter, i);
        w->failed += put(w->vault, "git", key, key, strlen(key), NULL) < 0;
    }
    return NULL;
}

/* Two vaults, as two replicas have them. */
static void many_who_write_one_secret_lose_nothing(void **state)
{
    struct df_err err = {0};
    VAULT *one = suite_open(*state);
    VAULT *two = suite_open(*state);
    struct vault_writer writers[] = {{one, 'a', 0}, {two, 'b', 0}, {one, 'c', 0}, {two, 'd', 0}};
    pthread_t threads[DF_ARRAY_SIZE(writers)];
    for (size_t i = 0; i < DF_ARRAY_SIZE(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, write_own_keys, &writers[i]), 0);
    for (size_t i = 0; i < DF_ARRAY_SIZE(threads); i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(writers[i].failed, 0);
    }
    DF_SECRET_JSON cJSON *secret = NULL;
    assert_int_equal(df_vault_get(one, "git", &secret, &err), 0);
    assert_int_equal(cJSON_GetArraySize(secret), OWN_KEYS * DF_ARRAY_SIZE(writers));
}

static void assert_use(struct df_vault *v, const char *name, const char *want)
{
    struct df_err err = {0};
    DF_JSON cJSON *use = NULL;
    if (df_vault_get_use(v, name, &use, &err) < 0)
        fail_msg("%s", err.message);
    DF_FREE char *text = df_json_print(use);
    assert_string_equal(text, want);
}

static int put_use(struct df_vault *v, const char *name, const char *key, const char *use,
                   struct df_err *err)
{
    DF_JSON cJSON *json = cJSON_Parse(use);
    assert_non_null(json);
    const struct df_vault_entry entry = {.key = key, .value = "x", .n = 1, .use = json};
    return df_vault_put(v, name, &entry, err);
}

#define FOR_NET "{\"executors\":[\"net\",\"net-test\"],\"owner\":\"ann\"}"
#define FOR_NONE "{\"executors\":[]}"

static void a_use_stays_until_it_is_replaced_or_the_last_key_goes(void **state)
{
    VAULT *v = suite_open(*state);
    struct df_err err = {0};
    assert_fails(put_use(v, "db", NULL, FOR_NET, &err), &err, DF_ERR_NOT_FOUND, "db");
    DF_JSON cJSON *none = NULL;
    assert_fails(df_vault_get_use(v, "db", &none, &err), &err, DF_ERR_NOT_FOUND, "db");
    assert_int_equal(put_use(v, "db", "a", FOR_NET, &err), 0);
    set(v, "db", "a", "y");
    set(v, "db", "b", "z");
    assert_use(v, "db", FOR_NET);
    DF_JSON cJSON *list = NULL;
    assert_int_equal(df_vault_list(v, &list, &err), 0);
    assert_string_equal(df_json_str(cJSON_GetArrayItem(list, 0), "owner"), "ann");
    assert_int_equal(cJSON_GetArraySize(df_json_at(cJSON_GetArrayItem(list, 0), "executors")), 2);
    assert_int_equal(put_use(v, "db", NULL, FOR_NONE, &err), 0);
    assert_use(v, "db", FOR_NONE);
    assert_int_equal(df_vault_delete(v, "db", "a", &err), 0);
    assert_use(v, "db", FOR_NONE);
    assert_secret(v, "db", "{\"b\":\"z\"}");
    assert_int_equal(df_vault_delete(v, "db", "b", &err), 0);
    set(v, "db", "a", "anew");
    assert_use(v, "db", "{}");
}

static void put_integration(struct df_vault *v, const char *name, const char *text)
{
    struct df_err err = {0};
    DF_JSON cJSON *doc = NULL;
    assert_int_equal(df_json_parse(text, strlen(text), &doc, &err), 0);
    if (df_vault_integration_put(v, name, doc, &err) < 0)
        fail_msg("%s", err.message);
}

static void integrations_lie_beside_the_secrets_and_are_none(void **state)
{
    VAULT *v = suite_open(*state);
    struct df_err err = {0};
    DF_JSON cJSON *list = NULL, *docs = NULL, *doc = NULL, *again = NULL;
    set(v, "prod", "key", "value");
    put_integration(v, "prod", "{\"spec\":{\"provider\":\"aws\"}}");
    put_integration(v, "hub",
                    "{\"spec\":{\"provider\":\"github\"},\"status\":{\"owner\":\"ada\"}}");
    assert_int_equal(df_vault_integration_note(v, "hub", "net-3", 1000000, NULL), 0);
    put_integration(v, "hub",
                    "{\"spec\":{\"provider\":\"gitlab\"},\"status\":{\"owner\":\"ada\"}}");
    assert_int_equal(df_vault_list(v, &list, NULL), 0);
    assert_int_equal(cJSON_GetArraySize(list), 1);
    assert_int_equal(df_vault_integration_list(v, &docs, NULL), 0);
    assert_int_equal(cJSON_GetArraySize(docs), 2);
    assert_string_equal(df_json_str(docs->child, "spec.provider"), "gitlab");
    assert_int_equal(df_vault_integration_get(v, "hub", &doc, NULL), 0);
    assert_string_equal(df_json_str(doc, "status.owner"), "ada");
    assert_string_equal(df_json_str(doc, "status.lastUsedBy"), "net-3");
    assert_string_equal(df_json_str(doc, "status.lastUsedAt"), "1970-01-01T00:00:01.000000Z");
    assert_int_equal(df_vault_integration_delete(v, "hub", NULL), 0);
    assert_fails(df_vault_integration_get(v, "hub", &again, &err), &err, DF_ERR_NOT_FOUND,
                 "there is no integration \"hub\"");
    assert_fails(df_vault_integration_delete(v, "hub", &err), &err, DF_ERR_NOT_FOUND, "hub");
    assert_fails(df_vault_integration_get(v, "../prod", &again, &err), &err, DF_ERR_NOT_FOUND,
                 "prod");
    assert_secret(v, "prod", "{\"key\":\"value\"}");
}

static void assert_records(struct df_vault *v, const char *id, const char *want)
{
    struct df_err err = {0};
    DF_JSON cJSON *records = NULL;
    if (df_vault_tokens_get(v, id, &records, &err) < 0)
        fail_msg("%s", err.message);
    DF_FREE char *text = df_json_print(records);
    assert_string_equal(text, want);
}

static void records_of_tokens_are_no_secrets_and_stay_where_they_were_put(void **state)
{
    static const char one[] = "0123456789abcdef0123456789abcdef",
                      two[] = "fedcba9876543210fedcba9876543210";
    VAULT *v = suite_open(*state);
    DF_JSON cJSON *record = cJSON_CreateObject(), *list = NULL, *moved = NULL;
    DF_STRS struct df_strs ids = {0};
    cJSON_AddStringToObject(record, "name", "ann");
    set(v, "db", "password", "x");
    assert_records(v, one, "{}");
    assert_int_equal(df_vault_tokens_put(v, one, "owner", record, NULL), 0);
    assert_int_equal(df_vault_tokens_put(v, one, "token.ci", record, NULL), 0);
    assert_records(v, one, "{\"owner\":{\"name\":\"ann\"},\"token.ci\":{\"name\":\"ann\"}}");
    assert_int_equal(df_vault_list(v, &list, NULL), 0);
    assert_int_equal(cJSON_GetArraySize(list), 1);
    assert_int_equal(df_vault_tokens_list(v, &ids, NULL), 0);
    assert_int_equal(ids.len, 1);
    assert_string_equal(ids.items[0], one);
    /* what somebody writes by hand, or copies from another record */
    assert_int_equal(v->ops->get(v, "dayfly-tokens.0123456789abcdef0123456789abcdef", &moved, NULL),
                     0);
    const char *sealed = df_json_str(moved, "owner");
    const struct df_vault_entry copies[] = {{"owner", sealed, strlen(sealed), NULL},
                                            {"token.x", "e30=", 4, NULL},
                                            {"token.y", "{}", 2, NULL}};
    for (size_t i = 0; i < DF_ARRAY_SIZE(copies); i++)
        assert_int_equal(
            v->ops->put(v, "dayfly-tokens.fedcba9876543210fedcba9876543210", &copies[i], NULL), 0);
    assert_records(v, two, "{}");
    assert_int_equal(df_vault_tokens_drop(v, one, "token.ci", NULL), 0);
    assert_int_equal(df_vault_tokens_drop(v, one, "token.ci", NULL), 0);
    assert_records(v, one, "{\"owner\":{\"name\":\"ann\"}}");
    assert_int_equal(df_vault_tokens_drop(v, one, NULL, NULL), 0);
    assert_records(v, one, "{}");
}

#define VAULT_SUITE                                                                                \
    vault_test(a_use_stays_until_it_is_replaced_or_the_last_key_goes),                             \
        vault_test(a_secret_holds_what_was_set_last), vault_test(what_was_not_set_is_not_found),   \
        vault_test(a_key_or_a_whole_secret_can_be_deleted),                                        \
        vault_test(the_list_names_keys_and_no_values),                                             \
        vault_test(bad_names_keys_and_values_are_refused),                                         \
        vault_test(a_value_may_fill_its_cap_and_no_more),                                          \
        vault_test(a_secret_has_so_many_keys_and_no_more),                                         \
        vault_test(what_a_run_was_given_is_no_secret_with_a_name),                                 \
        vault_test(integrations_lie_beside_the_secrets_and_are_none),                              \
        vault_test(records_of_tokens_are_no_secrets_and_stay_where_they_were_put),                 \
        vault_test(keys_for_other_purposes_differ_and_stay),                                       \
        vault_test(many_who_write_one_secret_lose_nothing)

#endif
