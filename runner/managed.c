#include "runner/managed.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>

#include "common/base/backoff.h"
#include "common/base/limits.h"
#include "common/http/download.h"

enum { TRIES_MAX = 5, PAUSE_MIN_MS = 250, PAUSE_MAX_MS = 4000 };

static int open_client(const cJSON *state, struct df_http **ret, struct df_err *err)
{
    const struct df_http_options options = {.ca_pem = df_json_str(state, "caCertificate"),
                                            .user = df_json_str(state, "username"),
                                            .password = df_json_str(state, "password"),
                                            .proxy = ""};
    return df_http_new(&options, ret, err);
}

int df_managed_get(const struct df_context *c, const cJSON *state, struct df_buf *ret,
                   struct df_err *err)
{
    const struct df_download d = {
        .url = df_json_str(state, "address"), .fd = -1, .stop = df_stop_flag(c->stop)};
    DF_HTTP struct df_http *http = NULL;
    struct df_err why = {0};
    if (open_client(state, &http, err) < 0)
        return -1;
    if (df_download(http, &d, ret, &why) == 0 || why.cls == DF_ERR_NOT_FOUND)
        return 0;
    return df_err_pass(err, &why);
}

/* Class RETRY: the same request may succeed later. */
static int put_once(struct df_http *http, const char *url, int fd, size_t size, struct df_err *err)
{
    DF_HTTP_RESPONSE struct df_http_response answer = {0};
    struct df_http_request request = DF_HTTP_REQUEST("POST", url);
    request.body_fd = fd;
    request.body_len = size;
    request.timeout_ms = -1;
    request.idle_timeout_ms = DF_TIMEOUT_REQUEST_MS;
    if (df_http_send(http, &request, &answer, err) < 0)
        return -1;
    return df_http_check(&answer, "store the state", err);
}

static bool pause_before(const struct df_context *c, int failures)
{
    struct pollfd stop = {.fd = df_stop_fd(c->stop), .events = POLLIN};
    (void)poll(&stop, 1, (int)df_backoff_pause(PAUSE_MIN_MS, PAUSE_MAX_MS, failures));
    return df_stop_cause(c->stop) == DF_STOP_NONE;
}

int df_managed_put(const struct df_context *c, const cJSON *state, const char *path,
                   struct df_err *err)
{
    const char *url = df_json_str(state, "address");
    DF_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    DF_HTTP struct df_http *http = NULL;
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0)
        return df_fail_errno(err, errno, "open %s", path);
    if (!url)
        return df_fail_reason(err, DF_ERR_USER, "InvalidStep", "moveTo.address: is required");
    if (open_client(state, &http, err) < 0)
        return -1;
    for (int tries = 1;; tries++) {
        struct df_err why = {0};
        if (put_once(http, url, fd, (size_t)st.st_size, &why) == 0)
            return 0;
        if (why.cls != DF_ERR_RETRY || tries == TRIES_MAX || !pause_before(c, tries))
            return df_err_pass(err, &why);
    }
}
