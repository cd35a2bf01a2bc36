/*
 * The documents of a run as they change: the run and its steps at once, then each on every change,
 * until the run is final.
 */
#include "common/base/clock.h"
#include "spawner/api/follow.h"
#include "spawner/api/handlers.h"

#define VERSION_LEN 64

struct watch_source {
    struct df_stream_source base;
    struct df_follower follower;
    char seen[3][VERSION_LEN]; /* resourceVersions that the client has: plan, apply, run */
};

static void free_source(struct df_stream_source *source)
{
    free(source);
}

/* Appends the document unless the client has this version of it. */
static int show(struct df_buf *out, const char *event, cJSON *doc, char seen[VERSION_LEN])
{
    const char *version = df_json_str(doc, "metadata.resourceVersion");
    if (!version || df_streq(version, seen))
        return 0;
    (void)snprintf(seen, VERSION_LEN, "%s", version);
    df_hide_private(doc);
    DF_FREE char *text = df_json_print(doc);
    if (!text)
        return -1;
    df_sse_event(out, seen, event, text);
    return 0;
}

static int show_step(struct watch_source *w, struct df_buf *out, const char *word, char *seen)
{
    char name[64];
    struct df_err err = {0};
    DF_JSON cJSON *task = NULL;
    if (df_model_name(w->follower.run, word, name, NULL) < 0)
        return -1;
    if (df_store_get(w->follower.s->store, DF_KIND_TASK_ACTION, name, &task, &err) < 0)
        return err.cls == DF_ERR_NOT_FOUND ? 0 : -1;
    return show(out, "taskaction", task, seen);
}

/* The run is read first and shown last: what it says of its steps was seen before. */
static int look(struct watch_source *w, struct df_buf *out, bool *ret_over)
{
    struct df_err err = {0};
    DF_JSON cJSON *run = NULL;
    if (df_store_get(w->follower.s->store, DF_KIND_RUN, w->follower.run, &run, &err) < 0) {
        *ret_over = true;
        return err.cls == DF_ERR_NOT_FOUND ? df_sse_end(out, NULL) : -1;
    }
    *ret_over = df_run_is_final(run);
    if (show_step(w, out, "plan", w->seen[0]) < 0 || show_step(w, out, "apply", w->seen[1]) < 0 ||
        show(out, "run", run, w->seen[2]) < 0)
        return -1;
    return *ret_over ? df_sse_end(out, run) : 0;
}

static int next_piece(struct df_stream_source *source, struct df_buf *out)
{
    struct watch_source *w = (struct watch_source *)source;
    bool over = false;
    uint64_t mark = df_follower_mark(&w->follower);
    if (look(w, out, &over) < 0 || out->failed)
        return -1;
    if (!out->len && !over)
        return df_follower_rest(&w->follower, mark, out);
    w->follower.spoke_ms = df_mono_ms();
    return !over;
}

int df_watch_run(struct df_request *req, struct df_response *res, struct df_err *err)
{
    DF_JSON cJSON *run = NULL;
    if (df_store_get(req->s->store, DF_KIND_RUN, req->params[0], &run, err) < 0)
        return -1;
    struct watch_source *w = calloc(1, sizeof(*w));
    if (!w)
        return df_fail_oom(err);
    w->base = (struct df_stream_source){.next = next_piece, .free = free_source};
    df_follower_init(&w->follower, req, req->params[0]);
    res->stream = &w->base;
    res->content_type = "text/event-stream";
    return 0;
}
