/*
 * buf.c - the buffer: its memory, the adders, its end; then strings that are made without one.
 */
#include "common/base/buf.h"

#include <errno.h>
#include <stdarg.h>

void df_buf_free(struct df_buf *b)
{
    free(b->data);
    *b = DF_BUF_INIT(b->max);
}

void df_buf_clear(struct df_buf *b)
{
    b->len = 0;
    b->failed = 0;
    if (b->data)
        b->data[0] = '\0';
}

static int grow_buf(struct df_buf *b, size_t need)
{
    size_t cap = b->cap ? b->cap : 64;
    while (cap < need)
        cap = cap > SIZE_MAX / 2 ? need : cap * 2;
    char *p = realloc(b->data, cap);
    if (!p) {
        b->failed = ENOMEM;
        return -1;
    }
    b->data = p;
    b->data[b->len] = '\0'; /* also when the caller adds nothing after a reserve */
    b->cap = cap;
    return 0;
}

char *df_buf_reserve(struct df_buf *b, size_t n)
{
    if (b->failed)
        return NULL;
    if (n > b->max || b->len > b->max - n) {
        b->failed = E2BIG;
        return NULL;
    }
    if (b->len + n + 1 > b->cap && grow_buf(b, b->len + n + 1) < 0)
        return NULL;
    return b->data + b->len;
}

int df_buf_add(struct df_buf *b, const void *bytes, size_t n)
{
    char *to = df_buf_reserve(b, n);
    if (!to)
        return -1;
    if (n)
        memcpy(to, bytes, n);
    b->len += n;
    b->data[b->len] = '\0';
    return 0;
}

int df_buf_adds(struct df_buf *b, const char *s)
{
    if (s)
        return df_buf_add(b, s, strlen(s));
    b->failed = b->failed ? b->failed : ENOMEM;
    return -1;
}

int df_buf_addc(struct df_buf *b, char c)
{
    return df_buf_add(b, &c, 1);
}

int df_buf_addf(struct df_buf *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n < 0)
        DF_BUG("bad format: %s", fmt);
    char *to = df_buf_reserve(b, (size_t)n);
    if (!to)
        return -1;
    va_start(ap, fmt);
    (void)vsnprintf(to, (size_t)n + 1, fmt, ap);
    va_end(ap);
    b->len += (size_t)n;
    return 0;
}

void df_buf_consume(struct df_buf *b, size_t n)
{
    if (n > b->len)
        DF_BUG("consume %zu of %zu", n, b->len);
    if (!n)
        return;
    memmove(b->data, b->data + n, b->len - n);
    b->len -= n;
    b->data[b->len] = '\0';
}

int df_buf_check(const struct df_buf *b, struct df_err *err)
{
    if (b->failed == E2BIG)
        return df_fail(err, DF_ERR_LIMIT, "more than %zu bytes", b->max);
    return b->failed ? df_fail_oom(err) : 0;
}

const char *df_buf_str(const struct df_buf *b)
{
    return b->data ? b->data : "";
}

char *df_buf_take(struct df_buf *b)
{
    if (!b->data && !b->failed)
        (void)df_buf_add(b, "", 0);
    if (b->failed) {
        df_buf_free(b);
        return NULL;
    }
    char *s = b->data;
    *b = DF_BUF_INIT(b->max);
    return s;
}

char *df_strf(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *s = NULL;
    int n = vasprintf(&s, fmt, ap);
    va_end(ap);
    return n < 0 ? NULL : s;
}

int df_str_set(char **to, const char *value, struct df_err *err)
{
    char *copy = value ? strdup(value) : NULL;
    if (value && !copy)
        return df_fail_oom(err);
    df_str_wipe(to);
    *to = copy;
    return 0;
}

void df_buf_wipe(struct df_buf *b)
{
    if (b->data)
        explicit_bzero(b->data, b->cap);
    df_buf_free(b);
}
