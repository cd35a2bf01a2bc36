/*
 * truststore.h - the certificates of a file of authorities, in the forms that Java programs are
 * given: PEM, PKCS#12, and Java's own old form (JKS). Thread rule: any thread.
 */
#ifndef DF_CRYPTO_TRUSTSTORE_H
#define DF_CRYPTO_TRUSTSTORE_H

#include "common/base/buf.h"

/* Adds the trusted certificates of the file's content to out, as PEM. password: of the two forms
 * that have one; NULL or "": none. Of a JKS the entries with private keys are left out; its digest
 * is checked if there is a password. USER: another form, a damaged file, a wrong password, or no
 * certificate in it. */
int df_truststore_read(const void *bytes, size_t n, const char *password, struct df_buf *out,
                       struct df_err *err) DF_MUST_CHECK;

/* Adds the system's own bundle, as its file has it. A minimal image has none: nothing is added. */
int df_truststore_system(struct df_buf *out, struct df_err *err) DF_MUST_CHECK;

#endif
