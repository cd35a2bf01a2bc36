/*
 * connect.h - where the spawner is: named by the user, running on this machine, or started inside.
 *
 * In this order:
 *   1. --server or DAYFLY_SERVER: that one, with the token of --token-file or DAYFLY_TOKEN.
 *   2. The data directory ($XDG_STATE_HOME/dayfly or --data-directory) is held by another process:
 *      become a client of that one.
 *   3. Nobody holds it: this process takes it and runs the service inside (embedded) until the
 *      command is done and no step is under way.
 * When a neighbour of case 2 goes away, df_connection_again() goes through 2 and 3 once more: the
 * client takes over what its neighbour left. Thread rule: main thread.
 */
#ifndef DF_CLI_CONNECT_H
#define DF_CLI_CONNECT_H

#include "spawner/cli/client.h"

enum df_place {
    DF_PLACE_NAMED,     /* --server */
    DF_PLACE_NEIGHBOUR, /* another process of this machine */
    DF_PLACE_EMBEDDED   /* this process */
};

struct df_connect_options {
    const char *server;         /* URL, or NULL */
    const char *token_file;     /* or NULL: DAYFLY_TOKEN */
    const char *ca_file;        /* or NULL */
    const char *data_directory; /* or NULL: the default */
    const char *config;         /* configuration file of an embedded service, or NULL */
};

struct df_connection; /* opaque */

/* The strings of o must outlive the connection. Class USER: a token file that cannot be read. */
int df_connection_open(const struct df_connect_options *o, struct df_connection **ret,
                       struct df_err *err) DF_MUST_CHECK;

/* After a failure of class RETRY: finds the server again or takes its place. For a named server it
 * only says whether trying again makes sense. The client of before is no longer valid. */
int df_connection_again(struct df_connection *c, struct df_err *err) DF_MUST_CHECK;

struct df_client *df_connection_client(const struct df_connection *c); /* borrowed */
enum df_place df_connection_place(const struct df_connection *c);

/* Is a step under way, or about to be, that needs this embedded service? Always false elsewhere.
 * Names one such run in *ret_run (the caller frees; may be NULL). */
bool df_connection_busy(const struct df_connection *c, char **ret_run);

/* Ends the connection; an embedded service is stopped, with cancel_steps as df_service_stop() says.
 * NULL is fine. */
void df_connection_close(struct df_connection *c, bool cancel_steps);

#endif
