/*
 * The caller's thread changes the rows under the lock; the thread of the context prints them under
 * the lock and talks to the API without it: context_thread(), post_once().
 */
#include "runner/terrakube/context.h"

#include <pthread.h>

#include "common/base/clock.h"
#include "runner/terrakube/rows.h"

/* A round is two requests. A slow API is asked less often: it takes at most a tenth of the time. */
enum { ROUND_MS = 2000, LIVE_MS = 1000, SLOWER = 10, RETRY_MS = 20000 };

#define MARKER "<div data-terrakube-structured-plan=\"true\"></div>"

struct df_terrakube_context {
    /* Borrowed. */
    const struct df_terrakube_settings *settings;
    const struct df_terrakube_payload *payload;
    struct df_terrakube_stream *live;

    pthread_mutex_t lock;
    pthread_cond_t moved;
    /* Under the lock. */
    struct df_rows rows;
    cJSON *outputs; /* or NULL */
    cJSON *more;    /* members of the document */
    bool changed;   /* not posted yet */
    bool closing, ended;
    volatile bool stop; /* atomic: the time to end is over */

    pthread_t thread;
    /* The caller's. */
    struct df_buf line; /* an event that is not complete yet */
    bool skips_line;    /* it is too long */
    int64_t live_ms;    /* when the last one was told */
    bool is_live_due;
};

static bool is_apply(const struct df_terrakube_context *c)
{
    return c->payload->type == DF_TERRAKUBE_APPLY || c->payload->type == DF_TERRAKUBE_DESTROY;
}

static void lock(struct df_terrakube_context *c)
{
    (void)pthread_mutex_lock(&c->lock);
}

static void unlock(struct df_terrakube_context *c)
{
    (void)pthread_mutex_unlock(&c->lock);
}

/* ---- the document ---- */

/* context[key][step] = a copy of value. */
static int set_of_step(const struct df_terrakube_context *c, cJSON *context, const char *key,
                       const cJSON *value, struct df_err *err)
{
    cJSON *steps = df_json_object_at(context, key);
    return df_json_set(steps, c->payload->step, cJSON_Duplicate(value, true), err);
}

static int set_marker(const struct df_terrakube_context *c, cJSON *context, struct df_err *err)
{
    cJSON *steps = df_json_object_at(context, "terrakubeUI");
    return df_json_set_str(steps, c->payload->step, MARKER, err);
}

static const char *rows_key(const struct df_terrakube_context *c)
{
    return is_apply(c) ? "applyStructuredOutput" : "planStructuredOutput";
}

/* Puts what this step knows into the API's document. */
static int merge(const struct df_terrakube_context *c, cJSON *context, struct df_err *err)
{
    const cJSON *v;
    if (set_of_step(c, context, rows_key(c), c->rows.rows, err) < 0 ||
        set_of_step(c, context, "jobDiagnostics", c->rows.diagnostics, err) < 0 ||
        (!is_apply(c) && set_marker(c, context, err) < 0) ||
        (c->outputs && set_of_step(c, context, "terraformOutputs", c->outputs, err) < 0))
        return -1;
    cJSON_ArrayForEach (v, c->more) {
        if (df_json_set(context, v->string, cJSON_Duplicate(v, true), err) < 0)
            return -1;
    }
    return 0;
}

/* ---- the thread ---- */

static int read_context(struct df_terrakube_api *api, cJSON **ret, struct df_err *err)
{
    if (df_terrakube_api_context(api, ret, err) < 0)
        return -1;
    if (cJSON_IsObject(*ret))
        return 0;
    cJSON_Delete(*ret);
    return df_check_alloc(*ret = cJSON_CreateObject(), err);
}

/* An apply begins with the rows of the only plan of the job. */
static void seed(struct df_terrakube_context *c, const cJSON *context)
{
    const cJSON *plans = df_json_at(context, "planStructuredOutput");
    if (!is_apply(c) || cJSON_GetArraySize(plans) != 1)
        return;
    lock(c);
    df_rows_seed(&c->rows, plans->child);
    unlock(c);
}

static bool is_small_enough(const cJSON *context)
{
    DF_FREE char *text = df_json_print(context);
    return text && strlen(text) <= DF_LIMIT_TERRAKUBE_CONTEXT;
}

static int post_once(struct df_terrakube_context *c, struct df_terrakube_api *api, bool *seeded,
                     struct df_err *err)
{
    DF_JSON cJSON *context = NULL;
    if (read_context(api, &context, err) < 0)
        return -1;
    if (!*seeded)
        seed(c, context);
    *seeded = true;
    lock(c);
    c->changed = false;
    int failed = merge(c, context, err);
    unlock(c);
    if (failed)
        return -1;
    if (!is_small_enough(context))
        return df_fail(err, DF_ERR_LIMIT, "the structured output is too large for the API");
    return df_terrakube_api_put_context(api, context, err);
}

/* The API has no context, or takes none of this job any more; or it never will take this one. */
static bool is_final(const struct df_err *why)
{
    return why->cls == DF_ERR_NOT_FOUND || why->cls == DF_ERR_CONFLICT ||
           why->cls == DF_ERR_DENIED || why->cls == DF_ERR_LIMIT || why->cls == DF_ERR_USER;
}

/* Waits until there is something to post and the pause is over, or for the end. False: the end, and
 * nothing is left to post. */
static bool wait_for_work(struct df_terrakube_context *c, int64_t not_before_ms)
{
    lock(c);
    for (;;) {
        int64_t left = c->changed ? not_before_ms - df_mono_ms() : 60000;
        if (c->closing || left <= 0)
            break;
        const struct timespec until = df_mono_after_us(left * 1000);
        (void)pthread_cond_timedwait(&c->moved, &c->lock, &until);
    }
    bool work = c->changed && !df_stopped(&c->stop);
    unlock(c);
    return work;
}

static void post_all(struct df_terrakube_context *c, struct df_terrakube_api *api)
{
    bool seeded = false;
    int64_t next_ms = 0;
    while (wait_for_work(c, next_ms)) {
        struct df_err why = {0};
        int64_t begin = df_mono_ms();
        int failed = post_once(c, api, &seeded, &why);
        if (failed && is_final(&why))
            return;
        int64_t took = df_mono_ms() - begin;
        next_ms = df_mono_ms() + (took * SLOWER > ROUND_MS ? took * SLOWER : ROUND_MS);
        if (failed) {
            lock(c);
            c->changed = !c->closing; /* the last one was tried for the whole patience */
            unlock(c);
        }
    }
}

static void *context_thread(void *arg)
{
    struct df_terrakube_context *c = arg;
    struct df_terrakube_api *api = NULL;
    struct df_err err = {0};
    if (df_terrakube_api_new(c->settings, c->payload, RETRY_MS, &c->stop, &api, &err) == 0)
        post_all(c, api);
    df_terrakube_api_free(api);
    lock(c);
    c->ended = true;
    (void)pthread_cond_broadcast(&c->moved);
    unlock(c);
    return NULL;
}

/* ---- the caller ---- */

static void discard(struct df_terrakube_context *c)
{
    df_rows_free(&c->rows);
    cJSON_Delete(c->outputs);
    cJSON_Delete(c->more);
    df_buf_free(&c->line);
    (void)pthread_cond_destroy(&c->moved);
    (void)pthread_mutex_destroy(&c->lock);
    free(c);
}

int df_terrakube_context_new(const struct df_terrakube_settings *s,
                             const struct df_terrakube_payload *p, struct df_terrakube_stream *live,
                             struct df_terrakube_context **ret, struct df_err *err)
{
    struct df_terrakube_context *c = calloc(1, sizeof *c);
    if (!c)
        return df_fail_oom(err);
    *c = (struct df_terrakube_context){.settings = s,
                                       .payload = p,
                                       .live = live,
                                       .more = cJSON_CreateObject(),
                                       .line = DF_BUF_INIT(DF_LIMIT_EVENT_LINE)};
    (void)pthread_mutex_init(&c->lock, NULL);
    df_cond_init(&c->moved);
    int failed = c->more ? df_rows_init(&c->rows, err) : df_fail_oom(err);
    c->changed = is_apply(c); /* its first rows are those of the plan */
    if (!failed) {
        int code = pthread_create(&c->thread, NULL, context_thread, c);
        failed = code ? df_fail_errno(err, code, "start the thread of the structured output") : 0;
    }
    if (failed) {
        discard(c);
        return -1;
    }
    *ret = c;
    return 0;
}

static void tell_change(struct df_terrakube_context *c)
{
    c->changed = true;
    c->is_live_due = true;
    (void)pthread_cond_broadcast(&c->moved);
}

/* {"phase", "changes": {step: rows}, "jobDiagnostics": {step: [...]}}. The caller frees; NULL: no
 * memory. */
static char *live_text(struct df_terrakube_context *c)
{
    DF_JSON cJSON *entry = cJSON_CreateObject();
    if (!entry || df_json_add_str(entry, "phase", is_apply(c) ? "apply" : "plan", NULL) < 0)
        return NULL;
    lock(c);
    int failed = set_of_step(c, entry, "changes", c->rows.rows, NULL) < 0 ||
                 set_of_step(c, entry, "jobDiagnostics", c->rows.diagnostics, NULL) < 0;
    unlock(c);
    return failed ? NULL : df_json_print(entry);
}

static void tell_live(struct df_terrakube_context *c, bool now)
{
    if (!c->live || !c->is_live_due || (!now && df_mono_ms() - c->live_ms < LIVE_MS))
        return;
    DF_FREE char *text = live_text(c);
    if (text && strlen(text) <= DF_LIMIT_TERRAKUBE_CONTEXT)
        df_terrakube_stream_context(c->live, text);
    c->live_ms = df_mono_ms();
    c->is_live_due = false;
}

static void take_line(struct df_terrakube_context *c)
{
    DF_JSON cJSON *event = NULL;
    if (c->skips_line || df_json_parse_nul(df_buf_str(&c->line), c->line.len, &event, NULL) < 0)
        return;
    lock(c);
    if (df_rows_event(&c->rows, event))
        tell_change(c);
    unlock(c);
}

void df_terrakube_context_events(struct df_terrakube_context *c, const char *bytes, size_t n)
{
    while (n) {
        const char *end = memchr(bytes, '\n', n);
        size_t piece = end ? (size_t)(end - bytes) : n;
        if (df_buf_add(&c->line, bytes, piece) < 0)
            c->skips_line = true;
        if (end) {
            take_line(c);
            df_buf_clear(&c->line);
            c->skips_line = false;
        }
        piece += end != NULL;
        bytes += piece;
        n -= piece;
    }
    tell_live(c, false);
}

void df_terrakube_context_plan(struct df_terrakube_context *c, const cJSON *plan)
{
    lock(c);
    df_rows_plan(&c->rows, plan);
    tell_change(c);
    unlock(c);
    tell_live(c, true);
}

void df_terrakube_context_state(struct df_terrakube_context *c, const cJSON *state)
{
    lock(c);
    df_rows_state(&c->rows, state);
    tell_change(c);
    unlock(c);
    tell_live(c, true);
}

void df_terrakube_context_outputs(struct df_terrakube_context *c, const cJSON *outputs)
{
    cJSON *list = df_rows_outputs(outputs);
    if (!list || !list->child) {
        cJSON_Delete(list);
        return;
    }
    lock(c);
    cJSON_Delete(c->outputs);
    c->outputs = list;
    tell_change(c);
    unlock(c);
}

void df_terrakube_context_add(struct df_terrakube_context *c, const char *key, const cJSON *value)
{
    lock(c);
    if (df_json_set(c->more, key, cJSON_Duplicate(value, true), NULL) == 0)
        tell_change(c);
    unlock(c);
}

void df_terrakube_context_free(struct df_terrakube_context *c, int64_t timeout_ms)
{
    if (!c)
        return;
    tell_live(c, true);
    int64_t until_ms = df_mono_ms() + timeout_ms;
    lock(c);
    c->closing = true;
    (void)pthread_cond_broadcast(&c->moved);
    while (!c->ended && df_mono_ms() < until_ms) {
        const struct timespec until = df_mono_after_us((until_ms - df_mono_ms()) * 1000);
        (void)pthread_cond_timedwait(&c->moved, &c->lock, &until);
    }
    __atomic_store_n(&c->stop, true, __ATOMIC_RELAXED);
    unlock(c);
    (void)pthread_join(c->thread, NULL);
    discard(c);
}
