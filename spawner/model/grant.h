/*
 * grant.h - the people of the configuration: who vouches for them, and the grants that say who has
 * which role. A grant only allows; whoever is named by several has the highest role of them. Thread
 * rule: pure functions, any thread.
 */
#ifndef DF_MODEL_GRANT_H
#define DF_MODEL_GRANT_H

#include "common/json/json.h"
#include "spawner/model/names.h"

/* auth.oidc.*: the OpenID provider (identity/oidc.h). */
struct df_openid {
    char *issuer;        /* its URL, as tokens name it; NULL: there is none */
    char *audience;      /* of tokens for this service: its client id */
    char *ca_file;       /* PEM; NULL: the system's */
    char *user_claim;    /* the claim, or a path to it, with a person's name */
    char *user_prefix;   /* before each name, "-": nothing. NULL: "<issuer>#", and nothing for the
                          * claim email */
    char *groups_claim;  /* the claim, or a path to it: a list of strings, or one */
    char *groups_prefix; /* before each group; NULL: nothing */
};

/* Checks auth.grants, {name: {to: {users, groups}, on: {all}, preset}}. Class USER: the message
 * names every fault with its path. */
int df_grants_check(cJSON *grants, struct df_err *err);

/* The highest role that the grants (NULL: none) give this user with these groups, an array of
 * strings. */
enum df_role df_grants_role(const cJSON *grants, const char *user, const cJSON *groups);

#endif
