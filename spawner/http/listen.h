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

/* Binds an address of the form above, for one purpose only: key names it in messages. *ret_fd:
 * listening, close-on-exec, non-blocking. */
int df_listen_at(const char *key, const char *listen, int *ret_fd,
                 struct df_err *err) DF_MUST_CHECK;

#endif
