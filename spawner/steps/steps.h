/*
 * steps.h - the spawner's side of docs/step-protocol.md: claim, streams, artifacts, result.
 * HTTP-free: api/ is a thin skin over it.
 *
 * Every function checks the token it is given against the hashes in the TaskAction's status
 * (constant time) and fails with DENIED (bad token), NOT_FOUND (no such step), or CONFLICT reason
 * StepOver (HTTP 410). Thread rule: any thread.
 */
#ifndef DF_STEPS_H
#define DF_STEPS_H

#include "spawner/spawner.h"

/* body: the claim request. token: the step's claim token; or, for a step that runs in a pod, the
 * pod's own token (claim.h: its reasons, and RETRY while the cluster's keys cannot be had). *ret:
 * the step document; holds secrets: delete with df_json_wipe(). CONFLICT AlreadyClaimed.
 * For a step whose document was handed over in a Secret, token is its step token, *ret only names
 * the step, and the first runner to ask is the only one. */
int df_step_claim(struct df_spawner *s, const char *uid, const char *token, const cJSON *body,
                  cJSON **ret, struct df_err *err) DF_MUST_CHECK;

/* For pods whose document lies in a Secret. The order that keeps a step from running twice, each
 * call repeatable after a crash at any line:
 *   1. df_step_hand_over(): *ret is the document; what an earlier call made is worth nothing now.
 *   2. the engine makes the Job, suspended, and the Secret;
 *   3. df_step_mark_handed_over(): durable; the step counts as claimed from here on;
 *   4. the engine lets the Job go.
 * *ret: delete with df_json_wipe(). CONFLICT AlreadyClaimed when 3 came before, StepOver when the
 * step was cancelled or asks for what is not there (it has failed then, as in a claim), or its
 * document is larger than DF_LIMIT_STEP_SECRET. */
int df_step_hand_over(struct df_spawner *s, const char *uid, cJSON **ret,
                      struct df_err *err) DF_MUST_CHECK;
/* Twice is success; CONFLICT StepOver when the step was cancelled meanwhile: remove the Job. */
int df_step_mark_handed_over(struct df_spawner *s, const char *uid,
                             struct df_err *err) DF_MUST_CHECK;

enum df_stream { DF_STREAM_LOG, DF_STREAM_EVENTS };
/* Bytes that belong at an offset of a stream; borrowed. */
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
/* path: a finished file in df_blob_tmp_dir; taken over. */
int df_step_put_plan(struct df_spawner *s, const char *uid, const char *token, const char *path,
                     struct df_err *err) DF_MUST_CHECK;
/* An open descriptor of an unnamed file with the opened bundle; the caller closes. */
int df_step_get_plan(struct df_spawner *s, const char *uid, const char *token, int *ret_fd,
                     int64_t *ret_size, struct df_err *err) DF_MUST_CHECK;
int df_step_put_errored_state(struct df_spawner *s, const char *uid, const char *token,
                              const char *path, struct df_err *err) DF_MUST_CHECK;
int df_step_result(struct df_spawner *s, const char *uid, const char *token, const cJSON *body,
                   struct df_err *err) DF_MUST_CHECK;

/* Who may use a step's state, and as whom. */
struct df_step_state_access {
    char executor_uid[64];
    char run[64];
    bool may_write;
};
int df_step_state_access(struct df_spawner *s, const char *uid, const char *password,
                         struct df_step_state_access *ret, struct df_err *err) DF_MUST_CHECK;

/* The bytes of a step's stream from offset, at most b->max. For readers (API): no token. *ret_end:
 * the stream's size now. */
int df_step_read(struct df_spawner *s, const char *uid, enum df_stream stream, int64_t offset,
                 struct df_buf *b, int64_t *ret_end, struct df_err *err) DF_MUST_CHECK;
/* A number that changes with every byte of the step's streams and every document. Take it before
 * looking at anything, look, and hand it to df_step_wait_since(): no change is missed in between.
 */
uint64_t df_step_mark(struct df_spawner *s, const char *uid);
/* Sleeps until something changed since the mark, or timeout_ms passed. May wake for nothing. */
void df_step_wait_since(struct df_spawner *s, const char *uid, uint64_t mark, int64_t timeout_ms);

#endif
