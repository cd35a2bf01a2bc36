/*
 * logins.h - the tokens that `dayfly login` got, one login for each URL of a service, in
 * $XDG_CONFIG_HOME/dayfly/logins.json (~/.config). The file is this user's alone (0600) and is
 * replaced in one piece; a lock beside it lets one process renew a login at a time, because
 * providers take a refresh token once. A login goes to the service with exactly its URL. Thread
 * rule: any thread.
 */
#ifndef DF_CLI_LOGIN_LOGINS_H
#define DF_CLI_LOGIN_LOGINS_H

#include "common/json/json.h"

/* For all of them: url has no slash at the end. DENIED NotPrivate: others can read the file. */

/* *ret: is there a login for this service? */
int df_logins_has(const char *url, bool *ret, struct df_err *err) DF_MUST_CHECK;

/* The ID token for this service, renewed if it has expired; the caller wipes it. *ret_until_us: the
 * time at which to ask again. DENIED LoginExpired: it cannot be renewed; RETRY while the provider
 * is away. */
int df_logins_token(const char *url, char **ret, int64_t *ret_until_us,
                    struct df_err *err) DF_MUST_CHECK;

/* Adds or replaces a login: {issuer, clientId, caFile or none, idToken, refreshToken or none}. */
int df_logins_put(const char *url, const cJSON *login, struct df_err *err) DF_MUST_CHECK;

/* Removes a login. *ret: what it was; the caller wipes it. NOT_FOUND. */
int df_logins_remove(const char *url, cJSON **ret, struct df_err *err) DF_MUST_CHECK;

#endif
