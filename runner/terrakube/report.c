/* Operations of backend.h for Terrakube; the table is at the end. */
#include "runner/terrakube/report.h"

#include "common/base/exit.h"
#include "common/base/fs.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "runner/report/backend.h"
#include "runner/report/spool.h"
#include "runner/terrakube/document.h"
#include "runner/terrakube/outcome.h"

/* The rows of the UI are not worth more. */
enum { CONTEXT_MS = 5000 };

#define LOG_NAME "output" /* beside the spools of the service's report */

struct terrakube_report {
    struct df_report base;
    struct df_terrakube *t;    /* borrowed */
    struct df_report *service; /* owned; or NULL */
    struct df_spool log;
    char *log_path, *secret_dir;
};

static const volatile bool never_over = false;

static struct terrakube_report *report_of(struct df_report *r)
{
    return (struct terrakube_report *)r;
}

static void release_own(struct terrakube_report *k)
{
    df_spool_close(&k->log);
    free(k->log_path);
    free(k->secret_dir);
    free(k);
}

static void terrakube_release(struct df_report *r)
{
    df_report_free(report_of(r)->service);
    release_own(report_of(r));
}

static int terrakube_claim(struct df_report *r, const volatile bool *stop, int64_t pending_ms,
                           cJSON **ret, struct df_err *err)
{
    (void)stop, (void)pending_ms;
    struct terrakube_report *k = report_of(r);
    DF_SECRET_JSON cJSON *doc = NULL;
    if (df_terrakube_document(k->t, k->secret_dir, &doc, err) < 0)
        return -1;
    k->t->document = doc;
    *ret = DF_TAKE(doc);
    return 0;
}

/* A rejected job keeps its status, so the runner does not see when the API has deleted its stream,
 * and with it lines that were sent before. Terrakube's own executor sends none either. */
static bool is_streamed(const struct terrakube_report *k)
{
    return k->t->refused || k->t->payload->type != DF_TERRAKUBE_REJECTED;
}

static int append_own(struct terrakube_report *k, enum df_stream stream, const char *bytes,
                      size_t n, struct df_err *err)
{
    if (stream == DF_STREAM_EVENTS) {
        if (k->t->context)
            df_terrakube_context_events(k->t->context, bytes, n);
        return 0;
    }
    if (is_streamed(k))
        df_terrakube_stream_add(k->t->stream, bytes, n);
    return df_spool_append(&k->log, bytes, n, err);
}

static int terrakube_append(struct df_report *r, enum df_stream stream, const char *bytes, size_t n,
                            struct df_err *err)
{
    struct terrakube_report *k = report_of(r);
    int failed = append_own(k, stream, bytes, n, err);
    if (k->service && k->service->backend->append(k->service, stream, bytes, n, err) < 0)
        return -1;
    return failed;
}

void df_terrakube_report_entry(struct df_report *r, const char *text)
{
    struct terrakube_report *k = report_of(r);
    DF_FREE char *line = df_strf("%s\n", text);
    struct df_err why = {0};
    df_terrakube_stream_entry(k->t->stream, text, strlen(text));
    if (!line || df_spool_append(&k->log, line, strlen(line), &why) < 0 ||
        (k->service && df_report_log(k->service, line, strlen(line), &why) < 0))
        df_warn("the saved output lacks a banner: %s", why.message);
}

/* Terrakube knows only `running` (outcome.h). */
static void terrakube_progress(struct df_report *r, const cJSON *body, bool hurries)
{
    if (report_of(r)->service)
        df_report_progress(report_of(r)->service, body, hurries);
}

static int no_artifact(const char *name, struct df_err *err)
{
    return df_fail(err, DF_ERR_USER, "Terrakube has no artifact \"%s\"", name);
}

static int terrakube_put_artifact(struct df_report *r, const char *name, const char *path,
                                  int64_t deadline_ms, struct df_err *err)
{
    (void)r, (void)path, (void)deadline_ms;
    return no_artifact(name, err);
}

static int terrakube_get_artifact(struct df_report *r, const char *name, const char *to_path,
                                  int64_t deadline_ms, struct df_err *err)
{
    (void)r, (void)to_path, (void)deadline_ms;
    return no_artifact(name, err);
}

static int tell_terrakube(struct terrakube_report *k, const cJSON *result, struct df_err *err)
{
    df_terrakube_watch_free(DF_TAKE(k->t->watch));
    k->t->waits.output = NULL; /* what comes now is not in the saved output any more */
    if (k->t->is_told)
        return 0;
    const char *why = df_json_str(result, "message");
    if (k->t->is_unheard) /* away, it refused, or there is no token: the step's message knows */
        return df_fail(err, DF_ERR_RETRY, "Terrakube's API did not give the job: %s",
                       why ? why : "no reason is known");
    /* While the job still runs: later the API may take none. */
    df_terrakube_context_free(DF_TAKE(k->t->context), CONTEXT_MS);
    df_spool_finish(&k->log);
    bool succeeded = df_json_int(result, "exitCode", DF_EXIT_FAILURE) == DF_EXIT_OK;
    return df_terrakube_tell_end(k->t, succeeded, k->log_path, err);
}

/* It warns of an end that Terrakube does not know. */
static int tell_service(struct terrakube_report *k, const cJSON *result, const char *untold,
                        struct df_err *err)
{
    DF_JSON cJSON *copy = untold ? cJSON_Duplicate(result, true) : NULL;
    if (untold && (!copy || df_json_set_str(copy, "untold", untold, err) < 0))
        return df_fail_oom(err);
    return df_report_result(k->service, copy ? copy : result, err);
}

static int terrakube_result(struct df_report *r, const cJSON *result, struct df_err *err)
{
    struct terrakube_report *k = report_of(r);
    struct df_err why = {0};
    int failed = tell_terrakube(k, result, &why);
    if (k->service && tell_service(k, result, failed < 0 ? why.message : NULL, err) < 0)
        return -1;
    return failed ? df_err_pass(err, &why) : 0;
}

static const struct df_report_backend backend = {.free = terrakube_release,
                                                 .claim = terrakube_claim,
                                                 .append = terrakube_append,
                                                 .progress = terrakube_progress,
                                                 .put_artifact = terrakube_put_artifact,
                                                 .get_artifact = terrakube_get_artifact,
                                                 .result = terrakube_result};

int df_terrakube_report_new(struct df_terrakube *t, const struct df_dirs *dirs,
                            struct df_report *service, struct df_report **ret, struct df_err *err)
{
    struct terrakube_report *k = calloc(1, sizeof *k);
    if (!k)
        return df_fail_oom(err);
    k->base = (struct df_report){.backend = &backend, .over = &never_over, .over_fd = -1};
    k->t = t;
    k->log = DF_SPOOL_CLOSED;
    k->log_path = df_fs_join(dirs->spool, LOG_NAME);
    k->secret_dir = strdup(dirs->secret);
    int failed = k->log_path && k->secret_dir ? 0 : df_fail_oom(err);
    if (failed || df_spool_open(&k->log, dirs->spool, LOG_NAME, false, DF_LIMIT_STREAM, err) < 0) {
        release_own(k);
        return -1;
    }
    k->service = service;
    *ret = &k->base;
    return 0;
}
