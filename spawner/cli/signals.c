#include "spawner/cli/signals.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "common/base/clock.h"

/* nohup has SIGHUP ignored; a signal that is blocked would come to a descriptor all the same. */
static bool is_ignored(int number)
{
    struct sigaction now;
    return sigaction(number, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}

static sigset_t the_three(void)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGTERM);
    if (!is_ignored(SIGHUP))
        (void)sigaddset(&set, SIGHUP);
    return set;
}

int df_signals_open(int *ret_fd, struct df_err *err)
{
    sigset_t set = the_three();
    int e = pthread_sigmask(SIG_BLOCK, &set, NULL);
    if (e)
        return df_fail_errno(err, e, "block signals");
    int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0)
        return df_fail_errno(err, errno, "signalfd");
    *ret_fd = fd;
    return 0;
}

int df_signals_take(int fd)
{
    struct signalfd_siginfo info;
    return read(fd, &info, sizeof(info)) == (ssize_t)sizeof(info) ? (int)info.ssi_signo : 0;
}

void df_signals_release(void)
{
    sigset_t set = the_three();
    (void)pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

/* A signal to the process comes to the only thread that does not block it. */
static void *drop_then_release(void *arg)
{
    sigset_t set = the_three();
    (void)arg;
    for (int64_t end = df_mono_ms() + DF_SIGNALS_SAME_MS, left; (left = end - df_mono_ms()) > 0;) {
        const struct timespec rest = {.tv_sec = left / 1000, .tv_nsec = left % 1000 * 1000000};
        (void)sigtimedwait(&set, NULL, &rest);
    }
    df_signals_release();
    for (;;)
        (void)pause();
    return NULL;
}

void df_signals_release_later(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, drop_then_release, NULL) == 0)
        (void)pthread_detach(thread);
    else
        df_signals_release(); /* better too early than never */
}
