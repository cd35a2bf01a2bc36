/*
 * certificate.h - a small certificate authority: makes itself, and server certificates. PEM, keys
 * of P-256. Thread rule: any thread.
 */
#ifndef DF_CRYPTO_CERTIFICATE_H
#define DF_CRYPTO_CERTIFICATE_H

#include "common/base/buf.h"
#include "common/base/strs.h"

/* A new authority of this name (its CN), good for ten years, that can sign server certificates
 * alone. *key holds a secret: df_buf_wipe(). Both are appended to. */
int df_certificate_authority(const char *name, struct df_buf *key, struct df_buf *certificate,
                             struct df_err *err) DF_MUST_CHECK;

/* A server certificate for these host names and IP addresses (at least one), good for one year from
 * an hour ago, because clocks differ. Class USER when the authority's PEM is no such thing. */
int df_certificate_issue(const char *authority_key, const char *authority_certificate,
                         const struct df_strs *names, struct df_buf *key,
                         struct df_buf *certificate, struct df_err *err) DF_MUST_CHECK;

/* Is the first certificate of this PEM for every one of the names, signed by the authority, and
 * good until then (real time)? False also for what is none. */
bool df_certificate_fits(const char *certificate, const char *authority,
                         const struct df_strs *names, int64_t until_us);

/* Do the first certificate and the key belong together? Class USER says what is wrong; the
 * message has nothing of the key. */
int df_certificate_check_pair(const char *certificate, const char *key,
                              struct df_err *err) DF_MUST_CHECK;

#endif
