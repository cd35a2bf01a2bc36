/*
 * awx_memory.h - an AWX that keeps templates, jobs, types and credentials in memory, and what it
 * was asked. Include behind cmocka.h.
 *
 * Everything is behind the lock; awx_keep() and awx_find() are for before anybody asks.
 */
#ifndef DF_TEST_AWX_MEMORY_H
#define DF_TEST_AWX_MEMORY_H

#include <arpa/inet.h>
#include <microhttpd.h>

#include "common/base/clock.h"
#include "common/json/json.h"

enum { AWX_LOST = -1 /* it is done, and nobody hears it */, AWX_FIRST = 42 /* id of a job */ };

struct awx_memory {
    struct MHD_Daemon *daemon;
    char url[64];
    pthread_mutex_t lock;
    pthread_cond_t changed;
    cJSON *kept;       /* {job_templates, jobs, credential_types, credentials: [{id, ...}]} */
    cJSON *asked;      /* [{method, path, query, token, body}] */
    cJSON *faults;     /* [{method, path, status, body}]: of the next request of this kind */
    const char *token; /* the only one that it takes */
    int away;          /* the status of every answer; 0: it works */
    bool silent;       /* no request is answered until it is not */
    int waiting;       /* requests that are not answered for that */
    cJSON *ignored;    /* of the next launch; or NULL */
    int last_id;
    int connections, open; /* all that there were, and those that are not closed */
};

/* ---- what a test says ---- */

/* document: taken. Returns its id. */
static inline int awx_keep(struct awx_memory *m, const char *kind, cJSON *document)
{
    int id = (int)df_json_int(document, "id", ++m->last_id);
    (void)!df_json_set(document, "id", cJSON_CreateNumber(id), NULL);
    (void)!df_json_append(df_json_array_at(m->kept, kind), document, NULL);
    return id;
}

static inline cJSON *awx_find(struct awx_memory *m, const char *kind, int id)
{
    cJSON *item;
    cJSON_ArrayForEach (item, df_json_array_at(m->kept, kind))
        if (df_json_int(item, "id", -1) == id)
            return item;
    return NULL;
}

static inline int awx_size(struct awx_memory *m, const char *kind)
{
    (void)pthread_mutex_lock(&m->lock);
    int n = cJSON_GetArraySize(df_json_at(m->kept, kind));
    (void)pthread_mutex_unlock(&m->lock);
    return n;
}

/* The id of the first one of this kind; -1: there is none. */
static inline int awx_first(struct awx_memory *m, const char *kind)
{
    (void)pthread_mutex_lock(&m->lock);
    const cJSON *list = df_json_at(m->kept, kind);
    int id = list ? (int)df_json_int(list->child, "id", -1) : -1;
    (void)pthread_mutex_unlock(&m->lock);
    return id;
}

static inline bool awx_has(struct awx_memory *m, const char *kind, int id)
{
    (void)pthread_mutex_lock(&m->lock);
    bool has = awx_find(m, kind, id);
    (void)pthread_mutex_unlock(&m->lock);
    return has;
}

/* value: taken. */
static inline void awx_set(struct awx_memory *m, const char *kind, int id, const char *member,
                           cJSON *value)
{
    (void)pthread_mutex_lock(&m->lock);
    (void)!df_json_set(awx_find(m, kind, id), member, value, NULL);
    (void)pthread_mutex_unlock(&m->lock);
}

static inline void awx_move(struct awx_memory *m, int job, const char *status)
{
    awx_set(m, "jobs", job, "status", cJSON_CreateString(status));
}

static inline void awx_print(struct awx_memory *m, int job, const char *text)
{
    awx_set(m, "jobs", job, "stdout", cJSON_CreateString(text));
}

static inline bool awx_is(struct awx_memory *m, int job, const char *status)
{
    (void)pthread_mutex_lock(&m->lock);
    bool is = df_streq(df_json_str(awx_find(m, "jobs", job), "status"), status);
    (void)pthread_mutex_unlock(&m->lock);
    return is;
}

/* No credentials and types, and the next of them is number 1. */
static inline void awx_begin_again(struct awx_memory *m)
{
    (void)pthread_mutex_lock(&m->lock);
    cJSON_DeleteItemFromObject(m->kept, "credentials");
    cJSON_DeleteItemFromObject(m->kept, "credential_types");
    m->last_id = 0;
    (void)pthread_mutex_unlock(&m->lock);
}

static inline void awx_set_token(struct awx_memory *m, const char *token)
{
    (void)pthread_mutex_lock(&m->lock);
    m->token = token;
    (void)pthread_mutex_unlock(&m->lock);
}

/* fields: of the next launch; taken. */
static inline void awx_ignore(struct awx_memory *m, cJSON *fields)
{
    (void)pthread_mutex_lock(&m->lock);
    m->ignored = fields;
    (void)pthread_mutex_unlock(&m->lock);
}

static inline void awx_forget(struct awx_memory *m, const char *kind, int id)
{
    (void)pthread_mutex_lock(&m->lock);
    cJSON_Delete(
        cJSON_DetachItemViaPointer(df_json_array_at(m->kept, kind), awx_find(m, kind, id)));
    (void)pthread_mutex_unlock(&m->lock);
}

/* The next request of this method whose path begins so gets this status. */
static inline void awx_break(struct awx_memory *m, const char *method, const char *path, int status,
                             const char *body)
{
    (void)pthread_mutex_lock(&m->lock);
    cJSON *fault = df_json_object(DF_STR("method", method), DF_STR("path", path),
                                  DF_NUM("status", status), DF_STR("body", body));
    (void)!df_json_append(m->faults, fault, NULL);
    (void)pthread_mutex_unlock(&m->lock);
}

/* How many connections there were, once no more than so many are open; -1: they stay open. */
static inline int awx_connections(struct awx_memory *m, int open)
{
    struct timespec end = df_mono_after_us(20000000);
    (void)pthread_mutex_lock(&m->lock);
    int failed = 0;
    while (m->open > open && !failed)
        failed = pthread_cond_timedwait(&m->changed, &m->lock, &end);
    int n = failed ? -1 : m->connections;
    (void)pthread_mutex_unlock(&m->lock);
    return n;
}

static inline void awx_set_away(struct awx_memory *m, int status)
{
    (void)pthread_mutex_lock(&m->lock);
    m->away = status;
    (void)pthread_mutex_unlock(&m->lock);
}

static inline void awx_set_silent(struct awx_memory *m, bool silent)
{
    (void)pthread_mutex_lock(&m->lock);
    m->silent = silent;
    (void)pthread_cond_broadcast(&m->changed);
    (void)pthread_mutex_unlock(&m->lock);
}

static inline int awx_waiting(struct awx_memory *m)
{
    (void)pthread_mutex_lock(&m->lock);
    int n = m->waiting;
    (void)pthread_mutex_unlock(&m->lock);
    return n;
}

static inline int awx_count_locked(struct awx_memory *m, const char *method, const char *path)
{
    const cJSON *a;
    int n = 0;
    cJSON_ArrayForEach (a, m->asked)
        n += (!method || df_streq(df_json_str(a, "method"), method)) &&
             df_starts_with(df_json_str(a, "path"), path);
    return n;
}

/* Requests of this method (NULL: any) whose path, behind /api/v2/, begins so. */
static inline int awx_count(struct awx_memory *m, const char *method, const char *path)
{
    (void)pthread_mutex_lock(&m->lock);
    int n = awx_count_locked(m, method, path);
    (void)pthread_mutex_unlock(&m->lock);
    return n;
}

static inline void awx_await(struct awx_memory *m, const char *method, const char *path, int n)
{
    struct timespec end = df_mono_after_us(20000000);
    (void)pthread_mutex_lock(&m->lock);
    while (awx_count_locked(m, method, path) < n)
        if (pthread_cond_timedwait(&m->changed, &m->lock, &end) != 0)
            fail_msg("%d requests %s %s", awx_count_locked(m, method, path), method, path);
    (void)pthread_mutex_unlock(&m->lock);
}

/* The body of the last request of this kind; the caller owns it. NULL: there was none. */
static inline cJSON *awx_body(struct awx_memory *m, const char *method, const char *path)
{
    const cJSON *a, *last = NULL;
    (void)pthread_mutex_lock(&m->lock);
    cJSON_ArrayForEach (a, m->asked)
        if (df_streq(df_json_str(a, "method"), method) &&
            df_starts_with(df_json_str(a, "path"), path))
            last = a;
    cJSON *body = last ? cJSON_Parse(df_json_str(last, "body")) : NULL;
    (void)pthread_mutex_unlock(&m->lock);
    return body;
}

/* ---- answers ---- */

struct awx_answer {
    int status;
    cJSON *body;      /* or NULL */
    const char *text; /* instead of it */
};

static inline struct awx_answer awx_list(const cJSON *items, const char *name, const char *member)
{
    cJSON *results = cJSON_CreateArray();
    const cJSON *item;
    for (item = items ? items->child : NULL; item; item = item->next)
        if (!name || df_streq(df_json_str(item, member), name))
            (void)!df_json_append(results, cJSON_Duplicate(item, true), NULL);
    return (struct awx_answer){200,
                               df_json_object(DF_NUM("count", cJSON_GetArraySize(results)),
                                              DF_ITEM("next", cJSON_CreateNull()),
                                              DF_ITEM("results", results)),
                               NULL};
}

static inline struct awx_answer awx_launch(struct awx_memory *m, int template_id, const cJSON *body)
{
    DF_FREE char *vars = df_json_print_nul(df_json_at(body, "extra_vars"));
    DF_FREE char *of = df_strf("%d", template_id);
    const cJSON *ids = df_json_at(body, "credentials");
    cJSON *job = df_json_object(
        DF_STR("status", "pending"), DF_STR("created", "2026-11-29T12:00:00.000000Z"),
        DF_STR("extra_vars", m->ignored ? "{}"
                             : vars     ? vars
                                        : "{}"),
        DF_STR("template", of),
        DF_ITEM("credentials", ids ? cJSON_Duplicate(ids, true) : cJSON_CreateArray()));
    int id = AWX_FIRST + cJSON_GetArraySize(df_json_at(m->kept, "jobs"));
    (void)!df_json_set(job, "id", cJSON_CreateNumber(id), NULL);
    (void)awx_keep(m, "jobs", job);
    cJSON *ignored = m->ignored ? m->ignored : cJSON_CreateObject();
    m->ignored = NULL;
    return (struct awx_answer){
        201, df_json_object(DF_NUM("id", id), DF_ITEM("ignored_fields", ignored)), NULL};
}

/* A launch for the action with this uid is done now: its answer was given long ago. */
static inline void awx_launch_later(struct awx_memory *m, int template_id, const char *uid)
{
    DF_JSON cJSON *body = cJSON_CreateObject();
    (void)!df_json_set_str(df_json_object_at(body, "extra_vars"), "DAYFLY_UID", uid, NULL);
    (void)pthread_mutex_lock(&m->lock);
    struct awx_answer a = awx_launch(m, template_id, body);
    (void)pthread_mutex_unlock(&m->lock);
    cJSON_Delete(a.body);
}

static inline struct awx_answer awx_create(struct awx_memory *m, const char *kind,
                                           const cJSON *body)
{
    const cJSON *item;
    cJSON_ArrayForEach (item, df_json_at(m->kept, kind))
        if (df_streq(df_json_str(item, "name"), df_json_str(body, "name")))
            return (struct awx_answer){400, NULL, "{\"__all__\":[\"already exists.\"]}"};
    int id = awx_keep(m, kind, cJSON_Duplicate(body, true));
    return (struct awx_answer){201, df_json_object(DF_NUM("id", id)), NULL};
}

static inline struct awx_answer awx_of_template(struct awx_memory *m, int id, const char *rest)
{
    DF_JSON cJSON *own = cJSON_CreateArray();
    DF_FREE char *of = df_strf("%d", id);
    const cJSON *number;
    if (df_streq(rest, "survey_spec/"))
        return (struct awx_answer){
            200, cJSON_Duplicate(df_json_at(awx_find(m, "job_templates", id), "survey"), true),
            NULL};
    if (df_streq(rest, "jobs/"))
        return awx_list(df_json_at(m->kept, "jobs"), of, "template");
    cJSON_ArrayForEach (number, df_json_at(awx_find(m, "job_templates", id), "credentials"))
        (void)!df_json_append(own, df_json_object(DF_NUM("id", number->valuedouble)), NULL);
    return awx_list(own, NULL, NULL);
}

/* One event, unless the job says how many are stored, and the number of the newest. */
static inline struct awx_answer awx_events(cJSON *job)
{
    int count = (int)df_json_int(job, "count", 1);
    cJSON *event = df_json_object(DF_NUM("counter", df_json_int(job, "newest", count)));
    cJSON *results = cJSON_CreateArray();
    (void)!df_json_append(results, event, NULL);
    return (struct awx_answer){
        200, df_json_object(DF_NUM("count", count), DF_ITEM("results", results)), NULL};
}

static inline struct awx_answer awx_of_job(cJSON *job, const char *method, const char *rest)
{
    const char *status = df_json_str(job, "status"), *text = df_json_str(job, "stdout");
    bool has_ended = !strstr("new pending waiting running", status);
    if (df_streq(rest, "stdout/"))
        return text
                   ? (struct awx_answer){200, cJSON_CreateNull(), text}
                   : (struct awx_answer){404, NULL, "{'detail': ErrorDetail(string='Not found.')}"};
    if (df_streq(rest, "job_events/"))
        return awx_events(job);
    if (!df_streq(method, "POST"))
        return (struct awx_answer){200, cJSON_Duplicate(job, true), NULL};
    if (has_ended)
        return (struct awx_answer){405, NULL, "{}"};
    (void)!df_json_set_str(job, "status", "canceled", NULL);
    return (struct awx_answer){202, NULL, ""};
}

/* path: "jobs/42/cancel/", behind /api/v2/. */
static inline struct awx_answer awx_act(struct awx_memory *m, const char *method, const char *path,
                                        const char *name, const cJSON *body)
{
    char kind[32] = "", rest[32] = "";
    int id = -1;
    bool is_one = sscanf(path, "%31[^/]/%d/%31s", kind, &id, rest) >= 2, posts = *method == 'P';
    cJSON *item = is_one ? awx_find(m, kind, id) : NULL;
    if (!is_one)
        return posts ? awx_create(m, kind, body)
                     : awx_list(df_json_at(m->kept, kind), name, "name");
    if (!item)
        return (struct awx_answer){404, NULL, "{\"detail\":\"Not found.\"}"};
    if (df_streq(kind, "job_templates"))
        return posts ? awx_launch(m, id, body) : awx_of_template(m, id, rest);
    if (df_streq(kind, "jobs"))
        return awx_of_job(item, method, rest);
    cJSON_Delete(cJSON_DetachItemViaPointer(df_json_array_at(m->kept, kind), item));
    return (struct awx_answer){204, NULL, ""};
}

static inline cJSON *awx_take_fault(struct awx_memory *m, const char *method, const char *path)
{
    cJSON *fault;
    cJSON_ArrayForEach (fault, m->faults)
        if (df_streq(df_json_str(fault, "method"), method) &&
            df_starts_with(path, df_json_str(fault, "path")))
            return cJSON_DetachItemViaPointer(m->faults, fault);
    return NULL;
}

static inline enum MHD_Result awx_say(struct MHD_Connection *c, const struct awx_answer *a)
{
    DF_FREE char *printed = a->text ? strdup(a->text) : df_json_print_nul(a->body);
    struct MHD_Response *r =
        MHD_create_response_from_buffer(strlen(printed), printed, MHD_RESPMEM_MUST_COPY);
    enum MHD_Result result = MHD_queue_response(c, (unsigned)a->status, r);
    MHD_destroy_response(r);
    return result;
}

/* Under the lock. */
static inline enum MHD_Result awx_answer(struct awx_memory *m, struct MHD_Connection *c,
                                         const char *method, const char *path, const char *text)
{
    const char *auth = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Authorization");
    const char *name = MHD_lookup_connection_value(c, MHD_GET_ARGUMENT_KIND, "name");
    DF_JSON cJSON *body = cJSON_Parse(text);
    DF_FREE char *bearer = df_strf("Bearer %s", m->token);
    (void)!df_json_append(m->asked,
                          df_json_object(DF_STR("method", method), DF_STR("path", path),
                                         DF_STR("token", auth), DF_STR("body", text)),
                          NULL);
    (void)pthread_cond_broadcast(&m->changed);
    DF_JSON cJSON *fault = awx_take_fault(m, method, path);
    int status = fault ? (int)df_json_int(fault, "status", 0) : m->away;
    const char *said = fault ? df_json_str(fault, "body") : NULL;
    struct awx_answer a = {status, NULL, said ? said : "{}"};
    if (!df_streq(auth, bearer))
        a = (struct awx_answer){401, NULL, "{}"};
    else if (status <= 0)
        a = awx_act(m, method, path, name, body);
    enum MHD_Result result = status == AWX_LOST ? MHD_NO : awx_say(c, &a);
    cJSON_Delete(a.body);
    return result;
}

static inline enum MHD_Result awx_handle(void *cls, struct MHD_Connection *c, const char *url,
                                         const char *method, const char *version,
                                         const char *upload, size_t *upload_size, void **con)
{
    struct awx_memory *m = cls;
    struct df_buf *body = *con;
    (void)version;
    if (!body) {
        *con = body = calloc(1, sizeof(*body));
        *body = DF_BUF_INIT(DF_MIB);
        return MHD_YES;
    }
    if (*upload_size) {
        (void)df_buf_add(body, upload, *upload_size);
        *upload_size = 0;
        return MHD_YES;
    }
    if (!df_starts_with(url, "/api/v2/"))
        return MHD_NO;
    (void)pthread_mutex_lock(&m->lock);
    m->waiting++;
    while (m->silent)
        (void)pthread_cond_wait(&m->changed, &m->lock);
    m->waiting--;
    enum MHD_Result result = awx_answer(m, c, method, url + strlen("/api/v2/"), df_buf_str(body));
    (void)pthread_mutex_unlock(&m->lock);
    return result;
}

static inline void awx_done(void *cls, struct MHD_Connection *c, void **con,
                            enum MHD_RequestTerminationCode code)
{
    (void)cls, (void)c, (void)code;
    df_buf_free(*con);
    free(*con);
}

static inline void awx_notify_connection(void *cls, struct MHD_Connection *c, void **con,
                                         enum MHD_ConnectionNotificationCode code)
{
    struct awx_memory *m = cls;
    (void)c, (void)con;
    (void)pthread_mutex_lock(&m->lock);
    m->connections += code == MHD_CONNECTION_NOTIFY_STARTED;
    m->open += code == MHD_CONNECTION_NOTIFY_STARTED ? 1 : -1;
    (void)pthread_cond_broadcast(&m->changed);
    (void)pthread_mutex_unlock(&m->lock);
}

static inline void awx_open(struct awx_memory *m)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    *m = (struct awx_memory){.kept = cJSON_CreateObject(),
                             .asked = cJSON_CreateArray(),
                             .faults = cJSON_CreateArray(),
                             .token = "test-token"};
    (void)pthread_mutex_init(&m->lock, NULL);
    df_cond_init(&m->changed);
    m->daemon = MHD_start_daemon(
        MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION, 0, NULL, NULL, awx_handle,
        m, MHD_OPTION_SOCK_ADDR, (struct sockaddr *)&at, MHD_OPTION_NOTIFY_COMPLETED, awx_done,
        NULL, MHD_OPTION_NOTIFY_CONNECTION, awx_notify_connection, m, MHD_OPTION_END);
    if (!m->daemon)
        abort();
    unsigned port = MHD_get_daemon_info(m->daemon, MHD_DAEMON_INFO_BIND_PORT)->port;
    (void)snprintf(m->url, sizeof(m->url), "http://127.0.0.1:%u", port);
}

static inline void awx_close(struct awx_memory *m)
{
    MHD_stop_daemon(m->daemon);
    cJSON_Delete(m->kept);
    cJSON_Delete(m->asked);
    cJSON_Delete(m->faults);
    cJSON_Delete(m->ignored);
    (void)pthread_cond_destroy(&m->changed);
    (void)pthread_mutex_destroy(&m->lock);
}

#endif
