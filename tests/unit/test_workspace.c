#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "common/base/fs.h"
#include "runner/tofu/cliconfig.h"
#include "runner/tofu/workspace.h"

extern char **environ;

struct place {
    char dir[64];
    char *module;
    struct df_dirs dirs;
    char **environ_before;
};

static int setup(void **state)
{
    struct place *p = calloc(1, sizeof(*p));
    (void)snprintf(p->dir, sizeof(p->dir), "/tmp/dayfly-work-XXXXXX");
    assert_non_null(mkdtemp(p->dir));
    p->module = df_fs_join(p->dir, "module");
    assert_int_equal(df_fs_mkdirs(p->module, 0755, NULL), 0);
    assert_int_equal(df_dirs_make(p->dir, &p->dirs, NULL), 0);
    p->environ_before = environ;
    *state = p;
    return 0;
}

static int teardown(void **state)
{
    struct place *p = *state;
    environ = p->environ_before;
    int failed = df_fs_remove_tree(p->dir, NULL);
    df_dirs_free(&p->dirs);
    free(p->module);
    free(p);
    return failed;
}

/* ---- directories ---- */

static bool is_empty_directory(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && rmdir(path) == 0 &&
           mkdir(path, 0700) == 0;
}

static void put_in(const char *dir, const char *name)
{
    DF_FREE char *path = df_fs_join(dir, name);
    assert_int_equal(df_fs_write(path, "x", 1, 0600, NULL), 0);
}

/* As code of the plan's module may leave them. */
static void directories_of_the_next_step_are_new_and_empty(void **state)
{
    const struct place *p = *state;
    const struct df_dirs *d = &p->dirs;
    const char *const all[] = {d->spool, d->fetch, d->secret, d->home, d->temporary};
    DF_FREE char *fifo = df_fs_join(d->spool, "log"), *kept = df_fs_join(p->module, "x");
    struct df_err err = {0};
    put_in(d->source, "main.tf");
    put_in(p->module, "x");
    assert_int_equal(mkfifo(fifo, 0600), 0);
    put_in(d->fetch, "askpass");
    assert_int_equal(chmod(d->fetch, 0500), 0);
    assert_int_equal(rmdir(d->secret), 0);
    assert_int_equal(symlink(p->module, d->secret), 0);
    assert_int_equal(rmdir(d->home), 0);
    assert_int_equal(mkfifo(d->home, 0600), 0);
    assert_int_equal(rmdir(d->temporary), 0);
    if (df_dirs_renew(d, &err) < 0)
        fail_msg("%s", err.message);
    for (size_t i = 0; i < DF_ARRAY_SIZE(all); i++)
        if (!is_empty_directory(all[i]))
            fail_msg("%s", all[i]);
    assert_true(df_fs_exists(kept));
    assert_false(is_empty_directory(d->source));
}

static void a_link_to_the_source_is_not_followed_to_the_next_step(void **state)
{
    const struct place *p = *state;
    struct df_err err = {0};
    assert_int_equal(rmdir(p->dirs.source), 0);
    assert_int_equal(symlink(p->module, p->dirs.source), 0);
    assert_int_equal(df_dirs_renew(&p->dirs, &err), -1);
    assert_int_equal(err.cls, DF_ERR_CONFLICT);
}

static cJSON *parse(const char *text)
{
    cJSON *j = NULL;
    struct df_err err = {0};
    if (df_json_parse(text, strlen(text), &j, &err) < 0)
        fail_msg("%s", err.message);
    return j;
}

static const struct df_tool tool = {.version = {.number = {1, 12, 6}}};

static struct df_workspace prepare(const struct place *p, const char *document)
{
    DF_JSON cJSON *step = parse(document);
    struct df_workspace w = {0};
    struct df_err err = {0};
    if (df_workspace_prepare(step, &tool, &p->dirs, p->module, &w, &err) < 0)
        fail_msg("%s", err.message);
    return w;
}

static void refused(const struct place *p, const char *document, const char *reason,
                    const char *word)
{
    DF_JSON cJSON *step = parse(document);
    struct df_workspace w = {0};
    struct df_err err = {0};
    if (df_workspace_prepare(step, &tool, &p->dirs, p->module, &w, &err) == 0)
        fail_msg("taken: %s", document);
    assert_string_equal(err.reason, reason);
    if (!strstr(err.message, word))
        fail_msg("\"%s\" is not in: %s", word, err.message);
}

static void put(const char *dir, const char *name, const char *text)
{
    DF_FREE char *path = df_fs_join(dir, name);
    assert_int_equal(df_fs_write(path, text, strlen(text), 0644, NULL), 0);
}

static char *content(const char *dir, const char *name)
{
    DF_FREE char *path = df_fs_join(dir, name);
    struct df_buf b = DF_BUF_INIT(DF_MIB);
    assert_int_equal(df_fs_read(path, &b, NULL), 0);
    return df_buf_take(&b);
}

#define MANAGED                                                                                    \
    "\"state\":{\"type\":\"managed\",\"address\":\"http://127.0.0.1:1/s\",\"username\":\"u\","     \
    "\"password\":\"pw\"}"
#define BACKEND "zzzz_dayfly_override.tf.json"
#define VARIABLES "zzzz_dayfly.auto.tfvars.json"

/* ---- state ---- */

static void managed_state_is_an_http_backend_told_by_the_environment(void **state)
{
    const struct place *p = *state;
    DF_CLEANUP(df_workspace_free) struct df_workspace w = prepare(p, "{" MANAGED "}");
    DF_FREE char *backend = content(p->module, BACKEND);
    assert_string_equal(backend, "{\"terraform\":{\"backend\":{\"http\":{}}}}");
    assert_string_equal(df_strs_get_env(&w.env, "TF_HTTP_ADDRESS"), "http://127.0.0.1:1/s");
    assert_string_equal(df_strs_get_env(&w.env, "TF_HTTP_LOCK_ADDRESS"), "http://127.0.0.1:1/s");
    assert_string_equal(df_strs_get_env(&w.env, "TF_HTTP_UNLOCK_METHOD"), "UNLOCK");
    assert_string_equal(df_strs_get_env(&w.env, "TF_HTTP_PASSWORD"), "pw");
}

static void other_states_become_their_backend_with_its_settings(void **state)
{
    const struct place *p = *state;
    DF_CLEANUP(df_workspace_free)
    struct df_workspace w =
        prepare(p, "{\"state\":{\"type\":\"s3\",\"config\":{\"bucket\":\"b\",\"key\":\"a/$c\"}}}");
    DF_FREE char *backend = content(p->module, BACKEND);
    assert_string_equal(
        backend, "{\"terraform\":{\"backend\":{\"s3\":{\"bucket\":\"b\",\"key\":\"a/$c\"}}}}");
    assert_null(df_strs_get_env(&w.env, "TF_HTTP_ADDRESS"));
}

/* The tool reads "${" and "%{" of a text, and of a key within a setting, as a template. */
static void settings_are_literal_texts(void **state)
{
    const struct place *p = *state;
    DF_CLEANUP(df_workspace_free)
    struct df_workspace w =
        prepare(p, "{\"state\":{\"type\":\"s3\",\"config\":{\"assume_role\":{\"policy\":\"$${a}\","
                   "\"tags\":{\"%{k\":\"v\"}},\"n\":[1,true]}}}");
    DF_FREE char *backend = content(p->module, BACKEND);
    assert_string_equal(backend, "{\"terraform\":{\"backend\":{\"s3\":{\"assume_role\":{\"policy\":"
                                 "\"${\\\"$\\\"}${\\\"$\\\"}{a}\",\"tags\":{\"${\\\"%\\\"}{k\":"
                                 "\"v\"}},\"n\":[1,true]}}}}");
}

static void a_state_that_would_be_lost_or_has_no_place_is_refused(void **state)
{
    const struct place *p = *state;
    refused(p, "{}", "InvalidStep", "state.type");
    refused(p, "{\"state\":{\"type\":\"managed\"}}", "InvalidStep", "state.address");
    refused(p, "{\"state\":{\"type\":\"local\"}}", "InvalidStep", "absolute");
    refused(p, "{\"state\":{\"type\":\"local\",\"config\":{\"path\":\"x.tfstate\"}}}",
            "InvalidStep", "absolute");
}

/* ---- the module ---- */

static void variables_are_written_as_they_are(void **state)
{
    const struct place *p = *state;
    DF_CLEANUP(df_workspace_free)
    struct df_workspace w =
        prepare(p, "{" MANAGED ",\"variables\":{\"region\":\"eu\",\"n\":9007199254740993,"
                   "\"l\":[1,null,{\"a\":true}]}}");
    DF_FREE char *text = content(p->module, VARIABLES);
    assert_string_equal(text,
                        "{\"region\":\"eu\",\"n\":9007199254740993,\"l\":[1,null,{\"a\":true}]}");
}

static void links_of_the_module_are_replaced_not_followed(void **state)
{
    const struct place *p = *state;
    DF_FREE char *victim = df_fs_join(p->dir, "victim");
    DF_FREE char *link = df_fs_join(p->module, BACKEND);
    put(p->dir, "victim", "mine");
    assert_int_equal(symlink(victim, link), 0);
    DF_CLEANUP(df_workspace_free) struct df_workspace w = prepare(p, "{" MANAGED "}");
    DF_FREE char *text = content(p->dir, "victim");
    assert_string_equal(text, "mine");
}

static void the_backend_of_the_module_itself_is_left_as_it_stands(void **state)
{
    const struct place *p = *state;
    DF_CLEANUP(df_workspace_free)
    struct df_workspace w = prepare(p, "{\"state\":{\"type\":\"module\"}}");
    DF_FREE char *path = df_fs_join(p->module, BACKEND);
    assert_false(df_fs_exists(path));
    assert_null(df_strs_get_env(&w.env, "TF_HTTP_ADDRESS"));
}

/* ---- environment ---- */

static void nothing_is_inherited_but_the_list(void **state)
{
    const struct place *p = *state;
    static const char *const stray[] = {"PATH=/bin",
                                        "LANG=C.UTF-8",
                                        "HTTPS_PROXY=http://proxy:1",
                                        "HOME=/home/me",
                                        "TF_VAR_x=1",
                                        "TF_CLI_ARGS=-x",
                                        "TF_WORKSPACE=w",
                                        "TF_LOG=trace",
                                        "AWS_SECRET_ACCESS_KEY=k",
                                        "TF_CLI_CONFIG_FILE=/home/me/.terraformrc"};
    DF_STRS struct df_strs machine = {0};
    for (size_t i = 0; i < DF_ARRAY_SIZE(stray); i++)
        (void)df_strs_add(&machine, stray[i]);
    environ = machine.items;
    DF_CLEANUP(df_workspace_free) struct df_workspace w = prepare(p, "{" MANAGED "}");
    assert_string_equal(df_strs_get_env(&w.env, "PATH"), "/bin");
    assert_string_equal(df_strs_get_env(&w.env, "LANG"), "C.UTF-8");
    assert_string_equal(df_strs_get_env(&w.env, "HTTPS_PROXY"), "http://proxy:1");
    assert_string_equal(df_strs_get_env(&w.env, "HOME"), p->dirs.home);
    assert_string_equal(df_strs_get_env(&w.env, "TMPDIR"), p->dirs.temporary);
    assert_string_equal(df_strs_get_env(&w.env, "TF_IN_AUTOMATION"), "1");
    assert_string_equal(df_strs_get_env(&w.env, "CHECKPOINT_DISABLE"), "1");
    static const char *const absent[] = {"TF_VAR_x", "TF_CLI_ARGS", "TF_WORKSPACE", "TF_LOG",
                                         "AWS_SECRET_ACCESS_KEY"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(absent); i++)
        assert_null(df_strs_get_env(&w.env, absent[i]));
    environ = p->environ_before;
    assert_true(df_starts_with(df_strs_get_env(&w.env, "TF_CLI_CONFIG_FILE"), p->dirs.secret));
}

static void no_proxy_stands_between_tofu_and_the_spawner(void **state)
{
    const struct place *p = *state;
    static const struct {
        const char *environment, *no_proxy;
    } rows[] = {
        {"{}", NULL},
        {"{\"NO_PROXY\":\"a.example\"}", "a.example"},
        {"{\"HTTP_PROXY\":\"http://proxy:1\"}", "127.0.0.1"},
        {"{\"https_proxy\":\"http://proxy:1\",\"no_proxy\":\"a.example,b\"}",
         "a.example,b,127.0.0.1"},
        {"{\"HTTPS_PROXY\":\"http://proxy:1\",\"no_proxy\":\"lower\",\"NO_PROXY\":\"upper\"}",
         "upper,127.0.0.1"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(rows); i++) {
        DF_FREE char *step = df_strf("{" MANAGED ",\"environment\":%s}", rows[i].environment);
        DF_CLEANUP(df_workspace_free) struct df_workspace w = prepare(p, step);
        if (!rows[i].no_proxy)
            assert_null(df_strs_get_env(&w.env, "NO_PROXY"));
        else
            assert_string_equal(df_strs_get_env(&w.env, "NO_PROXY"), rows[i].no_proxy);
        if (i >= 2)
            assert_string_equal(df_strs_get_env(&w.env, "no_proxy"), rows[i].no_proxy);
    }
}

static void the_step_s_environment_is_added_but_cannot_lead_tofu_astray(void **state)
{
    const struct place *p = *state;
    DF_CLEANUP(df_workspace_free)
    struct df_workspace w =
        prepare(p, "{" MANAGED
                   ",\"environment\":{\"AWS_REGION\":\"eu\",\"TF_HTTP_ADDRESS\":\"http://evil\","
                   "\"TF_CLI_CONFIG_FILE\":\"/evil\",\"TF_DATA_DIR\":\"/evil\"},"
                   "\"secretEnvironment\":{\"TF_VAR_password\":\"s3cret\"}}");
    assert_string_equal(df_strs_get_env(&w.env, "AWS_REGION"), "eu");
    assert_string_equal(df_strs_get_env(&w.env, "TF_VAR_password"), "s3cret");
    assert_string_equal(df_strs_get_env(&w.env, "TF_HTTP_ADDRESS"), "http://127.0.0.1:1/s");
    assert_string_equal(df_strs_get_env(&w.env, "TF_DATA_DIR"), ".terraform");
    assert_true(df_starts_with(df_strs_get_env(&w.env, "TF_CLI_CONFIG_FILE"), p->dirs.secret));
}

static void files_of_the_step_are_private_and_named_by_their_path(void **state)
{
    const struct place *p = *state;
    DF_CLEANUP(df_workspace_free)
    struct df_workspace w =
        prepare(p, "{" MANAGED ",\"files\":{\"key.json\":\"{}\"},"
                   "\"environment\":{\"GOOGLE\":\"@files/key.json\",\"NO\":\"@files/other\","
                   "\"SSH\":\"ssh -i '@files/key.json' -o X=@files/no @files/\"}}");
    const char *path = df_strs_get_env(&w.env, "GOOGLE");
    assert_true(df_starts_with(path, p->dirs.secret));
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_string_equal(df_strs_get_env(&w.env, "NO"), "@files/other");
    DF_FREE char *command = df_strf("ssh -i '%s' -o X=@files/no @files/", path);
    assert_string_equal(df_strs_get_env(&w.env, "SSH"), command);
}

static void names_that_are_none_are_refused(void **state)
{
    const struct place *p = *state;
    refused(p, "{" MANAGED ",\"files\":{\"../x\":\"\"}}", "InvalidStep", "../x");
    refused(p, "{" MANAGED ",\"files\":{\"\":\"\"}}", "InvalidStep", "files");
    refused(p, "{" MANAGED ",\"files\":{\"x\":1}}", "InvalidStep", "files");
    refused(p, "{" MANAGED ",\"environment\":{\"A=B\":\"\"}}", "InvalidStep", "A=B");
    refused(p, "{" MANAGED ",\"secretEnvironment\":{\"A\":{}}}", "InvalidStep", "A");
}

/* ---- CLI configuration ---- */

static char *cli_config(const struct place *p, const char *providers)
{
    DF_JSON cJSON *j = parse(providers);
    DF_FREE char *path = df_fs_join(p->dir, "cli");
    struct df_err err = {0};
    if (df_cliconfig_write(j, NULL, path, &err) < 0)
        fail_msg("%s", err.message);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    return content(p->dir, "cli");
}

static void the_cli_configuration_says_what_the_step_says(void **state)
{
    const struct place *p = *state;
    static const char *const table[][2] = {
        {"{}", "{}\n"},
        {"{\"pluginCacheDirectory\":null,\"credentials\":{}}", "{}\n"},
        {"{\"filesystemMirror\":\"/m\",\"networkMirror\":\"https://n/\"}",
         "{\"provider_installation\":{\"filesystem_mirror\":[{\"path\":\"/m\"}],"
         "\"network_mirror\":[{\"url\":\"https://n/\"}]}}\n"},
        {"{\"pluginCacheDirectory\":\"/init/only\",\"ociMirror\":\"r/${type}\"}",
         "{\"provider_installation\":{\"oci_mirror\":[{\"repository_template\":"
         "\"r/\\u0024{type}\"}]}}\n"},
        {"{\"credentials\":{\"registry.example\":\"a${b}\\\"\"}}",
         "{\"credentials\":{\"registry.example\":{\"token\":\"a\\u0024{b}\\\"\"}}}\n"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(table); i++) {
        DF_FREE char *text = cli_config(p, table[i][0]);
        assert_string_equal(text, table[i][1]);
    }
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(directories_of_the_next_step_are_new_and_empty),
        T(a_link_to_the_source_is_not_followed_to_the_next_step),
        T(managed_state_is_an_http_backend_told_by_the_environment),
        T(other_states_become_their_backend_with_its_settings),
        T(settings_are_literal_texts),
        T(a_state_that_would_be_lost_or_has_no_place_is_refused),
        T(variables_are_written_as_they_are),
        T(links_of_the_module_are_replaced_not_followed),
        T(the_backend_of_the_module_itself_is_left_as_it_stands),
        T(nothing_is_inherited_but_the_list),
        T(no_proxy_stands_between_tofu_and_the_spawner),
        T(the_step_s_environment_is_added_but_cannot_lead_tofu_astray),
        T(files_of_the_step_are_private_and_named_by_their_path),
        T(names_that_are_none_are_refused),
        T(the_cli_configuration_says_what_the_step_says),
    };
    return cmocka_run_group_tests_name("workspace", tests, NULL, NULL);
}
