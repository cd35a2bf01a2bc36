/*
 * killed.h - a child that works until it is shot: what it acknowledged must be there.
 *
 * The child calls acknowledge(n) after each durable step; killed_child() waits for a random number
 * of acknowledgements, kills the child with SIGKILL and returns the last number it acknowledged.
 */
#ifndef DF_TEST_KILLED_H
#define DF_TEST_KILLED_H

#include <signal.h>
#include <sys/wait.h>

#include "common/base/clock.h"

struct child {
    int pipe; /* the child's end */
    const char *dir;
};

static void acknowledge(const struct child *c, uint32_t number)
{
    if (write(c->pipe, &number, sizeof(number)) != sizeof(number))
        _exit(1);
}

/* Every whole number that is still in the pipe; the last one wins. */
static uint32_t last_acknowledged(int fd, uint32_t so_far)
{
    uint32_t number;
    while (read(fd, &number, sizeof(number)) == sizeof(number))
        so_far = number;
    return so_far;
}

static uint32_t killed_child(const char *dir, void (*work)(const struct child *c))
{
    int ends[2];
    unsigned char patience = 0;
    struct df_err err = {0};
    assert_int_equal(df_random(&patience, 1, &err), 0);
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)close(ends[0]);
        work(&(struct child){.pipe = ends[1], .dir = dir});
        _exit(1);
    }
    (void)close(ends[1]);
    uint32_t number = 0;
    for (unsigned i = 0; i < patience % 40u; i++)
        assert_int_equal(read(ends[0], &number, sizeof(number)), sizeof(number));
    /* Somewhere between two system calls, not always at the same one. */
    (void)usleep(patience * 7u);
    (void)kill(pid, SIGKILL);
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    number = last_acknowledged(ends[0], number);
    (void)close(ends[0]);
    return number;
}

#endif
