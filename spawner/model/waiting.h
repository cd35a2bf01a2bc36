/*
 * waiting.h - status.waiting {since, reason, message} of a run or step that has not ended: what it
 * cannot go on without, the storage or a source of secrets say, and since when. Absent: nothing.
 * Thread rule: pure functions, any thread.
 */
#ifndef DF_MODEL_WAITING_H
#define DF_MODEL_WAITING_H

#include "common/json/json.h"

/* since_us: real time. reason: how the step ends if the wait has no end; or NULL. */
int df_waiting_set(cJSON *doc, int64_t since_us, const char *reason, const char *message,
                   struct df_err *err) DF_MUST_CHECK;
/* True if there was something to clear. */
bool df_waiting_clear(cJSON *doc);
/* The object {since, reason, message}; or NULL. Borrowed. */
const cJSON *df_waiting_of(const cJSON *doc);
/* Its since, real time; 0: it waits for nothing. */
int64_t df_waiting_since(const cJSON *doc);
/* "waits since 2026-01-01T10:00:00Z: <message>", or "waited in vain since ..."; NULL: out of
 * memory. The caller frees. */
char *df_waiting_text(const cJSON *waiting, bool in_vain);

#endif
