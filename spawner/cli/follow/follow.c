/*
 * Follows a run until it ends or waits for approval: shows its log and progress, reconnects, asks
 * for approval, handles Ctrl-C. Read df_follow_run() and turn() at the end first, then on_event().
 */
#include "spawner/cli/follow/follow.h"

#include <errno.h>
#include <poll.h>

#include "common/base/clock.h"
#include "spawner/cli/follow/feed.h"
#include "spawner/cli/follow/progress.h"
#include "spawner/cli/kinds.h"
#include "spawner/cli/signals.h"
#include "spawner/cli/text.h"
#include "spawner/model/model.h"
#include "spawner/model/policy.h"
#include "spawner/model/recipe.h"
#include "spawner/model/waiting.h"

#define RETRY_MS (5 * 60 * 1000) /* for a server that went away */
#define RETRY_PAUSE_MS 250
#define LOG_END_MS 10000 /* for the rest of the log after the run has ended */
#define ANSWER_MAX 256
#define QUEUE_LOOK_MS 1000 /* how often to check which other run this run waits for */

enum stream { STREAM_WATCH, STREAM_LOG };

enum question { QUESTION_NONE, QUESTION_OPEN, QUESTION_ANSWERED };

struct follow {
    struct df_cli *cli;
    struct df_view *view;
    const char *run_name;
    const struct df_follow_options *o;
    struct df_feed *feed;
    cJSON *run; /* as last seen */
    struct df_progress progress;
    enum question question;
    char log_id[DF_SSE_ID]; /* the last event of the log stream, to resume after it */
    bool log_ended;         /* all log lines of the ended run were received */
    int64_t final_ms;       /* monotonic: when the end of the run was seen; 0: not yet */
    bool canceled;          /* this command requested it */
    bool is_one_of;         /* this command approved it, and others have to follow */
    int64_t signaled_ms;    /* monotonic: the last signal that counted; 0: none */
    bool left;
    bool is_waiting; /* what the run waits for was shown, and is not over */
    char *ahead;     /* the printed message about the run before this one; owned */
    char *behind;    /* the run for whose approval this run would have waited; owned */
    int64_t look_ms; /* monotonic: when to check again which run is before this one */
    struct df_buf answer;
    struct df_err lost; /* a stream broke off: the cause */
    int64_t lost_ms;    /* monotonic: when the connection was last restored */
};

/* ---- events of the streams ---- */

/* Returns result, but keeps a failure of class RETRY in f->lost: turn() then reconnects, and the
 * server sends the current documents again. */
static int unless_lost(struct follow *f, int result, const struct df_err *err)
{
    if (result == 0 || err->cls != DF_ERR_RETRY)
        return result;
    f->lost = *err;
    return 0;
}

/* Fetches the TaskAction, because its log arrived before the document that shows its start. */
static int fetch_step(struct follow *f, const char *task_name, struct df_err *err)
{
    DF_FREE char *path = df_path("taskactions", task_name, NULL);
    DF_JSON cJSON *task = NULL;
    if (!path)
        return df_fail_oom(err);
    if (df_cli_call(f->cli, "GET", path, NULL, &task, err) < 0)
        return unless_lost(f, -1, err);
    df_progress_task(&f->progress, task);
    return 0;
}

static int on_log(struct follow *f, const struct df_feed_event *e, struct df_err *err)
{
    const char *name = df_json_str(e->data, "step");
    if (df_streq(e->name, "end"))
        f->log_ended = true;
    if (e->id[0])
        memcpy(f->log_id, e->id, sizeof(f->log_id));
    if (!df_progress_knows(&f->progress, name) && fetch_step(f, name, err) < 0)
        return -1;
    df_progress_log(&f->progress, name, e->data);
    if (df_streq(e->name, "complete"))
        df_progress_log_complete(&f->progress, name);
    return 0;
}

/* Shows once what the run waits for, and once that this is over. */
static void show_waiting(struct follow *f, const cJSON *run)
{
    const cJSON *waiting = df_waiting_of(run);
    DF_FREE char *text = waiting ? df_waiting_text(waiting, false) : NULL;
    bool is_waiting = waiting != NULL;
    if (is_waiting == f->is_waiting)
        return;
    f->is_waiting = is_waiting;
    df_view_idle(f->view);
    if (is_waiting)
        df_view_say(f->view, DF_TONE_BAD, "%s %s", f->run_name, text ? text : "waits");
    else if (!df_run_is_final(run) && !df_json_at(run, "spec.cancel"))
        df_view_say(f->view, DF_TONE_STRONG, "%s goes on", f->run_name);
}

static void on_run(struct follow *f, const cJSON *run)
{
    show_waiting(f, run);
    cJSON *copy = cJSON_Duplicate(run, true);
    if (!copy)
        return; /* the next event contains the run, too */
    cJSON_Delete(f->run);
    f->run = copy;
    if (df_run_is_final(f->run) && !f->final_ms)
        f->final_ms = df_mono_ms();
}

static void on_watch(struct follow *f, const struct df_feed_event *e)
{
    if (df_streq(e->name, "run"))
        on_run(f, e->data);
    else if (df_streq(e->name, "taskaction"))
        df_progress_task(&f->progress, e->data);
}

/* Handles the end of a stream. If it came too early, the connection is lost. */
static int on_closed(struct follow *f, const struct df_feed_event *e, struct df_err *err)
{
    if (e->stream == STREAM_LOG ? f->log_ended : f->final_ms != 0)
        return 0;
    if (e->failure.cls == DF_ERR_NONE) {
        (void)df_fail(&f->lost, DF_ERR_RETRY, "the server ended the stream");
        return 0;
    }
    return unless_lost(f, df_err_pass(err, &e->failure), err);
}

static int on_event(struct follow *f, const struct df_feed_event *e, struct df_err *err)
{
    if (df_streq(e->name, "closed"))
        return on_closed(f, e, err);
    if (e->stream == STREAM_LOG)
        return on_log(f, e, err);
    on_watch(f, e);
    return 0;
}

static bool has_phase(const struct follow *f, const char *phase)
{
    return f->run && df_streq(df_run_phase(f->run), phase);
}

/* ---- the server ---- */

static int add_stream(struct follow *f, enum stream stream, const char *what, const char *query,
                      struct df_err *err)
{
    DF_FREE char *path = df_path("runs", f->run_name, what, NULL);
    DF_FREE char *full = path ? df_strf("%s%s", path, query) : NULL;
    if (!full)
        return df_fail_oom(err);
    const struct df_feed_source source = {.address = df_client_address_of(f->cli->client),
                                          .path = full,
                                          .last_id = stream == STREAM_LOG ? f->log_id : NULL,
                                          .stream = (int)stream};
    return df_feed_add(f->feed, &source, err);
}

static int add_log_stream(struct follow *f, struct df_err *err)
{
    return add_stream(f, STREAM_LOG, "log", "?follow=true", err);
}

static int open_streams(struct follow *f, struct df_err *err)
{
    df_feed_close(f->feed);
    f->feed = NULL;
    f->lost = (struct df_err){0};
    if (df_feed_open(&f->feed, err) < 0 || add_stream(f, STREAM_WATCH, "watch", "", err) < 0)
        return -1;
    return f->log_ended ? 0 : add_log_stream(f, err);
}

static int reconnect_in_time(struct follow *f, struct df_err *err)
{
    bool said = false;
    for (int64_t end = df_mono_ms() + RETRY_MS; !f->left;) {
        if (df_cli_reconnect(f->cli, err) == 0)
            return 0;
        if (!said && df_streq(err->reason, "NobodyServes"))
            df_view_say(f->view, DF_TONE_DIM, "%s waits: %s", f->run_name, err->message);
        said |= df_streq(err->reason, "NobodyServes");
        if (err->cls != DF_ERR_RETRY || df_mono_ms() >= end)
            return df_err_wrap(err, "%s goes on without us (`dayfly logs -f %s` follows it again)",
                               f->run_name, f->run_name);
        struct pollfd p = {.fd = f->o->signals_fd, .events = POLLIN};
        (void)poll(&p, 1, RETRY_PAUSE_MS);
        f->left = df_signals_take(f->o->signals_fd) != 0;
        df_view_tick(f->view);
    }
    return 0;
}

/* Reconnects: waits for a named service, or starts an embedded one in place of another process. */
static int find_again(struct follow *f, struct df_err *err)
{
    enum df_service_kind before = df_connection_kind(f->cli->server);
    if (f->question == QUESTION_OPEN)
        df_view_say(f->view, DF_TONE_PLAIN, "%s", "");
    df_view_status(f->view, "the service does not answer, trying again");
    if (df_mono_ms() - f->lost_ms < 1000)
        (void)poll(NULL, 0, RETRY_PAUSE_MS); /* it breaks off again and again */
    if (reconnect_in_time(f, err) < 0)
        return -1;
    f->lost_ms = df_mono_ms();
    df_view_idle(f->view);
    if (f->question == QUESTION_OPEN)
        f->question = QUESTION_NONE; /* ask again, below the lines printed meanwhile */
    if (before == DF_SERVICE_RUNNING && df_connection_kind(f->cli->server) == DF_SERVICE_EMBEDDED)
        df_view_say(f->view, DF_TONE_DIM,
                    "The process that ran the service has ended; this one carries the run on.");
    return f->left ? 0 : open_streams(f, err);
}

/* Whoever overrides a policy says why. */
static bool overrides(const struct follow *f)
{
    return df_policies_failed(f->run, "soft") != NULL;
}

/* "y", "yes", "No" and the like answer another question. */
static bool is_bare(const char *text, const char *word)
{
    size_t n = strcspn(text, "\r\n");
    return n <= strlen(word) && strncasecmp(text, word, n) == 0;
}

/* The answer is the reason then; NULL: not, or no memory. The caller frees. */
static char *reason_of(const struct follow *f)
{
    const char *text = df_buf_str(&f->answer);
    return overrides(f) ? strndup(text, strcspn(text, "\r\n")) : NULL;
}

static int post(struct follow *f, const char *verb, cJSON **ret, struct df_err *err)
{
    DF_FREE char *path = df_path("runs", f->run_name, verb, NULL);
    bool approves = df_streq(verb, "approve");
    DF_FREE char *reason = approves ? reason_of(f) : NULL;
    /* The plan that was shown. */
    const char *plan = approves ? df_json_str(f->run, "status.planDigest") : NULL;
    DF_JSON cJSON *body = df_json_object(DF_STR("plan", plan), DF_STR("reason", reason));
    DF_JSON cJSON *run = NULL;
    if (!path || !body)
        return df_fail_oom(err);
    if (df_cli_call(f->cli, "POST", path, body, &run, err) < 0)
        return -1;
    if (ret)
        *ret = DF_TAKE(run);
    return 0;
}

/* ---- waiting for other runs ---- */

/* The run of the executor whose turn it is, if it is another one. Borrowed from runs. */
static const cJSON *run_ahead(const struct follow *f, const cJSON *runs)
{
    const cJSON *run = NULL, *oldest = NULL;
    cJSON_ArrayForEach (run, runs) {
        if (!df_run_is_final(run) && df_run_takes_turn(run) &&
            (!oldest || df_json_int(run, "spec.number", 0) < df_json_int(oldest, "spec.number", 0)))
            oldest = run;
    }
    return df_streq(df_json_str(oldest, "metadata.name"), f->run_name) ? NULL : oldest;
}

/* Cancels this run: the run before it may wait for approval for days, and nobody here can
 * decide. */
static int give_up(struct follow *f, const char *name, struct df_err *err)
{
    if (post(f, "cancel", NULL, err) < 0 && !df_streq(err->reason, "WrongState"))
        return unless_lost(f, -1, err);
    f->canceled = true;
    return df_check_alloc(f->behind = strdup(name), err);
}

/* True if the run waits for approval and nobody has decided or canceled it. */
static bool is_undecided(const cJSON *run)
{
    return df_streq(df_run_phase(run), "WaitingApproval") && !df_json_at(run, "spec.decision") &&
           !df_json_at(run, "spec.cancel");
}

static int show_earlier_run(struct follow *f, const cJSON *other, struct df_err *err)
{
    const char *name = df_json_str(other, "metadata.name");
    bool asks = is_undecided(other);
    if (asks && f->o->ours && !f->o->ask)
        return f->canceled ? 0 : give_up(f, name, err);
    DF_FREE char *text =
        asks ? df_strf("%s waits for %s, which waits for approval: `dayfly approve %s` or `dayfly "
                       "discard %s`",
                       f->run_name, name, name, name)
             : df_strf("%s waits for %s (%s)", f->run_name, name, df_run_phase(other));
    if (!text)
        return df_fail_oom(err);
    if (!df_streq(text, f->ahead))
        df_view_say(f->view, DF_TONE_PLAIN, "%s", text);
    free(f->ahead);
    f->ahead = DF_TAKE(text);
    return 0;
}

/* Runs of an executor execute one at a time: prints which run this one waits for. */
static int look_ahead(struct follow *f, struct df_err *err)
{
    if (!has_phase(f, "Pending") || !df_run_takes_turn(f->run) || df_mono_ms() < f->look_ms)
        return 0;
    f->look_ms = df_mono_ms() + QUEUE_LOOK_MS;
    const char *executor = df_json_str(f->run, "spec.executorRef.name");
    DF_FREE char *path = executor ? df_path("executors", executor, "runs", NULL) : NULL;
    DF_JSON cJSON *runs = NULL;
    if (!path || df_cli_list(f->cli, path, &runs, err) < 0)
        return path ? unless_lost(f, -1, err) : 0;
    const cJSON *other = run_ahead(f, runs);
    return other ? show_earlier_run(f, other, err) : 0;
}

/* ---- the person ---- */

static void ask(struct follow *f)
{
    f->question = QUESTION_OPEN;
    df_buf_clear(&f->answer);
    if (overrides(f)) {
        df_view_say(f->view, DF_TONE_PLAIN, "%s", df_json_text(f->run, "status.message"));
        df_view_ask(f->view, "Why is this plan applied all the same? Without a reason it is not:");
        return;
    }
    df_view_ask(f->view, df_streq(df_json_str(f->run, "spec.action"), "destroy")
                             ? "Destroy what is listed above? Only 'yes' is accepted:"
                             : "Apply these changes? Only 'yes' is accepted:");
}

static int answer(struct follow *f, struct df_err *err)
{
    const char *text = df_buf_str(&f->answer);
    bool yes = overrides(f) ? !is_bare(text, "no") : df_streq(text, "yes\n");
    if (yes && overrides(f) && is_bare(text, "yes")) {
        ask(f);
        return 0;
    }
    f->question = QUESTION_ANSWERED;
    DF_JSON cJSON *run = NULL;
    if (post(f, yes ? "approve" : "discard", &run, err) < 0)
        /* Somebody else has decided; the run shows how. */
        return df_streq(err->reason, "WrongState") ? 0 : -1;
    if (!yes)
        df_view_say(f->view, DF_TONE_PLAIN,
                    "Declined: the plan of %s is discarded, nothing was changed.", f->run_name);
    f->is_one_of = is_undecided(run);
    if (f->is_one_of) {
        cJSON_Delete(f->run);
        f->run = DF_TAKE(run);
    }
    return 0;
}

/* Reads from the terminal. A line, or the end of the input, is the answer. */
static int read_answer(struct follow *f, struct df_err *err)
{
    char bytes[ANSWER_MAX];
    ssize_t n = read(STDIN_FILENO, bytes, sizeof(bytes));
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return 0;
    if (n > 0)
        (void)df_buf_add(&f->answer, bytes, (size_t)n);
    else
        df_view_say(f->view, DF_TONE_PLAIN, "%s", "");
    return n <= 0 || memchr(bytes, '\n', (size_t)n) ? answer(f, err) : 0;
}

static void leave(struct follow *f)
{
    f->left = true;
    df_view_idle(f->view);
    if (df_connection_kind(f->cli->server) == DF_SERVICE_EMBEDDED)
        df_view_say(f->view, DF_TONE_BAD,
                    "Leaving now. A step that still ends stores its state when dayfly runs again: "
                    "`dayfly why %s`.",
                    f->run_name);
    else
        df_view_say(f->view, DF_TONE_PLAIN, "%s goes on: `dayfly logs -f %s` follows it again.",
                    f->run_name, f->run_name);
}

/* Handles a signal while the question is open: no tool is running, so the run is canceled, and its
 * plan with it. */
static void drop_plan(struct follow *f)
{
    struct df_err err = {0};
    df_view_say(f->view, DF_TONE_PLAIN, "%s", "");
    f->question = QUESTION_ANSWERED;
    if (post(f, "cancel", NULL, &err) == 0) {
        f->canceled = true;
        df_view_say(f->view, DF_TONE_STRONG,
                    "Canceled: the plan of %s is discarded, nothing was changed.", f->run_name);
    } else if (!df_streq(err.reason, "WrongState")) {
        f->left = true;
        df_view_say(f->view, DF_TONE_BAD,
                    "%s could not be canceled: %s. It still waits for approval: `dayfly approve "
                    "%s` or `dayfly discard %s`.",
                    f->run_name, err.message, f->run_name, f->run_name);
    }
}

static void cancel(struct follow *f)
{
    struct df_err err = {0};
    f->canceled = true;
    if (has_phase(f, "Pending"))
        df_view_say(f->view, DF_TONE_STRONG, "Canceling %s, which has not started.", f->run_name);
    else
        df_view_say(f->view, DF_TONE_STRONG,
                    "Canceling %s: the tool is asked to end and its state is stored. Ctrl-C once "
                    "more leaves without waiting.",
                    f->run_name);
    if (post(f, "cancel", NULL, &err) < 0 && !df_streq(err.reason, "WrongState"))
        df_view_say(f->view, DF_TONE_BAD, "It could not be canceled: %s", err.message);
}

static void interrupted(struct follow *f)
{
    bool embedded = df_connection_kind(f->cli->server) == DF_SERVICE_EMBEDDED;
    int64_t now_ms = df_mono_ms();
    if (f->signaled_ms && now_ms - f->signaled_ms < DF_SIGNALS_SAME_MS)
        return;
    f->signaled_ms = now_ms;
    if (f->question == QUESTION_OPEN)
        drop_plan(f);
    else if (f->canceled || !(f->o->ours || embedded))
        leave(f);
    else
        cancel(f);
}

/* The run was decided elsewhere while the question was open. */
static void answered_elsewhere(struct follow *f)
{
    const char *by = df_json_str(f->run, "spec.decision.by");
    const char *verdict = df_json_str(f->run, "spec.decision.verdict");
    f->question = QUESTION_ANSWERED;
    df_view_say(f->view, DF_TONE_PLAIN, "%s", "");
    df_view_say(f->view, DF_TONE_PLAIN, "%s was %s by %s.", f->run_name,
                verdict ? verdict : "ended", by ? by : "somebody else");
}

/* ---- the loop ---- */

static int take_events(struct follow *f, struct df_err *err)
{
    DF_FEED_EVENT struct df_feed_event e = {0};
    while (df_feed_next(f->feed, &e)) {
        int result = on_event(f, &e, err);
        df_feed_event_free(&e);
        if (result < 0)
            return -1;
    }
    return 0;
}

static int wait_timeout(const struct follow *f)
{
    bool ticking = f->view->live && f->question != QUESTION_OPEN;
    return ticking || f->final_ms || has_phase(f, "Pending") ? DF_VIEW_TICK_MS : -1;
}

static int wait_a_moment(struct follow *f, struct df_err *err)
{
    bool open = f->question == QUESTION_OPEN;
    struct pollfd p[3] = {{.fd = df_feed_fd(f->feed), .events = POLLIN},
                          {.fd = f->o->signals_fd, .events = POLLIN},
                          {.fd = open ? STDIN_FILENO : -1, .events = POLLIN}};
    if (poll(p, 3, wait_timeout(f)) < 0 && errno != EINTR)
        return df_fail_errno(err, errno, "poll");
    if (df_signals_take(f->o->signals_fd))
        interrupted(f);
    else if (p[2].revents && read_answer(f, err) < 0)
        return -1;
    if (f->question != QUESTION_OPEN)
        df_view_tick(f->view);
    return take_events(f, err);
}

static bool is_over(const struct follow *f)
{
    return f->final_ms && (f->log_ended || df_mono_ms() - f->final_ms > LOG_END_MS);
}

/* A decision may exist already that the service has not processed. */
static bool is_open(const struct follow *f)
{
    return is_undecided(f->run) && !f->canceled;
}

/* True if the run waits for a decision. The whole plan must have been shown before. */
static bool waits_for_person(const struct follow *f)
{
    return is_open(f) && df_progress_is_complete(&f->progress);
}

static int turn(struct follow *f, struct df_err *err)
{
    if (f->lost.cls && find_again(f, err) < 0)
        return -1;
    if (f->left)
        return 0;
    if (waits_for_person(f) && f->question == QUESTION_NONE)
        ask(f);
    else if (f->question == QUESTION_OPEN && !is_open(f))
        answered_elsewhere(f);
    if (look_ahead(f, err) < 0)
        return -1;
    return wait_a_moment(f, err);
}

/* Fails if give_up() canceled the run. It may have started before; then it ended normally. */
static int check_turn(const struct follow *f, struct df_err *err)
{
    if (!f->behind || !has_phase(f, "Canceled"))
        return 0;
    return df_fail(err, DF_ERR_CONFLICT,
                   "%s is canceled: it would wait for %s, which waits for approval; `dayfly "
                   "approve %s` or `dayfly discard %s`, then try again",
                   f->run_name, f->behind, f->behind, f->behind);
}

static int follow(struct follow *f, enum df_follow_end *ret_end, struct df_err *err)
{
    for (;;) {
        if (f->left)
            *ret_end = DF_FOLLOW_LEFT;
        else if (is_over(f))
            *ret_end = DF_FOLLOW_FINAL;
        else if (f->is_one_of || (waits_for_person(f) && !f->o->ask))
            *ret_end = DF_FOLLOW_WAITING;
        else if (turn(f, err) < 0)
            return -1;
        else
            continue;
        return 0;
    }
}

/* Begins with the first step that has not ended: the person has seen those before it. */
static void skip_past(struct follow *f)
{
    const struct df_recipe *recipe = df_recipe_of(f->run);
    char name[64];
    size_t at = 0;
    while (at < recipe->count && df_json_str(df_run_step(f->run, at), "finishedAt"))
        at++;
    df_progress_skip_past(&f->progress, f->run);
    f->log_ended = recipe->count && at == recipe->count;
    if (at < recipe->count && df_model_name(f->run_name, recipe->steps[at].name, name, NULL) == 0)
        (void)snprintf(f->log_id, sizeof(f->log_id), "%s:0", name);
}

static int start(struct follow *f, struct df_err *err)
{
    DF_FREE char *path = df_path("runs", f->run_name, NULL);
    if (df_cli_call(f->cli, "GET", path, NULL, &f->run, err) < 0)
        return -1;
    if (f->o->skip_past)
        skip_past(f);
    f->look_ms = df_mono_ms() + QUEUE_LOOK_MS / 4;
    return open_streams(f, err);
}

int df_follow_run(struct df_cli *cli, struct df_view *view, const char *run,
                  const struct df_follow_options *o, enum df_follow_end *ret_end, cJSON **ret_run,
                  struct df_err *err)
{
    struct follow f = {
        .cli = cli, .view = view, .run_name = run, .o = o, .answer = DF_BUF_INIT(ANSWER_MAX)};
    df_progress_init(&f.progress, view);
    int result = start(&f, err);
    if (result == 0)
        result = follow(&f, ret_end, err);
    if (result == 0)
        result = check_turn(&f, err);
    df_view_idle(view);
    df_feed_close(f.feed);
    df_progress_free(&f.progress);
    free(f.ahead);
    free(f.behind);
    df_buf_free(&f.answer);
    if (result == 0)
        *ret_run = DF_TAKE(f.run);
    cJSON_Delete(f.run);
    return result;
}

/* ---- how it ended ---- */

/* code: of the steps before. A runner that was lost has told no code, but its step may have made
 * something. */
static int64_t exit_after(int64_t code, const cJSON *task)
{
    int64_t own = df_json_int(task, "status.exitCode", 0);
    bool is_told = own >= 0 && own <= DF_EXIT_TIMEOUT;
    if (!is_told && df_json_at(task, "status.unrecorded"))
        return DF_EXIT_PARTIAL;
    return own > 0 ? own : code;
}

enum df_exit df_run_exit(const cJSON *run, const cJSON *tasks)
{
    if (df_streq(df_run_phase(run), "Succeeded"))
        return DF_EXIT_OK;
    if (df_streq(df_json_str(run, "status.reason"), "TimedOut"))
        return DF_EXIT_TIMEOUT;
    int64_t code = DF_EXIT_FAILURE;
    const cJSON *task = NULL;
    cJSON_ArrayForEach (task, tasks) {
        code = exit_after(code, task);
    }
    if (!df_streq(df_run_phase(run), "Failed") && code != DF_EXIT_PARTIAL)
        return DF_EXIT_FAILURE;
    return code > DF_EXIT_TIMEOUT ? DF_EXIT_FAILURE : (enum df_exit)code;
}
