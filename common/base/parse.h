/*
 * parse.h - strict parsers for numbers and names: the whole text must match.
 */
#ifndef DF_BASE_PARSE_H
#define DF_BASE_PARSE_H

#include "common/base/err.h"

/* A decimal integer within [min, max]; class USER otherwise. */
int df_parse_i64(const char *text, int64_t min, int64_t max, int64_t *ret,
                 struct df_err *err) DF_MUST_CHECK;

/* Skips spaces, reads a decimal integer and moves *text behind it. False, with *text unchanged, if
 * there is none that fits into int64_t. */
bool df_scan_i64(const char **text, int64_t *ret);

/* A DNS-1123 label: 1..63 of [a-z0-9-], alphanumeric at both ends. */
bool df_is_dns_label(const char *s);

/* A name for an environment variable: [A-Za-z_][A-Za-z0-9_]*. */
bool df_is_env_name(const char *s);

/* 2 * n lower-case hex digits of bytes into out (2 * n + 1 bytes). */
void df_hex(const void *bytes, size_t n, char *out);

/* True if s has a byte below 0x20, or 0x7f. NULL: false. */
bool df_has_control(const char *s);

/* The length of the UTF-8 character that begins with this byte; 0 if none begins so. */
size_t df_utf8_length(unsigned char c);

/* What Windows has made of a text that should be UTF-8, with the way out: it is UTF-16, or begins
 * with a byte order mark ("is UTF-16, ..."). NULL: nothing. */
const char *df_text_fault(const char *s, size_t n);

/* True if the n bytes are well-formed UTF-8 (RFC 3629, no surrogates, no overlong forms). */
bool df_is_utf8(const char *s, size_t n);

#endif
