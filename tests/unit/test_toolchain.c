#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/crypto/crypto.h"
#include "runner/tofu/installed.h"
#include "runner/tofu/toolchain.h"
#include "tests/unit/json_words.h"

/* ---- versions and constraints ---- */

static struct df_version version(const char *text)
{
    struct df_version v;
    struct df_err err = {0};
    if (df_version_parse(text, &v, &err) < 0)
        fail_msg("%s", err.message);
    return v;
}

static void versions_are_read_and_written(void **state)
{
    (void)state;
    static const char *const table[][2] = {
        {"1.9.0", "1.9.0"},
        {"v1.9.0", "1.9.0"},
        {"1.9", "1.9.0"},
        {"1", "1.0.0"},
        {"1.10.0-rc1", "1.10.0-rc1"},
        {"1.10.0-beta.2+x.y", "1.10.0-beta.2"},
        {"0.15.3+ent", "0.15.3"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(table); i++) {
        char out[DF_VERSION_TEXT];
        struct df_version v = version(table[i][0]);
        assert_string_equal(df_version_format(&v, out), table[i][1]);
    }
}

static void what_is_no_version_is_refused(void **state)
{
    (void)state;
    static const char *const table[] = {
        "",         "v",      "latest", "1.",       "1..2", ".1",    "1.2.3.4",        "1.2.3-",
        "1.2.3-a_", "1.2.3 ", " 1.2.3", "1.2.3-+b", "-1.2", "1.2.x", "12345678901.0.0"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(table); i++) {
        struct df_version v;
        struct df_err err = {0};
        if (df_version_parse(table[i], &v, &err) == 0)
            fail_msg("taken: \"%s\"", table[i]);
        assert_int_equal(err.cls, DF_ERR_USER);
    }
}

static void versions_are_ordered_as_semver_does(void **state)
{
    (void)state;
    static const char *const ascending[] = {
        "0.9.9",      "1.0.0-alpha",  "1.0.0-alpha.1", "1.0.0-alpha.beta",
        "1.0.0-beta", "1.0.0-beta.2", "1.0.0-beta.11", "1.0.0-rc.1",
        "1.0.0",      "1.2.0",        "1.10.0-rc1",    "1.10.0",
        "2.0.0",
    };
    size_t n = DF_ARRAY_SIZE(ascending);
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < n; j++) {
            struct df_version a = version(ascending[i]), b = version(ascending[j]);
            int order = df_version_compare(&a, &b);
            assert_int_equal((order > 0) - (order < 0), (i > j) - (i < j));
        }
    }
}

static void constraints_allow_what_they_say(void **state)
{
    (void)state;
    static const struct {
        const char *constraint, *version;
        bool allowed;
    } table[] = {
        {NULL, "1.9.0", true},
        {"", "1.9.0", true},
        {"", "1.9.0-rc1", false},
        {"1.9.0", "1.9.0", true},
        {"1.9.0", "1.9.1", false},
        {"= 1.9", "1.9.0", true},
        {"!= 1.9.0", "1.9.0", false},
        {"!= 1.9.0", "1.9.1", true},
        {"> 1.9", "1.9.0", false},
        {">1.9", "1.9.1", true},
        {">= 1.9", "1.9.0", true},
        {">= 1.9", "1.8.9", false},
        {"< 2", "1.99.0", true},
        {"< 2.0.0", "2.0.0", false},
        {"<= 1.9.5", "1.9.5", true},
        {">= 1.8, < 2.0", "1.12.6", true},
        {" >=1.8 ,<2.0 ", "2.0.0", false},
        {">= 1.8, < 2.0, != 1.12.6", "1.12.6", false},
        {"~> 1.9", "1.9.0", true},
        {"~> 1.9", "1.12.6", true},
        {"~> 1.9", "2.0.0", false},
        {"~> 1.9", "1.8.0", false},
        {"~> 1.9.2", "1.9.9", true},
        {"~> 1.9.2", "1.9.1", false},
        {"~> 1.9.2", "1.10.0", false},
        {"~> 1", "1.99.0", true},
        {"~> 1", "2.0.0", false},
        {">= 1.10.0-rc1", "1.10.0-rc2", true},
        {">= 1.10.0-rc1", "1.11.0-rc1", false},
        {">= 1.10.0-rc1, < 2.0", "1.10.0-rc2", true},
        {">= 1.9", "1.10.0-rc1", false},
        {"!= 1.10.0-rc1", "1.10.0-rc2", false},
        {"1.10.0-rc1", "1.10.0-rc1", true},
        {"1.10.0-rc1", "1.10.0", false},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(table); i++) {
        struct df_constraint c;
        struct df_version v = version(table[i].version);
        assert_int_equal(df_constraint_parse(table[i].constraint, &c, NULL), 0);
        if (df_constraint_allows(&c, &v) != table[i].allowed)
            fail_msg("\"%s\" and %s", table[i].constraint, table[i].version);
    }
}

static void constraints_that_mean_nothing_are_refused(void **state)
{
    (void)state;
    static const char *const table[] = {"latest",           ">=",     ">= ",    "1.9,",  ",1.9",
                                        "1.9,,2",           "=> 1.9", "== 1.9", "~ 1.9", "1.9 1.10",
                                        "1,2,3,4,5,6,7,8,9"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(table); i++) {
        struct df_constraint c;
        struct df_err err = {0};
        if (df_constraint_parse(table[i], &c, &err) == 0)
            fail_msg("taken: \"%s\"", table[i]);
        assert_int_equal(err.cls, DF_ERR_USER);
    }
}

static void only_an_exact_constraint_names_its_version(void **state)
{
    (void)state;
    struct df_constraint c;
    assert_int_equal(df_constraint_parse("1.9", &c, NULL), 0);
    assert_non_null(df_constraint_exact(&c));
    assert_int_equal(df_constraint_parse(">= 1.9", &c, NULL), 0);
    assert_null(df_constraint_exact(&c));
    assert_int_equal(df_constraint_parse("= 1.9, != 1.8", &c, NULL), 0);
    assert_null(df_constraint_exact(&c));
}

/* ---- the search ---- */

struct place {
    char dir[64];
    cJSON *tools;
};

static int setup(void **state)
{
    struct place *p = calloc(1, sizeof(*p));
    (void)snprintf(p->dir, sizeof(p->dir), "/tmp/dayfly-tool-XXXXXX");
    assert_non_null(mkdtemp(p->dir));
    p->tools = cJSON_CreateObject();
    DF_FREE char *tools = df_fs_join(p->dir, "tools");
    DF_FREE char *cache = df_fs_join(p->dir, "cache");
    cJSON *dirs = cJSON_AddArrayToObject(p->tools, "directories");
    cJSON_AddItemToArray(dirs, cJSON_CreateString(tools));
    cJSON_AddStringToObject(p->tools, "cacheDirectory", cache);
    *state = p;
    return 0;
}

static int teardown(void **state)
{
    struct place *p = *state;
    int failed = df_fs_remove_tree(p->dir, NULL);
    df_clock_install(NULL);
    cJSON_Delete(p->tools);
    free(p);
    return failed;
}

/* A program that says this banner, and writes a line beside itself each time it is asked. */
static void make_tool(const struct place *p, const char *sub, const char *program,
                      const char *banner)
{
    DF_FREE char *dir = df_strf("%s/%s", p->dir, sub);
    DF_FREE char *path = df_fs_join(dir, program);
    DF_FREE char *text =
        df_strf("#!/bin/sh\necho asked >> '%s/asked'\necho '%s'\n", p->dir, banner);
    assert_int_equal(df_fs_mkdirs(dir, 0755, NULL), 0);
    assert_int_equal(df_fs_replace(path, text, strlen(text), 0755, NULL), 0);
}

static void digest_of(const char *path, char ret[DF_SHA256_HEX])
{
    DF_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(df_sha256_file_hex(fd, ret, NULL, NULL), 0);
}

static size_t times_asked(const struct place *p)
{
    DF_FREE char *path = df_fs_join(p->dir, "asked");
    DF_BUF struct df_buf b = DF_BUF_INIT(4096);
    return df_fs_read(path, &b, NULL) == 0 ? b.len / strlen("asked\n") : 0;
}

static int find(const struct place *p, enum df_tool_kind kind, const char *constraint,
                struct df_tool *ret, struct df_err *err)
{
    DF_FREE char *path_env = df_strf("relative:%s/bin:%s/none", p->dir, p->dir);
    const struct df_tool_request r = {
        .kind = kind, .constraint = constraint, .tools = p->tools, .path_env = path_env};
    return df_toolchain_find(&r, ret, err);
}

static void expect_found(const struct place *p, const char *constraint, const char *sub)
{
    DF_CLEANUP(df_tool_free) struct df_tool t = {0};
    struct df_err err = {0};
    if (find(p, DF_TOOL_OPENTOFU, constraint, &t, &err) < 0)
        fail_msg("%s", err.message);
    DF_FREE char *expected = df_strf("%s/%s", p->dir, sub);
    assert_string_equal(t.path, expected);
}

static void the_highest_version_that_satisfies_is_taken(void **state)
{
    const struct place *p = *state;
    make_tool(p, "tools", "tofu", "OpenTofu v1.8.3");
    make_tool(p, "tools/tofu-1.12.6", "tofu", "OpenTofu v1.12.6");
    make_tool(p, "tools/tofu-1.9.1", "tofu", "OpenTofu v1.9.1");
    make_tool(p, "tools/tofu-1.13.0-rc1", "tofu", "OpenTofu v1.13.0-rc1");
    make_tool(p, "tools", "terraform", "Terraform v1.99.0");
    expect_found(p, NULL, "tools/tofu-1.12.6/tofu");
    expect_found(p, "~> 1.9.0", "tools/tofu-1.9.1/tofu");
    expect_found(p, "< 1.9", "tools/tofu");
    expect_found(p, ">= 1.13.0-rc1", "tools/tofu-1.13.0-rc1/tofu");
}

static void path_is_searched_only_when_allowed_and_only_where_absolute(void **state)
{
    const struct place *p = *state;
    make_tool(p, "bin", "tofu", "OpenTofu v1.9.0");
    struct df_tool t = {0};
    struct df_err err = {0};
    assert_int_equal(find(p, DF_TOOL_OPENTOFU, NULL, &t, &err), -1);
    cJSON_AddBoolToObject(p->tools, "searchPath", true);
    expect_found(p, NULL, "bin/tofu");
}

static void a_version_is_asked_once_and_again_when_the_file_changed(void **state)
{
    const struct place *p = *state;
    make_tool(p, "tools", "tofu", "OpenTofu v1.8.3");
    expect_found(p, NULL, "tools/tofu");
    expect_found(p, "1.8.3", "tools/tofu");
    assert_int_equal(times_asked(p), 1);
    make_tool(p, "tools", "tofu", "OpenTofu v1.9.10");
    expect_found(p, "1.9.10", "tools/tofu");
    assert_int_equal(times_asked(p), 2);
}

/* What a step document says; *ret_version: of what was found. */
static int find_for(const struct place *p, const char *members, bool is_local,
                    char ret_version[DF_VERSION_TEXT], struct df_err *err)
{
    DF_CLEANUP(df_tool_free) struct df_tool t = {0};
    DF_JSON cJSON *step = json(members);
    const struct df_tool_request how = {.is_local = is_local};
    assert_int_equal(df_json_set(step, "tools", cJSON_Duplicate(p->tools, true), NULL), 0);
    if (df_toolchain_of_step(step, &how, &t, err) < 0)
        return -1;
    (void)df_version_format(&t.version, ret_version);
    return 0;
}

static void an_apply_gets_the_tool_of_its_plan_and_a_plan_that_of_its_executor(void **state)
{
    static const struct {
        const char *step, *version;
    } table[] = {
        {"{'runtime':{'name':'opentofu'}}", "1.9.10"},
        {"{'runtime':{'name':'opentofu','version':'< 1.9'}}", "1.8.3"},
        {"{'expected':{'toolName':'opentofu','toolVersion':'1.8.3'},'runtime':{'version':'1.9.10'}"
         "}",
         "1.8.3"},
        {"{}", "1.9.10"},
    };
    const struct place *p = *state;
    make_tool(p, "tools/old", "tofu", "OpenTofu v1.8.3");
    make_tool(p, "tools/new", "tofu", "OpenTofu v1.9.10");
    for (size_t i = 0; i < DF_ARRAY_SIZE(table); i++) {
        char version[DF_VERSION_TEXT];
        struct df_err err = {0};
        if (find_for(p, table[i].step, false, version, &err) < 0)
            fail_msg("%s", err.message);
        assert_string_equal(version, table[i].version);
    }
}

static void a_local_search_downloads_nothing(void **state)
{
    static const char *const steps[] = {"{}", "{'runtime':{'name':'terraform'}}"};
    const struct place *p = *state;
    for (size_t i = 0; i < DF_ARRAY_SIZE(steps); i++) {
        char version[DF_VERSION_TEXT];
        struct df_err err = {0};
        assert_int_equal(find_for(p, steps[i], true, version, &err), -1);
        assert_string_equal(err.reason, "ToolMissing");
        assert_non_null(strstr(err.message, "nothing was downloaded"));
    }
}

static void note_tool(const struct place *p, const char *sub)
{
    struct df_err err = {0};
    DF_FREE char *path = df_strf("%s/%s", p->dir, sub);
    if (df_installed_note(path, &err) < 0)
        fail_msg("%s", err.message);
}

static void a_tool_of_the_cache_that_was_changed_is_named_and_not_even_asked(void **state)
{
    const struct place *p = *state;
    struct df_tool t = {0};
    struct df_err err = {0};
    char wanted[DF_SHA256_HEX], found[DF_SHA256_HEX];
    DF_FREE char *path = df_fs_join(p->dir, "cache/a/tofu");
    make_tool(p, "cache/a", "tofu", "OpenTofu v1.9.0");
    note_tool(p, "cache/a/tofu");
    expect_found(p, NULL, "cache/a/tofu");
    digest_of(path, wanted);
    make_tool(p, "cache/a", "tofu", "OpenTofu v1.9.9");
    digest_of(path, found);
    assert_int_equal(find(p, DF_TOOL_OPENTOFU, NULL, &t, &err), -1);
    assert_string_equal(err.reason, "ToolChecksum");
    assert_int_equal(times_asked(p), 1);
    const char *const words[] = {path, wanted, found, "remove its directory"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(words); i++) {
        if (!strstr(err.message, words[i]))
            fail_msg("\"%s\" is not in: %s", words[i], err.message);
    }
}

static int64_t seconds_of(clockid_t clock)
{
    struct timespec now;
    (void)clock_gettime(clock, &now);
    return now.tv_sec;
}

static int64_t as_ever(void)
{
    return seconds_of(CLOCK_MONOTONIC) * 1000000;
}

static int64_t in_an_hour(void)
{
    return (seconds_of(CLOCK_REALTIME) + 3600) * 1000000;
}

static int fill(void *bytes, size_t n)
{
    return getrandom(bytes, n, 0) == (ssize_t)n ? 0 : -1;
}

static const struct df_clock later = {
    .mono_us = as_ever, .real_us = in_an_hour, .fill_random = fill};

static void a_change_that_keeps_size_and_time_of_the_tool_is_seen(void **state)
{
    const struct place *p = *state;
    struct df_tool t = {0};
    struct df_err err = {0};
    struct stat before, after;
    DF_FREE char *path = df_fs_join(p->dir, "cache/a/tofu");
    df_clock_install(&later);
    make_tool(p, "cache/a", "tofu", "OpenTofu v1.9.0");
    note_tool(p, "cache/a/tofu");
    assert_int_equal(stat(path, &before), 0);
    DF_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);
    do { /* until the file system's clock ticks */
        assert_int_equal(pwrite(fd, "3", 1, before.st_size - (off_t)strlen("0'\n")), 1);
        const struct timespec times[] = {before.st_atim, before.st_mtim};
        assert_int_equal(futimens(fd, times), 0);
        assert_int_equal(fstat(fd, &after), 0);
    } while (memcmp(&before.st_ctim, &after.st_ctim, sizeof(after.st_ctim)) == 0);
    assert_int_equal(close(DF_TAKE_FD(fd)), 0); /* a program that is open for writing cannot run */
    assert_int_equal(find(p, DF_TOOL_OPENTOFU, NULL, &t, &err), -1);
    assert_string_equal(err.reason, "ToolChecksum");
}

/* The digest of the record is wrong, and nobody looks: the file is that of the record. */
static void a_tool_that_was_not_touched_is_not_read_again(void **state)
{
    const struct place *p = *state;
    struct df_tool t = {0};
    struct df_err err = {0};
    DF_FREE char *path = df_fs_join(p->dir, "cache/a/tofu");
    DF_FREE char *record = df_fs_join(p->dir, "cache/a/tofu.sha256");
    DF_BUF struct df_buf text = DF_BUF_INIT(4096);
    make_tool(p, "cache/a", "tofu", "OpenTofu v1.9.0");
    for (int i = 0; i < 2; i++) { /* first just made, then settled */
        df_clock_install(i ? &later : NULL);
        note_tool(p, "cache/a/tofu");
        df_buf_clear(&text);
        assert_int_equal(df_fs_read(record, &text, NULL), 0);
        memset(text.data, 'f', DF_SHA256_HEX - 1);
        assert_int_equal(df_fs_replace(record, text.data, text.len, 0644, NULL), 0);
        assert_int_equal(find(p, DF_TOOL_OPENTOFU, NULL, &t, &err), i ? 0 : -1);
    }
    df_tool_free(&t);
}

static void a_tool_that_was_copied_or_touched_but_not_changed_is_used(void **state)
{
    const struct place *p = *state;
    DF_FREE char *path = df_fs_join(p->dir, "cache/a/tofu");
    DF_FREE char *record = df_fs_join(p->dir, "cache/a/tofu.sha256");
    df_clock_install(&later);
    make_tool(p, "cache/a", "tofu", "OpenTofu v1.9.0");
    note_tool(p, "cache/a/tofu");
    DF_BUF struct df_buf before = DF_BUF_INIT(4096), after = DF_BUF_INIT(4096);
    assert_int_equal(df_fs_read(record, &before, NULL), 0);
    make_tool(p, "cache/a", "tofu", "OpenTofu v1.9.0");
    expect_found(p, NULL, "cache/a/tofu");
    assert_int_equal(df_fs_read(record, &after, NULL), 0);
    assert_string_not_equal(df_buf_str(&before), df_buf_str(&after)); /* the next step need not */
    assert_memory_equal(before.data, after.data, DF_SHA256_HEX - 1);
}

static void a_tool_from_before_the_records_gets_one(void **state)
{
    const struct place *p = *state;
    struct df_tool t = {0};
    struct df_err err = {0};
    make_tool(p, "cache/a", "tofu", "OpenTofu v1.9.0");
    expect_found(p, NULL, "cache/a/tofu");
    make_tool(p, "cache/a", "tofu", "OpenTofu v1.9.1");
    assert_int_equal(find(p, DF_TOOL_OPENTOFU, NULL, &t, &err), -1);
    assert_string_equal(err.reason, "ToolChecksum");
}

static void a_damaged_record_is_no_permission(void **state)
{
    const struct place *p = *state;
    DF_FREE char *record = df_fs_join(p->dir, "cache/a/tofu.sha256");
    static const char *const texts[] = {"", "x", "\n", "%s%s%s%s"};
    make_tool(p, "cache/a", "tofu", "OpenTofu v1.9.0");
    for (size_t i = 0; i < DF_ARRAY_SIZE(texts); i++) {
        struct df_tool t = {0};
        struct df_err err = {0};
        assert_int_equal(df_fs_replace(record, texts[i], strlen(texts[i]), 0644, NULL), 0);
        assert_int_equal(find(p, DF_TOOL_OPENTOFU, NULL, &t, &err), -1);
        assert_string_equal(err.reason, "ToolChecksum");
        assert_non_null(strstr(err.message, "an unknown one was installed"));
    }
}

static void a_cache_that_cannot_be_written_costs_nothing_but_time(void **state)
{
    const struct place *p = *state;
    cJSON_ReplaceItemInObject(p->tools, "cacheDirectory", cJSON_CreateString("/dev/null/x"));
    make_tool(p, "tools", "tofu", "OpenTofu v1.8.3");
    expect_found(p, NULL, "tools/tofu");
    expect_found(p, NULL, "tools/tofu");
    assert_int_equal(times_asked(p), 2);
}

static void a_program_is_what_it_says_not_what_its_file_is_called(void **state)
{
    const struct place *p = *state;
    make_tool(p, "tools", "terraform", "OpenTofu v1.9.0");
    struct df_tool t = {0};
    struct df_err err = {0};
    assert_int_equal(find(p, DF_TOOL_TERRAFORM, NULL, &t, &err), -1);
    assert_string_equal(err.reason, "ToolMissing");
}

static void a_missing_tool_is_named_with_the_places_and_what_was_found(void **state)
{
    const struct place *p = *state;
    make_tool(p, "tools", "tofu", "OpenTofu v1.8.3");
    make_tool(p, "tools/broken", "tofu", "hello");
    struct df_tool t = {0};
    struct df_err err = {0};
    assert_int_equal(find(p, DF_TOOL_OPENTOFU, ">= 1.9", &t, &err), -1);
    assert_string_equal(err.reason, "ToolMissing");
    assert_int_equal(err.cls, DF_ERR_NOT_FOUND);
    static const char *const words[] = {"opentofu >= 1.9", "/tools", "1.8.3", "names neither",
                                        "tools.index.opentofu is not configured"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(words); i++) {
        if (!strstr(err.message, words[i]))
            fail_msg("\"%s\" is not in: %s", words[i], err.message);
    }
}

static void a_bad_constraint_is_a_bad_step(void **state)
{
    const struct place *p = *state;
    struct df_tool t = {0};
    struct df_err err = {0};
    assert_int_equal(find(p, DF_TOOL_OPENTOFU, "newest", &t, &err), -1);
    assert_string_equal(err.reason, "InvalidStep");
    enum df_tool_kind kind;
    assert_int_equal(df_tool_kind_parse("pulumi", &kind, &err), -1);
    assert_string_equal(err.reason, "InvalidStep");
}

/* ---- what differs between the tools ---- */

static bool takes(const struct df_tool *t, const char *command, const char *last)
{
    DF_STRS struct df_strs args = {0};
    (void)df_strs_add(&args, command);
    (void)df_strs_add(&args, last);
    return df_tool_takes_variables(t, &args);
}

static void each_tool_gets_what_its_version_has(void **state)
{
    (void)state;
    static const struct {
        const char *banner;
        bool json_into, variables, plan_variables;
    } table[] = {
        {"OpenTofu v1.7.9", false, false, false},    {"OpenTofu v1.8.0", false, true, true},
        {"OpenTofu v1.12.0-rc1", false, true, true}, {"OpenTofu v1.12.0", true, true, true},
        {"Terraform v1.9.8", false, false, false},   {"Terraform v1.10.0", false, false, true},
        {"Terraform v1.15.0", false, false, true},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(table); i++) {
        struct df_tool t = {0};
        struct df_err err = {0};
        if (df_tool_parse_banner(table[i].banner, &t, &err) < 0)
            fail_msg("%s: %s", table[i].banner, err.message);
        if (df_tool_has_json_into(&t) != table[i].json_into ||
            takes(&t, "init", "-input=false") != table[i].variables ||
            takes(&t, "show", "-json") != table[i].variables ||
            takes(&t, "state", "pull") != table[i].variables ||
            takes(&t, "force-unlock", "-force") != table[i].variables ||
            takes(&t, "apply", "/a/plan") != table[i].plan_variables ||
            !takes(&t, "apply", "-auto-approve") || !takes(&t, "plan", "-out=x") ||
            !takes(&t, "destroy", "-auto-approve") || !takes(&t, "import", "id"))
            fail_msg("%s", table[i].banner);
    }
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_tool_gets_what_its_version_has),
        cmocka_unit_test(versions_are_read_and_written),
        cmocka_unit_test(what_is_no_version_is_refused),
        cmocka_unit_test(versions_are_ordered_as_semver_does),
        cmocka_unit_test(constraints_allow_what_they_say),
        cmocka_unit_test(constraints_that_mean_nothing_are_refused),
        cmocka_unit_test(only_an_exact_constraint_names_its_version),
        T(the_highest_version_that_satisfies_is_taken),
        T(path_is_searched_only_when_allowed_and_only_where_absolute),
        T(a_version_is_asked_once_and_again_when_the_file_changed),
        T(an_apply_gets_the_tool_of_its_plan_and_a_plan_that_of_its_executor),
        T(a_local_search_downloads_nothing),
        T(a_tool_of_the_cache_that_was_changed_is_named_and_not_even_asked),
        T(a_change_that_keeps_size_and_time_of_the_tool_is_seen),
        T(a_tool_that_was_not_touched_is_not_read_again),
        T(a_tool_that_was_copied_or_touched_but_not_changed_is_used),
        T(a_tool_from_before_the_records_gets_one),
        T(a_damaged_record_is_no_permission),
        T(a_cache_that_cannot_be_written_costs_nothing_but_time),
        T(a_program_is_what_it_says_not_what_its_file_is_called),
        T(a_missing_tool_is_named_with_the_places_and_what_was_found),
        T(a_bad_constraint_is_a_bad_step),
    };
    return cmocka_run_group_tests_name("toolchain", tests, NULL, NULL);
}
