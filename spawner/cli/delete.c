/*
 * dayfly delete: executors, workflows and integrations; with --forget, first a copy of the state.
 * Read df_cmd_delete() at the end, then forget_executor(). dayfly abandon ends the executor's runs
 * before.
 */
#include <errno.h>

#include "common/base/fs.h"
#include "spawner/cli/commands.h"
#include "spawner/cli/follow/follow.h"
#include "spawner/cli/kinds.h"
#include "spawner/cli/signals.h"
#include "spawner/cli/state/state_file.h"
#include "spawner/cli/text.h"
#include "spawner/model/model.h"

static int say_deleted(const char *kind, const char *name, struct df_err *err)
{
    return df_cli_printf(err, "%s/%s deleted\n", kind, name);
}

static int delete_at(struct df_cli *cli, const char *path, const char *query, struct df_err *err)
{
    DF_FREE char *whole = path ? df_strf("%s%s", path, query) : NULL;
    return df_cli_call(cli, "DELETE", whole, NULL, NULL, err);
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
    return df_copy_create(c->path, &c->fd, err);
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
    return df_client_download(cli->client, path, c->fd, err);
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

/* A state that nobody can read is no reason to keep its executor. */
static int copy_if_readable(struct df_cli *cli, struct copy *c, const char *name,
                            struct df_err *err)
{
    struct df_err why = {0};
    if (copy_fill(cli, c, name, &why) == 0)
        return 0;
    if (!df_streq(why.reason, "StateUnreadable"))
        return df_err_pass(err, &why);
    df_cli_note("%s", why.message);
    c->version = -1;
    return 0;
}

/* how: the query's flag, "forget" or "abandon". */
static int forget_executor(struct df_cli *cli, const char *name, const char *how,
                           struct df_err *err)
{
    DF_CLEANUP(copy_free) struct copy copy = {.fd = -1};
    DF_FREE char *path = df_path("executors", name, NULL);
    char query[64];
    if (df_check_alloc(path, err) < 0 ||
        copy_open(&copy, df_arg(&cli->args, "state-file"), name, err) < 0 ||
        (strcmp(how, "abandon") == 0 ? copy_if_readable : copy_fill)(cli, &copy, name, err) < 0)
        return -1;
    (void)snprintf(query, sizeof(query), "?%s=true", how);
    if (copy.version >= 0)
        (void)snprintf(query, sizeof(query), "?%s=true&stateVersion=%lld", how,
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
    return 0;
}

/* ---- the place that a move left ---- */

/* *ret: the storage that still keeps a copy of this executor's state and that nobody can ask for
 * when the executor is deleted; NULL: none, or the executor cannot be read: the deletion says why.
 * A managed one goes with the executor. The caller frees. */
static int find_former(struct df_cli *cli, const char *path, char **ret, struct df_err *err)
{
    DF_JSON cJSON *executor = NULL;
    struct df_err ignored;
    *ret = NULL;
    if (df_cli_call(cli, "GET", path, NULL, &executor, &ignored) < 0)
        return 0;
    const cJSON *former = df_json_at(executor, "status.formerStorage.storage");
    const char *type = df_json_str(former, "type");
    if (!type || df_streq(type, "managed"))
        return 0;
    return df_check_alloc(*ret = df_storage_words(former), err);
}

static void tell_former(const char *name, const char *former)
{
    if (former)
        df_cli_note("the state of %s was moved away from %s, which still keeps a copy with its "
                    "secrets: remove it there",
                    name, former);
}

/* ---- the command ---- */

static int delete_document(struct df_cli *cli, const struct df_shown *kind, const char *name,
                           struct df_err *err)
{
    DF_FREE char *path = df_path(kind->plural, name, NULL);
    return delete_at(cli, path, "", err) < 0 ? -1 : say_deleted(kind->singular, name, err);
}

/* how: as of forget_executor(); NULL: it is deleted only if it holds nothing. */
static int delete_executor(struct df_cli *cli, const char *name, const char *how,
                           struct df_err *err)
{
    DF_FREE char *path = df_path("executors", name, NULL);
    DF_FREE char *former = NULL;
    if (df_check_alloc(path, err) < 0 || (!cli->client && df_cli_connect(cli, err) < 0) ||
        find_former(cli, path, &former, err) < 0)
        return -1;
    int result = how ? forget_executor(cli, name, how, err) : delete_at(cli, path, "", err);
    if (result < 0)
        return -1;
    tell_former(name, former);
    return say_deleted("executor", name, err);
}

/* `delete KIND NAME...`, as kubectl has it: the kind of all names. NULL: each word has its own, or
 * is an executor. */
static const struct df_shown *kind_of_all(const struct df_cli *cli)
{
    struct df_err ignored;
    const struct df_shown *kind = NULL;
    bool may_be = cli->args.word_count > 1;
    return may_be && df_shown_find(df_cli_word(cli, 0), &kind, &ignored) == 0 ? kind : NULL;
}

static int check_options(const struct df_cli *cli, size_t names, struct df_err *err)
{
    bool has_file = df_arg_given(&cli->args, "state-file");
    if (has_file && !df_arg_given(&cli->args, "forget"))
        return df_fail(err, DF_ERR_USER, "--state-file: goes with --forget alone");
    if (has_file && names > 1)
        return df_fail(err, DF_ERR_USER,
                       "--state-file: is for one executor; delete the others by "
                       "themselves");
    return 0;
}

/* The kind of "integration/aws": of a document that nothing is asked of before. NULL: another
 * word. */
static const struct df_shown *plain_kind(const char *pair)
{
    for (int kind = 0; kind < DF_KIND_COUNT; kind++) {
        const struct df_kind_row *row = df_kind_row((enum df_kind)kind);
        size_t n = strlen(row->shown.singular);
        if (kind != DF_KIND_EXECUTOR && row->is_editable &&
            strncmp(pair, row->shown.singular, n) == 0 && pair[n] == '/')
            return &row->shown;
    }
    return NULL;
}

static int delete_nth(struct df_cli *cli, const struct df_shown *kind, size_t n, struct df_err *err)
{
    const char *name = NULL, *word = df_cli_word(cli, n);
    bool is_task = false, is_pair = strchr(word, '/');
    DF_FREE char *pair = kind && !is_pair ? df_strf("%s/%s", kind->singular, word) : strdup(word);
    if (!pair)
        return df_fail_oom(err);
    const struct df_shown *plain = plain_kind(pair);
    if (plain)
        return delete_document(cli, plain, strchr(pair, '/') + 1, err);
    if (df_cli_name_in(cli, pair, "executor", &name, &is_task, err) < 0)
        return -1;
    const char *how = df_arg_given(&cli->args, "forget") ? "forget" : NULL;
    return is_task ? delete_document(cli, df_shown_of("taskactions"), name, err)
                   : delete_executor(cli, name, how, err);
}

/* Tries every name and prints each failure at once. Ends if the server does not answer. */
static int delete_all(struct df_cli *cli, const struct df_shown *kind, struct df_err *err)
{
    bool failed = false;
    for (size_t i = kind ? 1 : 0; i < cli->args.word_count; i++) {
        if (delete_nth(cli, kind, i, err) == 0)
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
    const struct df_shown *kind = kind_of_all(cli);
    size_t first = kind ? 1 : 0, names = cli->args.word_count - first;
    if (check_options(cli, names, err) < 0)
        return -1;
    if (names == 1)
        return delete_nth(cli, kind, first, err) < 0 ? -1 : DF_EXIT_OK;
    return delete_all(cli, kind, err);
}

/* ---- abandon ---- */

/* Cancels the run and waits until it has ended, in silence. */
static int end_run(struct df_cli *cli, const char *run, int signals_fd, struct df_err *err)
{
    const struct df_follow_options o = {.skip_past = true, .signals_fd = signals_fd};
    enum df_follow_end end = DF_FOLLOW_FINAL;
    DF_FREE char *path = df_path("runs", run, "cancel", NULL);
    DF_JSON cJSON *body = cJSON_CreateObject(), *doc = NULL;
    struct df_view view;
    if (df_json_add_str(body, "reason", "its executor is abandoned", err) < 0 ||
        df_cli_call(cli, "POST", path, body, NULL, err) < 0)
        return -1;
    df_cli_note("run %s is canceled; waiting for its end", run);
    df_view_init(&view, -1, false, false);
    int result = df_follow_run(cli, &view, run, &o, &end, &doc, err);
    df_view_free(&view);
    if (result == 0 && end == DF_FOLLOW_LEFT)
        return df_fail(err, DF_ERR_USER, "interrupted; nothing was deleted");
    return result;
}

static int end_runs(struct df_cli *cli, const char *name, struct df_err *err)
{
    DF_FREE char *path = df_path("executors", name, "runs", NULL);
    DF_CLOSE int signals_fd = -1;
    DF_JSON cJSON *runs = NULL;
    const cJSON *run;
    if (df_signals_open(&signals_fd, err) < 0 || df_cli_list(cli, path, &runs, err) < 0)
        return -1;
    cJSON_ArrayForEach (run, runs) {
        if (!df_run_is_final(run) &&
            end_run(cli, df_json_str(run, "metadata.name"), signals_fd, err) < 0)
            return -1;
    }
    return 0;
}

int df_cmd_abandon(struct df_cli *cli, struct df_err *err)
{
    const char *name = NULL;
    if (df_cli_name(cli, 0, "executor", &name, err) < 0 ||
        df_cli_connect_as(cli, DF_CONNECT_WORK, err) < 0 || end_runs(cli, name, err) < 0 ||
        delete_executor(cli, name, "abandon", err) < 0)
        return -1;
    return DF_EXIT_OK;
}
