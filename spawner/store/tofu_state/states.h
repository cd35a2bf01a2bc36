/*
 * states.h - what the files that implement state.h share: keys, the writers' mutexes, temporary
 * files.
 */
#ifndef DF_STATES_H
#define DF_STATES_H

#include <pthread.h>

#include "spawner/store/tofu_state/state.h"

#define DF_STATE_STRIPES 16
#define DF_STATE_HINTS 256

struct df_states {
    struct df_blob *blobs;  /* borrowed */
    struct df_vault *vault; /* borrowed */
    /* The uid of an executor selects the mutex that serialises its writes. */
    pthread_mutex_t stripes[DF_STATE_STRIPES];

    /* The versions that were the newest when an executor's state was last looked at: a list of a
     * long history costs more than all the rest of a write. The uid selects the place. */
    pthread_mutex_t hint;
    struct {
        char uid[64];
        int64_t number;
        int64_t at_us;       /* monotonic */
    } hints[DF_STATE_HINTS]; /* guarded by hint */
};

/* The version that this process saw as the newest of an executor within the last minutes; 0: it saw
 * none. Another process or a person may have changed that since: whoever uses it looks whether
 * there is a next one. That one is not removed yet: retention keeps versions much longer than a
 * hint. */
int64_t df_state_hint(struct df_states *s, const char *uid);
void df_state_remember(struct df_states *s, const char *uid, int64_t number);

/* A blob key below state/<uid>/. */
struct df_state_key {
    char text[192];
};

/* name: "lock.json", or "" for the directory itself. USER if the uid could leave the directory. */
int df_state_key(const char *uid, const char *name, struct df_state_key *ret,
                 struct df_err *err) DF_MUST_CHECK;

/* While the returned mutex is held, no other thread writes this executor's state or lock:
 * DF_STATE_TURN pthread_mutex_t *turn = df_state_enter(s, uid); */
pthread_mutex_t *df_state_enter(struct df_states *s, const char *uid);
static inline void df_cleanup_turn(pthread_mutex_t **turn)
{
    (void)pthread_mutex_unlock(*turn);
}
#define DF_STATE_TURN __attribute__((unused)) DF_CLEANUP(df_cleanup_turn)

/* CONFLICT StateLocked if the lock has another ID than lock_id (NULL: if there is any lock), or
 * belongs to another step than step_uid (NULL: the writer is a person). */
int df_state_check_lock(struct df_states *s, const char *uid, const char *lock_id,
                        const char *step_uid, struct df_err *err) DF_MUST_CHECK;

/* Adds the keys of everything that is kept for an executor, sorted. */
int df_state_list(struct df_states *s, const char *uid, struct df_strs *ret,
                  struct df_err *err) DF_MUST_CHECK;
/* Returns the number of the version whose meta is in the blob of this key, 0 for other keys. */
int64_t df_state_number_in(const char *key);
/* Reads a version's meta; the caller deletes *ret. NOT_FOUND: there is no such version. SYSTEM
 * StateUnreadable: the meta is damaged, the document is missing or has another size than it was
 * stored with, or the bucket has them under a key that the service does not have. */
int df_state_load_meta(struct df_states *s, const char *uid, int64_t number, cJSON **ret,
                       struct df_err *err) DF_MUST_CHECK;

/* A new file in df_blob_tmp_dir. It is removed at the end of its scope unless it was moved away:
 * DF_STATE_TEMPORARY t = {NULL, -1}; */
struct df_state_temporary {
    char *path;
    int fd;
};
int df_state_temporary(struct df_states *s, struct df_state_temporary *ret,
                       struct df_err *err) DF_MUST_CHECK;
void df_cleanup_temporary(struct df_state_temporary *t);
#define DF_STATE_TEMPORARY DF_CLEANUP(df_cleanup_temporary) struct df_state_temporary

/* A document on its way into its blob: DF_STATE_PACKED p = {-1, -1, 0}; */
struct df_state_packed {
    int file;            /* where it came from, and is to be sealed */
    int packed;          /* compressed, still clear */
    int64_t sealed_size; /* what df_state_seal() will write behind the line */
};
static inline void df_cleanup_packed(struct df_state_packed *p)
{
    df_cleanup_fd(&p->file);
    df_cleanup_fd(&p->packed);
}
#define DF_STATE_PACKED DF_CLEANUP(df_cleanup_packed) struct df_state_packed

/* Compresses the document at path, which stays as it is. */
int df_state_pack(struct df_states *s, const char *path, struct df_state_packed *ret,
                  struct df_err *err) DF_MUST_CHECK;
/* Replaces the file's content by the line (or "") and the sealed document, as it is to lie in the
 * blob of this key. After a failure it is neither. */
int df_state_seal(struct df_states *s, const struct df_state_key *key, const char *line,
                  const struct df_state_packed *p, struct df_err *err) DF_MUST_CHECK;

/* The reverse, for an open blob in which the sealed document begins there; *ret_fd: the document,
 * at its start. A blob of which all is document and that is not sealed is older than the seals: it
 * is taken from *blob. DENIED: it is sealed under another key, was the blob of another key, or was
 * changed. */
int df_state_unseal(struct df_states *s, const struct df_state_key *key, int *blob, int64_t begin,
                    int *ret_fd, int64_t *ret_size, struct df_err *err) DF_MUST_CHECK;

#endif
