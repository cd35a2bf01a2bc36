/*
 * jdk.h - strings as the Java object stream has them (java.io.ObjectOutputStream, version 5): the
 * form of every key, field and value that Terrakube's API writes to and reads from Redis.
 * Thread rule: pure functions, any thread.
 */
#ifndef DF_TERRAKUBE_JDK_H
#define DF_TERRAKUBE_JDK_H

#include "common/base/buf.h"

/* Appends text (UTF-8; bytes that are none become U+FFFD) as AC ED 00 05, 74 and a length of two
 * bytes, or 7C and one of eight, and modified UTF-8: NUL is C0 80, a character above U+FFFF two
 * surrogates of three bytes. */
int df_jdk_add(struct df_buf *out, const char *text, size_t n, struct df_err *err) DF_MUST_CHECK;

/* The same text back. USER: the bytes are not one such string. */
int df_jdk_read(const void *bytes, size_t n, struct df_buf *out, struct df_err *err) DF_MUST_CHECK;

#endif
