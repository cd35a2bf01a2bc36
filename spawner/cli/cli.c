/*
 * Functions that all commands use: notes and output first, then the connection and requests.
 */
#include "spawner/cli/cli.h"

#include <stdarg.h>
#include <sys/ioctl.h>

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/yaml/yaml.h"
#include "spawner/cli/text.h"

const struct df_option df_common_options[] = {
    {"server", 0, "URL", "a spawner service (DAYFLY_SERVER); default: the one of this machine",
     NULL},
    {"token-file", 0, "FILE", "holds the bearer token (or set DAYFLY_TOKEN)", NULL},
    {"ca-file", 0, "FILE", "PEM certificates to trust, not the system's (DAYFLY_CA_FILE)", NULL},
    {"data-directory", 0, "DIR", "of the service of this machine; default $XDG_STATE_HOME/dayfly",
     NULL},
    {"config", 0, "FILE", "configuration of that service (DAYFLY_CONFIG)", NULL},
    {"no-color", 0, NULL, "no colours (NO_COLOR)", NULL},
    {"help", 'h', NULL, "this text", NULL},
    {0}};

const struct df_exit_code df_exit_codes[] = {{DF_EXIT_OK, "success"},
                                             {DF_EXIT_FAILURE, "failed or declined"},
                                             {DF_EXIT_PARTIAL, "partly applied"},
                                             {DF_EXIT_INPUT, "invalid input"},
                                             {DF_EXIT_TIMEOUT, "timed out"},
                                             {0}};

enum df_exit df_exit_of(const struct df_err *err)
{
    if (df_streq(err->reason, "TimedOut"))
        return DF_EXIT_TIMEOUT;
    return err->cls == DF_ERR_USER ? DF_EXIT_INPUT : DF_EXIT_FAILURE;
}

void df_cli_note(const char *fmt, ...)
{
    char text[2048];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    DF_BUF struct df_buf line = DF_BUF_INIT(DF_LIMIT_LOG_RECORD);
    (void)df_buf_adds(&line, "dayfly: ");
    df_text_safe(&line, text, strlen(text));
    (void)df_buf_addc(&line, '\n');
    df_text_write(STDERR_FILENO, df_buf_str(&line), line.len);
}

int df_cli_print_bytes(const char *bytes, size_t n, struct df_err *err)
{
    if (df_fs_write_all(STDOUT_FILENO, bytes, n, err) < 0)
        return df_err_wrap(err, "standard output");
    return 0;
}

int df_cli_print(const char *text, struct df_err *err)
{
    return text ? df_cli_print_bytes(text, strlen(text), err) : df_fail_oom(err);
}

int df_cli_print_safe(const char *text, struct df_err *err)
{
    DF_BUF struct df_buf safe = DF_BUF_INIT(2 * DF_LIMIT_HTTP_RESPONSE);
    if (!text)
        return df_fail_oom(err);
    df_text_safe(&safe, text, strlen(text));
    return df_buf_check(&safe, err) < 0 ? -1 : df_cli_print(df_buf_str(&safe), err);
}

int df_cli_printf(struct df_err *err, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    DF_FREE char *text = NULL;
    int n = vasprintf(&text, fmt, ap);
    va_end(ap);
    if (n < 0)
        text = NULL;
    return df_cli_print(text, err);
}

int df_cli_print_json(const struct df_cli *cli, const cJSON *doc, struct df_err *err)
{
    bool yaml = df_streq(df_cli_output(cli), "yaml");
    DF_FREE char *text = yaml ? df_yaml_print(doc) : df_json_print_pretty(doc);
    if (df_cli_print(text, err) < 0)
        return -1;
    return yaml ? 0 : df_cli_print("\n", err);
}

int df_cli_settings(const struct df_args *args, struct df_strs *ret, struct df_err *err)
{
    const char *set = NULL, *listen = df_arg(args, "listen");
    const char *data = df_arg(args, "data-directory");
    for (size_t i = 0; (set = df_arg_nth(args, "set", i)); i++) {
        if (!strchr(set, '='))
            return df_fail(err, DF_ERR_USER, "--set \"%s\": must be key=value", set);
        (void)df_strs_add(ret, set);
    }
    if (listen)
        (void)df_strs_addf(ret, "listen=%s", listen);
    if (data)
        (void)df_strs_addf(ret, "dataDirectory=%s", data);
    return df_strs_check(ret, err);
}

const char *df_cli_output(const struct df_cli *cli)
{
    const char *format = df_arg(&cli->args, "output");
    return format ? format : "";
}

struct df_table_shape df_cli_table_shape(const struct df_cli *cli)
{
    struct df_table_shape shape = {0};
    struct winsize size = {0};
    bool wide = df_streq(df_cli_output(cli), "wide");
    if (cli->out_tty && !wide && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
        shape.limit = size.ws_col;
    return shape;
}

struct df_table_shape df_cli_text_shape(const struct df_cli *cli)
{
    struct df_table_shape shape = df_cli_table_shape(cli);
    shape.wraps = true;
    return shape;
}

/* ---- the server ---- */

static const char *option_or_env(const struct df_cli *cli, const char *option, const char *env)
{
    const char *value = df_arg(&cli->args, option);
    value = value ? value : getenv(env);
    return df_str_empty(value) ? NULL : value;
}

const char *df_cli_config(const struct df_cli *cli)
{
    return option_or_env(cli, "config", "DAYFLY_CONFIG");
}

int df_cli_connect(struct df_cli *cli, struct df_err *err)
{
    return cli->client ? 0 : df_cli_connect_as(cli, cli->as, err);
}

int df_cli_connect_as(struct df_cli *cli, enum df_connect_as as, struct df_err *err)
{
    const struct df_connect_options o = {
        .server = option_or_env(cli, "server", "DAYFLY_SERVER"),
        .token_file = df_arg(&cli->args, "token-file"),
        .ca_file = option_or_env(cli, "ca-file", "DAYFLY_CA_FILE"),
        .data_directory = df_arg(&cli->args, "data-directory"),
        .config = df_cli_config(cli),
        .as = as,
    };
    if (df_connection_open(&o, &cli->server, err) < 0)
        return -1;
    cli->client = df_connection_client(cli->server);
    return 0;
}

int df_cli_reconnect(struct df_cli *cli, struct df_err *err)
{
    if (df_connection_again(cli->server, err) < 0)
        return -1;
    cli->client = df_connection_client(cli->server);
    return 0;
}

int df_cli_call(struct df_cli *cli, const char *method, const char *path, const cJSON *body,
                cJSON **ret, struct df_err *err)
{
    char key[37];
    if (df_check_alloc(path, err) < 0 || df_uuid(key, err) < 0 || df_cli_connect(cli, err) < 0)
        return -1;
    if (df_client_call(cli->client, method, path, body, key, ret, err) == 0)
        return 0;
    struct df_err ignored;
    if (err->cls != DF_ERR_RETRY || df_cli_reconnect(cli, &ignored) < 0)
        return -1;
    return df_client_call(cli->client, method, path, body, key, ret, err);
}

void df_cli_disconnect(struct df_cli *cli)
{
    df_connection_close(cli->server, false);
    cli->server = NULL;
    cli->client = NULL;
}
