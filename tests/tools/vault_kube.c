/*
 * vault_kube - what every home of secrets must do (tests/unit/vault_suite.h), and what only Secrets
 * can show. How it is run: cluster_words.h, test_kube_backends.py.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define vault_test(f) cmocka_unit_test_setup_teardown(f, enter, leave)
#include "tests/unit/vault_suite.h"

#include "common/crypto/crypto.h"
#include "spawner/store/vault/open_sources.h"
#include "tests/unit/cluster_words.h"
#include "tests/unit/json_words.h"

#define OURS "dayfly.dev/vault=true"
#define THEIRS "test=theirs"

static int try_open(struct df_vault **ret, struct df_err *err)
{
    return df_vault_kube_open(client(), name_space, ret, err);
}

static struct df_vault *suite_open(const char *dir)
{
    (void)dir;
    struct df_err err = {0};
    struct df_vault *v = NULL;
    if (try_open(&v, &err) < 0)
        fail_msg("%s", err.message);
    return v;
}

static int enter(void **state)
{
    return enter_scratch(state);
}

static int leave(void **state)
{
    struct df_kube_at at = object_at(&df_kube_secrets, "dayfly-key");
    struct df_kube_delete_options o = DF_KUBE_DELETE_OPTIONS;
    (void)!df_kube_delete(client(), &at, &o, NULL);
    (void)delete_objects(&df_kube_secrets, OURS);
    (void)delete_objects(&df_kube_secrets, THEIRS);
    return leave_scratch(state);
}

/* A Secret as kubectl makes it: label is "key":"value", data a JSON object. */
static void make(const char *name, const char *label, const char *data)
{
    struct df_err err = {0};
    DF_JSON cJSON *object = NULL;
    DF_FREE char *text =
        df_strf("{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"metadata\":{\"name\":"
                "\"%s\",\"labels\":{%s}},\"data\":%s}",
                name, label, data);
    struct df_kube_at at = object_at(&df_kube_secrets, NULL);
    if (df_json_parse(text, strlen(text), &object, &err) < 0 ||
        df_kube_create(client(), &at, object, NULL, &err) < 0)
        fail_msg("%s", err.message);
}

static cJSON *stored(const char *name)
{
    struct df_err err = {0};
    struct df_kube_at at = object_at(&df_kube_secrets, name);
    cJSON *object = NULL;
    if (df_kube_get(client(), &at, &object, &err) < 0)
        fail_msg("%s", err.message);
    return object;
}

static void a_secret_that_a_person_labelled_is_read_and_changed(void **state)
{
    VAULT *v = suite_open(*state);
    make("git", "\"dayfly.dev/vault\":\"true\",\"team\":\"a\"", "{\"token\":\"aHVudGVyMg==\"}");
    assert_secret(v, "git", "{\"token\":\"hunter2\"}");
    set(v, "git", "username", "me");
    assert_secret(v, "git", "{\"token\":\"hunter2\",\"username\":\"me\"}");
    DF_JSON cJSON *object = stored("git");
    assert_string_equal(df_kube_label(object, "team"), "a");
}

static void what_was_set_is_a_secret_that_a_person_can_read(void **state)
{
    VAULT *v = suite_open(*state);
    set(v, "git", "token", "hunter2");
    DF_JSON cJSON *object = stored("git");
    assert_string_equal(df_json_str(object, "data.token"), "aHVudGVyMg==");
    assert_string_equal(df_json_str(object, "type"), "Opaque");
}

static void a_secret_of_somebody_else_is_neither_read_nor_touched(void **state)
{
    struct df_err err = {0};
    VAULT *v = suite_open(*state);
    make("tls", "\"test\":\"theirs\"", "{\"token\":\"aHVudGVyMg==\"}");
    assert_no_secret(v, "tls");
    assert_fails(put(v, "tls", "token", "x", 1, &err), &err, DF_ERR_CONFLICT,
                 "dayfly.dev/vault=true");
    assert_fails(df_vault_delete(v, "tls", NULL, &err), &err, DF_ERR_NOT_FOUND, "tls");
    assert_fails(df_vault_delete(v, "tls", "token", &err), &err, DF_ERR_NOT_FOUND, "tls");
    DF_JSON cJSON *list = NULL;
    assert_int_equal(df_vault_list(v, &list, &err), 0);
    assert_int_equal(cJSON_GetArraySize(list), 0);
    DF_JSON cJSON *object = stored("tls");
    assert_string_equal(df_json_str(object, "data.token"), "aHVudGVyMg==");
}

static void the_key_itself_is_no_secret_of_the_vault(void **state)
{
    struct df_err err = {0};
    VAULT *v = suite_open(*state);
    assert_no_secret(v, "dayfly-key");
    assert_fails(put(v, "dayfly-key", "key", "x", 1, &err), &err, DF_ERR_CONFLICT, "");
    assert_fails(df_vault_delete(v, "dayfly-key", NULL, &err), &err, DF_ERR_NOT_FOUND, "");
}

static void what_is_no_text_in_a_secret_of_a_person_is_refused_without_showing_it(void **state)
{
    struct df_err err = {0};
    cJSON *secret = NULL;
    VAULT *v = suite_open(*state);
    make("git", "\"dayfly.dev/vault\":\"true\"", "{\"a\":\"YQ==\",\"bin\":\"aHVudGVyMgD/\"}");
    assert_fails(df_vault_get(v, "git", &secret, &err), &err, DF_ERR_SYSTEM, "bin");
    assert_null(strstr(err.message, "hunter2"));
    assert_null(strstr(err.message, "aHVudGVy"));
}

static void a_person_says_in_annotations_who_may_use_a_secret(void **state)
{
    VAULT *v = suite_open(*state);
    make("git",
         "\"dayfly.dev/vault\":\"true\"},\"annotations\":{\"dayfly.dev/executors\":\"net, "
         "net-test\"",
         "{\"a\":\"YQ==\"}");
    assert_use(v, "git", "{\"executors\":[\"net\",\"net-test\"]}");
    assert_int_equal(put_use(v, "git", "a", FOR_NET, NULL), 0);
    DF_JSON cJSON *object = stored("git");
    assert_string_equal(df_kube_annotation(object, "dayfly.dev/executors"), "net,net-test");
    assert_string_equal(df_kube_annotation(object, "dayfly.dev/owner"), "ann");
}

static void a_star_is_every_executor_and_an_empty_list_is_nobody(void **state)
{
    VAULT *v = suite_open(*state);
    make("open", "\"dayfly.dev/vault\":\"true\"},\"annotations\":{\"dayfly.dev/executors\":\"*\"",
         "{\"a\":\"YQ==\"}");
    make("shut", "\"dayfly.dev/vault\":\"true\"},\"annotations\":{\"dayfly.dev/executors\":\"\"",
         "{\"a\":\"YQ==\"}");
    assert_use(v, "open", "{}");
    assert_use(v, "shut", "{\"executors\":[]}");
}

static void a_secret_without_keys_is_none(void **state)
{
    struct df_err err = {0};
    DF_JSON cJSON *list = NULL;
    VAULT *v = suite_open(*state);
    make("git", "\"dayfly.dev/vault\":\"true\"", "{}");
    assert_no_secret(v, "git");
    assert_int_equal(df_vault_list(v, &list, &err), 0);
    assert_int_equal(cJSON_GetArraySize(list), 0);
    set(v, "git", "token", "x");
    assert_secret(v, "git", "{\"token\":\"x\"}");
}

static void all_values_of_a_secret_have_a_cap_together(void **state)
{
    struct df_err err = {0};
    VAULT *v = suite_open(*state);
    DF_FREE char *big = malloc(DF_LIMIT_SECRET_VALUE + 1);
    assert_non_null(big);
    memset(big, 'x', DF_LIMIT_SECRET_VALUE);
    big[DF_LIMIT_SECRET_VALUE] = '\0';
    static const char *const keys[] = {"a", "b", "c", "d"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(keys); i++)
        set(v, "git", keys[i], big);
    assert_fails(put(v, "git", "e", "x", 1, &err), &err, DF_ERR_LIMIT, "git");
    set(v, "git", "a", "small");
    set(v, "git", "e", "x");
}

static void the_key_is_made_once_and_never_changed(void **state)
{
    unsigned char one[32], two[32];
    struct df_err err = {0};
    VAULT *v = suite_open(*state);
    VAULT *replica = suite_open(*state);
    assert_int_equal(df_vault_key(v, "plan", one, &err), 0);
    assert_int_equal(df_vault_key(replica, "plan", two, &err), 0);
    assert_memory_equal(one, two, sizeof(one));
    DF_JSON cJSON *object = stored("dayfly-key");
    assert_true(df_json_bool(object, "immutable", false));
}

static void *open_and_close(void *arg)
{
    pthread_barrier_t *start = arg;
    struct df_vault *v = NULL;
    (void)pthread_barrier_wait(start);
    unsigned char *key = malloc(32);
    if (try_open(&v, NULL) < 0 || df_vault_key(v, "plan", key, NULL) < 0)
        memset(key, 0, 32);
    df_vault_close(v);
    return key;
}

static void of_many_first_starts_all_have_the_same_key(void **state)
{
    (void)state;
    pthread_barrier_t start;
    pthread_t threads[6];
    unsigned char *keys[DF_ARRAY_SIZE(threads)];
    static const unsigned char none[32];
    assert_int_equal(pthread_barrier_init(&start, NULL, DF_ARRAY_SIZE(threads)), 0);
    for (size_t i = 0; i < DF_ARRAY_SIZE(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, open_and_close, &start), 0);
    for (size_t i = 0; i < DF_ARRAY_SIZE(threads); i++)
        assert_int_equal(pthread_join(threads[i], (void **)&keys[i]), 0);
    (void)pthread_barrier_destroy(&start);
    for (size_t i = 0; i < DF_ARRAY_SIZE(threads); i++) {
        assert_memory_equal(keys[i], keys[0], 32);
        assert_memory_not_equal(keys[i], none, 32);
    }
    for (size_t i = 0; i < DF_ARRAY_SIZE(threads); i++)
        free(keys[i]);
}

/* As it lies in a key file: who moves into a cluster brings it along. */
static void the_key_may_come_from_a_key_file(void **state)
{
    struct df_err err = {0};
    unsigned char master[32], want[32], got[32];
    DF_FREE char *path = df_fs_join(*state, "key");
    DF_BUF struct df_buf text = DF_BUF_INIT(100), base64 = DF_BUF_INIT(200);
    assert_int_equal(df_key_file(path, master, &err), 0);
    assert_int_equal(df_derive_key(master, "plan", want, &err), 0);
    assert_int_equal(df_fs_read(path, &text, &err), 0);
    assert_int_equal(df_base64_encode(text.data, text.len, false, &base64, &err), 0);
    DF_FREE char *data = df_strf("{\"key\":\"%s\"}", df_buf_str(&base64));
    make("dayfly-key", "", data);
    VAULT *v = suite_open(*state);
    assert_int_equal(df_vault_key(v, "plan", got, &err), 0);
    assert_memory_equal(got, want, sizeof(got));
}

static void a_damaged_key_is_named_and_not_replaced(void **state)
{
    (void)state;
    struct df_err err = {0};
    struct df_vault *v = NULL;
    make("dayfly-key", "", "{\"key\":\"aHVudGVyMg==\"}");
    assert_fails(try_open(&v, &err), &err, DF_ERR_SYSTEM, "dayfly-key");
    assert_null(strstr(err.message, "hunter2"));
    DF_JSON cJSON *object = stored("dayfly-key");
    assert_string_equal(df_json_str(object, "data.key"), "aHVudGVyMg==");
}

/* ---- the source `kubernetes` ----------------------------------------------------------------- */

/* The vault with a source "k" of Secrets by name. Its configuration and what it must never open
 * live as long as the program. */
static struct df_vault *open_with_source(const char *dir, cJSON *sources, struct df_never *never)
{
    const struct df_sources_options o = {
        .sources = sources, .kube = client(), .name_space = name_space, .never = never};
    struct df_sources *opened = NULL;
    struct df_err err = {0};
    struct df_vault *v = suite_open(dir);
    if (df_sources_open(&o, &opened, &err) < 0)
        fail_msg("%s", err.message);
    df_vault_set_sources(v, opened);
    return v;
}

#define BY_NAME                                                                                    \
    "{'k':{'type':'kubernetes','executors':['*'],'secrets':['db','team-*','dayfly-*','dfb-*',"     \
    "'tls','sa']}}"

static void a_source_reads_the_secrets_that_are_listed_and_no_other(void **state)
{
    struct df_err err = {0};
    DF_SECRET_JSON cJSON *secret = NULL;
    DF_JSON cJSON *sources = json(BY_NAME), *list = NULL;
    VAULT *v = open_with_source(*state, sources, NULL);
    make("db", "\"test\":\"theirs\"", "{\"password\":\"aHVudGVyMg==\",\"empty\":\"\"}");
    make("team-a", "\"test\":\"theirs\"", "{\"token\":\"YQ==\"}");
    make("other", "\"test\":\"theirs\"", "{\"token\":\"YQ==\"}");
    assert_secret(v, "k-db", "{\"empty\":\"\",\"password\":\"hunter2\"}");
    assert_secret(v, "k-team-a", "{\"token\":\"a\"}");
    assert_no_secret(v, "k-team-b");
    assert_fails(df_vault_get(v, "k-other", &secret, &err), &err, DF_ERR_DENIED,
                 "not among the secrets of vault.sources.k");
    assert_int_equal(df_vault_list_sources(v, &list, &err), 0);
    assert_int_equal(cJSON_GetArraySize(list), 2);
    assert_string_equal(df_json_str(list->child, "name"), "k-db");
    assert_fails(put(v, "k-db", "password", "x", 1, &err), &err, DF_ERR_CONFLICT, "Secret in");
}

static void what_is_the_services_own_is_never_opened_by_a_source(void **state)
{
    DF_JSON cJSON *sources = json(BY_NAME), *list = NULL;
    DF_CLEANUP(df_never_free) struct df_never never = {0};
    assert_int_equal(df_strs_add(&never.secrets, "tls"), 0); /* of server.tls.secret */
    VAULT *v = open_with_source(*state, sources, &never);
    make("tls", "\"test\":\"theirs\"", "{\"ca.key\":\"YQ==\"}");
    make("team-vault", "\"dayfly.dev/vault\":\"true\"", "{\"a\":\"YQ==\"}");
    make("team-step", "\"test\":\"theirs\",\"dayfly.dev/step\":\"x\"", "{\"a\":\"YQ==\"}");
    make("dfb-1", "\"test\":\"theirs\"", "{\"a\":\"YQ==\"}");
    static const char *const names[] = {"k-tls",        "k-dayfly-key", "k-dayfly-authority",
                                        "k-team-vault", "k-team-step",  "k-dfb-1"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(names); i++) {
        struct df_err err = {0};
        cJSON *secret = NULL;
        assert_fails(df_vault_get(v, names[i], &secret, &err), &err, DF_ERR_DENIED,
                     "no source opens it");
        assert_string_equal(err.reason, "SecretSourceDenied");
    }
    assert_int_equal(df_vault_list_sources(v, &list, NULL), 0);
    assert_int_equal(cJSON_GetArraySize(list), 0);
}

/* The type of a Secret cannot be changed later, so this one is made with it. */
static void a_token_of_a_service_account_is_never_opened_by_a_source(void **state)
{
    struct df_err err = {0};
    cJSON *secret = NULL;
    DF_JSON cJSON *sources = json(BY_NAME);
    DF_JSON cJSON *token =
        json("{'apiVersion':'v1','kind':'Secret','type':'bootstrap.kubernetes.io/token',"
             "'metadata':{'name':'sa','labels':{'test':'theirs'}},'data':{'a':'YQ=='}}");
    struct df_kube_at at = object_at(&df_kube_secrets, NULL);
    VAULT *v = open_with_source(*state, sources, NULL);
    assert_int_equal(df_kube_create(client(), &at, token, NULL, &err), 0);
    assert_fails(df_vault_get(v, "k-sa", &secret, &err), &err, DF_ERR_DENIED, "no source opens it");
}

int main(void)
{
    if (!find_cluster())
        return 2;
    const struct CMUnitTest tests[] = {
        VAULT_SUITE,
        vault_test(a_secret_that_a_person_labelled_is_read_and_changed),
        vault_test(what_was_set_is_a_secret_that_a_person_can_read),
        vault_test(a_secret_of_somebody_else_is_neither_read_nor_touched),
        vault_test(the_key_itself_is_no_secret_of_the_vault),
        vault_test(what_is_no_text_in_a_secret_of_a_person_is_refused_without_showing_it),
        vault_test(a_person_says_in_annotations_who_may_use_a_secret),
        vault_test(a_star_is_every_executor_and_an_empty_list_is_nobody),
        vault_test(a_secret_without_keys_is_none),
        vault_test(all_values_of_a_secret_have_a_cap_together),
        vault_test(the_key_is_made_once_and_never_changed),
        vault_test(of_many_first_starts_all_have_the_same_key),
        vault_test(a_source_reads_the_secrets_that_are_listed_and_no_other),
        vault_test(what_is_the_services_own_is_never_opened_by_a_source),
        vault_test(a_token_of_a_service_account_is_never_opened_by_a_source),
        vault_test(the_key_may_come_from_a_key_file),
        vault_test(a_damaged_key_is_named_and_not_replaced),
    };
    int result = cmocka_run_group_tests_name("vault in Kubernetes", tests, NULL, NULL);
    df_kube_free(client());
    return result;
}
