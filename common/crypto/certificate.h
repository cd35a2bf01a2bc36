/*
 * certificate.h - a small certificate authority: creates itself and server certificates. PEM, P-256
 * keys. Thread rule: any thread.
 */
#ifndef DF_CRYPTO_CERTIFICATE_H
#define DF_CRYPTO_CERTIFICATE_H

#include "common/base/buf.h"
#include "common/base/strs.h"

/* Creates an authority with this name (CN), valid for ten years, that can only sign server
 * certificates. *key holds a secret: df_buf_wipe(). Both buffers are appended to. */
int df_certificate_authority(const char *name, struct df_buf *key, struct df_buf *certificate,
                             struct df_err *err) DF_MUST_CHECK;

/* Creates a server certificate for these host names and IP addresses (at least one), valid from an
 * hour ago (clocks differ) for one year. USER if the authority's PEM is not valid. */
int df_certificate_issue(const char *authority_key, const char *authority_certificate,
                         const struct df_strs *names, struct df_buf *key,
                         struct df_buf *certificate, struct df_err *err) DF_MUST_CHECK;

/* True if the first certificate of this PEM covers all names, is signed by the authority and is
 * valid until the given real time. False also if the PEM is invalid. */
bool df_certificate_fits(const char *certificate, const char *authority,
                         const struct df_strs *names, int64_t until_us);

/* Checks that the first certificate and the key belong together. USER says what is wrong; the
 * message contains nothing of the key. */
int df_certificate_check_pair(const char *certificate, const char *key,
                              struct df_err *err) DF_MUST_CHECK;

#endif
