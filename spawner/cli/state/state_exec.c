/* dayfly state exec: runs a command with the address of an executor's state in its environment. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/process/process.h"
#include "spawner/cli/commands.h"
#include "spawner/cli/signals.h"
#include "spawner/model/errored_states.h"

#define PREFIX "TF_HTTP_"

/* ---- the environment ---- */

/* Copies the caller's environment without TF_HTTP_*, which could name another state. */
static void copy_environment(struct df_strs *env)
{
    for (char **e = environ; *e; e++)
        if (!df_starts_with(*e, PREFIX))
            (void)df_strs_add(env, *e);
}

static int add_ca(struct df_strs *env, const char *ca_file, struct df_err *err)
{
    DF_BUF struct df_buf pem = DF_BUF_INIT(DF_LIMIT_CA);
    if (!ca_file)
        return 0;
    if (df_fs_read(ca_file, &pem, err) < 0)
        return -1;
    (void)df_strs_addf(env, PREFIX "CLIENT_CA_CERTIFICATE_PEM=%s", df_buf_str(&pem));
    return 0;
}

static int make_environment(const struct df_client_address *a, const char *executor,
                            struct df_strs *env, struct df_err *err)
{
    DF_FREE char *path = df_path("executors", executor, "state", NULL);
    if (!path)
        return df_fail_oom(err);
    copy_environment(env);
    (void)df_strs_addf(env, PREFIX "ADDRESS=%s%s", a->url, path);
    (void)df_strs_addf(env, PREFIX "LOCK_ADDRESS=%s%s", a->url, path);
    (void)df_strs_addf(env, PREFIX "UNLOCK_ADDRESS=%s%s", a->url, path);
    (void)df_strs_add(env, PREFIX "LOCK_METHOD=LOCK");
    (void)df_strs_add(env, PREFIX "UNLOCK_METHOD=UNLOCK");
    if (a->token) {
        (void)df_strs_add(env, PREFIX "USERNAME=dayfly");
        (void)df_strs_addf(env, PREFIX "PASSWORD=%s", a->token);
    }
    if (add_ca(env, a->ca_file, err) < 0)
        return -1;
    return df_strs_check(env, err);
}

/* ---- the command ---- */

/* Waits for the command. Ctrl-C reaches it directly, because it is in the foreground of the
 * same terminal. Other signals are forwarded to it. */
static int wait_for(struct df_process *p, int signals_fd, int *ret_status, struct df_err *err)
{
    struct pollfd fds[] = {{.fd = p->pidfd, .events = POLLIN},
                           {.fd = signals_fd, .events = POLLIN}};
    bool ended = false;
    for (;;) {
        if (poll(fds, DF_ARRAY_SIZE(fds), -1) < 0 && errno != EINTR)
            return df_fail_errno(err, errno, "poll");
        if (fds[0].revents)
            return df_process_wait(p, -1, &ended, ret_status, err);
        int sig = df_signals_take(signals_fd);
        if (sig && sig != SIGINT && df_process_signal(p, sig, err) < 0)
            return -1;
    }
}

static int run(const char *const *argv, const struct df_strs *env, int signals_fd,
               struct df_err *err)
{
    DF_PROCESS struct df_process p = DF_PROCESS_INIT;
    DF_FREE const char **list = calloc(env->len + 1, sizeof(*list));
    int status = 0;
    if (!list)
        return df_fail_oom(err);
    for (size_t i = 0; i < env->len; i++)
        list[i] = env->items[i];
    struct df_process_options o = DF_PROCESS_OPTIONS(argv, list);
    o.stdin_fd = STDIN_FILENO;
    o.stdout_fd = STDOUT_FILENO;
    o.stderr_fd = STDERR_FILENO;
    o.in_our_group = true;
    if (df_process_spawn(&o, &p, err) < 0) {
        err->cls = DF_ERR_USER;
        return -1;
    }
    if (wait_for(&p, signals_fd, &status, err) < 0)
        return -1;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int check_storage(struct df_cli *cli, const char *executor, struct df_err *err)
{
    DF_FREE char *path = df_path("executors", executor, "state", "lock", NULL);
    return df_cli_call(cli, "GET", path, NULL, NULL, err);
}

/* The command works on the stored state. Whoever runs it decides: it may be what mends the
 * state. */
static int warn_of_errored(struct df_cli *cli, const char *executor, struct df_err *err)
{
    DF_FREE char *path = df_path("executors", executor, NULL);
    DF_JSON cJSON *doc = NULL;
    char words[256];
    if (df_cli_call(cli, "GET", path, NULL, &doc, err) < 0)
        return -1;
    df_errored_words(doc, words, sizeof(words));
    if (words[0])
        df_cli_note("%s: the stored state lacks what it made (`dayfly state push-errored %s`)",
                    words, executor);
    return 0;
}

static const char **command_of(const struct df_cli *cli)
{
    const char **argv = calloc(cli->args.word_count, sizeof(*argv));
    for (size_t i = 1; argv && i < cli->args.word_count; i++)
        argv[i - 1] = cli->args.words[i];
    return argv;
}

int df_cmd_state_exec(struct df_cli *cli, struct df_err *err)
{
    DF_CLOSE int signals_fd = -1;
    DF_SECRET_STRS struct df_strs env = {0}; /* with the token */
    DF_FREE const char **argv = command_of(cli);
    const char *executor = NULL;
    if (df_check_alloc(argv, err) < 0 || df_cli_name(cli, 0, "executor", &executor, err) < 0 ||
        df_signals_open(&signals_fd, err) < 0 || df_cli_connect(cli, err) < 0 ||
        check_storage(cli, executor, err) < 0 || warn_of_errored(cli, executor, err) < 0)
        return -1;
    if (df_client_renew(cli->client, err) < 0)
        return -1;
    return make_environment(df_client_address_of(cli->client), executor, &env, err) < 0
               ? -1
               : run(argv, &env, signals_fd, err);
}
