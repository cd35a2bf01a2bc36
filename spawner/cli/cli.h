/*
 * cli.h - the context of a sub-command, and the functions that all sub-commands share.
 *
 * A sub-command is one row in the table of commands.c and one function in its own file. It returns
 * an exit code (exit.h), or -1 with err; df_cli_main() prints err and turns it into an exit code.
 * Standard output carries only the requested data; progress, questions and errors go to standard
 * error, or to the terminal. Thread rule: main thread.
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
    bool color;            /* use colours on terminals */
    bool left;             /* the person does not wait: exit without an orderly stop */
    enum df_connect_as as; /* what df_cli_connect() may start */
    struct df_connection *server;
    struct df_client *client; /* borrowed from server; NULL before df_cli_connect() */
};

struct df_command {
    const char *name;     /* one word or two: "run", "state list" */
    const char *synopsis; /* the arguments: "EXECUTOR [NAME]" */
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

/* Finds the server, or starts an embedded service; see connect.h. Does nothing if there is one
 * already. */
int df_cli_connect(struct df_cli *cli, struct df_err *err) DF_MUST_CHECK;

/* The same with this value instead of cli->as, and while there is none yet. */
int df_cli_connect_as(struct df_cli *cli, enum df_connect_as as, struct df_err *err) DF_MUST_CHECK;
/* Closes the connection at once: an embedded service does not wait for steps that are running. */
void df_cli_disconnect(struct df_cli *cli);

/* After a failure of class RETRY: finds the server again, or starts an embedded service instead. */
int df_cli_reconnect(struct df_cli *cli, struct df_err *err) DF_MUST_CHECK;

/* Sends one request; connects first if necessary. If the server went away and df_cli_reconnect()
 * succeeds, sends the request once more, with the same Idempotency-Key. body and ret may be
 * NULL; a path NULL counts as out of memory. */
int df_cli_call(struct df_cli *cli, const char *method, const char *path, const cJSON *body,
                cJSON **ret, struct df_err *err) DF_MUST_CHECK;

/* For a table that is cut to the width of the terminal, except with -o wide. */
struct df_table_shape df_cli_table_shape(const struct df_cli *cli);
/* For a table whose last column is a text: it is wrapped, and nothing is cut. */
struct df_table_shape df_cli_text_shape(const struct df_cli *cli);

/* The nth word of the command line, or NULL. */
const char *df_cli_word(const struct df_cli *cli, size_t n);
/* The nth word as a name of this kind, `what` ("executor"); it may be written as KIND/NAME. *ret:
 * the name alone, borrowed. Class USER if it is missing, of another kind, or cannot be a name. */
int df_cli_name(const struct df_cli *cli, size_t n, const char *what, const char **ret,
                struct df_err *err) DF_MUST_CHECK;
/* The same for commands that also accept taskaction/NAME. */
int df_cli_name_or_task(const struct df_cli *cli, size_t n, const char *what, const char **ret,
                        bool *ret_is_task, struct df_err *err) DF_MUST_CHECK;
/* The same for a word that is not one of the command line as it stands. *ret: borrowed from
 * word. */
int df_cli_name_in(const struct df_cli *cli, const char *word, const char *what, const char **ret,
                   bool *ret_is_task, struct df_err *err) DF_MUST_CHECK;

/* The configuration file of --config or DAYFLY_CONFIG, or NULL. */
const char *df_cli_config(const struct df_cli *cli);

/* Adds the values of --set, --listen and --data-directory as "key=value" of the configuration. */
int df_cli_settings(const struct df_args *args, struct df_strs *ret,
                    struct df_err *err) DF_MUST_CHECK;

/* The format asked for with -o, or "". */
const char *df_cli_output(const struct df_cli *cli);

/* Writes the whole text to standard output; NULL counts as out of memory. If the reader closed the
 * pipe, it fails with os_errno EPIPE, for which df_cli_main() prints no message. */
int df_cli_print(const char *text, struct df_err *err) DF_MUST_CHECK;
/* The same for text with words of others, which must not move a terminal (text.h). */
int df_cli_print_safe(const char *text, struct df_err *err) DF_MUST_CHECK;
/* The same for a text that is made like printf(3) does. */
int df_cli_printf(struct df_err *err, const char *fmt, ...) DF_PRINTF(2, 3) DF_MUST_CHECK;
int df_cli_print_bytes(const char *bytes, size_t n, struct df_err *err) DF_MUST_CHECK;
/* Prints the document as YAML for -o yaml, else as JSON. doc NULL counts as out of memory. */
int df_cli_print_json(const struct df_cli *cli, const cJSON *doc, struct df_err *err) DF_MUST_CHECK;

/* Prints a line for people to standard error: "dayfly: ...". */
void df_cli_note(const char *fmt, ...) DF_PRINTF(1, 2);

#define DF_CLI_HELP_MAX (64 * DF_KIB) /* of a help text or manual page */

/* The exit codes for --help and the manual pages; ends with a meaning of NULL. */
struct df_exit_code {
    int code;
    const char *meaning;
};
extern const struct df_exit_code df_exit_codes[];

#endif
