/*
 * trust.h - the certificates that the tool's own downloads are checked with. Thread rule: any
 * thread.
 */
#ifndef DF_TOFU_TRUST_H
#define DF_TOFU_TRUST_H

#include "common/base/err.h"

/* Writes a file for SSL_CERT_FILE: what the system trusts (file, or if it is NULL the system's own
 * bundle), and the certificates of pem. */
int df_trust_write(const char *file, const char *pem, const char *path,
                   struct df_err *err) DF_MUST_CHECK;

#endif
