/* vault.sources: what the configuration may say, which secrets are whose, and the source `files`. A
 * real Vault is asked by tests/integration/test_secret_sources.py, a real API server by
 * vault_kube. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "common/base/limits.h"
#include "spawner/model/secret_source.h"
#include "spawner/model/secret_use.h"
#include "spawner/store/vault/open_sources.h"
#include "spawner/store/vault/vault.h"
#include "tests/unit/json_words.h"
#include "tests/unit/scratch.h"

/* ---- the configuration ----------------------------------------------------------------------- */

#define KV2 "'type':'kv2','executors':['*'],'url':'https://v:8200'"
#define BY_FILE "'auth':{'tokenFile':'/t'}"

/* clang-format off */
static const struct {
    const char *sources, *message; /* message NULL: it is accepted */
} rows[] = {
    {"{}", NULL},
    {"{'corp':{" KV2 "," BY_FILE "}}", NULL},
    {"{'corp':{" KV2 ",'auth':{'kubernetes':{'role':'dayfly'}}}}", NULL},
    {"{'corp':{" KV2 ",'mount':'kv/team','path':'infra/prod','namespace':'ns1/ns2'," BY_FILE "}}", NULL},
    {"{'corp':{'type':'kv2','executors':['*'],'url':'http://127.0.0.1:8200'," BY_FILE "}}", NULL},
    {"{'corp':{'type':'files','executors':['net','db'],'directory':'/run/secrets'}}", NULL},
    {"{'corp':{'type':'kubernetes','executors':['*'],'secrets':['db','team-*'],'namespace':'infra'}}", NULL},

    {"{'corp':[]}", "corp: must be a mapping"},
    {"{'corp':{'type':'vault','executors':['*']}}", "corp.type: \"vault\""},
    {"{'corp':{'executors':['*']}}", "corp.type: is required"},
    {"{'corp':{'type':'files','directory':'/s'}}", "corp.executors: is required"},
    {"{'corp':{'type':'files','directory':'/s','executors':['Net']}}", "corp.executors[0]: \"Net\" is not the name of an executor"},
    {"{'corp':{'type':'files','directory':'s','executors':['*']}}", "corp.directory: \"s\" must be an absolute path"},
    {"{'corp':{'type':'files','directroy':'/s','executors':['*']}}", "did you mean \"directory\"?"},
    {"{'corp':{'type':'files','executors':['*']}}", "corp.directory: is required"},
    {"{'corp':{'type':'kv2','executors':['*']," BY_FILE "}}", "corp.url: is required"},
    {"{'corp':{'type':'kv2','executors':['*'],'url':'http://v:8200'," BY_FILE "}}", "must be an https:// URL"},
    {"{'corp':{'type':'kv2','executors':['*'],'url':'http://127.0.0.1.example:8200'," BY_FILE "}}", "must be an https:// URL"},
    {"{'corp':{'type':'kv2','executors':['*'],'url':'https://me:pw@v:8200'," BY_FILE "}}", "must be scheme, host and port"},
    {"{'corp':{'type':'kv2','executors':['*'],'url':'https://v:8200/'," BY_FILE "}}", "must be scheme, host and port"},
    {"{'corp':{" KV2 "}}", "corp.auth: is required"},
    {"{'corp':{" KV2 ",'auth':{}}}", "corp.auth: must have either tokenFile or kubernetes"},
    {"{'corp':{" KV2 ",'auth':{'tokenFile':'/t','kubernetes':{'role':'r'}}}}", "must have either tokenFile or kubernetes"},
    {"{'corp':{" KV2 ",'auth':{'kubernetes':{}}}}", "corp.auth.kubernetes.role: is required"},
    {"{'corp':{" KV2 ",'path':'../other'," BY_FILE "}}", "corp.path: \"../other\" must be names"},
    {"{'corp':{" KV2 ",'mount':'/secret'," BY_FILE "}}", "corp.mount: \"/secret\" must be names"},
    {"{'corp':{" KV2 ",'mount':'a?b'," BY_FILE "}}", "corp.mount: \"a?b\" must be names"},
    {"{'corp':{'type':'kubernetes','executors':['*']}}", "corp.secrets: is required"},
    {"{'corp':{'type':'kubernetes','executors':['*'],'secrets':['*']}}", "corp.secrets[0]: \"*\": a * is possible at the end only"},
    {"{'corp':{'type':'kubernetes','executors':['*'],'secrets':['a*b']}}", "a * is possible at the end only"},
    {"{'Corp':{'type':'files','directory':'/s','executors':['*']}}", "the name of a source is a DNS label"},
    {"{'corp':{'type':'files','directory':'/s','executors':['*']},'corp-eu':{'type':'files','directory':'/s','executors':['*']}}",
     "corp-eu: names of its secrets would be names of the source \"corp\" as well"},
};
/* clang-format on */

static void the_configuration_of_sources_is_checked(void **state)
{
    (void)state;
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        DF_JSON cJSON *sources = json(rows[i].sources);
        struct df_err err = {0};
        int result = df_secret_sources_check(sources, &err);
        if ((result == 0) != !rows[i].message ||
            (rows[i].message && !strstr(err.message, rows[i].message)))
            fail_msg("%s: \"%s\", instead of \"%s\"", rows[i].sources, err.message,
                     rows[i].message ? rows[i].message : "");
    }
}

static void there_are_not_more_sources_than_the_limit(void **state)
{
    (void)state;
    DF_JSON cJSON *sources = cJSON_CreateObject();
    struct df_err err = {0};
    for (int i = 0; i <= DF_LIMIT_SECRET_SOURCES; i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "s%d", i);
        assert_int_equal(df_secret_sources_check(sources, &err), 0);
        cJSON *source = json("{'type':'files','directory':'/s','executors':['*']}");
        assert_true(cJSON_AddItemToObject(sources, name, source));
    }
    assert_int_equal(df_secret_sources_check(sources, &err), -1);
    assert_non_null(strstr(err.message, "at most 16"));
}

static void a_name_says_which_source_a_secret_is_from(void **state)
{
    (void)state;
    assert_string_equal(df_secret_source_rest("corp", "corp-db"), "db");
    assert_string_equal(df_secret_source_rest("corp", "corp-db-1"), "db-1");
    static const char *const others[] = {"corp", "corp-", "corpdb", "cor-db", "db", ""};
    for (size_t i = 0; i < DF_ARRAY_SIZE(others); i++)
        assert_null(df_secret_source_rest("corp", others[i]));
}

static void a_source_of_secrets_by_name_allows_those_that_are_listed(void **state)
{
    (void)state;
    DF_JSON cJSON *source = json("{'secrets':['db','team-*']}");
    assert_true(df_secret_source_allows(source, "db"));
    assert_true(df_secret_source_allows(source, "team-a"));
    static const char *const others[] = {"db2", "d", "team", "a-team-a", "dayfly-key"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(others); i++)
        assert_false(df_secret_source_allows(source, others[i]));
}

/* ---- a vault with a source of files ---------------------------------------------------------- */

struct world {
    char *dir, *secrets; /* secrets: the directory of the source */
    cJSON *sources;
    struct df_vault *vault;
};

static int enter(void **state)
{
    struct world *w = calloc(1, sizeof(*w));
    struct df_sources *sources = NULL;
    if (!w || enter_scratch((void **)&w->dir) < 0)
        return -1;
    DF_FREE char *database = df_fs_join(w->dir, "dayfly.db"), *key = df_fs_join(w->dir, "key");
    w->secrets = df_fs_join(w->dir, "secrets");
    w->sources = json("{'corp':{'type':'files','executors':['db']}}");
    if (df_fs_mkdirs(w->secrets, 0700, NULL) < 0 ||
        df_json_add_str(w->sources->child, "directory", w->secrets, NULL) < 0)
        return -1;
    const struct df_sources_options o = {.sources = w->sources};
    if (df_vault_open(database, key, &w->vault, NULL) < 0 ||
        df_sources_open(&o, &sources, NULL) < 0)
        return -1;
    df_vault_set_sources(w->vault, sources);
    *state = w;
    return 0;
}

static int leave(void **state)
{
    struct world *w = *state;
    df_vault_close(w->vault);
    cJSON_Delete(w->sources);
    free(w->secrets);
    int result = leave_scratch((void **)&w->dir);
    free(w);
    return result;
}

#define source_test(f) cmocka_unit_test_setup_teardown(f, enter, leave)

/* path: below the directory of the secrets. */
static void write_secret(const struct world *w, const char *path, const char *text)
{
    DF_FREE char *full = df_fs_join(w->secrets, path), *directory = strdup(full);
    *strrchr(directory, '/') = '\0';
    assert_int_equal(df_fs_mkdirs(directory, 0700, NULL), 0);
    assert_int_equal(df_fs_write(full, text, strlen(text), 0600, NULL), 0);
}

static void link_to(const struct world *w, const char *path, const char *target)
{
    DF_FREE char *full = df_fs_join(w->secrets, path), *fresh = df_strf("%s.new", full);
    assert_int_equal(symlink(target, fresh), 0);
    assert_int_equal(rename(fresh, full), 0);
}

static void assert_read(const struct world *w, const char *name, const char *want)
{
    struct df_err err = {0};
    DF_SECRET_JSON cJSON *secret = NULL;
    if (df_vault_get(w->vault, name, &secret, &err) < 0)
        fail_msg("%s", err.message);
    DF_FREE char *text = df_json_print(secret);
    assert_string_equal(text, want);
}

static void assert_refused(const struct world *w, const char *name, enum df_err_class cls,
                           const char *reason, const char *words)
{
    struct df_err err = {0};
    cJSON *secret = NULL;
    assert_int_equal(df_vault_get(w->vault, name, &secret, &err), -1);
    assert_int_equal(err.cls, cls);
    assert_string_equal(err.reason, reason);
    if (!strstr(err.message, words))
        fail_msg("%s", err.message);
}

static void each_file_of_a_directory_is_a_key(void **state)
{
    const struct world *w = *state;
    write_secret(w, "db/password", "hunter2");
    assert_read(w, "corp-db", "{\"password\":\"hunter2\"}");
    write_secret(w, "db/password", "hunter3\n");
    assert_read(w, "corp-db", "{\"password\":\"hunter3\\n\"}");
    write_secret(w, "empty/.dockerconfigjson", "");
    assert_read(w, "corp-empty", "{\".dockerconfigjson\":\"\"}");
}

static void a_mounted_secret_is_read_through_its_link(void **state)
{
    const struct world *w = *state;
    write_secret(w, "db/..1/password", "one");
    link_to(w, "db/..data", "..1");
    link_to(w, "db/password", "..data/password");
    assert_read(w, "corp-db", "{\"password\":\"one\"}");
    write_secret(w, "db/..2/password", "two");
    link_to(w, "db/..data", "..2");
    assert_read(w, "corp-db", "{\"password\":\"two\"}");
}

/* Writes versions of a secret as a kubelet does, and removes each old one. */
struct writer {
    const struct world *world;
    atomic_bool stop;
    int versions;
};

static void *replace_versions(void *arg)
{
    struct writer *writer = arg;
    const struct world *w = writer->world;
    while (!atomic_load(&writer->stop)) {
        char path[64], text[16], target[16];
        int n = ++writer->versions;
        (void)snprintf(text, sizeof(text), "%d", n);
        (void)snprintf(target, sizeof(target), "..%d", n);
        for (char key = 'a'; key <= 'h'; key++) {
            (void)snprintf(path, sizeof(path), "db/%s/%c", target, key);
            write_secret(w, path, text);
        }
        link_to(w, "db/..data", target);
        (void)snprintf(path, sizeof(path), "db/..%d", n - 1);
        DF_FREE char *old = df_fs_join(w->secrets, path);
        if (df_fs_remove_tree(old, NULL) < 0)
            return NULL;
    }
    return NULL;
}

static void a_secret_is_never_half_of_one_version_and_half_of_another(void **state)
{
    const struct world *w = *state;
    struct writer writer = {.world = w};
    pthread_t thread;
    write_secret(w, "db/..0/a", "0");
    link_to(w, "db/..data", "..0");
    assert_int_equal(pthread_create(&thread, NULL, replace_versions, &writer), 0);
    for (int i = 0; i < 2000; i++) {
        struct df_err err = {0};
        DF_SECRET_JSON cJSON *secret = NULL;
        if (df_vault_get(w->vault, "corp-db", &secret, &err) < 0) {
            if (err.cls != DF_ERR_RETRY) /* the writer was faster, time and again */
                fail_msg("%s", err.message);
            continue;
        }
        const char *first = df_json_str(secret, "a");
        int keys = cJSON_GetArraySize(secret);
        assert_int_equal(keys, df_streq(first, "0") ? 1 : 8);
        for (const cJSON *item = secret->child; item; item = item->next)
            assert_string_equal(item->valuestring, first);
    }
    atomic_store(&writer.stop, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(writer.versions > 1);
}

static void no_link_leads_out_of_a_secret(void **state)
{
    const struct world *w = *state;
    write_secret(w, "other/password", "hunter2");
    link_to(w, "db", "other");
    assert_refused(w, "corp-db", DF_ERR_DENIED, "SecretSourceDenied", "secrets/db");
    write_secret(w, "out/user", "ada");
    link_to(w, "out/password", "../other/password");
    assert_refused(w, "corp-out", DF_ERR_SYSTEM, "SecretUnreadable", "password");
    static const char *const targets[] = {"../other", "..", "/etc"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(targets); i++) {
        link_to(w, "other/..data", targets[i]);
        assert_refused(w, "corp-other", DF_ERR_DENIED, "SecretSourceDenied", "secrets/other");
    }
}

static void what_is_no_text_is_named_without_its_value(void **state)
{
    const struct world *w = *state;
    write_secret(w, "db/password", "hunter2\xff");
    assert_refused(w, "corp-db", DF_ERR_SYSTEM, "SecretUnreadable", "password");
    write_secret(w, "name/a key", "x");
    assert_refused(w, "corp-name", DF_ERR_SYSTEM, "SecretUnreadable", "a key");
    write_secret(w, "pipe/a", "x");
    DF_FREE char *pipe = df_fs_join(w->secrets, "pipe/b");
    assert_int_equal(mkfifo(pipe, 0600), 0);
    assert_refused(w, "corp-pipe", DF_ERR_SYSTEM, "SecretUnreadable", "not a regular file");
}

static void values_have_the_cap_of_any_secret(void **state)
{
    const struct world *w = *state;
    DF_FREE char *big = malloc(DF_LIMIT_SECRET_VALUE + 2);
    assert_non_null(big);
    memset(big, 'x', DF_LIMIT_SECRET_VALUE + 1);
    big[DF_LIMIT_SECRET_VALUE + 1] = '\0';
    write_secret(w, "db/password", big);
    assert_refused(w, "corp-db", DF_ERR_SYSTEM, "SecretUnreadable", "password");
    for (int i = 0; i <= DF_LIMIT_SECRET_KEYS; i++) {
        char path[32];
        (void)snprintf(path, sizeof(path), "many/k%d", i);
        write_secret(w, path, "x");
    }
    assert_refused(w, "corp-many", DF_ERR_USER, "", "more than 256 keys");
}

static void what_is_not_there_is_told_with_its_place(void **state)
{
    const struct world *w = *state;
    assert_refused(w, "corp-none", DF_ERR_NOT_FOUND, "", "source corp");
    assert_refused(w, "corp-none", DF_ERR_NOT_FOUND, "", w->secrets);
    assert_refused(w, "none", DF_ERR_NOT_FOUND, "", "\"none\"");
    assert_int_equal(df_fs_remove_tree(w->secrets, NULL), 0);
    assert_refused(w, "corp-none", DF_ERR_DENIED, "SecretSourceDenied", w->secrets);
}

static void a_source_is_never_written(void **state)
{
    const struct world *w = *state;
    const struct df_vault_entry entry = {.key = "password", .value = "x", .n = 1};
    write_secret(w, "db/password", "hunter2");
    struct df_err err = {0};
    assert_int_equal(df_vault_put(w->vault, "corp-new", &entry, &err), -1);
    assert_string_equal(err.reason, "SecretReadOnly");
    assert_non_null(strstr(err.message, w->secrets));
    assert_int_equal(df_vault_delete(w->vault, "corp-db", NULL, &err), -1);
    assert_string_equal(err.reason, "SecretReadOnly");
    assert_read(w, "corp-db", "{\"password\":\"hunter2\"}");
    assert_int_equal(df_vault_put(w->vault, "corporate", &entry, &err), 0);
}

static void the_configuration_says_who_may_use_a_source(void **state)
{
    const struct world *w = *state;
    struct df_err err = {0};
    DF_JSON cJSON *use = NULL;
    assert_int_equal(df_vault_get_use(w->vault, "corp-none", &use, &err), 0);
    assert_int_equal(df_secret_use_check(use, DF_USED_SECRET("corp-none"), "db", &err), 0);
    assert_int_equal(df_secret_use_check(use, DF_USED_SECRET("corp-none"), "web", &err), -1);
    assert_string_equal(err.reason, "SecretNotAllowed");
    assert_non_null(strstr(err.message, "vault.sources.corp.executors"));
}

static void lists_have_the_names_of_sources_or_why_they_have_not(void **state)
{
    const struct world *w = *state;
    DF_JSON cJSON *list = NULL, *uses = NULL, *failed = NULL, *own = NULL;
    write_secret(w, "db/password", "hunter2");
    write_secret(w, "No_Label/password", "x");
    assert_int_equal(df_vault_list_sources(w->vault, &list, NULL), 0);
    DF_FREE char *text = df_json_print(list);
    assert_string_equal(
        text, "[{\"executors\":[\"db\"],\"source\":\"corp\",\"name\":\"corp-db\",\"keys\":[]}]");
    assert_int_equal(df_vault_list(w->vault, &own, NULL), 0);
    assert_int_equal(cJSON_GetArraySize(own), 0);
    assert_int_equal(df_fs_remove_tree(w->secrets, NULL), 0);
    assert_int_equal(df_vault_list_sources(w->vault, &failed, NULL), 0);
    assert_string_equal(df_json_str(failed->child, "name"), "corp-*");
    assert_non_null(strstr(df_json_str(failed->child, "message"), w->secrets));
    assert_int_equal(df_vault_list_uses(w->vault, &uses, NULL), 0);
    assert_string_equal(df_json_str(uses->child, "name"), "corp-*");
}

static void a_source_that_needs_a_cluster_is_told_without_one(void **state)
{
    (void)state;
    DF_JSON cJSON *sources = json("{'k':{'type':'kubernetes','executors':['*'],'secrets':['a']}}");
    const struct df_sources_options o = {.sources = sources};
    struct df_sources *s = NULL;
    struct df_err err = {0};
    assert_int_equal(df_sources_open(&o, &s, &err), -1);
    assert_int_equal(err.cls, DF_ERR_USER);
    assert_non_null(strstr(err.message, "vault.sources.k"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_configuration_of_sources_is_checked),
        cmocka_unit_test(there_are_not_more_sources_than_the_limit),
        cmocka_unit_test(a_name_says_which_source_a_secret_is_from),
        cmocka_unit_test(a_source_of_secrets_by_name_allows_those_that_are_listed),
        source_test(each_file_of_a_directory_is_a_key),
        source_test(a_mounted_secret_is_read_through_its_link),
        source_test(a_secret_is_never_half_of_one_version_and_half_of_another),
        source_test(no_link_leads_out_of_a_secret),
        source_test(what_is_no_text_is_named_without_its_value),
        source_test(values_have_the_cap_of_any_secret),
        source_test(what_is_not_there_is_told_with_its_place),
        source_test(a_source_is_never_written),
        source_test(the_configuration_says_who_may_use_a_source),
        source_test(lists_have_the_names_of_sources_or_why_they_have_not),
        cmocka_unit_test(a_source_that_needs_a_cluster_is_told_without_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
