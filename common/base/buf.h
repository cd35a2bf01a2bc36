/*
 * buf.h - a growing byte buffer with a fixed limit.
 *
 * Invariants: data is NUL-terminated whenever it is not NULL; len does not count that NUL; bytes
 * may contain NULs; len never exceeds max. The first failure (cap or memory) sticks: later adders
 * do nothing and also return -1, so that a chain of adds may be checked once, at the end, by
 * df_buf_check(). Thread rule: one buffer, one thread.
 */
#ifndef DF_BASE_BUF_H
#define DF_BASE_BUF_H

#include "common/base/err.h"
#include "common/base/limits.h"

struct df_buf {
    char *data; /* owned; NULL while empty */
    size_t len;
    size_t cap;
    size_t max; /* no more than this many bytes, ever */
    int failed; /* 0, ENOMEM or E2BIG */
};

#define DF_BUF_INIT(limit) ((struct df_buf){.max = (limit)})
#define DF_BUF DF_CLEANUP(df_buf_free)

void df_buf_free(struct df_buf *b);  /* leaves an empty buffer with the same cap */
void df_buf_clear(struct df_buf *b); /* forgets content and failure, keeps the memory */

int df_buf_add(struct df_buf *b, const void *bytes, size_t n);
int df_buf_adds(struct df_buf *b, const char *s); /* s == NULL counts as out of memory */
int df_buf_addc(struct df_buf *b, char c);
int df_buf_addf(struct df_buf *b, const char *fmt, ...) DF_PRINTF(2, 3);

/* Room for n more bytes at data + len; the caller then raises len. NULL on failure. */
char *df_buf_reserve(struct df_buf *b, size_t n);

/* Removes the first n bytes. */
void df_buf_consume(struct df_buf *b, size_t n);

/* 0 if every add so far succeeded; else -1 with class LIMIT and the cap in the message. */
int df_buf_check(const struct df_buf *b, struct df_err *err) DF_MUST_CHECK;

/* The content as a string, never NULL. Borrowed: valid until the next change. */
const char *df_buf_str(const struct df_buf *b);

/* Hands the content over to the caller, who frees it; NULL if the buffer failed or on no memory.
 * An empty buffer yields "". The buffer is empty afterwards. */
char *df_buf_take(struct df_buf *b);

/* Like asprintf with a return value: NULL on no memory. The caller frees it. */
char *df_strf(const char *fmt, ...) DF_PRINTF(1, 2);

/* Replaces the string in *to by a copy of value (NULL: by NULL); value may be *to itself. The old
 * string may be a secret and is overwritten with zeros. On no memory it returns -1, and *to is
 * unchanged. */
int df_str_set(char **to, const char *value, struct df_err *err) DF_MUST_CHECK;

/* Overwrites the content with zeros (in a way no compiler removes), then frees. For secrets. */
void df_buf_wipe(struct df_buf *b);

#endif
