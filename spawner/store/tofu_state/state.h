/*
 * state.h - the managed states of executors: versioned, with one lock; an older serial never
 * overwrites a newer one.
 *
 * Implements the server side of tofu's `http` backend (opentofu internal/backend/remote-state/http)
 * for api/. Blobs: state/<executor uid>/<version, 8 digits>.state, state/<uid>/lock.json,
 * state/<uid>/errored-<step>.tfstate. version.c has the layout of a version, and of those that
 * older services stored as pairs of blobs.
 *
 * The current version is the highest. Its blob appears at once, so after a crash at any point
 * either the old or the new version is current. A version that cannot be read therefore does not
 * come from a crash: it is damage. Then every call fails with SYSTEM StateUnreadable and names the
 * blob, and nothing is read or written until somebody has repaired it.
 *
 * Documents and errored states are compressed, sealed with the vault's key "state" and bound to
 * their blob's key, so that the file of one version or executor does not open as that of another.
 * What is older than the seals is read as it is. The document of a version is compared with its
 * meta's SHA-256 whenever it is opened. state_seal.c has the format. Executors and steps are named
 * by their uid, 1 to 63 of [A-Za-z0-9-]; anything else is class USER. Thread rule: any thread;
 * writes of one executor are serialised inside.
 */
#ifndef DF_STATE_H
#define DF_STATE_H

#include "common/base/strs.h"
#include "common/blob/blob.h"
#include "common/json/json.h"

struct df_states; /* opaque */
struct df_vault;
/* blobs and vault are borrowed until close. */
int df_states_open(struct df_blob *blobs, struct df_vault *vault, struct df_states **ret,
                   struct df_err *err) DF_MUST_CHECK;
void df_states_close(struct df_states *s);

/* Opens a state for reading; the caller closes *ret_fd. version 0: the current one. A version made
 * by df_state_delete() has size 0. NOT_FOUND: there is none. SYSTEM StateUnreadable names uid and
 * version: it is sealed under another key, or is not what was stored. */
int df_state_open(struct df_states *s, const char *executor_uid, int64_t version, int *ret_fd,
                  int64_t *ret_size, struct df_err *err) DF_MUST_CHECK;
/* The current version and what df_state_meta() says of it, which the caller deletes, in one
 * look. */
int df_state_open_current(struct df_states *s, const char *executor_uid, int *ret_fd,
                          int64_t *ret_size, cJSON **ret_meta, struct df_err *err) DF_MUST_CHECK;

struct df_state_writer {
    const char *lock_id;  /* ?ID= of the request, or NULL */
    const char *run;      /* for the version's meta; or NULL */
    const char *step_uid; /* or NULL */
    const char *actor;    /* or NULL */
    bool needs_lock;      /* without a lock of its own it may not replace a state with resources */
};

/* Stores the file as a new version. On success the file is moved away from df_blob_tmp_dir; on
 * failure the caller removes it, whose content may be sealed already. md5: the 16 bytes of
 * Content-MD5, or NULL. Refused: not a state (USER StateRefused), MD5 mismatch (USER), lock held by
 * another ID or by a step that is not the writer (CONFLICT StateLocked), other lineage (CONFLICT
 * ForeignLineage), lower serial, or equal serial with other content (CONFLICT StaleSerial), and
 * what needs_lock says (CONFLICT StateExists). Equal serial and content is success without a new
 * version. Lineage and serial are read by a streaming scan, without building a tree. */
int df_state_put(struct df_states *s, const char *executor_uid, const char *path,
                 const unsigned char *md5, const struct df_state_writer *by,
                 struct df_err *err) DF_MUST_CHECK;

/* Stores a state that a person takes over from elsewhere; the file is moved as by df_state_put().
 * Refused: not a state, encrypted, or another format than 4 (USER StateRefused); a held lock
 * (CONFLICT StateLocked); and, unless replace is set, a current state that has resources or is
 * encrypted (CONFLICT StateExists). Pushing the current state again is success without a new
 * version. Lineage and serial are not compared: the replaced state stays as a version. */
int df_state_push(struct df_states *s, const char *executor_uid, const char *path, bool replace,
                  const char *actor, struct df_err *err) DF_MUST_CHECK;

/* Takes the lock for tofu's info document ({"ID","Operation","Who",...}). holder_step is NULL for
 * people. If it is held: CONFLICT StateLocked, and *ret_holder (may be NULL; the caller deletes) is
 * the holder's info. */
int df_state_lock(struct df_states *s, const char *executor_uid, const cJSON *info,
                  const char *holder_step, cJSON **ret_holder, struct df_err *err) DF_MUST_CHECK;

struct df_state_unlocker {
    const char *step_uid; /* NULL: a person */
    bool may_force;       /* also the lock of another step */
};

/* Unlocks. CONFLICT with *ret_holder if the lock has another ID. DENIED Forbidden if a step holds
 * it that is not the unlocker, who may not force. Success if there is no lock (a repeated
 * unlock). */
int df_state_unlock(struct df_states *s, const char *executor_uid, const char *lock_id,
                    const struct df_state_unlocker *by, cJSON **ret_holder,
                    struct df_err *err) DF_MUST_CHECK;
/* Returns the lock's info in *ret, NULL if there is no lock. */
int df_state_lock_info(struct df_states *s, const char *executor_uid, cJSON **ret,
                       struct df_err *err) DF_MUST_CHECK;
/* Returns the uid of the step that holds the lock with this ID; "" if a person holds it or nobody
 * does. */
int df_state_lock_step(struct df_states *s, const char *executor_uid, const char *lock_id,
                       char ret[64], struct df_err *err) DF_MUST_CHECK;
/* Releases the lock if this step holds it. Only for the engine, once every process of the step is
 * known to be dead. */
int df_state_release_dead(struct df_states *s, const char *executor_uid, const char *step_uid,
                          bool *ret_released, struct df_err *err) DF_MUST_CHECK;
/* Releases the lock, whoever holds it: for an admin. */
int df_state_force_unlock(struct df_states *s, const char *executor_uid,
                          struct df_err *err) DF_MUST_CHECK;

/* What df_state_versions() says of one version, without a look at the others; the caller deletes
 * *ret. version 0: the newest one. NOT_FOUND: there is none. SYSTEM StateUnreadable: it cannot be
 * read. */
int df_state_meta(struct df_states *s, const char *executor_uid, int64_t version, cJSON **ret,
                  struct df_err *err) DF_MUST_CHECK;
/* Lists the versions, newest first: [{version, serial, lineage, size, sha256, storedSize, keyId,
 * createdAt, run, step, actor, rollbackOf}]. storedSize: of the sealed file, keyId: of the vault's
 * key; both are absent in what is older than the seals. A version whose meta cannot be read is
 * {version, damaged: true}. */
int df_state_versions(struct df_states *s, const char *executor_uid, cJSON **ret,
                      struct df_err *err) DF_MUST_CHECK;
/* Which versions stay: the newest `newest` (>= 1), the one that was current at since_us (0: no
 * time), all after that, and the newest that a step wrote. */
struct df_state_keep {
    int64_t newest, since_us;
};
/* Removes the other versions, or only counts them (dry_run). *ret_count: how many. Fails, and
 * removes nothing, if one that would stay cannot be read. */
int df_state_prune(struct df_states *s, const char *executor_uid, const struct df_state_keep *keep,
                   bool dry_run, int64_t *ret_count, struct df_err *err) DF_MUST_CHECK;
/* Stores the content of version n as a new version, with the current serial + 1. Refused while
 * locked (CONFLICT StateLocked), and for the current or an empty version (USER); NOT_FOUND. */
int df_state_rollback(struct df_states *s, const char *executor_uid, int64_t version,
                      const char *actor, struct df_err *err) DF_MUST_CHECK;
/* The reason of what needs to read an encrypted state. */
#define DF_STATE_ENCRYPTED "StateEncrypted"
/* True for a version that OpenTofu has encrypted: nobody knows its outputs. NOT_FOUND: there is
 * none. */
int df_state_is_encrypted(struct df_states *s, const char *executor_uid, int64_t version, bool *ret,
                          struct df_err *err) DF_MUST_CHECK;
/* Returns the outputs of a version (0: the current one) as `tofu output -json` prints them.
 * Sensitive ones have no "value" unless show_sensitive is set; then the caller deletes *ret with
 * df_json_wipe(). {} if there is no state. */
int df_state_outputs(struct df_states *s, const char *executor_uid, int64_t version,
                     bool show_sensitive, cJSON **ret, struct df_err *err) DF_MUST_CHECK;
/* The same of the current version without the sensitive ones, and its meta as of df_state_meta():
 * NULL if there is no state. The caller deletes both. */
int df_state_current_outputs(struct df_states *s, const char *executor_uid, cJSON **ret,
                             cJSON **ret_meta, struct df_err *err) DF_MUST_CHECK;
/* The same for outputs that were read already; their members are moved out of stored. */
int df_state_shown_outputs(cJSON *stored, bool show_sensitive, cJSON **ret,
                           struct df_err *err) DF_MUST_CHECK;
/* tofu's DELETE: stores a new, empty version; the earlier ones stay as history. Refused: a held
 * lock (CONFLICT StateLocked), and what needs_lock says (CONFLICT StateExists). */
int df_state_delete(struct df_states *s, const char *executor_uid, const struct df_state_writer *by,
                    struct df_err *err) DF_MUST_CHECK;
/* Counts the managed objects in the current state and lists the addresses of the first ones. */
#define DF_STATE_LISTED 10
#define DF_STATE_LISTED_BYTES 256
struct df_state_holdings {
    int64_t count; /* -1: unknown, because the state is encrypted or too large */
    bool by_step;  /* with count -1: a step of this service wrote the state */
    char list[3 * DF_STATE_LISTED_BYTES]; /* "a.b, c.d and 7 more" */
};
int df_state_holdings(struct df_states *s, const char *executor_uid, struct df_state_holdings *ret,
                      struct df_err *err) DF_MUST_CHECK;
/* Removes all versions, the lock and the errored states of a deleted executor. */
int df_state_purge(struct df_states *s, const char *executor_uid, struct df_err *err) DF_MUST_CHECK;

/* Keeps errored.tfstate of a step, whatever its content, until it is pushed (the file is moved, as
 * by df_state_put). Pushing it follows the rules of df_state_put for a writer without a lock. */
int df_state_keep_errored(struct df_states *s, const char *executor_uid, const char *step_uid,
                          const char *path, struct df_err *err) DF_MUST_CHECK;
/* Opens it for reading; the caller closes. NOT_FOUND: none is kept. */
int df_state_open_errored(struct df_states *s, const char *executor_uid, const char *step_uid,
                          int *ret_fd, int64_t *ret_size, struct df_err *err) DF_MUST_CHECK;
int df_state_push_errored(struct df_states *s, const char *executor_uid, const char *step_uid,
                          const char *actor, struct df_err *err) DF_MUST_CHECK;
/* Removes one that is stored elsewhere now. */
int df_state_drop_errored(struct df_states *s, const char *executor_uid, const char *step_uid,
                          struct df_err *err) DF_MUST_CHECK;
/* Adds the uids of the steps whose errored states are kept; none of these is opened. */
int df_state_errored_steps(struct df_states *s, const char *executor_uid, struct df_strs *ret,
                           struct df_err *err) DF_MUST_CHECK;
/* Is this the key of a blob that is an errored state? */
bool df_state_is_errored(const char *key);
/* [{step, size, at, serial, lineage}], or [{step, size, at, problem}] if it is not a complete
 * state. */
int df_state_errored(struct df_states *s, const char *executor_uid, cJSON **ret,
                     struct df_err *err) DF_MUST_CHECK;

#endif
