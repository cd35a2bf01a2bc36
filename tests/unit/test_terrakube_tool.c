#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "common/archive/pack.h"
#include "common/base/fs.h"
#include "common/base/platform.h"
#include "common/crypto/crypto.h"
#include "common/http/http.h"
#include "runner/terrakube/tool.h"
#include "tests/unit/terrakube_words.h"

struct place {
    char dir[64];
    char *home;
    char *index; /* path */
    cJSON *tools;
    struct df_terrakube_settings settings;
};

static int setup(void **state)
{
    struct place *p = calloc(1, sizeof *p);
    (void)snprintf(p->dir, sizeof p->dir, "/tmp/dayfly-tk-tool-XXXXXX");
    assert_non_null(mkdtemp(p->dir));
    p->home = df_fs_join(p->dir, "home");
    p->index = df_fs_join(p->dir, "index.json");
    p->tools = cJSON_CreateObject();
    DF_FREE char *here = df_fs_join(p->dir, "here");
    DF_FREE char *cache = df_fs_join(p->dir, "cache");
    assert_int_equal(df_fs_mkdirs(here, 0755, NULL), 0);
    assert_int_equal(df_fs_mkdirs(p->home, 0755, NULL), 0);
    cJSON_AddItemToArray(cJSON_AddArrayToObject(p->tools, "directories"), cJSON_CreateString(here));
    cJSON_AddStringToObject(p->tools, "cacheDirectory", cache);
    p->settings =
        (struct df_terrakube_settings){.state = DF_TERRAKUBE_STATE_LOCAL,
                                       .home = p->home,
                                       .internal_secret = strdup(TERRAKUBE_SECRET),
                                       .tofu_releases_url = df_strf("file://%s", p->index),
                                       .terraform_releases_url = df_strf("file://%s", p->index)};
    *state = p;
    return 0;
}

static int teardown(void **state)
{
    struct place *p = *state;
    int failed = df_fs_remove_tree(p->dir, NULL);
    cJSON_Delete(p->tools);
    free(p->settings.internal_secret);
    free(p->settings.tofu_releases_url);
    free(p->settings.terraform_releases_url);
    free(p->index);
    free(p->home);
    free(p);
    return failed;
}

static void put(const char *path, const char *text, mode_t mode)
{
    DF_FREE char *parent = strndup(path, (size_t)(strrchr(path, '/') - path));
    assert_int_equal(df_fs_mkdirs(parent, 0755, NULL), 0);
    assert_int_equal(df_fs_write(path, text, strlen(text), mode, NULL), 0);
}

/* ---- releases ---- */

static void program_text(const char *banner, char out[64])
{
    (void)snprintf(out, 64, "#!/bin/sh\necho '%s'\n", banner);
}

/* An archive with a program that says this banner. It is a tar archive: what is downloaded is taken
 * for what it is, not for its name. */
static void make_zip(const char *path, const char *program, const char *banner)
{
    static const struct df_archive_limits limits = {1000000, 10};
    char text[64];
    program_text(banner, text);
    DF_FREE char *dir = df_strf("%s.d", path);
    DF_FREE char *file = df_fs_join(dir, program);
    put(file, text, 0755);
    DF_CLOSE int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_int_equal(df_archive_pack(dir, fd, &limits, NULL), 0);
    assert_int_equal(df_fs_remove_tree(dir, NULL), 0);
}

/* The zip of a version of tofu and, if sums, its SHA256SUMS: the entry of GitHub's list. */
static char *release(const struct place *p, const char *version, bool sums)
{
    DF_FREE char *name = df_strf("tofu_%s_" DF_PLATFORM ".zip", version);
    DF_FREE char *banner = df_strf("OpenTofu v%s", version);
    DF_FREE char *zip = df_fs_join(p->dir, name);
    DF_FREE char *list = df_strf("%s/tofu_%s_SHA256SUMS", p->dir, version);
    make_zip(zip, "tofu", banner);
    DF_CLOSE int fd = open(zip, O_RDONLY | O_CLOEXEC);
    char digest[DF_SHA256_HEX];
    assert_int_equal(df_sha256_file_hex(fd, digest, NULL, NULL), 0);
    DF_FREE char *line = df_strf("%s  %s\n", digest, name);
    put(list, line, 0644);
    DF_FREE char *asset = df_strf(
        ",{\"name\":\"tofu_%s_SHA256SUMS\",\"browser_download_url\":\"file://%s\"}", version, list);
    return df_strf("{\"name\":\"v%s\",\"assets\":[{\"name\":\"%s\",\"browser_download_url\":"
                   "\"file://%s\"}%s]}",
                   version, name, zip, sums ? asset : "");
}

static void put_index(const struct place *p, const char *const *versions, bool sums)
{
    DF_BUF struct df_buf text = DF_BUF_INIT(100000);
    for (size_t i = 0; versions[i]; i++) {
        DF_FREE char *entry = release(p, versions[i], sums);
        (void)df_buf_addf(&text, "%s%s", i ? "," : "[", entry);
    }
    (void)df_buf_addc(&text, ']');
    put(p->index, df_buf_str(&text), 0644);
}
#define INDEX(p, sums, ...) put_index(p, (const char *const[]){__VA_ARGS__, NULL}, sums)

/* ---- finding ---- */

static int find(const struct place *p, const char *members, struct df_tool *ret, struct df_err *err)
{
    DF_CLEANUP(df_terrakube_payload_free)
    struct df_terrakube_payload payload = terrakube_payload(members);
    const struct df_terrakube_tool_request r = {
        .settings = &p->settings, .payload = &payload, .uses_storage = true, .tools = p->tools};
    return df_terrakube_tool_find(&r, ret, err);
}

static void found(const struct place *p, const char *range, const char *version)
{
    DF_FREE char *members = df_strf("{\"terraformVersion\":\"%s\"}", range);
    DF_CLEANUP(df_tool_free) struct df_tool t = {0};
    struct df_err err = {0};
    char text[DF_VERSION_TEXT];
    if (find(p, members, &t, &err) < 0)
        fail_msg("%s: %s", range, err.message);
    assert_string_equal(df_version_format(&t.version, text), version);
    assert_true(df_fs_exists(t.path));
}

static void missing(const struct place *p, const char *range, const char *reason, const char *word)
{
    DF_FREE char *members = df_strf("{\"terraformVersion\":\"%s\"}", range);
    DF_CLEANUP(df_tool_free) struct df_tool t = {0};
    struct df_err err = {0};
    if (find(p, members, &t, &err) == 0)
        fail_msg("%s: found %s", range, t.path);
    assert_string_equal(err.reason, reason);
    if (!strstr(err.message, word))
        fail_msg("\"%s\" is not in: %s", word, err.message);
}

static void forget_cache(const struct place *p)
{
    DF_FREE char *cache = df_fs_join(p->dir, "cache");
    assert_int_equal(df_fs_remove_tree(cache, NULL), 0);
}

static void the_highest_version_of_the_range_comes_from_the_index(void **state)
{
    const struct place *p = *state;
    INDEX(p, true, "1.10.1", "1.9.0", "1.9.4", "1.12.6", "1.13.0-beta1");
    static const char *const cases[][2] = {{"1.9.x", "1.9.4"},
                                           {">=1.9 <1.12", "1.10.1"},
                                           {"*", "1.12.6"},
                                           {"1.13.0-beta1", "1.13.0-beta1"}};
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        found(p, cases[i][0], cases[i][1]);
        forget_cache(p);
    }
}

static void what_is_installed_wins_and_asks_no_index(void **state)
{
    const struct place *p = *state;
    DF_FREE char *path = df_fs_join(p->dir, "here/tofu");
    put(path, "#!/bin/sh\necho 'OpenTofu v1.9.0'\n", 0755);
    found(p, ">=1.8", "1.9.0"); /* there is no index at all */
    INDEX(p, true, "1.12.6");
    found(p, ">=1.8", "1.9.0");
    found(p, "1.x || 2.x", "1.9.0");
    found(p, "1.12.6", "1.12.6");
}

static void the_index_of_terraform_has_its_own_form(void **state)
{
    const struct place *p = *state;
    DF_FREE char *zip = df_fs_join(p->dir, "terraform_1.11.4_" DF_PLATFORM ".zip");
    make_zip(zip, "terraform", "Terraform v1.11.4");
    DF_FREE char *index = df_strf(
        "{\"name\":\"terraform\",\"versions\":{\"1.11.4\":{\"builds\":[{\"os\":\"" DF_OS_NAME
        "\",\"arch\":\"" DF_ARCH_NAME "\",\"filename\":\"terraform_1.11.4_" DF_PLATFORM
        ".zip\",\"url\":\"file://%s\"}]}}}",
        zip);
    put(p->index, index, 0644);
    DF_CLEANUP(df_tool_free) struct df_tool t = {0};
    struct df_err err = {0};
    if (find(p, "{\"terraformVersion\":\"~> 1.11\",\"tofu\":false}", &t, &err) < 0)
        fail_msg("%s", err.message);
    assert_int_equal(t.kind, DF_TOOL_TERRAFORM);
}

static void a_zip_that_is_not_the_named_one_is_refused(void **state)
{
    const struct place *p = *state;
    INDEX(p, true, "1.9.0");
    DF_FREE char *zip = df_fs_join(p->dir, "tofu_1.9.0_" DF_PLATFORM ".zip");
    make_zip(zip, "tofu", "OpenTofu v1.9.0 of somebody else");
    missing(p, "1.9.0", "ToolChecksum", "SHA256SUMS names");
}

static void an_index_without_checksums_is_taken_as_terrakube_takes_it(void **state)
{
    const struct place *p = *state;
    INDEX(p, false, "1.9.0");
    found(p, "1.9.0", "1.9.0");
}

static void a_version_that_cannot_be_had_is_named_with_the_places(void **state)
{
    const struct place *p = *state;
    INDEX(p, true, "1.9.0");
    missing(p, "1.5.x", "ToolMissing", "the workspace's tofu 1.5.x cannot be provided");
    missing(p, "1.5.x", "ToolMissing", "index.json lists none");
    missing(p, "no version", "ToolMissing", "version range \"no version\"");
}

/* ---- the storage ---- */

static char *stored(const struct place *p, const char *ending)
{
    return df_strf("%s/.terraform-spring-boot/local/binary/tofu/1.9.0/tofu%s", p->home, ending);
}

static void a_download_is_stored_and_serves_the_next_pod(void **state)
{
    const struct place *p = *state;
    INDEX(p, true, "1.9.0");
    found(p, "1.9.0", "1.9.0");
    forget_cache(p);
    assert_int_equal(unlink(p->index), 0);
    found(p, "1.9.0", "1.9.0");
    missing(p, "1.9.1", "ToolMissing", "index.json");
}

static void a_storage_that_fails_does_not_keep_a_tool_away(void **state)
{
    const struct place *p = *state;
    INDEX(p, true, "1.9.0");
    DF_FREE char *blocked = df_strf("%s/.terraform-spring-boot/local/binary", p->home);
    put(blocked, "not a directory", 0644);
    found(p, "1.9.0", "1.9.0");
}

static void a_stored_program_without_its_note_is_not_run(void **state)
{
    const struct place *p = *state;
    char text[64];
    program_text("OpenTofu v1.9.0", text);
    DF_FREE char *path = stored(p, "");
    put(path, text, 0755);
    missing(p, "1.9.0", "ToolMissing", "index.json");
}

static void a_stored_program_that_was_changed_is_not_run(void **state)
{
    const struct place *p = *state;
    INDEX(p, true, "1.9.0");
    found(p, "1.9.0", "1.9.0");
    forget_cache(p);
    assert_int_equal(unlink(p->index), 0);
    static const char evil[] = "#!/bin/sh\necho 'OpenTofu v1.9.0'; touch /tmp/evil\n";
    char digest[DF_SHA256_HEX];
    assert_int_equal(df_sha256_hex(evil, strlen(evil), digest, NULL), 0);
    DF_FREE char *path = stored(p, "");
    DF_FREE char *note = stored(p, ".sha256");
    DF_BUF struct df_buf b = DF_BUF_INIT(1000);
    assert_int_equal(df_fs_read(note, &b, NULL), 0);
    put(path, evil, 0755);
    missing(p, "1.9.0", "ToolMissing", "index.json");
    /* Also not with the digest of what is there now: only executors can sign it. */
    memcpy(b.data, digest, sizeof digest - 1);
    put(note, df_buf_str(&b), 0600);
    missing(p, "1.9.0", "ToolMissing", "index.json");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_highest_version_of_the_range_comes_from_the_index),
        TEST(what_is_installed_wins_and_asks_no_index),
        TEST(the_index_of_terraform_has_its_own_form),
        TEST(a_zip_that_is_not_the_named_one_is_refused),
        TEST(an_index_without_checksums_is_taken_as_terrakube_takes_it),
        TEST(a_version_that_cannot_be_had_is_named_with_the_places),
        TEST(a_download_is_stored_and_serves_the_next_pod),
        TEST(a_storage_that_fails_does_not_keep_a_tool_away),
        TEST(a_stored_program_without_its_note_is_not_run),
        TEST(a_stored_program_that_was_changed_is_not_run),
    };
    struct df_err err;
    if (df_http_global_init(&err) < 0)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
