/*
 * secrets.h - requests on secrets, and what an executor must be allowed to name a secret.
 *
 * A secret may be for some executors only (model/secret_use.h). Its owner and admins change it; for
 * every executor only an admin makes it. A secret that an executor or an unfinished run names is
 * replaced, deleted or taken from its users only by force. Thread rule: any thread.
 */
#ifndef DF_REQUESTS_SECRETS_H
#define DF_REQUESTS_SECRETS_H

#include "spawner/spawner.h"

struct df_secret_request {
    const char *name;
    const char *key;            /* NULL: the whole secret */
    const struct df_buf *value; /* of the key; NULL: only executors are changed, or a deletion */
    const char *executors;      /* who may use it (df_secret_use_parse); NULL: as before */
    bool force;                 /* also if it is in use */
    enum df_role role;          /* of the caller */
    const char *actor;
};

/* Sets a value, the executors, or both. DENIED for somebody else's secret; USER if a new secret of
 * a caller who is no admin names no executors; DENIED if such a caller allows every executor;
 * CONFLICT SecretInUse names the users. */
int df_request_set_secret(struct df_spawner *s, const struct df_secret_request *request,
                          struct df_err *err) DF_MUST_CHECK;
/* Deletes a key or the secret. Fails as above. */
int df_request_delete_secret(struct df_spawner *s, const struct df_secret_request *request,
                             struct df_err *err) DF_MUST_CHECK;

/* Refuses an executor that names a secret which it may not use: DENIED SecretNotAllowed. Refuses
 * also that a caller who is neither admin nor owner makes an executor that somebody's secret is
 * for: its module would get the secret. Only admins edit executors. */
int df_request_check_secrets(struct df_spawner *s, const cJSON *executor, enum df_role role,
                             const char *actor, struct df_err *err) DF_MUST_CHECK;

/* Sets doc.warnings: a sentence for each secret that a stored executor names and that does not
 * exist yet, with the command that makes it; it may be made afterwards, so this is no fault. Leaves
 * doc as it is if there is none. */
int df_request_warn_of_secrets(struct df_spawner *s, cJSON *doc, struct df_err *err) DF_MUST_CHECK;

#endif
