/*
 * cli.h - what every sub-command is given and gives back.
 *
 * A sub-command is one row in the table of commands.c and one function in a file of its own. It
 * returns an exit code (exit.h), or -1 with err, which main prints and maps. Standard output
 * carries the requested data alone; progress, questions and errors go to standard error, or to the
 * terminal. Thread rule: main thread.
 */
#ifndef DF_CLI_H
#define DF_CLI_H

#include "common/base/exit.h"
#include "common/json/json.h"
#include "spawner/cli/args.h"
#include "spawner/cli/connect.h"
#include "spawner/cli/text.h"

struct df_cli {
    const struct df_command *commands; /* the table; ends with a name of NULL */
    const struct df_command *command;
    struct df_args args;
    bool out_tty, err_tty, in_tty;
    bool color;            /* colours wherever there is a terminal */
    bool left;             /* the person does not wait: nothing is stopped in order */
    enum df_connect_as as; /* how a connection is made */
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

/* The exit code for a failure. */
enum df_exit df_exit_of(const struct df_err *err);

/* Finds the server, or starts one inside; see connect.h. Once per process. */
int df_cli_connect(struct df_cli *cli, struct df_err *err) DF_MUST_CHECK;

/* The same in another way than cli->as says. */
int df_cli_connect_as(struct df_cli *cli, enum df_connect_as as, struct df_err *err) DF_MUST_CHECK;
/* Lets the server go at once: a service inside does not stay for anybody's steps. */
void df_cli_disconnect(struct df_cli *cli);

/* After a failure of class RETRY: finds the server again, or becomes it. */
int df_cli_reconnect(struct df_cli *cli, struct df_err *err) DF_MUST_CHECK;

/* One request, with a second attempt when the server went away and another was found or started.
 * body and ret may be NULL. */
int df_cli_call(struct df_cli *cli, const char *method, const char *path, const cJSON *body,
                cJSON **ret, struct df_err *err) DF_MUST_CHECK;

/* A terminal's tables are cut to its width, but for -o wide. */
struct df_table_shape df_cli_table_shape(const struct df_cli *cli);
/* Or its last column is wrapped, when it holds a text. */
struct df_table_shape df_cli_text_shape(const struct df_cli *cli);

/* The nth word of the command line, or NULL. */
const char *df_cli_word(const struct df_cli *cli, size_t n);
/* The same as a name of an executor, run or secret, with its kind before a slash or without: class
 * USER when it cannot be one. */
int df_cli_name(const struct df_cli *cli, size_t n, const char *what, const char **ret,
                struct df_err *err) DF_MUST_CHECK;
/* Where a TaskAction may stand, too, as taskaction/NAME. *ret: the name alone. */
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

#define DF_CLI_HELP_MAX (64 * DF_KIB) /* of a help text or manual page */

/* What --help and the manual pages say about exit codes; ends with a meaning of NULL. */
struct df_exit_code {
    int code;
    const char *meaning;
};
extern const struct df_exit_code df_exit_codes[];

#endif
