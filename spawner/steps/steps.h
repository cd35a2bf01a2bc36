/*
 * steps.h - the spawner's side of docs/step-protocol.md: claim, streams, artifacts, result. It
 * knows no HTTP: api/steps.c translates.
 *
 * Every function that takes a token compares it with the hashes in the TaskAction's status (in
 * constant time) and fails with DENIED (wrong token), NOT_FOUND (no such step), or CONFLICT reason
 * StepOver (HTTP 410). Thread rule: any thread.
 */
#ifndef DF_STEPS_STEPS_H
#define DF_STEPS_STEPS_H

#include "spawner/identity/claim.h"
#include "spawner/model/shared_pod.h"
#include "spawner/spawner.h"

/* Claims the step. body: the claim request. token: the step's claim token; or, for a step in a pod,
 * the pod's own token (claim.h has its reasons; RETRY while the cluster's keys are not available).
 * *ret: the step document, which contains secrets: delete it with df_json_wipe(). CONFLICT
 * AlreadyClaimed. */
int df_step_claim(struct df_spawner *s, const char *uid, const char *token, const cJSON *body,
                  cJSON **ret, struct df_err *err) DF_MUST_CHECK;
/* USER: the claim request has no good claimId. */
int df_step_check_claim_id(const cJSON *body, struct df_err *err) DF_MUST_CHECK;
/* Is this the claim request of the runner that has claimed the step, from the same pod? */
bool df_step_is_held_by(const cJSON *task, const cJSON *body, const struct df_claim_pod *pod);
/* Whether the token may claim the step, before a body is read; the errors of df_step_claim(). */
int df_step_check_claim(struct df_spawner *s, const char *uid, const char *token,
                        struct df_err *err) DF_MUST_CHECK;

enum df_stream { DF_STREAM_LOG, DF_STREAM_EVENTS };
/* Bytes at an offset of a stream; borrowed. */
struct df_frame {
    enum df_stream stream;
    int64_t offset;
    const char *bytes;
    size_t n;
};
int df_step_append(struct df_spawner *s, const char *uid, const char *token,
                   const struct df_frame *frame, int64_t *ret_end,
                   struct df_err *err) DF_MUST_CHECK;
int df_step_stream_end(struct df_spawner *s, const char *uid, const char *token,
                       enum df_stream stream, int64_t *ret_end, struct df_err *err) DF_MUST_CHECK;
int df_step_progress(struct df_spawner *s, const char *uid, const char *token, const cJSON *body,
                     struct df_err *err) DF_MUST_CHECK;
/* path: a complete file in df_blob_tmp_dir(); removed on success. */
int df_step_put_plan(struct df_spawner *s, const char *uid, const char *token, const char *path,
                     struct df_err *err) DF_MUST_CHECK;
/* *ret_fd: an unnamed file with the decrypted bundle; the caller closes it. */
int df_step_get_plan(struct df_spawner *s, const char *uid, const char *token, int *ret_fd,
                     int64_t *ret_size, struct df_err *err) DF_MUST_CHECK;
/* path: a file with the output of `output -json`, at most DF_LIMIT_OUTPUTS bytes; removed on
 * success. Stored for the step, and as the newest for its executor, but not those of a dry run,
 * which may have read another state. */
int df_step_put_outputs(struct df_spawner *s, const char *uid, const char *token, const char *path,
                        struct df_err *err) DF_MUST_CHECK;
/* *ret: the outputs of the managed state that this step is to mask, {name: {digest, value}}
 * (shown.h); delete it with df_json_wipe(). */
int df_step_get_shown(struct df_spawner *s, const char *uid, const char *token, cJSON **ret,
                      struct df_err *err) DF_MUST_CHECK;
/* path: a file with the same, masked; removed on success. */
int df_step_put_shown(struct df_spawner *s, const char *uid, const char *token, const char *path,
                      struct df_err *err) DF_MUST_CHECK;
int df_step_result(struct df_spawner *s, const char *uid, const char *token, const cJSON *body,
                   struct df_err *err) DF_MUST_CHECK;

/* What the state password of a step allows. */
struct df_step_state_access {
    char executor_uid[64];
    char run[64];
    bool may_lock; /* not of a dry run, which would keep others from their turn */
    bool may_write;
    bool is_unwanted; /* the step was canceled, or has ended */
    bool gives_up;    /* df_task_gives_up_at() */
};
int df_step_state_access(struct df_spawner *s, const char *uid, const char *password,
                         struct df_step_state_access *ret, struct df_err *err) DF_MUST_CHECK;

/* Reads a step's stream from offset, at most b->max bytes. It checks no token: the caller has
 * authorized the reader. *ret_end: the present size of the stream. */
int df_step_read(struct df_spawner *s, const char *uid, enum df_stream stream, int64_t offset,
                 struct df_buf *b, int64_t *ret_end, struct df_err *err) DF_MUST_CHECK;
/* How many bytes of a step's log are stored; 0 if there is none. */
int df_step_log_size(struct df_spawner *s, const char *uid, int64_t *ret,
                     struct df_err *err) DF_MUST_CHECK;

#endif
