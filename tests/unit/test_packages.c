/* What an apply takes over of the plan's `init`: provider packages by the lock file, modules
 * packed. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "common/archive/pack.h"
#include "common/base/platform.h"
#include "runner/tofu/package.h"
#include "runner/tofu/packages.h"
#include "tests/unit/json_words.h"
#include "tests/unit/scratch.h"

/* As golang.org/x/mod/sumdb/dirhash gives it for the files of put_package(). */
#define DIGEST "h1:9O08iZj7areCuWCboFNeBA0Z0t7ZPKhPJ7E3GyIDVGg="
#define ADDRESS "registry.invalid/test/simple"
#define BLOCK(address, version, digest)                                                            \
    "provider \"" address "\" {\n  version     = \"" version "\"\n  hashes = [\n    \"" digest     \
    "\",\n    \"zh:00\",\n  ]\n}\n"

static void put_file(const char *dir, const char *name, const char *text)
{
    DF_FREE char *path = df_fs_join(dir, name);
    struct df_err err = {0};
    char *last = strrchr(path, '/');
    *last = '\0';
    assert_int_equal(df_fs_mkdirs(path, 0755, &err), 0);
    *last = '/';
    assert_int_equal(df_fs_write(path, text, strlen(text), 0644, &err), 0);
}

/* "a-b" sorts before "a/b" although "a" comes before "a-b". */
static void put_package(const char *dir, const char *place)
{
    DF_FREE char *at = df_strf("%s/%s/" ADDRESS "/1.0.0/" DF_PLATFORM, dir, place);
    put_file(at, "a/b", "two\n");
    put_file(at, "a-b", "one\n");
}

static int link_packages(const char *dir, const char *lock, int *ret_count, struct df_err *err)
{
    DF_FREE char *module = df_fs_join(dir, "module");
    DF_FREE char *data = df_fs_join(module, ".terraform");
    DF_FREE char *installed = df_fs_join(dir, "installed");
    DF_FREE char *text =
        df_strf("{'pluginCacheDirectory':'%s/cache','filesystemMirror':'%s/mirror'}", dir, dir);
    DF_JSON cJSON *providers = json(text);
    assert_int_equal(df_fs_remove_tree(data, NULL), 0);
    put_file(module, ".terraform.lock.hcl", lock);
    struct df_plugin_uses uses = {0};
    int result = df_packages_link(module, installed, providers, &uses, ret_count, err);
    df_plugin_uses_end(&uses);
    return result;
}

static bool is_linked(const char *dir)
{
    DF_FREE char *path =
        df_strf("%s/module/.terraform/providers/" ADDRESS "/1.0.0/" DF_PLATFORM "/a-b", dir);
    return df_fs_exists(path);
}

static void a_package_has_the_digest_that_the_tools_give_it(void **state)
{
    DF_FREE char *package = df_strf("%s/mirror/" ADDRESS "/1.0.0/" DF_PLATFORM, (char *)*state);
    char digest[DF_PACKAGE_H1];
    struct df_err err = {0};
    put_package(*state, "mirror");
    assert_int_equal(df_package_digest(package, digest, &err), 0);
    assert_string_equal(digest, DIGEST);
}

static void a_fifo_is_not_waited_for(void **state)
{
    DF_FREE char *fifo = df_fs_join(*state, "fifo");
    char digest[DF_PACKAGE_H1];
    struct df_err err = {0};
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_int_equal(df_package_digest(*state, digest, &err), -1);
    assert_int_equal(err.cls, DF_ERR_USER);
}

static void packages_that_are_installed_or_in_cache_or_mirror_are_linked(void **state)
{
    static const char *const places[] = {"installed", "cache", "mirror"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(places); i++) {
        DF_FREE char *dir = df_fs_join(*state, places[i]);
        struct df_err err = {0};
        int count = 0;
        put_package(dir, places[i]);
        if (link_packages(dir, "# made by tofu\n\n" BLOCK(ADDRESS, "1.0.0", DIGEST), &count, &err) <
            0)
            fail_msg("%s", err.message);
        assert_int_equal(count, 1);
        assert_true(is_linked(dir));
    }
}

static void a_lock_file_that_does_not_vouch_for_a_package_links_none(void **state)
{
    static const struct {
        const char *lock;
        enum df_err_class cls;
    } cases[] = {
        {BLOCK(ADDRESS, "1.0.0", "h1:9O08iZj7areCuWCboFNeBA0Z0t7ZPKhPJ7E3GyIDVGa="),
         DF_ERR_CONFLICT},
        {BLOCK(ADDRESS, "1.0.0", "zh:01"), DF_ERR_CONFLICT},
        {BLOCK(ADDRESS, "1.0.0", "zh:01") BLOCK("registry.invalid/test/other", "1.0.0", DIGEST),
         DF_ERR_CONFLICT},
        {BLOCK(ADDRESS, "1.0.1", DIGEST), DF_ERR_NOT_FOUND},
        {BLOCK("registry.invalid/test/none", "1.0.0", DIGEST), DF_ERR_NOT_FOUND},
        {BLOCK("../cache/" ADDRESS, "1.0.0", DIGEST), DF_ERR_USER},
        {BLOCK("registry.invalid/../simple", "1.0.0", DIGEST), DF_ERR_USER},
        {BLOCK("/registry.invalid/simple", "1.0.0", DIGEST), DF_ERR_USER},
        {BLOCK("simple", "1.0.0", DIGEST), DF_ERR_USER},
        {BLOCK(ADDRESS, "../1.0.0", DIGEST), DF_ERR_USER},
        {BLOCK(ADDRESS, "1.0.0/x", DIGEST), DF_ERR_USER},
        {"provider \"" ADDRESS "\" {\n}\n" BLOCK(ADDRESS, "1.0.0", DIGEST), DF_ERR_USER},
        {"provider \"" ADDRESS "\" {\n  version = \"1.0.0\"\n", DF_ERR_CONFLICT},
        {"provider \"" ADDRESS, DF_ERR_USER},
    };
    put_package(*state, "cache");
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        struct df_err err = {0};
        int count = 0;
        if (link_packages(*state, cases[i].lock, &count, &err) == 0 || err.cls != cases[i].cls ||
            is_linked(*state))
            fail_msg("case %zu: %s", i, err.message);
    }
}

static void a_lock_file_beyond_its_cap_is_refused(void **state)
{
    DF_BUF struct df_buf lock = DF_BUF_INIT(2 * DF_LIMIT_LOCKFILE);
    struct df_err err = {0};
    int count = 0;
    while (lock.len <= DF_LIMIT_LOCKFILE)
        (void)df_buf_adds(&lock, "# a comment that makes it longer and longer\n");
    assert_int_equal(link_packages(*state, df_buf_str(&lock), &count, &err), -1);
    assert_int_equal(err.cls, DF_ERR_LIMIT);
}

static void a_package_of_too_many_files_is_refused(void **state)
{
    char digest[DF_PACKAGE_H1], name[16];
    struct df_err err = {0};
    for (int i = 0; i <= DF_LIMIT_PACKAGE_FILES; i++) {
        (void)snprintf(name, sizeof(name), "%d", i);
        put_file(*state, name, "");
    }
    assert_int_equal(df_package_digest(*state, digest, &err), -1);
    assert_int_equal(err.cls, DF_ERR_LIMIT);
}

/* ---- packing ---- */

static int pack(const char *from, const char *archive, int64_t bytes, int64_t entries,
                struct df_err *err)
{
    const struct df_archive_limits limits = {bytes, entries};
    DF_CLOSE int fd = open(archive, O_RDWR | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    return df_archive_pack(from, fd, &limits, err);
}

#define LONG                                                                                       \
    "a_directory_with_a_long_name/and_another_one_with_a_longer_one/and_a_file_whose_whole_path_"  \
    "has_more_than_a_hundred_bytes"

static void a_link_in_place_of_the_directory_is_not_packed(void **state)
{
    DF_FREE char *secret = df_fs_join(*state, "secret"), *module = df_fs_join(*state, "module");
    DF_FREE char *link = df_fs_join(module, "modules"), *deep = df_fs_join(link, "deep");
    DF_FREE char *archive = df_fs_join(*state, "tar");
    struct df_err err = {0};
    put_file(secret, "deep/key", "secret");
    put_file(module, "main.tf", "");
    assert_int_equal(symlink(secret, link), 0);
    assert_int_equal(pack(link, archive, 20000, 10, &err), -1);
    assert_int_equal(pack(deep, archive, 20000, 10, &err), -1);
}

static void what_is_packed_is_unpacked_the_same(void **state)
{
    const struct df_archive_limits limits = {20000, 10};
    DF_FREE char *from = df_fs_join(*state, "from"), *to = df_fs_join(*state, "to");
    DF_FREE char *archive = df_fs_join(*state, "tar"), *run = df_fs_join(from, "m/run.sh");
    DF_FREE char *link = df_fs_join(from, "m/link"), *there = df_fs_join(to, "m/link");
    DF_FREE char *git = df_fs_join(to, "m/.git");
    DF_BUF struct df_buf text = DF_BUF_INIT(DF_KIB);
    struct df_err err = {0};
    struct stat st;
    put_file(from, "m/run.sh", "#!/bin/sh\n");
    put_file(from, "m/.git/config", "secret");
    put_file(from, LONG, "deep");
    assert_int_equal(chmod(run, 0755), 0);
    assert_int_equal(symlink("run.sh", link), 0);
    assert_int_equal(pack(from, archive, 1000, 10, &err), 0);
    assert_int_equal(df_fs_mkdirs(to, 0755, &err), 0);
    DF_CLOSE int fd = open(archive, O_RDONLY);
    if (df_archive_unpack(fd, to, false, &limits, &err) < 0)
        fail_msg("%s", err.message);
    assert_int_equal(df_fs_read(there, &text, &err), 0);
    assert_string_equal(df_buf_str(&text), "#!/bin/sh\n");
    assert_int_equal(stat(there, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0755);
    assert_false(df_fs_exists(git));
    DF_FREE char *deep = df_fs_join(to, LONG);
    df_buf_clear(&text);
    assert_int_equal(df_fs_read(deep, &text, &err), 0);
    assert_string_equal(df_buf_str(&text), "deep");
}

static void more_than_may_be_packed_is_refused(void **state)
{
    DF_FREE char *from = df_fs_join(*state, "from"), *archive = df_fs_join(*state, "tar");
    DF_FREE char *fifo = df_fs_join(from, "z");
    struct df_err err = {0};
    put_file(from, "a", "12345");
    put_file(from, "b", "12345");
    assert_int_equal(pack(from, archive, 10, 2, &err), 0);
    assert_int_equal(pack(from, archive, 9, 2, &err), -1);
    assert_int_equal(err.cls, DF_ERR_LIMIT);
    assert_int_equal(pack(from, archive, 10, 1, &err), -1);
    assert_int_equal(err.cls, DF_ERR_LIMIT);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_int_equal(pack(from, archive, 10, 3, &err), -1);
    assert_int_equal(err.cls, DF_ERR_USER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        scratch_test(a_package_has_the_digest_that_the_tools_give_it),
        scratch_test(a_fifo_is_not_waited_for),
        scratch_test(packages_that_are_installed_or_in_cache_or_mirror_are_linked),
        scratch_test(a_lock_file_that_does_not_vouch_for_a_package_links_none),
        scratch_test(a_lock_file_beyond_its_cap_is_refused),
        scratch_test(a_package_of_too_many_files_is_refused),
        scratch_test(a_link_in_place_of_the_directory_is_not_packed),
        scratch_test(what_is_packed_is_unpacked_the_same),
        scratch_test(more_than_may_be_packed_is_refused),
    };
    return cmocka_run_group_tests_name("packages", tests, NULL, NULL);
}
