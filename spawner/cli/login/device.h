/*
 * device.h - the device authorization grant (RFC 8628): a person signs in with a browser, on this
 * machine or another one, and enters a code there that is shown here. Thread rule: main thread.
 */
#ifndef DF_CLI_LOGIN_DEVICE_H
#define DF_CLI_LOGIN_DEVICE_H

#include "spawner/cli/login/provider.h"

/* Shows the URL and the code on standard error, and waits until the person has signed in. scope:
 * what to ask for, separated by blanks; NULL: what a login needs of what the provider lists. The
 * tokens come into `to`, as by df_provider_take(). DENIED with the reason access_denied or
 * expired_token, or another word of OAuth; USER: the provider has no such grant. */
int df_device_sign_in(struct df_provider *p, const char *scope, cJSON *to,
                      struct df_err *err) DF_MUST_CHECK;

#endif
