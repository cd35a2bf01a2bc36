/*
 * application.h - a component as Argo CD's Application: what we write of it, and what its status
 * says. Contract: contracts/platform.md §3; the fields are those of argoproj.io/v1alpha1.
 *
 * Pure functions. Thread rule: any thread.
 */
#ifndef DF_PLATFORM_APPLICATION_H
#define DF_PLATFORM_APPLICATION_H

#include "common/kube/kube.h"
#include "runner/platform/dag.h"
#include "runner/platform/object.h"

extern const struct df_kube_resource df_applications;

#define DF_LABEL_STACK "dayfly.dev/stack"
#define DF_LABEL_TIER "dayfly.dev/tier" /* the variable ENVIRONMENT */
#define DF_TRACE_ANNOTATION "dayfly.dev/trace-id"
#define DF_SPAN_ANNOTATION "dayfly.dev/span-id"
#define DF_ARGO_FINALIZER "resources-finalizer.argocd.argoproj.io"

/* The Application of a node, as it is applied. The caller owns *ret. */
int df_application_make(const struct df_platform_input *in, const struct df_node *node, cJSON **ret,
                        struct df_err *err) DF_MUST_CHECK;

/* True if the object is one of this environment. */
bool df_application_is_ours(const struct df_platform_input *in, const cJSON *app);

/* What the status says. All borrowed from the object, never NULL: "" if it is not said. */
struct df_application_view {
    const char *sync;   /* Synced, OutOfSync, Unknown */
    const char *health; /* Healthy, Progressing, Degraded, Suspended, Missing, Unknown */
    const char *health_message;
    const char *revision; /* the commit that it was compared with */
    /* The status is about the present source and destination, not about an earlier one. */
    bool is_current;
    const char *condition;      /* the message of a condition that is an error */
    const char *condition_type; /* "ComparisonError" */
    const char *warning;        /* the same of one that is a warning */
    const char *warning_type;   /* "SharedResourceWarning" */
    /* Of the last operation. */
    const char *phase; /* Running, Succeeded, Failed, Error, Terminating */
    const char *message;
    const char *span;   /* the id that we gave it; "": it is not ours */
    bool is_requested;  /* an operation waits to be taken up, or is under way */
    bool is_refreshing; /* Argo CD was asked to look again, and has not yet */
    /* The comparison may know nothing of what the operation did: it is older than the end of that,
     * or came right behind it. Its OutOfSync does not count. */
    bool is_before_end;
};
struct df_application_view df_application_view(const cJSON *app);

/* True if its sources make an object. app: with status.resources. */
bool df_application_has_objects(const cJSON *app);
#define DF_NO_OBJECTS "Argo CD found no manifest in it, so there is nothing in the cluster"

/* True if Argo CD compared with another commit than this one. NULL: any will do. */
bool df_application_is_behind(const struct df_application_view *v, const char *commit);

/* A merge patch that asks for a synchronization to this revision (NULL: to what the source's leads
 * to), with the ids of trace and span. The caller owns *ret. */
int df_application_sync_patch(const char *trace, const char *span, const char *revision,
                              cJSON **ret, struct df_err *err) DF_MUST_CHECK;
/* Argo CD may overlook a change that comes while it writes the Application's status: it works on
 * its own older copy until the Application changes again. After this time it is woken, by a
 * refresh. */
#define DF_ARGO_WAKE_MS 5000
/* A merge patch that makes Argo CD look at the repository now. is_hard: with nothing that it has
 * kept; it keeps also that a repository was not reached, or that manifests were not rendered. */
int df_application_refresh_patch(bool is_hard, cJSON **ret, struct df_err *err) DF_MUST_CHECK;

/* A failure that no repetition mends: the word for it ("PathNotFound"), or NULL. message: of an
 * operation or a condition. */
const char *df_application_lasting_cause(const char *message);

/* "what: why", or what alone if why is "". A why that is too long loses its middle: its end has the
 * words of the tool that failed. */
void df_application_explain(char *to, size_t size, const char *what, const char *why);

/* Whose an object is: "web:apps/Deployment:web/web" is that of the Application web. */
#define DF_ARGO_TRACKING "argocd.argoproj.io/tracking-id"
/* True if the object is tracked by another Application than this one. */
bool df_application_is_another(const char *name, const cJSON *object);
/* True if the object is to stay when its Application or Helm's release goes. */
bool df_application_keeps(const cJSON *object);

#endif
