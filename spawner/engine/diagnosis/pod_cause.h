/*
 * pod_cause.h - finds the cause of a failure in the messages of Kubernetes; for spawner/engine
 * only. Thread rule: pure functions.
 */
#ifndef DF_POD_CAUSE_H
#define DF_POD_CAUSE_H

#include "spawner/engine/diagnosis/pod_diagnosis.h"

/* The reason word for a message of Kubernetes (of a waiting container, an Event, a rejection):
 * SecretMissing, QuotaExceeded, ...; or fallback. Borrowed literal. */
const char *df_pod_cause(const char *text, const char *fallback);

/* Does this message of the API server or an Event say that a webhook does not answer? text may be
 * NULL. */
bool df_pod_cause_webhook(const char *text);

/* Would the same object always be rejected again? False if the rejection ends when something else
 * changes: a service account is created, quota becomes free, a webhook answers. text may be NULL.
 */
bool df_pod_cause_is_permanent(const char *reason, const char *text);

/* Sets reason, message and lacks_room. The message has our sentence for the reason, the words of
 * Kubernetes (NULL or "": none) and the way out, by v->of_workflow. */
void df_pod_explain(struct df_pod_diagnosis *v, const char *reason, const char *words);

/* Does this Event explain a failure better than the other one? The later Event does, unless it is
 * only about the kubelet's caches. than may be NULL. */
bool df_pod_event_is_better(const cJSON *event, const cJSON *than);

/* The best Event of the object (kind and name, and uid if both have one) whose reason is one of
 * words (ends with NULL). Returns its message, and its reason in *ret_reason; NULL: there is none.
 * Borrowed. */
const char *df_pod_event(const cJSON *events, const char *kind, const cJSON *object,
                         const char *const *words, const char **ret_reason);

#endif
