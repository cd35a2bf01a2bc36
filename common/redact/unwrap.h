/*
 * unwrap.h - a text as it was before somebody wrapped, coloured or escaped it.
 *
 * Internal to the redactor. The view has the printable ASCII characters of the text, with these
 * decoded: %41, \u0041 and \x41 behind any number of backslashes, &#65; &#x41; and &amp; &lt; &gt;.
 * It leaves out blanks, line breaks, quotes, backslashes, other control sequences (colours), and
 * every byte beyond ASCII (the frames of tofu's errors). A value is folded in the same way, so
 * whatever does this to a value has it in its view. It is all decided by at most
 * DF_UNWRAP_TOKEN_MAX bytes. What a tool writes in front of a line (prefix.h) is left out of the
 * view of a text as well. Thread rule: one thread a view.
 *
 * A joint is a place where the text was wrapped, coloured or escaped: only a match across a joint
 * counts, so that "pass word" is no password.
 */
#ifndef DF_REDACT_UNWRAP_H
#define DF_REDACT_UNWRAP_H

#include "common/base/err.h"

enum { DF_UNWRAP_TOKEN_MAX = 40 };

struct df_unwrap_token {
    size_t len;    /* in the text */
    int byte;      /* in the view; -1: none */
    bool joint;    /* wrapped, coloured or escaped */
    bool line_end; /* a line break */
};

/* Reads the token at the start of text, which is not empty. False if more bytes than these n are
 * needed to tell it; never with `last`, the end of the stream. */
bool df_unwrap_token(const char *text, size_t n, bool last, struct df_unwrap_token *ret);

/* The first position at or after from where a token with a joint, or one that may be such, begins;
 * n if there is none. Everything before it is plain or left out. */
size_t df_unwrap_next_joint(const char *text, size_t from, size_t n);

enum { DF_UNWRAP_PLAIN = 1, DF_UNWRAP_SPECIAL = 2 };
extern const unsigned char df_unwrap_kinds[256]; /* of each byte, these flags */

/* True if the byte alone, without a joint, is in the view. */
static inline bool df_unwrap_is_plain(char c)
{
    return df_unwrap_kinds[(unsigned char)c] & DF_UNWRAP_PLAIN;
}

/* True if a token of more than one byte, or a joint, may begin with it. */
static inline bool df_unwrap_is_special(char c)
{
    return df_unwrap_kinds[(unsigned char)c] & DF_UNWRAP_SPECIAL;
}

/* Writes the view of a value to out (at most n bytes) and returns its length. escaped: what an
 * encoder leaves that escapes backslashes, percent signs and ampersands of the value itself. */
size_t df_unwrap_fold(const char *value, size_t n, bool escaped, char *out);

struct df_unwrap_place {
    uint32_t start;  /* of the token in the text */
    uint32_t end;    /* of the token */
    uint32_t joints; /* before this byte */
    uint32_t breaks; /* line breaks before this byte */
    bool escaped;    /* the token itself is a joint */
};

struct df_unwrapped {
    char *bytes;
    struct df_unwrap_place *places; /* n of them, and one for the end of the text */
    size_t n;
    size_t most; /* n of the largest view so far: what has to be wiped */
};

int df_unwrap_new(size_t cap, struct df_unwrapped *ret, struct df_err *err) DF_MUST_CHECK;
void df_unwrap_free(struct df_unwrapped *v); /* wipes it */

/* Makes the view of text[from..to), which are bounds of tokens and not within a prefix. to - from
 * is at most the cap of df_unwrap_new(). */
void df_unwrap_read(struct df_unwrapped *v, const char *text, size_t from, size_t to);

#endif
