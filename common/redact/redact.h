/*
 * redact.h - masks known secret values in a byte stream, in every common encoding.
 *
 * Forms: raw; base64 (standard and URL alphabet, all three alignments, without the character that
 * also depends on the byte in front); percent-encoded; JSON-escaped (also with \uXXXX, with \/, and
 * twice over); HCL- and shell-quoted where they differ; hex. forms.c has them all. Values of 8
 * bytes or more also across line breaks, colours and escapes of any character (unwrap.h). Blanks at
 * the ends of a value are ignored. Each line of a multi-line value counts as a value, too, and so
 * does each secret part of a document (members.h). Values shorter than 4 bytes are ignored: they
 * would mask everything. Values longer than 1 KiB are searched in overlapping pieces, so that a
 * part of one is masked, too.
 *
 * Every byte of every occurrence of a form is masked; each run of such bytes becomes one "***".
 * Memory is bounded by the set of secrets, not by the stream: only a tail that may begin a form is
 * held back, at most DF_LIMIT_REDACT_SPAN and the longest form. Thread rule: a set is read-only and
 * may be shared; a stream belongs to one thread.
 */
#ifndef DF_REDACT_H
#define DF_REDACT_H

#include "common/base/buf.h"
#include "common/base/strs.h"

struct df_redact_set; /* opaque */

/* Builds the set. Class LIMIT beyond DF_LIMIT_SECRETS_MASKED values or DF_LIMIT_REDACT_BYTES of
 * forms. An empty set is fine and costs nothing. */
int df_redact_set_new(const struct df_strs *secrets, struct df_redact_set **ret,
                      struct df_err *err) DF_MUST_CHECK;
void df_redact_set_free(struct df_redact_set *s);

struct df_redact; /* one stream; opaque */
int df_redact_new(const struct df_redact_set *set, struct df_redact **ret,
                  struct df_err *err) DF_MUST_CHECK; /* the set is borrowed and must outlive *ret */
void df_redact_free(struct df_redact *r);
/* Goes on with a set that has all values of the stream's, and more: what is held back is decided
 * with it. The set is borrowed like that of df_redact_new(), instead of the former one. */
int df_redact_widen(struct df_redact **r, const struct df_redact_set *set,
                    struct df_err *err) DF_MUST_CHECK;

/* Feeds bytes and appends decided ones, masked, to out. */
int df_redact_feed(struct df_redact *r, const char *bytes, size_t n, struct df_buf *out,
                   struct df_err *err) DF_MUST_CHECK;

/* Ends the stream: appends the rest to out. Another stream may follow. Without this call the tail
 * that is held back must not be shown: it may be the first half of a secret. */
int df_redact_finish(struct df_redact *r, struct df_buf *out, struct df_err *err) DF_MUST_CHECK;

/* False if the bytes contain no form of any value; a quick answer that is rarely wrong
 * otherwise. */
bool df_redact_may_find(const struct df_redact_set *set, const char *bytes, size_t n);

/* Masks a whole string. */
int df_redact_string(const struct df_redact_set *set, const char *s, struct df_buf *out,
                     struct df_err *err) DF_MUST_CHECK;

#endif
