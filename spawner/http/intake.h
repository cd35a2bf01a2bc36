/*
 * intake.h - how much a peer may send over TLS before a request gets something of it. GnuTLS 3.7
 * collects a message of a handshake, which may announce 16 MiB, before it looks at its length; also
 * after the handshake, where TLS 1.3 has such messages too, but then not between the data of a
 * request. Thread rule: the connection's own.
 */
#ifndef DF_SPAWNER_HTTP_INTAKE_H
#define DF_SPAWNER_HTTP_INTAKE_H

#include <gnutls/gnutls.h>
#include <stddef.h>

struct df_intake {
    int fd;
    size_t left; /* bytes; with none left, reading fails */
};

/* From now on the session reads from fd through this intake, which must outlive it. */
void df_intake_attach(struct df_intake *i, int fd, gnutls_session_t session);
/* A request got something: the peer may send DF_LIMIT_HTTP_UNREAD again. NULL is fine. */
void df_intake_renew(struct df_intake *i);

#endif
