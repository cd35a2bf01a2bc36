/*
 * wire.h - what an executor says to Terrakube's Redis, as commands: keys, fields and values are
 * strings of Java's object stream (jdk.h), names of groups and ids are plain. Contract: section
 * 3.9, recorded bytes of 2.28.0. Failures are those of redis.h. Thread rule: one client, one
 * thread.
 */
#ifndef DF_TERRAKUBE_WIRE_H
#define DF_TERRAKUBE_WIRE_H

#include "common/redis/redis.h"
#include "common/terrakube/payload.h"
#include "common/terrakube/settings.h"

/* A client for the Redis of the settings. The caller frees *ret. */
int df_terrakube_wire_new(const struct df_terrakube_settings *s, struct df_redis **ret,
                          struct df_err *err) DF_MUST_CHECK;

/* Creates the groups CLI and UI of the job's stream, and the stream; they may be there. */
int df_terrakube_wire_groups(struct df_redis *r, const char *job, struct df_err *err) DF_MUST_CHECK;

struct df_terrakube_line {
    const char *text; /* borrowed */
    size_t n;
    int64_t number; /* from 1 on, of the step */
};
/* Adds lines to the job's stream in one round trip. *ret_done, also on failure: so many of the
 * first ones are there. */
int df_terrakube_wire_lines(struct df_redis *r, const struct df_terrakube_payload *p,
                            const struct df_terrakube_line *lines, size_t n, size_t *ret_done,
                            struct df_err *err) DF_MUST_CHECK;

/* Adds a state of the structured output to "<job>-context". */
int df_terrakube_wire_context(struct df_redis *r, const struct df_terrakube_payload *p,
                              const char *json, size_t n, struct df_err *err) DF_MUST_CHECK;

/* Sets the job's heartbeat for DF_TERRAKUBE_BEAT_LIFE_S seconds; removes it. */
#define DF_TERRAKUBE_BEAT_LIFE_S 45
int df_terrakube_wire_beat(struct df_redis *r, const char *job, struct df_err *err) DF_MUST_CHECK;
int df_terrakube_wire_unbeat(struct df_redis *r, const char *job, struct df_err *err) DF_MUST_CHECK;

/* Says that the pod, a random text, runs the step, for as long as a heartbeat lives. *ret_other:
 * another one says so, and this one does not. */
int df_terrakube_wire_live(struct df_redis *r, const char *step, const char *pod, bool *ret_other,
                           struct df_err *err) DF_MUST_CHECK;
/* Does another pod say so? */
int df_terrakube_wire_lives_elsewhere(struct df_redis *r, const char *step, const char *pod,
                                      bool *ret, struct df_err *err) DF_MUST_CHECK;
/* Takes back what df_terrakube_wire_live() said. */
int df_terrakube_wire_unlive(struct df_redis *r, const char *step,
                             struct df_err *err) DF_MUST_CHECK;

/* Takes a step for this process, for DF_TERRAKUBE_CLAIM_LIFE_S seconds. *ret_taken: another process
 * has it. On RETRY it may be taken for this one. */
#define DF_TERRAKUBE_CLAIM_LIFE_S (24 * 3600)
int df_terrakube_wire_claim(struct df_redis *r, const char *step, bool *ret_taken,
                            struct df_err *err) DF_MUST_CHECK;

/* Tells the API's queue that an executor has room again: publishes "" on
 * terrakube:executor-available. */
int df_terrakube_wire_ring(struct df_redis *r, struct df_err *err) DF_MUST_CHECK;

#endif
