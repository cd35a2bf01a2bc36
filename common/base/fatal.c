/*
 * fatal.c - read on_fatal() first: it runs in the signal handler. The interrupted code may hold a
 * lock or have damaged the heap. So df_fatal_catch() does beforehand what allocates memory, and the
 * line is built on the handler's stack (struct text). If the handler waits for a lock all the same,
 * an alarm ends the process.
 */
#include "common/base/fatal.h"

#include <errno.h>
#include <execinfo.h>
#include <link.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/util.h"

#ifndef __has_feature /* clang's */
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) ||                               \
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HAS_SANITIZER 1
#else
#define HAS_SANITIZER 0
#endif

#define FRAMES_MAX 24          /* deep enough to leave the libraries; the line stays below 2 KiB */
#define MODULES_MAX 48         /* the program and its libraries; both programs load about 20 */
#define MESSAGE_MAX 2048       /* a frame takes up to 60 bytes: name, offset */
#define PATIENCE_S 5           /* for a lock that the interrupted code holds */
#define STACK_SIZE (64 * 1024) /* of the handler: MESSAGE_MAX, the line and the unwinder */

static const struct {
    const char *name;
    int number;
    bool is_of_sanitizer; /* a sanitizer reports it with more detail */
    bool has_address;
} caught[] = {
    {"SIGSEGV", SIGSEGV, true, true},   {"SIGBUS", SIGBUS, true, true},
    {"SIGFPE", SIGFPE, true, false},    {"SIGILL", SIGILL, false, false},
    {"SIGABRT", SIGABRT, false, false}, {"SIGSYS", SIGSYS, false, false},
    {"SIGTRAP", SIGTRAP, false, false},
};

/* What is mapped where. It is read at the start, because dladdr() takes a lock that the interrupted
 * code may hold. */
static struct module {
    char name[32];
    uintptr_t base, end;
} modules[MODULES_MAX];
static size_t module_count;

static char stack[STACK_SIZE];

static int add_module(struct dl_phdr_info *info, size_t size, void *program)
{
    (void)size;
    if (module_count == MODULES_MAX)
        return 1;
    struct module *m = &modules[module_count];
    const char *path = df_str_empty(info->dlpi_name) ? program : info->dlpi_name;
    const char *slash = strrchr(path, '/');
    (void)snprintf(m->name, sizeof(m->name), "%.31s", slash ? slash + 1 : path);
    m->base = info->dlpi_addr;
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        uintptr_t end = info->dlpi_addr + p->p_vaddr + p->p_memsz;
        if (p->p_type == PT_LOAD && end > m->end)
            m->end = end;
    }
    module_count++;
    return 0;
}

/* A text that grows without the heap, which may be what is broken, and ends at its limit.
 * vsnprintf() of integers and short strings uses no heap. */
struct text {
    char bytes[MESSAGE_MAX];
    size_t len;
};

static void add(struct text *t, const char *fmt, ...) DF_PRINTF(2, 3);
static void add(struct text *t, const char *fmt, ...)
{
    size_t room = sizeof(t->bytes) - t->len;
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(t->bytes + t->len, room, fmt, ap);
    va_end(ap);
    if (n > 0)
        t->len += (size_t)n < room ? (size_t)n : room - 1;
}

static void add_frame(struct text *t, uintptr_t at)
{
    const struct module *m = modules, *end = modules + module_count;
    while (m < end && (at < m->base || at >= m->end))
        m++;
    add(t, " %s+0x%jx", m < end ? m->name : "?", (uintmax_t)(m < end ? at - m->base : at));
}

static void add_cause(struct text *t, int number, const siginfo_t *info)
{
    size_t i = 0;
    while (i + 1 < DF_ARRAY_SIZE(caught) && caught[i].number != number)
        i++;
    add(t, "fatal signal %s", caught[i].name);
    if (caught[i].has_address && info->si_code > 0)
        add(t, " at address 0x%jx", (uintmax_t)(uintptr_t)info->si_addr);
    else if (info->si_code <= 0 && info->si_pid != getpid())
        add(t, " sent by process %d", (int)info->si_pid);
}

static void report(int number, const siginfo_t *info)
{
    struct text t = {.len = 0};
    void *frames[FRAMES_MAX];
    add_cause(&t, number, info);
    add(&t, " (dayfly " DF_VERSION "); backtrace:");
    int count = backtrace(frames, FRAMES_MAX);
    for (int i = 0; i < count; i++)
        add_frame(&t, (uintptr_t)frames[i]);
    df_log_fatal(t.bytes);
}

static void on_fatal(int number, siginfo_t *info, void *context)
{
    static atomic_flag is_reported = ATOMIC_FLAG_INIT;
    (void)context;
    /* A handler that waits for a lock of the interrupted code must not keep the process alive. */
    (void)signal(SIGALRM, SIG_DFL);
    (void)alarm(PATIENCE_S);
    while (atomic_flag_test_and_set(&is_reported))
        (void)pause(); /* another thread reports its fault, and then ends the process */
    report(number, info);
    (void)signal(number, SIG_DFL);
    (void)raise(number);
}

void df_fatal_catch(void)
{
    void *frame;
    char ts[DF_TIME_LEN];
    struct sigaction action = {.sa_sigaction = on_fatal,
                               .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
    const stack_t second = {.ss_sp = stack, .ss_size = sizeof(stack)};
    /* The first call of each uses the heap: it loads libgcc_s, it reads the time zone. */
    (void)backtrace(&frame, 1);
    (void)df_time_format(0, ts);
    (void)dl_iterate_phdr(add_module, program_invocation_name);
    (void)sigemptyset(&action.sa_mask);
    if (!HAS_SANITIZER)
        (void)sigaltstack(&second, NULL);
    for (size_t i = 0; i < DF_ARRAY_SIZE(caught); i++)
        if (!HAS_SANITIZER || !caught[i].is_of_sanitizer)
            (void)sigaction(caught[i].number, &action, NULL);
}
