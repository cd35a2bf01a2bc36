#include "runner/terrakube/watch.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>

#include "common/base/clock.h"
#include "common/terrakube/api.h"
#include "runner/terrakube/state.h"

/* A GET of the job each time: a cancel takes effect within it. The lock lives five minutes. */
enum { WATCH_MS = 3000, BEAT_EVERY = 20 };

struct df_terrakube_watch {
    const struct df_terrakube_settings *settings; /* borrowed, as are the next two */
    const struct df_terrakube_payload *payload;
    struct df_stop *stop;
    struct df_terrakube_api *api;
    pthread_t thread;
    bool is_started;
    int quit_fd;        /* readable: the thread must end */
    volatile bool quit; /* the same for its request, atomic */
    /* Atomic: counts commands that take the lock, and their ends: odd while one runs. */
    unsigned command;
    struct df_terrakube_beats beats; /* the thread's */
    bool lost_lock;                  /* atomic: why the step was stopped */
    int64_t began_us, ended_us;      /* of the last such command; the main thread's */
};

static bool is_cancelled(const struct df_terrakube_watch *w)
{
    struct df_terrakube_job job = {0};
    if (df_terrakube_api_job(w->api, &job, NULL) < 0)
        return false;
    bool cancelled = job.status == DF_TERRAKUBE_CANCELLED;
    df_terrakube_job_free(&job);
    return cancelled;
}

/* Without a command nobody here holds the lock: a beat would keep one alive that a command left, or
 * that is somebody else's. A command that ended during the beat says nothing. */
static bool has_lost_lock(struct df_terrakube_watch *w)
{
    struct df_err why = {0};
    unsigned command = __atomic_load_n(&w->command, __ATOMIC_ACQUIRE);
    if (command % 2 == 0)
        return false;
    bool missed = df_terrakube_state_beat(w->settings, w->payload, &why) < 0;
    if (missed && why.cls != DF_ERR_CONFLICT)
        return false; /* the API is away: it tells nobody else that the lock is free */
    if (command != __atomic_load_n(&w->command, __ATOMIC_ACQUIRE))
        command = 0;
    return df_terrakube_beats_lost(&w->beats, command, missed);
}

void df_terrakube_watch_command(struct df_terrakube_watch *w, bool runs)
{
    if (!w || runs != (__atomic_load_n(&w->command, __ATOMIC_RELAXED) % 2 == 0))
        return;
    *(runs ? &w->began_us : &w->ended_us) = df_real_us();
    (void)__atomic_add_fetch(&w->command, 1, __ATOMIC_RELEASE);
}

bool df_terrakube_watch_ran(const struct df_terrakube_watch *w, int64_t real_us)
{
    bool ended = w && __atomic_load_n(&w->command, __ATOMIC_RELAXED) % 2 == 0;
    return ended && real_us >= w->began_us && real_us <= w->ended_us;
}

bool df_terrakube_watch_lost_lock(const struct df_terrakube_watch *w)
{
    return w && __atomic_load_n(&w->lost_lock, __ATOMIC_RELAXED);
}

static void *watch_job(void *arg)
{
    struct df_terrakube_watch *w = arg;
    struct pollfd quit = {.fd = w->quit_fd, .events = POLLIN};
    for (int n = 1;; n++) {
        int ready = poll(&quit, 1, WATCH_MS);
        if (ready > 0 || (ready < 0 && errno != EINTR))
            break;
        bool cancelled = w->settings->acknowledges && is_cancelled(w);
        bool lost = !cancelled && n % BEAT_EVERY == 0 && has_lost_lock(w);
        if (cancelled || lost) {
            __atomic_store_n(&w->lost_lock, lost, __ATOMIC_RELAXED);
            df_stop_now(w->stop, DF_STOP_OVER);
            break;
        }
    }
    return NULL;
}

int df_terrakube_watch_new(const struct df_terrakube_settings *s,
                           const struct df_terrakube_payload *p, struct df_stop *stop,
                           struct df_terrakube_watch **ret, struct df_err *err)
{
    struct df_terrakube_watch *w = calloc(1, sizeof *w);
    if (!w)
        return df_fail_oom(err);
    *w = (struct df_terrakube_watch){.settings = s, .payload = p, .stop = stop};
    w->quit_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int failed = w->quit_fd < 0 ? df_fail_errno(err, errno, "watch the job")
                                : df_terrakube_api_new(s, p, 0, &w->quit, &w->api, err);
    int error = failed ? 0 : pthread_create(&w->thread, NULL, watch_job, w);
    w->is_started = !failed && !error;
    if (!w->is_started) {
        df_terrakube_watch_free(w);
        return failed ? failed : df_fail_errno(err, error, "start the thread that watches the job");
    }
    *ret = w;
    return 0;
}

void df_terrakube_watch_free(struct df_terrakube_watch *w)
{
    if (!w)
        return;
    if (w->is_started) {
        __atomic_store_n(&w->quit, true, __ATOMIC_RELEASE);
        (void)eventfd_write(w->quit_fd, 1);
        (void)pthread_join(w->thread, NULL);
    }
    df_terrakube_api_free(w->api);
    if (w->quit_fd >= 0)
        (void)close(w->quit_fd);
    free(w);
}
