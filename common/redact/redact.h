/*
 * redact.h - takes known secret values out of a byte stream, in every form in which they travel.
 *
 * Forms: raw; base64 (standard and URL alphabet, all three alignments, without the characters that
 * also depend on the neighbours); percent-encoded (upper- and lower-case hex; everything, or all
 * but what common encoders leave alone); JSON-escaped (also with \uXXXX, with \/, and twice over);
 * HCL- and shell-quoted where they differ; hex (upper and lower). forms.h lists them. Blanks at the
 * ends of a value do not belong to it. Each line of a value of several lines is a value too. Values
 * shorter than 4 bytes are left out: they would mask everything. Values longer than 1 KiB are
 * looked for in overlapping pieces, so that a part of one is masked, too.
 *
 * Every byte that any occurrence of any form covers is masked; each run of such bytes becomes one
 * "***". Memory is bounded by the set of secrets, not by the stream: what is held back is only a
 * tail that may be the beginning of a form. Thread rule: a set is read-only once built and may be
 * shared; a stream is one thread's.
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
                  struct df_err *err) DF_MUST_CHECK; /* the set is borrowed and must live on */
void df_redact_free(struct df_redact *r);

/* Feeds bytes; what is surely clean is appended to out. */
int df_redact_feed(struct df_redact *r, const char *bytes, size_t n, struct df_buf *out,
                   struct df_err *err) DF_MUST_CHECK;

/* The stream is over: the rest is appended to out; another stream may begin. Without that end the
 * held-back tail must not be shown: it may be the first half of a secret. */
int df_redact_finish(struct df_redact *r, struct df_buf *out, struct df_err *err) DF_MUST_CHECK;

/* How many "***" were written so far. */
uint64_t df_redact_count(const struct df_redact *r);

/* Does any form of any value occur in these bytes? */
bool df_redact_finds(const struct df_redact_set *set, const char *bytes, size_t n);

/* One string at once. */
int df_redact_string(const struct df_redact_set *set, const char *s, struct df_buf *out,
                     struct df_err *err) DF_MUST_CHECK;

#endif
