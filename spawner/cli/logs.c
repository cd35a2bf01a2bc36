/* dayfly logs: prints the log or the events of a run, or the log of a TaskAction; with --follow
 * until it has ended. */
#include "spawner/cli/commands.h"
#include "spawner/cli/follow/view.h"
#include "spawner/cli/named.h"
#include "spawner/model/model.h"

struct tail {
    struct df_view view;
    char last_id[DF_SSE_ID];
    bool events; /* the stream has lines of JSON instead of text */
    bool shown;  /* a piece of it */
    bool ended;
};

/* What is asked for: a run, or (if `task`) a TaskAction. */
struct asked {
    const char *name;
    bool task, follow;
};

static char *log_path(const struct df_cli *cli, const struct asked *a)
{
    const char *step = df_arg(&cli->args, "step");
    DF_FREE char *path = df_path(a->task ? "taskactions" : "runs", a->name,
                                 df_arg_given(&cli->args, "events") ? "events" : "log", NULL);
    DF_BUF struct df_buf full = DF_BUF_INIT(DF_LIMIT_URL);
    (void)df_buf_adds(&full, path ? path : "");
    if (a->follow)
        (void)df_buf_adds(&full, "?follow=true");
    if (step)
        (void)df_buf_addf(&full, "%cstep=%s", a->follow ? '&' : '?', step);
    return path ? df_buf_take(&full) : NULL;
}

static int show_piece(void *arg, const char *bytes, size_t n)
{
    struct tail *t = arg;
    t->shown = t->shown || n;
    df_view_log(&t->view, bytes, n);
    return 0;
}

static int show_text(struct tail *t, const struct df_sse_event *event)
{
    DF_JSON cJSON *piece = NULL;
    struct df_err err;
    if (df_json_parse_nul(event->data, event->len, &piece, &err) < 0)
        return 0;
    t->shown |= df_view_piece(&t->view, piece);
    return 0;
}

static int on_event(void *arg, const struct df_sse_event *event)
{
    struct tail *t = arg;
    (void)snprintf(t->last_id, sizeof(t->last_id), "%s", event->id);
    t->ended = df_streq(event->name, "end");
    if (t->ended)
        return -1;
    if (!df_streq(event->name, "message"))
        return 0;
    if (!t->events)
        return show_text(t, event);
    (void)show_piece(t, event->data, event->len);
    return show_piece(t, "\n", 1);
}

/* After a broken connection the stream is resumed after its last event. */
static int follow(struct df_cli *cli, const char *path, struct tail *t, struct df_err *err)
{
    for (bool said = false;;) {
        const struct df_client_stream stream = {
            .path = path, .last_id = t->last_id, .fn = on_event, .arg = t};
        int result = df_client_stream(cli->client, &stream, err);
        if (t->ended)
            return 0;
        if (result < 0 && err->cls != DF_ERR_RETRY)
            return -1;
        /* A service that answers with a refusal has its reason; one that ends is found again. */
        if (result < 0 && err->reason[0] && !said) {
            df_cli_note("%s; trying again", err->message);
            said = true;
        }
        if (df_cli_reconnect(cli, err) < 0)
            return -1;
    }
}

/* Of what has not begun there is nothing to show: says so. */
static int note_nothing(struct df_cli *cli, const struct asked *a, struct df_err *err)
{
    DF_JSON cJSON *doc = NULL;
    const char *kind = a->task ? "taskaction" : "run";
    if (df_cli_get(cli, df_shown_of(a->task ? "taskactions" : "runs"), a->name, &doc, err) < 0)
        return -1;
    bool is_final = a->task ? df_task_is_final(doc) : df_run_is_final(doc);
    df_cli_note("%s %s is %s and has nothing in its log%s: `dayfly why %s%s` says %s", kind,
                a->name, a->task ? df_task_reason(doc) : df_run_phase(doc), is_final ? "" : " yet",
                a->task ? "taskaction/" : "", a->name, is_final ? "why" : "what it waits for");
    return 0;
}

static int show(struct df_cli *cli, const struct asked *a, struct df_err *err)
{
    DF_FREE char *path = log_path(cli, a);
    if (!path)
        return df_fail_oom(err);
    struct tail t = {.events = df_arg_given(&cli->args, "events")};
    df_view_init(&t.view, STDOUT_FILENO, cli->out_tty, cli->out_tty && cli->color && !t.events);
    int result = a->follow ? follow(cli, path, &t, err)
                           : df_client_fetch(cli->client, path, show_piece, &t, err);
    df_view_free(&t.view);
    return result < 0 || t.shown ? result : note_nothing(cli, a, err);
}

static int check_options(const struct df_cli *cli, struct df_err *err)
{
    static const char *const of_runs[] = {"step", "events"};
    for (size_t i = 0; i < DF_ARRAY_SIZE(of_runs); i++)
        if (df_arg_given(&cli->args, of_runs[i]))
            return df_fail(err, DF_ERR_USER, "--%s is for runs alone", of_runs[i]);
    return 0;
}

int df_cmd_logs(struct df_cli *cli, struct df_err *err)
{
    const char *word = df_cli_word(cli, 0), *task = df_named_task(word);
    DF_FREE char *run = NULL;
    if (task ? check_options(cli, err) < 0 : df_named_run(cli, word, &run, err) < 0)
        return -1;
    const struct asked a = {task ? task : run, task, df_arg_given(&cli->args, "follow")};
    return !cli->client && df_cli_connect(cli, err) < 0 ? -1 : show(cli, &a, err);
}
