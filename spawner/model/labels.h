/*
 * labels.h - the labels by which the service finds and counts its documents without reading all of
 * them. The functions change documents in memory only. Thread rule: pure functions.
 */
#ifndef DF_MODEL_LABELS_H
#define DF_MODEL_LABELS_H

#include "common/json/json.h"

#define DF_LABEL_PREFIX "dayfly.dev/" /* of all labels that are the service's */
#define DF_LABEL_EXECUTOR "dayfly.dev/executor"
#define DF_LABEL_RUN "dayfly.dev/run"
#define DF_LABEL_UNFINISHED "dayfly.dev/unfinished" /* "true": reconciled after a start */
/* "true" on an unfinished document whose resource in the cluster was made again from a backup. */
#define DF_LABEL_RESTORED "dayfly.dev/restored"
/* Of an unfinished run: its executor; of an unfinished workflow: the lock on its target. */
#define DF_LABEL_QUEUE "dayfly.dev/queue"
/* Its value on a run that waits for none. No name of an executor has a dot. */
#define DF_QUEUE_NONE "no.turn"
#define DF_LABEL_LIVE "dayfly.dev/live" /* "true" on a step: its engine holds resources of it */
/* On the same steps, to count them by: metadata.namespace, and spec.class if it has one. */
#define DF_LABEL_LIVE_NAMESPACE "dayfly.dev/live-namespace"
#define DF_LABEL_LIVE_CLASS "dayfly.dev/live-class"
/* On what an engine makes for a step: its uid, which decides to which step an object belongs. */
#define DF_LABEL_STEP_UID "dayfly.dev/step-uid"
/* The watches select what engines of this service make by DF_MADE_SELECTOR. The NetworkPolicies of
 * charts/ and rbac/ select its pods by both labels, so every pod has them, and no placement may
 * change them. */
#define DF_LABEL_NAME "app.kubernetes.io/name"
#define DF_LABEL_MANAGED_BY "app.kubernetes.io/managed-by"
#define DF_MADE_NAME "dayfly-runner"
#define DF_MADE_MANAGED_BY "dayfly"
#define DF_MADE_SELECTOR DF_LABEL_MANAGED_BY "=" DF_MADE_MANAGED_BY
/* "true" on a step with transitions that the State Service has not received yet. */
#define DF_LABEL_UNREPORTED "dayfly.dev/unreported"

/* Sets the label; value NULL removes it. */
int df_label_set(cJSON *doc, const char *label, const char *value, struct df_err *err);
/* The value of the label, borrowed; NULL: the document has none. */
const char *df_label_get(const cJSON *doc, const char *label);
/* Has the document this label, with any value? */
bool df_label_has(const cJSON *doc, const char *label);
/* Has the document all these labels, {name: value}? NULL: none are wanted. */
bool df_labels_match(const cJSON *doc, const cJSON *wanted);

#endif
