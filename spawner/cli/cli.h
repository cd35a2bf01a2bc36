/*
 * cli.h - what every sub-command is given and gives back.
 *
 * A sub-command is one row in the table of commands.c and one function in a file of its own. It
 * returns an exit code, or -1 with err, which main prints and maps. Standard output carries what
 * was asked for and nothing else; progress, questions and errors go to standard error, or to the
 * terminal. Thread rule: main thread.
 */
#ifndef DF_CLI_H
#define DF_CLI_H

#include "common/json/json.h"
#include "spawner/cli/args.h"
#include "spawner/cli/connect.h"

/* Exit codes (design 5.8), the same for the runner, for a run and for every command. */
enum df_exit {
    DF_EXIT_OK = 0,
    DF_EXIT_FAILURE = 1, /* failed, declined, denied, not found */
    DF_EXIT_PARTIAL = 2, /* something was changed, then it failed */
    DF_EXIT_INPUT = 3,   /* what was asked for makes no sense; nothing was done */
    DF_EXIT_TIMEOUT = 4,
    DF_EXIT_INTERRUPTED = 130 /* Ctrl-C, and the person did not wait */
};

struct df_cli {
    const struct df_command *command;
    struct df_args args;
    bool out_tty, err_tty, in_tty;
    bool color; /* colours wherever there is a terminal */
    bool left;  /* the person does not wait: nothing is stopped in order */
    struct df_connection *server;
    struct df_client *client; /* borrowed from server; NULL before df_cli_connect() */
};

struct df_command {
    const char *name;     /* one word or two: "run", "state list" */
    const char *synopsis; /* what follows the name: "EXECUTOR [NAME]" */
    const char *summary;  /* one line */
    const char *details;  /* paragraphs for --help, ended by a newline, or NULL */
    const char *examples; /* lines for --help */
    const struct df_option *options;
    size_t min_words, max_words; /* SIZE_MAX: any number */
    int (*run)(struct df_cli *cli, struct df_err *err);
};

extern const struct df_option df_common_options[];
extern const struct df_command df_commands[]; /* ends with a name of NULL */

/* The whole program: returns its exit code. */
int df_cli_main(int argc, char **argv);

/* The command that these words begin with, or NULL. */
const struct df_command *df_cli_find(char *const *words, size_t count);

/* Class USER: names the command that was probably meant. Always -1. count >= 1. */
int df_cli_unknown(char *const *words, size_t count, struct df_err *err);

/* The exit code for a failure. */
enum df_exit df_exit_of(const struct df_err *err);

/* Finds the server, or starts one inside; see connect.h. Once per process. */
int df_cli_connect(struct df_cli *cli, struct df_err *err) DF_MUST_CHECK;

/* After a failure of class RETRY: finds the server again, or becomes it. */
int df_cli_reconnect(struct df_cli *cli, struct df_err *err) DF_MUST_CHECK;

/* One request, with a second attempt when the server went away and another was found or started.
 * body and ret may be NULL. */
int df_cli_call(struct df_cli *cli, const char *method, const char *path, const cJSON *body,
                cJSON **ret, struct df_err *err) DF_MUST_CHECK;

/* The nth word of the command line, or NULL. */
const char *df_cli_word(const struct df_cli *cli, size_t n);
/* The same as a name of an executor, run or secret: class USER when it cannot be one. */
int df_cli_name(const struct df_cli *cli, size_t n, const char *what, const char **ret,
                struct df_err *err) DF_MUST_CHECK;
/* The same where a TaskAction may stand, too, as taskaction/NAME. *ret: the name alone. */
int df_cli_name_or_task(const struct df_cli *cli, size_t n, const char *what, const char **ret,
                        bool *ret_is_task, struct df_err *err) DF_MUST_CHECK;

/* The configuration file of --config or DAYFLY_CONFIG, or NULL. */
const char *df_cli_config(const struct df_cli *cli);

/* What --set, --listen and --data-directory say, as "key=value" of the configuration. */
int df_cli_settings(const struct df_args *args, struct df_strs *ret,
                    struct df_err *err) DF_MUST_CHECK;

/* The format asked for with -o, or "". */
const char *df_cli_output(const struct df_cli *cli);

/* Writes the whole text to standard output. A reader that went away (a closed pipe) is class RETRY
 * and no error worth a message. */
int df_cli_print(const char *text, struct df_err *err) DF_MUST_CHECK;
/* The document as -o json or -o yaml says (anything else: json). */
int df_cli_print_json(const struct df_cli *cli, const cJSON *doc, struct df_err *err) DF_MUST_CHECK;

/* A remark for the person on standard error: "dayfly: ..." and a newline. */
void df_cli_note(const char *fmt, ...) DF_PRINTF(1, 2);

/* The text of --help. */
#define DF_CLI_HELP_MAX (64 * DF_KIB)
int df_cli_help(const struct df_command *command, struct df_buf *out, struct df_err *err);
int df_cli_overview(struct df_buf *out, struct df_err *err);

#endif
