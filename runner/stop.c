/*
 * stop.c - one thread polls the causes: a signal, the step's end elsewhere, the timeout.
 * df_stop_now() takes the first cause and ignores later ones: it sets the flag and makes stopped_fd
 * readable. Signals are blocked and come through a signalfd, so there is no signal handler.
 */
#include "runner/stop.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>

struct df_stop {
    int signal_fd, timer_fd, over_fd; /* the causes; over_fd is borrowed */
    int quit_fd;                      /* readable: the thread must end */
    int stopped_fd;                   /* readable: there is a cause */
    volatile bool flag;               /* atomic */
    int cause;                        /* enum df_stop_cause, atomic, set before the flag */
    pthread_t thread;
    bool started;
};

void df_stop_now(struct df_stop *s, enum df_stop_cause cause)
{
    int none = DF_STOP_NONE;
    if (!__atomic_compare_exchange_n(&s->cause, &none, (int)cause, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE))
        return;
    __atomic_store_n(&s->flag, true, __ATOMIC_RELEASE);
    (void)eventfd_write(s->stopped_fd, 1);
}

static void *wait_for_cause(void *arg)
{
    struct df_stop *s = arg;
    struct pollfd fds[] = {{.fd = s->quit_fd, .events = POLLIN},
                           {.fd = s->signal_fd, .events = POLLIN},
                           {.fd = s->over_fd, .events = POLLIN},
                           {.fd = s->timer_fd, .events = POLLIN}};
    static const enum df_stop_cause causes[] = {DF_STOP_NONE, DF_STOP_SIGNAL, DF_STOP_OVER,
                                                DF_STOP_TIMEOUT};
    while (poll(fds, DF_ARRAY_SIZE(fds), -1) < 0 && errno == EINTR)
        ;
    for (size_t i = 0; i < DF_ARRAY_SIZE(fds); i++) {
        if (!fds[i].revents)
            continue;
        struct signalfd_siginfo taken;
        if (causes[i] == DF_STOP_SIGNAL)
            (void)!read(s->signal_fd, &taken, sizeof taken);
        if (causes[i] != DF_STOP_NONE)
            df_stop_now(s, causes[i]);
        break;
    }
    return NULL;
}

static int open_fds(struct df_stop *s, const sigset_t *signals, struct df_err *err)
{
    s->signal_fd = signalfd(-1, signals, SFD_CLOEXEC | SFD_NONBLOCK);
    s->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    s->quit_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    s->stopped_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (s->signal_fd < 0 || s->timer_fd < 0 || s->quit_fd < 0 || s->stopped_fd < 0)
        return df_fail_errno(err, errno, "watch for signals");
    return 0;
}

static sigset_t stop_signals(void)
{
    sigset_t signals;
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGTERM);
    (void)sigaddset(&signals, SIGINT);
    (void)sigaddset(&signals, SIGHUP);
    return signals;
}

void df_stop_block(void)
{
    const sigset_t signals = stop_signals();
    (void)pthread_sigmask(SIG_BLOCK, &signals, NULL);
}

static int start_thread(struct df_stop *s, struct df_err *err)
{
    int error = pthread_create(&s->thread, NULL, wait_for_cause, s);
    s->started = error == 0;
    return error ? df_fail_errno(err, error, "start the thread for signals") : 0;
}

static void end_thread(struct df_stop *s)
{
    if (!s->started)
        return;
    (void)eventfd_write(s->quit_fd, 1);
    (void)pthread_join(s->thread, NULL);
    s->started = false;
}

int df_stop_new(int over_fd, struct df_stop **ret, struct df_err *err)
{
    struct df_stop *s = calloc(1, sizeof *s);
    if (!s)
        return df_fail_oom(err);
    *s = (struct df_stop){.signal_fd = -1, .timer_fd = -1, .quit_fd = -1, .stopped_fd = -1};
    s->over_fd = over_fd;
    const sigset_t signals = stop_signals();
    df_stop_block();
    if (open_fds(s, &signals, err) < 0 || start_thread(s, err) < 0) {
        df_stop_free(s);
        return -1;
    }
    *ret = s;
    return 0;
}

int df_stop_renew(struct df_stop *s, int over_fd, struct df_err *err)
{
    const struct itimerspec never = {0};
    eventfd_t count;
    end_thread(s);
    (void)eventfd_read(s->quit_fd, &count);
    if (df_stop_cause(s) == DF_STOP_SIGNAL)
        return 0;
    if (timerfd_settime(s->timer_fd, 0, &never, NULL) < 0)
        DF_BUG("a timer that is not set");
    (void)eventfd_read(s->stopped_fd, &count); /* not readable without a cause: it does not wait */
    __atomic_store_n(&s->cause, (int)DF_STOP_NONE, __ATOMIC_RELEASE);
    __atomic_store_n(&s->flag, false, __ATOMIC_RELEASE);
    s->over_fd = over_fd;
    return start_thread(s, err);
}

void df_stop_free(struct df_stop *s)
{
    if (!s)
        return;
    end_thread(s);
    const int fds[] = {s->signal_fd, s->timer_fd, s->quit_fd, s->stopped_fd};
    for (size_t i = 0; i < DF_ARRAY_SIZE(fds); i++) {
        if (fds[i] >= 0)
            (void)close(fds[i]);
    }
    free(s);
}

void df_stop_after(struct df_stop *s, int64_t ms)
{
    if (ms < 1)
        ms = 1; /* zero would mean never */
    const struct itimerspec at = {
        .it_value = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}};
    if (timerfd_settime(s->timer_fd, 0, &at, NULL) < 0)
        DF_BUG("timer of %lld ms", (long long)ms);
}

enum df_stop_cause df_stop_cause(const struct df_stop *s)
{
    return (enum df_stop_cause)__atomic_load_n(&s->cause, __ATOMIC_ACQUIRE);
}

const volatile bool *df_stop_flag(const struct df_stop *s)
{
    return &s->flag;
}

int df_stop_fd(const struct df_stop *s)
{
    return s->stopped_fd;
}
