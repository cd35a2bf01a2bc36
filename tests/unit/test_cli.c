#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/stat.h>

#include "common/base/fs.h"
#include "spawner/cli/commands.h"
#include "spawner/cli/follow/follow.h"
#include "spawner/cli/help.h"
#include "spawner/cli/lookup.h"
#include "spawner/cli/module.h"
#include "spawner/cli/module_name.h"
#include "spawner/cli/sse.h"
#include "spawner/cli/variables.h"

static const struct df_option own[] = {
    {"action", 'a', "ACTION", "what", "provision|dry-run|destroy"},
    {"auto-approve", 0, NULL, "do not ask", NULL},
    {"var", 0, "NAME=VALUE", "a variable", NULL},
    {"follow", 'f', NULL, "go on", NULL},
    {0}};
static const struct df_option common[] = {{"server", 0, "URL", "where", NULL}, {0}};

/* Splits a line at blanks into an argv of copies that live as long as the test program. */
static int split(const char *line, char *argv[32])
{
    static char text[1024];
    (void)snprintf(text, sizeof(text), "dayfly %s", line);
    int argc = 0;
    for (char *at = text, *word; (word = strsep(&at, " "));)
        if (*word)
            argv[argc++] = word;
    argv[argc] = NULL;
    return argc;
}

static int parse(const char *line, enum df_args_mode mode, struct df_args *args, struct df_err *err)
{
    static char *argv[32];
    int argc = split(line, argv);
    return df_args_parse(argc, argv, own, common, mode, args, err);
}

/* ---- options ----------------------------------------------------------------------------------
 */

static void options_and_words_may_be_mixed(void **state)
{
    (void)state;
    DF_ARGS struct df_args a = {0};
    assert_int_equal(
        parse("one -a destroy two --var x=1 --server=u --var y=2 three", DF_ARGS_ALL, &a, NULL), 0);
    assert_int_equal(a.word_count, 3);
    assert_string_equal(a.words[0], "one");
    assert_string_equal(a.words[2], "three");
    assert_string_equal(df_arg(&a, "action"), "destroy");
    assert_string_equal(df_arg(&a, "server"), "u");
    assert_string_equal(df_arg(&a, "var"), "y=2");
    assert_string_equal(df_arg_nth(&a, "var", 0), "x=1");
    assert_string_equal(df_arg_nth(&a, "var", 1), "y=2");
    assert_null(df_arg_nth(&a, "var", 2));
    assert_false(df_arg_given(&a, "auto-approve"));
    assert_null(df_arg(&a, "follow"));
}

static void what_stands_behind_two_dashes_is_no_option(void **state)
{
    (void)state;
    DF_ARGS struct df_args a = {0};
    assert_int_equal(parse("-f -- --auto-approve", DF_ARGS_ALL, &a, NULL), 0);
    assert_true(df_arg_given(&a, "follow"));
    assert_false(df_arg_given(&a, "auto-approve"));
    assert_string_equal(a.words[0], "--auto-approve");
}

static void leading_options_end_at_the_first_word(void **state)
{
    (void)state;
    DF_ARGS struct df_args a = {0};
    assert_int_equal(parse("--server u run --nonsense", DF_ARGS_LEADING, &a, NULL), 0);
    assert_int_equal(a.word_count, 2);
    assert_string_equal(a.words[0], "run");
}

static void a_wrong_command_line_is_refused_with_the_way_out(void **state)
{
    (void)state;
    static const struct {
        const char *line, *message;
    } cases[] = {
        {"--auto-aprove", "unknown option --auto-aprove; did you mean --auto-approve?"},
        {"--auto", "unknown option --auto; did you mean --auto-approve?"},
        {"--serv=x", "unknown option --serv; did you mean --server?"},
        {"--serv x", "unknown option --serv; did you mean --server?"},
        {"-f --serv x", "unknown option --serv; did you mean --server?"},
        {"--zzzzzz", "unknown option --zzzzzz; --help lists them"},
        {"-z", "unknown option -z; --help lists them"},
        {"-fz", "unknown option -fz; --help lists them"},
        {"--var", "option --var needs a value: NAME=VALUE"},
        {"-a", "option --action needs a value: ACTION"},
        {"--follow=yes", "option --follow takes no value"},
        {"--action destory", "--action \"destory\": is not one of provision|dry-run|destroy"},
        {"-a ''", "--action \"''\": is not one of provision|dry-run|destroy"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_ARGS struct df_args a = {0};
        struct df_err err = {0};
        assert_int_equal(parse(cases[i].line, DF_ARGS_ALL, &a, &err), -1);
        assert_string_equal(err.message, cases[i].message);
        assert_int_equal(err.cls, DF_ERR_USER);
    }
}

static void a_value_may_look_like_an_option(void **state)
{
    (void)state;
    DF_ARGS struct df_args a = {0};
    assert_int_equal(parse("--var=-parallelism=5 --var --server", DF_ARGS_ALL, &a, NULL), 0);
    assert_string_equal(df_arg_nth(&a, "var", 0), "-parallelism=5");
    assert_string_equal(df_arg_nth(&a, "var", 1), "--server");
}

static void distances_count_slips_of_the_hand(void **state)
{
    (void)state;
    assert_int_equal(df_edit_distance("run", "run"), 0);
    assert_int_equal(df_edit_distance("rnu", "run"), 1);
    assert_int_equal(df_edit_distance("approve", "aprove"), 1);
    assert_int_equal(df_edit_distance("", "abc"), 3);
    char long_word[200];
    memset(long_word, 'a', sizeof(long_word) - 1);
    long_word[sizeof(long_word) - 1] = '\0';
    assert_int_equal(df_edit_distance(long_word, "a"), 31);
}

/* ---- commands ---------------------------------------------------------------------------------
 */

static const struct df_command *find(const char *line)
{
    static char *argv[32];
    int argc = split(line, argv);
    return df_command_find(df_commands, argv + 1, (size_t)argc - 1);
}

static void commands_are_found_by_one_word_or_two(void **state)
{
    (void)state;
    assert_string_equal(find("run .")->name, "run");
    assert_string_equal(find("state list net")->name, "state list");
    assert_string_equal(find("state push-errored net")->name, "state push-errored");
    assert_null(find("state"));
    assert_null(find("state lst net"));
    assert_null(find("ru"));
    assert_null(find("list"));
}

static void unknown_commands_are_answered_with_the_nearest(void **state)
{
    (void)state;
    static const struct {
        const char *line, *message;
    } cases[] = {
        {"rnu", "unknown command \"rnu\"; did you mean \"run\"?"},
        {"aprove x", "unknown command \"aprove\"; did you mean \"approve\"?"},
        {"state lst", "unknown command \"state lst\"; did you mean \"state list\"?"},
        {"state", "dayfly state needs one of: list, show, push, pull, mv, rm, import, exec, "
                  "migrate, rollback, lock, unlock, "
                  "errored, push-errored, discard-errored"},
        {"secret frobnicate", "dayfly secret needs one of: set, list, allow, delete"},
        {"frobnicate", "unknown command \"frobnicate\"; `dayfly help` lists them"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        char *argv[32];
        int argc = split(cases[i].line, argv);
        struct df_err err = {0};
        assert_int_equal(df_command_unknown(df_commands, argv + 1, (size_t)argc - 1, &err), -1);
        assert_string_equal(err.message, cases[i].message);
    }
}

static void every_command_explains_itself_with_an_example_that_names_it(void **state)
{
    (void)state;
    for (const struct df_command *c = df_commands; c->name; c++) {
        DF_BUF struct df_buf text = DF_BUF_INIT(DF_CLI_HELP_MAX);
        assert_int_equal(df_cli_help(c, &text, NULL), 0);
        char call[64];
        (void)snprintf(call, sizeof(call), "dayfly %s", c->name);
        assert_non_null(strstr(c->examples, call));
        assert_non_null(strstr(df_buf_str(&text), c->summary));
        assert_non_null(strstr(df_buf_str(&text), "--server"));
        for (const struct df_option *o = c->options; o && o->name; o++)
            assert_non_null(strstr(df_buf_str(&text), o->name));
        assert_true(c->min_words <= c->max_words);
        assert_non_null(c->run);
    }
}

/* Where the text behind "  NAME" begins in the line of a list of commands. */
static size_t summary_column(const char *list, const struct df_command *c)
{
    DF_FREE char *start = df_strf("\n  %s ", c->name);
    const char *line = strstr(list, start);
    if (!line || !strstr(line, c->summary))
        fail_msg("%s: no blank behind its name", c->name);
    return (size_t)(strstr(line, c->summary) - line);
}

static void no_name_of_a_command_runs_into_its_summary(void **state)
{
    (void)state;
    DF_BUF struct df_buf all = DF_BUF_INIT(DF_CLI_HELP_MAX), group = DF_BUF_INIT(DF_CLI_HELP_MAX);
    assert_int_equal(df_cli_overview(df_commands, &all, NULL), 0);
    assert_int_equal(df_cli_group_help(df_commands, "state", &group, NULL), 0);
    size_t column = summary_column(df_buf_str(&all), df_commands);
    for (const struct df_command *c = df_commands; c->name; c++) {
        assert_int_equal(summary_column(df_buf_str(&all), c), column);
        if (df_starts_with(c->name, "state "))
            assert_int_equal(summary_column(df_buf_str(&group), c), column);
    }
}

static void help_keeps_within_a_hundred_columns(void **state)
{
    (void)state;
    for (const struct df_command *c = df_commands; c->name; c++) {
        DF_BUF struct df_buf text = DF_BUF_INIT(DF_CLI_HELP_MAX);
        assert_int_equal(df_cli_help(c, &text, NULL), 0);
        for (const char *line = df_buf_str(&text); *line;) {
            size_t n = strcspn(line, "\n");
            if (n > 100)
                fail_msg("%s: %.*s", c->name, (int)n, line);
            line += n + (line[n] == '\n');
        }
    }
}

static void failures_have_the_exit_codes_of_the_design(void **state)
{
    (void)state;
    struct df_err err = {0};
    (void)df_fail(&err, DF_ERR_USER, "x");
    assert_int_equal(df_exit_of(&err), DF_EXIT_INPUT);
    (void)df_fail(&err, DF_ERR_NOT_FOUND, "x");
    assert_int_equal(df_exit_of(&err), DF_EXIT_FAILURE);
    (void)df_fail_reason(&err, DF_ERR_RETRY, "TimedOut", "x");
    assert_int_equal(df_exit_of(&err), DF_EXIT_TIMEOUT);
}

static void a_run_ends_with_the_exit_code_of_its_last_step(void **state)
{
    (void)state;
    static const struct {
        const char *run, *tasks;
        enum df_exit code;
    } cases[] = {
        {"{'phase':'Succeeded','reason':'Applied'}", "[{'status':{'exitCode':0}}]", DF_EXIT_OK},
        {"{'phase':'Discarded'}", "[{'status':{'exitCode':0}}]", DF_EXIT_FAILURE},
        {"{'phase':'Canceled'}", "[{'status':{'exitCode':0}},{'status':{'exitCode':2}}]",
         DF_EXIT_PARTIAL},
        {"{'phase':'Canceled'}", "[{'status':{'exitCode':0}},{'status':{'exitCode':1}}]",
         DF_EXIT_FAILURE},
        {"{'phase':'Canceled'}", "[{'status':{'exitCode':3}}]", DF_EXIT_FAILURE},
        {"{'phase':'Canceled'}", "[{'status':{'exitCode':-1,'unrecorded':{}}}]", DF_EXIT_PARTIAL},
        {"{'phase':'Failed','reason':'PlanFailed'}", "[{'status':{'exitCode':1}}]",
         DF_EXIT_FAILURE},
        {"{'phase':'Failed','reason':'ApplyFailed'}",
         "[{'status':{'exitCode':0}},{'status':{'exitCode':2}}]", DF_EXIT_PARTIAL},
        {"{'phase':'Failed','reason':'InvalidStep'}", "[{'status':{'exitCode':3}}]", DF_EXIT_INPUT},
        {"{'phase':'Failed','reason':'TimedOut'}", "[{'status':{'exitCode':1}}]", DF_EXIT_TIMEOUT},
        {"{'phase':'Failed','reason':'RunnerLost'}", "[{'status':{}}]", DF_EXIT_FAILURE},
        {"{'phase':'Failed','reason':'RunnerLost'}", "[{'status':{'exitCode':137}}]",
         DF_EXIT_FAILURE},
        {"{'phase':'Failed','reason':'RunnerLost'}",
         "[{'status':{'exitCode':137,'unrecorded':{}}}]", DF_EXIT_PARTIAL},
        {"{'phase':'Failed','reason':'RunnerLost'}", "[{'status':{'exitCode':-1,'unrecorded':{}}}]",
         DF_EXIT_PARTIAL},
        {"{'phase':'Failed'}", "[]", DF_EXIT_FAILURE},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_JSON cJSON *run = cJSON_CreateObject(), *tasks = NULL;
        char text[256];
        (void)snprintf(text, sizeof(text), "%s|%s", cases[i].run, cases[i].tasks);
        for (char *c = text; *c; c++)
            *c = *c == '\'' ? '"' : *c;
        char *bar = strchr(text, '|');
        *bar = '\0';
        cJSON *status = cJSON_Parse(text);
        assert_non_null(status);
        assert_int_equal(df_json_add(run, "status", status, NULL), 0);
        tasks = cJSON_Parse(bar + 1);
        assert_non_null(tasks);
        assert_int_equal(df_run_exit(run, tasks), cases[i].code);
    }
}

/* ---- variables --------------------------------------------------------------------------------
 */

static const struct df_option variable_options[] = {
    {"var", 0, "NAME=VALUE", "", NULL}, {"var-file", 0, "FILE", "", NULL}, {0}};

static int read_typed(const struct df_hcl_module *declared, const char *line, cJSON **ret,
                      struct df_err *err)
{
    static char *argv[32];
    int argc = split(line, argv);
    DF_ARGS struct df_args a = {0};
    assert_int_equal(df_args_parse(argc, argv, variable_options, NULL, DF_ARGS_ALL, &a, NULL), 0);
    DF_JSON cJSON *body = cJSON_CreateObject();
    if (df_variables_read(&a, body, err) < 0 || df_variables_settle(declared, body, err) < 0)
        return -1;
    *ret = DF_TAKE(body);
    return 0;
}

static int read_variables(const char *line, cJSON **ret, struct df_err *err)
{
    return read_typed(NULL, line, ret, err);
}

/* What `tofu plan -var` takes for each type; tests/integration/test_variables.py asks the tools. */
static void a_value_is_a_text_or_an_expression_by_the_type_that_the_module_declares(void **state)
{
    (void)state;
    static const char text[] =
        "variable \"s\" { type = string }\nvariable \"n\" { type = number }\n"
        "variable \"none\" {}\nvariable \"any\" { type = any }\n"
        "variable \"l\" {\n type = list(\n string)\n}\n";
    static const struct {
        const char *word, *value; /* NULL: it is refused */
    } cases[] = {
        {"s={\"a\":1}", "\"{\\\"a\\\":1}\""},
        {"s=[x", "\"[x\""},
        {"none=[1]", "\"[1]\""},
        {"n=5", "\"5\""},
        {"any=5", "5"},
        {"any=true", "true"},
        {"any=\"5\"", "\"5\""},
        {"any={a=1}", "any = ({a=1}\n)\n"},
        {"any=null", "any = (null\n)\n"},
        {"l=[\"a\"]", "[\"a\"]"},
        {"l=[1+1]", "l = ([1+1]\n)\n"},
        {"l=[\"${1+1}\"]", NULL},
        {"l=a", NULL},
        {"l=", NULL},
        {"l=[", NULL},
        {"any=a)", NULL},
        {"undeclared=[1]", "[1]"},
    };
    DF_HCL_MODULE struct df_hcl_module m = {0};
    assert_int_equal(df_hcl_scan_text("x.tf", text, strlen(text), &m, NULL), 0);
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        struct df_err err = {0};
        DF_JSON cJSON *v = NULL;
        DF_FREE char *line = df_strf("--var %s", cases[i].word);
        if (read_typed(&m, line, &v, &err) < 0) {
            assert_int_equal(err.cls, DF_ERR_USER);
            assert_null(cases[i].value);
            continue;
        }
        const cJSON *files = df_json_at(v, "secrets.files"), *values = df_json_at(v, "variables");
        DF_FREE char *value = values ? df_json_print(values->child) : NULL;
        assert_non_null(cases[i].value);
        assert_string_equal(files ? files->child->valuestring : value, cases[i].value);
    }
}

static void variables_are_strings_unless_they_are_lists_or_objects(void **state)
{
    (void)state;
    DF_JSON cJSON *v = NULL;
    assert_int_equal(
        read_variables("--var n=3 --var t=a=b --var e= --var l=[1,2] --var o={\"k\":true}", &v,
                       NULL),
        0);
    DF_FREE char *text = df_json_print(df_json_at(v, "variables"));
    assert_string_equal(text,
                        "{\"n\":\"3\",\"t\":\"a=b\",\"e\":\"\",\"l\":[1,2],\"o\":{\"k\":true}}");
}

static void the_later_variable_wins_wherever_it_came_from(void **state)
{
    (void)state;
    char path[] = "/tmp/dayfly-vars-XXXXXX", line[128];
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(df_fs_write_all(fd, "a: 1\nb: [x]\n", 12, NULL), 0);
    (void)close(fd);
    (void)snprintf(line, sizeof(line), "--var a=0 --var-file %s --var b=2", path);
    DF_JSON cJSON *v = NULL;
    assert_int_equal(read_variables(line, &v, NULL), 0);
    DF_FREE char *text = df_json_print(df_json_at(v, "variables"));
    assert_string_equal(text, "{\"a\":1,\"b\":\"2\"}");
    (void)unlink(path);
}

static void variables_before_a_tfvars_file_go_before_it_as_a_file(void **state)
{
    (void)state;
    char path[] = "/tmp/dayfly-vars-XXXXXX.tfvars", line[128];
    int fd = mkstemps(path, 7);
    assert_true(fd >= 0);
    assert_int_equal(df_fs_write_all(fd, "a = 1\n", 6, NULL), 0);
    (void)close(fd);
    (void)snprintf(line, sizeof(line), "--var a=0 --var-file %s --var b=2", path);
    DF_JSON cJSON *v = NULL;
    assert_int_equal(read_variables(line, &v, NULL), 0);
    (void)unlink(path);
    DF_FREE char *variables = df_json_print(df_json_at(v, "variables"));
    assert_string_equal(variables, "{\"b\":\"2\"}");
    const cJSON *files = df_json_at(v, "secrets.files");
    assert_int_equal(cJSON_GetArraySize(files), 2);
    assert_string_equal(files->child->string, "1-variables.tfvars.json");
    assert_string_equal(files->child->valuestring, "{\"a\":\"0\"}");
    assert_true(df_starts_with(files->child->next->string, "2-dayfly-vars-"));
    assert_string_equal(files->child->next->valuestring, "a = 1\n");
}

static void a_value_in_the_tool_s_own_syntax_is_a_file_for_the_tool(void **state)
{
    (void)state;
    static const struct {
        const char *word, *file; /* NULL: it is JSON, as it was */
    } cases[] = {
        {"tags={\"Team\":\"x\"}", NULL},
        {"zones=[\"a\",\"b\"]", NULL},
        {"tags={Team=\"x\"}", "tags = ({Team=\"x\"}\n)\n"},
        {"zones=[\"a\",]", "zones = ([\"a\",]\n)\n"},
        {"rules=[{from=1}]", "rules = ([{from=1}]\n)\n"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_FREE char *line = df_strf("--var first=1 --var %s", cases[i].word);
        DF_JSON cJSON *v = NULL;
        assert_int_equal(read_variables(line, &v, NULL), 0);
        const cJSON *files = df_json_at(v, "secrets.files");
        assert_int_equal(cJSON_GetArraySize(files), cases[i].file ? 2 : 0);
        if (cases[i].file)
            assert_string_equal(files->child->next->valuestring, cases[i].file);
    }
}

static void malformed_variables_are_refused(void **state)
{
    (void)state;
    static const char *const lines[] = {"--var x",
                                        "--var =1",
                                        "--var x=[1",
                                        "--var x={1}",
                                        "--var x={a=1",
                                        "--var x={a=1}}",
                                        "--var 1x={a=1}",
                                        "--var-file /nonexistent/vars.json",
                                        "--var-file x.tfvars"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(lines); i++) {
        struct df_err err = {0};
        cJSON *v = NULL;
        assert_int_equal(read_variables(lines[i], &v, &err), -1);
        assert_int_equal(err.cls, DF_ERR_USER);
    }
}

/* ---- modules ----------------------------------------------------------------------------------
 */

static void words_are_told_from_urls(void **state)
{
    (void)state;
    static const char *const urls[] = {"https://git.example/a.git", "file:///srv/a",
                                       "git@git.example:team/a.git", "ssh://git@h/a"};
    static const char *const paths[] = {".", "net", "./a@b:c", "a/b@c:d", "/srv/a", "a@b"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(urls); i++)
        assert_true(df_module_is_url(urls[i]));
    for (size_t i = 0; i < DF_ARRAY_SIZE(paths); i++)
        assert_false(df_module_is_url(paths[i]));
}

static void executors_are_named_after_their_source(void **state)
{
    (void)state;
    static const struct {
        const char *url, *folder, *name;
    } cases[] = {
        {"file:///home/me/hello", NULL, "hello"},
        {"file:///home/me/My Module_2/", NULL, "my-module-2"},
        {"https://git.example/team/infra.git", "live/net", "infra-net"},
        {"git@git.example:infra.git", NULL, "infra"},
        {"https://x.example/m-1.2.tar.gz", NULL, "m-1-2"},
        {"file:///", NULL, "module"},
        {"file:///home/me/---", NULL, "module"},
        {"file:///home/me/\xc3\xa4\xc3\xb6", NULL, "ao"},
        {"file:///home/me/\xc3\xbcn\xc3\xaf c\xc3\xb8"
         "d\xc3\xa9 dir",
         NULL, "uni-code-dir"},
        {"file:///home/me/u\xcc\x88n\xc3\x9f\xc3\x97\xc5\x92 x", NULL, "unss-oe-x"},
        {"file:///home/me/\xc5\xbb\xc3\xb3\xc5\x82\xc4\x87\xc5\xbf", NULL, "zolcs"},
        {"file:///home/me/\xd1\x8f\xe6\x97\xa5", NULL, "module"},
        {"file:///x/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", NULL,
         "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        char name[64];
        assert_int_equal(df_module_name(cases[i].url, cases[i].folder, DF_NAME_PLAIN, name, NULL),
                         0);
        assert_string_equal(name, cases[i].name);
    }
}

static void a_hash_keeps_modules_of_one_name_apart(void **state)
{
    (void)state;
    char a[64], b[64], c[64];
    assert_int_equal(df_module_name("file:///a/net", NULL, DF_NAME_HASHED, a, NULL), 0);
    assert_int_equal(df_module_name("file:///b/net", NULL, DF_NAME_HASHED, b, NULL), 0);
    assert_int_equal(df_module_name("file:///a/net", NULL, DF_NAME_HASHED, c, NULL), 0);
    assert_string_not_equal(a, b);
    assert_string_equal(a, c);
    assert_int_equal(strlen(a), strlen("net-") + 8);
}

static const struct df_option source_options[] = {
    {"branch", 0, "B", "", NULL}, {"tag", 0, "T", "", NULL},    {"commit", 0, "C", "", NULL},
    {"folder", 0, "F", "", NULL}, {"sha256", 0, "H", "", NULL}, {0}};

static int source_of(const char *word, const char *line, cJSON **ret, struct df_err *err)
{
    static char *argv[32];
    int argc = split(line, argv);
    DF_ARGS struct df_args a = {0};
    assert_int_equal(df_args_parse(argc, argv, source_options, NULL, DF_ARGS_ALL, &a, NULL), 0);
    return df_module_source(word, &a, ret, err);
}

static void a_directory_is_taken_as_it_lies_there_unless_git_is_asked_for(void **state)
{
    (void)state;
    DF_JSON cJSON *plain = NULL, *git = NULL;
    assert_int_equal(source_of("/tmp/../tmp/.", "", &plain, NULL), 0);
    assert_string_equal(df_json_str(plain, "url"), "file:///tmp");
    assert_string_equal(df_json_str(plain, "kind"), "directory");
    char root[] = "/tmp/dayfly-cli-XXXXXX", dot_git[64];
    assert_non_null(mkdtemp(root));
    (void)snprintf(dot_git, sizeof(dot_git), "%s/.git", root);
    assert_int_equal(mkdir(dot_git, 0700), 0);
    assert_int_equal(source_of(root, "--branch main --folder a/b", &git, NULL), 0);
    assert_int_equal(rmdir(dot_git), 0);
    assert_int_equal(rmdir(root), 0);
    assert_string_equal(df_json_str(git, "kind"), "git");
    assert_string_equal(df_json_str(git, "branch"), "main");
    assert_string_equal(df_json_str(git, "folder"), "a/b");
}

static void a_source_that_cannot_be_is_refused(void **state)
{
    (void)state;
    struct df_err err = {0};
    cJSON *source = NULL;
    assert_int_equal(source_of("/nonexistent/module", "", &source, &err), -1);
    assert_int_equal(err.cls, DF_ERR_USER);
    assert_int_equal(source_of("https://h/a.git", "--branch a --commit b", &source, &err), -1);
    assert_string_equal(err.message, "--branch and --commit exclude each other");
}

/* ---- event streams ----------------------------------------------------------------------------
 */

struct heard {
    char text[512];
    int stop_after; /* events; 0: never */
    int count;
};

static int hear(void *arg, const struct df_sse_event *e)
{
    struct heard *h = arg;
    size_t n = strlen(h->text);
    (void)snprintf(h->text + n, sizeof(h->text) - n, "%s<%s>(%s)", e->name, e->data, e->id);
    assert_int_equal(strlen(e->data), e->len);
    return ++h->count == h->stop_after ? -1 : 0;
}

static const char stream[] = ": hello\n\n"
                             "id: a:1\nevent: run\ndata: {\"x\": 1}\n\n"
                             "data:one\ndata: two\r\n\r\n"
                             "event: nothing\n\n"
                             "id\nretry: 5\ndata: three\r\revent: end\ndata:\n\n"
                             "data: cut off";
static const char expected[] = "run<{\"x\": 1}>(a:1)message<one\ntwo>(a:1)message<three>()end<>()";

static void events_are_read_however_the_bytes_are_cut(void **state)
{
    (void)state;
    for (size_t piece = 1; piece <= sizeof(stream); piece++) {
        struct heard h = {.text = ""};
        struct df_sse s;
        df_sse_init(&s, hear, &h);
        for (size_t i = 0; i < sizeof(stream) - 1; i += piece) {
            size_t left = sizeof(stream) - 1 - i;
            assert_int_equal(df_sse_feed(&s, stream + i, left < piece ? left : piece, NULL), 0);
        }
        df_sse_free(&s);
        assert_string_equal(h.text, expected);
    }
}

static void a_listener_may_stop_the_stream(void **state)
{
    (void)state;
    struct heard h = {.stop_after = 2};
    struct df_err err = {0};
    struct df_sse s;
    df_sse_init(&s, hear, &h);
    assert_int_equal(df_sse_feed(&s, stream, sizeof(stream) - 1, &err), -1);
    assert_int_equal(err.cls, DF_ERR_NONE);
    assert_int_equal(h.count, 2);
    df_sse_free(&s);
}

static void an_endless_line_or_event_is_refused(void **state)
{
    (void)state;
    static char block[64 * 1024];
    static const char *const starts[] = {"data: ", ": "};
    for (size_t i = 0; i < DF_ARRAY_SIZE(starts); i++) {
        struct heard h = {.text = ""};
        struct df_err err = {0};
        struct df_sse s;
        df_sse_init(&s, hear, &h);
        memset(block, 'x', sizeof(block));
        int result = df_sse_feed(&s, starts[i], strlen(starts[i]), &err);
        for (size_t n = 0; result == 0 && n <= DF_LIMIT_SSE_EVENT; n += sizeof(block))
            result = df_sse_feed(&s, block, sizeof(block), &err);
        assert_int_equal(result, -1);
        assert_int_equal(err.cls, DF_ERR_LIMIT);
        df_sse_free(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_and_words_may_be_mixed),
        cmocka_unit_test(what_stands_behind_two_dashes_is_no_option),
        cmocka_unit_test(leading_options_end_at_the_first_word),
        cmocka_unit_test(a_wrong_command_line_is_refused_with_the_way_out),
        cmocka_unit_test(a_value_may_look_like_an_option),
        cmocka_unit_test(distances_count_slips_of_the_hand),
        cmocka_unit_test(commands_are_found_by_one_word_or_two),
        cmocka_unit_test(unknown_commands_are_answered_with_the_nearest),
        cmocka_unit_test(every_command_explains_itself_with_an_example_that_names_it),
        cmocka_unit_test(no_name_of_a_command_runs_into_its_summary),
        cmocka_unit_test(help_keeps_within_a_hundred_columns),
        cmocka_unit_test(failures_have_the_exit_codes_of_the_design),
        cmocka_unit_test(a_run_ends_with_the_exit_code_of_its_last_step),
        cmocka_unit_test(a_value_is_a_text_or_an_expression_by_the_type_that_the_module_declares),
        cmocka_unit_test(variables_are_strings_unless_they_are_lists_or_objects),
        cmocka_unit_test(the_later_variable_wins_wherever_it_came_from),
        cmocka_unit_test(variables_before_a_tfvars_file_go_before_it_as_a_file),
        cmocka_unit_test(a_value_in_the_tool_s_own_syntax_is_a_file_for_the_tool),
        cmocka_unit_test(malformed_variables_are_refused),
        cmocka_unit_test(words_are_told_from_urls),
        cmocka_unit_test(executors_are_named_after_their_source),
        cmocka_unit_test(a_hash_keeps_modules_of_one_name_apart),
        cmocka_unit_test(a_directory_is_taken_as_it_lies_there_unless_git_is_asked_for),
        cmocka_unit_test(a_source_that_cannot_be_is_refused),
        cmocka_unit_test(events_are_read_however_the_bytes_are_cut),
        cmocka_unit_test(a_listener_may_stop_the_stream),
        cmocka_unit_test(an_endless_line_or_event_is_refused),
    };
    return cmocka_run_group_tests_name("cli", tests, NULL, NULL);
}
