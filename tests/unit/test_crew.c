/* Chunks that several threads take in turn. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/blob/crew.h"

enum { JOBS = 200 };

struct ledger {
    int done[JOBS]; /* atomic */
    int at_once, most;
    size_t fails; /* this job does */
};

static int count_job(void *arg, size_t number, struct df_object_work *work, struct df_err *err)
{
    struct ledger *l = arg;
    int now = __atomic_add_fetch(&l->at_once, 1, __ATOMIC_SEQ_CST);
    int most = __atomic_load_n(&l->most, __ATOMIC_SEQ_CST);
    while (now > most && !__atomic_compare_exchange_n(&l->most, &most, now, false, __ATOMIC_SEQ_CST,
                                                      __ATOMIC_SEQ_CST))
        continue;
    df_buf_clear(&work->plain);
    (void)df_buf_addf(&work->plain, "%zu", number);
    (void)__atomic_add_fetch(&l->done[number], 1, __ATOMIC_SEQ_CST);
    (void)__atomic_sub_fetch(&l->at_once, 1, __ATOMIC_SEQ_CST);
    return number == l->fails ? df_fail(err, DF_ERR_RETRY, "job %zu", number) : 0;
}

static void each_job_is_done_once_whatever_the_number_of_threads(void **state)
{
    (void)state;
    static const size_t threads[] = {0, 1, 3, 8, 100};
    for (size_t i = 0; i < DF_ARRAY_SIZE(threads); i++) {
        struct ledger l = {.fails = JOBS};
        struct df_err err = {0};
        size_t begun = 0;
        assert_int_equal(df_blob_crew_run(JOBS, threads[i], count_job, &l, &begun, &err), 0);
        assert_int_equal(begun, JOBS);
        assert_true(l.most <= (threads[i] < 2 ? 1 : threads[i] < 9 ? (int)threads[i] : 9));
        for (size_t k = 0; k < JOBS; k++)
            assert_int_equal(l.done[k], 1);
    }
}

static void after_a_failure_no_further_job_is_begun(void **state)
{
    (void)state;
    static const size_t threads[] = {1, 3};
    for (size_t i = 0; i < DF_ARRAY_SIZE(threads); i++) {
        struct ledger l = {.fails = 5};
        struct df_err err = {0};
        size_t begun = 0, done = 0;
        assert_int_equal(df_blob_crew_run(JOBS, threads[i], count_job, &l, &begun, &err), -1);
        assert_int_equal(err.cls, DF_ERR_RETRY);
        assert_string_equal(err.message, "job 5");
        for (size_t k = 0; k < JOBS; k++)
            done += (size_t)l.done[k];
        assert_int_equal(done, begun);
        assert_true(threads[i] > 1 || begun == 6);
    }
}

static void no_job_is_no_failure(void **state)
{
    (void)state;
    struct ledger l = {.fails = 0};
    struct df_err err = {0};
    size_t begun = 1;
    assert_int_equal(df_blob_crew_run(0, 3, count_job, &l, &begun, &err), 0);
    assert_int_equal(begun, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_job_is_done_once_whatever_the_number_of_threads),
        cmocka_unit_test(after_a_failure_no_further_job_is_begun),
        cmocka_unit_test(no_job_is_no_failure),
    };
    return cmocka_run_group_tests_name("crew", tests, NULL, NULL);
}
