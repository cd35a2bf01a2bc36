/*
 * local_token.h - the token with which the commands of this user reach a service of this machine
 * that has neither a token file nor accounts.
 *
 * It is in the file `token` of the data directory, mode 0600: whoever can read that directory is
 * admin. Other users of the machine, and modules that do not see the directory, are not.
 * Thread rule: any thread.
 */
#ifndef DF_IDENTITY_LOCAL_TOKEN_H
#define DF_IDENTITY_LOCAL_TOKEN_H

#include "common/base/err.h"

/* Reads the token, and makes it first if there is none, or if others could read it. The caller
 * wipes and frees *ret. */
int df_local_token_make(const char *data_directory, char **ret, struct df_err *err) DF_MUST_CHECK;
/* Reads the token. *ret NULL: there is none, or its file belongs to another user. */
int df_local_token_read(const char *data_directory, char **ret, struct df_err *err) DF_MUST_CHECK;
/* Removes the token of a service that has other ones. */
int df_local_token_remove(const char *data_directory, struct df_err *err) DF_MUST_CHECK;

#endif
