/*
 * follow.c - a stream of Server-Sent Events. Its handler takes a mark, looks and sends, then waits
 * until the mark has changed: a change during the look is not missed. wait_for_change() also ends
 * for a heartbeat, a client that left and a server that stops. Then the text of events:
 * df_sse_escape() makes any bytes part of a JSON string.
 */
#include "spawner/api/follow.h"

#include "common/base/clock.h"
#include "common/base/parse.h"
#include "spawner/http/server.h"

#define HEARTBEAT_MS 15000
#define CLIENT_CHECK_MS 1000 /* how often a waiting stream checks its client */

_Static_assert(1 + DF_RECIPE_STEPS <= DF_JOURNAL_NAMES, "a run and its steps");

static int name_steps(struct df_follower *f, const cJSON *doc, struct df_err *err)
{
    const struct df_recipe *recipe = df_recipe_of(doc);
    if (f->kind == DF_KIND_TASK_ACTION) {
        df_copy(f->steps[f->step_count++], sizeof(f->steps[0]), f->name);
        return 0;
    }
    for (; f->step_count < recipe->count; f->step_count++)
        if (df_model_name(f->name, recipe->steps[f->step_count].name, f->steps[f->step_count],
                          err) < 0)
            return -1;
    return 0;
}

static void subscribe(struct df_follower *f, bool streams)
{
    const char *names[1 + DF_RECIPE_STEPS] = {f->name};
    for (size_t i = 0; i < f->step_count; i++)
        names[1 + i] = f->steps[i];
    df_subscribe(f->s->journal, &f->subscription, names, f->name[0] ? 1 + f->step_count : 0,
                 streams);
}

int df_follower_init(struct df_follower *f, const struct df_request *req, enum df_kind kind,
                     const cJSON *doc, bool streams, struct df_err *err)
{
    const char *uid = df_json_str(doc, "metadata.uid");
    if (df_connections_follow(req->api->connections, df_request_connection(req), err) < 0)
        return -1;
    *f = (struct df_follower){
        .api = req->api, .s = req->s, .req = req, .kind = kind, .sent_ms = df_mono_ms()};
    if (doc) {
        df_copy(f->name, sizeof(f->name), df_json_str(doc, "metadata.name"));
        df_copy(f->uid, sizeof(f->uid), uid ? uid : "");
    }
    if (doc && name_steps(f, doc, err) < 0)
        return -1;
    subscribe(f, streams);
    return 0;
}

int df_follower_look(struct df_follower *f, const cJSON **ret, struct df_err *err)
{
    if (df_store_look_for(f->s->store, f->kind, f->name, ret, err) < 0)
        return -1;
    const char *uid = df_json_str(*ret, "metadata.uid");
    if (*ret && !df_streq(uid ? uid : "", f->uid))
        df_shared_drop(DF_TAKE(*ret));
    return 0;
}

bool df_follower_is_final(const struct df_follower *f, const cJSON *doc)
{
    return f->kind == DF_KIND_RUN ? df_run_is_final(doc) : df_task_is_final(doc);
}

void df_follower_end(struct df_follower *f)
{
    if (f->s)
        df_unsubscribe(f->s->journal, &f->subscription);
}

uint64_t df_follower_mark(const struct df_follower *f)
{
    return df_subscription_mark(f->s->journal, &f->subscription);
}

enum wake_up { CHANGED, HEARTBEAT_DUE, CLIENT_GONE, SERVER_STOPPING };

static enum wake_up wait_for_change(struct df_follower *f, uint64_t mark)
{
    for (;;) {
        if (df_follower_mark(f) != mark)
            return CHANGED;
        if (df_api_is_stopping(f->api))
            return SERVER_STOPPING;
        if (df_request_client_left(f->req))
            return CLIENT_GONE;
        int64_t left = f->sent_ms + HEARTBEAT_MS - df_mono_ms();
        if (left <= 0) {
            f->sent_ms = df_mono_ms();
            return HEARTBEAT_DUE;
        }
        df_subscription_wait(f->s->journal, &f->subscription, mark,
                             left < CLIENT_CHECK_MS ? left : CLIENT_CHECK_MS);
    }
}

int df_follower_wait(struct df_follower *f, uint64_t mark, struct df_buf *out)
{
    switch (wait_for_change(f, mark)) {
    case CHANGED:
        return 1;
    case HEARTBEAT_DUE:
        (void)df_buf_adds(out, ": still here\n\n");
        return 1;
    case SERVER_STOPPING:
        df_sse_event(out, NULL, "stopping", "{}");
        return 0;
    case CLIENT_GONE:
        return -1;
    }
    return -1;
}

void df_sse_event(struct df_buf *out, const char *id, const char *name, const char *data)
{
    if (id)
        (void)df_buf_addf(out, "id: %s\n", id);
    if (name)
        (void)df_buf_addf(out, "event: %s\n", name);
    (void)df_buf_addf(out, "data: %s\n\n", data);
}

static cJSON *end_of_run(const cJSON *run)
{
    return df_json_object(DF_STR("phase", df_run_phase(run)),
                          DF_STR("reason", df_json_str(run, "status.reason")),
                          DF_STR("message", df_json_str(run, "status.message")));
}

static cJSON *end_of_task(const cJSON *task)
{
    return df_json_object(DF_STR("phase", df_task_succeeded(task) ? "Succeeded" : "Failed"),
                          DF_STR("reason", df_task_reason(task)),
                          DF_STR("message", df_task_message(task)));
}

int df_sse_end(struct df_buf *out, enum df_kind kind, const cJSON *doc)
{
    DF_JSON cJSON *end = !doc                  ? df_json_object(DF_STR("phase", "Deleted"))
                         : kind == DF_KIND_RUN ? end_of_run(doc)
                                               : end_of_task(doc);
    DF_FREE char *text = df_json_print(end);
    if (!text)
        return -1;
    df_sse_event(out, NULL, "end", text);
    return 0;
}

/* ---- text ---- */

size_t df_utf8_tail(const char *bytes, size_t n)
{
    for (size_t back = 1; back <= 3 && back <= n; back++) {
        unsigned char c = (unsigned char)bytes[n - back];
        if ((c & 0xc0) == 0x80)
            continue;
        return df_utf8_length(c) > back ? back : 0;
    }
    return 0;
}

static void escape_one(struct df_buf *out, unsigned char c)
{
    static const char names[] = "btn?fr"; /* 0x08 to 0x0d */
    if (c == '"' || c == '\\')
        (void)df_buf_addf(out, "\\%c", c);
    else if (c >= 0x08 && c <= 0x0d && c != 0x0b)
        (void)df_buf_addf(out, "\\%c", names[c - 0x08]);
    else if (c < 0x20 || c == 0x7f)
        (void)df_buf_addf(out, "\\u%04x", c);
    else
        (void)df_buf_addc(out, (char)c);
}

bool df_sse_escape(struct df_buf *out, const char *bytes, size_t n)
{
    bool exact = true;
    for (size_t i = 0; i < n;) {
        unsigned char c = (unsigned char)bytes[i];
        size_t len = df_utf8_length(c);
        if (len == 1 && c) {
            escape_one(out, c);
            i++;
        } else if (len > 1 && len <= n - i && df_is_utf8(bytes + i, len)) {
            (void)df_buf_add(out, bytes + i, len);
            i += len;
        } else {
            (void)df_buf_adds(out, "\xef\xbf\xbd");
            exact = false;
            i++;
        }
    }
    return exact;
}
