/*
 * payloads.h - the payload of a step of Terrakube: one blob for each step, sealed with the vault's
 * key "payload" and bound to the step's name. It has secrets and is in no document and no object of
 * the cluster. Thread rule: any thread.
 */
#ifndef DF_STEPS_PAYLOADS_H
#define DF_STEPS_PAYLOADS_H

#include "spawner/spawner.h"

/* Stores the payload, durably, before its step is stored. task: the step's name. */
int df_payload_put(struct df_spawner *s, const char *task, const char *text, size_t n,
                   struct df_err *err) DF_MUST_CHECK;
/* Appends the payload to out, which the caller wipes. NOT_FOUND: it is gone, or another key seals it. */
int df_payload_get(struct df_spawner *s, const char *task, struct df_buf *out,
                   struct df_err *err) DF_MUST_CHECK;
/* Absent is success. */
int df_payload_delete(struct df_spawner *s, const char *task, struct df_err *err) DF_MUST_CHECK;

#endif
