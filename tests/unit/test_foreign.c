/* One dash or two, and what people type who know tofu, kubectl and gh. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "spawner/cli/commands.h"
#include "spawner/cli/foreign.h"
#include "spawner/cli/help.h"
#include "spawner/cli/lookup.h"

static const struct df_option own[] = {{"action", 'a', "ACTION", "", "provision|destroy"},
                                       {"auto-approve", 0, NULL, "", NULL},
                                       {"var", 0, "NAME=VALUE", "", NULL},
                                       {"name", 'n', "NAME", "", NULL},
                                       {"refresh", 0, "BOOL", "", "true|false"},
                                       {"follow", 'f', NULL, "", NULL},
                                       {"watch", 'w', NULL, "", NULL},
                                       {"detach", 'd', NULL, "", NULL},
                                       {0}};
static const struct df_option common[] = {{"no-color", 0, NULL, "", NULL}, {0}};

/* Reads a line of words with blanks between them. *ret_argv keeps what args borrows. */
static int parse(const char *line, char **ret_text, struct df_args *args, struct df_err *err)
{
    static char *argv[16];
    int argc = 0;
    *ret_text = df_strf("dayfly %s", line);
    for (char *at = *ret_text, *word; (word = strsep(&at, " "));)
        argv[argc++] = word;
    argv[argc] = NULL;
    return df_args_parse(argc, argv, own, common, DF_ARGS_ALL, args, err);
}

static void one_dash_does_for_a_long_option(void **state)
{
    (void)state;
    static const struct {
        const char *line, *option, *value; /* value NULL: a flag */
    } cases[] = {
        {"-auto-approve", "auto-approve", NULL},
        {"-auto-approve=true", "auto-approve", NULL},
        {"--auto-approve=true", "auto-approve", NULL},
        {"-var x=1", "var", "x=1"},
        {"-var=x=1", "var", "x=1"},
        {"--var=x=1", "var", "x=1"},
        {"-refresh=false", "refresh", "false"},
        {"-no-color", "no-color", NULL},
        {"-n net", "name", "net"},
        {"-n=net", "name", "net"},
        {"-a destroy", "action", "destroy"},
        {"-adestroy", "action", "destroy"},
        {"-a=destroy", "action", "destroy"},
        {"-wf", "follow", NULL},
        {"-wf", "watch", NULL},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_ARGS struct df_args a = {0};
        DF_FREE char *text = NULL;
        assert_int_equal(parse(cases[i].line, &text, &a, NULL), 0);
        assert_true(df_arg_given(&a, cases[i].option));
        if (cases[i].value)
            assert_string_equal(df_arg(&a, cases[i].option), cases[i].value);
        assert_int_equal(a.word_count, 0);
    }
}

static void a_flag_that_is_false_and_what_happens_anyway_are_not_given(void **state)
{
    (void)state;
    static const char *const lines[] = {"-auto-approve=false", "-input=false", "-lock=true"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(lines); i++) {
        DF_ARGS struct df_args a = {0};
        DF_FREE char *text = NULL;
        assert_int_equal(parse(lines[i], &text, &a, NULL), 0);
        assert_int_equal(a.given_count + a.word_count, 0);
    }
}

static void a_slip_behind_one_dash_is_never_a_letter_with_a_value(void **state)
{
    (void)state;
    static const struct {
        const char *line, *message;
    } cases[] = {
        {"-no-colour", "unknown option -no-colour; did you mean --no-color?"},
        {"-aprovision-it", "unknown option -aprovision-it; --help lists them"},
        {"-nnet", "unknown option -nnet; --help lists them"},
        {"-destroy",
         "-destroy: `dayfly destroy DIR` shows the plan of a destroy and asks before it "
         "is applied"},
        {"-auto-approve=yes", "option --auto-approve takes no value"},
        {"-var", "option --var needs a value: NAME=VALUE"},
        {"-lock=false", "-lock: a step always locks the state that it uses"},
    };
    for (size_t i = 0; i < DF_ARRAY_SIZE(cases); i++) {
        DF_ARGS struct df_args a = {0};
        DF_FREE char *text = NULL;
        struct df_err err = {0};
        assert_int_equal(parse(cases[i].line, &text, &a, &err), -1);
        assert_string_equal(err.message, cases[i].message);
        assert_int_equal(err.cls, DF_ERR_USER);
    }
}

/* A command in backticks: "`dayfly state list EXECUTOR`". */
static void check_named_commands(const char *answer)
{
    static const char start[] = "`dayfly ";
    for (const char *at = answer; (at = strstr(at, start));) {
        at += strlen(start);
        DF_FREE char *text = strndup(at, strcspn(at, "`"));
        assert_non_null(text);
        char *words[3] = {0};
        size_t count = 0;
        for (char *rest = text, *word; count < 2 && (word = strsep(&rest, " "));)
            words[count++] = word;
        if (!df_command_find(df_commands, words, count))
            fail_msg("\"%s\" names a command that is not there", answer);
    }
}

static void each_answer_names_commands_that_are_there(void **state)
{
    (void)state;
    const char *words = NULL, *answer = NULL;
    size_t count = 0;
    for (; (words = df_foreign_at(count, &answer)); count++) {
        check_named_commands(answer);
        assert_true(strlen(answer) < 200 && !strchr(answer, '\n'));
    }
    assert_true(count > 60);
}

static void no_command_of_ours_is_answered_as_anothers(void **state)
{
    (void)state;
    for (const struct df_command *c = df_commands; c->name; c++) {
        DF_FREE char *text = strdup(c->name);
        char *words[3] = {text, NULL, NULL};
        assert_non_null(text);
        if (strchr(text, ' ')) {
            words[1] = strchr(text, ' ') + 1;
            words[1][-1] = '\0';
        }
        assert_int_equal(df_foreign_command(words, words[1] ? 2 : 1, NULL), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_dash_does_for_a_long_option),
        cmocka_unit_test(a_flag_that_is_false_and_what_happens_anyway_are_not_given),
        cmocka_unit_test(a_slip_behind_one_dash_is_never_a_letter_with_a_value),
        cmocka_unit_test(each_answer_names_commands_that_are_there),
        cmocka_unit_test(no_command_of_ours_is_answered_as_anothers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
