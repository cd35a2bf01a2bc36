#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "common/archive/tree.h"
#include "common/base/fs.h"
#include "common/process/process.h"
#include "runner/source/git.h"
#include "runner/source/source.h"
#include "runner/source/spec.h"
#include "tests/unit/source_words.h"

#define COMMIT "0123456789abcdef0123456789abcdef01234567"
#define SHA256 COMMIT "0123456789abcdef01234567"

static cJSON *source_of(const char *text)
{
    cJSON *source = NULL;
    struct df_err err;
    if (df_json_parse(text, strlen(text), &source, &err) < 0)
        fail_msg("%s: %s", text, err.message);
    return source;
}

/* ---- what is taken at all ---- */

static void good_sources_are_understood(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum df_source_kind kind;
        enum df_source_scheme scheme;
        const char *origin, *host;
    } cases[] = {
        {"{\"url\":\"https://git.example/a/b\",\"branch\":\"main\"}", DF_SOURCE_GIT,
         DF_SCHEME_HTTPS, "https://git.example", "git.example"},
        {"{\"url\":\"https://git.example/a/b\",\"ref\":\"main\"}", DF_SOURCE_GIT, DF_SCHEME_HTTPS,
         "https://git.example", "git.example"},
        {"{\"url\":\"https://joe@git.example:8443/a\",\"tag\":\"v1.0\"}", DF_SOURCE_GIT,
         DF_SCHEME_HTTPS, "https://git.example:8443", "joe@git.example:8443"},
        {"{\"url\":\"https://[::1]:8443/a\",\"tag\":\"v1.0\"}", DF_SOURCE_GIT, DF_SCHEME_HTTPS,
         "https://[::1]:8443", "[::1]:8443"},
        {"{\"url\":\"http://127.0.0.1:8080/a.git\",\"branch\":\"main\"}", DF_SOURCE_GIT,
         DF_SCHEME_HTTPS, "http://127.0.0.1:8080", "127.0.0.1:8080"},
        {"{\"url\":\"ssh://git@git.example:22/a\",\"commit\":\"" COMMIT "\"}", DF_SOURCE_GIT,
         DF_SCHEME_SSH, NULL, "git@git.example:22"},
        {"{\"url\":\"git@git.example:a/b.git\",\"commit\":\"" SHA256 "\"}", DF_SOURCE_GIT,
         DF_SCHEME_SSH, NULL, "git@git.example"},
        {"{\"url\":\"https://x.example/m.tar\",\"sha256\":\"" SHA256 "\"}", DF_SOURCE_ARCHIVE,
         DF_SCHEME_HTTPS, "https://x.example", "x.example"},
        {"{\"url\":\"https://x.example/m.tar.gz\",\"sha256\":\"" SHA256 "\"}", DF_SOURCE_ARCHIVE,
         DF_SCHEME_HTTPS, "https://x.example", "x.example"},
        {"{\"url\":\"https://x.example/m.ZIP?raw=1\",\"sha256\":\"" SHA256 "\"}", DF_SOURCE_ARCHIVE,
         DF_SCHEME_HTTPS, "https://x.example", "x.example"},
        {"{\"url\":\"https://x.example/m\",\"kind\":\"archive\",\"sha256\":\"" SHA256 "\"}",
         DF_SOURCE_ARCHIVE, DF_SCHEME_HTTPS, "https://x.example", "x.example"},
        {"{\"url\":\"file:///\"}", DF_SOURCE_DIRECTORY, DF_SCHEME_FILE, NULL, NULL},
        {"{\"url\":\"file:///\",\"folder\":\"a/b\",\"tag\":null,\"sha256\":\"\"}",
         DF_SOURCE_DIRECTORY, DF_SCHEME_FILE, NULL, NULL},
        {"{\"url\":\"file:///etc/passwd\"}", DF_SOURCE_ARCHIVE, DF_SCHEME_FILE, NULL, NULL},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_JSON cJSON *source = source_of(cases[i].text);
        DF_SOURCE_SPEC struct df_source_spec s = {0};
        struct df_err err;
        if (df_source_spec_read(source, &s, &err) < 0)
            fail_msg("%s: %s", cases[i].text, err.message);
        assert_int_equal(s.kind, cases[i].kind);
        assert_int_equal(s.scheme, cases[i].scheme);
        assert_int_equal(!s.origin, !cases[i].origin);
        if (s.origin)
            assert_string_equal(s.origin, cases[i].origin);
        assert_int_equal(!s.host, !cases[i].host);
        if (s.host)
            assert_string_equal(s.host, cases[i].host);
    }
}

static void bad_sources_are_refused_with_the_field_and_the_way_out(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"{}", "source.url is required"},
        {"{\"url\":\"\"}", "source.url is required"},
        {"{\"url\":\"-oProxyCommand=x\"}", "must be a file:///, https://"},
        {"{\"url\":\"--upload-pack=touch /x\",\"branch\":\"m\"}", "must be a file:///, https://"},
        {"{\"url\":\"ext::sh -c x\",\"branch\":\"m\"}", "must be a file:///, https://"},
        {"{\"url\":\"fd::17\",\"branch\":\"m\"}", "must be a file:///, https://"},
        {"{\"url\":\"git://x.example/a\",\"branch\":\"m\"}", "must be a file:///, https://"},
        {"{\"url\":\"http://x.example/a\",\"branch\":\"m\"}", "must be https"},
        {"{\"url\":\"http://127.0.0.1.x.example/a\",\"branch\":\"m\"}", "must be https"},
        {"{\"url\":\"ftp://x.example/a\",\"branch\":\"m\"}", "must be a file:///, https://"},
        {"{\"url\":\"file://host/a\"}", "must name an absolute path"},
        {"{\"url\":\"FILE:///etc\"}", "must be a file:///, https://"},
        {"{\"url\":\"/etc\"}", "must be a file:///, https://"},
        {"{\"url\":\"./x:y\"}", "must be a file:///, https://"},
        {"{\"url\":\"https://x.example/\\u0001\",\"branch\":\"m\"}", "control character"},
        {"{\"url\":\"https://x.example/a\\nb\",\"branch\":\"m\"}", "control character"},
        {"{\"url\":\"https://joe:hunter2@x.example/a\",\"branch\":\"m\"}", "name it in secretRef"},
        {"{\"url\":\"ssh://joe:hunter2@x.example/a\",\"branch\":\"m\"}", "name it in secretRef"},
        {"{\"url\":\"ssh://-oProxyCommand=x/a\",\"branch\":\"m\"}", "no valid host"},
        {"{\"url\":\"ssh://git@-oProxyCommand=x/a\",\"branch\":\"m\"}", "no valid host"},
        {"{\"url\":\"ssh:///a\",\"branch\":\"m\"}", "no valid host"},
        {"{\"url\":\"https://x.example/a\"}", "is a git repository: source needs a"},
        {"{\"url\":\"https://x.example/a\",\"tag\":\"a\",\"branch\":\"b\"}", "only one of"},
        {"{\"url\":\"file:///\",\"kind\":\"directory\",\"tag\":\"a\"}", "are for git repositories"},
        {"{\"url\":\"https://x.example/a\",\"branch\":\"--upload-pack=x\"}", "may not begin"},
        {"{\"url\":\"https://x.example/a\",\"branch\":\"a b\"}", "not a name that git allows"},
        {"{\"url\":\"https://x.example/a\",\"branch\":\"a..b\"}", "not a name that git allows"},
        {"{\"url\":\"https://x.example/a\",\"branch\":\"+a:b\"}", "not a name that git allows"},
        {"{\"url\":\"https://x.example/a\",\"tag\":\"-x\"}", "source.tag may not begin with -"},
        {"{\"url\":\"https://x.example/a\",\"tag\":\"a^{}\"}", "not a name that git allows"},
        {"{\"url\":\"https://x.example/a\",\"tag\":\"@\"}", "not a name that git allows"},
        {"{\"url\":\"https://x.example/a\",\"tag\":\"x.lock\"}", "not a name that git allows"},
        {"{\"url\":\"https://x.example/a\",\"commit\":\"abc123\"}", "must be 40 or 64"},
        {"{\"url\":\"https://x.example/a\",\"commit\":\"-" COMMIT "\"}", "must be 40 or 64"},
        {"{\"url\":\"https://x.example/a.zip\"}", "source.sha256 is required"},
        {"{\"url\":\"https://x.example/a.zip\",\"sha256\":\"12\"}", "must be 64 hex digits"},
        {"{\"url\":\"ssh://x.example/a\",\"kind\":\"archive\"}", "needs a file:/// or https://"},
        {"{\"url\":\"https://x.example/a\",\"kind\":\"directory\"}", "needs a file:/// URL"},
        {"{\"url\":\"file:///\",\"kind\":\"tarball\"}", "must be directory, git or archive"},
        {"{\"url\":\"file:///\",\"folder\":\"/etc\"}", "source.folder must be a relative path"},
        {"{\"url\":\"file:///\",\"folder\":\"a/../../b\"}", "may not lead through"},
        {"{\"url\":\"file:///\",\"folder\":\"..\"}", "may not lead through"},
        {"{\"url\":\"file:///\",\"folder\":\".git/hooks\"}", "may not lead through"},
        {"{\"url\":\"file:///\",\"credentials\":{\"username\":\"a:b\"}}", "holds a colon"},
        {"{\"url\":\"file:///\",\"credentials\":{\"password\":\"a\\nb\"}}", "control character"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_JSON cJSON *source = source_of(cases[i].text);
        DF_SOURCE_SPEC struct df_source_spec s = {0};
        struct df_err err = {0};
        assert_int_equal(df_source_spec_read(source, &s, &err), -1);
        if (!strstr(err.message, cases[i].message))
            fail_msg("%s: %s", cases[i].text, err.message);
        assert_int_equal(err.cls, DF_ERR_USER);
        assert_string_equal(err.reason, "SourceRefused");
        assert_null(strstr(err.message, "hunter2"));
        assert_null(s.url);
    }
}

static void a_file_url_is_what_lies_there(void **state)
{
    (void)state;
    put("module/main.tf", "");
    put("bare.git/HEAD", "");
    put("bare.git/objects/x", "");
    put("bare.git/refs/x", "");
    put("m.tar.gz", "");
    put("with blank/main.tf", "");
    put("100%25/main.tf", "");
    put("100%/main.tf", "");
    static const struct {
        const char *name, *ref;
        enum df_source_kind kind;
        const char *path; /* below top */
    } cases[] = {
        {"module", NULL, DF_SOURCE_DIRECTORY, "module"},
        {"module", "main", DF_SOURCE_GIT, "module"},
        {"bare.git", "main", DF_SOURCE_GIT, "bare.git"},
        {"m.tar.gz", NULL, DF_SOURCE_ARCHIVE, "m.tar.gz"},
        {"with%20blank", NULL, DF_SOURCE_DIRECTORY, "with blank"},
        {"with blank", NULL, DF_SOURCE_DIRECTORY, "with blank"},
        {"100%25", NULL, DF_SOURCE_DIRECTORY, "100%25"}, /* as it stands comes first */
        {"100%", NULL, DF_SOURCE_DIRECTORY, "100%"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_FREE char *url = df_strf("file://%s/%s", top, cases[i].name);
        DF_JSON cJSON *source = cJSON_CreateObject();
        assert_int_equal(df_json_add_str(source, "url", url, NULL), 0);
        assert_int_equal(df_json_add_str(source, "branch", cases[i].ref, NULL), 0);
        DF_SOURCE_SPEC struct df_source_spec s = {0};
        assert_int_equal(df_source_spec_read(source, &s, NULL), 0);
        DF_FREE char *path = at(cases[i].path);
        assert_int_equal(s.kind, cases[i].kind);
        assert_string_equal(s.path, path);
    }
    DF_FREE char *url = df_strf("file://%s/absent", top);
    DF_JSON cJSON *source = cJSON_CreateObject();
    assert_int_equal(df_json_add_str(source, "url", url, NULL), 0);
    struct df_source_spec s;
    struct df_err err = {0};
    assert_int_equal(df_source_spec_read(source, &s, &err), -1);
    assert_int_equal(err.cls, DF_ERR_NOT_FOUND);
    assert_string_equal(err.reason, "SourceFailed");
}

/* ---- directories ---- */

static void a_directory_is_copied_without_what_is_no_module(void **state)
{
    (void)state;
    put("module/main.tf", "resource");
    put("module/run.sh", "#!");
    put("module/deep/er/x.tf", "x");
    put("module/.terraform.lock.hcl", "lock");
    static const char *const left_out[] = {"terraform.tfstate",
                                           "a.tfstate.backup",
                                           "crash.log",
                                           ".git/config",
                                           ".terraform/modules",
                                           "deep/.terraform/providers/x",
                                           "deep/terraform.tfstate",
                                           "deep/.git",
                                           "terraform.tfstate.d/dev/a.tfstate"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(left_out); i++) {
        DF_FREE char *name = df_strf("module/%s", left_out[i]);
        put(name, "secret");
    }
    DF_FREE char *script = at("module/run.sh");
    assert_int_equal(chmod(script, 0700), 0);
    put_link("module/l", "deep/er/x.tf");
    struct df_source_result r = {0};
    struct df_err err = {0};
    if (fetch_module(NULL, &r, &err) < 0)
        fail_msg("%s", err.message);
    assert_string_equal(r.commit, "");
    DF_FREE char *checkout = at("checkout");
    assert_string_equal(r.module_dir, checkout);
    assert_true(has("checkout/main.tf") && has("checkout/deep/er/x.tf") && has("checkout/l"));
    assert_true(has("checkout/.terraform.lock.hcl"));
    for (size_t i = 0; i < DF_ARRAY_SIZE(left_out); i++) {
        DF_FREE char *name = df_strf("checkout/%s", left_out[i]);
        assert_false(has(name));
    }
    struct stat st;
    DF_FREE char *copy = at("checkout/run.sh");
    assert_int_equal(stat(copy, &st), 0);
    assert_int_equal(st.st_mode & 0111, 0111);
    df_source_result_free(&r);
}

/* As the kubelet mounts a ConfigMap, at one time and in one pod. */
static void mount_files(const char *time)
{
    DF_FREE char *real = df_strf("module/..%s/main.tf", time);
    DF_FREE char *nested = df_strf("module/..%s/sub/x.tf", time);
    DF_FREE char *data = df_strf("..%s", time);
    put(real, "resource");
    put(nested, "x");
    put_link("module/..data", data);
    put_link("module/main.tf", "..data/main.tf");
    put_link("module/sub", "..data/sub");
}

static void a_mounted_config_map_is_the_same_module_in_every_pod(void **state)
{
    (void)state;
    static const char *const times[] = {"2026_01_02_03_04_05.1", "2026_01_02_03_04_06.2"};
    struct df_source_result r[2] = {0};
    for (size_t i = 0; i < DF_ARRAY_SIZE(times); i++) {
        DF_FREE char *module = at("module"), *checkout = at("checkout");
        mount_files(times[i]);
        assert_int_equal(fetch_module(NULL, &r[i], NULL), 0);
        DF_FREE char *file = at("checkout/main.tf");
        struct stat st;
        assert_int_equal(lstat(file, &st), 0);
        assert_true(S_ISREG(st.st_mode) && has("checkout/sub/x.tf"));
        assert_false(has("checkout/..data"));
        assert_int_equal(df_fs_remove_tree(module, NULL), 0);
        assert_int_equal(df_fs_remove_tree(checkout, NULL), 0);
    }
    assert_string_equal(r[0].tree_digest, r[1].tree_digest);
    df_source_result_free(&r[0]);
    df_source_result_free(&r[1]);
}

static void a_folder_names_the_module_inside_the_whole_tree(void **state)
{
    (void)state;
    put("module/live/net/main.tf", "n");
    put("module/shared/x.tf", "x");
    put_link("module/alias", "live/net");
    struct df_source_result r = {0};
    assert_int_equal(fetch_module("live/net", &r, NULL), 0);
    DF_FREE char *net = at("checkout/live/net");
    assert_string_equal(r.module_dir, net);
    assert_true(has("checkout/shared/x.tf"));
    df_source_result_free(&r);

    DF_FREE char *checkout = at("checkout");
    assert_int_equal(df_tree_empty(checkout, NULL), 0);
    assert_int_equal(fetch_module("alias", &r, NULL), 0);
    df_source_result_free(&r);
    assert_int_equal(df_tree_empty(checkout, NULL), 0);

    struct df_err err = {0};
    assert_int_equal(fetch_module("live/nett", &r, &err), -1);
    assert_non_null(strstr(err.message, "source.folder \"live/nett\" is not a folder of"));
    assert_non_null(strstr(err.message, "which has: alias, live/, shared/"));
    assert_string_equal(err.reason, "SourceFailed");
    assert_false(has("checkout/live"));
}

static void links_out_of_a_directory_and_odd_files_are_refused(void **state)
{
    (void)state;
    static const char *const targets[] = {"/etc/passwd", "../secret", "sub/../../secret", "self"};
    put("secret", "s");
    put("module/sub/x", "");
    put("module/main.tf", "");
    for (size_t i = 0; i < DF_ARRAY_SIZE(targets); i++) {
        put_link("module/self", targets[i]);
        struct df_source_result r = {0};
        struct df_err err = {0};
        assert_int_equal(fetch_module(NULL, &r, &err), -1);
        assert_string_equal(err.reason, "SourceRefused");
        assert_non_null(strstr(err.message, "\"self\" leads out of the source tree"));
        assert_false(has("checkout/main.tf"));
        DF_FREE char *self = at("module/self");
        assert_int_equal(unlink(self), 0);
    }
    DF_FREE char *fifo = at("module/fifo");
    assert_int_equal(mkfifo(fifo, 0600), 0);
    struct df_source_result r = {0};
    struct df_err err = {0};
    assert_int_equal(fetch_module(NULL, &r, &err), -1);
    assert_string_equal(err.reason, "SourceRefused");
    assert_non_null(strstr(err.message, "fifo is a device, fifo or socket"));
}

static void a_directory_that_holds_the_work_directory_is_not_copied_into_itself(void **state)
{
    (void)state;
    put("module/main.tf", "");
    put("module/work/x", "");
    DF_FREE char *url = df_strf("file://%s/module", top);
    DF_FREE char *checkout = at("module/work/checkout");
    DF_FREE char *private_dir = at("private");
    assert_int_equal(df_fs_mkdirs(checkout, 0700, NULL), 0);
    assert_int_equal(df_fs_mkdirs(private_dir, 0700, NULL), 0);
    DF_JSON cJSON *source = cJSON_CreateObject();
    assert_int_equal(df_json_add_str(source, "url", url, NULL), 0);
    const struct df_source_request q = {
        .source = source, .checkout = checkout, .private_dir = private_dir, .log_fd = -1};
    struct df_source_result r = {0};
    struct df_err err = {0};
    assert_int_equal(df_source_fetch(&q, &r, &err), -1);
    assert_non_null(strstr(err.message, "the work directory lies inside the source"));
}

static void the_private_directory_is_empty_afterwards_and_the_log_says_what_was_done(void **state)
{
    (void)state;
    put("module/main.tf", "");
    put("private/left-over", "secret");
    DF_FREE char *log = at("log");
    DF_FREE char *url = df_strf("file://%s/module", top);
    DF_FREE char *checkout = at("checkout");
    DF_FREE char *private_dir = at("private");
    assert_int_equal(mkdir(checkout, 0700), 0);
    DF_CLOSE int fd = open(log, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    DF_JSON cJSON *source = cJSON_CreateObject();
    assert_int_equal(df_json_add_str(source, "url", url, NULL), 0);
    const struct df_source_request q = {.source = source,
                                        .expected_commit = "",
                                        .checkout = checkout,
                                        .private_dir = private_dir,
                                        .log_fd = fd};
    struct df_source_result r = {0};
    assert_int_equal(df_source_fetch(&q, &r, NULL), 0);
    df_source_result_free(&r);
    assert_true(has("private") && !has("private/left-over"));
    DF_BUF struct df_buf b = DF_BUF_INIT(1000);
    assert_int_equal(df_fs_read(log, &b, NULL), 0);
    DF_FREE char *want = df_strf("dayfly: copying %s/module\n", top);
    assert_string_equal(df_buf_str(&b), want);
}

/* ---- the digest ---- */

static void digest_of(const char *name, char digest[65])
{
    DF_FREE char *path = at(name);
    struct df_err err;
    if (df_tree_digest(path, digest, &err) < 0)
        fail_msg("%s", err.message);
}

static void make_tree(const char *name)
{
    static const char *const files[][2] = {
        {"main.tf", "m"}, {"a/b", "x"}, {"a.b", ""}, {"empty/.git/config", "ignored"}};
    for (size_t i = 0; i < DF_ARRAY_SIZE(files); i++) {
        DF_FREE char *path = df_strf("%s/%s", name, files[i][0]);
        put(path, files[i][1]);
    }
    DF_FREE char *link = df_strf("%s/l", name);
    put_link(link, "a/b");
}

static void the_digest_depends_on_the_tree_alone(void **state)
{
    (void)state;
    char one[65], two[65];
    make_tree("one");
    put("two/a.b", "");
    DF_FREE char *early = at("two/a.b");
    assert_int_equal(chmod(early, 0604), 0); /* only the owner's x counts */
    make_tree("two");
    digest_of("one", one);
    digest_of("two", two);
    assert_string_equal(one, two);
    put("two/.terraform/providers/x", "ignored");
    put("two/a/.terraform/x", "ignored");
    digest_of("two", two);
    assert_string_equal(one, two);
}

static void change_content(void)
{
    put("tree/a/b", "y");
}
static void change_name(void)
{
    DF_FREE char *from = at("tree/a/b");
    DF_FREE char *to = at("tree/a/c");
    assert_int_equal(rename(from, to), 0);
}
static void change_execution(void)
{
    DF_FREE char *path = at("tree/main.tf");
    assert_int_equal(chmod(path, 0755), 0);
}
static void change_target(void)
{
    DF_FREE char *path = at("tree/l");
    assert_int_equal(unlink(path), 0);
    put_link("tree/l", "a/./b");
}
static void change_link_to_file(void)
{
    DF_FREE char *path = at("tree/l");
    assert_int_equal(unlink(path), 0);
    put("tree/l", "a/b");
}
static void add_empty_file(void)
{
    put("tree/new", "");
}
static void add_empty_directory(void)
{
    DF_FREE char *path = at("tree/new");
    assert_int_equal(mkdir(path, 0755), 0);
}
static void move_a_byte_between_files(void)
{
    put("tree/a.b", "m");
    put("tree/main.tf", "");
}

static void every_change_of_a_tree_changes_its_digest(void **state)
{
    (void)state;
    static void (*const changes[])(void) = {
        change_content,      change_name,    change_execution,    change_target,
        change_link_to_file, add_empty_file, add_empty_directory, move_a_byte_between_files};
    char seen[DF_ARRAY_SIZE(changes) + 1][65];
    for (size_t i = 0; i <= DF_ARRAY_SIZE(changes); i++) {
        DF_FREE char *path = at("tree");
        assert_int_equal(df_fs_remove_tree(path, NULL), 0);
        make_tree("tree");
        if (i)
            changes[i - 1]();
        digest_of("tree", seen[i]);
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(seen[i], seen[j]);
    }
}

/* ---- git's questions and complaints ---- */

static void the_password_helper_answers_only_for_the_host_it_was_made_for(void **state)
{
    (void)state;
    put("askpass", "https://git.example:8443\njoe\nhunter2\n");
    DF_FREE char *file = at("askpass");
    DF_FREE char *variable = df_strf(DF_ASKPASS_ENV "=%s", file);
    static const struct {
        const char *prompt, *answer; /* NULL: none, and a failure */
    } cases[] = {
        {"Username for 'https://git.example:8443': ", "joe\n"},
        {"Password for 'https://joe@git.example:8443': ", "hunter2\n"},
        {"Password for 'https://git.example:8443': ", "hunter2\n"},
        {"Password for 'https://git.example': ", NULL},
        {"Password for 'http://git.example:8443': ", NULL},
        {"Password for 'https://git.example:84433': ", NULL},
        {"Password for 'https://git.example:8443.evil.example': ", NULL},
        {"Password for 'https://git.example:8443@evil.example': ", NULL},
        {"Password for 'https://evil.example/https://git.example:8443': ", NULL},
        {"Password for 'https://evil.example/'https://git.example:8443': ", NULL},
        {"Enter passphrase for key '/x': ", NULL},
        {"", NULL},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        struct df_process_options o =
            DF_PROCESS_OPTIONS(((const char *const[]){"/proc/self/exe", cases[i].prompt, NULL}),
                               ((const char *const[]){variable, NULL}));
        DF_BUF struct df_buf out = DF_BUF_INIT(1000);
        int code = -1;
        assert_int_equal(df_process_run(&o, 20000, &out, NULL, &code, NULL), 0);
        assert_int_equal(code, cases[i].answer ? 0 : 1);
        assert_string_equal(df_buf_str(&out), cases[i].answer ? cases[i].answer : "");
    }
}

static void as_ssh_the_helper_is_ssh_with_the_configuration_of_the_source(void **state)
{
    (void)state;
    put("bin/ssh", "#!/bin/sh\nprintf '<%s>' \"$@\"\n");
    DF_FREE char *directory = at("bin"), *program = at("bin/ssh");
    assert_int_equal(chmod(program, 0755), 0);
    DF_FREE char *path = df_strf("PATH=%s", directory);
    struct df_process_options o = DF_PROCESS_OPTIONS(
        ((const char *const[]){"/proc/self/exe", "git@git.example", "git-upload-pack 'x'", NULL}),
        ((const char *const[]){path, DF_SSH_CONFIG_ENV "=/a b/config", NULL}));
    DF_BUF struct df_buf out = DF_BUF_INIT(1000);
    int code = -1;
    assert_int_equal(df_process_run(&o, 20000, &out, NULL, &code, NULL), 0);
    assert_int_equal(code, 0);
    assert_string_equal(df_buf_str(&out),
                        "<-F></a b/config><git@git.example><git-upload-pack 'x'>");
}

static void a_submodules_url_is_relative_to_its_parent_and_never_above_it(void **state)
{
    (void)state;
    static const struct {
        const char *parent, *url, *result; /* NULL: refused */
    } cases[] = {
        {"https://h/a/super.git", "https://x/y", "https://x/y"},
        {"https://h/a/super.git", "../lib.git", "https://h/a/lib.git"},
        {"https://h/a/super.git/", "../lib.git", "https://h/a/lib.git"},
        {"https://h/a/super.git", "../../b/lib.git", "https://h/b/lib.git"},
        {"https://h/a/super.git", "./lib.git", "https://h/a/super.git/lib.git"},
        {"https://h/a/super.git", "./../lib.git", "https://h/a/lib.git"},
        {"https://h/super.git", "../lib.git", "https://h/lib.git"},
        {"https://h/super.git", "../../x/lib.git", NULL},
        {"https://h:8443", "../lib.git", NULL},
        {"ssh://git@h/a/super", "../lib", "ssh://git@h/a/lib"},
        {"git@h:a/super.git", "../lib.git", "git@h:a/lib.git"},
        {"git@h:super.git", "../lib.git", "git@h:lib.git"},
        {"git@h:a/super.git", "../../lib.git", "git@h:lib.git"},
        {"git@h:super.git", "../../lib.git", NULL},
        {"/srv/super.git", "../lib.git", "/srv/lib.git"},
        {"/super.git", "../lib.git", "/lib.git"},
        {"/super.git", "../../lib.git", NULL},
        {"/srv/super.git", "/srv/lib.git", "/srv/lib.git"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_FREE char *result = NULL;
        struct df_err err = {0};
        if (df_git_resolve_url(cases[i].parent, cases[i].url, &result, &err) < 0)
            assert_string_equal(err.reason, "SourceRefused");
        if (!cases[i].result)
            assert_null(result);
        else
            assert_string_equal(result, cases[i].result);
    }
}

static void what_git_says_becomes_a_class_a_reason_and_advice(void **state)
{
    (void)state;
    static const struct {
        const char *said;
        enum df_err_class cls;
        const char *reason, *message;
    } cases[] = {
        {"fatal: couldn't find remote ref refs/heads/x\n", DF_ERR_NOT_FOUND, "SourceFailed",
         "git U: there is no such branch or tag: names are case-sensitive and written without "
         "refs/heads/ (fatal: couldn't find remote ref refs/heads/x)"},
        {"No ED25519 host key is known for h\nHost key verification failed.\nfatal: Could not read "
         "from remote repository.\n\nPlease make sure\n",
         DF_ERR_DENIED, "SourceRefused",
         "git U: the server's host key is not among the pinned ones: put its line as known_hosts "
         "into the source's secret (Host key verification failed.)"},
        {"error: a\nwarning: b\n", DF_ERR_SYSTEM, "SourceFailed", "git U: exit code 9 (error: a)"},
        {"odd\x1b[2J\n", DF_ERR_SYSTEM, "SourceFailed", "git U: exit code 9 (odd [2J)"},
        {"", DF_ERR_SYSTEM, "SourceFailed", "git U: exit code 9 (no message)"},
        {"fatal: write error: No space left on device\n", DF_ERR_LIMIT, "DiskFull",
         "git U: the disk is full (fatal: write error: No space left on device)"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        struct df_err err = {0};
        assert_int_equal(df_git_explain("U", 9, cases[i].said, NULL, &err), -1);
        assert_int_equal(err.cls, cases[i].cls);
        assert_string_equal(err.reason, cases[i].reason);
        assert_string_equal(err.message, cases[i].message);
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_top, remove_top)

int main(int argc, char **argv)
{
    if (df_source_is_helper())
        return df_source_help(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_sources_are_understood),
        cmocka_unit_test(bad_sources_are_refused_with_the_field_and_the_way_out),
        TEST(a_file_url_is_what_lies_there),
        TEST(a_directory_is_copied_without_what_is_no_module),
        TEST(a_mounted_config_map_is_the_same_module_in_every_pod),
        TEST(a_folder_names_the_module_inside_the_whole_tree),
        TEST(links_out_of_a_directory_and_odd_files_are_refused),
        TEST(a_directory_that_holds_the_work_directory_is_not_copied_into_itself),
        TEST(the_private_directory_is_empty_afterwards_and_the_log_says_what_was_done),
        TEST(the_digest_depends_on_the_tree_alone),
        TEST(every_change_of_a_tree_changes_its_digest),
        TEST(the_password_helper_answers_only_for_the_host_it_was_made_for),
        TEST(as_ssh_the_helper_is_ssh_with_the_configuration_of_the_source),
        cmocka_unit_test(a_submodules_url_is_relative_to_its_parent_and_never_above_it),
        cmocka_unit_test(what_git_says_becomes_a_class_a_reason_and_advice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
