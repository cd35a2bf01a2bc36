/*
 * states.c - dayfly's own State Service: the state of each step, and a stream of all transitions.
 * The stream first sends what exists, page by page (send_page()), then each change of the journal.
 * A client that is too slow for the journal gets the pages again.
 */
#include "common/base/clock.h"
#include "common/kube/watch.h"
#include "spawner/api/follow.h"
#include "spawner/api/handlers.h"
#include "spawner/api/pages.h"
#include "spawner/http/rights.h"
#include "spawner/journal/cursors.h"
#include "spawner/model/action_event.h"
#include "spawner/model/labels.h"

/* ---- one state ---- */

static struct df_action_scope scope_of(const struct df_spawner *s)
{
    return (struct df_action_scope){s->config->state_service_project,
                                    s->config->state_service_domain};
}

static int add_header(cJSON *state, const cJSON *task, struct df_err *err)
{
    return df_json_put(state, err, DF_STR("taskAction", df_json_str(task, "metadata.name")),
                       DF_STR("uid", df_json_str(task, "metadata.uid")));
}

/* Returns {taskAction, uid, state}: the transition at index. */
static int state_at(const struct df_spawner *s, const cJSON *task, int index, cJSON **ret,
                    struct df_err *err)
{
    const struct df_action_scope scope = scope_of(s);
    DF_JSON cJSON *state = cJSON_CreateObject();
    cJSON *event = NULL;
    if (df_check_alloc(state, err) < 0 || add_header(state, task, err) < 0 ||
        df_action_event(task, index, &scope, &event, err) < 0 ||
        df_json_set(state, "state", event, err) < 0)
        return -1;
    *ret = DF_TAKE(state);
    return 0;
}

static int add_transitions(const struct df_spawner *s, const cJSON *task, cJSON *state,
                           struct df_err *err)
{
    const struct df_action_scope scope = scope_of(s);
    cJSON *list = df_json_array_at(state, "transitions");
    if (!list)
        return df_fail_oom(err);
    for (int i = 0; i < df_action_transitions(task); i++) {
        cJSON *event = NULL;
        if (df_action_event(task, i, &scope, &event, err) < 0 ||
            df_json_append(list, event, err) < 0)
            return -1;
    }
    return 0;
}

int df_get_state_of(struct df_request *req, struct df_response *res, struct df_err *err)
{
    DF_SHARED const cJSON *task = NULL;
    DF_JSON cJSON *state = NULL;
    if (df_store_look(req->s->store, DF_KIND_TASK_ACTION, req->params[0], &task, err) < 0)
        return -1;
    int n = df_action_transitions(task);
    if (!n)
        return df_fail(err, DF_ERR_NOT_FOUND, "no transition of TaskAction \"%s\" is known",
                       req->params[0]);
    if (state_at(req->s, task, n - 1, &state, err) < 0 ||
        add_transitions(req->s, task, state, err) < 0)
        return -1;
    return df_respond_json(res, 200, state, err);
}

int df_list_states(struct df_request *req, struct df_response *res, struct df_err *err)
{
    DF_JSON cJSON *tasks = NULL;
    DF_JSON cJSON *states = cJSON_CreateArray();
    DF_FREE char *cursor = NULL;
    if (df_check_alloc(states, err) < 0 ||
        df_request_page(req, DF_KIND_TASK_ACTION, NULL, true, &tasks, &cursor, err) < 0)
        return -1;
    const cJSON *task;
    cJSON_ArrayForEach (task, tasks) {
        cJSON *state = NULL;
        int n = df_action_transitions(task);
        if (n && (state_at(req->s, task, n - 1, &state, err) < 0 ||
                  df_json_append(states, state, err) < 0))
            return -1;
    }
    return df_respond_list(res, DF_TAKE(states), cursor, err);
}

/* ---- all transitions ---- */

#define PAGE 20 /* this many steps with their whole histories fit into one piece */

struct transitions {
    struct df_stream_source base;
    struct df_follower follower;
    uint64_t cursor; /* sequence number of the last journal entry that was read */
    uint64_t known;  /* entries up to this one may be older than the documents of the pages */
    struct df_cursors sent; /* number of transitions sent, for each unfinished step */
    char version[64];       /* Last-Event-ID: all writes up to this version were processed */
    bool is_behind;         /* existing documents are sent before more changes */
    bool is_new;            /* the client has no Last-Event-ID: it gets the current states */
    char *page;             /* cursor of the next page of existing documents; NULL: the first */
    char start[32];         /* the version before the first page was read */
};

static void free_source(struct df_stream_source *source)
{
    struct transitions *t = (struct transitions *)source;
    df_follower_end(&t->follower);
    df_cursors_free(&t->sent);
    free(t->page);
    free(t);
}

static int send_one(struct transitions *t, const cJSON *task, int index, const char *id,
                    struct df_buf *out, struct df_err *err)
{
    DF_JSON cJSON *state = NULL;
    if (state_at(t->follower.s, task, index, &state, err) < 0)
        return -1;
    DF_FREE char *text = df_json_print(state);
    if (!text)
        return df_fail_oom(err);
    df_sse_event(out, id, "state", text);
    return 0;
}

static int send_from(struct transitions *t, const cJSON *task, int index, const char *id,
                     struct df_buf *out, struct df_err *err)
{
    for (int i = index; i < df_action_transitions(task); i++)
        if (send_one(t, task, i, id, out, err) < 0)
            return -1;
    return 0;
}

/* A finished step has no more transitions: it needs no cursor. */
static int update_cursor(struct transitions *t, const cJSON *task, struct df_err *err)
{
    const char *name = df_json_str(task, "metadata.name");
    if (df_label_has(task, DF_LABEL_UNFINISHED))
        return df_cursors_set(&t->sent, name, df_json_str(task, "metadata.uid"),
                              df_action_transitions(task), err);
    df_cursors_drop(&t->sent, name);
    return 0;
}

/* ---- existing steps ---- */

/* True if version was written after seen. Versions are numbers in both backends; anything else that
 * a client sends counts as earlier: the client then gets a transition twice. */
static bool is_after(const char *version, const char *seen)
{
    return !df_streq(version, seen) && !df_kube_version_is_older(version, seen);
}

static int views(const struct transitions *t, const cJSON *task, bool *ret, struct df_err *err)
{
    return df_rights_views(t->follower.req, DF_KIND_TASK_ACTION, task, ret, err);
}

/* A new client gets the current state of each unfinished step. A returning client gets all
 * transitions of the steps that were written since its Last-Event-ID. */
static int send_existing(struct transitions *t, const cJSON *task, struct df_buf *out,
                         struct df_err *err)
{
    int n = df_action_transitions(task);
    bool is_shown = false;
    if (views(t, task, &is_shown, err) < 0)
        return -1;
    if (!is_shown)
        return 0;
    if (t->is_new && n && !df_task_is_final(task) && send_one(t, task, n - 1, NULL, out, err) < 0)
        return -1;
    if (!t->is_new && is_after(df_json_str(task, "metadata.resourceVersion"), t->version) &&
        send_from(t, task, 0, NULL, out, err) < 0)
        return -1;
    return update_cursor(t, task, err);
}

static void begin_pages(struct transitions *t)
{
    df_cursors_free(&t->sent); /* entries of deleted steps may have been lost */
    t->is_behind = true;
    t->cursor = df_journal_last(t->follower.s->journal, t->start);
}

/* The events of the pages have no id: a client that loses its connection meanwhile begins again. */
static void end_pages(struct transitions *t, struct df_buf *out)
{
    char version[32];
    t->is_behind = t->is_new = false;
    t->known = df_journal_last(t->follower.s->journal, version);
    (void)snprintf(t->version, sizeof(t->version), "%s", t->start);
    df_sse_event(out, t->version, "sentinel", "{}");
}

static int send_page(struct transitions *t, struct df_buf *out, struct df_err *err)
{
    const struct df_store_list_options o = {
        .label = t->is_new ? DF_LABEL_UNFINISHED "=true" : NULL, .cursor = t->page, .limit = PAGE};
    DF_JSON cJSON *page = NULL;
    char *next = NULL;
    if (!t->page)
        begin_pages(t);
    if (df_store_list(t->follower.s->store, DF_KIND_TASK_ACTION, &o, &page, &next, err) < 0)
        return -1;
    free(t->page);
    t->page = next;
    const cJSON *task;
    cJSON_ArrayForEach (task, page)
        if (send_existing(t, task, out, err) < 0)
            return -1;
    if (!t->page)
        end_pages(t, out);
    return 0;
}

/* ---- changes ---- */

static int send_change(struct transitions *t, const struct df_journal_entry *entry,
                       struct df_buf *out, struct df_err *err)
{
    DF_SHARED const cJSON *task = NULL;
    bool is_shown = false;
    (void)snprintf(t->version, sizeof(t->version), "%s", entry->version);
    if (df_store_look_for(t->follower.s->store, DF_KIND_TASK_ACTION, entry->name, &task, err) < 0 ||
        (task && views(t, task, &is_shown, err) < 0))
        return -1;
    if (!is_shown) {
        df_cursors_drop(&t->sent, entry->name);
        return 0;
    }
    /* A step that was finished before may be written again, without a new transition. A step that
     * finished while the pages were sent may be missing from them. */
    bool may_be_new = entry->change == DF_CHANGE_ADDED || df_label_has(task, DF_LABEL_UNFINISHED) ||
                      t->cursor <= t->known;
    int has = df_cursors_get(&t->sent, entry->name, df_json_str(task, "metadata.uid"),
                             may_be_new ? 0 : df_action_transitions(task));
    return send_from(t, task, has, t->version, out, err) < 0 ? -1 : update_cursor(t, task, err);
}

/* Returns 1 if there may be more now, 0 if the client has everything. */
static int send_next(struct transitions *t, struct df_buf *out, struct df_err *err)
{
    struct df_journal_entry entry;
    if (t->is_behind)
        return send_page(t, out, err) < 0 ? -1 : 1;
    switch (df_journal_read(t->follower.s->journal, &t->cursor, &entry)) {
    case 0:
        return 0;
    case 1:
        return entry.kind == DF_KIND_TASK_ACTION && send_change(t, &entry, out, err) < 0 ? -1 : 1;
    default: /* too slow: entries are lost; continue as for a returning client */
        t->is_behind = true;
        return 1;
    }
}

static int next_piece(struct df_stream_source *source, struct df_buf *out)
{
    struct transitions *t = (struct transitions *)source;
    struct df_err err = {0};
    uint64_t mark = df_follower_mark(&t->follower);
    int more = 1;
    while (more > 0 && !out->len)
        more = send_next(t, out, &err);
    if (more < 0 || out->failed)
        return -1;
    if (!out->len)
        return df_follower_wait(&t->follower, mark, out);
    t->follower.sent_ms = df_mono_ms();
    return 1;
}

int df_watch_transitions(struct df_request *req, struct df_response *res, struct df_err *err)
{
    struct transitions *t = calloc(1, sizeof(*t));
    const char *id = df_request_header(req, "Last-Event-ID");
    if (!t)
        return df_fail_oom(err);
    t->base = (struct df_stream_source){.next = next_piece, .free = free_source};
    t->is_behind = true;
    t->is_new = df_str_empty(id);
    (void)snprintf(t->version, sizeof(t->version), "%s", id ? id : "");
    res->stream = &t->base;
    res->content_type = "text/event-stream";
    return df_follower_init(&t->follower, req, DF_KIND_RUN, NULL, false, err);
}
