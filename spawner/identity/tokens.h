/*
 * tokens.h - the file of bearer tokens: one per line, `name role sha256`.
 *
 * # made with: printf %s "$(openssl rand -hex 32)" | sha256sum
 * ci     write  9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
 *
 * name: a DNS label, for the audit trail; role: read, write or admin; sha256: 64 hex digits of the
 * token's SHA-256 (tokens are long random strings, so a plain hash is enough). Blank lines and
 * lines that begin with # are skipped; any other line makes the whole file invalid. A changed file
 * is read before the next request. If it is invalid, or has no tokens any more (a file that is
 * being rewritten in place), the previous tokens stay valid, a warning is logged once for each
 * version of the file, and df_tokens_check() reports the cause. Thread rule: any thread.
 */
#ifndef DF_IDENTITY_TOKENS_H
#define DF_IDENTITY_TOKENS_H

#include "common/json/json.h"
#include "spawner/model/model.h"

struct df_tokens; /* opaque */

/* path NULL: there is no file, and no token is known. */
int df_tokens_open(const char *path, struct df_tokens **ret, struct df_err *err) DF_MUST_CHECK;
/* Instead of a file the one token of local_token.h: its caller is the admin "local". */
int df_tokens_open_local(const char *token, struct df_tokens **ret,
                         struct df_err *err) DF_MUST_CHECK;
void df_tokens_close(struct df_tokens *t);

/* Returns the role of a token, or DF_ROLE_NONE. Compares every entry, in constant time. */
enum df_role df_tokens_find(struct df_tokens *t, const char *token, char name[64]);

/* Appends {name, role} of each token to ret, an array. t NULL: callers need no token, and each is
 * the admin "local". */
int df_tokens_list(struct df_tokens *t, cJSON *ret, struct df_err *err) DF_MUST_CHECK;

/* The role of the token with this name, or DF_ROLE_NONE. */
enum df_role df_tokens_role(struct df_tokens *t, const char *name);

/* Does a file have them? Otherwise they are that of local_token.h, or none. */
bool df_tokens_are_of_file(const struct df_tokens *t);

/* Fails if the current file is invalid. */
int df_tokens_check(struct df_tokens *t, struct df_err *err) DF_MUST_CHECK;

/* The parser of a file's text, for tests. */
struct df_token {
    char name[64];
    enum df_role role;
    char sha256[65];
};
int df_tokens_parse(const char *text, struct df_token **ret, size_t *ret_count,
                    struct df_err *err) DF_MUST_CHECK;

#endif
