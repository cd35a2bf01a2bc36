/*
 * The report backend of a step without a spawner: log, events, progress, artifacts and result are
 * files of one directory. The table at the end names the operations of backend.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "common/base/fs.h"
#include "common/base/limits.h"
#include "runner/report/backend.h"
#include "runner/report/spool.h"

struct directory_report {
    struct df_report base;
    char *path;
    struct df_spool streams[DF_STREAMS];
    struct df_spool progress;
};

static const volatile bool never_over = false;

static struct directory_report *directory_of(struct df_report *r)
{
    return (struct directory_report *)r;
}

static void directory_release(struct df_report *r)
{
    struct directory_report *d = directory_of(r);
    for (int i = 0; i < DF_STREAMS; i++)
        df_spool_close(&d->streams[i]);
    df_spool_close(&d->progress);
    free(d->path);
    free(d);
}

static int directory_claim(struct df_report *r, const volatile bool *stop, int64_t pending_ms,
                           cJSON **ret, struct df_err *err)
{
    (void)r, (void)stop, (void)pending_ms, (void)ret;
    return df_fail(err, DF_ERR_USER, "a report directory has no step to claim");
}

static int directory_append(struct df_report *r, enum df_stream stream, const char *bytes, size_t n,
                            struct df_err *err)
{
    return df_spool_append(&directory_of(r)->streams[stream], bytes, n, err);
}

static void directory_progress(struct df_report *r, const cJSON *body, bool hurries)
{
    (void)hurries;
    DF_FREE char *text = df_json_print(body);
    DF_FREE char *line = text ? df_strf("%s\n", text) : NULL;
    struct df_err ignored;
    if (line && df_spool_append(&directory_of(r)->progress, line, strlen(line), &ignored) < 0)
        return; /* by contract not an error */
}

/* to: for the message. */
static int copy_synced(int in, int out, const char *to, struct df_err *err)
{
    if (df_fs_copy(in, out, NULL, err) < 0)
        return df_err_wrap(err, "copy to %s", to);
    return fsync(out) < 0 ? df_fail_errno(err, errno, "sync %s", to) : 0;
}

static int directory_put_artifact(struct df_report *r, const char *name, const char *path,
                                  int64_t deadline_ms, struct df_err *err)
{
    (void)deadline_ms;
    DF_FREE char *to = df_fs_join(directory_of(r)->path, name);
    DF_CLOSE int in = -1;
    if (df_check_alloc(to, err) < 0 || df_fs_open_plain(path, O_RDONLY, 0, &in, err) < 0)
        return -1;
    DF_CLOSE int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    return out < 0 ? df_fail_errno(err, errno, "create %s", to) : copy_synced(in, out, to, err);
}

static int directory_get_artifact(struct df_report *r, const char *name, const char *to_path,
                                  int64_t deadline_ms, struct df_err *err)
{
    (void)deadline_ms;
    DF_FREE char *from = df_fs_join(directory_of(r)->path, name);
    if (!from)
        return df_fail_oom(err);
    if (!df_fs_exists(from))
        return df_fail_reason(err, DF_ERR_NOT_FOUND, "PlanMissing",
                              "%s does not exist: plan into this directory first", from);
    DF_CLOSE int in = open(from, O_RDONLY | O_CLOEXEC);
    DF_CLOSE int out = -1;
    if (in < 0)
        return df_fail_errno(err, errno, "open %s", from);
    if (df_fs_open_plain(to_path, O_WRONLY | O_CREAT | O_TRUNC, 0600, &out, err) < 0)
        return -1;
    return copy_synced(in, out, to_path, err);
}

static int sync_stream(struct df_spool *s, struct df_err *err)
{
    df_spool_finish(s);
    return fsync(s->fd) < 0 ? df_fail_errno(err, errno, "sync the log") : 0;
}

static int directory_result(struct df_report *r, const cJSON *result_doc, struct df_err *err)
{
    struct directory_report *d = directory_of(r);
    for (int i = 0; i < DF_STREAMS; i++) {
        if (sync_stream(&d->streams[i], err) < 0)
            return -1;
    }
    DF_JSON cJSON *doc = df_report_result_document(result_doc, d->streams[DF_STREAM_LOG].end,
                                                   d->streams[DF_STREAM_EVENTS].end);
    DF_FREE char *text = doc ? df_json_print_pretty(doc) : NULL;
    DF_FREE char *path = df_fs_join(d->path, "result.json");
    if (!text || !path)
        return df_fail_oom(err);
    return df_fs_replace(path, text, strlen(text), 0600, err);
}

static const struct df_report_backend backend = {.free = directory_release,
                                                 .claim = directory_claim,
                                                 .append = directory_append,
                                                 .progress = directory_progress,
                                                 .put_artifact = directory_put_artifact,
                                                 .get_artifact = directory_get_artifact,
                                                 .result = directory_result};

int df_report_to_directory(const char *directory, struct df_report **ret, struct df_err *err)
{
    struct directory_report *d = calloc(1, sizeof *d);
    if (!d)
        return df_fail_oom(err);
    d->base = (struct df_report){.backend = &backend, .over = &never_over, .over_fd = -1};
    d->streams[DF_STREAM_LOG] = d->streams[DF_STREAM_EVENTS] = d->progress = DF_SPOOL_CLOSED;
    d->path = strdup(directory);
    int failed = df_check_alloc(d->path, err);
    if (failed ||
        df_spool_open(&d->streams[DF_STREAM_LOG], directory, "log", false, DF_LIMIT_STREAM, err) <
            0 ||
        df_spool_open(&d->streams[DF_STREAM_EVENTS], directory, "events", true, DF_LIMIT_STREAM,
                      err) < 0 ||
        df_spool_open(&d->progress, directory, "progress", true, DF_LIMIT_DOCUMENT, err) < 0) {
        directory_release(&d->base);
        return -1;
    }
    *ret = &d->base;
    return 0;
}
