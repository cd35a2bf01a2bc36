/*
 * err.h - errors: their classes, and how functions return them.
 *
 * A function that can fail returns int: 0 on success, -1 on failure, and takes a struct df_err * as
 * its last argument, which it fills on failure and leaves untouched on success. Out-parameters
 * (named ret_x) are written on success only. Callers decide by class; people read the message.
 * Library code never logs an error that it returns.
 *
 * A struct df_err owns nothing and needs no clean-up; it lives on the caller's stack. Every
 * function here accepts err == NULL (the failure is then only the return value).
 * Thread rule: one struct, one thread.
 */
#ifndef DF_BASE_ERR_H
#define DF_BASE_ERR_H

#include "common/base/util.h"

enum df_err_class {
    // clang-format off
    DF_ERR_NONE = 0,
    DF_ERR_USER,      /* the input is wrong; the same call will fail again   -> 400, exit 3 */
    DF_ERR_DENIED,    /* the caller may not do this                          -> 401/403     */
    DF_ERR_NOT_FOUND, /* the named object does not exist                     -> 404         */
    DF_ERR_CONFLICT,  /* another writer was first, or the state forbids it   -> 409/412/423 */
    DF_ERR_RETRY,     /* a temporary fault: the same call may succeed later  -> 503         */
    DF_ERR_LIMIT,     /* a limit of limits.h or the configuration is reached -> 413/429     */
    DF_ERR_SYSTEM,    /* disk, memory, a broken peer: needs an operator      -> 500         */
    DF_ERR_BUG        /* cannot happen; please report                        -> 500         */
    // clang-format on
};

struct df_err {
    enum df_err_class cls;
    int os_errno;       /* the errno that caused it; or 0 */
    int retry_after_s;  /* how long a busy peer asked us to wait; or 0 */
    char reason[48];    /* CamelCase word for machines ("SourceChanged"), or "" */
    char message[1024]; /* one sentence for people; long ones are cut at the end */
};

/* Fills err and returns -1, so that `return df_fail(err, ...)` reads as one statement. */
int df_fail(struct df_err *err, enum df_err_class cls, const char *fmt, ...) DF_PRINTF(3, 4);

/* The same with the stable reason word that ends up in a run's status and in problem+json. */
int df_fail_reason(struct df_err *err, enum df_err_class cls, const char *reason, const char *fmt,
                   ...) DF_PRINTF(4, 5);

/* The same from errno: ": <strerror>" is appended and the class derived (ENOENT -> NOT_FOUND,
 * EACCES/EPERM/EROFS -> DENIED, EEXIST -> CONFLICT, ENOSPC/EDQUOT/EMFILE/ENFILE/EFBIG/ENOMEM ->
 * LIMIT, EAGAIN/EINTR/ETIMEDOUT/EPIPE/ECONN.../E...UNREACH -> RETRY, else SYSTEM). */
int df_fail_errno(struct df_err *err, int os_errno, const char *fmt, ...) DF_PRINTF(3, 4);

/* Out of memory, in one word. */
int df_fail_oom(struct df_err *err);

/* Puts context in front of the message while unwinding ("create work dir: mkdir `x': ..."). Returns
 * -1. */
int df_err_wrap(struct df_err *err, const char *fmt, ...) DF_PRINTF(2, 3);

/* Sets the reason word of a failure that has none yet. Returns -1. */
int df_err_reason(struct df_err *err, const char *reason);

/* Hands a failure that was kept apart to the caller: copies *why into err. Returns -1. */
int df_err_pass(struct df_err *err, const struct df_err *why);

/* The same for the failure of something that the call needed, such as credentials: NOT_FOUND and
 * CONFLICT become RETRY, because they are not about the object that the caller named. */
int df_err_pass_needed(struct df_err *err, const struct df_err *why);

/* The analyser sees one file at a time and must be told that these always return -1. */
#if defined(__clang_analyzer__) && !defined(DF_ERR_IMPLEMENTATION)
#define df_fail(...) (df_fail(__VA_ARGS__), -1)
#define df_fail_reason(...) (df_fail_reason(__VA_ARGS__), -1)
#define df_fail_errno(...) (df_fail_errno(__VA_ARGS__), -1)
#define df_fail_oom(...) (df_fail_oom(__VA_ARGS__), -1)
#define df_err_wrap(...) (df_err_wrap(__VA_ARGS__), -1)
#define df_err_reason(...) (df_err_reason(__VA_ARGS__), -1)
#define df_err_pass(...) (df_err_pass(__VA_ARGS__), -1)
#define df_err_pass_needed(...) (df_err_pass_needed(__VA_ARGS__), -1)
#endif

/* 0 unless the pointer that was allocated is NULL: out of memory then. For the first part of a
 * condition whose other parts need it, and for `return df_check_alloc(*ret = strdup(s), err);`. */
static inline int df_check_alloc(const void *allocated, struct df_err *err)
{
    return allocated ? 0 : df_fail_oom(err);
}

/* "user", "not-found", ...: never NULL. */
const char *df_err_class_name(enum df_err_class cls);

/* A fault of the program itself: prints the place and aborts. For conditions that no input can
 * cause. */
#define DF_BUG(...) df_bug(__FILE__, __LINE__, __VA_ARGS__)
_Noreturn void df_bug(const char *file, int line, const char *fmt, ...) DF_PRINTF(3, 4);

#endif
