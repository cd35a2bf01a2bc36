/*
 * redis_server.h - real redis-server processes on free ports, which end with the test. Include
 * behind cmocka.h. They are configured over stdin: a password is in no argument.
 */
#ifndef DF_TEST_REDIS_SERVER_H
#define DF_TEST_REDIS_SERVER_H

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include "common/base/clock.h"
#include "common/base/fs.h"
#include "common/redis/redis.h"

struct redis_server {
    pid_t pid;
    int port;
};

static inline void redis_pause(void)
{
    (void)nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
}

/* Somebody else may take it before it is used: then the server does not start, and the next is
 * tried. */
static inline int redis_free_port(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);
    DF_CLOSE int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, len), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    return ntohs(at.sin_port);
}

static inline bool redis_listens(int port)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    DF_CLOSE int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return connect(fd, (struct sockaddr *)&at, sizeof(at)) == 0;
}

static inline void redis_stop(struct redis_server *s)
{
    if (s->pid > 0) {
        (void)kill(s->pid, SIGKILL);
        (void)waitpid(s->pid, NULL, 0);
    }
    s->pid = 0;
}
#define REDIS_SERVER DF_CLEANUP(redis_stop) struct redis_server

/* In its child process. Sentinels want a file that they can write. */
static inline void redis_execute(int config, const char *dir, const char *file)
{
    DF_FREE char *log = df_fs_join(dir, "redis.log");
    int out = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)dup2(config, 0);
    (void)dup2(out, 1);
    (void)dup2(out, 2);
    if (file)
        execlp("redis-server", "redis-server", file, "--sentinel", (char *)NULL);
    execlp("redis-server", "redis-server", "-", (char *)NULL);
    _exit(127);
}

/* Starts one on this port, and waits until somebody listens. False: it ended. */
static inline bool redis_try(struct redis_server *s, const char *dir, const char *config,
                             bool sentinel)
{
    DF_FREE char *text = df_strf("bind 127.0.0.1\ndir %s\n%s", dir, config);
    DF_FREE char *path = df_strf("%s/conf-%d", dir, s->port);
    assert_int_equal(df_fs_write(path, text, strlen(text), 0600, NULL), 0);
    DF_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    s->pid = fork();
    if (s->pid == 0)
        redis_execute(fd, dir, sentinel ? path : NULL);
    assert_true(s->pid > 0);
    while (!redis_listens(s->port)) {
        if (waitpid(s->pid, NULL, WNOHANG) == s->pid) {
            s->pid = 0;
            return false;
        }
        redis_pause();
    }
    return true;
}

/* config: further lines. The port is a plain one; see redis_start_tls(). */
static inline void redis_start(struct redis_server *s, const char *dir, const char *config)
{
    for (int tries = 0; tries < 5; tries++) {
        s->port = redis_free_port();
        DF_FREE char *all = df_strf("port %d\nsave \"\"\n%s\n", s->port, config);
        if (redis_try(s, dir, all, false))
            return;
    }
    fail_msg("redis-server does not start: see %s/redis.log", dir);
}

static inline void redis_start_sentinel(struct redis_server *s, const char *dir, const char *config)
{
    for (int tries = 0; tries < 5; tries++) {
        s->port = redis_free_port();
        DF_FREE char *all = df_strf("port %d\n%s\n", s->port, config);
        if (redis_try(s, dir, all, true))
            return;
    }
    fail_msg("redis-sentinel does not start: see %s/redis.log", dir);
}

static inline void redis_cleanup(struct df_redis **r)
{
    df_redis_free(*r);
}
#define REDIS DF_CLEANUP(redis_cleanup) struct df_redis

static inline struct df_redis *redis_client(const struct df_redis_options *o)
{
    struct df_redis *r = NULL;
    struct df_err err = {0};
    if (df_redis_new(o, &r, &err) < 0)
        fail_msg("%s", err.message);
    return r;
}

/* A command of words, NULL at its end. */
static inline int redis_say(struct df_redis *r, struct df_redis_answer *ret, struct df_err *err,
                            const char *const *words)
{
    struct df_redis_arg args[16];
    size_t n = 0;
    for (; words[n]; n++)
        args[n] = DF_REDIS_TEXT(words[n]);
    return df_redis_command(r, args, n, ret, err);
}
#define SAY(r, ret, err, ...) redis_say((r), (ret), (err), (const char *const[]){__VA_ARGS__, NULL})

/* The same, which must not fail; *ret may be NULL. */
#define OK(r, ret, ...)                                                                            \
    do {                                                                                           \
        struct df_err err_ = {0};                                                                  \
        if (SAY((r), (ret), &err_, __VA_ARGS__) < 0)                                               \
            fail_msg("%s", err_.message);                                                          \
    } while (0)

#endif
