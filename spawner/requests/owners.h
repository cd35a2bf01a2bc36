/*
 * owners.h - whose a blob is: the executor of the document that it belongs to. Keys of blobs have
 * the uid of an executor (state/, outputs/) or of a step (plans/, logs/, outputs/). Thread rule:
 * one struct, one thread.
 */
#ifndef DF_REQUESTS_OWNERS_H
#define DF_REQUESTS_OWNERS_H

#include "spawner/spawner.h"

enum df_stored {
    DF_STORED_STATES,
    DF_STORED_PLANS,
    DF_STORED_LOGS, /* and events */
    DF_STORED_OUTPUTS,
    DF_STORED_DOCUMENTS,
    DF_STORED_AUDIT,
    DF_STORED_KINDS
};

/* "states", "plans", ... */
const char *df_stored_name(enum df_stored kind);

/* The kind of a blob and the uid in its key. False: the key is none of ours. */
bool df_stored_of(const char *key, enum df_stored *ret, char ret_uid[64]);

/* Is this blob one more thing of its kind? A version of a state is two blobs (and a lock is none),
 * a log is two with its events: each counts once, the bytes of all count. */
bool df_stored_counts(const char *key, enum df_stored kind);

struct df_owners; /* opaque; 48 bytes and a bit for each executor and step */

int df_owners_new(struct df_owners **ret, struct df_err *err) DF_MUST_CHECK;
void df_owners_free(struct df_owners *o); /* NULL is fine */
static inline void df_cleanup_owners(struct df_owners **o)
{
    df_owners_free(*o);
}
#define DF_OWNERS DF_CLEANUP(df_cleanup_owners)

/* Adds a document; a Run and a Revision are ignored: no blob has their uid. */
int df_owners_add(struct df_owners *o, enum df_kind kind, const cJSON *doc,
                  struct df_err *err) DF_MUST_CHECK;
/* Adds all there are. */
int df_owners_load(struct df_owners *o, struct df_store *store, struct df_err *err) DF_MUST_CHECK;

/* The name of the executor, borrowed; "": it is that of a workflow; NULL: no document has this
 * uid. */
const char *df_owners_find(struct df_owners *o, const char *uid);

/* The name of the executor of this document, or "". Borrowed from doc. */
const char *df_owner_of(enum df_kind kind, const cJSON *doc);

#endif
