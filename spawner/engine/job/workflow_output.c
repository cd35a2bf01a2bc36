/* What the pods of a workflow's Job have printed, one pod after the other. */
#include "spawner/engine/job/job_engine.h"
#include "spawner/engine/job/workflow_job.h"

#include "spawner/engine/diagnosis/pod_parts.h"

/* A Job has few pods: at most DF_WORKFLOW_PODS and one that is one too many. */
#define MOST_PODS 16

struct pods {
    const cJSON *items[MOST_PODS]; /* shared */
    size_t count;
};

static void free_pods(struct pods *p)
{
    while (p->count)
        df_shared_drop(p->items[--p->count]);
}

static int add_pod(void *arg, const cJSON *pod, struct df_err *err)
{
    struct pods *p = arg;
    if (p->count == MOST_PODS)
        return df_fail(err, DF_ERR_LIMIT, "more than %d pods of one Job", MOST_PODS);
    p->items[p->count++] = df_shared_add(pod);
    return 0;
}

static int by_age(const void *a, const void *b)
{
    const cJSON *x = *(const cJSON *const *)a, *y = *(const cJSON *const *)b;
    const char *made_x = df_json_str(x, "metadata.creationTimestamp");
    const char *made_y = df_json_str(y, "metadata.creationTimestamp");
    int order = strcmp(made_x ? made_x : "", made_y ? made_y : "");
    return order ? order : strcmp(df_kube_name(x), df_kube_name(y));
}

/* Has the container of the pod begun? *ret_is_over: it prints nothing any more. */
static bool has_begun(const cJSON *pod, bool *ret_is_over)
{
    const cJSON *state = df_json_at(df_pod_container(pod, DF_WORKFLOW_CONTAINER), "state");
    const char *phase = df_json_str(pod, "status.phase");
    bool has_ended = df_json_at(state, "terminated") != NULL;
    *ret_is_over = has_ended || df_streq(phase, "Succeeded") || df_streq(phase, "Failed");
    return has_ended || df_json_at(state, "running");
}

static int give_pod(const struct df_job_call *c, const cJSON *pod,
                    const struct df_output_reader *to, struct df_err *err)
{
    const char *name = df_kube_name(pod);
    const struct df_workflow_printer p = {c->name_space, name, DF_WORKFLOW_CONTAINER, name};
    return df_workflow_give_pod(c->engine->o.kube, &p, to, err);
}

int df_job_output(const struct df_job_call *c, const struct df_output_reader *to,
                  struct df_err *err)
{
    DF_CLEANUP(free_pods) struct pods pods = {0};
    bool is_over = true;
    if (df_job_each_pod(c->watch, c->uid, add_pod, &pods, err) < 0)
        return -1;
    qsort(pods.items, pods.count, sizeof(pods.items[0]), by_age);
    for (size_t i = 0; i < pods.count && is_over; i++)
        if (has_begun(pods.items[i], &is_over) && give_pod(c, pods.items[i], to, err) < 0)
            return -1;
    return 0;
}
