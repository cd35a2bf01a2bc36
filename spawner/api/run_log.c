/*
 * run_log.c - the log and the events of a run: those of its steps one after the other, or of one
 * step (?step=plan); or of a TaskAction alone. They come as they are now, or as server-sent events
 * until the document is final. The event `complete` says that a step's stream was sent completely,
 * so that a client can show what the step led to. Read next_piece() first: it calls
 * read_document(), which sends a piece or moves to the next step, and waits if there was nothing
 * new.
 */
#include "common/base/clock.h"
#include "common/base/parse.h"
#include "common/crypto/crypto.h"
#include "spawner/api/follow.h"
#include "spawner/api/handlers.h"
#include "spawner/api/log_kept.h"
#include "spawner/model/recipe.h"
#include "spawner/steps/steps.h"

#define LOG_PIECE (64 * DF_KIB)
#define EVENTS_PIECE (DF_LIMIT_EVENT_LINE + 64 * DF_KIB) /* a complete line fits */

struct log_source {
    struct df_stream_source base;
    struct df_follower follower;
    enum df_stream stream;
    bool follow;
    size_t step; /* index in follower.steps; their count: all were sent */
    size_t end;  /* index after the last step to send */
    const char *step_name;
    char step_uid[64]; /* of the current step; "" while it does not exist */
    bool complete;     /* the current step has ended: its stream does not grow any more */
    int64_t offset;
    struct df_buf piece;
};

static void free_source(struct df_stream_source *source)
{
    struct log_source *l = (struct log_source *)source;
    df_follower_end(&l->follower);
    df_buf_free(&l->piece);
    free(l);
}

static void set_step(struct log_source *l, size_t step)
{
    size_t count = l->follower.step_count;
    l->step = step >= l->end ? count : step;
    l->step_name = l->step < count ? l->follower.steps[l->step] : NULL;
    l->offset = 0;
    l->step_uid[0] = '\0';
}

/* Is this TaskAction what doc is about: a step of the run, or itself? */
static bool is_of(const struct log_source *l, const cJSON *doc, const cJSON *task)
{
    return l->follower.kind == DF_KIND_RUN
               ? df_run_has_step(doc, task)
               : df_streq(df_json_str(task, "metadata.uid"), l->follower.uid);
}

/* Reads uid and completeness of the current step, if it exists. */
static int read_current_step(struct log_source *l, const cJSON *doc)
{
    struct df_err err = {0};
    DF_SHARED const cJSON *task = NULL;
    l->complete = false;
    if (!l->step_name)
        return 0;
    if (df_store_look_for(l->follower.s->store, DF_KIND_TASK_ACTION, l->step_name, &task, &err) < 0)
        return -1;
    if (!task || !is_of(l, doc, task))
        return 0;
    const char *uid = df_json_str(task, "metadata.uid");
    (void)snprintf(l->step_uid, sizeof(l->step_uid), "%s", uid ? uid : "");
    l->complete = df_task_is_final(task);
    return 0;
}

/* ---- one piece ---- */

static void add_id(const struct log_source *l, struct df_buf *out)
{
    (void)df_buf_addf(out, "id: %s:%lld\n", l->step_name, (long long)l->offset);
}

/* "text" is for people; "bytes" (base64) is there if it does not say all bytes. */
static void add_text(struct log_source *l, struct df_buf *out)
{
    size_t n = l->piece.len;
    /* Keep an incomplete character for the next piece. */
    if (!l->complete || n == l->piece.max)
        n -= df_utf8_tail(l->piece.data, n);
    if (n == 0)
        return;
    long long from = l->offset;
    l->offset += (int64_t)n;
    add_id(l, out);
    (void)df_buf_addf(out, "data: {\"step\":\"%s\",\"offset\":%lld,\"text\":\"", l->step_name,
                      from);
    bool exact = df_sse_escape(out, l->piece.data, n);
    (void)df_buf_adds(out, exact ? "\"" : "\",\"bytes\":\"");
    if (!exact && df_base64_encode(l->piece.data, n, false, out, NULL) == 0)
        (void)df_buf_addc(out, '"');
    (void)df_buf_adds(out, "}\n\n");
}

static void add_event(struct log_source *l, struct df_buf *out, const char *line, size_t n)
{
    /* Drop lines that would break the framing: tofu does not write such lines. */
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
        /* Wait for the rest of the line, unless the stream is complete or the buffer is full. */
        if (!newline && !l->complete && (line > l->piece.data || l->piece.len < l->piece.max))
            return;
        size_t n = newline ? (size_t)(newline - line) : (size_t)(end - line);
        l->offset += (int64_t)n + (newline ? 1 : 0);
        add_event(l, out, line, n);
        line += n + (newline ? 1 : 0);
    }
}

/* Appends the current step's bytes from the offset on. Returns 1 if the offset moved. */
static int add_piece(struct log_source *l, struct df_buf *out)
{
    struct df_err err = {0};
    int64_t before = l->offset, end = 0;
    if (!l->step_uid[0])
        return 0;
    if (df_step_read(l->follower.s, l->step_uid, l->stream, l->offset, &l->piece, &end, &err) < 0) {
        /* The offset is past the end, so the Last-Event-ID is invalid: start from 0. */
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
    l->follower.sent_ms = df_mono_ms();
    return out->failed ? -1 : l->offset > before;
}

/* ---- the source ---- */

static int send_end(const struct log_source *l, struct df_buf *out, const cJSON *doc)
{
    return l->follow && df_sse_end(out, l->follower.kind, doc) < 0 ? -1 : 0;
}

/* The current step's stream was sent completely. Returns 1 if an event for the client says so. */
static int send_complete(const struct log_source *l, struct df_buf *out)
{
    if (!l->follow || !l->step_uid[0])
        return 0;
    DF_FREE char *data = df_strf("{\"step\":\"%s\"}", l->step_name);
    if (!data)
        return -1;
    add_id(l, out);
    df_sse_event(out, NULL, "complete", data);
    return 1;
}

enum found { FOUND_END, FOUND_PIECE, FOUND_NEXT_STEP, FOUND_NOTHING };

static int read_document(struct log_source *l, struct df_buf *out, enum found *ret)
{
    struct df_err err = {0};
    DF_SHARED const cJSON *doc = NULL;
    /* The document first: if it is final, all its steps exist and none grows. */
    if (df_follower_look(&l->follower, &doc, &err) < 0)
        return -1;
    if (!doc) { /* its steps are gone, too, or another one's */
        *ret = FOUND_END;
        return send_end(l, out, NULL);
    }
    bool final = df_follower_is_final(&l->follower, doc);
    if (read_current_step(l, doc) < 0)
        return -1;
    l->complete = l->complete || final;
    int moved = add_piece(l, out);
    if (moved < 0)
        return -1;
    *ret = moved ? FOUND_PIECE : FOUND_NOTHING;
    if (moved)
        return 0;
    if (l->step_name && (l->complete || !l->follow)) {
        int sent = send_complete(l, out);
        *ret = sent ? FOUND_PIECE : FOUND_NEXT_STEP;
        set_step(l, l->step + 1);
        return sent < 0 ? -1 : 0;
    }
    if (!l->step_name && (final || !l->follow || l->end < l->follower.step_count)) {
        *ret = FOUND_END;
        return send_end(l, out, doc);
    }
    return 0;
}

static int next_piece(struct df_stream_source *source, struct df_buf *out)
{
    struct log_source *l = (struct log_source *)source;
    for (;;) {
        enum found found = FOUND_END;
        uint64_t mark = df_follower_mark(&l->follower);
        if (read_document(l, out, &found) < 0)
            return -1;
        if (found == FOUND_PIECE && out->len == 0)
            continue;
        if (found == FOUND_PIECE || found == FOUND_END)
            return found == FOUND_PIECE;
        if (found == FOUND_NEXT_STEP)
            continue;
        int more = df_follower_wait(&l->follower, mark, out);
        if (more <= 0 || out->len)
            return more;
    }
}

/* Continues after the client's last event ("net-1-plan:1234"). An id that does not belong to these
 * steps is ignored. */
static void resume_at(struct log_source *l, const char *id)
{
    const char *colon = id ? strrchr(id, ':') : NULL;
    int64_t offset = 0;
    if (!colon || df_parse_i64(colon + 1, 0, INT64_MAX, &offset, NULL) < 0)
        return;
    for (size_t i = 0; i < l->follower.step_count; i++) {
        const char *name = l->follower.steps[i];
        if (strlen(name) != (size_t)(colon - id) || strncmp(name, id, strlen(name)) != 0)
            continue;
        set_step(l, i);
        l->offset = offset;
    }
}

static int refuse_step(const struct df_recipe *r, const char *run, const char *word,
                       struct df_err *err)
{
    DF_BUF struct df_buf names = DF_BUF_INIT(256);
    if (r->count == 0)
        return df_fail(err, DF_ERR_USER, "?step=%.64s: run %s has no steps", word, run);
    for (size_t i = 0; i < r->count; i++)
        (void)df_buf_addf(&names, "%s%s",
                          i == 0              ? ""
                          : i + 1 == r->count ? " or "
                                              : ", ",
                          r->steps[i].name);
    return df_fail(err, DF_ERR_USER, "?step=%.64s: must be %.*s%s", word, (int)names.len,
                   names.data, r->count > 1 ? "" : ", the run has no other");
}

/* Which steps of the document are asked for. */
static int read_step(const struct df_request *req, const cJSON *doc, struct log_source *l,
                     struct df_err *err)
{
    const char *word = df_request_query(req, "step");
    size_t step = 0;
    l->end = l->follower.step_count;
    if (word) {
        const struct df_recipe *recipe = df_recipe_of(doc);
        while (step < recipe->count && !df_streq(word, recipe->steps[step].name))
            step++;
        if (step == recipe->count)
            return refuse_step(recipe, l->follower.name, word, err);
        l->end = step + 1;
    }
    set_step(l, step);
    return 0;
}

struct asked {
    enum df_kind kind;
    enum df_stream stream;
    const char *type; /* of an answer that is not followed */
};

static int respond_stream(struct df_request *req, struct df_response *res, const struct asked *a,
                          struct df_err *err)
{
    DF_SHARED const cJSON *doc = NULL;
    bool follow = false;
    if (df_request_flag(req, "follow", &follow, err) < 0 ||
        df_store_look(req->s->store, a->kind, req->params[0], &doc, err) < 0)
        return -1;
    struct log_source *l = calloc(1, sizeof(*l));
    if (!l)
        return df_fail_oom(err);
    l->base = (struct df_stream_source){.next = next_piece, .free = free_source};
    res->stream = &l->base;
    l->stream = a->stream;
    l->follow = follow;
    l->piece = DF_BUF_INIT(follow && a->stream == DF_STREAM_EVENTS ? EVENTS_PIECE : LOG_PIECE);
    if (df_follower_init(&l->follower, req, a->kind, doc, true, err) < 0 ||
        read_step(req, doc, l, err) < 0)
        return -1;
    if (follow)
        resume_at(l, df_request_header(req, "Last-Event-ID"));
    const struct df_log_steps steps = {l->follower.name, a->kind == DF_KIND_RUN ? doc : NULL,
                                       l->follower.steps, l->step, l->end};
    if (df_log_check_kept(req->s, &steps, err) < 0)
        return -1;
    res->content_type = follow ? "text/event-stream" : a->type;
    return 0;
}

#define PLAIN "text/plain; charset=utf-8"

int df_get_run_log(struct df_request *req, struct df_response *res, struct df_err *err)
{
    return respond_stream(req, res, &(struct asked){DF_KIND_RUN, DF_STREAM_LOG, PLAIN}, err);
}

int df_get_run_events(struct df_request *req, struct df_response *res, struct df_err *err)
{
    static const struct asked events = {DF_KIND_RUN, DF_STREAM_EVENTS, "application/x-ndjson"};
    return respond_stream(req, res, &events, err);
}

int df_get_taskaction_log(struct df_request *req, struct df_response *res, struct df_err *err)
{
    return respond_stream(req, res, &(struct asked){DF_KIND_TASK_ACTION, DF_STREAM_LOG, PLAIN},
                          err);
}
