#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/providers/cli_file.h"
#include "tests/unit/scratch.h"

static const char tokens[] = "{\"credentials\":{\"a.example\":{\"token\":\"new\"},"
                             "\"b.example\":{\"token\":\"of-b\"}}}";

static void put(const char *dir, const char *name, const char *text)
{
    DF_FREE char *path = df_fs_join(dir, name), *parent = strdup(path);
    struct df_err err = {0};
    *strrchr(parent, '/') = '\0';
    if (df_fs_mkdirs(parent, 0700, &err) < 0 ||
        df_fs_write(path, text, strlen(text), 0600, &err) < 0)
        fail_msg("%s", err.message);
}

static struct df_cli_file file_of(bool is_terraform, const char *named)
{
    struct df_cli_file f = {0};
    struct df_err err = {0};
    if (df_cli_file_read(is_terraform, named, &f, &err) < 0)
        fail_msg("%s", err.message);
    return f;
}

static void check(bool is_terraform, const char *text, const char *names)
{
    DF_CLI_FILE struct df_cli_file f = file_of(is_terraform, NULL);
    DF_FREE char *all = df_strs_join(&f.names, " ");
    if (text)
        assert_string_equal(f.text, text);
    else
        assert_null(f.text);
    assert_string_equal(all, names);
}

/* The test's own HOME, and nothing else. */
static char home[512], xdg[512];
static char *own_environment[3];
static char **before;

static int enter(void **state)
{
    if (enter_scratch(state) < 0)
        return -1;
    before = environ;
    (void)snprintf(home, sizeof(home), "HOME=%s", (char *)*state);
    own_environment[0] = home;
    own_environment[1] = NULL;
    environ = own_environment;
    return 0;
}

static int leave(void **state)
{
    environ = before;
    return leave_scratch(state);
}

static void files_are_found_where_the_tools_find_them(void **state)
{
    const char *dir = *state;
    (void)snprintf(xdg, sizeof(xdg), "XDG_CONFIG_HOME=%s/.config", dir);
    own_environment[1] = xdg;
    own_environment[2] = NULL;
    check(false, NULL, "");
    put(dir, ".config/opentofu/tofurc", "# xdg");
    check(false, "# xdg\n", "~/.config/opentofu/tofurc");
    check(true, NULL, "");
    put(dir, ".terraformrc", "# old");
    check(false, "# old\n", "~/.terraformrc");
    check(true, "# old\n", "~/.terraformrc");
    put(dir, ".tofurc", "# new");
    check(false, "# new\n", "~/.tofurc");
    check(true, "# old\n", "~/.terraformrc");
}

static void tokens_of_login_are_added_and_those_of_the_file_come_first(void **state)
{
    const char *dir = *state;
    put(dir, ".terraform.d/credentials.tfrc.json", tokens);
    check(true,
          "credentials \"a.example\" {\n  token = \"new\"\n}\n"
          "credentials \"b.example\" {\n  token = \"of-b\"\n}\n",
          "~/.terraform.d/credentials.tfrc.json");
    put(dir, ".terraformrc", "credentials \"a.example\" {\n  token = \"mine\"\n}");
    check(true,
          "credentials \"a.example\" {\n  token = \"mine\"\n}\n"
          "credentials \"b.example\" {\n  token = \"of-b\"\n}\n",
          "~/.terraformrc ~/.terraform.d/credentials.tfrc.json");
    put(dir, ".terraformrc", " {\"credentials\":{\"a.example\":{\"token\":\"mine\"}}}");
    check(
        true,
        "{\"credentials\":{\"a.example\":{\"token\":\"mine\"},\"b.example\":{\"token\":\"of-b\"}}}",
        "~/.terraformrc ~/.terraform.d/credentials.tfrc.json");
    put(dir, "named", "# alone");
    DF_FREE char *path = df_fs_join(dir, "named");
    DF_CLI_FILE struct df_cli_file f = file_of(true, path);
    assert_string_equal(f.text, "# alone\n"); /* as the tools do */
}

static void the_plugin_cache_is_left_out_and_blocks_are_seen(void **state)
{
    const char *dir = *state;
    put(dir, ".tofurc",
        "plugin_cache_dir   = \"$HOME/x\"\n  plugin_cache_may_break_dependency_lock_file=true\n"
        "plugin_cache_dirs = 1\ndisable_checkpoint = true\n"
        "provider_installation {\n}\ncredentials_helper \"x\" {\n}\n");
    DF_CLI_FILE struct df_cli_file f = file_of(false, NULL);
    assert_string_equal(f.text, "plugin_cache_dirs = 1\ndisable_checkpoint = true\n"
                                "provider_installation {\n}\ncredentials_helper \"x\" {\n}\n");
    assert_true(f.has_mirror && f.has_helper);
    put(dir, ".tofurc", "{\"plugin_cache_dir\":\"x\",\"provider_installation\":{}}");
    DF_CLI_FILE struct df_cli_file j = file_of(false, NULL);
    assert_string_equal(j.text, "{\"provider_installation\":{}}");
    assert_true(j.has_mirror && !j.has_helper);
}

static void refused(const char *dir, const char *name, const char *text, enum df_err_class cls)
{
    struct df_cli_file f = {0};
    struct df_err err = {0};
    put(dir, name, text);
    assert_int_equal(df_cli_file_read(false, NULL, &f, &err), -1);
    assert_int_equal(err.cls, cls);
    assert_null(f.text);
}

static void what_is_no_configuration_or_beyond_any_is_refused(void **state)
{
    const char *dir = *state;
    DF_FREE char *long_text = calloc(1, DF_LIMIT_CLI_FILE + 2);
    memset(long_text, '#', DF_LIMIT_CLI_FILE + 1);
    refused(dir, ".tofurc", "{", DF_ERR_USER);
    refused(dir, ".tofurc", long_text, DF_ERR_LIMIT);
    put(dir, ".tofurc", "");
    refused(dir, ".terraform.d/credentials.tfrc.json", "{", DF_ERR_USER);
    refused(dir, ".terraform.d/credentials.tfrc.json",
            "{\"credentials\":{\"h\":{\"token\":\"a\\\"b\"}}}", DF_ERR_USER);
    refused(dir, ".terraform.d/credentials.tfrc.json",
            "{\"credentials\":{\"h\":{\"token\":\"${x}\"}}}", DF_ERR_USER);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, enter, leave)
    const struct CMUnitTest tests[] = {
        T(files_are_found_where_the_tools_find_them),
        T(tokens_of_login_are_added_and_those_of_the_file_come_first),
        T(the_plugin_cache_is_left_out_and_blocks_are_seen),
        T(what_is_no_configuration_or_beyond_any_is_refused),
    };
    return cmocka_run_group_tests_name("cli_file", tests, NULL, NULL);
}
