/*
 * tls.h - the certificate that the server shows, and what its clients are to trust.
 *
 * Either the files of server.tls.certFile and .keyFile: a changed pair is taken up at the next
 * connection; while it is not whole (one file of two is new) the pair before stays good and
 * df_tls_check() says what is wrong. Or, with server.tls.names, a certificate of an authority of
 * our own, which replicas share by server.tls.secret (authority.h): both are kept in <data>/tls,
 * and the certificate is made anew when the names change or its end comes near. <data>/ca.pem is
 * what clients on this machine and runners are to trust: our authority, or a copy of
 * server.tls.caFile; it is not there when the system's certificates do. Thread rule: any thread.
 */
#ifndef DF_API_TLS_H
#define DF_API_TLS_H

#include <gnutls/abstract.h>

#include "spawner/config/config.h"

struct df_tls; /* opaque */
struct df_kube;

/* url: what clients are told; its host is one of the names. kube: for server.tls.secret; or NULL.
 * *ret NULL when the configuration asks for no TLS. */
int df_tls_open(const struct df_config *config, struct df_kube *kube, const char *url,
                struct df_tls **ret, struct df_err *err) DF_MUST_CHECK;
void df_tls_close(struct df_tls *t); /* NULL is fine */

/* <data>/ca.pem, or NULL. Lives as long as t. */
const char *df_tls_ca_file(const struct df_tls *t);

/* Is the pair as it stands now good? */
int df_tls_check(struct df_tls *t, struct df_err *err) DF_MUST_CHECK;

/* The chain and key for one handshake; the caller deinits both and frees *ret_chain with
 * gnutls_free(). */
int df_tls_pair(struct df_tls *t, gnutls_pcert_st **ret_chain, unsigned *ret_count,
                gnutls_privkey_t *ret_key, struct df_err *err) DF_MUST_CHECK;

#endif
