/*
 * chain.h - checks whether a client would accept a server's certificate. Thread rule: any thread.
 */
#ifndef DF_CRYPTO_CHAIN_H
#define DF_CRYPTO_CHAIN_H

#include "common/base/err.h"

/* chain: PEM, the server's certificate first. authorities: PEM of those that clients trust; NULL:
 * the signer is not checked. name: the host name or address that clients use. USER: the message
 * says why they would refuse it (expired, not yet valid, another name, another signer). */
int df_chain_check(const char *chain, const char *authorities, const char *name, int64_t now_us,
                   int64_t *ret_until_us, struct df_err *err) DF_MUST_CHECK;

#endif
