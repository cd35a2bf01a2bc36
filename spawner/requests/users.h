/*
 * users.h - who uses a secret or an integration: executors, and runs that have not ended. Thread
 * rule: any thread.
 */
#ifndef DF_REQUESTS_USERS_H
#define DF_REQUESTS_USERS_H

#include "spawner/spawner.h"

struct df_users {
    /* What is looked for. Borrowed. */
    const char *secret;      /* or NULL */
    const char *key;         /* of the secret; NULL: any */
    const char *integration; /* or NULL */
    const cJSON *through;    /* names of integrations that stand for the secret; or NULL */
    const cJSON *use;        /* only users that it does not cover (secret_use.h); NULL: all */
    /* What was found. */
    struct df_buf text; /* "executor net, run net-3": the first ones */
    size_t count;
};
#define DF_USERS_TEXT DF_BUF_INIT(DF_KIB)

void df_users_free(struct df_users *u);
#define DF_USERS DF_CLEANUP(df_users_free) struct df_users

int df_users_find(struct df_spawner *s, struct df_users *u, struct df_err *err) DF_MUST_CHECK;

/* Adds one: kind "integration". */
void df_users_add(struct df_users *u, const char *kind, const char *name);

/* Fails with CONFLICT and this reason: 'secret "x" is in use by executor net: <way>'. 0 if there
 * are no users. */
int df_users_refuse(const struct df_users *u, const char *reason, const char *way,
                    struct df_err *err) DF_MUST_CHECK;

#endif
