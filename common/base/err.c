/*
 * err.c - the functions that fill a df_err, then those that add to it or pass it on.
 * class_of_errno() says which class a failed system call has. A reason word that is there already
 * stays.
 */
#define DF_ERR_IMPLEMENTATION
#include "common/base/err.h"

#include <errno.h>
#include <stdarg.h>

/* Formats into a copy first, because the arguments may be parts of err itself. */
DF_PRINTF(2, 0) static void set_message(struct df_err *err, const char *fmt, va_list ap)
{
    char text[sizeof(err->message)];
    if (vsnprintf(text, sizeof(text), fmt, ap) < 0)
        text[0] = '\0';
    memcpy(err->message, text, strlen(text) + 1);
}

static void reset_err(struct df_err *err, enum df_err_class cls, int os_errno)
{
    err->cls = cls;
    err->os_errno = os_errno;
    err->retry_after_s = 0;
    err->reason[0] = '\0';
}

int df_fail(struct df_err *err, enum df_err_class cls, const char *fmt, ...)
{
    if (!err)
        return -1;
    va_list ap;
    va_start(ap, fmt);
    set_message(err, fmt, ap);
    va_end(ap);
    reset_err(err, cls, 0);
    return -1;
}

int df_fail_reason(struct df_err *err, enum df_err_class cls, const char *reason, const char *fmt,
                   ...)
{
    if (!err)
        return -1;
    va_list ap;
    va_start(ap, fmt);
    set_message(err, fmt, ap);
    va_end(ap);
    char word[sizeof(err->reason)];
    (void)snprintf(word, sizeof(word), "%s", reason);
    reset_err(err, cls, 0);
    return df_err_reason(err, word);
}

static enum df_err_class class_of_errno(int e)
{
    switch (e) {
    case ENOENT:
    case ESRCH:
        return DF_ERR_NOT_FOUND;
    case EACCES:
    case EPERM:
    case EROFS:
        return DF_ERR_DENIED;
    case EEXIST:
        return DF_ERR_CONFLICT;
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
    case EFBIG:
    case ENOMEM:
        return DF_ERR_LIMIT;
    case EAGAIN:
    case EINTR:
    case ETIMEDOUT:
    case ECONNREFUSED:
    case ECONNRESET:
    case ECONNABORTED:
    case ENETUNREACH:
    case EHOSTUNREACH:
    case EPIPE:
        return DF_ERR_RETRY;
    default:
        return DF_ERR_SYSTEM;
    }
}

int df_fail_errno(struct df_err *err, int os_errno, const char *fmt, ...)
{
    if (!err)
        return -1;
    va_list ap;
    va_start(ap, fmt);
    set_message(err, fmt, ap);
    va_end(ap);
    reset_err(err, class_of_errno(os_errno), os_errno);
    size_t used = strlen(err->message);
    char text[128];
    (void)snprintf(err->message + used, sizeof(err->message) - used, ": %s",
                   strerror_r(os_errno, text, sizeof(text)));
    return -1;
}

int df_fail_oom(struct df_err *err)
{
    return df_fail(err, DF_ERR_LIMIT, "out of memory");
}

int df_err_wrap(struct df_err *err, const char *fmt, ...)
{
    if (!err)
        return -1;
    char old[sizeof(err->message)];
    memcpy(old, err->message, sizeof(old));
    va_list ap;
    va_start(ap, fmt);
    set_message(err, fmt, ap);
    va_end(ap);
    size_t used = strlen(err->message);
    (void)snprintf(err->message + used, sizeof(err->message) - used, ": %s", old);
    return -1;
}

int df_err_reason(struct df_err *err, const char *reason)
{
    if (err && !err->reason[0])
        (void)snprintf(err->reason, sizeof(err->reason), "%s", reason);
    return -1;
}

int df_err_pass(struct df_err *err, const struct df_err *why)
{
    if (err)
        *err = *why;
    return -1;
}

int df_err_pass_needed(struct df_err *err, const struct df_err *why)
{
    (void)df_err_pass(err, why);
    if (err && (err->cls == DF_ERR_NOT_FOUND || err->cls == DF_ERR_CONFLICT))
        err->cls = DF_ERR_RETRY;
    return -1;
}

const char *df_err_class_name(enum df_err_class cls)
{
    static const char *const names[] = {"none",  "user",  "denied", "not-found", "conflict",
                                        "retry", "limit", "system", "bug"};
    return (size_t)cls < DF_ARRAY_SIZE(names) ? names[cls] : "bug";
}

_Noreturn void df_bug(const char *file, int line, const char *fmt, ...)
{
    va_list ap;
    (void)fprintf(stderr, "BUG at %s:%d: ", file, line);
    va_start(ap, fmt);
    (void)vfprintf(stderr, fmt, ap);
    va_end(ap);
    (void)fputc('\n', stderr);
    abort();
}
