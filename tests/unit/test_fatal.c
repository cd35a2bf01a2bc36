#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "common/base/buf.h"
#include "common/base/fatal.h"
#include "common/base/limits.h"
#include "common/base/log.h"
#include "common/json/json.h"

/* Runs end() in a child that catches fatal signals, and returns what it wrote on stderr and the
 * signal that ended it. */
static int log_of(void (*end)(void), bool json, struct df_buf *ret)
{
    int ends[2], status = 0;
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)dup2(ends[1], STDERR_FILENO);
        (void)close(ends[0]);
        (void)close(ends[1]);
        df_log_setup(DF_LOG_ERROR, json, "spawner");
        df_fatal_catch();
        df_log_context("net-1", "net-1-plan");
        end();
        _exit(0);
    }
    (void)close(ends[1]);
    char chunk[4096];
    for (ssize_t n; (n = read(ends[0], chunk, sizeof(chunk))) > 0;)
        (void)df_buf_add(ret, chunk, (size_t)n);
    (void)close(ends[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void assert_has(const struct df_buf *log, const char *part)
{
    if (!strstr(df_buf_str(log), part))
        fail_msg("%s is not in: %s", part, df_buf_str(log));
}

static void end_by_abort(void)
{
    abort();
}

static void a_program_that_aborts_says_so_in_one_line_and_ends_by_that_signal(void **state)
{
    (void)state;
    DF_BUF struct df_buf log = DF_BUF_INIT(DF_MIB);
    assert_int_equal(log_of(end_by_abort, false, &log), SIGABRT);
    assert_has(&log, " error spawner: fatal signal SIGABRT (dayfly ");
    assert_has(&log, "; backtrace: ");
    assert_has(&log, " test_fatal+0x");
    assert_has(&log, "step=\"net-1-plan\"");
    assert_ptr_equal(strchr(df_buf_str(&log), '\n') + 1, df_buf_str(&log) + log.len);
}

static void the_line_is_json_where_the_log_is(void **state)
{
    (void)state;
    struct df_err err = {0};
    DF_JSON cJSON *line = NULL;
    DF_BUF struct df_buf log = DF_BUF_INIT(DF_MIB);
    (void)log_of(end_by_abort, true, &log);
    assert_int_equal(df_json_parse(df_buf_str(&log), log.len - 1, &line, &err), 0);
    assert_string_equal(df_json_str(line, "level"), "error");
    assert_string_equal(df_json_str(line, "component"), "spawner");
    assert_string_equal(df_json_str(line, "run"), "net-1");
    assert_non_null(strstr(df_json_str(line, "msg"), "fatal signal SIGABRT"));
}

static void end_by_parent(void)
{
    (void)kill(getpid(), SIGSYS);
}

static void a_signal_that_another_program_sent_is_reported_too(void **state)
{
    (void)state;
    DF_BUF struct df_buf log = DF_BUF_INIT(DF_MIB);
    assert_int_equal(log_of(end_by_parent, false, &log), SIGSYS);
    assert_has(&log, "fatal signal SIGSYS");
}

/* A sanitizer reports memory faults itself. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define HAS_OWN_FAULTS
static void end_with_broken_heap(void)
{
    char *block = malloc(24);
    void *volatile twice = block;
    free(block);
    free(twice);
}

static void end_by_fault(void)
{
    char *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *(volatile char *)page = 1;
}

static int descend(volatile int depth)
{
    volatile char frame[4096];
    frame[0] = (char)depth;
    return depth < 0 ? frame[0] : descend(depth + 1) + frame[0];
}

static void end_by_overflow(void)
{
    (void)descend(0);
}

static void memory_faults_are_reported_even_when_heap_or_stack_is_broken(void **state)
{
    (void)state;
    static const struct {
        void (*end)(void);
        const char *says;
        int number;
    } faults[] = {{end_by_fault, "fatal signal SIGSEGV at address 0x", SIGSEGV},
                  {end_with_broken_heap, "fatal signal SIGABRT", SIGABRT},
                  {end_by_overflow, "fatal signal SIGSEGV at address 0x", SIGSEGV}};
    for (size_t i = 0; i < DF_ARRAY_SIZE(faults); i++) {
        DF_BUF struct df_buf log = DF_BUF_INIT(DF_MIB);
        assert_int_equal(log_of(faults[i].end, false, &log), faults[i].number);
        assert_has(&log, faults[i].says);
    }
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program_that_aborts_says_so_in_one_line_and_ends_by_that_signal),
        cmocka_unit_test(the_line_is_json_where_the_log_is),
        cmocka_unit_test(a_signal_that_another_program_sent_is_reported_too),
#ifdef HAS_OWN_FAULTS
        cmocka_unit_test(memory_faults_are_reported_even_when_heap_or_stack_is_broken),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
