/*
 * grant.h - the people of the configuration: who vouches for them, and the grants that say who
 * may do what with which executors. A grant only allows; whoever is named by several has the verbs
 * of all. Thread rule: pure functions, any thread.
 */
#ifndef DF_MODEL_GRANT_H
#define DF_MODEL_GRANT_H

#include "common/json/json.h"
#include "spawner/model/verbs.h"

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
    char *scopes;        /* that `dayfly login` asks for, separated by blanks; NULL: it chooses */
};

/* Checks auth.grants, {name: {to: {users, groups, serviceAccounts}, on: {all} or {names} or
 * {matchLabels}, verbs or preset}}. Class USER: the message names every fault with its path. */
int df_grants_check(cJSON *grants, struct df_err *err);

/* Is one of them for people, or for service accounts? */
bool df_grants_name_people(const cJSON *grants);
bool df_grants_name_accounts(const cJSON *grants);

df_verbs df_grant_verbs(const cJSON *grant);

/* Somebody whom grants may name. */
struct df_grantee {
    const char *user;    /* NULL: no person */
    const cJSON *groups; /* an array of strings; or NULL */
    const char *account; /* "namespace/name"; NULL: no service account */
};

/* Do the lists of `whom` {users, groups, serviceAccounts} name them, or a group of theirs? */
bool df_grantee_is_of(const cJSON *whom, const struct df_grantee *who);

/* What somebody was granted. */
struct df_granted {
    df_verbs all;       /* on every executor */
    df_verbs creator;   /* on executors that they made (auth.creator) */
    const cJSON **some; /* grants on some executors: an array of its own, of borrowed grants */
    size_t some_count;
    const cJSON *ceiling; /* of a personal token: what it may have of this; borrowed. NULL: none */
    df_verbs beneath;     /* with a ceiling: what `all` would be without it */
};

/* What the grants (NULL: none) give; free with df_granted_free(). */
int df_grants_of(const cJSON *grants, const struct df_grantee *who, struct df_granted *ret,
                 struct df_err *err) DF_MUST_CHECK;
void df_granted_free(struct df_granted *g);

/* Checks what a personal token is to be, {name, expires} and its ceiling, {on, verbs or preset} as
 * in a grant; adds `on: {all: true}` if it says nothing of executors. *ret_us: how long it lasts,
 * 30 days if it says nothing. Class USER, as above. */
int df_token_check(cJSON *token, int64_t *ret_us, struct df_err *err) DF_MUST_CHECK;
/* From now on it is what the ceiling and this both give, on each executor. */
void df_granted_limit(struct df_granted *g, const cJSON *ceiling);

/* What they give on an executor: the union. doc: its document, or the one that is to be stored;
 * NULL: there is none, so that only its name counts. caller: a name as status.creator has it. The
 * creator's part is for those who may still create it: who have the verbs of the role write. */
df_verbs df_granted_on(const struct df_granted *g, const char *caller, const char *name,
                       const cJSON *doc);

/* Is the grant on this executor? doc as above. */
bool df_grant_is_on(const cJSON *grant, const char *executor, const cJSON *doc);

/* Appends the names of the grants that name somebody to ret, an array. */
int df_grants_naming(const cJSON *grants, const struct df_grantee *who, cJSON *ret,
                     struct df_err *err) DF_MUST_CHECK;

#endif
