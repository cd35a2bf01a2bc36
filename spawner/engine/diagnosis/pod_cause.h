/*
 * pod_cause.h - causes of a step's trouble told apart by what Kubernetes says of them; inside
 * spawner/engine only. Thread rule: pure functions.
 */
#ifndef DF_POD_CAUSE_H
#define DF_POD_CAUSE_H

#include "spawner/engine/diagnosis/pod_diagnosis.h"

/* The reason for a text of Kubernetes (a waiting message, an Event, a refusal): SecretMissing,
 * QuotaExceeded, ...; or fallback. Borrowed literal. */
const char *df_pod_cause(const char *text, const char *fallback);

/* Do these words of the API server, or of an Event, blame a webhook that does not answer? text may
 * be NULL. */
bool df_pod_cause_webhook(const char *text);

/* Would the same object be refused again, however often it is made? Not so where something else
 * must come or go: an account, a quota's room, a webhook that does not answer. text may be NULL. */
bool df_pod_cause_lasts(const char *reason, const char *text);

/* Sets reason and message: our sentence of that reason, the words of Kubernetes (NULL or "": none),
 * the way out. */
void df_pod_explain(struct df_pod_diagnosis *v, const char *reason, const char *words);

/* Is this Event the better answer to what went wrong? The later one is, unless it tells of nothing
 * but the kubelet's own caches. than may be NULL. */
bool df_pod_event_says_more(const cJSON *event, const cJSON *than);

/* The Event of the object (kind, name; uid may be NULL) that says most, of those whose reason is
 * one of words (ends with NULL): its message, and its reason in *ret_reason; or NULL. Borrowed. */
const char *df_pod_event(const cJSON *events, const char *kind, const cJSON *object,
                         const char *const *words, const char **ret_reason);

#endif
