/*
 * A process run to its end: start with pipes, follow until it has ended (collecting output,
 * watching deadline and stop), then kill the rest of its group and reap. Read df_process_run() at
 * the end first.
 */
#include "common/process/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include "common/base/clock.h"

/* READS_AT_ONCE * READ_SIZE is more than a pipe holds, and bounded: the deadline is checked even
 * during a flood of output. */
enum { STOP_POLL_MS = 100, READ_SIZE = 16384, READS_AT_ONCE = 16 };

/* stdout or stderr, collected. */
struct stream {
    struct df_buf *to; /* NULL: not collected */
    bool tail;         /* keep the end instead of failing at the cap */
    int fd;            /* read end, -1 once it is closed */
};

struct run {
    struct df_process process;
    struct stream out, err_tail;
    const volatile bool *stop;
    int64_t deadline_ms; /* -1: none */
};

static void add_tail(struct df_buf *b, const char *bytes, size_t n)
{
    if (n > b->max) {
        bytes += n - b->max;
        n = b->max;
    }
    if (b->len > b->max - n)
        df_buf_consume(b, b->len - (b->max - n));
    (void)df_buf_add(b, bytes, n);
}

/* Reads available bytes without waiting; closes an ended stream. */
static int drain_stream(struct stream *s, struct df_err *err)
{
    char bytes[READ_SIZE];
    for (int reads = 0; s->fd >= 0 && reads < READS_AT_ONCE; reads++) {
        ssize_t n = read(s->fd, bytes, sizeof(bytes));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return 0;
        if (n < 0)
            return df_fail_errno(err, errno, "read output");
        if (n == 0) {
            (void)close(s->fd);
            s->fd = -1;
        } else if (s->tail) {
            add_tail(s->to, bytes, (size_t)n);
        } else {
            (void)df_buf_add(s->to, bytes, (size_t)n);
        }
        if (df_buf_check(s->to, err) < 0)
            return df_err_wrap(err, "read output");
    }
    return 0;
}

/* Timeout for poll(2) in milliseconds; -1: none. */
static int64_t next_wake(const struct run *r)
{
    int64_t ms = r->stop ? STOP_POLL_MS : -1;
    if (r->deadline_ms < 0)
        return ms;
    int64_t left = r->deadline_ms - df_mono_ms();
    left = left < 0 ? 0 : left;
    return ms < 0 || left < ms ? left : ms;
}

/* Waits for the end of the process without reaping it: until then no other group can have its
 * id. */
static int run_follow(struct run *r, struct df_err *err)
{
    for (;;) {
        struct pollfd fds[] = {{.fd = r->process.pidfd, .events = POLLIN},
                               {.fd = r->out.fd, .events = POLLIN},
                               {.fd = r->err_tail.fd, .events = POLLIN}};
        int64_t wake = next_wake(r);
        int n = poll(fds, DF_ARRAY_SIZE(fds), wake > INT32_MAX ? INT32_MAX : (int)wake);
        if (n < 0 && errno != EINTR)
            return df_fail_errno(err, errno, "poll");
        if (drain_stream(&r->out, err) < 0 || drain_stream(&r->err_tail, err) < 0)
            return -1;
        if (n > 0 && fds[0].revents)
            return 0;
        if (df_stopped(r->stop))
            return df_fail(err, DF_ERR_RETRY, "stopped");
        if (r->deadline_ms >= 0 && df_mono_ms() >= r->deadline_ms)
            return df_fail(err, DF_ERR_RETRY, "timed out");
    }
}

static int collect_into(struct stream *s, int *child_fd, struct df_err *err)
{
    if (!s->to)
        return 0;
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) < 0)
        return df_fail_errno(err, errno, "make a pipe");
    s->fd = fds[0];
    *child_fd = fds[1];
    if (fcntl(s->fd, F_SETFL, O_NONBLOCK) < 0)
        return df_fail_errno(err, errno, "make a pipe");
    return 0;
}

static int run_start(struct run *r, const struct df_process_options *asked, struct df_err *err)
{
    struct df_process_options o = *asked;
    DF_CLOSE int out = -1;
    DF_CLOSE int err_fd = -1;
    if (collect_into(&r->out, &out, err) < 0 || collect_into(&r->err_tail, &err_fd, err) < 0)
        return -1;
    o.stdout_fd = out >= 0 ? out : o.stdout_fd;
    o.stderr_fd = err_fd >= 0 ? err_fd : o.stderr_fd;
    return df_process_spawn(&o, &r->process, err);
}

static int run_finish(struct run *r, int followed, int *ret_code, struct df_err *err)
{
    (void)kill(-r->process.pid, SIGKILL);
    bool exited = false;
    int status = 0;
    struct df_err wait_err;
    if (df_process_wait(&r->process, -1, &exited, &status, &wait_err) < 0) {
        if (followed == 0)
            (void)df_err_pass(err, &wait_err);
        return -1;
    }
    if (followed < 0)
        return -1;
    *ret_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return 0;
}

static void close_run(struct run *r)
{
    if (r->out.fd >= 0)
        (void)close(r->out.fd);
    if (r->err_tail.fd >= 0)
        (void)close(r->err_tail.fd);
    df_process_close(&r->process);
}

int df_process_run(const struct df_process_options *o, int64_t timeout_ms, struct df_buf *out,
                   struct df_buf *err_tail, int *ret_code, struct df_err *err)
{
    DF_CLEANUP(close_run)
    struct run r = {
        .process = DF_PROCESS_INIT,
        .out = {.to = out, .fd = -1},
        .err_tail = {.to = err_tail, .tail = true, .fd = -1},
        .stop = o->stop,
        .deadline_ms = timeout_ms < 0 ? -1 : df_mono_ms() + timeout_ms,
    };
    if (run_start(&r, o, err) < 0)
        return -1;
    int followed = run_follow(&r, err);
    if (followed < 0)
        (void)df_err_wrap(err, "%s", o->argv[0]);
    return run_finish(&r, followed, ret_code, err);
}
