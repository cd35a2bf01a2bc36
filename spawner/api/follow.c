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
#include "spawner/model/recipe.h"

#define HEARTBEAT_MS 15000
#define CLIENT_CHECK_MS 1000 /* how often a waiting stream checks its client */

_Static_assert(1 + DF_RECIPE_STEPS <= DF_JOURNAL_NAMES, "a run and its steps");

/* Subscribes f, which has the run's name. */
static int subscribe_to_run(struct df_follower *f, const cJSON *run, bool streams,
                            struct df_err *err)
{
    const struct df_recipe *recipe = df_recipe_of(run);
    char steps[DF_RECIPE_STEPS][64];
    const char *names[1 + DF_RECIPE_STEPS] = {f->run};
    for (size_t i = 0; i < recipe->count; i++) {
        if (df_model_name(f->run, recipe->steps[i].name, steps[i], err) < 0)
            return -1;
        names[1 + i] = steps[i];
    }
    df_subscribe(f->s->journal, &f->subscription, names, 1 + recipe->count, streams);
    return 0;
}

int df_follower_init(struct df_follower *f, const struct df_request *req, const cJSON *run,
                     bool streams, struct df_err *err)
{
    if (df_connections_follow(req->api->connections, df_request_connection(req), err) < 0)
        return -1;
    *f = (struct df_follower){.api = req->api, .s = req->s, .req = req, .sent_ms = df_mono_ms()};
    if (!run) {
        df_subscribe(f->s->journal, &f->subscription, NULL, 0, false);
        return 0;
    }
    const char *uid = df_json_str(run, "metadata.uid");
    (void)snprintf(f->run, sizeof(f->run), "%s", df_json_str(run, "metadata.name"));
    (void)snprintf(f->run_uid, sizeof(f->run_uid), "%s", uid ? uid : "");
    return subscribe_to_run(f, run, streams, err);
}

int df_follower_look(struct df_follower *f, const cJSON **ret, struct df_err *err)
{
    if (df_store_look_for(f->s->store, DF_KIND_RUN, f->run, ret, err) < 0)
        return -1;
    const char *uid = df_json_str(*ret, "metadata.uid");
    if (*ret && !df_streq(uid ? uid : "", f->run_uid))
        df_shared_drop(DF_TAKE(*ret));
    return 0;
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

int df_sse_end(struct df_buf *out, const cJSON *run)
{
    DF_JSON cJSON *end = df_json_object(DF_STR("phase", run ? df_run_phase(run) : "Deleted"),
                                        DF_STR("reason", df_json_str(run, "status.reason")),
                                        DF_STR("message", df_json_str(run, "status.message")));
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
