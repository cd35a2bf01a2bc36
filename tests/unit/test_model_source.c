/* Where a module may come from. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/model_words.h"

#define SHA256 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define COMMIT "0123456789abcdef0123456789abcdef01234567"

static void sources_that_are_accepted_tell_their_kind(void **state)
{
    (void)state;
    static const struct {
        const char *source, *kind;
    } cases[] = {
        {"{'url':'file:///dir'}", NULL},
        {"{'url':'file:///dir with blank/\xc3\xa9'}", NULL},
        {"{'url':'file:///dir/'}", NULL},
        {"{'url':'file:///dir','kind':'directory'}", "directory"},
        {"{'url':'file:///repo','branch':'main'}", "git"},
        {"{'url':'file:///repo.git','tag':'v1'}", "git"},
        {"{'url':'file:///repo.git/','tag':'v1'}", "git"},
        {"{'url':'file:///x.tar.gz'}", "archive"},
        {"{'url':'file:///x.tar'}", "archive"},
        {"{'url':'file:///x.ZIP','sha256':'" SHA256 "'}", "archive"},
        {"{'url':'https://h/x.tgz','sha256':'" SHA256 "'}", "archive"},
        {"{'url':'https://h/x.tar.zst?ref=1','sha256':'" SHA256 "'}", "archive"},
        {"{'url':'https://h/download','kind':'archive','sha256':'" SHA256 "'}", "archive"},
        {"{'url':'https://git.example/a/b','branch':'main'}", "git"},
        {"{'url':'https://git.example:8443/a/b.git','commit':'" COMMIT "'}", "git"},
        {"{'url':'https://[::1]:8443/a','commit':'" SHA256 "'}", "git"},
        {"{'url':'http://127.0.0.1:1234/a.git','branch':'main'}", "git"},
        {"{'url':'http://localhost/a.git','branch':'main'}", "git"},
        {"{'url':'ssh://git@h:2222/a.git','branch':'feature/x.y_z'}", "git"},
        {"{'url':'ssh://h/a','branch':'main'}", "git"},
        {"{'url':'git@github.com:a/b.git','tag':'v1.2.3'}", "git"},
        {"{'url':'git@h:b','branch':'main','folder':'a/b/c','submodules':true,'secretRef':"
         "{'name':'key'}}",
         "git"},
        {"{'url':'https://h//srv/git/a.git','branch':'main'}", "git"},
        {"{'url':'ssh://git@h//srv/a.git','branch':'main'}", "git"},
        {"{'url':'https://h/tree/a','branch':'main'}", "git"},
        {"{'url':'https://h/a/b/tree','branch':'main'}", "git"},
        {"{'url':'https://h/a/b/src/tree/c.git','branch':'main'}", "git"},
        {"{'url':'https://h/a/b/src/main','branch':'main'}", "git"},
        {"{'url':'https://h/x.zip?from=http://i/x','sha256':'" SHA256 "'}", "archive"},
        {"{'url':'file:///r.git','branch':'main','folder':''}", "git"},
        {"{'url':'file:///r.git','branch':'main','folder':'.'}", "git"},
        {"{'url':'file:///r.git','branch':'main','folder':'..a/b..'}", "git"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_JSON cJSON *j = executor_from(cases[i].source);
        assert_admitted(DF_KIND_EXECUTOR, j, cases[i].source);
        const char *kind = df_json_str(j, "spec.source.kind");
        if (cases[i].kind ? !df_streq(kind, cases[i].kind) : kind != NULL)
            fail_msg("%s: kind %s", cases[i].source, kind ? kind : "absent");
    }
}

static void hostile_and_ambiguous_sources_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *source, *fault;
    } cases[] = {
        {"{}", "spec.source.url: is required"},
        {"{'url':''}", "spec.source.url: is empty"},
        {"{'url':'/dir'}", "must be a file:///, https:// or ssh:// URL"},
        {"{'url':'dir'}", "must be a file:///"},
        {"{'url':'file://dir'}", "must name an absolute path"},
        {"{'url':'file:/dir'}", "must be a file:///"},
        {"{'url':'FILE:///dir'}", "must be a file:///"},
        {"{'url':'ftp://h/x','branch':'m'}", "must be a file:///"},
        {"{'url':'git://h/x','branch':'m'}", "must be a file:///"},
        {"{'url':'ext::sh -c id','branch':'m'}", "must be a file:///"},
        {"{'url':'ext::sh -c a@b:c','branch':'m'}", "spec.source.url: has"},
        {"{'url':'--upload-pack=id','branch':'m'}", "must be a file:///"},
        {"{'url':'-oProxyCommand=id@h:x','branch':'m'}", "has no valid user name"},
        {"{'url':'git@-oProxyCommand=id:x','branch':'m'}", "has no valid host"},
        {"{'url':'ssh://-oProxyCommand=id/x','branch':'m'}", "has no valid host"},
        {"{'url':'ssh://-l@h/x','branch':'m'}", "has no valid user name"},
        {"{'url':'git@h:-x','branch':'m'}", "has no valid path"},
        {"{'url':'git@h:','branch':'m'}", "has no valid path"},
        {"{'url':'git@h::x','branch':'m'}", "has no valid path"},
        {"{'url':'@h:x','branch':'m'}", "must be a file:///"},
        {"{'url':'https://','branch':'m'}", "has no valid host"},
        {"{'url':'https://h','branch':'m'}", "has no path"},
        {"{'url':'https://h/','branch':'m'}", "has no path"},
        {"{'url':'https://h:0/x','branch':'m'}", "has no valid port"},
        {"{'url':'https://h:99999/x','branch':'m'}", "has no valid port"},
        {"{'url':'https://h:/x','branch':'m'}", "has no valid port"},
        {"{'url':'https://h_h/x','branch':'m'}", "has no valid host"},
        {"{'url':'https://h/a b','branch':'m'}", "percent-encode it"},
        {"{'url':'https://h/a\\\\b','branch':'m'}", "percent-encode it"},
        {"{'url':'https://h/\xc3\xa9','branch':'m'}", "percent-encode it"},
        {"{'url':'https://h/a\\u0001','branch':'m'}", "has a control character"},
        {"{'url':'https://h/a#frag','branch':'m'}", "may not have a fragment"},
        {"{'url':'https://h/a?ref=v1','branch':'m'}", "may have no query"},
        {"{'url':'http://h/a','branch':'m'}", "must be https"},
        {"{'url':'http://127.0.0.1.evil/a','branch':'m'}", "must be https"},
        {"{'url':'https://user:hunter2@h/a','branch':'m'}", "name it in secretRef"},
        {"{'url':'https://hunter2@h/a','branch':'m'}", "name it in secretRef"},
        {"{'url':'ssh://git:hunter2@h/a','branch':'m'}", "name it in secretRef"},
        {"{'url':'https://h/x.zip?token=hunter2','sha256':'" SHA256 "'}", "name it in secretRef"},
        {"{'url':'https://h/x.zip?X-Amz-Signature=hunter2','sha256':'" SHA256 "'}",
         "name it in secretRef"},
        /* a folder or a ref in the URL */
        {"{'url':'git@h:org/infra.git//net','branch':'m'}", "has a folder behind //: name the"},
        {"{'url':'https://h/org/infra//net/prod'}", "(--folder)"},
        {"{'url':'https://h/infra.git//net?ref=v1'}", "has a folder behind //"},
        {"{'url':'ssh://git@h:22/infra.git//net'}", "has a folder behind //"},
        {"{'url':'file:///srv/infra.git//net'}", "has a folder behind //"},
        {"{'url':'git::https://h/infra.git//net?ref=v1'}", "begins with git::"},
        {"{'url':'git::ssh://git@h/infra.git'}", "begins with git::"},
        {"{'url':'https://github.com/org/repo/tree/main/net'}", "is the web page of a folder"},
        {"{'url':'https://github.com/org/repo/blob/main/main.tf'}", "is the web page"},
        {"{'url':'https://git.example/a/b/c/-/tree/main/net'}", "is the web page"},
        {"{'url':'https://git.example/a/b/src/branch/main/net'}", "is the web page"},
        {"{'url':'https://bitbucket.org/org/repo/src/main/net/'}", "is the web page"},
        /* refs */
        {"{'url':'file:///r.git'}", "needs a tag, a branch or a commit"},
        {"{'url':'https://h/r','tag':'a','branch':'b'}",
         "takes only one of tag, branch and commit"},
        {"{'url':'file:///r','tag':'a','commit':'" COMMIT "'}", "takes only one"},
        {"{'url':'file:///x.zip','tag':'a'}", "of kind archive has neither tag"},
        {"{'url':'file:///x','kind':'directory','tag':'a'}", "of kind directory has neither tag"},
        {"{'url':'https://h/r','branch':'-b'}", "spec.source.branch: may not begin with -"},
        {"{'url':'https://h/r','tag':'--upload-pack=id'}", "spec.source.tag: may not begin with -"},
        {"{'url':'https://h/r','branch':'a..b'}", "is not a name that git allows"},
        {"{'url':'https://h/r','branch':'a b'}", "is not a name that git allows"},
        {"{'url':'https://h/r','branch':'a~1'}", "is not a name that git allows"},
        {"{'url':'https://h/r','branch':'a^'}", "is not a name that git allows"},
        {"{'url':'https://h/r','branch':'a:b'}", "is not a name that git allows"},
        {"{'url':'https://h/r','branch':'a@{1}'}", "is not a name that git allows"},
        {"{'url':'https://h/r','branch':'@'}", "is not a name that git allows"},
        {"{'url':'https://h/r','branch':'.a'}", "is not a name that git allows"},
        {"{'url':'https://h/r','branch':'a/.b'}", "is not a name that git allows"},
        {"{'url':'https://h/r','branch':'a//b'}", "is not a name that git allows"},
        {"{'url':'https://h/r','branch':'a/'}", "is not a name that git allows"},
        {"{'url':'https://h/r','branch':'/a'}", "is not a name that git allows"},
        {"{'url':'https://h/r','branch':'a.lock'}", "is not a name that git allows"},
        {"{'url':'https://h/r','branch':'a.lock/b'}", "is not a name that git allows"},
        {"{'url':'https://h/r','branch':'a*'}", "is not a name that git allows"},
        {"{'url':'https://h/r','branch':'a\\\\b'}", "is not a name that git allows"},
        {"{'url':'https://h/r','branch':'refs/heads/main'}", "is the short name"},
        {"{'url':'https://h/r','branch':''}", "spec.source.branch: is empty"},
        {"{'url':'https://h/r','commit':'0123'}", "must be 40 or 64 lower-case hex digits"},
        {"{'url':'https://h/r','commit':'0123456789ABCDEF0123456789abcdef01234567'}", "must be 40"},
        {"{'url':'https://h/r','commit':'g123456789abcdef0123456789abcdef01234567'}", "must be 40"},
        /* folders */
        {"{'url':'https://h/r','branch':'m','folder':'/a'}", "must be a relative path"},
        {"{'url':'https://h/r','branch':'m','folder':'..'}", "may not lead through .."},
        {"{'url':'https://h/r','branch':'m','folder':'a/../b'}", "may not lead through .."},
        {"{'url':'https://h/r','branch':'m','folder':'a/.git/hooks'}", "may not lead through"},
        {"{'url':'https://h/r','branch':'m','folder':'.GIT'}", "may not lead through"},
        {"{'url':'https://h/r','branch':'m','folder':'a//b'}", "has an empty part"},
        {"{'url':'https://h/r','branch':'m','folder':'a\\\\b'}", "must be a relative path"},
        {"{'url':'https://h/r','branch':'m','folder':'-a'}", "must be a relative path"},
        /* kinds */
        {"{'url':'https://h/x.zip'}", "needs sha256"},
        {"{'url':'https://h/x.tar'}", "needs sha256"},
        {"{'url':'http://localhost/x.zip'}", "needs sha256"},
        {"{'url':'file:///x.zip','sha256':'0'}", "must be 64 lower-case hex digits"},
        {"{'url':'https://h/r','branch':'m','sha256':'" SHA256 "'}", "of kind git has no sha256"},
        {"{'url':'https://h/r','kind':'directory'}", "needs a file:/// URL"},
        {"{'url':'git@h:r.zip','kind':'archive'}", "needs a file or https URL"},
        {"{'url':'file:///r','kind':'svn'}", "is not one of directory, git, archive"},
        {"{'url':'file:///x.zip','submodules':true}", "has no submodules"},
        {"{'url':'https://h/r','branch':'m','secretRef':'x'}", "secretRef: must be an object"},
        {"{'url':'https://h/r','branch':'m','depth':1}", "spec.source.depth: is not a field"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_JSON cJSON *j = executor_from(cases[i].source);
        assert_refused(DF_KIND_EXECUTOR, j, cases[i].source, cases[i].fault);
        /* A credential in a URL does not come back in the message. */
        struct df_err err = {0};
        assert_int_equal(df_model_admit(DF_KIND_EXECUTOR, j, NULL, &err), -1);
        assert_null(strstr(err.message, "hunter2"));
    }
}

static void spellings_of_one_repository_are_the_same(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b;
        bool same;
    } cases[] = {
        {"https://h/r", "https://h/r", true},
        {"https://h/r", "https://h/r.git", true},
        {"file:///a/r", "file:///a/r.git", false},
        {"file:///a/r/", "file:///a/r", true},
        {"https://h/r.git/", "https://h/r", true},
        {"https://Git.Example/r", "HTTPS://git.example/r//", true},
        {"git@Host:a/r.git", "git@host:a/r", true},
        {"ssh://git@Host/a/r", "ssh://git@host/a/r.git", true},
        {"file:///m", "file:///m/", true},
        {"https://h/r", "https://h/R", false},
        {"https://h/r", "https://h/r2", false},
        {"https://h/r", "http://h/r", false},
        {"https://h/r", "https://other/r", false},
        {"git@host:a/r", "Git@host:a/r", false},
        {"file:///m", "file:///M", false},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++)
        if (df_source_is_same(cases[i].a, cases[i].b) != cases[i].same)
            fail_msg("%s and %s", cases[i].a, cases[i].b);
}

static void a_provisioned_executor_keeps_its_repository(void **state)
{
    (void)state;
    static const struct {
        const char *executor;
        bool refused;
    } cases[] = {
        {"{'status':{'state':'provisioned','provisionedFrom':'https://h/r'},"
         "'spec':{'source':{'url':'https://h/r.git'}}}",
         false},
        {"{'status':{'state':'provisioned','provisionedFrom':'https://h/r'},"
         "'spec':{'source':{'url':'https://h/x'}}}",
         true},
        {"{'status':{'state':'destroyed','provisionedFrom':'https://h/r'},"
         "'spec':{'source':{'url':'https://h/x'}}}",
         false},
        {"{'status':{'state':'provision','mayHoldResources':true,'provisionedFrom':'https://h/r'},"
         "'spec':{'source':{'url':'https://h/x'}}}",
         true},
        {"{'metadata':{'annotations':{'dayfly.dev/confirm-source-change':'https://h/x'}},"
         "'status':{'state':'provisioned','provisionedFrom':'https://h/r'},"
         "'spec':{'source':{'url':'https://h/x'}}}",
         false},
        {"{'metadata':{'annotations':{'dayfly.dev/confirm-source-change':'https://h/y'}},"
         "'status':{'state':'provisioned','provisionedFrom':'https://h/r'},"
         "'spec':{'source':{'url':'https://h/x'}}}",
         true},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_JSON cJSON *executor = json(cases[i].executor);
        struct df_err err = {0};
        int result = df_executor_check_provisioned_from(executor, &err);
        if ((result < 0) != cases[i].refused)
            fail_msg("%s", cases[i].executor);
        if (result < 0)
            assert_string_equal(err.reason, "SourceChange");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sources_that_are_accepted_tell_their_kind),
        cmocka_unit_test(hostile_and_ambiguous_sources_are_refused),
        cmocka_unit_test(spellings_of_one_repository_are_the_same),
        cmocka_unit_test(a_provisioned_executor_keeps_its_repository),
    };
    return cmocka_run_group_tests_name("model_source", tests, NULL, NULL);
}
