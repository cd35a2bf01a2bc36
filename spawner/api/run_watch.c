/*
 * run_watch.c - the documents of a run as an event stream: first the run and its steps, then each
 * of them on every change, until the run is final.
 */
#include "common/base/clock.h"
#include "spawner/api/follow.h"
#include "spawner/api/handlers.h"

#define VERSION_LEN 64

struct watch_source {
    struct df_stream_source base;
    struct df_follower follower;
    char sent_steps[DF_RECIPE_STEPS][VERSION_LEN]; /* resourceVersions that the client has */
    char sent_run[VERSION_LEN];
};

static void free_source(struct df_stream_source *source)
{
    struct watch_source *w = (struct watch_source *)source;
    df_follower_end(&w->follower);
    free(w);
}

/* Sends the document unless the client has this version of it. */
static int send_document(struct df_buf *out, const char *event, const cJSON *doc,
                         char sent[VERSION_LEN])
{
    const char *version = df_json_str(doc, "metadata.resourceVersion");
    if (!version || df_streq(version, sent))
        return 0;
    (void)snprintf(sent, VERSION_LEN, "%s", version);
    DF_JSON cJSON *shown = cJSON_Duplicate(doc, true);
    df_hide_private(shown);
    DF_FREE char *text = shown ? df_json_print(shown) : NULL;
    if (!text)
        return -1;
    df_sse_event(out, sent, event, text);
    return 0;
}

static int send_step(struct watch_source *w, struct df_buf *out, const cJSON *run, size_t i)
{
    const char *name = w->follower.steps[i];
    struct df_err err = {0};
    DF_SHARED const cJSON *task = NULL;
    if (df_store_look_for(w->follower.s->store, DF_KIND_TASK_ACTION, name, &task, &err) < 0)
        return -1;
    return df_run_has_step(run, task) ? send_document(out, "taskaction", task, w->sent_steps[i])
                                      : 0;
}

/* Reads the run first and sends it last: a client sees a step before the run that refers to it. */
static int send_changed(struct watch_source *w, struct df_buf *out, bool *ret_over)
{
    struct df_err err = {0};
    DF_SHARED const cJSON *run = NULL;
    if (df_follower_look(&w->follower, &run, &err) < 0)
        return -1;
    *ret_over = !run || df_run_is_final(run);
    if (!run)
        return df_sse_end(out, DF_KIND_RUN, NULL);
    for (size_t i = 0; i < w->follower.step_count; i++)
        if (send_step(w, out, run, i) < 0)
            return -1;
    if (send_document(out, "run", run, w->sent_run) < 0)
        return -1;
    return *ret_over ? df_sse_end(out, DF_KIND_RUN, run) : 0;
}

static int next_piece(struct df_stream_source *source, struct df_buf *out)
{
    struct watch_source *w = (struct watch_source *)source;
    bool over = false;
    uint64_t mark = df_follower_mark(&w->follower);
    if (send_changed(w, out, &over) < 0 || out->failed)
        return -1;
    if (!out->len && !over)
        return df_follower_wait(&w->follower, mark, out);
    w->follower.sent_ms = df_mono_ms();
    return !over;
}

int df_watch_run(struct df_request *req, struct df_response *res, struct df_err *err)
{
    DF_SHARED const cJSON *run = NULL;
    if (df_store_look(req->s->store, DF_KIND_RUN, req->params[0], &run, err) < 0)
        return -1;
    struct watch_source *w = calloc(1, sizeof(*w));
    if (!w)
        return df_fail_oom(err);
    w->base = (struct df_stream_source){.next = next_piece, .free = free_source};
    res->stream = &w->base;
    res->content_type = "text/event-stream";
    return df_follower_init(&w->follower, req, DF_KIND_RUN, run, false, err);
}
