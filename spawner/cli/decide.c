/* dayfly approve, discard, cancel: decisions of a person about a run or a workflow. */
#include "spawner/cli/commands.h"
#include "spawner/cli/follow/follow.h"
#include "spawner/cli/follow/summary.h"
#include "spawner/cli/named.h"
#include "spawner/cli/signals.h"
#include "spawner/model/model.h"

static int post(struct df_cli *cli, const char *plural, const char *name, const char *verb,
                cJSON **ret, struct df_err *err)
{
    const char *reason = df_arg(&cli->args, "reason");
    DF_FREE char *path = df_path(plural, name, verb, NULL);
    DF_JSON cJSON *body = df_json_object(DF_STR("reason", reason));
    if (!body)
        return df_fail_oom(err);
    return df_cli_call(cli, "POST", path, body, ret, err);
}

/* A decision is about one run: whoever names an executor hears which run is its newest. */
static int post_for_run(struct df_cli *cli, const char *run, const char *verb, cJSON **ret,
                        struct df_err *err)
{
    struct df_err why = {0}, unknown = {0};
    DF_FREE char *newest = NULL;
    if (post(cli, "runs", run, verb, ret, &why) == 0)
        return 0;
    bool is_found = why.cls == DF_ERR_NOT_FOUND && df_named_run(cli, run, &newest, &unknown) == 0;
    if (!is_found || df_streq(run, newest)) /* of class USER: what else has that name */
        return df_err_pass(err, unknown.cls == DF_ERR_USER ? &unknown : &why);
    return df_fail(err, DF_ERR_NOT_FOUND, "%s is an executor; its newest run is %s: `dayfly %s %s`",
                   run, newest, verb, newest);
}

/* Follows the run: an embedded service must stay until the run ends or waits for approval. */
static int carry_on(struct df_cli *cli, const char *run, int signals_fd, bool show,
                    struct df_err *err)
{
    const struct df_follow_options o = {.skip_past = true, .signals_fd = signals_fd};
    DF_JSON cJSON *doc = NULL;
    enum df_follow_end end = DF_FOLLOW_FINAL;
    struct df_view view;
    df_view_init(&view, show ? STDOUT_FILENO : -1, cli->out_tty, cli->color && cli->out_tty);
    int result = df_follow_run(cli, &view, run, &o, &end, &doc, err);
    df_view_free(&view);
    if (result < 0)
        return -1;
    if (end == DF_FOLLOW_LEFT) {
        cli->left = true;
        return DF_EXIT_INTERRUPTED;
    }
    return show && end == DF_FOLLOW_FINAL ? df_summary_print(cli, doc, view.note, err) : DF_EXIT_OK;
}

/* NULL: out of memory. */
static char *answer_line(const char *run, const cJSON *doc, const char *done)
{
    if (df_run_is_final(doc))
        return df_strf("%s has ended already: %s\n", run, df_run_phase(doc));
    if (df_approval_count(doc) && !df_json_at(doc, "spec.decision"))
        return df_strf("%s has your approval; it has %lld, and others have to approve it, too\n",
                       run, (long long)df_approval_count(doc));
    return df_strf("%s %s\n", run, done);
}

static int decide(struct df_cli *cli, const char *verb, const char *done, struct df_err *err)
{
    const char *run = NULL;
    DF_CLOSE int signals_fd = -1;
    DF_JSON cJSON *doc = NULL;
    if (df_cli_name(cli, 0, "run", &run, err) < 0 || df_signals_open(&signals_fd, err) < 0)
        return -1;
    if (df_cli_connect_as(cli, DF_CONNECT_WORK, err) < 0 ||
        post_for_run(cli, run, verb, &doc, err) < 0)
        return -1;
    /* Only the cancel of a canceled run gets such a run as its answer. */
    DF_FREE char *line = answer_line(run, doc, done);
    if (df_cli_print(line, err) < 0)
        return -1;
    bool embedded = df_connection_kind(cli->server) == DF_SERVICE_EMBEDDED;
    bool asked = df_arg_given(&cli->args, "follow");
    if (!embedded && !asked)
        return DF_EXIT_OK;
    return carry_on(cli, run, signals_fd, asked || df_streq(verb, "approve"), err);
}

int df_cmd_approve(struct df_cli *cli, struct df_err *err)
{
    return decide(cli, "approve", "approved", err);
}

int df_cmd_discard(struct df_cli *cli, struct df_err *err)
{
    return decide(cli, "discard", "discarded", err);
}

/* Workflows cannot be followed, and an embedded service runs none. */
static int cancel_task(struct df_cli *cli, const char *name, struct df_err *err)
{
    DF_FREE char *line = df_strf("taskaction/%s will be canceled\n", name);
    if (df_arg_given(&cli->args, "follow"))
        return df_fail(err, DF_ERR_USER, "--follow is for runs alone");
    if (df_check_alloc(line, err) < 0 || post(cli, "taskactions", name, "cancel", NULL, err) < 0)
        return -1;
    return df_cli_print(line, err) < 0 ? -1 : DF_EXIT_OK;
}

int df_cmd_cancel(struct df_cli *cli, struct df_err *err)
{
    const char *name = NULL;
    bool is_task = false;
    if (df_cli_name_or_task(cli, 0, "run", &name, &is_task, err) < 0)
        return -1;
    if (is_task)
        return cancel_task(cli, name, err);
    return decide(cli, "cancel", "will be canceled", err);
}
