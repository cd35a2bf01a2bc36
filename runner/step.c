/*
 * From the handoff to the result: df_step() at the end receives the step (step_start) and runs it
 * (step_run). After the claim every end has a result; a failure before it is only logged. A standby
 * runner waits for its step, and may get none. The pod of a plan may stay for its apply:
 * step_follow() receives it, and step_run() runs it.
 */
#include "runner/step.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>

#include "common/base/clock.h"
#include "common/base/exit.h"
#include "common/base/fs.h"
#include "common/base/log.h"
#include "common/crypto/crypto.h"
#include "common/http/http.h"
#include "runner/memory.h"
#include "runner/orphans.h"
#include "runner/outputs.h"
#include "runner/pipeline.h"
#include "runner/report/termination.h"
#include "runner/secrets.h"
#include "runner/tofu/failure.h"
#include "runner/work.h"

/* How long to retry the result; after that only result.json has it. */
#define GIVE_UP_MS (DF_TIMEOUT_RESULT_SECONDS * 1000)

/* Everything that one step holds. All owned. */
struct run {
    char *dir;      /* the step's directory */
    bool temporary; /* remove dir at the end */
    int lock_fd;
    struct df_dirs dirs;
    struct df_report *report;
    bool is_claimed;            /* the report hands out the step */
    bool is_standby;            /* ... when there is one for this runner */
    const struct df_work *work; /* whose step it is; borrowed; NULL before it is known */
    void *work_data;            /* of that row */
    char *termination_log;      /* NULL: none */
    cJSON *handoff;             /* of a pod that claims with its token; NULL: it has one step */
    char claim_id[33];          /* of every claim of this process */
    bool is_delivered;          /* the spawner has the result */
    bool is_alone;              /* no process of the step is left */
    int64_t memory_kills;       /* before this step */
    struct df_stop *stop;
    struct df_preparation *preparation; /* of a standby runner; or NULL */
    cJSON *doc;
    struct df_isolation isolation;
    struct df_masks *masks;
    struct df_output *output;
    struct df_context context;
};

static void run_free(struct run *r)
{
    struct df_err err;
    df_preparation_free(r->preparation);
    df_context_free(&r->context);
    df_output_free(r->output);
    df_masks_free(r->masks);
    df_json_wipe(r->doc);
    df_json_wipe(r->handoff);
    df_stop_free(r->stop);
    df_report_free(r->report);
    if (r->work_data)
        r->work->close(r->work_data);
    if (r->dirs.secret && df_fs_remove_tree(r->dirs.secret, &err) < 0)
        df_warn("secrets of the step are left behind: %s", err.message);
    if (r->dirs.temporary && df_fs_remove_tree(r->dirs.temporary, &err) < 0)
        df_warn("temporary files are left behind: %s", err.message);
    if (r->temporary && df_fs_remove_tree(r->dir, &err) < 0)
        df_warn("temporary files are left behind: %s", err.message);
    df_dirs_free(&r->dirs);
    df_isolation_free(&r->isolation);
    if (r->lock_fd >= 0)
        (void)close(r->lock_fd);
    free(r->termination_log);
    free(r->dir);
}

/* ---- directories ---- */

static int choose_dir(struct run *r, const char *work_dir, struct df_err *err)
{
    if (work_dir) {
        if (df_fs_mkdirs(work_dir, 0700, err) < 0)
            return -1;
        r->dir = realpath(work_dir, NULL);
        return r->dir ? 0 : df_fail_errno(err, errno, "%s", work_dir);
    }
    const char *base = getenv("TMPDIR");
    r->dir = df_strf("%s/dayfly-step-XXXXXX", df_str_empty(base) ? "/tmp" : base);
    if (!r->dir)
        return df_fail_oom(err);
    if (!mkdtemp(r->dir))
        return df_fail_errno(err, errno,
                             "TMPDIR must name a directory that the runner can write: create %s",
                             r->dir);
    r->temporary = true;
    return 0;
}

/* Two runners in one directory would overwrite each other's files. */
static int lock_dir(struct run *r, struct df_err *err)
{
    r->lock_fd = open(r->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (r->lock_fd < 0)
        return df_fail_errno(err, errno, "open %s", r->dir);
    if (flock(r->lock_fd, LOCK_EX | LOCK_NB) < 0)
        return df_fail(err, DF_ERR_CONFLICT, "%s: another runner works in this directory", r->dir);
    return 0;
}

static int make_dirs(struct run *r, const char *work_dir, struct df_err *err)
{
    if (choose_dir(r, work_dir, err) < 0 || lock_dir(r, err) < 0)
        return -1;
    DF_FREE char *work = df_fs_join(r->dir, "work");
    return work ? df_dirs_make(work, &r->dirs, err) : df_fail_oom(err);
}

/* ---- the handoff ---- */

/* Strings are borrowed from the document that they were read from. */
struct handoff {
    const char *server, *endpoint_file, *ca_file;
    const char *uid, *runner;       /* one of them; runner: the id of a runner without a step */
    const char *token, *token_file; /* one of them, for the claim */
};

static struct handoff handoff_of(const cJSON *doc)
{
    return (struct handoff){.server = df_json_str(doc, "server"),
                            .uid = df_json_str(doc, "uid"),
                            .runner = df_json_str(doc, "standby"),
                            .endpoint_file = df_json_str(doc, "endpointFile"),
                            .ca_file = df_json_str(doc, "caFile"),
                            .token = df_json_str(doc, "token"),
                            .token_file = df_json_str(doc, "tokenFile")};
}

static int check_handoff(const struct handoff *h, struct df_err *err)
{
    if (!h->token == !h->token_file)
        return df_fail(err, DF_ERR_USER, "the handoff must have one of token, tokenFile");
    if (h->runner && (h->uid || !h->token_file))
        return df_fail(err, DF_ERR_USER,
                       "the handoff of a standby runner must have tokenFile and no uid");
    if (!h->server || (!h->uid && !h->runner))
        return df_fail(err, DF_ERR_USER, "the handoff has no server or uid or standby");
    return 0;
}

/* A df_report_prepare. Without it the step gets all by itself. */
static void begin_preparation(void *arg, cJSON *doc)
{
    struct run *r = arg;
    struct df_err why = {0};
    if (df_preparation_start(doc, &r->dirs, &r->preparation, &why) < 0)
        df_warn("nothing is ready before the step: %s", why.message);
}

static int connect_spawner(struct run *r, const struct handoff *h, struct df_err *err)
{
    bool begins_ready = r->is_standby && !r->isolation.is_on;
    if (check_handoff(h, err) < 0)
        return -1;
    const struct df_report_spawner o = {.server = h->server,
                                        .uid = h->uid,
                                        .runner = h->runner,
                                        .prepare = begins_ready ? begin_preparation : NULL,
                                        .prepare_arg = r,
                                        .claim_token = h->token,
                                        .token_file = h->token_file,
                                        .claim_id = r->claim_id,
                                        .ca_file = h->ca_file,
                                        .endpoint_file = h->endpoint_file,
                                        .spool_dir = r->dirs.spool,
                                        .give_up_ms = GIVE_UP_MS};
    r->is_claimed = true;
    return df_report_to_spawner(&o, &r->report, err);
}

static int use_handoff(struct run *r, const cJSON *doc, bool in_pod, struct df_err *err)
{
    const struct handoff h = handoff_of(doc);
    const char *termination_log = df_json_str(doc, "terminationLog");
    if (!termination_log && in_pod && df_fs_exists(DF_TERMINATION_LOG))
        termination_log = DF_TERMINATION_LOG;
    r->termination_log = termination_log ? strdup(termination_log) : NULL;
    if (termination_log && !r->termination_log)
        return df_fail_oom(err);
    if (df_isolation_read(doc, &r->isolation, err) < 0)
        return -1;
    r->is_standby = h.runner;
    return connect_spawner(r, &h, err);
}

static int read_handoff(const struct df_step_options *o, struct df_buf *text, struct df_err *err)
{
    if (o->handoff_file)
        return df_fs_read(o->handoff_file, text, err);
    int result = df_fs_read_fd(o->handoff_fd, text, err);
    (void)close(o->handoff_fd);
    return result;
}

static int take_handoff(struct run *r, const struct df_step_options *o, struct df_err *err)
{
    struct df_buf text = DF_BUF_INIT(DF_HANDOFF_MAX);
    cJSON *handoff = NULL;
    int failed = read_handoff(o, &text, err) < 0 ||
                 df_json_parse(df_buf_str(&text), text.len, &handoff, err) < 0;
    df_buf_wipe(&text);
    if (failed)
        return df_err_wrap(err, "read the handoff");
    failed = use_handoff(r, handoff, o->handoff_file != NULL, err);
    if (!failed && df_json_str(handoff, "tokenFile") && !r->is_standby) /* without a secret */
        r->handoff = DF_TAKE(handoff);
    df_json_wipe(handoff);
    return failed;
}

/* The step that started this program. */
static int start_work(struct run *r, const struct df_work *starter, struct df_err *err)
{
    r->is_claimed = true;
    r->work = starter;
    r->termination_log = df_fs_exists(DF_TERMINATION_LOG) ? strdup(DF_TERMINATION_LOG) : NULL;
    return starter->start(&r->work_data, err);
}

static int connect_report(struct run *r, const struct df_step_options *o, struct df_err *err)
{
    if (o->starter)
        return o->starter->connect(r->work_data, &r->dirs, &r->report, err);
    if (o->handoff_file || o->handoff_fd >= 0)
        return take_handoff(r, o, err);
    if (df_json_load(o->file, DF_LIMIT_STEP_DOCUMENT, &r->doc, err) < 0 ||
        df_fs_mkdirs(o->report_dir, 0700, err) < 0)
        return -1;
    return df_report_to_directory(o->report_dir, &r->report, err);
}

static int get_document(struct run *r, struct df_err *err)
{
    const int64_t pending_ms = r->is_standby ? INT64_MAX : DF_TIMEOUT_PENDING_SECONDS * 1000;
    if (!r->is_claimed)
        return 0;
    return df_report_claim(r->report, df_stop_flag(r->stop), pending_ms, &r->doc, err);
}

/* ---- the result ---- */

static int exit_code_of(const struct run *r, const struct df_err *failure)
{
    if (df_streq(failure->reason, "InvalidStep"))
        return DF_EXIT_INPUT;
    if (df_streq(failure->reason, "TimedOut"))
        return DF_EXIT_TIMEOUT;
    return r->context.partial ? DF_EXIT_PARTIAL : DF_EXIT_FAILURE;
}

static int finish_result(struct run *r, int code, struct df_err *err)
{
    const struct df_outcome *outcome = &r->context.outcome;
    cJSON *result = r->context.result;
    DF_BUF struct df_buf clean = DF_BUF_INIT(16 * DF_KIB);
    /* Before the secrets are known a message can have none. */
    if ((r->masks ? df_redact_string(df_masks_set(r->masks), outcome->message, &clean, err)
                  : df_buf_adds(&clean, outcome->message)) < 0 ||
        df_json_add_str(result, "step", df_json_str(r->doc, "uid"), err) < 0 ||
        df_json_add_num(result, "exitCode", code, err) < 0 ||
        df_json_add_str(result, "reason", outcome->reason, err) < 0)
        return -1;
    return df_json_add_str(result, "message", df_buf_str(&clean), err);
}

static int save_result(const struct run *r, struct df_err *err)
{
    DF_FREE char *text = df_json_print(r->context.result);
    DF_FREE char *path = df_fs_join(r->dir, "result.json");
    if (!text || !path)
        return df_fail_oom(err);
    return df_fs_write(path, text, strlen(text), 0600, err);
}

/* ---- the step ---- */

#define CGROUP "/sys/fs/cgroup"

static int open_work(struct run *r, struct df_err *err)
{
    int failed = 0;
    if (!r->work_data)
        r->work = df_work_of(r->doc);
    if (!r->work_data && r->work->open)
        failed = r->work->open(r->doc, &r->dirs, &r->report, &r->work_data, err);
    r->context.report = r->report;
    r->context.work = r->work;
    r->context.work_data = r->work_data;
    return failed;
}

static void end_preparation(struct run *r)
{
    if (!r->preparation)
        return;
    df_preparation_end(r->preparation, r->doc, r->stop);
    r->context.preparation = r->preparation;
    r->memory_kills = df_memory_kills(CGROUP); /* what it needed is no part of the step */
}

static int step_prepare(struct run *r, struct df_err *err)
{
    int64_t seconds = df_json_int(r->doc, "timeoutSeconds", DF_TIMEOUT_STEP_SECONDS);
    df_stop_after(r->stop, seconds * 1000);
    r->context.deadline_ms = df_mono_ms() + seconds * 1000;
    end_preparation(r);
    if (open_work(r, err) < 0 || df_secrets_masks(r->doc, &r->masks, err) < 0 ||
        df_output_new(r->masks, r->report, STDOUT_FILENO, &r->output, err) < 0)
        return -1;
    r->context.doc = r->doc;
    r->context.output = r->output;
    r->context.masks = r->masks;
    return df_context_mark(&r->context, "claimed", df_real_us(), err);
}

/* If the kernel killed a process of this container, the memory limit caused the failure, whatever
 * tofu reports. Only in a pod does the limit belong to this step alone. */
static void explain_memory(const struct run *r, struct df_err *err)
{
    struct df_err why = *err;
    int64_t kills = r->termination_log && df_stop_cause(r->stop) == DF_STOP_NONE
                        ? df_memory_kills(CGROUP) - r->memory_kills
                        : 0;
    if (kills > 0)
        (void)df_fail_reason(
            err, why.cls, "OOMKilled",
            "the memory limit was reached and %lld process%s killed: raise %s (%s)",
            (long long)kills, kills == 1 ? " was" : "es were", r->work->memory_limit, why.message);
}

/* True if the tool already printed this failure to the log, and the message adds nothing to it. */
static bool is_logged_by_tool(const struct run *r, const char *message)
{
    const struct df_output_summary *summary = df_output_summary(r->output);
    struct df_failure f = r->context.logged;
    if (summary->errors)
        df_failure_from_events(summary, &f);
    return *f.summary && strstr(message, f.summary) &&
           df_ends_with(message, *f.detail  ? f.detail
                                 : *f.place ? ")"
                                            : f.summary);
}

/* The last line of the log; the tool has printed its changes and errors above it. */
static void note_end(const struct run *r, int code)
{
    const struct df_context *c = &r->context;
    bool is_known = code == DF_EXIT_OK || is_logged_by_tool(r, c->outcome.message);
    if (r->work->note_end)
        r->work->note_end(c, is_known);
    else
        (void)df_output_note(c->output, "dayfly: %s%s%s", c->outcome.reason, is_known ? "" : ": ",
                             is_known ? "" : c->outcome.message);
}

/* The spawner may be unreachable until this process must end. */
static void keep_result(struct run *r)
{
    struct df_err err = {0};
    if (save_result(r, &err) < 0)
        df_warn("the result is not on disk: %s", err.message);
    if (r->termination_log && df_termination_write(r->termination_log, r->context.result, &err) < 0)
        df_warn("the result is not in the termination log: %s", err.message);
}

/* Log and outputs before the result: with it the spawner ends the step. */
static void deliver(struct run *r, int code)
{
    struct df_err err = {0};
    if (r->output) {
        df_outputs_deliver(&r->context);
        note_end(r, code);
        if (df_output_flush(r->output, &err) < 0)
            df_warn("the end of the log is lost: %s", err.message);
    }
    r->is_delivered = df_report_result(r->report, r->context.result, &err) == 0;
    if (!r->is_delivered)
        df_warn("the result was not delivered: %s", err.message);
}

/* Runs the received step. Always delivers a result. */
static int step_run(struct run *r)
{
    struct df_err err = {0};
    int code = DF_EXIT_OK;
    if (step_prepare(r, &err) < 0 || df_pipeline_run(&r->context, &err) < 0) {
        (void)df_err_reason(&err, "RunnerFailed");
        explain_memory(r, &err);
        code = exit_code_of(r, &err);
        df_context_set_outcome(&r->context, err.reason, "%s", err.message);
    }
    r->is_alone = df_orphans_end();
    if (finish_result(r, code, &err) < 0)
        df_error("the result is incomplete: %s", err.message);
    keep_result(r);
    deliver(r, code);
    return code;
}

/* Gets the document of the step that the report is for; none if a runner that waits was given no
 * step. started_us: 0: the wait for the step is no part of it. */
static int receive(struct run *r, int64_t started_us, struct df_err *err)
{
    df_report_heed(r->report, df_stop_flag(r->stop));
    r->context.report = r->report;
    r->context.stop = r->stop;
    r->context.dirs = &r->dirs;
    r->context.isolation = &r->isolation;
    r->context.step_dir = r->dir;
    if (get_document(r, err) < 0)
        return -1;
    return df_context_mark(&r->context, "started", started_us ? started_us : df_real_us(), err);
}

static int step_start(struct run *r, const struct df_step_options *o, struct df_err *err)
{
    int64_t started_us = df_real_us();
    r->context.result = cJSON_CreateObject();
    if (!r->context.result)
        return df_fail_oom(err);
    if (o->starter && start_work(r, o->starter, err) < 0)
        return -1;
    const char *work_dir = o->work_dir || !o->handoff_file ? o->work_dir : DF_STEP_POD_DIR;
    if (df_random_hex(r->claim_id, 16, err) < 0 || make_dirs(r, work_dir, err) < 0 ||
        df_orphans_adopt(err) < 0 || df_http_global_init(err) < 0 ||
        connect_report(r, o, err) < 0 ||
        df_stop_new(df_report_over_fd(r->report), &r->stop, err) < 0)
        return -1;
    return receive(r, r->is_standby ? 0 : started_us, err);
}

/* ---- the apply in the pod of its plan ---- */

static bool may_follow(const struct run *r, int code)
{
    return code == DF_EXIT_OK && r->is_delivered && r->is_alone && r->handoff &&
           df_json_at(r->doc, "keepsPodFor") &&
           df_json_bool(r->context.result, "hasChanges", false);
}

/* Code of the plan's module may have put a tool there, or changed one. */
static int remove_tools(const struct run *r, struct df_err *err)
{
    const char *cache = df_json_str(r->doc, "tools.cacheDirectory");
    return cache && df_fs_is_within(cache, r->dir) ? df_fs_remove_tree(cache, err) : 0;
}

/* Nothing of the plan but its source stays: no secret, no token, no mask, no downloaded tool. */
static int forget_step(struct run *r, struct df_err *err)
{
    if (remove_tools(r, err) < 0)
        return -1;
    df_output_free(DF_TAKE(r->output));
    df_masks_free(DF_TAKE(r->masks));
    df_json_wipe(DF_TAKE(r->doc));
    df_report_free(DF_TAKE(r->report));
    r->is_delivered = false;
    r->memory_kills = df_memory_kills(CGROUP);
    return df_context_renew(&r->context, err) < 0 ? -1 : df_dirs_renew(&r->dirs, err);
}

/* Waits for the apply of this plan, for which nothing of the plan is needed, and claims it. False:
 * the pod ends, and the apply, if there is one, gets a pod of its own. */
static bool step_follow(struct run *r)
{
    DF_FREE char *plan = strdup(df_json_str(r->doc, "uid"));
    struct handoff h = handoff_of(r->handoff);
    struct df_err err = {0};
    h.uid = NULL;
    h.runner = plan;
    if (df_check_alloc(plan, &err) < 0 || df_stop_renew(r->stop, -1, &err) < 0 ||
        forget_step(r, &err) < 0 || connect_spawner(r, &h, &err) < 0 ||
        df_stop_renew(r->stop, df_report_over_fd(r->report), &err) < 0 || receive(r, 0, &err) < 0) {
        df_warn("no other step in this pod: %s", err.message);
        return false;
    }
    if (!r->doc)
        df_info("no apply was given to this pod");
    return r->doc != NULL;
}

/* Leaves the reason in the termination log, as a sentence: without a step there is no result. */
static void note_in_container(const struct run *r, const char *why)
{
    struct df_err err = {0};
    if (r->termination_log && df_termination_write_text(r->termination_log, why, &err) < 0)
        df_warn("the end is not in the termination log: %s", err.message);
}

static int fail_start(struct run *r, const struct df_err *why)
{
    df_error("%s", why->message);
    note_in_container(r, why->message);
    if (r->work_data)
        r->work->tell_unstarted(r->work_data, why->message);
    return why->cls == DF_ERR_RETRY || why->cls == DF_ERR_SYSTEM ? DF_EXIT_FAILURE : DF_EXIT_INPUT;
}

static int start_and_run(struct run *r, const struct df_step_options *o)
{
    struct df_err err = {0};
    if (step_start(r, o, &err) < 0)
        return fail_start(r, &err);
    if (!r->doc) {
        df_info("no step was given to this standby runner");
        return DF_EXIT_OK;
    }
    int code = step_run(r);
    if (may_follow(r, code) && step_follow(r))
        code = step_run(r);
    return code;
}

int df_step(const struct df_step_options *o)
{
    DF_CLEANUP(run_free) struct run r = {.lock_fd = -1};
    df_stop_block();
    (void)signal(SIGPIPE, SIG_IGN); /* a closed stdout must not end a step */
    (void)signal(SIGIO, SIG_IGN);   /* gate.h */
    int code = start_and_run(&r, o);
    return o->starter ? o->starter->exit_code(r.work_data, code) : code;
}
