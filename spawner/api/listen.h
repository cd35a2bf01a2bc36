/*
 * listen.h - where the server listens: the configured address, the port of last time if it is free.
 */
#ifndef DF_API_LISTEN_H
#define DF_API_LISTEN_H

#include "spawner/config/config.h"

/* Binds config->listen ("127.0.0.1:8030", "[::1]:0", "localhost:8030", ":8030"). With port 0 the
 * port in the URL that endpoint_file (NULL: none) still holds from the last time is tried first: a
 * runner that outlived the spawner then finds it at once. *ret_fd: listening, close-on-exec.
 * *ret_loopback: no other machine can reach it. *ret_url: what runners and clients are told; the
 * caller frees. Failure names the address. */
int df_listen(const struct df_config *config, const char *endpoint_file, int *ret_fd,
              bool *ret_loopback, char **ret_url, struct df_err *err) DF_MUST_CHECK;

#endif
