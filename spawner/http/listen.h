/*
 * listen.h - opens the listening socket, on the configured address and, if possible, the previous
 * port.
 */
#ifndef DF_SPAWNER_HTTP_LISTEN_H
#define DF_SPAWNER_HTTP_LISTEN_H

#include "spawner/config/config.h"

/* Binds config->listen ("127.0.0.1:8030", "[::1]:0", "localhost:8030", ":8030"). With port 0 it
 * first tries the port of the URL in endpoint_file (NULL: none), so that runners that outlived the
 * previous spawner find the new one. *ret_fd: listening, close-on-exec. *ret_loopback: true if no
 * other machine can connect. *ret_url: the URL for runners and clients; the caller frees. The error
 * message names the address. */
int df_listen(const struct df_config *config, const char *endpoint_file, int *ret_fd,
              bool *ret_loopback, char **ret_url, struct df_err *err) DF_MUST_CHECK;

#endif
