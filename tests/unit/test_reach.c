#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/stat.h>

#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/hcl/calls.h"
#include "spawner/cli/reach.h"
#include "tests/unit/scratch.h"

/* ---- a tree ---- */

struct file {
    const char *path, *text;
};

static void put(const char *dir, const char *name, const char *text)
{
    DF_FREE char *path = df_fs_join(dir, name);
    struct df_err err = {0};
    DF_FREE char *parent = strdup(path);
    *strrchr(parent, '/') = '\0';
    if (df_fs_mkdirs(parent, 0700, &err) < 0 ||
        df_fs_write(path, text, strlen(text), 0600, &err) < 0)
        fail_msg("%s", err.message);
}

static void put_all(const char *dir, const struct file *files)
{
    for (; files->path; files++)
        put(dir, files->path, files->text);
}

/* ---- what a module needs ---- */

/* Checks the URL and folder of the wider source; wanted NULL: there is none. */
static void check_wide(const char *dir, const char *module, const char *folder, const char *url,
                       const char *wanted)
{
    DF_FREE char *text = df_strf("file://%s/%s", dir, module);
    DF_FREE char *top = df_strf("file://%s%s%s", dir, *url ? "/" : "", url);
    DF_JSON cJSON *source = cJSON_CreateObject();
    DF_REACH struct df_reach reach = {0};
    struct df_err err = {0};
    assert_int_equal(df_json_add_str(source, "url", text, NULL), 0);
    assert_int_equal(df_json_add_str(source, "kind", "directory", NULL), 0);
    assert_int_equal(df_json_add_str(source, "folder", folder, NULL), 0);
    if (df_reach_widen(source, true, &reach, &err) < 0)
        fail_msg("%s: %s", module, err.message);
    const cJSON *wide = reach.source;
    if (!wanted != !wide)
        fail_msg("%s: %s", module, wide ? df_json_str(wide, "url") : "no wider source");
    if (!wanted)
        return;
    assert_non_null(reach.why);
    if (!df_streq(df_json_str(wide, "url"), top) || !df_streq(df_json_str(wide, "folder"), wanted))
        fail_msg("%s: %s, folder %s", module, df_json_str(wide, "url"),
                 df_json_str(wide, "folder"));
}

static const char called[] = "module \"m\" {\n  source = \"%s\"\n}\n";

static void call(const char *dir, const char *from, const char *source)
{
    DF_FREE char *name = df_strf("%s/main.tf", from);
    DF_BUF struct df_buf text = DF_BUF_INIT(1000);
    (void)df_buf_addf(&text, "%.*s%s%s", (int)(strstr(called, "%s") - called), called, source,
                      strstr(called, "%s") + 2);
    put(dir, name, df_buf_str(&text));
}

static void the_smallest_directory_with_all_called_modules_comes_along(void **state)
{
    const char *dir = *state;
    put(dir, "label/main.tf", "");
    call(dir, "label/examples/complete", "../../");
    check_wide(dir, "label/examples/complete", NULL, "label", "examples/complete");
    call(dir, "label/wrappers", "../");
    check_wide(dir, "label/wrappers", NULL, "label", "wrappers");

    /* live -> modules/app -> modules/net -> shared */
    call(dir, "infra/live/dev", "../../modules/app");
    call(dir, "infra/modules/app", "../net");
    call(dir, "infra/modules/net", "../../../shared/tags");
    check_wide(dir, "infra/live/dev", NULL, "infra", "live/dev");
    put(dir, "shared/tags/main.tf.json", "{}");
    check_wide(dir, "infra/live/dev", NULL, "", "infra/live/dev");
}

static void what_a_source_has_is_not_looked_for_elsewhere(void **state)
{
    const char *dir = *state;
    call(dir, "net/modules/a", "../b");
    call(dir, "net/modules/b", "../a"); /* and round again */
    call(dir, "net", "./modules/a");
    check_wide(dir, "net", NULL, "", NULL);
    call(dir, "infra/live/dev", "../../net");
    put(dir, "infra/net/main.tf", "");
    check_wide(dir, "infra", "live/dev", "", NULL);
    check_wide(dir, "infra/live", "dev", "infra", "live/dev");
    call(dir, "gone", "../absent");
    check_wide(dir, "gone", NULL, "", NULL);
    check_wide(dir, "absent", NULL, "", NULL);
    put(dir, "far/main.tf", "module \"m\" {\n source = \"git::https://h/../x\"\n}\n");
    check_wide(dir, "far", NULL, "", NULL);
}

static void a_file_that_a_module_names_comes_along_if_it_is_there(void **state)
{
    const char *dir = *state;
    static const struct file files[] = {
        {"policies/a.json", "{}"},
        {"r/module/main.tf", "locals { a = file(\"${path.module}/../../policies/a.json\") }"},
        {"r/root/main.tf", "locals { a = jsondecode(file(\"../../policies/a.json\")) }"},
        {"r/set/main.tf", "locals { a = fileset(\"${path.root}/../../policies\", \"*\") }"},
        {"r/part/main.tf", "locals { a = \"${path.module}/../../policies/${var.x}.json\" }"},
        {"r/json/main.tf.json", "{\"locals\": {\"a\": \"${path.module}/../../policies/a.json\"}}"},
        {"r/gone/main.tf", "locals { a = file(\"../../policies/b.json\") }"},
        {"r/comment/main.tf", "# file(\"../../policies/a.json\")\n"},
        {"r/dots/main.tf", "locals { a = replace(trimprefix(x, \"../\"), \"..\", \".\") }"},
        {0}};
    static const char *const found[] = {"module", "root", "set", "part", "json"};
    static const char *const none[] = {"gone", "comment", "dots"};
    put_all(dir, files);
    for (size_t i = 0; i < DF_ARRAY_SIZE(found); i++) {
        DF_FREE char *module = df_strf("r/%s", found[i]);
        check_wide(dir, module, NULL, "", module);
    }
    for (size_t i = 0; i < DF_ARRAY_SIZE(none); i++) {
        DF_FREE char *module = df_strf("r/%s", none[i]);
        check_wide(dir, module, NULL, "", NULL);
    }
}

/* ---- what is never taken along ---- */

static void check_refused(const char *dir, const char *word)
{
    DF_FREE char *url = df_strf("file://%s/x/live", dir);
    DF_JSON cJSON *source = cJSON_CreateObject();
    struct df_reach reach = {0};
    struct df_err err = {0};
    assert_int_equal(df_json_add_str(source, "url", url, NULL), 0);
    assert_int_equal(df_json_add_str(source, "kind", "directory", NULL), 0);
    assert_int_equal(df_reach_widen(source, true, &reach, &err), -1);
    assert_int_equal(err.cls, DF_ERR_USER);
    if (!strstr(err.message, word) || !strstr(err.message, "../../lib in "))
        fail_msg("%s", err.message);
}

/* Checks that "../../lib/main.tf" of x/live is left, with all of dir as the way out. */
static void check_left(const char *dir, bool guess, const char *fault)
{
    DF_FREE char *url = df_strf("file://%s/x/live", dir);
    DF_JSON cJSON *source = cJSON_CreateObject();
    DF_REACH struct df_reach reach = {0};
    assert_int_equal(df_json_add_str(source, "url", url, NULL), 0);
    assert_int_equal(df_json_add_str(source, "kind", "directory", NULL), 0);
    assert_int_equal(df_reach_widen(source, guess, &reach, NULL), 0);
    assert_null(reach.source);
    assert_non_null(reach.left);
    assert_true(df_starts_with(reach.left, "../../lib/main.tf in "));
    assert_string_equal(reach.left_top, dir);
    assert_string_equal(reach.left_folder, "x/live");
    assert_true(df_streq(reach.left_fault, fault) || reach.left_fault == fault);
}

static void what_only_a_string_names_is_left_where_nothing_is_guessed(void **state)
{
    const char *dir = *state;
    put(dir, "lib/main.tf", "");
    put(dir, "x/live/main.tf", "locals { a = \"../../lib/main.tf\" }");
    check_wide(dir, "x/live", NULL, "", "x/live");
    check_left(dir, false, NULL);

    /* A call brings it along after all. */
    call(dir, "x/live/sub", "../../../lib");
    put(dir, "x/live/main.tf",
        "locals { a = \"../../lib/main.tf\" }\nmodule \"m\" {\n source = \"./sub\"\n}\n");
    DF_FREE char *url = df_strf("file://%s/x/live", dir);
    DF_JSON cJSON *source = cJSON_CreateObject();
    DF_REACH struct df_reach reach = {0};
    assert_int_equal(df_json_add_str(source, "url", url, NULL), 0);
    assert_int_equal(df_json_add_str(source, "kind", "directory", NULL), 0);
    assert_int_equal(df_reach_widen(source, false, &reach, NULL), 0);
    assert_non_null(reach.source);
    assert_null(reach.left);
}

static void a_home_directory_is_not_copied_for_a_call(void **state)
{
    const char *dir = *state;
    DF_FREE char *below = df_fs_join(dir, "x");
    char **before = environ;
    call(dir, "x/live", "../../lib");
    put(dir, "lib/main.tf", "");
    char at_home[512], above[512], elsewhere[] = "HOME=/nonexistent";
    (void)snprintf(at_home, sizeof(at_home), "HOME=%s", dir);
    (void)snprintf(above, sizeof(above), "HOME=%s", below);

    environ = (char *[]){at_home, NULL};
    check_refused(dir, "your home directory");
    environ = (char *[]){above, NULL};
    check_refused(dir, "above your home directory");
    environ = (char *[]){elsewhere, NULL};
    check_wide(dir, "x/live", NULL, "", "x/live");
    assert_int_equal(chmod(dir, 01777), 0);
    check_refused(dir, "a directory of all users");

    /* Of a file it is not certain that the module reads it. */
    put(dir, "x/live/main.tf", "locals { a = \"../../lib/main.tf\" }");
    check_wide(dir, "x/live", NULL, "", NULL);
    check_left(dir, true, "a directory of all users");
    environ = before;
}

static int count_call(void *arg, const struct df_hcl_call *c, struct df_err *err)
{
    (void)c, (void)err;
    ++*(size_t *)arg;
    return 0;
}

static void more_local_modules_than_any_project_has_are_refused(void **state)
{
    const char *dir = *state;
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_MIB);
    struct df_err err = {0};
    size_t count = 0;
    for (int i = 0; i < DF_LIMIT_LOCAL_MODULES; i++)
        (void)df_buf_addf(&text, "module \"m%d\" {\n  source = \"./m%d\"\n}\n", i, i);
    put(dir, "main.tf", df_buf_str(&text));
    assert_int_equal(df_hcl_calls(dir, DF_HCL_ANY, count_call, &count, &err), -1);
    assert_int_equal(err.cls, DF_ERR_LIMIT);
    assert_int_equal(count, DF_LIMIT_LOCAL_MODULES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scratch_test(the_smallest_directory_with_all_called_modules_comes_along),
        scratch_test(what_a_source_has_is_not_looked_for_elsewhere),
        scratch_test(a_file_that_a_module_names_comes_along_if_it_is_there),
        scratch_test(what_only_a_string_names_is_left_where_nothing_is_guessed),
        scratch_test(a_home_directory_is_not_copied_for_a_call),
        scratch_test(more_local_modules_than_any_project_has_are_refused),
    };
    return cmocka_run_group_tests_name("reach", tests, NULL, NULL);
}
