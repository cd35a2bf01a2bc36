/*
 * ansible.h - the engine that runs a workflow as a job of AWX, or of Ansible Automation Platform.
 *
 * The action's engineConfig names a job template; AWX numbers the job, so that the number is in
 * status.engineRef, with the ids of the credentials that were made for it. Nothing else is durable:
 * a job whose reference was not written is found by the action's uid, which is one of its
 * variables. AWX does not lock the target: the queue of the service's own actions does (slots.h).
 * awx_launch.h starts a job, awx_poll.h knows how the live ones are.
 */
#ifndef DF_ENGINE_ANSIBLE_H
#define DF_ENGINE_ANSIBLE_H

#include "common/kube/kube.h"
#include "spawner/engine/engine.h"
#include "spawner/model/never.h"

/* All borrowed: they must outlive the engine. */
struct df_ansible_options {
    const struct df_engine_kind *kind; /* its row */
    struct df_kube *kube;
    const char *name_space;       /* of the Secrets and ConfigMaps that workflows name */
    const struct df_never *never; /* what no step may have; or NULL */
    bool sees_pipelines;          /* the service may look at Tekton's objects */
    const char *url;              /* of AWX */
    const char *ca_file;          /* PEM; NULL: the system's */
    bool insecure;                /* accepts any certificate */
    int64_t organization;         /* of credentials; <= 0: 1 */
    struct {
        const char *name, *key, *name_space;
    } token_secret; /* read for each handle's first request, and when AWX refuses the token */
    /* Does this replica lead? Asked directly before each request that changes something in AWX,
     * which the leader after it would not see in time. NULL: there are no replicas. */
    bool (*may_write)(void *arg);
    void *may_write_arg;
    df_engine_notify notify; /* or NULL */
    void *notify_arg;
};

/* Sends nothing yet. USER: the URL is none. */
int df_engine_ansible_new(const struct df_ansible_options *o, struct df_engine **ret,
                          struct df_err *err) DF_MUST_CHECK;

#endif
