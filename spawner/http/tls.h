/*
 * tls.h - the server's certificate, and the authority that its clients must trust.
 *
 * Either the files server.tls.certFile and .keyFile: the next connection uses a changed pair. While
 * the pair does not match (only one file is new), the previous pair stays in use and df_tls_check()
 * reports the fault. Or, with server.tls.names, a certificate of our own authority, which replicas
 * share through server.tls.secret (authority.h): both are kept in <data>/tls, and the certificate
 * is renewed before it expires or if the names change. <data>/ca.pem is the authority that runners
 * and clients on this machine trust: our own, or a copy of server.tls.caFile. The file is absent if
 * the system's certificates are enough. Thread rule: any thread.
 */
#ifndef DF_SPAWNER_HTTP_TLS_H
#define DF_SPAWNER_HTTP_TLS_H

#include <gnutls/abstract.h>

#include "spawner/config/config.h"

struct df_tls; /* opaque */
struct df_kube;

/* url: the URL for clients; its host becomes a name. kube: for server.tls.secret; or NULL.
 * *ret is NULL if TLS is not configured. */
int df_tls_open(const struct df_config *config, struct df_kube *kube, const char *url,
                struct df_tls **ret, struct df_err *err) DF_MUST_CHECK;
void df_tls_close(struct df_tls *t); /* NULL is fine */

/* <data>/ca.pem, or NULL. Lives as long as t. */
const char *df_tls_ca_file(const struct df_tls *t);

/* Fails if the files as they are now cannot be used. */
int df_tls_check(struct df_tls *t, struct df_err *err) DF_MUST_CHECK;

/* The chain and key for one handshake; the caller deinits both and frees *ret_chain with
 * gnutls_free(). */
int df_tls_pair(struct df_tls *t, gnutls_pcert_st **ret_chain, unsigned *ret_count,
                gnutls_privkey_t *ret_key, struct df_err *err) DF_MUST_CHECK;

#endif
