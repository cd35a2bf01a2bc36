/*
 * personal.h - personal tokens: what a person gives to a program of theirs, less than they may do
 * themselves. A token has a ceiling (verbs, executors) and an end; what it may is what its ceiling
 * and its owner's rights of this moment both give (df_granted_limit()).
 *
 * Its text is dft_ and, in URL base64, 16 bytes that say whose it is, 32 random ones, 8 that prove
 * that this service made it (an HMAC of those, with a key from the vault's), and the first 4 of the
 * SHA-256 of all before. So a typo and a token of another service are known as such, and nobody
 * makes the service look for a token that it did not make. It keeps the SHA-256 of the text alone.
 *
 * The records are in the vault (vault_tokens.h): each person has one entry, with a record of the
 * owner, one of each token, and one of the last use of each. The owner's has the groups that the
 * newest ID token of a person has shown, because nobody tells the service when a group is left.
 * Every use reads the entry, so that what one replica revokes no other one takes. The leader alone
 * writes. Thread rule: any thread.
 */
#ifndef DF_IDENTITY_PERSONAL_H
#define DF_IDENTITY_PERSONAL_H

#include "spawner/identity/auth.h"

struct df_personal; /* opaque */
struct df_tokens;
struct df_vault;

#define DF_PERSONAL_IDLE_DAYS 30 /* so long a person may stay away */
#define DF_PERSONAL_SHOWN_DAYS 7 /* so long an expired token is known as such */

/* vault: borrowed until it is freed. */
int df_personal_new(struct df_vault *vault, struct df_personal **ret,
                    struct df_err *err) DF_MUST_CHECK;
void df_personal_free(struct df_personal *p); /* NULL is fine */

/* Does it look like a personal token? */
bool df_personal_is(const char *token);

/* What says what an owner may do now. All is borrowed. */
struct df_personal_rules {
    const cJSON *grants;      /* auth.grants */
    struct df_tokens *tokens; /* NULL: no caller needs one */
    bool has_provider;        /* auth.oidc */
    bool writes;              /* this replica may note the use */
};

/* The caller with this token: its owner, who has what both of them may. DENIED Unauthorized says
 * why not: a typo, another service, revoked, expired, or an owner who is gone or has not signed in
 * for DF_PERSONAL_IDLE_DAYS; Forbidden as df_oidc_grant(). */
int df_personal_caller(struct df_personal *p, const struct df_personal_rules *rules,
                       const char *token, struct df_caller *ret, struct df_err *err) DF_MUST_CHECK;

/* Notes the groups of somebody who has come with a token of the provider, if they have personal
 * tokens: when they have changed, else once in an hour. A token that is older than the one that
 * was noted changes nothing. */
int df_personal_note(struct df_personal *p, const struct df_caller *person,
                     struct df_err *err) DF_MUST_CHECK;

/* Makes a token. request: {name, expires, on, verbs or preset}; changed. *ret: as of
 * df_personal_list(), and `token`, its text; the caller wipes it. USER; CONFLICT AlreadyExists or
 * TooManyTokens. */
int df_personal_create(struct df_personal *p, const struct df_caller *owner, cJSON *request,
                       cJSON **ret, struct df_err *err) DF_MUST_CHECK;

/* Whose tokens are meant. */
struct df_personal_owner {
    const char *name;
    const char *known_by; /* df_known_by_name(); NULL: whoever has this name */
};

/* *ret: [{name, owner, knownBy, on, verbs, createdAt, expiresAt, lastUsedAt or none}], also of
 * expired ones; the caller frees. */
int df_personal_list(struct df_personal *p, const struct df_personal_owner *owner, cJSON **ret,
                     struct df_err *err) DF_MUST_CHECK;
/* name NULL: all of them. NOT_FOUND. */
int df_personal_revoke(struct df_personal *p, const struct df_personal_owner *owner,
                       const char *name, struct df_err *err) DF_MUST_CHECK;

/* Removes the records of tokens that expired DF_PERSONAL_SHOWN_DAYS ago, and of people who have
 * none. */
int df_personal_sweep(struct df_personal *p, struct df_err *err) DF_MUST_CHECK;

#endif
