/* What comes from a step's own plugin cache into the shared one, whatever a module left there. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "common/base/platform.h"
#include "runner/tofu/package.h"
#include "runner/tofu/plugin_stage.h"
#include "tests/unit/scratch.h"

#define ADDRESS "registry.invalid/test/simple"
#define PACKAGE ADDRESS "/1.0.0/" DF_PLATFORM
#define LINKED "module/.terraform/providers/" PACKAGE

/* dir/a/b.../name; the caller frees. The directories are there afterwards. */
static char *made(const char *dir, const char *name)
{
    char *path = df_fs_join(dir, name);
    struct df_err err = {0};
    char *last = strrchr(path, '/');
    *last = '\0';
    assert_int_equal(df_fs_mkdirs(path, 0755, &err), 0);
    *last = '/';
    return path;
}

static void put(const char *dir, const char *name, const char *text)
{
    DF_FREE char *path = made(dir, name);
    struct df_err err = {0};
    assert_int_equal(df_fs_write(path, text, strlen(text), 0644, &err), 0);
}

static void put_link(const char *dir, const char *name, const char *target)
{
    DF_FREE char *path = made(dir, name);
    assert_int_equal(symlink(target, path), 0);
}

static void assert_holds(const char *dir, const char *name, const char *text)
{
    DF_FREE char *path = df_fs_join(dir, name);
    DF_BUF struct df_buf b = DF_BUF_INIT(1000);
    struct df_err err = {0};
    if (df_fs_read(path, &b, &err) < 0)
        fail_msg("%s", err.message);
    assert_string_equal(df_buf_str(&b), text);
}

static bool is_there(const char *dir, const char *name)
{
    DF_FREE char *path = df_fs_join(dir, name);
    return df_fs_exists(path);
}

/* A step with an empty cache of its own, as `init` finds it. */
static struct df_plugin_stage begin_within(const char *dir, int64_t limit,
                                           struct df_plugin_uses *uses)
{
    DF_FREE char *cache = df_fs_join(dir, "cache");
    const struct df_plugin_cache shared = {cache, limit, uses};
    DF_FREE char *module = made(dir, "module/x");
    DF_FREE char *secret = made(dir, "secret/x");
    struct df_plugin_stage s = DF_PLUGIN_STAGE_NONE;
    struct df_err err = {0};
    *strrchr(module, '/') = '\0';
    *strrchr(secret, '/') = '\0';
    if (df_plugin_stage_make_cache(cache, &err) < 0 ||
        df_plugin_stage_open(&shared, module, secret, &s, &err) < 0)
        fail_msg("%s", err.message);
    return s;
}

/* Of the step of a test that says nothing of its uses. */
static struct df_plugin_uses its_uses;

static struct df_plugin_stage begin(const char *dir)
{
    return begin_within(dir, 0, &its_uses);
}

/* As the tools leave a new package: in their cache, and a link to it in the module. */
static void install_version(const char *dir, const struct df_plugin_stage *s, const char *version,
                            const char *text)
{
    DF_FREE char *package = df_strf(ADDRESS "/%s/" DF_PLATFORM, version);
    DF_FREE char *staged = df_fs_join(s->directory, package);
    DF_FREE char *program = df_fs_join(package, "program");
    DF_FREE char *link = df_fs_join("module/.terraform/providers", package);
    put(s->directory, program, text);
    put_link(dir, link, staged);
}

static void install(const char *dir, const struct df_plugin_stage *s, const char *text)
{
    install_version(dir, s, "1.0.0", text);
}

static int publish(const char *dir, struct df_plugin_stage *s, struct df_err *err)
{
    DF_FREE char *module = df_fs_join(dir, "module");
    int result = df_plugin_stage_publish(s, module, err);
    df_plugin_stage_close(s);
    df_plugin_uses_end(&its_uses);
    return result;
}

static void publish_ok(const char *dir, struct df_plugin_stage *s)
{
    struct df_err err = {0};
    if (publish(dir, s, &err) < 0)
        fail_msg("%s", err.message);
}

/* The next step has its own module. */
static void leave_module(const char *dir)
{
    DF_FREE char *module = df_fs_join(dir, "module");
    struct df_err err = {0};
    assert_int_equal(df_fs_remove_tree(module, &err), 0);
}

static void fill_cache(const char *dir, const char *text)
{
    struct df_plugin_stage s = begin(dir);
    install(dir, &s, text);
    publish_ok(dir, &s);
    assert_holds(dir, "cache/" PACKAGE "/program", text);
    leave_module(dir);
}

static void a_new_package_is_published_and_the_module_has_it_from_there(void **state)
{
    const char *dir = *state;
    struct df_plugin_stage s = begin(dir);
    install(dir, &s, "one");
    publish_ok(dir, &s);
    assert_holds(dir, "cache/" PACKAGE "/program", "one");
    assert_holds(dir, LINKED "/program", "one");
    assert_false(is_there(dir, "secret/plugins"));
}

static void what_is_published_are_files_that_no_step_had_open(void **state)
{
    const char *dir = *state;
    struct df_plugin_stage s = begin(dir);
    struct stat staged, published;
    install(dir, &s, "one");
    DF_FREE char *before = df_fs_join(s.directory, PACKAGE "/program");
    DF_FREE char *after = df_fs_join(dir, "cache/" PACKAGE "/program");
    assert_int_equal(stat(before, &staged), 0);
    publish_ok(dir, &s);
    assert_int_equal(stat(after, &published), 0);
    assert_int_not_equal(staged.st_ino, published.st_ino);
}

static void a_whole_package_is_not_replaced_and_another_one_stays_with_its_step(void **state)
{
    const char *dir = *state;
    fill_cache(dir, "one");
    struct df_plugin_stage s = begin(dir);
    install(dir, &s, "evil");
    publish_ok(dir, &s);
    assert_holds(dir, "cache/" PACKAGE "/program", "one");
    assert_holds(dir, LINKED "/program", "evil");
}

static void a_damaged_package_is_replaced(void **state)
{
    const char *dir = *state;
    fill_cache(dir, "one");
    put(dir, "cache/" PACKAGE "/program", "damaged");
    struct df_plugin_stage s = begin(dir);
    install(dir, &s, "one");
    publish_ok(dir, &s);
    assert_holds(dir, "cache/" PACKAGE "/program", "one");
}

static void a_link_in_a_package_is_not_followed(void **state)
{
    const char *dir = *state;
    struct df_plugin_stage s = begin(dir);
    struct df_err err = {0};
    put(dir, "key", "secret");
    DF_FREE char *key = df_fs_join(dir, "key");
    put_link(s.directory, PACKAGE "/program", key);
    assert_int_equal(publish(dir, &s, &err), -1);
    assert_non_null(strstr(err.message, "is not a file"));
    assert_false(is_there(dir, "cache/" PACKAGE));
}

static void links_in_place_of_the_module_s_folders_are_not_followed(void **state)
{
    static const char *const places[] = {".terraform", ".terraform/providers",
                                         ".terraform/providers/registry.invalid/test"};
    static const char *const insides[] = {"providers/" PACKAGE, PACKAGE,
                                          "simple/1.0.0/" DF_PLATFORM};
    const char *dir = *state;
    DF_FREE char *bait = df_fs_join(dir, "bait");
    for (size_t i = 0; i < DF_ARRAY_SIZE(places); i++) {
        struct df_plugin_stage s = begin(dir);
        DF_FREE char *place = df_strf("module/%s", places[i]);
        DF_FREE char *inside = df_strf("bait/%s", insides[i]);
        DF_FREE char *link = df_fs_join(dir, inside);
        char target[100] = "";
        put(s.directory, PACKAGE "/program", "one");
        put_link(dir, inside, "/where/it/was");
        put_link(dir, place, bait);
        publish_ok(dir, &s);
        assert_int_equal(readlink(link, target, sizeof(target) - 1), strlen("/where/it/was"));
        assert_string_equal(target, "/where/it/was");
        leave_module(dir);
        assert_int_equal(df_fs_remove_tree(bait, NULL), 0);
    }
}

static void a_link_in_place_of_the_stage_is_not_followed(void **state)
{
    const char *dir = *state;
    struct df_plugin_stage s = begin(dir);
    DF_FREE char *aside = df_fs_join(dir, "aside");
    DF_FREE char *elsewhere = df_fs_join(dir, "elsewhere");
    put(dir, "elsewhere/" PACKAGE "/key", "secret");
    install(dir, &s, "one");
    const char *stage = s.directory ? s.directory : "";
    assert_int_equal(rename(stage, aside), 0);
    assert_int_equal(symlink(elsewhere, stage), 0);
    publish_ok(dir, &s);
    assert_false(is_there(dir, "cache/" PACKAGE "/key"));
    assert_holds(dir, "cache/" PACKAGE "/program", "one");
    assert_holds(dir, "elsewhere/" PACKAGE "/key", "secret");
}

static void without_a_cache_packages_stay_with_their_step(void **state)
{
    const char *dir = *state;
    struct df_plugin_stage s = begin(dir);
    DF_FREE char *cache = df_fs_join(dir, "cache");
    install(dir, &s, "one");
    assert_int_equal(rmdir(cache), 0); /* or where nobody may make it */
    publish_ok(dir, &s);
    assert_false(is_there(dir, "cache"));
    assert_holds(dir, LINKED "/program", "one");
}

static void names_of_the_cache_s_own_are_not_published(void **state)
{
    const char *dir = *state;
    struct df_plugin_stage s = begin(dir);
    put(s.directory, ".stage-other/a/b/c/" DF_PLATFORM "/program", "evil");
    put(s.directory, ".dayfly.lock", "evil");
    put(s.directory, PACKAGE ".h1", "evil");
    put(s.directory, ADDRESS "/1.0.0/other_platform/program", "evil");
    publish_ok(dir, &s);
    assert_false(is_there(dir, "cache/.stage-other"));
    assert_false(is_there(dir, "cache/.dayfly.lock"));
    assert_false(is_there(dir, "cache/" ADDRESS));
}

static void what_a_killed_step_left_is_removed_by_the_next_one_that_publishes(void **state)
{
    const char *dir = *state;
    put(dir, "cache/.stage-killed/package/program", "half");
    fill_cache(dir, "one");
    assert_false(is_there(dir, "cache/.stage-killed"));
}

/* ---- room ---- */

/* A step that publishes this version, of 10 bytes. Its uses are for the caller to end. */
static struct df_plugin_uses publish_version(const char *dir, int64_t limit, const char *version)
{
    struct df_plugin_uses uses = {0};
    struct df_plugin_stage s = begin_within(dir, limit, &uses);
    install_version(dir, &s, version, "0123456789");
    publish_ok(dir, &s);
    leave_module(dir);
    return uses;
}

static void publish_and_end(const char *dir, int64_t limit, const char *version)
{
    struct df_plugin_uses uses = publish_version(dir, limit, version);
    df_plugin_uses_end(&uses);
}

static bool has(const char *dir, const char *version, const char *more)
{
    DF_FREE char *name = df_strf("cache/" ADDRESS "/%s/" DF_PLATFORM "%s", version, more);
    return is_there(dir, name);
}

static void set_used(const char *dir, const char *version, time_t at)
{
    DF_FREE char *path = df_strf("%s/cache/" ADDRESS "/%s/" DF_PLATFORM ".use", dir, version);
    const struct timespec times[] = {{.tv_sec = at}, {.tv_sec = at}};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void beyond_the_limit_the_package_goes_that_was_used_before_all_others(void **state)
{
    const char *dir = *state;
    publish_and_end(dir, 20, "1.0.0");
    publish_and_end(dir, 20, "1.1.0");
    set_used(dir, "1.0.0", 2000);
    set_used(dir, "1.1.0", 1000);
    publish_and_end(dir, 20, "1.2.0");
    assert_true(has(dir, "1.0.0", "/program") && has(dir, "1.2.0", "/program"));
    assert_false(has(dir, "1.1.0", ""));
    assert_false(has(dir, "1.1.0", ".h1") || has(dir, "1.1.0", ".use"));
    publish_and_end(dir, 0, "1.1.0"); /* there is no limit */
    assert_true(has(dir, "1.0.0", "") && has(dir, "1.1.0", "") && has(dir, "1.2.0", ""));
}

static void a_package_that_a_step_uses_stays_until_the_step_has_ended(void **state)
{
    const char *dir = *state;
    struct df_plugin_uses first = publish_version(dir, 15, "1.0.0");
    publish_and_end(dir, 15, "1.1.0");
    assert_true(has(dir, "1.0.0", "/program") && has(dir, "1.1.0", "/program"));
    publish_and_end(dir, 15, "1.2.0");
    assert_true(has(dir, "1.0.0", "/program"));
    assert_false(has(dir, "1.1.0", ""));
    df_plugin_uses_end(&first);
    set_used(dir, "1.0.0", 1000);
    publish_and_end(dir, 15, "1.3.0");
    assert_false(has(dir, "1.0.0", "") || has(dir, "1.2.0", ""));
    assert_true(has(dir, "1.3.0", "/program"));
}

static void a_package_that_a_step_found_there_is_used_by_it(void **state)
{
    const char *dir = *state;
    DF_FREE char *package = df_fs_join(dir, "cache/" PACKAGE);
    struct df_plugin_uses uses = {0};
    struct df_err err = {0};
    char h1[DF_PACKAGE_H1];
    publish_and_end(dir, 15, "1.0.0");
    assert_int_equal(df_package_digest(package, h1, &err), 0);
    DF_FREE char *lock =
        df_strf("provider \"" ADDRESS "\" {\n  version = \"1.0.0\"\n  hashes = [\n    \"%s\",\n"
                "  ]\n}\n",
                h1);
    put(dir, "module/.terraform.lock.hcl", lock);
    struct df_plugin_stage s = begin_within(dir, 15, &uses);
    assert_int_equal(uses.len, 1);
    df_plugin_stage_close(&s);
    leave_module(dir);
    set_used(dir, "1.0.0", 1000);
    publish_and_end(dir, 15, "1.1.0");
    assert_true(has(dir, "1.0.0", "/program"));
    df_plugin_uses_end(&uses);
    publish_and_end(dir, 15, "1.2.0");
    assert_false(has(dir, "1.0.0", ""));
}

static void what_others_put_into_the_cache_is_not_removed(void **state)
{
    const char *dir = *state;
    put(dir, "cache/" ADDRESS "/0.9.0/" DF_PLATFORM "/program", "of a tool itself");
    put(dir, "elsewhere/program", "of a mirror");
    DF_FREE char *mirror = df_fs_join(dir, "elsewhere");
    put_link(dir, "cache/" ADDRESS "/0.8.0/" DF_PLATFORM, mirror);
    publish_and_end(dir, 5, "1.0.0");
    publish_and_end(dir, 5, "1.1.0");
    assert_true(has(dir, "0.8.0", "/program") && has(dir, "0.9.0", "/program"));
    assert_false(has(dir, "1.0.0", ""));
}

static void a_package_that_is_gone_or_going_is_not_used(void **state)
{
    const char *dir = *state;
    struct df_plugin_uses uses = {0};
    struct df_err err = {0};
    bool is_used = true;
    publish_and_end(dir, 0, "1.0.0");
    DF_FREE char *package = df_fs_join(dir, "cache/" PACKAGE);
    DF_FREE char *use = df_strf("%s.use", package);
    DF_FREE char *elsewhere = df_fs_join(dir, "elsewhere");
    DF_CLOSE int going = -1;
    assert_int_equal(df_fs_lock(use, 0644, &going, &err), 0);
    assert_int_equal(df_plugin_use(&uses, package, &is_used, &err), 0);
    assert_false(is_used);
    assert_int_equal(close(going), 0);
    going = -1;
    assert_int_equal(rename(package, elsewhere), 0);
    is_used = true;
    assert_int_equal(df_plugin_use(&uses, package, &is_used, &err), 0);
    assert_false(is_used);
    assert_int_equal(uses.len, 0);
}

/* Or code of a module that locks the file for ever: it costs others the download alone. */
static void a_step_keeps_its_own_package_while_the_one_of_the_cache_is_going(void **state)
{
    const char *dir = *state;
    struct df_plugin_uses uses = {0};
    struct df_err err = {0};
    DF_CLOSE int going = -1;
    fill_cache(dir, "0123456789");
    DF_FREE char *use = df_fs_join(dir, "cache/" PACKAGE ".use");
    assert_int_equal(df_fs_lock(use, 0644, &going, &err), 0);
    struct df_plugin_stage s = begin_within(dir, 5, &uses);
    install(dir, &s, "0123456789");
    publish_ok(dir, &s);
    assert_holds(dir, LINKED "/program", "0123456789");
    DF_FREE char *mine = df_fs_join(dir, LINKED);
    struct stat st;
    assert_int_equal(lstat(mine, &st), 0);
    assert_true(S_ISDIR(st.st_mode));
    assert_int_equal(uses.len, 0);
    df_plugin_uses_end(&uses);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scratch_test(a_new_package_is_published_and_the_module_has_it_from_there),
        scratch_test(what_is_published_are_files_that_no_step_had_open),
        scratch_test(a_whole_package_is_not_replaced_and_another_one_stays_with_its_step),
        scratch_test(a_damaged_package_is_replaced),
        scratch_test(a_link_in_a_package_is_not_followed),
        scratch_test(links_in_place_of_the_module_s_folders_are_not_followed),
        scratch_test(a_link_in_place_of_the_stage_is_not_followed),
        scratch_test(without_a_cache_packages_stay_with_their_step),
        scratch_test(names_of_the_cache_s_own_are_not_published),
        scratch_test(what_a_killed_step_left_is_removed_by_the_next_one_that_publishes),
        scratch_test(beyond_the_limit_the_package_goes_that_was_used_before_all_others),
        scratch_test(a_package_that_a_step_uses_stays_until_the_step_has_ended),
        scratch_test(a_package_that_a_step_found_there_is_used_by_it),
        scratch_test(what_others_put_into_the_cache_is_not_removed),
        scratch_test(a_package_that_is_gone_or_going_is_not_used),
        scratch_test(a_step_keeps_its_own_package_while_the_one_of_the_cache_is_going),
    };
    return cmocka_run_group_tests_name("plugin_stage", tests, NULL, NULL);
}
