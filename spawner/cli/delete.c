/*
 * dayfly delete: executors, workflows and integrations; with --forget, first a copy of the state. Read
 * df_cmd_delete() at the end, then forget_executor().
 */
#include <errno.h>
#include <fcntl.h>

#include "common/base/fs.h"
#include "spawner/cli/commands.h"
#include "spawner/cli/text.h"

#define INTEGRATION "integration/"

static int say_deleted(const char *kind, const char *name, struct df_err *err)
{
    DF_FREE char *line = df_strf("%s/%s deleted\n", kind, name);
    return line ? df_cli_print(line, err) : df_fail_oom(err);
}

static int delete_at(struct df_cli *cli, const char *path, const char *query, struct df_err *err)
{
    DF_FREE char *whole = path ? df_strf("%s%s", path, query) : NULL;
    return whole ? df_cli_call(cli, "DELETE", whole, NULL, NULL, err) : df_fail_oom(err);
}

/* ---- leaving the resources ---- */

/* The copy of a state, in a new file. If the file exists, nothing is deleted. */
struct copy {
    char *path; /* owned */
    int fd;
    bool is_empty;   /* there was no state to copy; the file is removed */
    int64_t version; /* of the state; 0: there is none; -1: dayfly does not store it */
};

static void copy_free(struct copy *c)
{
    free(c->path);
    if (c->fd >= 0)
        (void)close(c->fd);
}

static int copy_open(struct copy *c, const char *wanted, const char *name, struct df_err *err)
{
    c->path = wanted ? strdup(wanted) : df_strf("%s.tfstate", name);
    if (!c->path)
        return df_fail_oom(err);
    c->fd = open(c->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (c->fd >= 0)
        return 0;
    if (errno == EEXIST)
        return df_fail(err, DF_ERR_USER,
                       "%s: there is such a file already, and it is not overwritten: choose "
                       "another with --state-file; nothing was deleted",
                       c->path);
    (void)df_fail_errno(err, errno, "create %s (nothing was deleted)", c->path);
    err->cls = DF_ERR_USER;
    return -1;
}

static void copy_drop(struct copy *c)
{
    (void)unlink(c->path);
    c->is_empty = true;
}

/* *ret: the newest version; 0: there is none; -1: dayfly does not store the state of this executor,
 * or there is no such executor. */
static int find_version(struct df_cli *cli, const char *name, int64_t *ret, struct df_err *err)
{
    DF_FREE char *path = df_path("executors", name, "state", "versions", NULL);
    DF_JSON cJSON *versions = NULL;
    struct df_err why = {0};
    if (!path)
        return df_fail_oom(err);
    *ret = -1;
    if (df_cli_call(cli, "GET", path, NULL, &versions, &why) == 0) {
        const cJSON *items = df_json_at(versions, "items");
        *ret = items ? df_json_int(items->child, "version", 0) : 0;
        return 0;
    }
    if (df_streq(why.reason, "StateElsewhere") || why.cls == DF_ERR_NOT_FOUND)
        return 0;
    return df_err_pass(err, &why);
}

static int download(struct df_cli *cli, const struct copy *c, const char *name, struct df_err *err)
{
    char number[DF_SHORT_TEXT];
    (void)snprintf(number, sizeof(number), "%lld", (long long)c->version);
    DF_FREE char *path = df_path("executors", name, "state", "versions", number, NULL);
    return path ? df_client_download(cli->client, path, c->fd, err) : df_fail_oom(err);
}

static int copy_fill(struct df_cli *cli, struct copy *c, const char *name, struct df_err *err)
{
    if (find_version(cli, name, &c->version, err) < 0 ||
        (c->version > 0 && download(cli, c, name, err) < 0)) {
        copy_drop(c);
        return df_err_wrap(err, "the state was not written, nothing was deleted");
    }
    if (c->version <= 0 || lseek(c->fd, 0, SEEK_END) == 0) {
        copy_drop(c);
        return 0;
    }
    if (fsync(c->fd) == 0)
        return 0;
    (void)df_fail_errno(err, errno, "sync %s (nothing was deleted)", c->path);
    copy_drop(c);
    return -1;
}

static int forget_executor(struct df_cli *cli, const char *name, struct df_err *err)
{
    DF_CLEANUP(copy_free) struct copy copy = {.fd = -1};
    DF_FREE char *path = df_path("executors", name, NULL);
    char query[64] = "?forget=true";
    if (!path)
        return df_fail_oom(err);
    if (df_cli_connect(cli, err) < 0 ||
        copy_open(&copy, df_arg(&cli->args, "state-file"), name, err) < 0 ||
        copy_fill(cli, &copy, name, err) < 0)
        return -1;
    if (copy.version >= 0)
        (void)snprintf(query, sizeof(query), "?forget=true&stateVersion=%lld",
                       (long long)copy.version);
    if (delete_at(cli, path, query, err) < 0) {
        /* If the answer was lost, the executor may be deleted: keep the copy. */
        if (err->cls != DF_ERR_RETRY && !copy.is_empty)
            copy_drop(&copy);
        return -1;
    }
    if (copy.is_empty)
        df_cli_note("%s is forgotten; whatever resources it had are left as they are, and no state "
                    "was kept here",
                    name);
    else
        df_cli_note("%s is forgotten; its resources are left as they are, their state is in %s "
                    "(with its secrets)",
                    name, copy.path);
    return say_deleted("executor", name, err);
}

/* ---- the command ---- */

static int delete_one(struct df_cli *cli, const char *name, bool is_task, struct df_err *err)
{
    DF_FREE char *path = df_path(is_task ? "taskactions" : "executors", name, NULL);
    if (df_arg_given(&cli->args, "forget") && !is_task)
        return forget_executor(cli, name, err);
    if (delete_at(cli, path, "", err) < 0)
        return -1;
    return say_deleted(is_task ? "taskaction" : "executor", name, err);
}

static int check_options(const struct df_cli *cli, struct df_err *err)
{
    bool has_file = df_arg_given(&cli->args, "state-file");
    if (has_file && !df_arg_given(&cli->args, "forget"))
        return df_fail(err, DF_ERR_USER, "--state-file: goes with --forget alone");
    if (has_file && cli->args.word_count > 1)
        return df_fail(err, DF_ERR_USER,
                       "--state-file: is for one executor; delete the others by "
                       "themselves");
    return 0;
}

static int delete_integration(struct df_cli *cli, const char *name, struct df_err *err)
{
    DF_FREE char *path = df_path("integrations", name, NULL);
    if (delete_at(cli, path, "", err) < 0)
        return -1;
    return say_deleted("integration", name, err);
}

static int delete_nth(struct df_cli *cli, size_t n, struct df_err *err)
{
    const char *name = NULL, *word = df_cli_word(cli, n);
    bool is_task = false;
    if (df_starts_with(word, INTEGRATION))
        return delete_integration(cli, word + strlen(INTEGRATION), err);
    if (df_cli_name_or_task(cli, n, "executor", &name, &is_task, err) < 0)
        return -1;
    return delete_one(cli, name, is_task, err);
}

/* Tries every name and prints each failure at once. Ends if the server does not answer. */
static int delete_all(struct df_cli *cli, struct df_err *err)
{
    bool failed = false;
    for (size_t i = 0; i < cli->args.word_count; i++) {
        if (delete_nth(cli, i, err) == 0)
            continue;
        if (err->cls == DF_ERR_RETRY || err->cls == DF_ERR_SYSTEM)
            return -1;
        df_cli_note("%s", err->message);
        failed = true;
    }
    return failed ? DF_EXIT_FAILURE : DF_EXIT_OK;
}

int df_cmd_delete(struct df_cli *cli, struct df_err *err)
{
    if (check_options(cli, err) < 0)
        return -1;
    if (cli->args.word_count == 1)
        return delete_nth(cli, 0, err) < 0 ? -1 : DF_EXIT_OK;
    return delete_all(cli, err);
}
