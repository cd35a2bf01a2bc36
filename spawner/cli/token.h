/* token.h - how a personal token is shown. Thread rule: pure function, any thread. */
#ifndef DF_CLI_TOKEN_H
#define DF_CLI_TOKEN_H

#include "common/json/json.h"

/* Appends which executors a token is for, as the service shows it: "all", "net, dns" or
 * "team=net". */
void df_token_executors(const cJSON *token, struct df_buf *out);

#endif
