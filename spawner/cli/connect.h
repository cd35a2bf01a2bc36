/*
 * connect.h - where the spawner is: named by the user, running on this machine, or started inside.
 *
 * In this order:
 *   1. --server or DAYFLY_SERVER: that one, with the token of --token-file or DAYFLY_TOKEN.
 *   2. The data directory ($XDG_STATE_HOME/dayfly or --data-directory) is held by another process:
 *      become a client of that one.
 *   3. Nobody holds it: this process takes it and runs the service inside (embedded) until the
 *      command is done and no step is under way.
 * When the service of case 2 goes away, df_connection_again() goes through 2 and 3 once more: the
 * client takes over what that service left. Thread rule: main thread.
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

/* What case 3 is. */
enum df_connect_as {
    DF_CONNECT_SERVE,  /* the service, as above */
    DF_CONNECT_LOOK,   /* a service that answers and moves nothing on */
    DF_CONNECT_RUNNING /* none: RETRY NobodyServes */
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

/* After a failure of class RETRY: finds the server again or takes its place. For a named server it
 * only says whether trying again makes sense. The client of before is no longer valid. */
int df_connection_again(struct df_connection *c, struct df_err *err) DF_MUST_CHECK;

struct df_client *df_connection_client(const struct df_connection *c); /* borrowed */
enum df_service_kind df_connection_kind(const struct df_connection *c);

/* The configuration, where the service works for the person at this shell: inside of this process,
 * or of another one that is no `dayfly serve`. NULL for a service. Borrowed. */
const struct df_config *df_connection_shell(const struct df_connection *c);

/* Is a step under way, or about to be, that needs this embedded service? Always false elsewhere.
 * Names one such run in *ret_run (the caller frees; may be NULL). */
bool df_connection_busy(const struct df_connection *c, char **ret_run);

/* Ends the connection; an embedded service is stopped, with cancel_steps as df_service_stop() says.
 * NULL is fine. */
void df_connection_close(struct df_connection *c, bool cancel_steps);

#endif
