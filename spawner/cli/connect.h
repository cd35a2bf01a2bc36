/*
 * connect.h - finds the spawner: named by the user, running on this machine, or embedded in this
 * process.
 *
 * In this order:
 *   1. --server or DAYFLY_SERVER names it. The token is in --token-file or DAYFLY_TOKEN, or it is
 *      that of a login for this URL (login/logins.h), or in the data directory (local_token.h). The
 *      same in case 2; in case 3 it is in the data directory.
 *   2. Another process holds the data directory ($XDG_STATE_HOME/dayfly or --data-directory):
 *      connect to that process.
 *   3. No process holds it: this process locks it and runs the service itself (embedded) until the
 *      command is done and no step is running.
 * When the service of case 2 goes away, df_connection_again() repeats 2 and 3 if that service was
 * another command: this process may then continue its work. A `dayfly serve` is only waited for:
 * its steps belong to its engines. Thread rule: main thread.
 */
#ifndef DF_CLI_CONNECT_H
#define DF_CLI_CONNECT_H

#include "spawner/cli/client.h"
#include "spawner/config/config.h"

enum df_service_kind {
    DF_SERVICE_NAMED,   /* --server */
    DF_SERVICE_RUNNING, /* another process of this machine */
    DF_SERVICE_EMBEDDED /* this process */
};

/* What this process runs in case 3. */
enum df_connect_as {
    DF_CONNECT_SERVE, /* the whole service; what LOOK does where steps have other engines */
    DF_CONNECT_WORK,  /* the whole service; CONFLICT EngineMissing where steps have other engines */
    DF_CONNECT_LOOK,  /* a service that answers requests but does not reconcile */
    DF_CONNECT_RUNNING /* nothing: RETRY NobodyServes */
};

struct df_connect_options {
    const char *server;         /* URL, or NULL */
    const char *token_file;     /* or NULL: DAYFLY_TOKEN */
    const char *ca_file;        /* or NULL */
    const char *data_directory; /* or NULL: the default */
    const char *config;         /* configuration file of an embedded service, or NULL */
    enum df_connect_as as;
};

struct df_connection; /* opaque */

/* The strings of o must outlive the connection. Class USER: a token file that cannot be read. */
int df_connection_open(const struct df_connect_options *o, struct df_connection **ret,
                       struct df_err *err) DF_MUST_CHECK;

/* After a failure of class RETRY: repeats cases 2 and 3, or only 2 in place of a `dayfly serve`
 * (RETRY NobodyServes until it is back). For a named or embedded service it only checks whether the
 * service answers. The previous client is no longer valid. */
int df_connection_again(struct df_connection *c, struct df_err *err) DF_MUST_CHECK;

struct df_client *df_connection_client(const struct df_connection *c); /* borrowed */
enum df_service_kind df_connection_kind(const struct df_connection *c);

/* The configuration, if the service runs only for its own user: embedded in this process, or in
 * another `dayfly run`, `plan`, `destroy`, `recreate`, `approve` or `state`. Else NULL.
 * Borrowed. */
const struct df_config *df_connection_shell(const struct df_connection *c);

/* True if a run is running, or about to start, that needs this embedded service, or if that cannot
 * be determined; always false for other services. *ret_run: the name of such a run, for the caller
 * to free; ret_run may be NULL. */
bool df_connection_busy(const struct df_connection *c, char **ret_run);

/* Closes the connection and stops an embedded service; cancel_steps: see df_service_stop(). NULL is
 * fine. */
void df_connection_close(struct df_connection *c, bool cancel_steps);

#endif
