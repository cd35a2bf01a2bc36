#include "common/http/download.h"

#include <errno.h>
#include <poll.h>

#include "common/base/fs.h"

enum { TRIES = 3, PAUSE_MS = 500, IDLE_MS = 30000 };

/* Where a body goes. A repeated download starts from the first byte. */
struct sink {
    const struct df_download *download;
    int64_t bytes;
    struct df_err err;
};

static int on_data(void *arg, const char *bytes, size_t n)
{
    struct sink *sink = arg;
    sink->bytes += (int64_t)n;
    if (sink->bytes > sink->download->max_bytes)
        return df_fail(&sink->err, DF_ERR_LIMIT, "it has more than %lld bytes",
                       (long long)sink->download->max_bytes);
    return df_fs_write_all(sink->download->fd, bytes, n, &sink->err);
}

static int download_once(struct df_http *http, struct sink *sink, struct df_http_response *ret,
                         struct df_err *err)
{
    const struct df_download *d = sink->download;
    struct df_http_request req = DF_HTTP_REQUEST("GET", d->url);
    req.timeout_ms = -1;
    req.idle_timeout_ms = IDLE_MS;
    req.stop = d->stop;
    if (d->fd >= 0) {
        sink->bytes = 0;
        if (ftruncate(d->fd, 0) < 0 || lseek(d->fd, 0, SEEK_SET) < 0)
            return df_fail_errno(err, errno, "empty the download");
        req.on_data = on_data;
        req.arg = sink;
    }
    if (df_http_send(http, &req, ret, err) < 0)
        return -1;
    if (ret->stopped)
        return df_err_pass(err, &sink->err);
    return df_http_check(ret, "answer", err);
}

int df_download(struct df_http *http, const struct df_download *d, struct df_buf *ret,
                struct df_err *err)
{
    struct sink sink = {.download = d};
    for (int i = 0;; i++) {
        DF_HTTP_RESPONSE struct df_http_response answer = {0};
        struct df_err why = {0};
        if (download_once(http, &sink, &answer, &why) == 0) {
            if (ret) {
                *ret = answer.body;
                answer.body = DF_BUF_INIT(0);
            }
            return 0;
        }
        if (why.cls != DF_ERR_RETRY || i + 1 == TRIES || df_stopped(d->stop)) {
            (void)df_err_pass(err, &why);
            return df_err_wrap(err, "%s", d->url);
        }
        (void)poll(NULL, 0, PAUSE_MS << i);
    }
}
