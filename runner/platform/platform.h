/*
 * platform.h - one action on a platform: what its parts share, and the three of them.
 *
 * Thread rule: main thread; a watch of Applications has a thread of its own.
 */
#ifndef DF_PLATFORM_H
#define DF_PLATFORM_H

#include "runner/platform/component.h"
#include "runner/platform/object.h"
#include "runner/platform/telemetry.h"
#include "runner/stop.h"

struct df_platform {
    const struct df_platform_input *in; /* borrowed */
    struct df_telemetry *telemetry;     /* borrowed */
    struct df_stop *stop;               /* a signal, or the action's time is over */
    struct df_kube *kube;               /* borrowed */
    struct df_objects objects;
    struct df_dag dag;
    struct df_component *components; /* one for each node of the DAG; owned */
    char *directory;                 /* of our own, for the repository; NULL: none */
    char *checkout;                  /* the repository's files; NULL: not fetched */
    char *commit;                    /* of gitRevision; NULL: not known */
    /* For the report; owned, NULL: nothing to tell. */
    cJSON *bootstrap;  /* array of strings: what was installed */
    cJSON *compliance; /* of validate */
    cJSON *removal;    /* of teardown */
    cJSON *not_in_dag; /* array of strings: Applications of components that were taken out */
    char left[256];    /* what a teardown left behind (exit 2); "": nothing */
};

/* Each fills the components. -1: the action as a whole could not be done (reason word in err);
 * failures of components are no failure of the call. */
int df_deploy(struct df_platform *p, struct df_err *err) DF_MUST_CHECK;
int df_validate(struct df_platform *p, struct df_err *err) DF_MUST_CHECK;
int df_teardown(struct df_platform *p, struct df_err *err) DF_MUST_CHECK;

/* The component of a node of the DAG. */
static inline struct df_component *df_platform_component(struct df_platform *p,
                                                         const struct df_node *node)
{
    return &p->components[node - p->dag.nodes];
}

/* What a component is to be compared with; NULL: a chart's version says it, or it is not known. */
static inline const char *df_platform_commit_of(const struct df_platform *p,
                                                const struct df_node *node)
{
    if (node->chart)
        return NULL;
    return p->commit || !df_input_is_pinned(p->in) ? p->commit : p->in->git_revision;
}

/* A criterion of health.yaml for a component ("minReadyReplicas"); NULL: it has none. */
const cJSON *df_platform_criterion(const struct df_platform *p, const char *component,
                                   const char *key);
/* True if health.yaml allows this word of health for the component; Healthy is always allowed. */
bool df_platform_allows_health(const struct df_platform *p, const char *component,
                               const char *word);

#endif
