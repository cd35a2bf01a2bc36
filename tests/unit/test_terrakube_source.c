#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/fs.h"
#include "runner/source/spec.h"
#include "runner/terrakube/source.h"
#include "tests/unit/terrakube_words.h"

extern char **environ;

#define COMMIT "13aaf574433c256ca5833728b120c5393f7039c4"

static int add(const char *members, const char *known_hosts, cJSON *step, struct df_err *err)
{
    DF_CLEANUP(df_terrakube_payload_free)
    struct df_terrakube_payload p = terrakube_payload(members);
    const struct df_terrakube_source_request r = {.payload = &p, .known_hosts = known_hosts};
    return df_terrakube_source_add(&r, step, err);
}

static cJSON *step_of(const char *members, const char *known_hosts)
{
    cJSON *step = cJSON_CreateObject();
    struct df_err err = {0};
    if (add(members, known_hosts, step, &err) < 0)
        fail_msg("%s: %s", members, err.message);
    return step;
}

static void refused(const char *members, const char *word)
{
    DF_JSON cJSON *step = cJSON_CreateObject();
    struct df_err err = {0};
    if (add(members, NULL, step, &err) == 0)
        fail_msg("taken: %s", members);
    assert_string_equal(err.reason, "SourceRefused");
    if (!strstr(err.message, word))
        fail_msg("\"%s\" is not in: %s", word, err.message);
}

/* What the step document says must be what the runner takes. */
static void read_spec(const cJSON *step)
{
    DF_SOURCE_SPEC struct df_source_spec spec = {0};
    struct df_err err = {0};
    if (df_source_spec_read(df_json_at(step, "source"), &spec, &err) < 0)
        fail_msg("%s", err.message);
}

static void a_public_repository_needs_no_credentials(void **state)
{
    (void)state;
    DF_JSON cJSON *step = step_of("{}", NULL);
    DF_FREE char *text = df_json_print(step);
    assert_string_equal(text, "{\"source\":{\"url\":\"https://git.example/a.git\",\"kind\":\"git\","
                              "\"acceptsHttp\":true,\"ref\":\"main\",\"submodules\":true}}");
    read_spec(step);
}

static void each_vcs_has_its_user_name_for_the_token(void **state)
{
    (void)state;
    static const struct {
        const char *vcs, *user;
    } cases[] = {{"GITHUB", "x-access-token"},
                 {"GITLAB", "oauth2"},
                 {"BITBUCKET", "x-token-auth"},
                 {"AZURE_DEVOPS", "dummy"}};
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_FREE char *members =
            df_strf("{\"vcsType\":\"%s\",\"connectionType\":\"OAUTH\",\"accessToken\":\"t0\"}",
                    cases[i].vcs);
        DF_JSON cJSON *step = step_of(members, NULL);
        assert_string_equal(df_json_str(step, "source.credentials.username"), cases[i].user);
        assert_string_equal(df_json_str(step, "source.credentials.password"), "t0");
        read_spec(step);
    }
}

static void a_token_goes_over_http_to_loopback_alone_unless_an_operator_allows_it(void **state)
{
    (void)state;
    static const char bare[] = "{\"source\":\"http://git.example/a.git\"}";
    static const char near[] = "{\"vcsType\":\"GITHUB\",\"accessToken\":\"t\",\"source\":"
                               "\"http://127.0.0.1:3000/a.git\"}";
    static const char far[] = "{\"vcsType\":\"GITHUB\",\"accessToken\":\"t\",\"source\":"
                              "\"http://git.example/a.git\"}";
    DF_JSON cJSON *without = step_of(bare, NULL), *local = step_of(near, NULL);
    read_spec(without);
    read_spec(local);
    assert_string_equal(df_json_str(local, "source.credentials.password"), "t");
    assert_null(df_json_at(local, "source.acceptsHttp")); /* nor may a submodule */
    refused(far, "use https");
    refused(far, "DAYFLY_TERRAKUBE_HTTP_CREDENTIALS=true");
    refused("{\"source\":\"https://joe:hunter2@git.example/a.git\"}", "add the VCS connection");
    DF_CLEANUP(df_terrakube_payload_free) struct df_terrakube_payload p = terrakube_payload(far);
    const struct df_terrakube_settings s = {.http_credentials = true};
    const struct df_terrakube_source_request r = {.settings = &s, .payload = &p};
    DF_JSON cJSON *allowed = cJSON_CreateObject();
    assert_int_equal(df_terrakube_source_add(&r, allowed, NULL), 0);
    assert_string_equal(df_json_str(allowed, "source.credentials.password"), "t");
    read_spec(allowed);
}

/* Nobody asks for the token: its service is at a port where nobody listens. */
static void the_token_of_the_managed_identity_is_for_azure_devops_alone(void **state)
{
    (void)state;
    static const struct {
        const char *url;
        bool taken;
    } cases[] = {
        {"https://dev.azure.com/org/project/_git/repo", true},
        {"https://org@DEV.azure.com:443/org/project/_git/repo", true},
        {"https://org.visualstudio.com/project/_git/repo", true},
        {"http://dev.azure.com/org/project/_git/repo", false},
        {"https://evil.example/a.git", false},
        {"https://dev.azure.com.evil.example/a.git", false},
        {"https://xdev.azure.com/a.git", false},
        {"https://evilvisualstudio.com/a.git", false},
        {"https://.visualstudio.com/a.git", false},
        {"https://dev.azure.com@evil.example/a.git", false},
        {"https://dev.azure.com:x@evil.example/a.git", false},
        {"https://evil.example/?dev.azure.com", false},
        {"https://127.0.0.1/a.git", false},
        {"git@dev.azure.com:v3/org/project/repo", false},
    };
    char endpoint[] = "IDENTITY_ENDPOINT=http://127.0.0.1:1/token", header[] = "IDENTITY_HEADER=x";
    char *identity[] = {endpoint, header, NULL}, **before = environ;
    environ = identity;
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_FREE char *members =
            df_strf("{\"vcsType\":\"AZURE_SP_MI\",\"source\":\"%s\"}", cases[i].url);
        DF_JSON cJSON *step = cJSON_CreateObject();
        struct df_err err = {0};
        assert_int_equal(add(members, NULL, step, &err), -1);
        if (cases[i].taken == df_streq(err.reason, "SourceRefused"))
            fail_msg("%s: %s", cases[i].url, err.message);
        assert_non_null(strstr(err.message, cases[i].taken ? "managed identity for Azure DevOps"
                                                           : "https://dev.azure.com and"));
    }
    environ = before;
}

static void a_key_over_ssh_accepts_hosts_only_when_none_are_known(void **state)
{
    (void)state;
    static const char members[] = "{\"vcsType\":\"SSH~id_ed25519\",\"accessToken\":\"-----BEGIN\","
                                  "\"source\":\"git@git.example:a/b.git\"}";
    DF_JSON cJSON *open = step_of(members, NULL);
    assert_string_equal(df_json_str(open, "source.credentials.sshPrivateKey"), "-----BEGIN");
    assert_true(df_json_bool(open, "source.credentials.acceptsHostKeys", false));
    DF_JSON cJSON *pinned = step_of(members, "git.example ssh-ed25519 AAAA\n");
    assert_string_equal(df_json_str(pinned, "source.credentials.knownHosts"),
                        "git.example ssh-ed25519 AAAA\n");
    assert_false(df_json_bool(pinned, "source.credentials.acceptsHostKeys", false));
    read_spec(pinned);
    refused("{\"vcsType\":\"SSH~id_rsa\",\"source\":\"git@git.example:a/b.git\"}", "SSH key");
}

static void a_commit_is_pinned_only_by_its_whole_id(void **state)
{
    (void)state;
    DF_JSON cJSON *step =
        step_of("{\"commitId\":\"13AAF574433C256CA5833728B120C5393F7039C4\"}", NULL);
    assert_string_equal(df_json_str(step, "expected.commit"), COMMIT);
    refused("{\"commitId\":\"13aaf57\"}", "whole commit id");
    refused("{\"commitId\":\"" COMMIT COMMIT "\"}", "whole commit id");
}

static void the_folder_stays_inside_the_source(void **state)
{
    (void)state;
    static const struct {
        const char *folder, *expected;
    } good[] = {{"/", NULL}, {"", NULL}, {"/stack", "stack"}, {"a/b/", "a/b"}};
    for (size_t i = 0; i < DF_ARRAY_SIZE(good); i++) {
        DF_FREE char *members = df_strf("{\"folder\":\"%s\"}", good[i].folder);
        DF_JSON cJSON *step = step_of(members, NULL);
        const char *folder = df_json_str(step, "source.folder");
        if (good[i].expected)
            assert_string_equal(folder, good[i].expected);
        else
            assert_null(folder);
        read_spec(step);
    }
    static const char *const bad[] = {"/../secret", "a/../../b", ".git"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(bad); i++) {
        DF_FREE char *members = df_strf("{\"folder\":\"%s\"}", bad[i]);
        DF_JSON cJSON *step = step_of(members, NULL);
        DF_SOURCE_SPEC struct df_source_spec spec = {0};
        struct df_err err = {0};
        assert_int_equal(df_source_spec_read(df_json_at(step, "source"), &spec, &err), -1);
        assert_string_equal(err.reason, "SourceRefused");
    }
}

static cJSON *with_module_key(const char *members, const char *known_hosts)
{
    DF_CLEANUP(df_terrakube_payload_free)
    struct df_terrakube_payload p = terrakube_payload(members);
    cJSON *step = cJSON_CreateObject();
    assert_int_equal(df_terrakube_source_add_module_key(&p, known_hosts, step, NULL), 0);
    return step;
}

static void modules_come_with_their_own_key_or_that_of_the_source(void **state)
{
    (void)state;
    static const char key[] = "files.terrakube_module_key";
    DF_JSON cJSON *none = with_module_key("{\"vcsType\":\"GITHUB\",\"accessToken\":\"t\"}", NULL);
    assert_null(none->child);
    DF_JSON cJSON *own = with_module_key(
        "{\"vcsType\":\"SSH~id_rsa\",\"accessToken\":\"S\",\"moduleSshKey\":\"M\"}", NULL);
    assert_string_equal(df_json_str(own, key), "M\n");
    const char *command = df_json_str(own, "environment.GIT_SSH_COMMAND");
    assert_non_null(strstr(command, "-i '@files/terrakube_module_key'"));
    assert_non_null(strstr(command, "StrictHostKeyChecking=accept-new"));
    DF_JSON cJSON *source =
        with_module_key("{\"vcsType\":\"SSH~id_rsa\",\"accessToken\":\"S\"}", "h k\n");
    assert_string_equal(df_json_str(source, key), "S\n");
    assert_string_equal(df_json_str(source, "files.terrakube_known_hosts"), "h k\n");
    assert_non_null(
        strstr(df_json_str(source, "environment.GIT_SSH_COMMAND"), "StrictHostKeyChecking=yes"));
}

static void known_hosts_are_those_of_the_named_file_or_the_step_fails(void **state)
{
    (void)state;
    char path[] = "/tmp/dayfly-hosts-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    DF_STRS struct df_strs env = {0};
    char *hosts = NULL;
    struct df_err err = {0};
    assert_int_equal(df_terrakube_known_hosts(&env, &hosts, NULL), 0);
    assert_null(hosts);
    (void)df_strs_set_env(&env, "DAYFLY_KNOWN_HOSTS", path);
    assert_int_equal(df_terrakube_known_hosts(&env, &hosts, &err), -1); /* it is empty */
    assert_string_equal(err.reason, "SourceRefused");
    assert_int_equal(df_fs_write_all(fd, "h k\n", 4, NULL), 0);
    (void)close(fd);
    assert_int_equal(df_terrakube_known_hosts(&env, &hosts, NULL), 0);
    assert_string_equal(hosts, "h k\n");
    free(hosts);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(df_terrakube_known_hosts(&env, &hosts, &err), -1);
    assert_non_null(strstr(err.message, "DAYFLY_KNOWN_HOSTS"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_public_repository_needs_no_credentials),
        cmocka_unit_test(each_vcs_has_its_user_name_for_the_token),
        cmocka_unit_test(a_token_goes_over_http_to_loopback_alone_unless_an_operator_allows_it),
        cmocka_unit_test(the_token_of_the_managed_identity_is_for_azure_devops_alone),
        cmocka_unit_test(a_key_over_ssh_accepts_hosts_only_when_none_are_known),
        cmocka_unit_test(a_commit_is_pinned_only_by_its_whole_id),
        cmocka_unit_test(the_folder_stays_inside_the_source),
        cmocka_unit_test(known_hosts_are_those_of_the_named_file_or_the_step_fails),
        cmocka_unit_test(modules_come_with_their_own_key_or_that_of_the_source),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
