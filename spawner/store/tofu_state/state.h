/*
 * state.h - the managed state of executors: every version kept, one lock, no way back by accident.
 *
 * Implements the server side of tofu's `http` backend (opentofu internal/backend/remote-state/http)
 * for api/. Blobs: state/<executor uid>/<version, 8 digits>.tfstate and .json (meta),
 * state/<uid>/lock.json, state/<uid>/errored-<step>.tfstate.
 *
 * The current version is the highest that has a meta: a version's file is in place before its meta
 * is, so that a kill at any point leaves the old version current or the new one, never none. A meta
 * without its file is no trace of a kill but damage: class SYSTEM names both, nothing is read or
 * written until somebody has looked. Executors and steps are named by their uid, 1 to 63 of
 * [A-Za-z0-9-]: class USER otherwise. Thread rule: any thread; writes of one executor are
 * serialised inside.
 */
#ifndef DF_STATE_H
#define DF_STATE_H

#include "common/blob/blob.h"
#include "common/json/json.h"

struct df_states; /* opaque */
int df_states_open(struct df_blob *blobs, struct df_states **ret, struct df_err *err) DF_MUST_CHECK;
void df_states_close(struct df_states *s);

/* The current state's bytes. NOT_FOUND: there is none, or it was deleted. */
int df_state_get(struct df_states *s, const char *executor_uid, struct df_buf *out,
                 struct df_err *err) DF_MUST_CHECK;
/* An open descriptor instead, for large ones; the caller closes. version 0: the current one. A
 * version that was made by df_state_delete() has size 0. */
int df_state_open(struct df_states *s, const char *executor_uid, int64_t version, int *ret_fd,
                  int64_t *ret_size, struct df_err *err) DF_MUST_CHECK;

struct df_state_writer {
    const char *lock_id;  /* ?ID= of the request, or NULL */
    const char *run;      /* for the version's meta; or NULL */
    const char *step_uid; /* or NULL */
    const char *actor;    /* or NULL */
};

/* Stores the file (on success it is moved away, from df_blob_tmp_dir; on failure the caller removes
 * it) as a new version. md5: the 16 bytes of Content-MD5, or NULL. Refused: not a state (USER
 * StateRefused), MD5 mismatch (USER), lock held by another id or by a step that is not the writer
 * (CONFLICT StateLocked), other lineage (CONFLICT ForeignLineage), lower serial, or equal serial
 * with other content (CONFLICT StaleSerial); equal serial and content is success without a new
 * version. lineage and serial are read by a streaming scan of the top-level members: a state of 512
 * MiB is not parsed into a tree. */
int df_state_put(struct df_states *s, const char *executor_uid, const char *path,
                 const unsigned char *md5, const struct df_state_writer *by,
                 struct df_err *err) DF_MUST_CHECK;

/* What a person stores who takes over a state that was made elsewhere; the file is moved as by
 * df_state_put(). Refused: what is no state, is encrypted or has a format that is not 4 (USER
 * StateRefused), a held lock (CONFLICT StateLocked), and, without replace, a current state with
 * resources or one that is encrypted (CONFLICT StateExists). The current state again is success
 * without a new version. Lineage and serial may be any: what is replaced stays as a version. */
int df_state_push(struct df_states *s, const char *executor_uid, const char *path, bool replace,
                  const char *actor, struct df_err *err) DF_MUST_CHECK;

/* Takes the lock for the info document of tofu ({"ID","Operation","Who",...}); holder_step NULL for
 * people. CONFLICT StateLocked with *ret_holder (may be NULL; the caller deletes) the holder's
 * info. */
int df_state_lock(struct df_states *s, const char *executor_uid, const cJSON *info,
                  const char *holder_step, cJSON **ret_holder, struct df_err *err) DF_MUST_CHECK;
/* Unlocking with another ID: CONFLICT with *ret_holder. No lock at all is success (a repeated
 * unlock). */
int df_state_unlock(struct df_states *s, const char *executor_uid, const char *lock_id,
                    cJSON **ret_holder, struct df_err *err) DF_MUST_CHECK;
/* The lock's info or NULL in *ret. */
int df_state_lock_info(struct df_states *s, const char *executor_uid, cJSON **ret,
                       struct df_err *err) DF_MUST_CHECK;
/* The uid of the step that holds the lock with this ID; "" when that is a person's lock, or is not
 * held now. */
int df_state_lock_step(struct df_states *s, const char *executor_uid, const char *lock_id,
                       char ret[64], struct df_err *err) DF_MUST_CHECK;
/* Releases the lock if this step holds it: for the engine, which has proven that every process of
 * the step is dead. */
int df_state_release_dead(struct df_states *s, const char *executor_uid, const char *step_uid,
                          bool *ret_released, struct df_err *err) DF_MUST_CHECK;
/* Whoever holds it: for an admin. */
int df_state_force_unlock(struct df_states *s, const char *executor_uid,
                          struct df_err *err) DF_MUST_CHECK;

/* [{version, serial, lineage, size, sha256, createdAt, run, step, actor, rollbackOf}], newest
 * first; a version whose meta cannot be read is {version, damaged: true}. */
int df_state_versions(struct df_states *s, const char *executor_uid, cJSON **ret,
                      struct df_err *err) DF_MUST_CHECK;
/* Makes version n the newest again, as a new version whose serial is the current one + 1 and whose
 * other bytes are those of version n. Refused while locked (CONFLICT StateLocked), for the current
 * version and for an empty one (USER); NOT_FOUND. */
int df_state_rollback(struct df_states *s, const char *executor_uid, int64_t version,
                      const char *actor, struct df_err *err) DF_MUST_CHECK;
/* The outputs of a version (0: the current one) as `tofu output -json` prints them; sensitive ones
 * without "value" unless show (then the caller deletes it with df_json_wipe()). {} when there is no
 * state. */
int df_state_outputs(struct df_states *s, const char *executor_uid, int64_t version,
                     bool show_sensitive, cJSON **ret, struct df_err *err) DF_MUST_CHECK;
/* The same of outputs that were read already, whose members are moved. */
int df_state_shown_outputs(cJSON *stored, bool show_sensitive, cJSON **ret,
                           struct df_err *err) DF_MUST_CHECK;
/* tofu's DELETE: a new, empty version (what was there stays as history). */
int df_state_delete(struct df_states *s, const char *executor_uid, const struct df_state_writer *by,
                    struct df_err *err) DF_MUST_CHECK;
/* What the current state holds: managed objects, and the addresses of the first ones. */
#define DF_STATE_LISTED 10
#define DF_STATE_LISTED_BYTES 256
struct df_state_holdings {
    int64_t count; /* -1: cannot be told, for the state is encrypted or too large to be read */
    bool by_step;  /* of -1: was it written by a step of ours? */
    char list[3 * DF_STATE_LISTED_BYTES]; /* "a.b, c.d and 7 more" */
};
int df_state_holdings(struct df_states *s, const char *executor_uid, struct df_state_holdings *ret,
                      struct df_err *err) DF_MUST_CHECK;
/* Removes everything of an executor that was deleted, its lock and errored states, too. */
int df_state_purge(struct df_states *s, const char *executor_uid, struct df_err *err) DF_MUST_CHECK;

/* errored.tfstate of a step: kept, whatever is in it (the file is moved, as by df_state_put), until
 * it was pushed. Pushing follows the rules of df_state_put for somebody without a lock. */
int df_state_keep_errored(struct df_states *s, const char *executor_uid, const char *step_uid,
                          const char *path, struct df_err *err) DF_MUST_CHECK;
/* An open descriptor of it; the caller closes. NOT_FOUND: none is kept. */
int df_state_open_errored(struct df_states *s, const char *executor_uid, const char *step_uid,
                          int *ret_fd, int64_t *ret_size, struct df_err *err) DF_MUST_CHECK;
int df_state_push_errored(struct df_states *s, const char *executor_uid, const char *step_uid,
                          const char *actor, struct df_err *err) DF_MUST_CHECK;
/* [{step, size, at, serial, lineage}], or [{step, size, at, problem}] for what is no whole state.
 */
int df_state_errored(struct df_states *s, const char *executor_uid, cJSON **ret,
                     struct df_err *err) DF_MUST_CHECK;

#endif
