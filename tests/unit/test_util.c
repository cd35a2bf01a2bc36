/* Memory that is given back. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base/util.h"

enum { THREADS = 8, ROUNDS = 100 };

static void *trim(void *arg)
{
    (void)pthread_barrier_wait(arg);
    df_memory_trim();
    return NULL;
}

static void trim_in_many_threads(void)
{
    pthread_t threads[THREADS];
    pthread_barrier_t all;
    bool failed = pthread_barrier_init(&all, NULL, THREADS) != 0;
    for (size_t i = 0; i < THREADS; i++)
        failed |= pthread_create(&threads[i], NULL, trim, &all) != 0;
    for (size_t i = 0; i < THREADS; i++)
        failed |= pthread_join(threads[i], NULL) != 0;
    _exit(failed);
}

/* Each time in a process whose heap nobody used before. */
static void many_threads_may_give_memory_back_at_once(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        int status = 0;
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0)
            trim_in_many_threads();
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_threads_may_give_memory_back_at_once),
    };
    return cmocka_run_group_tests_name("util", tests, NULL, NULL);
}
