/*
 * deletions.h - who deletes custom resources, as the admission webhook was told. A deletion has no
 * document that could keep a name, so the name is kept here until the deletion is audited: in
 * memory, of the leader (docs/internals/stamp.md).
 *
 * Anybody may call the webhook, so a name counts only if nobody told another one for the same uid,
 * which only those know who may read the document. A false call takes a name away, and writes none
 * beside that of the API server.
 * Thread rule: any thread.
 */
#ifndef DF_REQUESTS_DELETIONS_H
#define DF_REQUESTS_DELETIONS_H

#include "spawner/model/stamp.h"

struct df_deletions; /* opaque */

int df_deletions_new(struct df_deletions **ret, struct df_err *err) DF_MUST_CHECK;
void df_deletions_free(struct df_deletions *d); /* NULL is fine */

/* This user deletes the document with this uid. Forgotten after DF_LIMIT_DELETION_SECONDS, and at
 * once if DF_LIMIT_DELETIONS others are not audited yet. now_us: real time, as below. */
void df_deletions_tell(struct df_deletions *d, const char *uid, const struct df_stamp *by,
                       int64_t now_us);

/* Who deleted it, which is then forgotten; df_stamp_nobody() if that is not known or disputed. d
 * may be NULL. */
struct df_stamp df_deletions_take(struct df_deletions *d, const char *uid, int64_t now_us);

#endif
