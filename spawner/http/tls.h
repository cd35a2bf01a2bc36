/*
 * tls.h - the server's certificate, and the authority that its clients must trust. There are two
 * cases:
 *
 * With server.tls.certFile and .keyFile the certificate is in these files. After a change the next
 * connection uses the new pair. While the two files do not match (only one of them is new), the
 * previous pair stays in use and df_tls_check() reports the fault.
 *
 * With server.tls.names the certificate is issued by an authority of dayfly's own, which replicas
 * share through server.tls.secret (authority.h). Both are kept in <data>/tls. The certificate is
 * renewed before it expires, and if the names change.
 *
 * <data>/ca.pem is the authority that runners and clients on this machine trust: dayfly's own, or a
 * copy of server.tls.caFile. The file is absent if the system's certificates are enough. Thread
 * rule: any thread.
 */
#ifndef DF_SPAWNER_HTTP_TLS_H
#define DF_SPAWNER_HTTP_TLS_H

#include <gnutls/abstract.h>

#include "spawner/config/config.h"

struct df_tls; /* opaque */
struct df_kube;

/* url: the URL for clients; its host becomes a name of the certificate. kube: for
 * server.tls.secret; or NULL. *ret: NULL if TLS is not configured. */
int df_tls_open(const struct df_config *config, struct df_kube *kube, const char *url,
                struct df_tls **ret, struct df_err *err) DF_MUST_CHECK;
void df_tls_close(struct df_tls *t); /* NULL is fine */

/* <data>/ca.pem, or NULL. Lives as long as t. */
const char *df_tls_ca_file(const struct df_tls *t);

/* Fails if the present files cannot be used. */
int df_tls_check(struct df_tls *t, struct df_err *err) DF_MUST_CHECK;

/* The chain and key for one handshake; the caller deinits both and frees *ret_chain with
 * gnutls_free(). */
int df_tls_pair(struct df_tls *t, gnutls_pcert_st **ret_chain, unsigned *ret_count,
                gnutls_privkey_t *ret_key, struct df_err *err) DF_MUST_CHECK;

#endif
