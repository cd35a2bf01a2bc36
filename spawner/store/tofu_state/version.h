/*
 * version.h - one version of a state in its blob. Internal to this room; version.c has the layout.
 */
#ifndef DF_STATE_VERSION_H
#define DF_STATE_VERSION_H

#include "common/crypto/crypto.h"
#include "spawner/store/tofu_state/states.h"
#include "spawner/store/vault/vault.h"

/* The meta of a version. number 0: the executor has no state. */
struct df_state_version {
    int64_t number;
    int64_t serial;
    char lineage[129];
    char sha256[DF_SHA256_HEX];   /* of the document */
    int64_t size;                 /* of the document; 0: the state was deleted */
    int64_t stored_size;          /* of the document as it lies in the blob */
    char key_id[DF_VAULT_KEY_ID]; /* of the vault's key that it is sealed under; "": not sealed */
    int64_t rollback_of;          /* set by the writer; or 0 */
};

/* NOT_FOUND: there is no such version. */
int df_state_read_version(struct df_states *s, const char *uid, int64_t number,
                          struct df_state_version *ret, struct df_err *err) DF_MUST_CHECK;

/* The newest version's meta, which the caller deletes, and its number; NULL and 0: there is
 * none. */
int df_state_newest_meta(struct df_states *s, const char *uid, cJSON **ret, int64_t *ret_number,
                         struct df_err *err) DF_MUST_CHECK;
/* The same as a struct, and remembered as the newest. */
int df_state_find_current(struct df_states *s, const char *uid, struct df_state_version *ret,
                          struct df_err *err) DF_MUST_CHECK;

/* Opens the document of a version; the caller closes. SYSTEM StateUnreadable: it is not what was
 * stored, or is sealed under another key. */
int df_state_open_version(struct df_states *s, const char *uid, const struct df_state_version *v,
                          int *ret_fd, int64_t *ret_size, struct df_err *err) DF_MUST_CHECK;

/* Makes the document at path this version, which is the current one then, and moves the file away.
 * Sets stored_size and key_id of v. After a crash or a failure the version is there whole or not at
 * all. */
int df_state_store_version(struct df_states *s, const char *uid, struct df_state_version *v,
                           const char *path, const struct df_state_writer *by,
                           struct df_err *err) DF_MUST_CHECK;

/* Makes a version durable whose first request may have failed in its last sync. */
int df_state_sync_version(struct df_states *s, const char *uid, int64_t number,
                          struct df_err *err) DF_MUST_CHECK;

#endif
