#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "runner/orphans.h"
#include "runner/terrakube/scripts.h"
#include "tests/unit/terrakube_words.h"

enum { LONG_MS = 60000 };

struct place {
    char dir[64];
    char *report_dir, *module, *repository;
    struct df_strs env;
    struct df_dirs dirs;
    struct df_masks *masks;
    struct df_terrakube_settings settings;
    struct df_terrakube_payload payload;
    struct df_terrakube_scripts scripts;
    struct df_context c;
};

static int setup(void **state)
{
    struct place *p = calloc(1, sizeof *p);
    struct df_strs none = {0};
    (void)snprintf(p->dir, sizeof p->dir, "/tmp/dayfly-scripts-XXXXXX");
    assert_non_null(mkdtemp(p->dir));
    p->report_dir = df_fs_join(p->dir, "report");
    p->repository = df_fs_join(p->dir, "repository");
    assert_int_equal(df_fs_mkdirs(p->report_dir, 0700, NULL), 0);
    assert_int_equal(df_dirs_make(p->dir, &p->dirs, NULL), 0);
    p->module = df_fs_join(p->dirs.source, "stack");
    assert_int_equal(df_fs_mkdirs(p->module, 0755, NULL), 0);
    (void)df_strs_add(&p->env, "PATH=/usr/local/bin:/usr/bin:/bin");
    (void)df_strs_add(&p->env, "COLOUR=of-the-tool");
    assert_int_equal(df_masks_new(&none, NULL, &p->masks, NULL), 0);
    assert_int_equal(df_report_to_directory(p->report_dir, &p->c.report, NULL), 0);
    assert_int_equal(df_output_new(p->masks, p->c.report, -1, &p->c.output, NULL), 0);
    assert_int_equal(df_stop_new(-1, &p->c.stop, NULL), 0);
    p->settings = (struct df_terrakube_settings){.internal_secret = strdup(TERRAKUBE_SECRET),
                                                 .public_url = strdup("https://api.example")};
    p->c.dirs = &p->dirs;
    p->c.tool.path = strdup("/opt/tools/tofu");
    p->c.commander = (struct df_commander){.program = p->c.tool.path,
                                           .directory = p->module,
                                           .env = &p->env,
                                           .output = p->c.output,
                                           .stop = p->c.stop,
                                           .grace_ms = LONG_MS};
    p->payload = terrakube_payload("{}");
    p->scripts = (struct df_terrakube_scripts){
        .settings = &p->settings, .payload = &p->payload, .directory = p->module};
    *state = p;
    return 0;
}

static int teardown(void **state)
{
    struct place *p = *state;
    (void)df_orphans_end();
    df_terrakube_scripts_free(&p->scripts);
    df_terrakube_payload_free(&p->payload);
    df_output_free(p->c.output);
    df_report_free(p->c.report);
    df_stop_free(p->c.stop);
    df_context_free(&p->c);
    df_masks_free(p->masks);
    df_dirs_free(&p->dirs);
    df_strs_free(&p->env);
    free(p->settings.internal_secret);
    free(p->settings.public_url);
    free(p->settings.tools_repository);
    free(p->settings.tools_branch);
    free(p->repository);
    free(p->module);
    free(p->report_dir);
    int failed = df_fs_remove_tree(p->dir, NULL);
    free(p);
    return failed;
}

static void use(struct place *p, const char *members)
{
    df_terrakube_payload_free(&p->payload);
    p->payload = terrakube_payload(members);
}

static int run(struct place *p, enum df_terrakube_phase phase, struct df_err *err)
{
    return df_terrakube_scripts_run(&p->c, &p->scripts, p->payload.commands, phase, err);
}

static void ran(struct place *p, enum df_terrakube_phase phase)
{
    struct df_err err = {0};
    if (run(p, phase, &err) < 0)
        fail_msg("%s", err.message);
}

static char *log_of(const struct place *p)
{
    DF_FREE char *path = df_fs_join(p->report_dir, "log");
    DF_BUF struct df_buf b = DF_BUF_INIT(DF_MIB);
    assert_int_equal(df_output_flush(p->c.output, NULL), 0);
    assert_int_equal(df_fs_read(path, &b, NULL), 0);
    return strdup(df_buf_str(&b));
}

static void log_is(const struct place *p, const char *expected)
{
    DF_FREE char *log = log_of(p);
    assert_string_equal(log, expected);
}

/* A command with this script and these further members. */
#define BASH(script, priority, more)                                                               \
    "{\"runtime\":\"BASH\",\"script\":\"" script "\",\"priority\":" #priority more "}"
#define BEFORE ",\"before\":true"
#define AFTER ",\"after\":true"
#define COMMANDS(...) "{\"commandList\":[" __VA_ARGS__ "]"

static void each_phase_runs_its_commands_in_the_order_of_their_priority(void **state)
{
    struct place *p = *state;
    use(p,
        COMMANDS(BASH("echo after", 1, AFTER) "," BASH("echo second", 20, BEFORE) "," BASH(
            "echo first", 10,
            BEFORE) "," BASH("echo as well", 20,
                             BEFORE) "," BASH("echo init", 5, BEFORE ",\"beforeInit\":true")) "}");
    ran(p, DF_TERRAKUBE_BEFORE_INIT);
    ran(p, DF_TERRAKUBE_BEFORE);
    ran(p, DF_TERRAKUBE_AFTER);
    log_is(p, "init\nfirst\nsecond\nas well\nafter\n");
}

static void the_first_failure_ends_the_phase_and_tells_its_code(void **state)
{
    struct place *p = *state;
    use(p, COMMANDS(BASH("echo one >&2; exit 7", 1, BEFORE) "," BASH("echo two", 2, BEFORE)) "}");
    struct df_err err = {0};
    assert_int_equal(run(p, DF_TERRAKUBE_BEFORE, &err), -1);
    assert_string_equal(err.reason, "ScriptFailed");
    assert_non_null(strstr(err.message, "exit code 7"));
    log_is(p, "one\n\033[31;40;1mScript Exit Code ==>7\033[0m\n");
}

static void a_verbose_command_shows_its_script_as_terrakube_does(void **state)
{
    struct place *p = *state;
    use(p, COMMANDS(BASH("echo hello\\n", 200, BEFORE ",\"verbose\":true")) "}");
    ran(p, DF_TERRAKUBE_BEFORE);
#define G(line) "\033[32;40;1m" line "\033[0m\n"
    log_is(p,
           G("***************************************") G("Command Priority 200") G("Running BASH")
               G("Script Information:  ") G("echo hello") G("") G("") G("") G("")
                   G("***************************************")
                       G("Begin Execution: ") "hello\n" G("End Execution... ") G("") G("") G(""));
}

static void a_script_knows_its_job_and_nothing_of_the_platform(void **state)
{
    struct place *p = *state;
    use(p,
        COMMANDS(BASH("echo $workspaceId $jobId $stepId $organizationId $terraformVersion $source "
                      "$branch $vcsType [$accessToken] $terrakubeApi ${#terrakubeToken}; echo "
                      "$workingDirectory; echo $COLOUR $owner [$terraformOutput]; env",
                      1, BEFORE)) ",\"environmentVariables\":{\"COLOUR\":\"blue\",\"owner\":"
                                  "\"env\"},\"variables\":{\"owner\":\"variable\"}}");
    p->scripts.terraform_output = "{\"o\":1}";
    ran(p, DF_TERRAKUBE_BEFORE);
    DF_FREE char *log = log_of(p);
    DF_FREE char *place = df_strf("\n%s\nblue variable [{\"o\":1}]\n", p->module);
    assert_true(df_starts_with(
        log, "22222222-2222-2222-2222-222222222222 7 33333333-3333-3333-3333-333333333333 "
             "11111111-1111-1111-1111-111111111111 1.12.6 https://git.example/a.git main PUBLIC [] "
             "https://api.example "));
    assert_non_null(strstr(log, place));
    assert_null(strstr(log, "HOME=")); /* of the runner's own environment nothing */
    assert_null(strstr(log, TERRAKUBE_SECRET));
}

static void the_token_of_a_script_is_masked_when_it_prints_it(void **state)
{
    struct place *p = *state;
    use(p, COMMANDS(BASH("echo is $terrakubeToken", 1, BEFORE) "," BASH(
               "echo is ${terrakubeToken:0:2} $terrakubeToken", 2, BEFORE)) "}");
    ran(p, DF_TERRAKUBE_BEFORE);
    log_is(p, "is ***\nis ey ***\n");
}

static void what_a_script_leaves_is_in_the_environment_of_the_next(void **state)
{
    struct place *p = *state;
    use(p, COMMANDS(BASH("echo FROM=yes=really >> $terrakubeEnv; echo no value >> $terrakubeEnv", 1,
                         BEFORE) "," BASH("echo $FROM", 2, BEFORE)) "}");
    ran(p, DF_TERRAKUBE_BEFORE);
    log_is(p, "yes=really\n");
    assert_int_equal(df_terrakube_temp_env(p->module, &p->env, NULL), 0);
    assert_string_equal(df_strs_get_env(&p->env, "FROM"), "yes=really");
    assert_int_equal(p->env.len, 3);
}

static void what_scripts_leave_has_a_limit(void **state)
{
    struct place *p = *state;
    DF_FREE char *path = df_fs_join(p->module, ".terrakube_temp_env");
    DF_FREE char *large = malloc(DF_LIMIT_TERRAKUBE_TEMP_ENV + 1);
    memset(large, 'x', DF_LIMIT_TERRAKUBE_TEMP_ENV + 1);
    assert_int_equal(df_fs_write(path, large, DF_LIMIT_TERRAKUBE_TEMP_ENV + 1, 0600, NULL), 0);
    struct df_err err = {0};
    assert_int_equal(df_terrakube_temp_env(p->module, &p->env, &err), -1);
    assert_int_equal(err.cls, DF_ERR_LIMIT);
}

/* ---- tools ---- */

static void git(const struct place *p, const char *command)
{
    DF_FREE char *line =
        df_strf("mkdir -p '%s' && cd '%s' && export GIT_CONFIG_GLOBAL=/dev/null "
                "GIT_AUTHOR_NAME=x GIT_AUTHOR_EMAIL=x GIT_COMMITTER_NAME=x GIT_COMMITTER_EMAIL=x "
                "&& %s",
                p->repository, p->repository, command);
    const char *const argv[] = {"sh", "-c", line, NULL};
    const char *const env[] = {"PATH=/usr/local/bin:/usr/bin:/bin", NULL};
    const struct df_process_options o = DF_PROCESS_OPTIONS(argv, env);
    int code = -1;
    assert_int_equal(df_process_run(&o, LONG_MS, NULL, NULL, &code, NULL), 0);
    assert_int_equal(code, 0);
}

static void scripts_find_the_tools_and_the_module_keeps_none_of_them(void **state)
{
    struct place *p = *state;
    git(p,
        "git init -q -b main . && mkdir hello && echo 'echo hello to $1' > hello/say-hello.sh && "
        "git add . && git commit -q -m x");
    p->settings.tools_repository = df_strf("file://%s", p->repository);
    p->settings.tools_branch = strdup("main");
    DF_FREE char *own = df_fs_join(p->module, "bin/own-tool.sh");
    DF_FREE char *bin = df_fs_join(p->module, "bin");
    assert_int_equal(df_fs_mkdirs(bin, 0755, NULL), 0);
    assert_int_equal(df_fs_write(own, "echo own\n", 9, 0644, NULL), 0);
    use(p, COMMANDS(BASH("say-hello.sh you; own-tool.sh; ls $terrakubeToolsRepository; case "
                         ":$PATH: in *:/opt/tools:*) echo tofu;; esac",
                         1, BEFORE) "," BASH("say-hello.sh again", 1, AFTER)) "}");
    ran(p, DF_TERRAKUBE_BEFORE);
    DF_FREE char *tools = df_fs_join(p->module, ".terrakube/toolsRepository");
    assert_false(df_fs_exists(tools));
    assert_int_equal(df_fs_remove_tree(p->repository, NULL), 0); /* it is cloned once */
    ran(p, DF_TERRAKUBE_AFTER);
    log_is(p, "hello to you\nown\nhello\ntofu\nhello to again\n");
}

static void without_commands_no_tools_are_fetched(void **state)
{
    struct place *p = *state;
    p->settings.tools_repository = strdup("file:///nonexistent/tools");
    use(p, COMMANDS(BASH("echo after", 1, AFTER)) "}");
    ran(p, DF_TERRAKUBE_BEFORE);
    ran(p, DF_TERRAKUBE_BEFORE_INIT);
    log_is(p, "");
}

static void tools_that_cannot_be_fetched_are_said_and_the_script_runs(void **state)
{
    struct place *p = *state;
    p->settings.tools_repository = strdup("file:///nonexistent/tools");
    use(p, COMMANDS(BASH("echo here", 1, AFTER)) "}");
    ran(p, DF_TERRAKUBE_AFTER);
    DF_FREE char *log = log_of(p);
    assert_non_null(strstr(log, "without the tools repository file:///nonexistent/tools"));
    assert_true(df_ends_with(log, "here\n"));
}

/* ---- ends ---- */

static void a_stop_ends_the_script_and_what_it_started(void **state)
{
    struct place *p = *state;
    use(p, COMMANDS(BASH("sleep 1000 & echo $! > child; kill -TERM $runner; wait", 1,
                         BEFORE) "," BASH("echo never", 2, BEFORE)) "}");
    DF_FREE char *me = df_strf("runner=%d", (int)getpid());
    (void)df_strs_add(&p->env, me);
    struct df_err err = {0};
    int64_t before = df_mono_ms();
    assert_int_equal(run(p, DF_TERRAKUBE_BEFORE, &err), -1);
    assert_int_equal(err.cls, DF_ERR_RETRY);
    assert_true(df_mono_ms() - before < LONG_MS);
    DF_FREE char *path = df_fs_join(p->module, "child");
    DF_BUF struct df_buf b = DF_BUF_INIT(100);
    assert_int_equal(df_fs_read(path, &b, NULL), 0);
    pid_t child = (pid_t)strtol(df_buf_str(&b), NULL, 10);
    (void)waitpid(child, NULL, 0); /* it came to us when bash ended, and may be taken already */
    assert_int_equal(kill(child, 0), -1);
    DF_FREE char *log = log_of(p);
    assert_null(strstr(log, "never"));
}

static void an_image_without_groovy_says_so(void **state)
{
    struct place *p = *state;
    (void)df_strs_set_env(&p->env, "PATH", "/nonexistent");
    use(p,
        COMMANDS("{\"runtime\":\"GROOVY\",\"script\":\"x\",\"priority\":1,\"before\":true}") "}");
    struct df_err err = {0};
    assert_int_equal(run(p, DF_TERRAKUBE_BEFORE, &err), -1);
    assert_string_equal(err.reason, "ScriptFailed");
    assert_non_null(strstr(err.message, "this image has no groovy"));
}

static void an_image_without_bash_says_so(void **state)
{
    struct place *p = *state;
    (void)df_strs_set_env(&p->env, "PATH", "/nonexistent");
    use(p, COMMANDS(BASH("echo x", 1, BEFORE)) "}");
    struct df_err err = {0};
    assert_int_equal(run(p, DF_TERRAKUBE_BEFORE, &err), -1);
    assert_string_equal(err.reason, "ScriptFailed");
    assert_non_null(strstr(err.message, "bash, which is not in this image"));
}

static void a_source_cannot_lead_the_tools_elsewhere(void **state)
{
    struct place *p = *state;
    DF_FREE char *link = df_fs_join(p->module, ".terrakube");
    assert_int_equal(symlink(p->dirs.home, link), 0);
    use(p, COMMANDS(BASH("echo x", 1, BEFORE)) "}");
    struct df_err err = {0};
    assert_int_equal(run(p, DF_TERRAKUBE_BEFORE, &err), -1);
    assert_string_equal(err.reason, "ScriptFailed");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_phase_runs_its_commands_in_the_order_of_their_priority),
        TEST(the_first_failure_ends_the_phase_and_tells_its_code),
        TEST(a_verbose_command_shows_its_script_as_terrakube_does),
        TEST(a_script_knows_its_job_and_nothing_of_the_platform),
        TEST(the_token_of_a_script_is_masked_when_it_prints_it),
        TEST(what_a_script_leaves_is_in_the_environment_of_the_next),
        TEST(what_scripts_leave_has_a_limit),
        TEST(scripts_find_the_tools_and_the_module_keeps_none_of_them),
        TEST(without_commands_no_tools_are_fetched),
        TEST(tools_that_cannot_be_fetched_are_said_and_the_script_runs),
        TEST(a_stop_ends_the_script_and_what_it_started),
        TEST(an_image_without_groovy_says_so),
        TEST(an_image_without_bash_says_so),
        TEST(a_source_cannot_lead_the_tools_elsewhere),
    };
    df_stop_block();
    if (df_orphans_adopt(NULL) < 0)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
