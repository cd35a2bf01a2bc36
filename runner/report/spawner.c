/*
 * The report backend of a step that a spawner handed out (docs/step-protocol.md). sender.c posts
 * log, events and progress from its own thread; claim, artifacts and result are requests of the
 * pipeline's thread, in this order below.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/process/process.h"
#include "runner/report/backend.h"

struct spawner_report {
    struct df_report base;
    struct df_link *link; /* the pipeline's own */
    struct df_sender *sender;
    int64_t give_up_ms;
    char claim_id[33];
    bool waits;                 /* for its step, which may never come */
    df_report_prepare *prepare; /* NULL: nothing is to be prepared any more */
    void *prepare_arg;
    bool claimed;
};

static struct spawner_report *spawner_of(struct df_report *r)
{
    return (struct spawner_report *)r;
}

static void spawner_release(struct df_report *r)
{
    struct spawner_report *s = spawner_of(r);
    df_sender_free(s->sender);
    df_link_free(s->link);
    free(s);
}

static int fail_over(const char *what, struct df_err *err)
{
    return df_fail_reason(err, DF_ERR_CONFLICT, "StepOver",
                          "%s: the spawner says that the step was canceled or is over", what);
}

/* There was no answer, because the step is over or for the reason in err. */
static int no_answer(const struct spawner_report *s, const char *what, struct df_err *err)
{
    return df_report_is_over(&s->base) ? fail_over(what, err) : df_err_wrap(err, "%s", what);
}

static int check_answer(struct spawner_report *s, const struct df_http_response *answer,
                        const char *what, struct df_err *err)
{
    if (answer->status == 410) {
        df_sender_set_over(s->sender);
        return fail_over(what, err);
    }
    if (answer->status >= 300 && answer->status < 400)
        return df_fail(err, DF_ERR_SYSTEM, "%s: unexpected answer %d", what, answer->status);
    return df_http_check(answer, what, err);
}

/* --- claim ----------------------------------------------------------------------------------- */

static int claim_body(const struct spawner_report *s, char **ret, struct df_err *err)
{
    char host[256] = "";
    uint64_t start;
    if (df_process_start_time(getpid(), &start, err) < 0)
        return -1;
    (void)gethostname(host, sizeof host - 1);
    char start_text[24];
    (void)snprintf(start_text, sizeof start_text, "%llu", (unsigned long long)start);
    DF_JSON cJSON *body = df_json_object(DF_STR("claimId", s->claim_id), DF_STR("host", host),
                                         DF_NUM("pid", getpid()), DF_STR("pidStart", start_text),
                                         DF_STR("version", DF_VERSION));
    if (df_check_alloc(body, err) < 0 ||
        (s->prepare && df_json_add_bool(body, "prepares", true, err) < 0))
        return -1;
    return df_check_alloc(*ret = df_json_print(body), err);
}

/* The claim's connection stays if it leads to the leader already. answer: of the claim. */
static void go_to_leader(struct spawner_report *s, struct df_link *of_sender, const cJSON *answer)
{
    const char *url = df_json_str(answer, "leader.url");
    if (!url || !df_link_is_fixed(s->link))
        return;
    if (df_json_bool(answer, "leader.forwarded", false))
        df_link_set_leader(s->link, url);
    df_link_set_leader(of_sender, url);
}

static int start_sender(struct spawner_report *s, const cJSON *step, const cJSON *answer,
                        struct df_err *err)
{
    const char *uid = df_json_str(step, "uid"), *token = df_json_str(step, "stepToken");
    DF_LINK struct df_link *link = NULL;
    if (!uid || !token)
        return df_fail(err, DF_ERR_SYSTEM, "claim: the step document has no uid or stepToken");
    if (df_link_set_step(s->link, uid, token, err) < 0 || df_link_copy(s->link, &link, err) < 0)
        return -1;
    go_to_leader(s, link, answer);
    return df_sender_start(s->sender, DF_TAKE(link), err);
}

static int send_claim(struct spawner_report *s, const struct df_retry *retry,
                      struct df_http_response *answer, struct df_err *err)
{
    DF_FREE char *body = NULL;
    if (claim_body(s, &body, err) < 0)
        return -1;
    struct df_http_request req = DF_HTTP_REQUEST("POST", NULL);
    req.body = body;
    req.body_len = strlen(body);
    req.max_response = DF_LIMIT_STEP_DOCUMENT;
    return df_link_try(s->link, &req, "/claim", retry, answer, err) < 0 ? df_err_wrap(err, "claim")
                                                                        : 0;
}

static int check_claim(struct spawner_report *s, const struct df_http_response *answer,
                       struct df_err *err)
{
    if (answer->status == 409)
        return df_fail_reason(err, DF_ERR_CONFLICT, "AlreadyClaimed",
                              "claim: the step was given to another runner");
    return check_answer(s, answer, "claim", err);
}

static int ask_for_step(struct spawner_report *s, const volatile bool *stop, int64_t pending_ms,
                        struct df_http_response *answer, struct df_err *err)
{
    const struct df_retry retry = {df_mono_ms() + pending_ms, stop};
    return send_claim(s, &retry, answer, err) < 0 ? -1 : check_claim(s, answer, err);
}

/* No step yet, but what it will need. One answer that is no JSON is not asked for again. */
static void prepare(struct spawner_report *s, const struct df_http_response *answer)
{
    df_report_prepare *begin = s->prepare;
    cJSON *doc = NULL;
    s->prepare = NULL;
    if (begin && df_json_parse(df_buf_str(&answer->body), answer->body.len, &doc, NULL) == 0)
        begin(s->prepare_arg, doc);
}

/* 404: a replica of an older version, which will be replaced. */
static bool asks_again(struct spawner_report *s, const struct df_http_response *answer,
                       const struct df_retry *retry)
{
    if (answer->status == 202)
        prepare(s, answer);
    return answer->status == 202 || answer->status == 204 ||
           (answer->status == 404 && df_link_pause(s->link, retry));
}

static int64_t deadline_of(int64_t pending_ms)
{
    const int64_t now_ms = df_mono_ms();
    return pending_ms < INT64_MAX - now_ms ? now_ms + pending_ms : INT64_MAX;
}

/* The spawner answers 204 after some seconds without a step. A request that fails is repeated for
 * pending_ms of its own: the step may be claimed already. *ret: false if there will be none. */
static int wait_for_step(struct spawner_report *s, const volatile bool *stop, int64_t pending_ms,
                         bool *ret, struct df_http_response *answer, struct df_err *err)
{
    const int64_t end_ms = deadline_of(pending_ms);
    struct df_retry retry = {.stop = stop};
    struct df_err why = {0};
    int sent;
    do {
        df_http_response_free(answer);
        retry.deadline_ms = deadline_of(pending_ms);
        sent = send_claim(s, &retry, answer, &why);
    } while (sent == 0 && asks_again(s, answer, &retry) && !df_stopped(stop) &&
             df_mono_ms() < end_ms);
    int status = sent < 0 ? 0 : answer->status;
    *ret = status == 200 || (status != 410 && status != 202 && status != 204 && !df_stopped(stop));
    if (!*ret)
        return 0;
    return sent < 0 ? df_err_pass(err, &why) : check_claim(s, answer, err);
}

static int spawner_claim(struct df_report *r, const volatile bool *stop, int64_t pending_ms,
                         cJSON **ret, struct df_err *err)
{
    struct spawner_report *s = spawner_of(r);
    DF_HTTP_RESPONSE struct df_http_response answer = {0};
    bool has_step = true;
    *ret = NULL;
    if ((s->waits ? wait_for_step(s, stop, pending_ms, &has_step, &answer, err)
                  : ask_for_step(s, stop, pending_ms, &answer, err)) < 0)
        return -1;
    if (!has_step)
        return 0;
    cJSON *step = NULL;
    int parsed = df_json_parse(df_buf_str(&answer.body), answer.body.len, &step, err);
    df_buf_wipe(&answer.body);
    if (parsed < 0)
        return df_err_wrap(err, "claim: step document");
    if (start_sender(s, step, step, err) < 0) {
        df_json_wipe(step);
        return -1;
    }
    s->claimed = true;
    *ret = step;
    return 0;
}

/* --- log, events, progress ------------------------------------------------------------------ */

static int spawner_append(struct df_report *r, enum df_stream stream, const char *bytes, size_t n,
                          struct df_err *err)
{
    return df_sender_append(spawner_of(r)->sender, stream, bytes, n, err);
}

static void spawner_progress(struct df_report *r, const cJSON *body, bool hurries)
{
    df_sender_progress(spawner_of(r)->sender, body, hurries);
}

/* --- artifacts ------------------------------------------------------------------------------- */

enum { ARTIFACT_IDLE_MS = 30000 };

/* What ends the wait for the storage. The errored state may be all that is known of new
 * resources. */
static const volatile bool *stop_of(const struct df_report *r, const char *name)
{
    return r->stop && !df_streq(name, "errored-state") ? r->stop : r->over;
}

/* What ends also an attempt that is under way. A step that was told to stop has its outputs to
 * deliver, but no plan. */
static const volatile bool *abort_of(const struct df_report *r, const char *name)
{
    return df_streq(name, "plan") ? stop_of(r, name) : r->over;
}

static int spawner_put_artifact(struct df_report *r, const char *name, const char *path,
                                int64_t deadline_ms, struct df_err *err)
{
    struct spawner_report *s = spawner_of(r);
    DF_CLOSE int fd = -1;
    struct stat st;
    if (df_fs_open_plain(path, O_RDONLY, 0, &fd, err) < 0)
        return -1;
    if (fstat(fd, &st) < 0)
        return df_fail_errno(err, errno, "open %s", path);
    DF_FREE char *where = df_strf("/artifacts/%s", name);
    if (!where)
        return df_fail_oom(err);
    struct df_http_request req = DF_HTTP_REQUEST("PUT", NULL);
    req.content_type = "application/octet-stream";
    req.body_fd = fd;
    req.body_len = (size_t)st.st_size;
    req.timeout_ms = -1;
    req.idle_timeout_ms = ARTIFACT_IDLE_MS;
    req.stop = abort_of(r, name);
    const struct df_retry retry = {deadline_ms, stop_of(r, name)};
    DF_HTTP_RESPONSE struct df_http_response answer = {0};
    if (df_link_try(s->link, &req, where, &retry, &answer, err) < 0)
        return no_answer(s, "store the artifact", err);
    return check_answer(s, &answer, "store the artifact", err);
}

struct download {
    int fd;
    uint64_t bytes;
    struct df_err err;
};

static int on_artifact_data(void *arg, const char *bytes, size_t n)
{
    struct download *d = arg;
    d->bytes += n;
    if (d->bytes > DF_LIMIT_BUNDLE)
        return df_fail(&d->err, DF_ERR_LIMIT, "the artifact has more than %zu bytes",
                       DF_LIMIT_BUNDLE);
    return df_fs_write_all(d->fd, bytes, n, &d->err);
}

/* One attempt, from the first byte. */
static int fetch_once(struct spawner_report *s, const char *name, struct download *d,
                      struct df_http_response *answer, struct df_err *err)
{
    DF_FREE char *path = df_strf("/artifacts/%s", name);
    if (!path)
        return df_fail_oom(err);
    d->bytes = 0;
    if (ftruncate(d->fd, 0) < 0 || lseek(d->fd, 0, SEEK_SET) < 0)
        return df_fail_errno(err, errno, "empty the file");
    struct df_http_request req = DF_HTTP_REQUEST("GET", NULL);
    req.timeout_ms = -1;
    req.idle_timeout_ms = ARTIFACT_IDLE_MS;
    req.on_data = on_artifact_data;
    req.arg = d;
    req.stop = abort_of(&s->base, name);
    if (df_link_send(s->link, &req, path, answer, err) < 0)
        return -1;
    if (!answer->stopped)
        return 0;
    return df_err_pass(err, &d->err);
}

static int spawner_get_artifact(struct df_report *r, const char *name, const char *to_path,
                                int64_t deadline_ms, struct df_err *err)
{
    struct spawner_report *s = spawner_of(r);
    DF_CLOSE int fd = -1;
    DF_FREE char *what = df_strf("fetch the %s", name);
    if (df_check_alloc(what, err) < 0 ||
        df_fs_open_plain(to_path, O_WRONLY | O_CREAT | O_EXCL, 0600, &fd, err) < 0)
        return -1;
    const struct df_retry retry = {deadline_ms, stop_of(r, name)};
    struct download d = {.fd = fd};
    for (;;) {
        struct df_err why = {0};
        DF_HTTP_RESPONSE struct df_http_response answer = {0};
        int sent = fetch_once(s, name, &d, &answer, &why);
        if (df_link_is_passing(sent, &answer, &why) && df_link_pause(s->link, &retry))
            continue;
        if (sent == 0)
            return check_answer(s, &answer, what, err);
        (void)df_err_pass(err, &why);
        return no_answer(s, what, err);
    }
}

/* --- result ---------------------------------------------------------------------------------- */

static int spawner_result(struct df_report *r, const cJSON *result_doc, struct df_err *err)
{
    struct spawner_report *s = spawner_of(r);
    if (!s->claimed)
        return df_fail(err, DF_ERR_CONFLICT, "a step that was not claimed has no result");
    int64_t now = df_mono_ms(), log_ms = DF_TIMEOUT_LOG_SECONDS * 1000;
    if (log_ms > s->give_up_ms / 2)
        log_ms = s->give_up_ms / 2;
    df_sender_drain(s->sender, now + log_ms, r->stop);
    DF_JSON cJSON *doc =
        df_report_result_document(result_doc, df_sender_size(s->sender, DF_STREAM_LOG),
                                  df_sender_size(s->sender, DF_STREAM_EVENTS));
    DF_FREE char *body = doc ? df_json_print(doc) : NULL;
    if (!body)
        return df_fail_oom(err);
    struct df_http_request req = DF_HTTP_REQUEST("POST", NULL);
    req.body = body;
    req.body_len = strlen(body);
    const struct df_retry retry = {now + s->give_up_ms, NULL};
    DF_HTTP_RESPONSE struct df_http_response answer = {0};
    if (df_link_try(s->link, &req, "/result", &retry, &answer, err) < 0)
        return no_answer(s, "report the result", err);
    return check_answer(s, &answer, "report the result", err);
}

/* --- create ---------------------------------------------------------------------------------- */

static const struct df_report_backend backend = {.free = spawner_release,
                                                 .claim = spawner_claim,
                                                 .append = spawner_append,
                                                 .progress = spawner_progress,
                                                 .put_artifact = spawner_put_artifact,
                                                 .get_artifact = spawner_get_artifact,
                                                 .result = spawner_result};

int df_report_to_spawner(const struct df_report_spawner *o, struct df_report **ret,
                         struct df_err *err)
{
    struct spawner_report *s = calloc(1, sizeof *s);
    if (!s)
        return df_fail_oom(err);
    s->base.backend = &backend;
    s->waits = o->runner;
    s->prepare = o->runner ? o->prepare : NULL;
    s->prepare_arg = o->prepare_arg;
    s->give_up_ms = o->give_up_ms;
    (void)snprintf(s->claim_id, sizeof(s->claim_id), "%s", o->claim_id);
    const struct df_link_options link = {.server = o->server,
                                         .endpoint_file = o->endpoint_file,
                                         .ca_file = o->ca_file,
                                         .uid = o->uid,
                                         .runner = o->runner,
                                         .token = o->claim_token,
                                         .token_file = o->token_file};
    if (df_link_new(&link, &s->link, err) < 0 || df_sender_new(o->spool_dir, &s->sender, err) < 0) {
        spawner_release(&s->base);
        return -1;
    }
    s->base.over = df_sender_over(s->sender);
    s->base.over_fd = df_sender_over_fd(s->sender);
    *ret = &s->base;
    return 0;
}
