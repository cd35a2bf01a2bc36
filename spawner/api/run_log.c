/*
 * The log and the events of a run: those of its steps, plan first, one after the other, or of one
 * step alone (?step=plan); as they are now, or followed as server-sent events until the run is
 * final. A follower is told with `complete` that everything of a step was sent: what the step led
 * to (a question, a result) may be shown now.
 */
#include "common/base/clock.h"
#include "common/base/parse.h"
#include "spawner/api/follow.h"
#include "spawner/api/handlers.h"
#include "spawner/steps/steps.h"

#define LOG_PIECE (64 * DF_KIB)
#define EVENTS_PIECE (DF_LIMIT_EVENT_LINE + 64 * DF_KIB) /* a whole line fits in */

static const char *const step_words[] = {"plan", "apply"};
#define STEPS DF_ARRAY_SIZE(step_words)

struct log_source {
    struct df_stream_source base;
    struct df_follower follower; /* step_uid: of the current step, "" while it does not exist */
    enum df_stream stream;
    bool follow;
    size_t step; /* index in step_words; STEPS: all were shown */
    size_t last; /* index of the last one that is wanted */
    char step_name[64];
    bool complete; /* nothing will be added to the current step's stream any more */
    int64_t offset;
    struct df_buf piece;
};

static void free_source(struct df_stream_source *source)
{
    struct log_source *l = (struct log_source *)source;
    df_buf_free(&l->piece);
    free(l);
}

static int set_step(struct log_source *l, size_t step)
{
    step = step > l->last ? STEPS : step;
    l->step = step;
    l->offset = 0;
    l->follower.step_uid[0] = '\0';
    return step == STEPS ? 0 : df_model_name(l->follower.run, step_words[step], l->step_name, NULL);
}

/* Looks the current step up, if there is one. */
static int look_at_step(struct log_source *l)
{
    struct df_err err = {0};
    DF_JSON cJSON *task = NULL;
    l->complete = false;
    if (l->step == STEPS)
        return 0;
    if (df_store_get(l->follower.s->store, DF_KIND_TASK_ACTION, l->step_name, &task, &err) < 0)
        return err.cls == DF_ERR_NOT_FOUND ? 0 : -1;
    const char *uid = df_json_str(task, "metadata.uid");
    (void)snprintf(l->follower.step_uid, sizeof(l->follower.step_uid), "%s", uid ? uid : "");
    l->complete = df_task_is_final(task);
    return 0;
}

/* ---- one piece ---- */

static void add_id(const struct log_source *l, struct df_buf *out)
{
    (void)df_buf_addf(out, "id: %s:%lld\n", l->step_name, (long long)l->offset);
}

static void add_text(struct log_source *l, struct df_buf *out)
{
    size_t n = l->piece.len;
    /* A character in two pieces must not become two broken ones. */
    if (!l->complete || n == l->piece.max)
        n -= df_utf8_tail(l->piece.data, n);
    if (n == 0)
        return;
    long long from = l->offset;
    l->offset += (int64_t)n;
    add_id(l, out);
    (void)df_buf_addf(out, "data: {\"step\":\"%s\",\"offset\":%lld,\"text\":\"", l->step_name,
                      from);
    df_sse_escape(out, l->piece.data, n);
    (void)df_buf_adds(out, "\"}\n\n");
}

static void add_event(struct log_source *l, struct df_buf *out, const char *line, size_t n)
{
    /* What could break the framing is no line of tofu's. */
    if (n == 0 || memchr(line, '\r', n) || !df_is_utf8(line, n))
        return;
    add_id(l, out);
    (void)df_buf_adds(out, "data: ");
    (void)df_buf_add(out, line, n);
    (void)df_buf_adds(out, "\n\n");
}

static void add_events(struct log_source *l, struct df_buf *out)
{
    const char *line = l->piece.data, *end = line + l->piece.len;
    while (line < end) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        /* The rest of a line may still come, unless there is no room or no time for it. */
        if (!newline && !l->complete && (line > l->piece.data || l->piece.len < l->piece.max))
            return;
        size_t n = newline ? (size_t)(newline - line) : (size_t)(end - line);
        l->offset += (int64_t)n + (newline ? 1 : 0);
        add_event(l, out, line, n);
        line += n + (newline ? 1 : 0);
    }
}

/* Appends what the current step has from the offset on. Returns 1 when the offset moved. */
static int add_piece(struct log_source *l, struct df_buf *out)
{
    struct df_err err = {0};
    int64_t before = l->offset, end = 0;
    if (!l->follower.step_uid[0])
        return 0;
    if (df_step_read(l->follower.s, l->follower.step_uid, l->stream, l->offset, &l->piece, &end,
                     &err) < 0) {
        /* Nobody has seen more than there is: that was no offset of ours. */
        bool past_the_end = err.cls == DF_ERR_USER && l->offset > 0;
        l->offset = 0;
        return past_the_end ? 1 : -1;
    }
    if (l->piece.len == 0) {
        df_buf_free(&l->piece);
        return 0;
    }
    if (!l->follow) {
        (void)df_buf_add(out, l->piece.data, l->piece.len);
        l->offset += (int64_t)l->piece.len;
    } else if (l->stream == DF_STREAM_LOG) {
        add_text(l, out);
    } else {
        add_events(l, out);
    }
    df_buf_free(&l->piece);
    l->follower.spoke_ms = df_mono_ms();
    return out->failed ? -1 : l->offset > before;
}

/* ---- the source ---- */

static int say_end(const struct log_source *l, struct df_buf *out, const cJSON *run)
{
    return l->follow && df_sse_end(out, run) < 0 ? -1 : 0;
}

/* The current step has nothing more to show. Returns 1 when the client is told so. */
static int say_complete(const struct log_source *l, struct df_buf *out)
{
    if (!l->follow || !l->follower.step_uid[0])
        return 0;
    DF_FREE char *data = df_strf("{\"step\":\"%s\"}", l->step_name);
    if (!data)
        return -1;
    add_id(l, out);
    df_sse_event(out, NULL, "complete", data);
    return 1;
}

enum look { LOOK_END, LOOK_PIECE, LOOK_AGAIN, LOOK_NOTHING };

static int look(struct log_source *l, struct df_buf *out, enum look *ret)
{
    struct df_err err = {0};
    DF_JSON cJSON *run = NULL;
    /* The run first: of a final one every step exists already, and none grows. */
    if (df_store_get(l->follower.s->store, DF_KIND_RUN, l->follower.run, &run, &err) < 0 &&
        err.cls != DF_ERR_NOT_FOUND)
        return -1;
    bool final = !run || df_run_is_final(run);
    if (look_at_step(l) < 0)
        return -1;
    l->complete = l->complete || final;
    int moved = add_piece(l, out);
    if (moved < 0)
        return -1;
    *ret = moved ? LOOK_PIECE : LOOK_NOTHING;
    if (moved)
        return 0;
    if (l->step < STEPS && (l->complete || !l->follow)) {
        int said = say_complete(l, out);
        *ret = said ? LOOK_PIECE : LOOK_AGAIN;
        return said < 0 ? -1 : set_step(l, l->step + 1);
    }
    if (l->step == STEPS && (final || !l->follow || l->last < STEPS - 1)) {
        *ret = LOOK_END;
        return say_end(l, out, run);
    }
    return 0;
}

static int next_piece(struct df_stream_source *source, struct df_buf *out)
{
    struct log_source *l = (struct log_source *)source;
    for (;;) {
        enum look seen = LOOK_END;
        /* Marks are of one step: it must be known before one is taken. */
        if (!l->follower.step_uid[0] && look_at_step(l) < 0)
            return -1;
        uint64_t mark = df_follower_mark(&l->follower);
        if (look(l, out, &seen) < 0)
            return -1;
        if (seen == LOOK_PIECE && out->len == 0)
            continue;
        if (seen == LOOK_PIECE || seen == LOOK_END)
            return seen == LOOK_PIECE;
        if (seen == LOOK_AGAIN)
            continue;
        int more = df_follower_rest(&l->follower, mark, out);
        if (more <= 0 || out->len)
            return more;
    }
}

/* Takes up where the client's last event ended ("net-1-plan:1234"). What is no id of this run's
 * steps is overlooked. */
static void resume(struct log_source *l, const char *id)
{
    const char *colon = id ? strrchr(id, ':') : NULL;
    int64_t offset = 0;
    if (!colon || df_parse_i64(colon + 1, 0, INT64_MAX, &offset, NULL) < 0)
        return;
    for (size_t i = 0; i < STEPS; i++) {
        char name[64];
        if (df_model_name(l->follower.run, step_words[i], name, NULL) < 0 ||
            strlen(name) != (size_t)(colon - id) || strncmp(name, id, strlen(name)) != 0)
            continue;
        (void)set_step(l, i);
        l->offset = offset;
    }
}

static int read_step(const struct df_request *req, struct log_source *l, struct df_err *err)
{
    const char *word = df_request_query(req, "step");
    size_t step = 0;
    while (word && step < STEPS && !df_streq(word, step_words[step]))
        step++;
    if (step == STEPS)
        return df_fail(err, DF_ERR_USER, "?step=%.64s: must be plan or apply", word);
    l->last = word ? step : STEPS - 1;
    if (set_step(l, step) < 0)
        return df_fail(err, DF_ERR_USER, "run name %s: is too long", l->follower.run);
    return 0;
}

static int respond_stream(struct df_request *req, struct df_response *res, enum df_stream stream,
                          const char *plain_type, struct df_err *err)
{
    DF_JSON cJSON *run = NULL;
    bool follow = false;
    if (df_request_flag(req, "follow", &follow, err) < 0 ||
        df_store_get(req->s->store, DF_KIND_RUN, req->params[0], &run, err) < 0)
        return -1;
    struct log_source *l = calloc(1, sizeof(*l));
    if (!l)
        return df_fail_oom(err);
    l->base = (struct df_stream_source){.next = next_piece, .free = free_source};
    res->stream = &l->base;
    df_follower_init(&l->follower, req, req->params[0]);
    l->stream = stream;
    l->follow = follow;
    l->piece = DF_BUF_INIT(follow && stream == DF_STREAM_EVENTS ? EVENTS_PIECE : LOG_PIECE);
    if (read_step(req, l, err) < 0)
        return -1;
    if (follow)
        resume(l, df_request_header(req, "Last-Event-ID"));
    res->content_type = follow ? "text/event-stream" : plain_type;
    return 0;
}

int df_get_run_log(struct df_request *req, struct df_response *res, struct df_err *err)
{
    return respond_stream(req, res, DF_STREAM_LOG, "text/plain; charset=utf-8", err);
}

int df_get_run_events(struct df_request *req, struct df_response *res, struct df_err *err)
{
    return respond_stream(req, res, DF_STREAM_EVENTS, "application/x-ndjson", err);
}
